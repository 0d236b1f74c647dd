//! The forms of texts, lists and times in a plan document. Pure.
//!
//! Guarantees that text written here is not read as structure: all but the goal is one line, and a line of the goal
//! that would be structure gets a `\` in front.

use std::borrow::Cow;
use std::sync::LazyLock;

use chrono::{DateTime, NaiveDateTime};
use regex::Regex;

use crate::sys::fences::Fence;
use crate::sys::text::regex;

/// Texts that stand for "nothing yet", with or without brackets around them.
const PLACEHOLDERS: [&str; 7] = [
    "User will provide goal",
    "Clear goal description",
    "Goal to be defined",
    "Criteria will be added once goal is defined",
    "No decisions yet",
    "No rejected decisions yet",
    "No actions taken yet",
];

/// Returns `true` if a line only says that there is nothing yet.
pub fn is_placeholder(line: &str) -> bool {
    PLACEHOLDERS.contains(&line.trim_matches(|c: char| c.is_whitespace() || "[]".contains(c)))
}

/// Returns `true` if a line is one of git's conflict markers.
pub fn is_conflict_marker(line: &str) -> bool {
    ["<<<<<<<", "|||||||", ">>>>>>>"]
        .iter()
        .filter_map(|mark| line.strip_prefix(mark))
        .any(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// The level and the words of a heading.
pub fn heading(line: &str) -> Option<(usize, &str)> {
    let words = line.trim_start_matches('#');
    let level = line.len() - words.len();
    let is_heading = words.is_empty() || words.starts_with(char::is_whitespace);
    ((1..=6).contains(&level) && is_heading).then(|| (level, words.trim()))
}

/// The name, in lower case, and the text of a line `**Name:** text`; the colon may stand behind the asterisks.
pub fn field(line: &str) -> Option<(String, &str)> {
    let rest = line.trim_start().strip_prefix("**")?;
    let (name, rest) = rest.split_at(rest.find(['*', ':'])?);
    let text = match rest.strip_prefix(":**") {
        Some(text) => text,
        None => rest.strip_prefix("**")?.trim_start().strip_prefix(':')?,
    };
    (!name.is_empty()).then(|| (name.trim().to_lowercase(), text.trim()))
}

/// Writes a text in one line.
pub fn one_line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    harmless(&words.join(" "))
}

/// Writes a text that the document stays readable with, and that does not end a comment which the user has left open.
pub fn harmless(text: &str) -> String {
    text.replace("-->", "-- >").replace('\0', "\u{fffd}")
}

/// Writes a line of the goal. A line that only lacks the escape to be structure gets one more.
pub fn escape(line: &str) -> Cow<'_, str> {
    if is_structure(line.trim_start_matches('\\')) {
        Cow::Owned(format!("\\{line}"))
    } else {
        Cow::Borrowed(line)
    }
}

/// Reads a line of the goal.
pub fn unescape(line: &str) -> &str {
    line.strip_prefix('\\')
        .filter(|rest| is_structure(rest.trim_start_matches('\\')))
        .unwrap_or(line)
}

fn is_structure(line: &str) -> bool {
    heading(line).is_some_and(|(level, _)| level <= 2)
        || Fence::of(line).is_some()
        || line.trim_start().starts_with("<!--")
        || is_conflict_marker(line)
        || is_placeholder(line)
}

/// Writes a description and its notes in one line.
pub fn with_notes(description: &str, notes: &str) -> String {
    let description = one_line(description).replace("*(", r"\*(");
    match &*one_line(notes) {
        "" => description,
        notes => format!("{description} *({notes})*"),
    }
}

/// Splits a text into a description and its notes.
pub fn split_notes(text: &str) -> (String, String) {
    let parts = NOTES.captures(text).map(|found| found.extract().1);
    let [description, notes] = parts.unwrap_or([text, ""]);
    (description.replace(r"\*(", "*("), notes.trim().to_owned())
}

static NOTES: LazyLock<Regex> = LazyLock::new(|| regex(r"(?s)^(.+?)\s+\*\((.*)\)\*$"));

/// Writes texts as a list with commas. A text that would be read as several has semicolons instead of its commas.
pub fn write_list(texts: &[String]) -> String {
    let texts = texts.iter().map(|text| match read_list(text).len() {
        0 | 1 => one_line(text),
        _ => one_line(text).replace(',', ";"),
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// Reads a list. A comma in brackets does not separate.
pub fn read_list(list: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let separates = |c: char| {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    list.split(separates)
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
        .collect()
}

/// Writes a time in milliseconds since 1970, to the minute, in UTC.
pub fn write_time(milliseconds: i64) -> String {
    let time = DateTime::from_timestamp_millis(milliseconds).unwrap_or_default();
    time.format("%Y-%m-%d %H:%M").to_string()
}

/// Reads the time that a text begins with, and the text behind it and a dash.
pub fn read_time(text: &str) -> Option<(i64, &str)> {
    let (time, rest) = text.split_at_checked("2026-11-25 20:15".len())?;
    let time = NaiveDateTime::parse_from_str(&time.replace('T', " "), "%Y-%m-%d %H:%M").ok()?;
    let is_between = |c: char| c.is_whitespace() || "-\u{2013}\u{2014}:".contains(c);
    Some((
        time.and_utc().timestamp_millis(),
        rest.trim_start_matches(is_between),
    ))
}
