//! Encloses text that is not the program's own in XML tags which that text cannot close. Pure.
//!
//! Guarantees that the enclosing tags are the only ones in the result that the program uses. Since a model reads less
//! strictly than a parser, anything that merely looks like such a tag counts as one.

use std::sync::LazyLock;

use regex::Regex;

use crate::sys::text::{is_ignorable, line_end, regex};

/// A tag that the program puts around text, identified by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag(&'static str);

impl Tag {
    /// A user's request.
    pub const USER_REQUEST: Self = Self("user_request");
    /// The output of a tool.
    pub const TOOL_RESULT: Self = Self("tool_result");
    /// A conversation to summarize.
    pub const CONVERSATION: Self = Self("conversation");
    /// The summary of an earlier conversation.
    pub const CONTEXT_SUMMARY: Self = Self("context_summary");
    /// The agent's list of tasks and their progress.
    pub const TASK_LIST: Self = Self("task_list");
    /// An agent's account of its own work.
    pub const WORK_SUMMARY: Self = Self("work_summary");
    /// Changes made to the project, for an auditor.
    pub const PROJECT_CHANGES: Self = Self("project_changes");
    /// Conventions for agents, written by the project's authors.
    pub const PROJECT_CONVENTIONS: Self = Self("project_conventions");
    /// The program's own words.
    pub const SYSTEM_NOTE: Self = Self("system_note");
    /// The current state, in the program's words.
    pub const SYSTEM_REMINDER: Self = Self("system-reminder");
    /// A placeholder for older messages.
    pub const CONTEXT_TRUNCATED: Self = Self("context_truncated");
    /// A file attached by the user or the project.
    pub const FILE: Self = Self("file");

    /// All tags; only these are escaped in content.
    const ALL: [Self; 12] = [
        Self::USER_REQUEST,
        Self::TOOL_RESULT,
        Self::CONVERSATION,
        Self::CONTEXT_SUMMARY,
        Self::TASK_LIST,
        Self::WORK_SUMMARY,
        Self::PROJECT_CHANGES,
        Self::PROJECT_CONVENTIONS,
        Self::SYSTEM_NOTE,
        Self::SYSTEM_REMINDER,
        Self::CONTEXT_TRUNCATED,
        Self::FILE,
    ];
}

/// Encloses each of the user's requests in its own tags.
pub fn tagged_requests(requests: &[String]) -> String {
    let requests = requests.iter();
    let tagged = requests.map(|text| tagged(Tag::USER_REQUEST, &[], text));
    tagged.collect::<Vec<_>>().join("\n\n")
}

/// Encloses `content` in a pair of tags, which are on lines of their own.
///
/// In attributes, everything except letters, digits, `_`, `.` and `-` becomes `_`. In the content, the `<` of anything
/// that looks like one of the program's tags is written as `&lt;`; everything else is kept byte by byte.
pub fn tagged(tag: Tag, attributes: &[(&str, &str)], content: &str) -> String {
    let is_odd = |c: char| !c.is_ascii_alphanumeric() && !"_.-".contains(c);
    let attributes: String = attributes
        .iter()
        .map(|(key, value)| format!(" {key}=\"{}\"", value.replace(is_odd, "_")))
        .collect();
    let (name, content) = (tag.0, defused(content));
    let line_end = line_end(&content);
    format!("<{name}{attributes}>\n{content}{line_end}</{name}>")
}

/// Text after a `<` that makes it look like one of the program's tags. The text is compared in capitals, since some
/// letters of other alphabets have ASCII capitals. Any non-ASCII character may end the name, since some are barely
/// visible.
static TAG: LazyLock<Regex> = LazyLock::new(|| looks_like(&Tag::ALL));

/// Text that looks like a tag around the program's own words.
static REMINDER: LazyLock<Regex> =
    LazyLock::new(|| looks_like(&[Tag::SYSTEM_REMINDER, Tag::CONTEXT_TRUNCATED]));

fn looks_like(tags: &[Tag]) -> Regex {
    let names = tags
        .iter()
        .map(|tag| tag.0)
        .collect::<Vec<&str>>()
        .join("|");
    regex(&format!(r"^[\s/]*(?i:{names})(?:$|[^-A-Za-z0-9_.:])"))
}

/// Escapes everything in `content` that looks like one of the program's tags.
fn defused(content: &str) -> String {
    without(&TAG, content)
}

/// Escapes everything in `content` that looks like the program's own words, for text that is not enclosed in the
/// program's tags. Other tags are kept: a model that reads `<file>` in a project's XML must be able to write it back.
pub fn without_reminders(content: &str) -> String {
    without(&REMINDER, content)
}

fn without(tag: &Regex, content: &str) -> String {
    let mut pieces = content.split('<');
    let mut defused = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let seen: String = piece
            .chars()
            .filter(|c| !is_invisible(*c))
            .map(upper)
            .collect();
        defused.push_str(if tag.is_match(&seen) { "&lt;" } else { "<" });
        defused.push_str(piece);
    }
    defused
}

/// Converts `c` to upper case if the result is a single letter. `ß` is kept, since the two ASCII letters in its place
/// would continue a tag's name.
fn upper(c: char) -> char {
    let mut capitals = c.to_uppercase();
    match (capitals.next(), capitals.next()) {
        (Some(capital), None) => capital,
        _ => c,
    }
}

/// Returns whether `c` is invisible: a control character, an interlinear annotation mark, or a character that Unicode
/// says to ignore.
fn is_invisible(c: char) -> bool {
    c.is_control() && !c.is_whitespace() || is_ignorable(c) || matches!(c, '\u{fff9}'..='\u{fffb}')
}

#[cfg(test)]
mod tests;
