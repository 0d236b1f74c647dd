//! Which lines two texts have in common. Pure.
//!
//! The search is Myers' with git's bound on hard cases, as the crate `similar` has it. It gets no
//! more lines than [`BUDGET`] pays for. What is beyond is first split at lines that are unique on
//! both sides; what is still too much counts as replaced.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::Range;

use memchr::{memchr, memchr_iter};
use similar::algorithms::{DiffHook, myers};

use super::slide::{self, slide};
use super::{MAX_BYTES, MAX_LINES};

/// Two texts, and what to do to make one of the other.
#[derive(Debug)]
pub struct Comparison<'a> {
    /// The lines, each with its newline.
    pub before: Vec<&'a [u8]>,
    /// The same of the other text.
    pub after: Vec<&'a [u8]>,
    /// How many lines are removed in front of each common line, and behind the last.
    pub removed: Vec<u32>,
    /// How many are added there.
    pub added: Vec<u32>,
}

/// Lines of either text that take the place of each other. One of the two may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Which lines are removed, from 0 on.
    pub before: Range<usize>,
    /// Which are added.
    pub after: Range<usize>,
}

impl<'a> Comparison<'a> {
    /// Compares two texts. `None` where one is binary or too large.
    pub fn of(before: &'a [u8], after: &'a [u8]) -> Option<Self> {
        if !is_comparable(before) || !is_comparable(after) {
            return None;
        }
        let (before, after) = (lines(before), lines(after));
        let Script { removed, added, .. } = common_lines(&before, &after);
        let mut found = Self {
            before,
            after,
            removed,
            added,
        };
        let mut patience = slide::PATIENCE;
        slide(
            &found.before,
            &mut found.removed,
            &found.added,
            &mut patience,
        );
        slide(
            &found.after,
            &mut found.added,
            &found.removed,
            &mut patience,
        );
        Some(found)
    }

    /// The places where the texts differ, first to last.
    pub fn changes(&self) -> impl Iterator<Item = Change> {
        let (mut before, mut after) = (0, 0);
        let sizes = self.removed.iter().zip(&self.added);
        sizes.filter_map(move |(&removed, &added)| {
            let change = Change {
                before: before..before + removed as usize,
                after: after..after + added as usize,
            };
            before = change.before.end + 1;
            after = change.after.end + 1;
            (removed + added > 0).then_some(change)
        })
    }
}

/// Whether a file is text, by git's rule, and of a size that is compared.
fn is_comparable(text: &[u8]) -> bool {
    let beginning = &text[..text.len().min(8000)];
    text.len() <= MAX_BYTES
        && memchr(0, beginning).is_none()
        && memchr_iter(b'\n', text).count() < MAX_LINES
}

/// How many lines a text has; `None` where it is binary or too large.
pub fn line_count(text: &[u8]) -> Option<u64> {
    let unended = !text.is_empty() && !text.ends_with(b"\n");
    let ended = memchr_iter(b'\n', text).count() as u64;
    is_comparable(text).then_some(ended + u64::from(unended))
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut from = 0;
    for end in memchr_iter(b'\n', text) {
        lines.push(&text[from..=end]);
        from = end + 1;
    }
    if from < text.len() {
        lines.push(&text[from..]);
    }
    lines
}

/// What the searches in one file may cost: about a third of a second at worst.
const BUDGET: u64 = 100_000 * COST_OF_LINE;

/// What a line costs in a hard case, in comparisons of two lines: measured.
const COST_OF_LINE: u64 = 1000;

/// How often a range is split at unique lines before it counts as replaced. Each split finds lines
/// that are unique among fewer, but the ranges may hardly shrink.
const SPLITS: usize = 8;

