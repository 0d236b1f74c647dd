//! How an agent's work looks to a person: which box or line an event becomes, and in which colours. Pure.

use console::Style;

use super::Event;
use super::boxes::Painted;
use crate::model::StepId;
use crate::record::tasks::{Task, TaskStatus};
use crate::sys::numbers::grouped;

/// What an event looks like.
#[derive(Debug)]
pub(super) enum Look {
    /// Text in a titled box.
    Boxed {
        /// What stands in the box's border.
        title: Painted,
        /// What stands in the box, each on lines of its own.
        body: Vec<Painted>,
    },
    /// A line, after a label.
    Line {
        /// What kind of news it is; may be "".
        label: &'static str,
        /// The news.
        text: Painted,
    },
}

/// What an agent's event looks like; `None` where there is nothing to be seen.
pub(super) fn look(event: &Event) -> Option<Look> {
    match event {
        Event::Session { id, resumed } => {
            let state = if *resumed { "resumed" } else { "new session" };
            Some(line("session", format!("{id} ({state})"), Style::new()))
        }
        Event::Notice(text) => Some(line("", text.to_owned(), Style::new().dim())),
        Event::Finished { summary, log } => {
            let log = log
                .as_ref()
                .map(|log| format!("\nlog: {log}"))
                .unwrap_or_default();
            let style = Style::new().green();
            Some(boxed(
                "Done",
                style.clone(),
                &format!("{summary}{log}"),
                style,
            ))
        }
        Event::Failed { error, hint, log } => {
            let hint = hint
                .as_ref()
                .map(|hint| format!("\nhint: {hint}"))
                .unwrap_or_default();
            let log = log
                .as_ref()
                .map(|log| format!("\nlog: {log}"))
                .unwrap_or_default();
            let style = Style::new().red();
            Some(boxed(
                "Error",
                style.clone(),
                &format!("{error}{hint}{log}"),
                style,
            ))
        }
        Event::Thoughts(text) if text.trim().is_empty() => None,
        Event::Thoughts(text) => Some(boxed("Thoughts", Style::new(), text, Style::new().dim())),
        // The end is told by the audit.
        Event::Tasks(tasks) if tasks.is_empty() => None,
        Event::ToolResult { is_end: true, .. } => None,
        Event::Tasks(tasks) => Some(Look::Boxed {
            title: Painted::new("Task List", Style::new().cyan()),
            body: tasks.iter().map(task).collect(),
        }),
        Event::Tool { name, input, .. } => {
            let title = format!("Tool: {name}");
            let style = Style::new().yellow().bold();
            Some(boxed(&title, style, input, Style::new()))
        }
        Event::Auditing => Some(line(
            "",
            "An independent audit begins.".to_owned(),
            Style::new().cyan(),
        )),
        Event::ToolResult { text, failed, .. } => {
            // The word as well: not everybody sees colours.
            let (title, style) = if *failed {
                ("Result (failed)", Style::new().red())
            } else {
                ("Result", Style::new())
            };
            let text = if text.trim().is_empty() {
                "(nothing)"
            } else {
                text
            };
            Some(boxed(title, style.clone(), text, style))
        }
        Event::Malformed {
            fault,
            failures,
            allowed,
        } => {
            let text = format!("reply not understood ({failures} of {allowed}): {fault}");
            Some(line("", text, Style::new().red()))
        }
        Event::Audited { passed, text } => {
            let (title, style) = if *passed {
                ("Audit (passed)", Style::new().green())
            } else {
                ("Audit (failed)", Style::new().red())
            };
            Some(boxed(title, style.clone(), text, style))
        }
        Event::Compressed {
            tokens_before,
            tokens_after,
        } => {
            let (before, after) = (grouped(*tokens_before), grouped(*tokens_after));
            let text = format!("context compressed: {before} → {after} tokens");
            Some(line("", text, Style::new()))
        }
        _ => None,
    }
}

/// What an agent's model is doing while it is asked; `None` for what is no agent's call.
pub(super) fn doing(step: &StepId) -> Option<&'static str> {
    match step.purpose.name() {
        _ if step.purpose.is_workflows() => None,
        "audit" => Some("Auditing..."),
        "compression" => Some("Compressing..."),
        _ => Some("Thinking..."),
    }
}

