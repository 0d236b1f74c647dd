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
mod tests;
