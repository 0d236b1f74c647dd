//! The files that a repair shows, in their current state, and the lines shown of them. Pure.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::model::prompt::Replacement;
use crate::project::excerpts::ranges;
use crate::sys::diff::{Comparison, hunks};

/// Files of up to this many lines are shown as a whole.
const SMALL: usize = 200;
/// Number of lines shown around a changed region.
const NEIGHBOURS: usize = 30;

/// Ranges of a file's lines, counted from 0.
pub type Lines = Vec<Range<usize>>;

/// A file that a run or its build has changed, in its current state.
#[derive(Debug, Clone, PartialEq)]
pub struct PresentFile {
    pub path: String,
    /// The file's text; `None` if it does not exist.
    pub now: Option<String>,
    /// The lines that a repair shows; `None`: all.
    pub lines: Option<Lines>,
}

impl PresentFile {
    /// Describes the file at `path` with this text, which replaced the text `before` if there was one.
    pub fn of(path: String, before: Option<&str>, now: Option<String>) -> Self {
        let lines = before
            .zip(now.as_deref())
            .and_then(|(before, now)| regions(before, now));
        Self { path, now, lines }
    }

    /// Returns the path and the replacement, for a repair's query.
    pub fn for_query(&self) -> (&str, Replacement<'_>) {
        let replacement = match (self.now.as_deref(), &self.lines) {
            (None, _) => Replacement::Removed,
            (Some(now), None) => Replacement::Written(now),
            (Some(now), Some(lines)) => Replacement::Regions(now, lines),
        };
        (&self.path, replacement)
    }
}

/// Returns the regions of a file that have changed, with surrounding lines; `None` if the file is small and shown as a
/// whole.
fn regions(before: &str, now: &str) -> Option<Lines> {
    let count = now.lines().count();
    if count <= SMALL {
        return None;
    }
    let hunks = hunks(before.as_bytes(), now.as_bytes())?.into_iter();
    let around = hunks.flat_map(|hunk| {
        let end = hunk.after_start + hunk.after_count() + NEIGHBOURS;
        hunk.after_start.saturating_sub(NEIGHBOURS)..end.min(count)
    });
    Some(ranges(around.collect::<BTreeSet<usize>>()))
}

/// Returns the positions of these ranges of lines in a later state of their text, and those of the ranges that have
/// changed; `None` if the two cannot be compared.
pub fn moved(lines: &[Range<usize>], before: &str, now: &str) -> Option<(Lines, Lines)> {
    let comparison = Comparison::of(before.as_bytes(), now.as_bytes())?;
    let place = |line: usize| {
        let mut above = comparison.changes.iter().rev();
        let change = above.find(|change| change.before.start <= line);
        change.map_or(line, |change| {
            let inside = line - change.before.start;
            match inside.checked_sub(change.before.len()) {
                Some(below) => change.after.end + below,
                None => change.after.start + inside.min(change.after.len()),
            }
        })
    };
    let (mut all, mut changed) = (Vec::new(), Vec::new());
    for range in lines {
        let to = place(range.start)..place(range.end);
        if comparison.after.get(to.clone())? != comparison.before.get(range.clone())? {
            changed.push(to.clone());
        }
        all.push(to);
    }
    Some((all, changed))
}

#[cfg(test)]
#[expect(
    clippy::single_range_in_vec_init,
    reason = "one range of lines is what is expected"
)]
mod tests {
    use super::*;

    #[test]
    fn a_large_file_is_shown_by_the_regions_that_have_changed() {
        let mut lines: Vec<String> = (1..=900).map(|n| format!("line {n}\n")).collect();
        let before = lines.concat();
        lines[499] = "changed\n".to_owned();
        lines[880] = "changed, too\n".to_owned();
        let now = lines.concat();
        for (before, now, expected) in [
            (Some("x\n"), "y\n", None),
            (None, &*now, None),
            (Some(&*before), &*now, Some(vec![467..534, 848..900])),
        ] {
            let file = PresentFile::of("a.rs".to_owned(), before, Some(now.to_owned()));
            assert_eq!(file.lines, expected);
        }
    }

    #[test]
    fn lines_are_found_where_a_change_has_moved_them() {
        let before = "a\nb\nc\nd\ne\nf\n";
        for (now, all, changed) in [
            (before, [1..3, 4..6], vec![]),
            ("new\na\nb\nc\nd\ne\nf\n", [2..4, 5..7], vec![]),
            ("a\nd\ne\nf\n", [1..1, 2..4], vec![1..1]),
            ("a\nb\nnew\nc\nd\ne\nf\n", [1..4, 5..7], vec![1..4]),
            ("a\nB\nc\nd\ne\nF\n", [1..3, 4..6], vec![1..3, 4..6]),
            // If all lines differ, a range is at most as long as before.
            ("1\n2\n3\n4\n5\n", [1..3, 4..5], vec![1..3, 4..5]),
            ("", [0..0, 0..0], vec![0..0, 0..0]),
        ] {
            let moved = moved(&[1..3, 4..6], before, now).unwrap();
            assert_eq!(moved, (all.to_vec(), changed), "{now}");
        }
        assert_eq!(moved(&[3..9], "a\n", "b\n"), None);
    }
}
