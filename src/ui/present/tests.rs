//! Tests of how events are shown. Pure.

use super::*;
use crate::model::{Purpose, Tier};
use crate::record::tool::{ToolEnd, Verb};
use std::time::Duration;

/// Returns the title or label of an event, and its text.
fn seen(event: &Event) -> String {
    let Some(shown) = present(event) else {
        return String::new();
    };
    let body: Vec<String> = shown.body.iter().map(Part::text).collect();
    match &*body.join("\n") {
        "" => format!("{}|{}", shown.verb, shown.subject),
        body => format!("{} {}|{body}", shown.verb, shown.subject),
    }
}

fn task(status: TaskStatus, text: &str) -> Task {
    let text = text.to_owned();
    Task { status, text }
}

fn result(text: &str, failed: bool) -> Event {
    Event::ToolResult {
        name: "COMMAND".to_owned(),
        end: ToolEnd {
            text: text.to_owned(),
            failed,
            ..ToolEnd::default()
        },
        is_end: false,
    }
}

fn waiting(branch: &str, status: &str) -> Event {
    Event::Waiting {
        agent: "codex".to_owned(),
        branch: branch.to_owned(),
        status: status.to_owned(),
        waited: Duration::ZERO,
        is_review: true,
        review: 3,
        reviews: 8,
        publishes: false,
        total: Duration::from_secs(3_700),
    }
}

fn ended(branch: &str, status: &str) -> Event {
    Event::BranchEnded {
        agent: "codex".to_owned(),
        branch: branch.to_owned(),
        status: status.to_owned(),
        took: Duration::from_secs(725),
    }
}

#[test]
fn a_branch_is_reported_in_a_line_whatever_the_server_calls_it() {
    let long = "word ".repeat(100);
    let cut: String = long.chars().take(80).collect();
    for (branch, status, expected) in [
        (
            "1f2e3d4c-5b6a",
            "running",
            "codex on branch 1f2e3d4c-5b6a (running)".to_owned(),
        ),
        (
            "1f",
            "a\n b\u{1b}",
            "codex on branch 1f (a b\u{fffd})".to_owned(),
        ),
        ("1f", "", "codex on branch 1f".to_owned()),
        (&long, &long, format!("codex on branch {cut}… ({cut}…)")),
    ] {
        let review = format!("{expected}, review 3 of 8");
        assert_eq!(awaited(&waiting(branch, status)), review);
        assert_eq!(awaited(&ended(branch, status)), expected);
    }
    assert_eq!(awaited(&Event::Auditing), "");
    assert_eq!(
        awaited_in_all(&waiting("1f2e3d4c-5b6a", "running")),
        "review 3 of 8, 1h 01m 40s in all: codex on branch 1f2e3d4c… (running)"
    );
    let told = awaited_since(&waiting("1f", "running"), Duration::from_secs(90));
    assert_eq!(told, "codex on branch 1f (running), review 3 of 8, 1m 30s");
    let mut before = waiting("1f", "running");
    if let Event::Waiting { is_review, .. } = &mut before {
        *is_review = false;
    }
    let told = awaited(&before);
    assert_eq!(told, "codex on branch 1f (running), before review 3 of 8");
}

#[test]
fn an_event_has_the_title_of_the_specification() {
    let tasks = [
        task(TaskStatus::Complete, "a"),
        task(TaskStatus::InProgress, "b"),
        task(TaskStatus::Pending, "c"),
    ];
    let tool = Event::Tool {
        category: None,
        verb: Verb::Use,
        subject: String::new(),
        name: "READ_FILE".to_owned(),
        input: "\"a.rs\"".to_owned(),
        arguments: serde_json::Value::Null,
        asks: false,
    };
    let audited = |passed| Event::Audited {
        passed,
        text: "x".to_owned(),
    };
    for (event, expected) in [
        (Event::Thoughts("x".to_owned()), "Thoughts |x"),
        (
            Event::Tasks(tasks.to_vec()),
            "Task List |[x] a\n[~] b\n[ ] c",
        ),
        (tool, "Tool: READ_FILE |\"a.rs\""),
        (result("x", false), "Result |x"),
        (result("x", true), "Result failed|x"),
        (audited(true), "Audit passed|x"),
        (audited(false), "Audit failed|x"),
    ] {
        assert_eq!(seen(&event), expected, "{event:?}");
    }
}

