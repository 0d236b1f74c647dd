//! Compares two texts line by line, as git does. Pure.
//!
//! Uses Myers' algorithm with git's limits for hard cases, and git's indent heuristic to place ambiguous changes; the
//! crate `gix-imara-diff` implements both. It takes about five microseconds per line in the worst case.

use std::ops::Range;

use gix_imara_diff::sources::byte_lines;
use gix_imara_diff::{Algorithm, Diff, InternedInput};
use memchr::{memchr, memchr_iter};

use super::change::{MAX_BYTES, MAX_LINES, MAX_SEARCHED};

/// Two texts and the changes that turn one into the other.
#[derive(Debug)]
pub struct Comparison<'a> {
    /// Lines of the old text, with their newlines.
    pub before: Vec<&'a [u8]>,
    /// Lines of the new text, with their newlines.
    pub after: Vec<&'a [u8]>,
    /// Changes from first to last; any two are separated by at least one common line.
    pub changes: Vec<LineChange>,
}

/// Lines of the old text and the lines that replace them. One of the ranges may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineChange {
    /// Removed lines, counted from 0.
    pub before: Range<usize>,
    /// Added lines, counted from 0.
    pub after: Range<usize>,
}

impl<'a> Comparison<'a> {
    /// Counts the removed and added lines; all lines of texts that are too large to be compared. Returns `None` if one
    /// is binary.
    pub fn counts(before: &'a [u8], after: &'a [u8]) -> Option<(u64, u64)> {
        let is_large = |text| !is_comparable(text);
        if before.is_empty() || after.is_empty() || is_large(before) || is_large(after) {
            let count = |text| is_text(text).then(|| byte_lines(text).count() as u64);
            return Some((count(before)?, count(after)?))
                .filter(|_| before.is_empty() || before != after);
        }
        let changes = Self::of(before, after)?.changes;
        let total = |side: fn(&LineChange) -> &Range<usize>| {
            changes.iter().map(|at| side(at).len() as u64).sum()
        };
        Some((total(|at| &at.before), total(|at| &at.after)))
    }

    /// Compares two texts. Returns `None` if either is binary or too large.
    pub fn of(before: &'a [u8], after: &'a [u8]) -> Option<Self> {
        if !is_comparable(before) || !is_comparable(after) {
            return None;
        }
        let input = InternedInput::new(byte_lines(before), byte_lines(after));
        Some(Self {
            before: byte_lines(before).collect(),
            after: byte_lines(after).collect(),
            changes: changes(&input),
        })
    }
}

/// Returns whether a file is text by git's rule.
pub fn is_text(text: &[u8]) -> bool {
    memchr(0, &text[..text.len().min(8000)]).is_none()
}

/// Returns whether a file is text within the size limits.
fn is_comparable(text: &[u8]) -> bool {
    text.len() <= MAX_BYTES && is_text(text) && memchr_iter(b'\n', text).count() < MAX_LINES
}

fn changes(input: &InternedInput<&[u8]>) -> Vec<LineChange> {
    let (before, after) = (&input.before, &input.after);
    let prefix = common(before.iter().zip(after));
    let (rest_before, rest_after) = (&before[prefix..], &after[prefix..]);
    let suffix = common(rest_before.iter().rev().zip(rest_after.iter().rev()));
    let replaced = LineChange {
        before: prefix..before.len() - suffix,
        after: prefix..after.len() - suffix,
    };
    if replaced.before.len().min(replaced.after.len()) > MAX_SEARCHED {
        return vec![replaced];
    }
    let mut diff = Diff::compute(Algorithm::Myers, input);
    diff.postprocess_lines(input);
    let range = |range: Range<u32>| range.start as usize..range.end as usize;
    let changes = diff.hunks().map(|hunk| LineChange {
        before: range(hunk.before),
        after: range(hunk.after),
    });
    changes.collect()
}

/// Returns the number of leading pairs whose elements are equal.
fn common<T: PartialEq>(pairs: impl Iterator<Item = (T, T)>) -> usize {
    pairs.take_while(|(one, other)| one == other).count()
}
