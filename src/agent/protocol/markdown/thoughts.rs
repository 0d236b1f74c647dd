//! The spoken part of a reply: without the thoughts, where a server leaves them in the reply. Pure.
//!
//! Thoughts stand ahead of the response: from a `<think>` that begins a line up to the first `</think>`, or, where
//! the server has swallowed the beginning, all up to a line that begins or ends with `</think>`, or has a header behind
//! it. Guarantees that nothing behind a header is cut out, and that no response is cut in two.

use super::super::Fault;
use super::lines::{Name, ReplyLine};
use crate::sys::fences::FenceScanner;

const OPENING: [&str; 2] = ["<think>", "<thinking>"];
const CLOSING: [&str; 2] = ["</think>", "</thinking>"];

/// `lines` less what was thought.
///
/// # Errors
/// Where a thought has no end, or ends behind a response or in the middle of one.
pub fn spoken<'r>(lines: &[ReplyLine<'r>]) -> Result<Vec<ReplyLine<'r>>, Fault> {
    let mut spoken = Vec::new();
    let mut fences = FenceScanner::default();
    let mut has_header = false;
    let mut late_end = None;
    let mut rest = lines.iter().copied();
    let mut remainder = None;
    while let Some(line) = remainder.take().or_else(|| rest.next()) {
        let is_outside = fences.open().is_none();
        let text = line.text().trim();
        if is_outside && !has_header && OPENING.iter().any(|tag| text.starts_with(tag)) {
            remainder = Some(end_of_thought(line, &mut rest)?);
            continue;
        }
        let ends = |tag: &str| text.starts_with(tag) || text.ends_with(tag);
        let has_header_behind = || behind_tag(line).is_some_and(|rest| rest.is_header());
        if is_outside && (CLOSING.iter().any(|tag| ends(tag)) || has_header_behind()) {
            if !has_header {
                // A response whose header is broken is no thought: the tag may be part of its file.
                if spoken.iter().any(names_a_tool) {
                    return Err(unclear(line));
                }
                spoken.clear();
                remainder = behind_tag(line);
                continue;
            }
            late_end = late_end.or(Some(line));
        }
        if line.is_header() {
            has_header = true;
            late_end = None;
        }
        fences.step(line.text());
        spoken.push(line);
    }
    match late_end {
        None => Ok(spoken),
        Some(line) => Err(line
            .fault("all up to this end of a thought is no response")
            .with_remedy("write the response behind your thoughts")),
    }
}

fn names_a_tool(line: &ReplyLine<'_>) -> bool {
    matches!(
        line.heading(),
        Some((Name::ToolChoice | Name::ToolInput, _))
    )
}

/// A fault where an end of a thought may be part of what is written above.
fn unclear(line: ReplyLine<'_>) -> Fault {
    let fault = line
        .fault("it cannot be told whether this ends a thought or is part of what is written above");
    fault.with_remedy("end your thoughts before you write a response")
}

/// The rest of the line that ends the thought which begins with `first`.
fn end_of_thought<'r>(
    first: ReplyLine<'r>,
    rest: &mut impl Iterator<Item = ReplyLine<'r>>,
) -> Result<ReplyLine<'r>, Fault> {
    let mut fences = FenceScanner::default();
    let mut has_header = false;
    for line in std::iter::once(first).chain(rest) {
        if let Some(end) = behind_tag(line) {
            if has_header && fences.open().is_some() {
                return Err(line.fault(
                    "it cannot be told whether this ends a thought or is part of the code block above",
                ).with_remedy("end your thoughts before you write a response"));
            }
            return Ok(end);
        }
        has_header |= line.is_header();
        fences.step(line.text());
    }
    let fault = first.fault("all from here on is thought, since no `</think>` follows");
    Err(fault.with_remedy("end your thoughts, and reply"))
}

/// The rest of the line behind the first tag that ends a thought.
fn behind_tag(line: ReplyLine<'_>) -> Option<ReplyLine<'_>> {
    let mut ends = CLOSING.iter().filter_map(|tag| line.raw.split_once(tag));
    ends.next().map(|(_, raw)| ReplyLine { raw, ..line })
}
