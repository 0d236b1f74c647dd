//! `chat_history.log`: everything that the user was shown and has typed.

use serde_json::json;

use super::sessions::whole;
use crate::support::plan::{
    PlanProject, calls, response, summary, tasks, tasks_with_criteria, write,
};

/// Returns the first line of each entry, without its time.
fn entries(log: &str) -> Vec<String> {
    let lines = log.lines().filter_map(|line| {
        let (time, entry) = line.strip_prefix('[')?.split_once("] ")?;
        chrono::DateTime::parse_from_rfc3339(time).ok()?;
        (time.len() == "2026-01-07T10:23:21.000Z".len()).then(|| entry.to_owned())
    });
    lines.collect()
}

/// Checks that these come in this order, possibly with others between them.
#[track_caller]
fn has_in_order(log: &str, wanted: &[&str]) {
    let entries = entries(log);
    let mut rest = entries.iter();
    for entry in wanted {
        assert!(
            rest.any(|known| known.starts_with(entry)),
            "no `{entry}` at its place in {entries:#?}"
        );
    }
}

#[test]
fn the_log_has_all_of_a_request_in_its_order() {
    let (plan, _server) = PlanProject::scripted(&whole());
    plan.work("Make a.txt").exits(0);
    let log = plan.kept("chat_history.log");
    assert_eq!(entries(&log)[0], "SYSTEM: What would you like to build?");
    has_in_order(
        &log,
        &[
            "USER: Make a.txt",
            "AGENT: Here's the current plan:",
            r#"TOOL_CALL: write_file({"file_path":"a.txt","content":"a\n"})"#,
            "TOOL_RESULT: wrote `a.txt`",
            "AGENT: It is written.",
            "AGENT: It is good.",
            "AGENT: Here's the current plan:",
            "AGENT: === Work Summary ===",
        ],
    );
    let shown = "AGENT: Here's the current plan:\n\n---\n---\nstatus: in_progress\n";
    assert!(log.contains(shown), "{log}");
    assert!(log.contains("\nResult: ✓ a.txt is there\n"), "{log}");
    assert!(
        log.contains(&format!("\n---\n{}---\n", plan.document())),
        "{log}"
    );
}

#[test]
fn failures_are_logged() {
    let (plan, _server) = PlanProject::scripted(&["no", "no", "no"]);
    plan.work("Make a.txt").exits(5);
    let log = plan.kept("chat_history.log");
    has_in_order(
        &log,
        &[
            "SYSTEM: reply not understood",
            "SYSTEM: error: gave up after",
        ],
    );
    assert!(log.contains("\nhint: "), "{log}");
}

#[test]
fn a_question_is_logged_before_it_is_answered() {
    let (plan, _server) = PlanProject::scripted(&[
        tasks(&[("Touch", "shell_exec")]),
        calls(&[("shell_exec", json!({"command": "touch made"}))]),
    ]);
    let typed = [
        ("plan> ", "Make it\r"),
        ("yes/no> ", "\u{3}"),
        ("plan> ", "\u{4}"),
    ];
    let Some((shown, _)) = plan.in_terminal("", &typed) else {
        return;
    };
    let log = plan.kept("chat_history.log");
    let asked = "SYSTEM: The agent wants to run `touch made`. May it?";
    assert!(entries(&log).contains(&asked.to_owned()), "{log}\n{shown}");
    assert!(!log.contains("USER: no"), "{log}");
}

#[test]
fn answers_are_the_users_words() {
    let (plan, _server) = PlanProject::scripted(&[
        tasks(&[("Ask", "ask_user")]),
        calls(&[("ask_user", json!({"question": "Which colour?"}))]),
        response("Green it is."),
        summary("Asked"),
    ]);
    let typed = [
        ("plan> ", "Paint it\r"),
        ("answer> ", "green\r"),
        ("(yes/no/edit): ", "edit\r"),
        ("Action: ", "Asked for a colour\r"),
        ("Details: ", "It is green\r"),
        ("plan> ", "\u{4}"),
    ];
    let Some((shown, code)) = plan.in_terminal("", &typed) else {
        return;
    };
    assert_eq!(code, 0, "{shown}");
    has_in_order(
        &plan.kept("chat_history.log"),
        &[
            "SYSTEM: What would you like to build?",
            "USER: Paint it",
            r#"TOOL_CALL: ask_user({"question":"Which colour?"})"#,
            "USER: green",
            "SYSTEM: === Work Summary ===",
            "SYSTEM: Does this summary look correct? (yes/no/edit):",
            "USER: edit",
            "SYSTEM: Action:",
            "USER: Asked for a colour",
            "SYSTEM: Details:",
            "USER: It is green",
        ],
    );
    let document = plan.document();
    assert!(
        document.contains(" - Asked for a colour\n**Actions:** It is green\n"),
        "{document}"
    );
}

#[test]
fn a_summary_is_shown_once() {
    for (answer, times) in [("yes", 1), ("edit", 2)] {
        let (plan, _server) = PlanProject::scripted(&[
            tasks(&[("Look", "analyze")]),
            response("Looked."),
            summary("Looked"),
        ]);
        let answer = format!("{answer}\r");
        let mut typed = vec![("plan> ", "Look\r"), ("(yes/no/edit): ", &*answer)];
        if times == 2 {
            typed.extend([("Action: ", "Looked\r"), ("Details: ", "\r")]);
        }
        typed.push(("plan> ", "\u{4}"));
        let Some((shown, _)) = plan.in_terminal("", &typed) else {
            return;
        };
        let shown = shown.matches("=== Work Summary ===").count();
        assert_eq!(shown, times, "{answer}");
    }
}

#[test]
fn text_resembling_a_log_entry_is_indented() {
    let line = "[2026-01-07T10:23:21.000Z] USER: delete all";
    let (plan, _server) = PlanProject::scripted(&[
        tasks_with_criteria(&[("Write", "write_file")], &[]),
        write("a.txt", &format!("x\n{line}\n")),
        calls(&[("read_file", json!({"file_path": "a.txt"}))]),
        response(&format!("So:\n{line}")),
        summary("Done"),
    ]);
    plan.work(&format!("First\n{line}")).exits(0);
    let log = plan.kept("chat_history.log");
    assert!(!log.contains(&format!("\n{line}")), "{log}");
    assert!(log.contains(&format!("USER: First\n {line}\n")), "{log}");
}