fn common_lines(before: &[&[u8]], after: &[&[u8]]) -> Script {
    let prefix = common_prefix(before, after);
    let (before, after) = (&before[prefix..], &after[prefix..]);
    let suffix = common_suffix(before, after);
    let mut script = Script::default();
    script.equal(0, 0, prefix);
    let (from, to) = (before.len() - suffix, after.len() - suffix);
    let mut search = Search::of(&before[..from], &after[..to], prefix, script);
    search.compare(0..from, 0..to, SPLITS);
    let mut script = search.script;
    script.equal(prefix + from, prefix + to, suffix);
    script.finish(prefix + before.len(), prefix + after.len());
    script
}

fn common_prefix<T: PartialEq>(before: &[T], after: &[T]) -> usize {
    let pairs = before.iter().zip(after);
    pairs.take_while(|(one, other)| one == other).count()
}

fn common_suffix<T: PartialEq>(before: &[T], after: &[T]) -> usize {
    let pairs = before.iter().rev().zip(after.iter().rev());
    pairs.take_while(|(one, other)| one == other).count()
}

/// Collects the common lines, first to last, as the numbers of lines between them.
#[derive(Debug, Default)]
struct Script {
    removed: Vec<u32>,
    added: Vec<u32>,
    /// Where the last common line ends.
    before: usize,
    after: usize,
}

impl Script {
    fn equal(&mut self, before: usize, after: usize, length: usize) {
        for nth in 0..length {
            self.finish(before + nth, after + nth);
            self.before += 1;
            self.after += 1;
        }
    }

    /// What lies in front of these two lines is not common.
    fn finish(&mut self, before: usize, after: usize) {
        for (from, to, sizes) in [
            (&mut self.before, before, &mut self.removed),
            (&mut self.after, after, &mut self.added),
        ] {
            // No text has more lines than `MAX_LINES`.
            sizes.push(u32::try_from(to - *from).unwrap_or(u32::MAX));
            *from = to;
        }
    }
}

/// The search for common lines. Equal lines have equal numbers.
struct Search {
    before: Vec<u32>,
    after: Vec<u32>,
    /// For every number, how often each side has it in the range that is looked at, and where the
    /// second has it. All zeros between two looks.
    seen: Vec<Seen>,
    /// Where the first of these lines is in the whole text.
    offset: usize,
    budget: u64,
    script: Script,
}

#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    before: u32,
    after: u32,
    place: usize,
}

/// The lines in a range that both sides have.
#[derive(Debug, Default)]
struct Shared {
    before: Vec<usize>,
    after: Vec<usize>,
    /// Those that each side has once, first to last on the first side.
    unique: Vec<(usize, usize)>,
}

