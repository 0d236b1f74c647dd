//! The blocks of a build description, and the items of a Rust file: what is compiled for tests alone stands under
//! `#[cfg(test)]` or `#[test]`, and the levels of lints at the top of the file.

use std::sync::LazyLock;

use regex::Regex;

use super::group::{Group, Parted};
use crate::sys::text::{line_end, regex};

/// The name of attributes that set the level of lints.
pub const LINT: &str = "lint";

/// Comments before an item.
static COMMENTS: LazyLock<Regex> = LazyLock::new(|| regex(r"^(?s:\s|//[^\n]*(?:\n|$)|/\*.*?\*/)*"));
/// The attributes of a test, or of what is compiled for tests.
static TEST: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^(?s:\s|//[^\n]*\n|/\*.*?\*/|#\[[^\]]*\])*#\[\s*(?:cfg\(\s*(?:all\(\s*)?test\b|(?:\w+\s*::\s*)*(?:test|rstest|test_case|quickcheck)\b)",
    )
});
static LINTS: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^#!\[\s*(?:cfg_attr\([^,]*,\s*)?(?:deny|forbid|warn|allow|expect)\b"));

/// Splits a description into blocks, named by their first word; `None` if its braces are not balanced.
pub fn blocks(text: &str) -> Option<Parted> {
    let blocks = split(text, false)?.into_iter().map(|text| {
        let start = &text[COMMENTS.find(text).map_or(0, |found| found.end())..];
        let name = start.split(|c: char| c.is_whitespace() || "{(=".contains(c));
        Group::new(name.into_iter().next().unwrap_or_default(), text)
    });
    Some(parted(blocks.collect()))
}

/// Splits a Rust file into items; `None` if its brackets are not balanced.
pub fn rust(text: &str) -> Option<Parted> {
    let mut items = Vec::new();
    // Nothing that is put behind it becomes part of a comment.
    let text = format!("{text}{}", line_end(text));
    for text in split(&text, true)? {
        let comments = COMMENTS.find(text).map_or(0, |found| found.end());
        let is_inner = text[comments..].starts_with("#!");
        // Comments on the file, not on the item.
        let inner = text[..comments].rfind("//!").map_or(0, |at| {
            text[at..comments]
                .find('\n')
                .map_or(comments, |end| at + end + 1)
        });
        let (above, item) = text.split_at(if is_inner { comments } else { inner });
        if !above.is_empty() {
            items.push(Group::new("comments", above));
        }
        let name = match item {
            _ if LINTS.is_match(item) => LINT,
            _ if TEST.is_match(item) => "test",
            _ => "code",
        };
        items.push(Group::new(name, item));
    }
    Some(parted(items))
}

fn parted(groups: Vec<Group>) -> Parted {
    Parted {
        groups,
        ..Parted::default()
    }
}

/// Splits a text behind each block in braces and, outside of brackets, behind each statement: a line, or in Rust what
/// ends with a semicolon. Each part ends with a line break.
fn split(text: &str, is_rust: bool) -> Option<Vec<&str>> {
    let bytes = text.as_bytes();
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
    let (mut depth, mut is_inner) = (0_usize, false);
    while at < bytes.len() {
        let skipped = skip(&text[at..], text[..at].chars().next_back(), is_rust)?;
        let byte = bytes[at];
        at += skipped;
        let mut ends = false;
        match byte {
            _ if skipped > 1 => {}
            b'{' | b'(' | b'[' => {
                is_inner |= depth == 0 && byte == b'[' && text[..at - 1].ends_with("#!");
                depth += 1;
            }
            b'}' | b')' | b']' => {
                depth = depth.checked_sub(1)?;
                ends = depth == 0 && (byte == b'}' || is_inner);
            }
            b';' => ends = depth == 0 && is_rust,
            b'\n' => ends = depth == 0 && !is_rust,
            _ => {}
        }
        if ends {
            is_inner = false;
            let rest = &text[at..];
            let behind = rest.trim_start_matches([';', ' ', '\t']);
            at = text.len() - behind.strip_prefix('\n').unwrap_or(behind).len();
            parts.push(&text[start..at]);
            start = at;
        }
    }
    if start < text.len() {
        parts.push(&text[start..]);
    }
    (depth == 0).then_some(parts)
}

/// Returns the length of the character, comment or literal that a text begins with.
fn skip(text: &str, before: Option<char>, is_rust: bool) -> Option<usize> {
    static RAW: LazyLock<Regex> = LazyLock::new(|| regex(r#"^b?r(#*)""#));
    static CHAR: LazyLock<Regex> =
        LazyLock::new(|| regex(r"^'(?:\\(?:u\{[^}]*\}|x..|.)|[^\\'\n])'"));
    let until = |from: usize, end: &str| Some(from + text.get(from..)?.find(end)? + end.len());
    let is_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let first = text.chars().next()?;
    match first {
        '/' if text.starts_with("//") => Some(text.find('\n').unwrap_or(text.len())),
        '/' if text.starts_with("/*") => comment(text),
        '"' if !is_rust && text.starts_with("\"\"\"") => until(3, "\"\"\""),
        '"' => quoted(text, '"'),
        '\'' if !is_rust => quoted(text, '\''),
        '\'' => Some(CHAR.find(text).map_or(1, |found| found.end())),
        'b' | 'r' if is_rust && !is_word => match RAW.captures(text) {
            Some(raw) => until(raw[0].len(), &format!("\"{}", &raw[1])),
            None => Some(1),
        },
        other => Some(other.len_utf8()),
    }
}

/// Returns the length of a comment, which may hold others.
fn comment(text: &str) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        let next = text[at..].find(['/', '*'])? + at;
        match text.as_bytes().get(next..next + 2)? {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at = next + 1;
                continue;
            }
        }
        at = next + 2;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// Returns the length of a text in quotes, with escapes.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            _ if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}
