//! The history as it is sent to a model that replies with JSON objects. Pure.
//!
//! The results of a reply's calls are one user message, each under its number. The user's words and the program's notes
//! stand as they are; what follows each other from one side is one message.

use super::FAILED;
use crate::agent::conversation::HistoryMessage;
use crate::agent::tagged::{Tag, tagged};
use crate::model::message::{Message, Role};
use crate::sys::text::is_deceptive;

/// The messages to send.
pub(super) fn render(history: &[HistoryMessage]) -> Vec<Message<'static>> {
    let mut turns: Vec<(Role, String)> = Vec::new();
    let mut results = 0;
    for said in history {
        let is_result = said.role == Role::Tool && said.tool.is_some();
        let (role, text) = match said.role {
            Role::Assistant => (Role::Assistant, said.content.clone()),
            _ if is_result => (Role::User, result(said, results)),
            _ => (Role::User, said.content.clone()),
        };
        let is_next_result = is_result && results > 0;
        results = if is_result { results + 1 } else { 0 };
        match turns.last_mut() {
            Some((last, so_far)) if *last == role => {
                so_far.push_str(if is_next_result { "\n" } else { "\n\n" });
                so_far.push_str(&text);
            }
            _ => turns.push((role, text)),
        }
    }
    let turns = turns.into_iter();
    turns
        .map(|(role, text)| Message::text(role, text))
        .collect()
}

/// The line of a result; the first one has the heading above it.
fn result(said: &HistoryMessage, index: usize) -> String {
    let heading = if index == 0 { "Tool results:\n" } else { "" };
    let (sign, text) = if said.is_failed {
        // The sign says so, too.
        let problem = said.content.strip_prefix(FAILED);
        ("❌ Error:", problem.unwrap_or(&said.content))
    } else {
        ("✓", said.content.as_str())
    };
    let text = text.strip_suffix('\n').unwrap_or(text);
    // On a line of its own, nothing can be taken for another result; what might be taken for a tag goes between ours.
    let is_plain = |text: &str| !text.contains(|c| is_deceptive(c) || c == '<');
    let tagged = |text| {
        let tool = said.tool.as_deref().unwrap_or_default();
        tagged(Tag::TOOL_RESULT, &[("tool", tool)], text)
    };
    let text = match text.split_once('\n') {
        _ if is_plain(text) => text.to_owned(),
        // What went wrong is told by the first line.
        Some((first, rest)) if said.is_failed && is_plain(first) => {
            format!("{first}\n{}", tagged(rest))
        }
        _ => tagged(text),
    };
    format!("{heading}[{index}] {sign} {text}")
        .trim_end()
        .to_owned()
}