fn task(task: &Task) -> Painted {
    let style = match task.status {
        TaskStatus::Pending => Style::new(),
        TaskStatus::InProgress => Style::new().yellow(),
        TaskStatus::Complete => Style::new().green(),
    };
    Painted::new(task.to_string(), style)
}

fn boxed(title: &str, title_style: Style, text: &str, style: Style) -> Look {
    Look::Boxed {
        title: Painted::new(title, title_style),
        body: vec![Painted::new(text, style)],
    }
}

fn line(label: &'static str, text: String, style: Style) -> Look {
    Look::Line {
        label,
        text: Painted::new(text, style),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Purpose;
    use crate::ui::boxes;
    use std::time::Duration;

    /// What is seen of an event, in colours.
    fn seen(event: &Event) -> String {
        let forced = |part: Painted| Painted::new(part.text, part.style.force_styling(true));
        match look(event) {
            None => String::new(),
            Some(Look::Line { label, text }) => {
                let text = forced(text);
                format!("{label}|{}", text.style.apply_to(text.text))
            }
            Some(Look::Boxed { title, body }) => {
                let body: Vec<_> = body.into_iter().map(forced).collect();
                boxes::plain(&forced(title), &body).join("\n")
            }
        }
    }

    fn task(status: TaskStatus, text: &str) -> Task {
        let text = text.to_owned();
        Task { status, text }
    }

    fn result(text: &str, failed: bool) -> Event {
        Event::ToolResult {
            name: "COMMAND".to_owned(),
            text: text.to_owned(),
            failed,
            is_end: false,
            took: Duration::ZERO,
        }
    }

    #[test]
    fn an_event_has_the_title_and_the_colors_of_the_specification() {
        let tasks = [
            task(TaskStatus::Complete, "a"),
            task(TaskStatus::InProgress, "b"),
            task(TaskStatus::Pending, "c"),
        ];
        let tool = Event::Tool {
            name: "READ_FILE".to_owned(),
            input: "\"a.rs\"".to_owned(),
            asks: false,
        };
        let audited = |passed| Event::Audited {
            passed,
            text: "x".to_owned(),
        };
        for (event, expected) in [
            (
                Event::Thoughts("x".to_owned()),
                "Thoughts\n  \u{1b}[2mx\u{1b}[0m",
            ),
            (
                Event::Tasks(tasks.to_vec()),
                "\u{1b}[36mTask List\u{1b}[0m\n  \u{1b}[32m[x] a\u{1b}[0m\n  \u{1b}[33m[~] b\u{1b}[0m\n  [ ] c",
            ),
            (
                tool,
                "\u{1b}[33m\u{1b}[1mTool: READ_FILE\u{1b}[0m\n  \"a.rs\"",
            ),
            (result("x", false), "Result\n  x"),
            (
                result("x", true),
                "\u{1b}[31mResult (failed)\u{1b}[0m\n  \u{1b}[31mx\u{1b}[0m",
            ),
            (
                audited(true),
                "\u{1b}[32mAudit (passed)\u{1b}[0m\n  \u{1b}[32mx\u{1b}[0m",
            ),
            (
                audited(false),
                "\u{1b}[31mAudit (failed)\u{1b}[0m\n  \u{1b}[31mx\u{1b}[0m",
            ),
        ] {
            assert_eq!(seen(&event), expected, "{event:?}");
        }
    }

    #[test]
    fn what_is_no_text_of_the_agents_is_a_line() {
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
        for (event, expected) in [
            (session(false), "session|5 (new session)"),
            (session(true), "session|5 (resumed)"),
            (
                malformed,
                "|\u{1b}[31mreply not understood (2 of 3): line 4: no tool\u{1b}[0m",
            ),
            (
                compressed,
                "|context compressed: 128,000 \u{2192} 8,500 tokens",
            ),
        ] {
            assert_eq!(seen(&event), expected, "{event:?}");
        }
    }

    #[test]
    fn what_says_nothing_is_not_shown() {
        for nothing in [
            Event::Thoughts(" \n".to_owned()),
            Event::Tasks(Vec::new()),
            Event::Warning("x".to_owned()),
        ] {
            assert_eq!(seen(&nothing), "", "{nothing:?}");
        }
        assert_eq!(seen(&result(" \n", false)), "Result\n  (nothing)");
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
}
