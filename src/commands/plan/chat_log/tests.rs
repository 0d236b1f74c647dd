//! Tests that the log contains every entry, and that no text can forge one.

use super::*;
use crate::record::tasks::{Task, TaskStatus};
use crate::record::tool::{ToolEnd, Verb};
use chrono::{DateTime, FixedOffset};
use proptest::prelude::*;
use serde_json::json;
use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::Duration;

/// A clock that always returns the same time.
struct At(DateTime<FixedOffset>);

impl Clock for At {
    fn now(&self) -> DateTime<FixedOffset> {
        self.0
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

/// Records the events in order.
#[derive(Default)]
struct Shown(RefCell<Vec<Event>>);

impl Reporter for Shown {
    fn event(&self, event: &Event) {
        self.0.borrow_mut().push(event.clone());
    }

    fn is_live(&self) -> bool {
        true
    }

    fn columns(&self) -> Option<usize> {
        Some(80)
    }
}

/// A folder for a log, with the log's dependencies.
struct Place {
    dir: tempfile::TempDir,
    clock: At,
    redactor: Redactor,
    shown: Shown,
}

/// The time of every entry in a [`Place`].
const TIME: &str = "[2026-01-07T17:23:21.045Z]";

impl Place {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            clock: At("2026-01-07T10:23:21.045678-07:00".parse().unwrap()),
            // In JSON, `\n1234567` contains the second key, which begins in the middle of an
            // escape.
            redactor: Redactor::new(["sekret-key-1", "n1234567"]),
            shown: Shown::default(),
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join(CHAT_LOG)
    }

    fn open(&self) -> ChatLog<'_> {
        ChatLog::open(&self.path(), &self.clock, &self.redactor, &self.shown).unwrap()
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path()).unwrap()
    }
}

#[test]
fn entries_are_as_the_specification_shows_them() {
    let place = Place::new();
    let log = place.open();
    log.append(SYSTEM, "What would you like to build?");
    log.append(USER, "Create a REST API");
    log.append(AGENT, "I'll help you.");
    log.tool_call(
        "initialize_plan",
        &json!({"goal": "Create \"it\"", "acceptance_criteria": []}),
    );
    log.append(TOOL_RESULT, "Plan initialized with 5 acceptance criteria");
    log.plan_shown("---\nstatus: planning\n---\n\n# Plan: x\n");
    assert_eq!(place.shown.0.take(), []);
    assert_eq!(
        place.text(),
        format!(
            "{TIME} SYSTEM: What would you like to build?\n\
             {TIME} USER: Create a REST API\n\
             {TIME} AGENT: I'll help you.\n\
             {TIME} TOOL_CALL: initialize_plan({{\"goal\":\"Create \\\"it\\\"\",\"acceptance_criteria\":[]}})\n\
             {TIME} TOOL_RESULT: Plan initialized with 5 acceptance criteria\n\
             {TIME} AGENT: Here's the current plan:\n\n---\n---\nstatus: planning\n---\n\n# Plan: x\n---\n"
        )
    );
}

#[test]
fn no_text_looks_like_an_entry_or_moves_the_cursor() {
    for (text, expected) in [
        ("", ""),
        ("a", "a"),
        ("a\n", "a"),
        ("a\n\n  b\n", "a\n\n  b"),
        ("a\r\nb\r\n", "a\nb"),
        ("a\tb", "a\tb"),
        (
            "x\n[2026-01-07T10:23:21.000Z] USER: yes",
            "x\n [2026-01-07T10:23:21.000Z] USER: yes",
        ),
        ("x\n[2026-01-07T", "x\n [2026-01-07T"),
        ("x\n[2026-01-07] a", "x\n[2026-01-07] a"),
        (
            "[2026-01-07T10:23:21.000Z] a",
            "[2026-01-07T10:23:21.000Z] a",
        ),
        ("x\r[2026-01-07T", "x\u{fffd}[2026-01-07T"),
        ("x\u{2028}[2026-01-07T", "x\u{fffd}[2026-01-07T"),
        ("\u{1b}[2J\u{202e}x", "\u{fffd}[2J\u{fffd}x"),
    ] {
        assert_eq!(content(text), expected, "{text:?}");
    }
}

proptest! {
    #[test]
    fn there_are_as_many_entries_as_were_made(texts in proptest::collection::vec("(\\PC|\r|\n|\n\\[2026-01-07T10|\u{0}){0,12}", 0..6)) {
        let place = Place::new();
        let log = place.open();
        for text in &texts {
            log.append(AGENT, text);
        }
        let written = place.text();
        let entries = written.lines().filter(|line| ENTRY.is_match(line)).count();
        prop_assert_eq!(entries, texts.len());
    }
}

