//! What a model, its tools and the user say to each other, as a transcript on stdout. Pure.
//!
//! Guarantees that nothing in it is a key or moves the cursor, that only whoever speaks begins a line at its first
//! column, and that what one says is bounded.

use super::Event;
use super::blocks::fitted;
use crate::secret::Redactor;
use crate::sys::text::one_line;

/// So many lines are shown of what a model or the user says.
const SAID: usize = 100;
/// So many of what came of a call.
const RESULT: usize = 12;
/// So many characters of a call.
const CALL: usize = 300;

/// The lines that tell an event of at most `width` columns; `None` where it belongs to no exchange.
pub(super) fn lines(event: &Event, redactor: &Redactor, width: usize) -> Option<Vec<String>> {
    let (label, text, limit) = match event {
        Event::Thoughts(text) | Event::Words(text) => ("assistant> ", text.clone(), SAID),
        Event::Tool {
            name, arguments, ..
        } => {
            // Before it is written as JSON, which writes a key's quotes in another way.
            let call = format!("{name} {}", redactor.json(arguments));
            let call = redactor.text(&call).into_owned();
            ("tool> ", one_line(&call, CALL), SAID)
        }
        Event::ToolResult { text, failed, .. } => {
            let error = if *failed { "error: " } else { "" };
            ("tool< ", format!("{error}{text}"), RESULT)
        }
        Event::Heard { question, answer } => {
            (question.as_str(), answer.clone().unwrap_or_default(), SAID)
        }
        _ => return None,
    };
    // Before the text is broken into lines, which would break a key as well.
    let text = redactor.text(&text);
    let mut lines = fitted(&text, width.saturating_sub(label.len()), limit);
    if lines.is_empty() {
        lines.push("(nothing)".to_owned());
    }
    let indent = " ".repeat(label.len());
    for (at, line) in lines.iter_mut().enumerate() {
        let before = if at == 0 { label } else { &indent };
        *line = format!("{before}{line}").trim_end().to_owned();
    }
    Some(lines)
}
