//! The parts of the gate that a query names: files by path or name, and tests by name. Pure.

use std::sync::LazyLock;

use regex::Regex;

use crate::run::past::warnings::{Concern, signed_lines};
use crate::sys::diff::{Comparison, LineChange};
use crate::sys::text::{around_word, regex};

/// Number of lines from the start of a test in which its name is searched for.
const NEAR: usize = 6;

/// The name of a test, from its start.
static NAME: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"(?:\b(?:fn|def|func|fun|function|void|Task|public|internal)\s+(?:\([^)]*\)\s*)?(?:`([^`\n]+)`|(\w+))\s*[(<:]|\bTEST\w*\s*\(\s*(?:\w+\s*,\s*)?(\w+)|["'`]([^"'`\n]+)["'`]|^\s*(\w+)\s*\(\))"#,
    )
});

/// Returns whether the query names the file at `path`, by its path, the end of its path, or its name.
pub fn names_file(query: &str, path: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "_-./".contains(c);
    query.split(|c: char| !is_part(c)).any(|word| {
        let word = word.trim_start_matches("./").trim_end_matches(['.', '/']);
        // A name without an extension may be any word.
        let is_end = || path.ends_with(&format!("/{word}")) && word.contains('.');
        !word.is_empty() && (path == word && word.contains(['.', '/']) || is_end())
    })
}

/// Returns whether the query names a test. A name that is an ordinary word counts only in quotes.
pub fn names_test(query: &str, name: &str) -> bool {
    let is_quote = |c: char| "`'\"“”«»".contains(c);
    let is_plain = name.chars().all(|c| c.is_lowercase() || c.is_ascii_digit());
    let counts = |(before, after): (&str, &str)| {
        !is_plain || before.ends_with(is_quote) && after.starts_with(is_quote)
    };
    !name.is_empty() && around_word(query, name).any(counts)
}

/// Returns whether the query names a lint that this comment or attribute silences.
pub fn names_lint(query: &str, silencer: &str) -> bool {
    let mut words = silencer.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
    let is_name = |word: &str| word.contains(|c: char| c.is_ascii_digit() || "_-".contains(c));
    words.any(|word| is_name(word) && names_test(query, word))
}

/// Returns the tests in a text: the line of each, counted from 0, and its name.
fn tests(path: &str, text: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let starts = signed_lines(path, text.as_bytes(), Concern::Test)
        .into_iter()
        .map(|line| line - 1);
    let named = starts.filter_map(|start| {
        let rest = lines.get(start..)?;
        let near = rest[..rest.len().min(NEAR)].join("\n");
        let name = NAME.captures(&near)?.iter().skip(1).flatten().next()?;
        Some((start, name.as_str().to_owned()))
    });
    named.collect()
}

/// Returns the tests in these texts that the query names.
pub fn named_tests<'t>(
    query: &str,
    path: &str,
    texts: impl IntoIterator<Item = &'t String>,
) -> Vec<String> {
    let all = texts.into_iter().flat_map(|text| tests(path, text));
    let mut names: Vec<String> = all.map(|(_, name)| name).collect();
    names.sort();
    names.dedup();
    names.retain(|name| names_test(query, name));
    names
}

/// Returns the old text, in which the tests that the query names are the new ones; `None` if it names none.
pub fn without_unnamed(query: &str, path: &str, old: &String, new: &String) -> Option<String> {
    if named_tests(query, path, [old, new]).is_empty() {
        return None;
    }
    let compared = Comparison::of(old.as_bytes(), new.as_bytes())?;
    let sides = [tests(path, old), tests(path, new)];
    let is_named = |change: &LineChange| {
        let ranges = [&change.before, &change.after];
        let is_decorator = is_decorator(&compared, change);
        let touched = sides.iter().zip(ranges).flat_map(|(tests, range)| {
            let start = range.start + usize::from(!range.is_empty());
            let at = tests.partition_point(|(line, _)| *line < start);
            let end = tests.partition_point(|(line, _)| *line < range.end).max(at);
            // Attributes precede a test, and are not part of the one above.
            if is_decorator {
                &tests[at..end.max(at + 1).min(tests.len())]
            } else {
                &tests[at.saturating_sub(1)..end]
            }
        });
        let mut touched = touched.peekable();
        touched.peek().is_some() && touched.all(|(_, name)| names_test(query, name))
    };
    let (mut merged, mut at) = (Vec::new(), 0);
    for change in &compared.changes {
        merged.extend_from_slice(&compared.before[at..change.before.start]);
        merged.extend_from_slice(if is_named(change) {
            &compared.after[change.after.clone()]
        } else {
            &compared.before[change.before.clone()]
        });
        at = change.before.end;
    }
    merged.extend_from_slice(&compared.before[at..]);
    String::from_utf8(merged.concat()).ok()
}

/// Returns whether all changed lines are attributes above a test.
pub fn is_decorator(compared: &Comparison<'_>, change: &LineChange) -> bool {
    let mut lines = compared.before[change.before.clone()]
        .iter()
        .chain(&compared.after[change.after.clone()])
        .map(|line| line.trim_ascii_start());
    lines.all(|line| match line {
        [b'@', ..] | [b'#', b'[', ..] | [b'#', b'!', b'[', ..] => true,
        // Not a shell command.
        [b'[', next, ..] => next.is_ascii_alphabetic(),
        _ => false,
    })
}
