//! Encloses text that is not the program's own in XML tags which that text cannot close. Pure.
//!
//! Guarantees that the enclosing tags are the only ones in the result that the program uses. Since a model reads less
//! strictly than a parser, anything that merely looks like such a tag counts as one.

use std::borrow::Cow;

use strum::{IntoStaticStr, VariantArray};

use crate::sys::text::{is_ignorable, line_end};

/// A tag that the program puts around text, identified by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Tag {
    /// A user's request.
    UserRequest,
    /// The output of a tool.
    ToolResult,
    /// A conversation to summarize.
    Conversation,
    /// The summary of an earlier conversation.
    ContextSummary,
    /// The agent's list of tasks and their progress.
    TaskList,
    /// An agent's account of its own work.
    WorkSummary,
    /// Changes made to the project, for an auditor.
    ProjectChanges,
    /// Conventions for agents, written by the project's authors.
    ProjectConventions,
    /// The program's own words.
    SystemNote,
    /// The current state, in the program's words.
    #[strum(serialize = "system-reminder")]
    SystemReminder,
    /// A placeholder for older messages.
    ContextTruncated,
    /// A file attached by the user or the project.
    File,
}

/// Encloses each of the user's requests in its own tags.
pub fn tagged_requests(requests: &[String]) -> String {
    let requests = requests.iter();
    let tagged = requests.map(|text| tagged(Tag::UserRequest, &[], text));
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
    let (name, content) = (tag.into_str(), defused(content));
    let line_end = line_end(&content);
    format!("<{name}{attributes}>\n{content}{line_end}</{name}>")
}

/// Escapes everything in `content` that looks like one of the program's tags.
fn defused(content: &str) -> Cow<'_, str> {
    without(Tag::VARIANTS, content)
}

/// Escapes everything in `content` that looks like the program's own words, for text that is not enclosed in the
/// program's tags. Other tags are kept: a model that reads `<file>` in a project's XML must be able to write it back.
pub fn without_reminders(content: &str) -> String {
    without(&[Tag::SystemReminder, Tag::ContextTruncated], content).into_owned()
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
    let mut likely = tags
        .iter()
        .filter(|tag| tag.into_str().chars().next() == first);
    likely.any(|tag| tag.into_str().chars().eq(name.clone()))
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
