//! How an agent's work looks where no terminal is: which text under a title or which line an event becomes. Pure.

use console::Style;

use super::blocks::Painted;
use crate::model::StepId;
use crate::record::event::Event;
use crate::record::tasks::{Task, TaskStatus};
use crate::sys::numbers::{elapsed, grouped};
use crate::sys::text::one_line;

/// So many characters of a server's word are shown.
const LONGEST_WORD: usize = 80;

/// What an event looks like.
#[derive(Debug)]
pub(super) enum EventView {
    /// Text under a title.
    Titled {
        /// What stands above it.
        title: Painted,
        /// The text, each part on lines of its own.
        body: Vec<Painted>,
    },
    /// A line, after a label.
    Line {
        /// What it is about; may be "".
        label: &'static str,
        /// What it says.
        text: Painted,
    },
}

/// What an agent's event looks like; `None` where there is nothing to be seen.
pub(super) fn view(event: &Event) -> Option<EventView> {
    let (red, green) = (Style::new().red(), Style::new().green());
    Some(match event {
        Event::Session { id, resumed } => {
            let state = if *resumed { "resumed" } else { "new session" };
            line("session", format!("{id} ({state})"), Style::new())
        }
        Event::Notice(text) => line("", text.clone(), Style::new().dim()),
        Event::Finished { summary, log } => {
            let text = format!("{summary}{}", field("log", log.as_ref()));
            titled("Done", green.clone(), &text, green)
        }
        Event::Failed { error, hint, log } => {
            let (hint, log) = (field("hint", hint.as_ref()), field("log", log.as_ref()));
            titled("Error", red.clone(), &format!("{error}{hint}{log}"), red)
        }
        Event::Thoughts(text) if !text.trim().is_empty() => {
            titled("Thoughts", Style::new(), text, Style::new().dim())
        }
        Event::Words(text) => titled("Said", Style::new(), text, Style::new().dim()),
        Event::Shown(text) => titled("Shown", Style::new(), text, Style::new()),
        Event::Tasks(tasks) if !tasks.is_empty() => EventView::Titled {
            title: Painted::new("Task List", Style::new().cyan()),
            body: tasks.iter().map(task).collect(),
        },
        Event::Tool { name, input, .. } => {
            let style = Style::new().yellow().bold();
            titled(&format!("Tool: {name}"), style, input, Style::new())
        }
        // The end is told by the audit.
        Event::ToolResult {
            text,
            failed,
            is_end: false,
            ..
        } => {
            // The word as well: not everybody sees colours.
            let (title, style) = match failed {
                true => ("Result (failed)", red),
                false => ("Result", Style::new()),
            };
            let text = match text.trim() {
                "" => "(nothing)",
                _ => text,
            };
            titled(title, style.clone(), text, style)
        }
        Event::Malformed {
            fault,
            failures,
            allowed,
        } => {
            let text = format!("reply not understood ({failures} of {allowed}): {fault}");
            line("", text, red)
        }
        Event::Auditing => {
            let text = "An independent audit begins.".to_owned();
            line("", text, Style::new().cyan())
        }
        Event::Audited { passed, text } => {
            let (title, style) = match passed {
                true => ("Audit (passed)", green),
                false => ("Audit (failed)", red),
            };
            titled(title, style.clone(), text, style)
        }
        Event::Connected { server, protocol } => {
            line("server", connected(server, protocol), Style::new())
        }
        Event::Waiting { .. } => line("waiting", awaited(event, usize::MAX), Style::new()),
        Event::BranchEnded { took, .. } => {
            let text = format!("{}, {}", awaited(event, usize::MAX), elapsed(*took));
            line("ended", text, Style::new())
        }
        Event::Compressed {
            tokens_before,
            tokens_after,
        } => {
            let (before, after) = (grouped(*tokens_before), grouped(*tokens_after));
            let text = format!("context compressed: {before} → {after} tokens");
            line("", text, Style::new())
        }
        _ => return None,
    })
}

/// A field on a line of its own, where there is one.
fn field(name: &str, value: Option<&String>) -> String {
    value
        .map(|value| format!("\n{name}: {value}"))
        .unwrap_or_default()
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

/// A tool server: `http://localhost:8000/mcp (MCP 2025-11-25)`.
pub(super) fn connected(server: &str, protocol: &str) -> String {
    format!("{server} (MCP {protocol})")
}

/// A branch that is waited for, or was: `claude_code on branch 1f2e3d4c… (running)`; so much of its id.
pub(super) fn awaited(event: &Event, id_length: usize) -> String {
    match event {
        Event::Waiting {
            agent,
            branch,
            status,
            ..
        }
        | Event::BranchEnded {
            agent,
            branch,
            status,
            ..
        } => {
            let branch = one_line(branch, id_length.min(LONGEST_WORD));
            let status = one_line(status, LONGEST_WORD);
            format!("{agent} on branch {branch} ({status})")
        }
        _ => String::new(),
    }
}

fn task(task: &Task) -> Painted {
    Painted::new(task.to_string(), task_style(task.status))
}

/// The style of a task.
pub(super) fn task_style(status: TaskStatus) -> Style {
    match status {
        TaskStatus::Pending => Style::new(),
        TaskStatus::InProgress => Style::new().yellow(),
        TaskStatus::Complete => Style::new().green(),
    }
}

fn titled(title: &str, title_style: Style, text: &str, style: Style) -> EventView {
    EventView::Titled {
        title: Painted::new(title, title_style),
        body: vec![Painted::new(text, style)],
    }
}

fn line(label: &'static str, text: String, style: Style) -> EventView {
    EventView::Line {
        label,
        text: Painted::new(text, style),
    }
}

#[cfg(test)]
mod tests;
