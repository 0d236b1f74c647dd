//! Rendering of the history for a model that replies with JSON objects. Pure.
//!
//! The results of a reply's calls form one user message, each with its number. Consecutive texts from the same side form
//! one message.

use super::exchange::FAILED;
use crate::agent::conversation::{HistoryMessage, in_turns};
use crate::agent::tagged::{Tag, tagged};
use crate::model::message::{Message, Role};
use crate::sys::text::is_deceptive;

/// Renders the messages to send, with the user's words and the program's notes between tags or as they are. `calls`
/// renders a message with native calls, from before a change of the model.
pub(super) fn render(
    history: &[HistoryMessage],
    are_tagged: bool,
    calls: &dyn Fn(&HistoryMessage) -> String,
) -> Vec<Message<'static>> {
    let mut results = 0;
    in_turns(history.iter().map(|message| {
        let is_result = message.role == Role::Tool && message.tool.is_some();
        let joint = if is_result && results > 0 {
            "\n"
        } else {
            "\n\n"
        };
        let text = if is_result {
            result(message, results)
        } else if !message.calls.is_empty() {
            calls(message)
        } else if are_tagged && message.role != Role::Assistant {
            message.sent()
        } else {
            message.content.to_string()
        };
        results = if is_result { results + 1 } else { 0 };
        (message.role, joint, text)
    }))
}

/// Formats the text of a result with its number; the first one is preceded by the heading.
fn result(message: &HistoryMessage, index: usize) -> String {
    let heading = if index == 0 { "Tool results:\n" } else { "" };
    let (sign, text) = if message.is_failed {
        // The sign already says that the call failed.
        let problem = message.content.strip_prefix(FAILED);
        ("❌ Error:", problem.unwrap_or(&message.content))
    } else {
        ("✓", &*message.content)
    };
    let text = text.strip_suffix('\n').unwrap_or(text);
    // A single line cannot be mistaken for several results; text that may be mistaken for a tag is put between the
    // program's own tags.
    let is_plain = |text: &str| !text.contains(|c| is_deceptive(c) || c == '<');
    let tagged = |text| {
        let tool = message.tool.as_deref().unwrap_or_default();
        tagged(Tag::ToolResult, &[("tool", tool)], text)
    };
    let text = match text.split_once('\n') {
        _ if is_plain(text) => text.to_owned(),
        // The first line states the problem.
        Some((first, rest)) if message.is_failed && is_plain(first) => {
            format!("{first}\n{}", tagged(rest))
        }
        _ => tagged(text),
    };
    let result = format!("{heading}[{index}] {sign} {text}");
    result.trim_end().to_owned()
}
