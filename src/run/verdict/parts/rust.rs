//! The items of a Rust file: what is compiled for tests alone stands under `#[cfg(test)]` or `#[test]`, and the levels
//! of lints at the top of the file.

use std::sync::LazyLock;

use regex::Regex;

use crate::sys::text::{line_end, regex};

/// The place of attributes on the file; tests may stand at its end.
pub const TOP: &str = "top";

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
/// What brackets do not count in: comments, texts and characters; a longer comment or raw text begins here.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"(?s)//[^\n]*|/\*|\bb?r(#*)"|b?"(?:\\.|[^"\\])*"|'(?:\\(?:u\{[^}]*\}|x..|.)|[^\\'\n])'|[{}()\[\];]"#,
    )
});

/// Tells the items of a file apart: those of the gate, each with its place, and the rest; `None` if its brackets are not
/// balanced.
pub fn halves(text: &str) -> Option<(Vec<(String, String)>, String)> {
    // Nothing that is put behind it becomes part of a comment.
    let text = format!("{text}{}", line_end(text));
    let (mut gate, mut rest) = (Vec::new(), String::new());
    for text in items(&text)? {
        let comments = COMMENTS.find(text).map_or(0, |found| found.end());
        let is_inner = text[comments..].starts_with("#!");
        // Comments on the file, not on the item.
        let inner = text[..comments].rfind("//!");
        let inner = inner.map_or(0, |at| at + text[at..].find('\n').map_or(0, |end| end + 1));
        let (above, item) = text.split_at(if is_inner { comments } else { inner });
        rest.push_str(above);
        match item {
            _ if LINTS.is_match(item) => gate.push((TOP.to_owned(), item.to_owned())),
            _ if TEST.is_match(item) => gate.push((String::new(), item.to_owned())),
            _ => rest.push_str(item),
        }
    }
    Some((gate, rest))
}

/// Splits a file behind each block in braces, and each statement or attribute of the file, outside of brackets.
fn items(text: &str) -> Option<Vec<&str>> {
    let (mut items, mut start, mut at) = (Vec::new(), 0, 0);
    let (mut depth, mut is_inner) = (0_usize, false);
    while let Some(token) = TOKEN.captures_at(text, at) {
        let found = token.get(0)?;
        at = found.end();
        let mut ends = false;
        match found.as_str() {
            "/*" => at = comment_end(text, at)?,
            "{" | "(" | "[" => {
                is_inner |= depth == 0 && text[..found.start()].ends_with("#!");
                depth += 1;
            }
            closing @ ("}" | ")" | "]") => {
                depth = depth.checked_sub(1)?;
                ends = depth == 0 && (closing == "}" || is_inner);
            }
            ";" => ends = depth == 0,
            _ => {
                if let Some(hashes) = token.get(1) {
                    let end = format!("\"{}", hashes.as_str());
                    at += text[at..].find(&end)? + end.len();
                }
            }
        }
        if ends {
            is_inner = false;
            let behind = text[at..].trim_start_matches([';', ' ', '\t']);
            at = text.len() - behind.strip_prefix('\n').unwrap_or(behind).len();
            items.push(&text[start..at]);
            start = at;
        }
    }
    items.push(&text[start..]);
    (depth == 0).then_some(items)
}

/// The end of a comment, which may hold others.
fn comment_end(text: &str, mut at: usize) -> Option<usize> {
    let mut depth = 1_usize;
    while depth > 0 {
        let (open, close) = (text[at..].find("/*"), text[at..].find("*/")?);
        let is_open = open.is_some_and(|open| open < close);
        depth = if is_open { depth + 1 } else { depth - 1 };
        at += open.filter(|_| is_open).unwrap_or(close) + 2;
    }
    Some(at)
}
