//! Encloses text that is not the program's own in XML tags which that text cannot close. Pure.
//!
//! Guarantees that the enclosing tags are the only ones in the result that the program uses. Since a model reads less
//! strictly than a parser, anything that merely looks like such a tag counts as one.

use std::borrow::Cow;

use crate::sys::text::{is_ignorable, line_end};

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

/// Escapes everything in `content` that looks like one of the program's tags.
fn defused(content: &str) -> Cow<'_, str> {
    without(&Tag::ALL, content)
}

/// Escapes everything in `content` that looks like the program's own words, for text that is not enclosed in the
/// program's tags. Other tags are kept: a model that reads `<file>` in a project's XML must be able to write it back.
pub fn without_reminders(content: &str) -> String {
    without(&[Tag::SYSTEM_REMINDER, Tag::CONTEXT_TRUNCATED], content).into_owned()
}

fn without<'c>(tags: &[Tag], content: &'c str) -> Cow<'c, str> {
    let (mut defused, mut from) = (String::new(), 0);
    for at in memchr::memchr_iter(b'<', content.as_bytes()) {
        if is_tag(tags, &content[at + 1..]) {
            defused += &content[from..at];
            defused += "&lt;";
            from = at + 1;
        }
    }
    if from == 0 {
        return content.into();
    }
    (defused + &content[from..]).into()
}

/// Returns whether the text after a `<` makes it look like one of these tags. Any non-ASCII character may end the name,
/// since some are barely visible.
fn is_tag(tags: &[Tag], text: &str) -> bool {
    let visible = text.chars().filter(|c| !is_invisible(*c));
    let mut name = visible
        .skip_while(|c| c.is_whitespace() || *c == '/')
        .map(lower)
        .take_while(|c| c.is_ascii_alphanumeric() || "_.:-".contains(*c))
        .peekable();
    // Most other tags begin with another letter.
    let first = name.peek().copied();
    let mut likely = tags.iter().filter(|tag| tag.0.chars().next() == first);
    likely.any(|tag| tag.0.chars().eq(name.clone()))
}

/// Converts `c` to lower case, including the letters of other alphabets that have an ASCII letter as their other case.
fn lower(c: char) -> char {
    match c {
        '\u{131}' => 'i',
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => c.to_ascii_lowercase(),
    }
}

/// Returns whether `c` is invisible: a control character, an interlinear annotation mark, or a character that Unicode
/// says to ignore.
fn is_invisible(c: char) -> bool {
    c.is_control() && !c.is_whitespace() || is_ignorable(c) || matches!(c, '\u{fff9}'..='\u{fffb}')
}

#[cfg(test)]
mod tests;