#[test]
fn events_without_agent_text_are_one_line() {
    let session = |resumed| Event::Session {
        id: "5".to_owned(),
        resumed,
    };
    let malformed = Event::Malformed {
        fault: "line 4: no tool".to_owned(),
        failures: 2,
        allowed: 3,
    };
    let compressed = Event::Compressed {
        tokens_before: 128_000,
        tokens_after: 8500,
    };
    let connected = Event::Connected {
        server: "http://localhost:8000/mcp".to_owned(),
        protocol: "2025-11-25".to_owned(),
    };
    for (event, expected) in [
        (
            connected,
            "server|http://localhost:8000/mcp (MCP 2025-11-25)",
        ),
        (
            waiting("1f2e3d4c-5b6a", "running"),
            "waiting|codex on branch 1f2e3d4c-5b6a (running), review 3 of 8",
        ),
        (
            ended("1f2e3d4c-5b6a", "succeed"),
            "ended|codex on branch 1f2e3d4c-5b6a (succeed), 12m 05s",
        ),
        (session(false), "session|5 (new session)"),
        (session(true), "session|5 (resumed)"),
        (malformed, "|reply not understood (2 of 3): line 4: no tool"),
        (
            compressed,
            "|context compressed: 128,000 \u{2192} 8,500 tokens",
        ),
    ] {
        assert_eq!(seen(&event), expected, "{event:?}");
    }
}

#[test]
fn an_event_of_a_run_has_a_label() {
    let took = Duration::from_millis(1250);
    let answered = |usage, cost, tier| Event::Answered {
        model: "m".to_owned(),
        usage,
        cost,
        tier,
        took,
    };
    let usage = Usage {
        cached_tokens: 200,
        thought_tokens: 50,
        ..Usage::plain(1200, 80)
    };
    let built = |passed: bool| Event::Built {
        status: format!("exit code: {}", u8::from(!passed)),
        passed,
        reasons: if passed {
            Vec::new()
        } else {
            vec!["error: x".to_owned()]
        },
        took,
    };
    let edits = |unchanged: &[&str]| EditsRecord {
        written: vec!["a".to_owned()],
        removed: vec!["b".to_owned()],
        unchanged: unchanged.iter().map(|path| (*path).to_owned()).collect(),
    };
    let tier = Some(Tier::Flex);
    for (event, expected) in [
        (
            Event::Started {
                log: "logs/x".to_owned(),
            },
            "log|logs/x",
        ),
        (
            Event::Asking {
                step: StepId::repair(2),
                model: "m".to_owned(),
                prompt: None,
                spent: Usd::ZERO,
            },
            "asking|m for repair 2",
        ),
        (
            Event::Retrying {
                next_try: 2,
                wait: took,
                reason: "overloaded".to_owned(),
            },
            "retry|overloaded; try 2 in 1.2s",
        ),
        (answered(None, None, None), "answered|m, 1.2s"),
        (answered(None, Some(Usd::ZERO), tier), "answered|m, 1.2s"),
        (
            answered(Some(usage), Some(0.25.try_into().unwrap()), tier),
            "answered|m: 1,200 tokens in (200 cached), 80 out (50 thought), $0.25 (flex), 1.2s",
        ),
        (
            Event::Applied(edits(&["c"])),
            "applied 1 written, 1 removed|a\nb (removed)\nc (unchanged)",
        ),
        (
            Event::PutBack(edits(&[])),
            "undone 1 put back, 1 removed|a\nb (removed)",
        ),
        (
            Event::Uncontained {
                reason: "x".to_owned(),
            },
            "sandbox|none: x; builds and commands can read the keys",
        ),
        (Event::Building { spent: Usd::ZERO }, "build|build.sh"),
        (built(true), "passed|build.sh, 1.2s (exit code: 0)"),
        (
            built(false),
            "failed build.sh, 1.2s (exit code: 1)|error: x",
        ),
        (Event::Warning("x".to_owned()), "warning:|x"),
    ] {
        assert_eq!(seen(&event), expected, "{event:?}");
    }
}

#[test]
fn empty_events_are_not_shown() {
    for nothing in [
        Event::Thoughts(" \n".to_owned()),
        Event::Tasks(Vec::new()),
        Event::Printed("x".to_owned()),
    ] {
        assert_eq!(seen(&nothing), "", "{nothing:?}");
    }
    assert_eq!(seen(&result(" \n", false)), "Result |(nothing)");
}

#[test]
fn only_an_agents_calls_count_along() {
    for (step, expected) in [
        (StepId::INITIAL, None),
        (StepId::repair(1), None),
        (StepId::REPORT, None),
        (StepId::new(Purpose::STEP, 1), Some("Thinking...")),
        (StepId::new(Purpose::AUDIT, 1), Some("Auditing...")),
        (StepId::new(Purpose::COMPRESSION, 1), Some("Compressing...")),
    ] {
        assert_eq!(doing(&step), expected, "{step}");
    }
}
