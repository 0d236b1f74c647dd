//! Puts text that is not the program's own between XML tags that the text itself cannot close. Pure.
//!
//! Guarantees that of the tags the program uses, the only ones in the result are the two it has put there.
//! A model reads more loosely than a parser, so what merely looks like such a tag counts as one.

use std::sync::LazyLock;

use regex::Regex;

use crate::sys::text::{is_ignorable, line_end, regex};

/// A tag that the program puts around text, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag(&'static str);

impl Tag {
    /// A user's request.
    pub const USER_REQUEST: Self = Self("user_request");
    /// The output of a tool.
    pub const TOOL_RESULT: Self = Self("tool_result");
    /// A conversation to be summed up.
    pub const CONVERSATION: Self = Self("conversation");
    /// The summary of an earlier conversation.
    pub const CONTEXT_SUMMARY: Self = Self("context_summary");
    /// A task list.
    pub const TASK_LIST: Self = Self("task_list");
    /// An agent's account of its own work.
    pub const WORK_SUMMARY: Self = Self("work_summary");
    /// Changes to the project.
    pub const PROJECT_CHANGES: Self = Self("project_changes");
    /// Conventions of the project's authors for agents.
    pub const PROJECT_CONVENTIONS: Self = Self("project_conventions");
    /// The program's own words.
    pub const SYSTEM_NOTE: Self = Self("system_note");
    /// The current state, in the program's words.
    pub const SYSTEM_REMINDER: Self = Self("system-reminder");
    /// Stands where older messages were.
    pub const CONTEXT_TRUNCATED: Self = Self("context_truncated");
    /// A file that the user or the project shows.
    pub const FILE: Self = Self("file");

    /// All of them: what is not here is not defused.
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

/// The user's requests, each between tags of its own.
pub fn tagged_requests(requests: &[String]) -> String {
    let requests = requests.iter();
    let tagged = requests.map(|text| tagged(Tag::USER_REQUEST, &[], text));
    tagged.collect::<Vec<_>>().join("\n\n")
}

/// `content` between two of these tags, which stand on lines of their own.
///
/// In an attribute, all but letters, digits, `_`, `.` and `-` becomes `_`. In the content, the `<` of whatever looks like a tag of the program's own is written as `&lt;`; all else
/// stays byte by byte.
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

/// The text behind a `<` that makes it look like a tag of the program's; some letters of other alphabets
/// are cases of ASCII's. Of other alphabets, a sign behind the name may be one that hardly shows.
static TAG: LazyLock<Regex> = LazyLock::new(|| looks_like(&Tag::ALL));

/// Text that looks like the tags between which the program speaks.
static REMINDER: LazyLock<Regex> =
    LazyLock::new(|| looks_like(&[Tag::SYSTEM_REMINDER, Tag::CONTEXT_TRUNCATED]));

fn looks_like(tags: &[Tag]) -> Regex {
    let names: Vec<&str> = tags.iter().map(|tag| tag.0).collect();
    let names = names.join("|");
    regex(&format!(r"^[\s/]*(?i:{names})(?:$|[^-A-Za-z0-9_.:])"))
}

/// `content` without anything that looks like a tag of the program's.
fn defused(content: &str) -> String {
    without(&TAG, content)
}

/// `content` without anything that looks like words of the program's own, for what stands between no tags of ours; others
/// are as good as any: a model that reads `<file>` in a project's XML is to write it back.
pub fn without_reminders(content: &str) -> String {
    without(&REMINDER, content)
}

fn without(tag: &Regex, content: &str) -> String {
    let mut pieces = content.split('<');
    let mut defused = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let seen = piece.chars().filter(|c| !is_invisible(*c));
        let seen: String = seen.map(upper).collect();
        defused.push_str(if tag.is_match(&seen) { "&lt;" } else { "<" });
        defused.push_str(piece);
    }
    defused
}

/// `c` as a capital, where that is one letter: of `ß` it would be two of ASCII's, which end no name.
fn upper(c: char) -> char {
    let mut capitals = c.to_uppercase();
    match (capitals.next(), capitals.next()) {
        (Some(capital), None) => capital,
        _ => c,
    }
}

/// Reports whether `c` is invisible: control characters, signs for notes, and what Unicode ignores.
fn is_invisible(c: char) -> bool {
    c.is_control() && !c.is_whitespace() || is_ignorable(c) || matches!(c, '\u{fff9}'..='\u{fffb}')
}

#[cfg(test)]
mod tests;
