//! How texts, lists and times stand in a plan document. Pure.
//!
//! Guarantees that a text which is written here is no structure of the document, and is read as it was: a line that
//! would be structure gets a `\` in front.

use std::borrow::Cow;
use std::sync::LazyLock;

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime};
use regex::Regex;

use crate::sys::fences::Fence;
use crate::sys::text::{regex, with_unix_line_ends};

/// What stands where nothing is to be said yet; with brackets around it or not.
const PLACEHOLDERS: [&str; 7] = [
    "User will provide goal",
    "Clear goal description",
    "Goal to be defined",
    "Criteria will be added once goal is defined",
    "No decisions yet",
    "No rejected decisions yet",
    "No actions taken yet",
];

/// Whether a line only says that nothing is to be said yet.
pub fn is_placeholder(line: &str) -> bool {
    PLACEHOLDERS.contains(&line.trim_matches(|c: char| c.is_whitespace() || "[]".contains(c)))
}

/// Whether git has put this line before, between or behind what it could not merge.
pub fn is_conflict_marker(line: &str) -> bool {
    let marks = ["<<<<<<<", "|||||||", ">>>>>>>"];
    let mut rests = marks.iter().filter_map(|mark| line.strip_prefix(mark));
    rests.any(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// The level and the words of the heading that a line is.
pub fn heading(line: &str) -> Option<(usize, &str)> {
    let words = line.trim_start_matches('#');
    let level = line.len() - words.len();
    let is_heading = words.is_empty() || words.starts_with(char::is_whitespace);
    ((1..=6).contains(&level) && is_heading).then(|| (level, words.trim()))
}

/// The name, in lower case, and the text of a line of the form `**Name:** text`; the colon may stand behind the marks.
pub fn field(line: &str) -> Option<(String, &str)> {
    let rest = line.trim_start().strip_prefix("**")?;
    let (name, rest) = rest.split_at(rest.find(['*', ':'])?);
    let text = match rest.strip_prefix(":**") {
        Some(text) => text,
        None => rest.strip_prefix("**")?.trim_start().strip_prefix(':')?,
    };
    (!name.is_empty()).then(|| (name.trim().to_lowercase(), text.trim()))
}

/// The beginning of a list's item, up to its box.
pub static ITEM: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^(\s*)([-*+]|[0-9]{1,9}[.)])(?:\s+|$|\[)"));

/// The place of a line of text: it decides what would be structure there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// Behind something else on the line.
    Rest,
    /// Under the heading of the goal.
    Goal,
    /// Below a field of an entry.
    Field,
    /// Below an item's first line.
    Item,
}

impl Slot {
    fn is_structure(self, line: &str) -> bool {
        let is_heading = |most| heading(line).is_some_and(|(level, _)| level <= most);
        let is_block = || {
            Fence::of(line).is_some()
                || line.trim_start().starts_with("<!--")
                || is_conflict_marker(line)
        };
        let is_no_text = || line.is_empty() || line.starts_with(char::is_whitespace);
        is_placeholder(line)
            || match self {
                Self::Rest => false,
                Self::Goal => is_heading(2) || is_block(),
                Self::Field | Self::Item => {
                    is_heading(3)
                        || is_block()
                        || is_no_text()
                        || field(line).is_some()
                        || self == Self::Item && ITEM.is_match(line)
                }
            }
    }

    /// The line as it is written. Lines that are structure but for such signs get one more.
    fn escape(self, line: &str) -> Cow<'_, str> {
        if self.is_structure(line.trim_start_matches('\\')) {
            Cow::Owned(format!("\\{line}"))
        } else {
            Cow::Borrowed(line)
        }
    }

    /// The line that was written so.
    pub fn unescape(self, line: &str) -> &str {
        match line.strip_prefix('\\') {
            Some(rest) if self.is_structure(rest.trim_start_matches('\\')) => rest,
            _ => line,
        }
    }
}

/// `text` as lines: the first one behind `prefix`, the others behind `indent`. Blanks around it and at its lines' ends
/// are left out.
pub fn write(prefix: &str, text: &str, slot: Slot, indent: &str) -> Vec<String> {
    let text = clean(text);
    let mut lines = text.split('\n');
    let first = match slot {
        Slot::Goal => Slot::Goal,
        _ => Slot::Rest,
    };
    let first = first.escape(lines.next().unwrap_or_default());
    let first = format!("{prefix}{first}").trim_end().to_owned();
    let others = lines.map(|line| format!("{indent}{}", slot.escape(line)));
    [first].into_iter().chain(others).collect()
}

/// The text that was written as these lines, each less what stood before it and unescaped.
pub fn read(lines: &[&str]) -> String {
    let text = lines.join("\n");
    COMMENT_END_READ
        .replace_all(text.trim(), "--$1>")
        .into_owned()
}

