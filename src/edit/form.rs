//! Detects new texts that use another edit format instead of the whole file. Pure.

use std::sync::LazyLock;

use memchr::memchr_iter;
use memchr::memmem::Finder;

/// An edit format other than the whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EditForm {
    /// Enclosed in code fences.
    #[error("the text stands between code fences")]
    Fenced,
    /// Conflict markers, or search-and-replace markers.
    #[error("a conflict or search/replace marker")]
    Marked,
    /// A diff or a patch.
    #[error("a diff")]
    Diff,
    /// Line numbers in front of the lines.
    #[error("the lines are numbered")]
    Numbered,
}

/// Extensions of files that may be enclosed in code fences.
const PROSE: [&str; 4] = ["md", "markdown", "mdx", "txt"];
/// Extensions of files whose lines may begin with numbers.
const DATA: [&str; 9] = [
    "csv", "dat", "log", "rst", "tab", "tsv", "txt", "yaml", "yml",
];
/// Extensions of diffs.
const DIFFS: [&str; 3] = ["diff", "patch", "rej"];

/// Minimum number of lines for a text to count as numbered.
const FEWEST_NUMBERED: usize = 3;

/// A detector of a format: returns the line that shows it, or `None` if the text is not in it.
type Shows = fn(&str) -> Option<usize>;

/// Returns the other edit format used in the new text of the file at `path`, with the line that shows it, starting at
/// 1. A format that the old text uses too belongs to the file.
pub fn foreign(path: &str, old: Option<&str>, new: &str) -> Option<(usize, EditForm)> {
    let end = path.rsplit(['/', '.']).next().unwrap_or_default();
    // Without an old text, only the extension tells whether the format belongs to the file.
    let is_free = |ends: &[&str]| old.is_none() && ends.contains(&end);
    let had = |form: Shows| old.and_then(form).is_some();
    let is_prose = is_free(&PROSE);
    let checks: [(EditForm, Shows, bool); 4] = [
        (EditForm::Fenced, fenced, is_prose),
        (EditForm::Marked, marked, false),
        (EditForm::Diff, diff, DIFFS.contains(&end)),
        (EditForm::Numbered, numbered, is_prose || is_free(&DATA)),
    ];
    checks.into_iter().find_map(|(form, shows, is_own)| {
        let line = shows(new).filter(|_| !is_own && !had(shows))?;
        Some((line, form))
    })
}

fn fenced(text: &str) -> Option<usize> {
    let is_fence = |line: &str| line.starts_with("```") || line.starts_with("~~~");
    let mut lines = text.trim().lines();
    let is_fenced = lines.next().is_some_and(is_fence) && lines.next_back().is_some_and(is_fence);
    is_fenced.then_some(1)
}

fn marked(text: &str) -> Option<usize> {
    /// Most texts contain none of these, so their lines need not be searched.
    static SIGNS: LazyLock<[Finder<'_>; 4]> =
        LazyLock::new(|| ["<<<<<<<", ">>>>>>>", "------- S", "+++++++ R"].map(Finder::new));
    if !SIGNS
        .iter()
        .any(|sign| sign.find(text.as_bytes()).is_some())
    {
        return None;
    }
    let is_mark = |line: &str| {
        let line = line.trim_end();
        ["<<<<<<< ", ">>>>>>> "]
            .iter()
            .any(|mark| line.starts_with(mark))
            || ["<<<<<<<", ">>>>>>>", "------- SEARCH", "+++++++ REPLACE"].contains(&line)
    };
    text.lines().position(is_mark).map(|at| at + 1)
}

fn diff(text: &str) -> Option<usize> {
    let (first, rest) = text.trim_start().split_once('\n')?;
    let is_diff = first.starts_with("diff --git ")
        || first.starts_with("*** Begin Patch")
        || first.starts_with("*** Update File: ")
        || first
            .strip_prefix("@@ ")
            .is_some_and(|rest| rest.contains("@@"))
        || first.starts_with("--- ") && rest.starts_with("+++ ");
    is_diff.then_some(1)
}

/// Returns line 1 if at least nine of ten non-blank lines are numbered in order.
fn numbered(text: &str) -> Option<usize> {
    let most = memchr_iter(b'\n', text.as_bytes()).count() + 1;
    let (mut count, mut in_order, mut last) = (0, 1, None);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let next = number(line);
        in_order += usize::from(next.is_some() && next == last.map(|last: u64| last + 1));
        (count, last) = (count + 1, next);
        // Most texts turn out not to be numbered within a few lines.
        if (count - in_order) * 10 > most {
            return None;
        }
    }
    (count >= FEWEST_NUMBERED && in_order * 10 >= count * 9).then_some(1)
}

/// Returns the line number at the beginning of a line, in the format of tools that print files.
fn number(line: &str) -> Option<u64> {
    let line = line.trim_start();
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_marked =
        rest.trim_start_matches(' ').starts_with(['|', ':', '→']) || rest.starts_with('\t');
    let digits = &line[..line.len() - rest.len()];
    let is_number = is_marked && !digits.starts_with('0');
    digits.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests;
