//! Removal of thoughts from a reply, for servers that leave them in. Pure.
//!
//! Thoughts come before the response: from a `<think>` at the very beginning to the first `</think>`, or otherwise
//! everything up to the last line before a header that begins or ends with `</think>`. Guarantees that nothing after a
//! header is removed.

use super::super::Fault;
use super::lines::{ReplyLine, lines};
use crate::model::thoughts::{self, CLOSING, OPENING, without_thoughts};

/// Returns the lines of a reply without its thoughts.
///
/// # Errors
/// Fails if a thought has no end, or may end within a response.
pub fn lines_without_thoughts(text: &str) -> Result<Vec<ReplyLine<'_>>, Fault> {
    let endless = |line| {
        let problem = "all from here on is thought, since no `</think>` follows";
        Fault::at(line, problem).with_remedy("end your thoughts, and reply")
    };
    let rest = without_thoughts(text).ok_or_else(|| endless(1))?;
    let thought = text.get(..text.len() - rest.len()).unwrap_or_default();
    let mut lines = lines(rest, thought.matches('\n').count() + 1);
    let header = lines.iter().position(ReplyLine::is_header);
    let ahead = lines
        .get(..header.unwrap_or(lines.len()))
        .unwrap_or_default();
    if let Some(at) = ahead.iter().rposition(ends_thought) {
        // A response with a malformed header is not a thought: the tag may be part of its file.
        if ahead.iter().take(at).any(ReplyLine::names_a_tool) {
            let line = lines.get(at).map_or(1, |line| line.number);
            let problem =
                "it cannot be told whether this ends a thought or is part of what is written above";
            let fault = Fault::at(line, problem);
            return Err(fault.with_remedy("end your thoughts before you write a response"));
        }
        lines.drain(..at);
        if let Some(first) = lines.first_mut() {
            *first = behind_tag(first).unwrap_or(*first);
        }
        return Ok(lines);
    }
    let begun = ahead
        .iter()
        .find(|line| OPENING.iter().any(|tag| line.raw.starts_with(tag)))
        .map(|line| line.number);
    begun.map_or(Ok(lines), |number| Err(endless(number)))
}

/// Returns whether a line begins or ends with a closing thought tag, or has a header after one.
pub fn ends_thought(line: &ReplyLine<'_>) -> bool {
    thoughts::ends_thought(line.text()) || behind_tag(line).is_some_and(|rest| rest.is_header())
}

/// Returns the rest of the line after the first closing thought tag.
fn behind_tag<'r>(line: &ReplyLine<'r>) -> Option<ReplyLine<'r>> {
    let mut ends = CLOSING.iter().filter_map(|tag| line.raw.split_once(tag));
    ends.next().map(|(_, raw)| ReplyLine { raw, ..*line })
}