/// `text` as it is written in one line.
pub fn one_line(text: &str) -> String {
    let text = clean(text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `text` with ends of lines that are `\n`, less blanks that no reader sees, and with nothing that would end a comment
/// which the user began and did not end.
fn clean(text: &str) -> String {
    let text = with_unix_line_ends(text);
    let lines: Vec<_> = text.split('\n').map(str::trim_end).collect();
    let text = lines.join("\n").replace('\0', "\u{fffd}");
    COMMENT_END.replace_all(text.trim(), r"--\$1>").into_owned()
}

static COMMENT_END: LazyLock<Regex> = LazyLock::new(|| regex(r"--(\\*)>"));
static COMMENT_END_READ: LazyLock<Regex> = LazyLock::new(|| regex(r"--\\(\\*)>"));

/// A description and its notes as one text.
pub fn with_notes(description: &str, notes: &str) -> String {
    let [description, notes] =
        [description, notes].map(|text| NOTES_BEGIN.replace_all(text.trim(), r"$1\*("));
    match &*notes {
        "" => description.into_owned(),
        notes => format!("{description} *({notes})*"),
    }
}

/// The description and the notes that a text consists of.
pub fn split_notes(text: &str) -> (String, String) {
    let parts = NOTES.captures(text).map(|found| found.extract().1);
    let [description, notes] = parts.unwrap_or([text, ""]);
    let [description, notes] =
        [description, notes].map(|text| NOTES_BEGIN_READ.replace_all(text, "$1*("));
    (description.into_owned(), notes.trim().to_owned())
}

static NOTES: LazyLock<Regex> = LazyLock::new(|| regex(r"(?s)^(.+?)\s+\*\((.*)\)\*$"));
static NOTES_BEGIN: LazyLock<Regex> = LazyLock::new(|| regex(r"(\s\\*)\*\("));
static NOTES_BEGIN_READ: LazyLock<Regex> = LazyLock::new(|| regex(r"(\s\\*)\\\*\("));

/// The texts as a list with commas. A comma that is not in brackets, and brackets that do not match, get a `\` in
/// front; so does a `\`.
pub fn write_list(texts: &[String]) -> String {
    let texts = texts.iter().map(|text| {
        let text = text.trim();
        let is_balanced = depth_at_end(text) == Some(0);
        let mut depth = 0_usize;
        let mut written = String::with_capacity(text.len());
        for c in text.chars() {
            depth = deeper(depth, c).unwrap_or(0);
            let is_special = match c {
                '\\' => true,
                ',' => !is_balanced || depth == 0,
                _ => !is_balanced && is_bracket(c),
            };
            written.extend(is_special.then_some('\\'));
            written.push(c);
        }
        written
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// The texts of a list.
pub fn read_list(list: &str) -> Vec<String> {
    let mut texts = vec![String::new()];
    let mut depth = 0_usize;
    let mut chars = list.chars().peekable();
    while let Some(c) = chars.next() {
        let is_special = |next: &char| matches!(next, '\\' | ',') || is_bracket(*next);
        let escaped = (c == '\\').then(|| chars.next_if(is_special)).flatten();
        if escaped.is_none() {
            depth = deeper(depth, c).unwrap_or(0);
        }
        match (escaped, texts.last_mut()) {
            (None, _) if c == ',' && depth == 0 => texts.push(String::new()),
            (_, Some(text)) => text.push(escaped.unwrap_or(c)),
            _ => {}
        }
    }
    let texts = texts.iter().map(|text| text.trim().to_owned());
    texts.filter(|text| !text.is_empty()).collect()
}

fn is_bracket(c: char) -> bool {
    "()[]{}".contains(c)
}

/// How many brackets are open behind `c`; `None` where it closes none.
fn deeper(depth: usize, c: char) -> Option<usize> {
    match c {
        '(' | '[' | '{' => Some(depth + 1),
        ')' | ']' | '}' => depth.checked_sub(1),
        _ => Some(depth),
    }
}

fn depth_at_end(text: &str) -> Option<usize> {
    text.chars().try_fold(0, deeper)
}

/// A time in milliseconds since 1970, to the minute, UTC.
pub fn write_time(milliseconds: i64) -> String {
    let time = DateTime::from_timestamp_millis(milliseconds).unwrap_or_default();
    time.format("%Y-%m-%d %H:%M").to_string()
}

/// The time that a text begins with, and what stands behind it and a dash.
pub fn read_time(text: &str) -> Option<(i64, &str)> {
    let found = TIME.captures(text)?;
    let date = found.get(1)?.as_str().parse::<NaiveDate>().ok()?;
    let time = found.get(2).map_or("00:00", |time| time.as_str());
    let time = NaiveTime::parse_from_str(time, "%H:%M").ok()?;
    let time = NaiveDateTime::new(date, time).and_utc();
    Some((time.timestamp_millis(), found.get(3)?.as_str()))
}

static TIME: LazyLock<Regex> = LazyLock::new(|| {
    let time = r"^([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]+([0-9]{2}:[0-9]{2})(?::[0-9]{2})?)?\b";
    regex(&format!(r"{time}\s*[-\x{{2013}}\x{{2014}}:]?\s*(.*)$"))
});