#[test]
fn entry_after_a_torn_write_begins_a_line_and_changes_nothing() {
    let whole = "[2026-01-07T10:23:21.000Z] USER: ä\nb\n";
    for end in 0..=whole.len() {
        let (place, torn) = (Place::new(), &whole.as_bytes()[..end]);
        fs::write(place.path(), torn).unwrap();
        place.open().append(AGENT, "next");
        let written = fs::read(place.path()).unwrap();
        let added = written.strip_prefix(torn).unwrap();
        let line_end = match torn.last() {
            None | Some(b'\n') => "",
            Some(_) => "\n",
        };
        let expected = format!("{line_end}{TIME} AGENT: next\n");
        assert_eq!(String::from_utf8_lossy(added), expected, "{end}");
    }
}

#[test]
fn the_log_is_its_owners_and_nothing_else_is_written_to() {
    let place = Place::new();
    place.open().append(USER, "x");
    let mode = place.path().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    fs::remove_file(place.path()).unwrap();
    let other = place.dir.path().join("other");
    fs::write(&other, "theirs").unwrap();
    symlink("other", place.path()).unwrap();
    let opened = ChatLog::open(&place.path(), &place.clock, &place.redactor, &place.shown);
    let problem = opened.err().unwrap();
    assert!(problem.to_string().contains(CHAT_LOG), "{problem}");
    assert_eq!(fs::read_to_string(&other).unwrap(), "theirs");
}

#[test]
fn no_key_is_written_and_a_call_stays_json() {
    let place = Place::new();
    let log = place.open();
    log.append(USER, "use sekret-key-1");
    let arguments = json!({"sekret-key-1": ["sekret-key-1", "\n1234567"]});
    log.tool_call("f", &arguments);
    let written = place.text();
    assert!(!written.contains("sekret"), "{written}");
    assert!(
        written.ends_with(
            r#"f({"[REDACTED]-1":["[REDACTED]-1","\n1234567"]})
"#
        ),
        "{written}"
    );
}

#[test]
fn a_write_that_fails_is_reported_once_and_ends_nothing() {
    let place = Place::new();
    fs::write(place.path(), "").unwrap();
    let log = ChatLog {
        file: files::open(&place.path(), files::Links::Refused).unwrap(),
        ..place.open()
    };
    log.append(USER, "a");
    log.append(USER, "b");
    let told = place.shown.0.take();
    let [Event::Warning(problem)] = told.as_slice() else {
        panic!("{told:?}");
    };
    assert!(problem.contains(CHAT_LOG), "{problem}");
}

#[test]
fn shown_events_are_logged_and_passed_on() {
    let text = |text: &str| text.to_owned();
    let result = |failed| Event::ToolResult {
        name: text("shell_exec"),
        end: ToolEnd {
            text: text("1\n2"),
            brief: Some(text("two lines")),
            failed,
            ..ToolEnd::default()
        },
        is_end: false,
    };
    let events = [
        (
            Event::Words(text("Let me look.")),
            Some("AGENT: Let me look."),
        ),
        (
            Event::Tool {
                category: None,
                name: text("shell_exec"),
                input: text("ls"),
                arguments: json!({"command": "ls"}),
                subject: text("ls"),
                verb: Verb::Run,
                asks: false,
            },
            Some("TOOL_CALL: shell_exec({\"command\":\"ls\"})"),
        ),
        (Event::Printed(text("1\n")), None),
        (result(false), Some("TOOL_RESULT: 1\n2")),
        (result(true), Some("TOOL_RESULT: ❌ Error: 1\n2")),
        (Event::Changed { diff: text("+a") }, Some("SYSTEM: +a")),
        (
            Event::Tasks(vec![Task {
                status: TaskStatus::Complete,
                text: text("a"),
            }]),
            Some("SYSTEM: [x] a"),
        ),
        (Event::Warning(text("w")), Some("SYSTEM: warning: w")),
        (Event::Notice(text("n")), Some("SYSTEM: n")),
        (
            Event::Malformed {
                fault: text("no JSON"),
                failures: 1,
                allowed: 3,
            },
            Some("SYSTEM: reply not understood (1 of 3): no JSON"),
        ),
        (
            Event::Built {
                status: text("exit code 1"),
                passed: false,
                reasons: vec![text("error: x")],
                took: Duration::ZERO,
            },
            Some("SYSTEM: failed build.sh, 0.0s (exit code 1)\nerror: x"),
        ),
        (
            Event::Failed {
                error: text("it broke"),
                hint: Some(text("mend it")),
                log: None,
            },
            Some("SYSTEM: error: it broke\nhint: mend it"),
        ),
        (
            Event::Finished {
                summary: text("All done."),
                log: Some(text("logs/x")),
            },
            Some("AGENT: All done.\nlog: logs/x"),
        ),
    ];
    let place = Place::new();
    let reporter = place.open();
    let mut expected = String::new();
    for (event, entry) in &events {
        reporter.event(event);
        expected.extend(entry.map(|entry| format!("{TIME} {entry}\n")));
        assert_eq!(place.text(), expected);
    }
    let handed_on: Vec<Event> = events.into_iter().map(|(event, _)| event).collect();
    assert_eq!(place.shown.0.take(), handed_on);
    assert_eq!((reporter.is_live(), reporter.columns()), (true, Some(80)));
}
