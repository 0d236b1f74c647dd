//! Tests of an agent's work at a terminal, event by event, at every width, with and without colours. Pure.

use super::*;
use crate::record::tasks::TaskStatus;
use crate::record::tool::{CommandEnd, ToolEnd, Verb};
use std::time::Duration;

fn look(columns: usize) -> Look {
    Look::of_terminal(columns, false)
}

fn verb(name: &str) -> Verb {
    match name {
        "READ_FILE" => Verb::Read,
        "LIST_DIRECTORY" => Verb::List,
        "WRITE_FILE" => Verb::Write,
        "FIND_AND_REPLACE_IN_FILE" => Verb::Edit,
        "COMMAND" => Verb::Run,
        "READ_BACKGROUND_PROCESS" => Verb::Watch,
        "LIST_BACKGROUND_PROCESSES" => Verb::ListProcesses,
        "KILL_BACKGROUND_PROCESS" => Verb::EndProcess,
        "UPDATE_TASK_LIST" => Verb::Note,
        "ASK_USER" => Verb::Ask,
        _ => Verb::Use,
    }
}

/// Returns the end of a tool's command, given the brief result that the user sees.
fn command(name: &str, brief: Option<&str>) -> CommandEnd {
    match (name, brief) {
        ("COMMAND", Some("timed out")) => CommandEnd::Killed,
        ("COMMAND", Some(brief)) => brief
            .strip_prefix("exit code: ")
            .map_or(CommandEnd::InBackground, |code| {
                CommandEnd::Exited(code.parse().unwrap())
            }),
        _ => CommandEnd::None,
    }
}

fn tool(name: &str, subject: &str) -> Event {
    Event::Tool {
        category: None,
        name: name.to_owned(),
        input: subject.to_owned(),
        arguments: serde_json::Value::Null,
        subject: subject.to_owned(),
        asks: name == "ASK_USER",
        verb: verb(name),
    }
}

fn result(name: &str, text: &str, brief: Option<&str>, failed: bool) -> Event {
    Event::ToolResult {
        name: name.to_owned(),
        end: ToolEnd {
            command: command(name, brief),
            took: Duration::from_millis(if name == "COMMAND" { 3210 } else { 1210 }),
            ..ToolEnd::of_text(text, brief, failed)
        },
        is_end: false,
    }
}

/// Returns the visible lines after these events, one after the other.
fn seen(events: &[Event], look: Look) -> Vec<String> {
    let mut steps = Steps::default();
    let lines = events.iter().flat_map(|event| steps.lines(event, look));
    lines.map(|line| line.to_string()).collect()
}

fn printed(text: &str) -> Event {
    Event::Printed(text.to_owned())
}

#[test]
fn a_tool_is_a_line() {
    let diff = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n-x\n+y\n+z\n";
    let changed = Event::Changed {
        diff: diff.to_owned(),
    };
    for (events, expected) in [
        (
            vec![
                tool("READ_FILE", "src/lib.rs"),
                result("READ_FILE", "x", Some("575 lines"), false),
            ],
            &["• Read src/lib.rs (575 lines)"][..],
        ),
        (
            vec![
                tool("LIST_DIRECTORY", "."),
                result("LIST_DIRECTORY", "x", Some("12 entries"), false),
            ],
            &["• Listed . (12 entries)"],
        ),
        (
            vec![
                tool("FIND_AND_REPLACE_IN_FILE", "a"),
                changed.clone(),
                result(
                    "FIND_AND_REPLACE_IN_FILE",
                    "changed `a`:\nwarning: it lost x",
                    None,
                    false,
                ),
            ],
            &[
                "• Edited a (+2 -1)",
                "    @@ -1 +1,2 @@",
                "    -x",
                "    +y",
                "    +z",
                "    warning: it lost x",
            ],
        ),
        (
            vec![
                tool("COMMAND", "cargo test\n--all"),
                printed("1\n2\n"),
                printed("1\n2\n3\n4\n5\n6\n"),
                result("COMMAND", "x", Some("exit code: 0"), false),
            ],
            &[
                "• Ran (exit code: 0, 3.2s)",
                "    cargo test",
                "    --all",
                "    2",
                "    3",
                "    4",
                "    5",
                "    6",
            ],
        ),
        (
            vec![
                tool("READ_FILE", "no/such"),
                result("READ_FILE", "`no/such` is not there", None, true),
            ],
            &["✗ Read no/such (failed)", "    `no/such` is not there"],
        ),
        (
            vec![
                tool("COMMAND", "rm x"),
                result("COMMAND", "nobody allowed it", None, true),
            ],
            &["✗ $ rm x (failed, 3.2s)", "    nobody allowed it"],
        ),
        (
            vec![
                tool("UPDATE_TASK_LIST", ""),
                result("UPDATE_TASK_LIST", "x", None, false),
            ],
            &[],
        ),
        (
            vec![
                tool("ASK_USER", "**Which** one?"),
                result("ASK_USER", "that", None, false),
            ],
            &["? The agent asks", "    Which one?"],
        ),
    ] {
        assert_eq!(seen(&events, look(80)), expected, "{events:?}");
    }
}

/// Returns events that name a branch on a server.
fn of_branch(text: &str) -> [Event; 3] {
    let text = || text.to_owned();
    [
        Event::Connected {
            server: text(),
            protocol: text(),
        },
        Event::Waiting {
            agent: "codex".to_owned(),
            branch: text(),
            status: text(),
            waited: Duration::ZERO,
            is_review: true,
            review: 3,
            reviews: 8,
            publishes: false,
            total: Duration::from_secs(3_700),
        },
        Event::BranchEnded {
            agent: "codex".to_owned(),
            branch: text(),
            status: text(),
            took: Duration::from_secs(65),
        },
    ]
}

