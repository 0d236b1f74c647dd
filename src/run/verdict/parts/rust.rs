//! The items of a Rust file. The gate consists of items under `#[cfg(test)]` or `#[test]`, which are compiled only for
//! tests, and of the lint levels at the top of the file. Items that may contain other parts for tests are unclear.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::run::verdict::table::Halves;
use crate::sys::text::{line_end, regex};

/// The place of the file's own attributes; tests can be appended to the file.
pub const TOP: &str = "top";

/// The attributes of tests, and of items compiled only for tests.
static TEST: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^(?:\s|#\[[^\]]*\])*#\[\s*(?:cfg\(\s*(?:all\(\s*(?:(?:[^(),]+|\w+\([^()]*\))\s*,\s*)*)?test\s*[,)]|(?:\w+\s*::\s*)*(?:test|rstest|test_case|quickcheck|wasm_bindgen_test)\s*[\](])",
    )
});
/// Anything else that may be a test, or is compiled differently for tests.
static MAYBE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?:#!?\[[^\]]*|\bcfg!\([^)]*)\b(?:test|rstest|test_case|quickcheck|\w+_test)\b|\b(?:proptest|quickcheck)!",
    )
});
/// The kind and the name of an item.
static NAME: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^(?:\s|#\[[^\]]*\]|pub(?:\([^)]*\))?\s|(?:async|unsafe|const|extern)\s)*((?:fn|mod|struct|enum|trait|static|const|type)\s+\w+)",
    )
});
static LINTS: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^#!\[\s*(?:cfg_attr\([^,]*,\s*)?(deny|forbid|warn|allow|expect)\b"));
/// Text in which brackets do not count: comments, strings, characters, and the start of block comments and raw strings.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"(?s)//[^\n]*|/\*|\bb?r(#*)"|b?"(?:\\.|[^"\\])*"|'(?:\\(?:u\{[^}]*\}|x..|.)|[^\\'\n])'|[{}()\[\];]"#,
    )
});

/// Splits a file into the items of the gate, each with its place, the rest, and those items of the rest that may
/// contain tests; `None` if its brackets are not balanced, or the whole file may be a test.
pub fn halves(text: &str) -> Option<Halves> {
    // Ensures that appended text does not become part of a comment.
    let text = format!("{text}{}", line_end(text));
    let mut halves = Halves::default();
    let (items, code) = items(&text)?;
    for range in items {
        let (text, code) = (&text[range.clone()], &code[range]);
        let at = start(text, code);
        let (above, item) = text.split_at(at);
        halves.rest.push_str(above);
        if let Some(found) = LINTS.captures(item) {
            // New silencers are removed, as in any code.
            if matches!(&found[1], "allow" | "expect") {
                halves.rest.push_str(item);
            } else {
                halves.gate.push((TOP.to_owned(), item.to_owned()));
            }
        } else if TEST.is_match(&code[at..]) {
            halves.gate.push((String::new(), item.to_owned()));
        } else {
            halves.rest.push_str(item);
            if MAYBE.is_match(&code[at..]) {
                halves.unclear.push(item.to_owned());
                // The whole file may be a test.
                if code[at..].starts_with("#![cfg(") {
                    return None;
                }
            }
        }
    }
    Some(halves)
}

/// Returns the named items of a file: the range, kind and name of each; `None` if brackets are not balanced.
pub fn named(text: &str) -> Option<Vec<(Range<usize>, String)>> {
    let (items, code) = items(text)?;
    let named = items.into_iter().filter_map(|range| {
        let at = range.start + start(&text[range.clone()], &code[range.clone()]);
        let name = NAME.captures(&code[at..range.end])?;
        Some((at..range.end, name[1].to_owned()))
    });
    Some(named.collect())
}

/// Returns the start of an item, after comments on the file.
fn start(text: &str, code: &str) -> usize {
    let comments = code.len() - code.trim_start().len();
    if code[comments..].starts_with("#!") {
        return comments;
    }
    let inner = text[..comments].rfind("//!");
    inner.map_or(0, |at| at + text[at..].find('\n').map_or(0, |end| end + 1))
}

/// Splits a file after each block in braces, and each statement or attribute of the file, outside of brackets. Also
/// returns the text with comments and literals blanked out.
fn items(text: &str) -> Option<(Vec<Range<usize>>, String)> {
    let (mut items, mut start, mut at) = (Vec::new(), 0, 0);
    let (mut depth, mut is_inner) = (0_usize, false);
    let mut code = String::new();
    while let Some(token) = TOKEN.captures_at(text, at) {
        let found = token.get(0)?;
        at = found.end();
        let mut ends = false;
        code.push_str(&text[code.len()..found.start()]);
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
        // Brackets are the single-byte tokens.
        match found.as_str() {
            bracket if bracket.len() == 1 => code.push_str(bracket),
            _ => code.push_str(&" ".repeat(at - found.start())),
        }
        if ends {
            is_inner = false;
            let behind = text[at..].trim_start_matches([';', ' ', '\t']);
            at = text.len() - behind.strip_prefix('\n').unwrap_or(behind).len();
            items.push(start..at);
            start = at;
        }
    }
    code.push_str(&text[code.len()..]);
    items.push(start..text.len());
    (depth == 0).then_some((items, code))
}

/// Returns the end of a comment, which may contain others.
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
