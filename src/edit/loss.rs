//! Silent losses in a file's new text: code replaced by a placeholder comment, or most of the file dropped. Pure.

use std::collections::{HashMap, HashSet};

use super::comments::{BLOCKS, Language, LineKind};
use crate::sys::diff::{self, Line, LineKind as Change};
use crate::sys::text::around_word;

/// Minimum net number of code lines removed for a comment to count as their replacement.
const LOST: usize = 5;

/// Files of up to this many lines may shrink by any amount.
const SMALL: usize = 40;

/// Brackets that mark a comment as a placeholder if they enclose its whole text.
const BRACKETS: [(char, char); 5] = [
    ('[', ']'),
    ('(', ')'),
    ('<', '>'),
    ('（', '）'),
    ('【', '】'),
];

/// Code that was replaced by a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elision {
    /// The comment's line in the new text, starting at 1.
    pub line: usize,
    /// The number of code lines removed, less those added.
    pub lost: usize,
    /// True if the comment is marked as a placeholder; otherwise it may be about something else.
    pub is_explicit: bool,
}

/// Finds the code in the file at `path` that was replaced by comments. Each unbroken run of changed lines is examined
/// on its own.
pub fn elisions(path: &str, old: &str, new: &str) -> Vec<Elision> {
    let language = Language::of(path);
    let hunks = diff::hunks(old.as_bytes(), new.as_bytes()).unwrap_or_default();
    if hunks.is_empty() {
        return Vec::new();
    }
    let (before, after) = (language.lines(old), language.lines(new));
    let runs = hunks.iter().flat_map(|hunk| {
        let is_changed = |line: &Line<'_>| line.kind != Change::Context || says_nothing(line.text);
        hunk.lines
            .chunk_by(move |one, next| is_changed(one) && is_changed(next))
    });
    let elisions = runs.filter_map(|run| {
        let removed = numbered(run, Change::Removed, &before);
        let added = numbered(run, Change::Added, &after);
        elision(language, &removed, &added)
    });
    elisions.collect()
}

/// A line with its number and kind.
type Numbered<'t> = (usize, &'t str, LineKind);

/// Returns the removed or added lines of a run of changed lines; `kinds` are the kinds of all lines of the old or new
/// text.
fn numbered<'t>(run: &[Line<'t>], change: Change, kinds: &[LineKind]) -> Vec<Numbered<'t>> {
    let lines = run.iter().filter(|line| line.kind == change);
    let numbered = lines.filter_map(|line| {
        let number = line.before_line.or(line.after_line)?;
        let text = std::str::from_utf8(line.text).ok()?;
        Some((number, text, *kinds.get(number - 1)?))
    });
    numbered.collect()
}

/// Returns whether a line is blank or consists only of brackets: a diff finds such lines in common anywhere.
fn says_nothing(line: &[u8]) -> bool {
    !line
        .iter()
        .any(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii())
}

fn elision<'t>(
    language: Language,
    removed: &[Numbered<'t>],
    added: &[Numbered<'t>],
) -> Option<Elision> {
    let is_code = |line: &&Numbered<'_>| line.2 == LineKind::Code;
    let code = |lines: &[Numbered<'_>]| lines.iter().filter(is_code).count();
    let lost = code(removed)
        .checked_sub(code(added))
        .filter(|lost| *lost >= LOST)?;
    // Commented-out code, or a comment that moves with its code, is not a placeholder.
    let had: HashSet<&str> = removed.iter().map(|(_, line, _)| bare(line)).collect();
    let are_one = |one: &Numbered<'_>, next: &Numbered<'_>| {
        one.0 + 1 == next.0 && [one.2, next.2] == [LineKind::Comment; 2]
    };
    let text = |(number, line, kind): &Numbered<'t>| {
        let text = bare(language.comment(line, *kind)?);
        (!text.is_empty() && !had.contains(text)).then_some((*number, text))
    };
    let comments: Vec<Vec<(usize, &str)>> = added
        .chunk_by(are_one)
        .map(|lines| lines.iter().filter_map(text).collect())
        .collect();
    let named = comments.iter().find_map(|lines| stands_for_code(lines));
    let lines: Vec<usize> = comments.iter().flatten().map(|(line, _)| *line).collect();
    let is_bare = lines.len() <= 2 && code(added) == 0;
    Some(Elision {
        line: named.or(lines.first().copied().filter(|_| is_bare))?,
        lost,
        is_explicit: named.is_some(),
    })
}

/// Returns the line on which a comment, given by its lines, is marked as a placeholder.
fn stands_for_code(comment: &[(usize, &str)]) -> Option<usize> {
    let is_cut = |text: &str| {
        ["...", "…", "。。。", "⋯"]
            .iter()
            .any(|sign| text.contains(sign))
    };
    let cut = comment.iter().find(|(_, text)| is_cut(text));
    let whole: Vec<&str> = comment.iter().map(|(_, text)| *text).collect();
    let first = comment.first().filter(|_| is_in_brackets(&whole.join(" ")));
    cut.or(first).map(|(line, _)| *line)
}

/// Returns the text of a comment without its markers.
fn bare(comment: &str) -> &str {
    let text = BLOCKS.iter().fold(comment.trim(), |text, (start, end)| {
        text.trim_start_matches(start).trim_end_matches(end)
    });
    text.trim_matches(|c: char| c.is_whitespace() || "/*#-;%=!{}|'".contains(c))
}

fn is_in_brackets(text: &str) -> bool {
    let mut brackets = BRACKETS.iter();
    text.contains(char::is_alphabetic)
        && brackets.any(|(open, close)| text.starts_with(*open) && text.ends_with(*close))
}

/// Returns the line counts before and after if a file of more than 40 lines shrinks to a third or less.
pub fn shrinkage(old: &str, new: &str) -> Option<(usize, usize)> {
    let (before, after) = (old.lines().count(), new.lines().count());
    (before > SMALL && after * 3 <= before).then_some((before, after))
}

/// Returns whether at least half of the lines missing from `new` are found in other texts.
pub fn is_moved<'t>(old: &'t str, new: &'t str, others: impl Iterator<Item = &'t str>) -> bool {
    let mut missing: HashMap<&str, usize> = HashMap::new();
    for line in lines(old) {
        *missing.entry(line).or_default() += 1;
    }
    for line in lines(new) {
        missing
            .entry(line)
            .and_modify(|count| *count = count.saturating_sub(1));
    }
    let others: HashSet<&str> = others.flat_map(lines).collect();
    let moved = missing.iter().filter(|(line, _)| others.contains(*line));
    moved.map(|(_, count)| count).sum::<usize>() * 2 >= missing.values().sum()
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

/// Returns whether a text mentions the file at `path`, by its path or name, as a word.
pub fn names(text: &str, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    around_word(text, name).next().is_some()
}

#[cfg(test)]
mod tests;