#[test]
fn a_branch_is_a_line() {
    assert_eq!(
        seen(&of_branch("x"), look(80)),
        [
            "server x (MCP x)",
            "waiting codex on branch x (x), review 3 of 8",
            "ended codex on branch x (x), 1m 05s"
        ]
    );
}

#[test]
fn the_task_list_is_shown_where_it_changes() {
    let tasks = |status| {
        let text = "a".to_owned();
        Event::Tasks(vec![Task { status, text }])
    };
    let (begun, done) = (tasks(TaskStatus::InProgress), tasks(TaskStatus::Complete));
    assert_eq!(
        seen(
            &[begun.clone(), begun.clone(), done.clone(), done],
            look(80)
        ),
        ["Task List", "  [~] a", "Task List", "  [x] a"]
    );
}

#[test]
fn words_are_bounded_and_the_answer_is_markdown() {
    let long = "a line\n".repeat(100);
    let said = seen(&[Event::Words(long.clone())], look(80));
    assert_eq!(said.len(), PROSE);
    assert!(said.contains(&"  … 89 more lines …".to_owned()), "{said:?}");
    let event = Event::Finished {
        summary: format!("# Done\n\n{long}"),
        log: Some("logs/x".to_owned()),
    };
    let finished = seen(&[event], look(80));
    assert_eq!(finished[..3], ["", "Done", ""]);
    assert_eq!(finished.len(), 100 + 5);
    assert_eq!(finished.last().unwrap(), "log: logs/x");
}

#[test]
fn lines_fit_and_contain_no_control_characters() {
    let hostile = format!("漢字\u{1b}[2J\u{202e}{}\r\u{9b}x", "word ".repeat(60));
    let status = TaskStatus::Pending;
    let diff = format!("@@ -1 +1 @@\n+{hostile}\n");
    let mut events = of_branch(&hostile).to_vec();
    events.extend([
        tool("COMMAND", &hostile),
        printed(&hostile),
        Event::Changed { diff },
        result("COMMAND", &hostile, Some(&hostile), false),
        tool("READ_FILE", &hostile),
        result("READ_FILE", &hostile, None, true),
        Event::Thoughts(hostile.clone()),
        Event::Words(hostile.clone()),
        Event::Tasks(vec![Task {
            status,
            text: hostile.clone(),
        }]),
        Event::Notice(hostile.clone()),
        Event::Status(hostile.clone()),
        Event::Shown(hostile.clone()),
        tool("ASK_USER", &hostile),
        Event::Audited {
            passed: false,
            text: hostile.clone(),
        },
        Event::Finished {
            summary: hostile.clone(),
            log: None,
        },
        Event::Failed {
            error: hostile.clone(),
            hint: Some(hostile),
            log: None,
        },
    ]);
    for columns in [60, 80, 200] {
        for line in seen(&events, look(columns)) {
            let fits = text_width(&line) < columns;
            assert!(fits, "{columns}: {line:?}");
            assert!(!line.contains(crate::sys::text::is_deceptive), "{line:?}");
        }
    }
}

fn diff_lines(diff: &str, limit: usize) -> Vec<String> {
    let lines = look(80).diff(diff, limit).into_iter();
    lines.map(|line| line.to_string()).collect()
}

#[test]
fn a_line_of_a_change_is_shown_to_its_end() {
    let diff = format!("@@ -1 +1 @@\n+earth = 1{}; import os\n \n", " ".repeat(150));
    let lines = [
        "    @@ -1 +1 @@",
        "    +earth = 1",
        "      ; import os",
        "     ",
    ];
    assert_eq!(diff_lines(&diff, DIFF), lines);
    let more = ["    @@ -1 +1 @@", "    +earth = 1", "    … 2 more lines …"];
    assert_eq!(diff_lines(&diff, 2), more);
}

#[test]
fn a_command_that_runs_shows_its_last_line() {
    let mut steps = Steps::default();
    steps.lines(&tool("COMMAND", "make all"), look(80));
    steps.lines(&printed("a\nb\r50 %\r70 %\n\n"), look(80));
    assert_eq!(steps.doing(look(80)), "Running make all");
    assert_eq!(steps.printing(look(80)), "70 %");
}

#[test]
fn the_number_of_folded_lines_is_told_where_it_is_known() {
    for (count, expected) in [
        (20, "    … 15 more lines …"),
        (900, "    … earlier lines …"),
    ] {
        let tool = ToolUse {
            printed: (0..count).map(|n| format!("line {n}\n")).collect(),
            result: Some(ToolEnd {
                command: CommandEnd::Killed,
                failed: true,
                brief: Some("stopped".to_owned()),
                ..ToolEnd::default()
            }),
            ..ToolUse::new("execute_command", Verb::Run, "x")
        };
        let look = Look {
            folding: Folding::Folded,
            ..look(60)
        };
        let lines: Vec<String> = look.tool(&tool).iter().map(ToString::to_string).collect();
        assert_eq!(lines[0], "✗ $ x (stopped)");
        assert_eq!(lines[1], expected);
        assert_eq!(lines.last().unwrap(), &format!("    line {}", count - 1));
    }
}

#[test]
fn an_audits_table_is_shown_as_a_table() {
    let audited = Event::Audited {
        passed: true,
        text: "| Check | Status |\n|---|---|\n| File created | PASS |".to_owned(),
    };
    let shown = seen(&[audited], look(80));
    assert!(shown.iter().all(|line| !line.contains("|-")), "{shown:?}");
    assert!(
        shown.iter().any(|line| line.contains("File created")),
        "{shown:?}"
    );
}