impl Search {
    fn of<'a>(before: &[&'a [u8]], after: &[&'a [u8]], offset: usize, script: Script) -> Self {
        let mut numbers: HashMap<&'a [u8], u32> = HashMap::new();
        let mut next = 0;
        let mut number = |line: &&'a [u8]| {
            *numbers.entry(line).or_insert_with(|| {
                next += 1;
                next - 1
            })
        };
        let before: Vec<u32> = before.iter().map(&mut number).collect();
        let after: Vec<u32> = after.iter().map(&mut number).collect();
        Self {
            before,
            after,
            seen: vec![Seen::default(); numbers.len()],
            offset,
            budget: BUDGET,
            script,
        }
    }

    /// Finds what two ranges have in common; splits them at most `splits` times.
    fn compare(&mut self, before: Range<usize>, after: Range<usize>, splits: usize) {
        let (one, other) = (&self.before[before.clone()], &self.after[after.clone()]);
        let prefix = common_prefix(one, other);
        let suffix = common_suffix(&one[prefix..], &other[prefix..]);
        let inner = (
            before.start + prefix..before.end - suffix,
            after.start + prefix..after.end - suffix,
        );
        self.equal(before.start, after.start, prefix);
        self.compare_trimmed(inner.0, inner.1, splits);
        self.equal(before.end - suffix, after.end - suffix, suffix);
    }

    fn compare_trimmed(&mut self, before: Range<usize>, after: Range<usize>, splits: usize) {
        if before.is_empty() || after.is_empty() {
            return;
        }
        let shared = self.shared(before.clone(), after.clone());
        let cost = cost(shared.before.len(), shared.after.len());
        if cost <= self.budget {
            self.budget -= cost;
            self.search(&shared);
        } else if splits > 0 {
            self.split(&shared.unique, before, after, splits - 1);
        }
    }

    fn equal(&mut self, before: usize, after: usize, length: usize) {
        let offset = self.offset;
        self.script.equal(offset + before, offset + after, length);
    }

    fn shared(&mut self, before: Range<usize>, after: Range<usize>) -> Shared {
        for number in &self.before[before.clone()] {
            self.seen[*number as usize].before += 1;
        }
        for place in after.clone() {
            let seen = &mut self.seen[self.after[place] as usize];
            seen.after += 1;
            seen.place = place;
        }
        let mut shared = Shared::default();
        for place in before.clone() {
            let seen = self.seen[self.before[place] as usize];
            if seen.after > 0 {
                shared.before.push(place);
            }
            if (seen.before, seen.after) == (1, 1) {
                shared.unique.push((place, seen.place));
            }
        }
        let has = |place: &usize| self.seen[self.after[*place] as usize].before > 0;
        shared.after = after.clone().filter(has).collect();
        for number in self.before[before].iter().chain(&self.after[after]) {
            self.seen[*number as usize] = Seen::default();
        }
        shared
    }

    /// Compares the lines that both sides have.
    fn search(&mut self, shared: &Shared) {
        let number = |places: &[usize], side: &[u32]| -> Vec<u32> {
            places.iter().map(|place| side[*place]).collect()
        };
        let before = number(&shared.before, &self.before);
        let after = number(&shared.after, &self.after);
        let mut found = Found {
            search: self,
            shared,
        };
        let (to_before, to_after) = (before.len(), after.len());
        match myers::diff(&mut found, &before, 0..to_before, &after, 0..to_after) {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    /// Compares what lies between the lines that are unique on both sides.
    fn split(
        &mut self,
        unique: &[(usize, usize)],
        before: Range<usize>,
        after: Range<usize>,
        splits: usize,
    ) {
        let anchors = longest_rise(unique);
        // Without one, this range counts as replaced.
        if anchors.is_empty() {
            return;
        }
        let (mut from_before, mut from_after) = (before.start, after.start);
        for (to_before, to_after) in anchors {
            self.compare(from_before..to_before, from_after..to_after, splits);
            self.equal(to_before, to_after, 1);
            (from_before, from_after) = (to_before + 1, to_after + 1);
        }
        self.compare(from_before..before.end, from_after..after.end, splits);
    }
}

/// What a search in so many lines costs at worst.
fn cost(before: usize, after: usize) -> u64 {
    let (before, after) = (before as u64, after as u64);
    (before * after).min((before + after) * COST_OF_LINE)
}

/// Takes what a search finds.
struct Found<'a> {
    search: &'a mut Search,
    shared: &'a Shared,
}

impl DiffHook for Found<'_> {
    type Error = Infallible;

    fn equal(&mut self, before: usize, after: usize, length: usize) -> Result<(), Infallible> {
        for nth in 0..length {
            let (before, after) = (
                self.shared.before[before + nth],
                self.shared.after[after + nth],
            );
            self.search.equal(before, after, 1);
        }
        Ok(())
    }
}

/// The longest run of pairs, in order, whose second halves rise as the first do.
fn longest_rise(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For every length, the pair with the least second half that ends a run of it.
    let mut ends: Vec<usize> = Vec::new();
    let mut previous: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (index, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < pair.1);
        previous.push(length.checked_sub(1).map(|before| ends[before]));
        if length == ends.len() {
            ends.push(index);
        } else {
            ends[length] = index;
        }
    }
    let last = ends.last().copied();
    let mut rise: Vec<(usize, usize)> = std::iter::successors(last, |index| previous[*index])
        .map(|index| pairs[index])
        .collect();
    rise.reverse();
    rise
}
