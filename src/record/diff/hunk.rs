//! Hunks: the changed lines of a file with some lines around them. Pure.

use std::ops::Range;

use super::compare::{Change, Comparison};

/// How many common lines are shown around a change.
const CONTEXT: usize = 3;

/// Changes of a file that are near each other, with the lines around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk<'a> {
    /// The number of its first line in the file before, from 1 on. Where it has no lines there, the
    /// number of the line in front of it, or 0.
    pub before_start: usize,
    /// The same of the file after.
    pub after_start: usize,
    /// The nearest line above, in the file before, that begins with a letter, `_` or `$`: mostly the
    /// function's or the section's. As in git, its first 80 bytes.
    pub heading: Option<&'a [u8]>,
    /// Its lines, as git shows them: what is removed in front of what is added.
    pub lines: Vec<Line<'a>>,
}

/// A line of a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// What became of it.
    pub kind: Kind,
    /// Its bytes, without the newline. A carriage return in front of that is one of them.
    pub text: &'a [u8],
    /// Whether it ends with a newline, as all but a file's last line do.
    pub newline: bool,
    /// Its number in the file before, from 1 on, if it is there.
    pub before_line: Option<usize>,
    /// Its number in the file after, from 1 on, if it is there.
    pub after_line: Option<usize>,
}

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It is in both files.
    Context,
    /// It is in the file before only.
    Removed,
    /// It is in the file after only.
    Added,
}

impl Hunk<'_> {
    /// How many lines it has in the file before.
    #[must_use]
    pub fn before_count(&self) -> usize {
        self.count(Kind::Added)
    }

    /// How many lines it has in the file after.
    #[must_use]
    pub fn after_count(&self) -> usize {
        self.count(Kind::Removed)
    }

    fn count(&self, except: Kind) -> usize {
        let lines = self.lines.iter();
        lines.filter(|line| line.kind != except).count()
    }
}

/// What changed between two texts, with three lines of context. `None` where one of them is binary
/// or too large to compare; nothing where they are equal.
#[must_use]
pub fn hunks<'a>(before: &'a [u8], after: &'a [u8]) -> Option<Vec<Hunk<'a>>> {
    let comparison = Comparison::of(before, after)?;
    let mut hunks = Vec::new();
    let mut near: Vec<Change> = Vec::new();
    let mut headings = Headings::default();
    for change in comparison.changes() {
        let is_far = near
            .last()
            .is_some_and(|last| change.before.start - last.before.end > 2 * CONTEXT);
        if is_far {
            hunks.push(hunk(&comparison, &near, &mut headings));
            near.clear();
        }
        near.push(change);
    }
    if !near.is_empty() {
        hunks.push(hunk(&comparison, &near, &mut headings));
    }
    Some(hunks)
}

/// Makes a hunk of changes that are near each other: of one at least.
fn hunk<'a>(comparison: &Comparison<'a>, near: &[Change], headings: &mut Headings<'a>) -> Hunk<'a> {
    let (before, after) = (&comparison.before, &comparison.after);
    let (first, last) = (&near[0], &near[near.len() - 1]);
    let lead = first.before.start.min(CONTEXT);
    let tail = (before.len() - last.before.end).min(CONTEXT);
    let start = (first.before.start - lead, first.after.start - lead);
    let mut at = start;
    let mut lines = Vec::new();
    for change in near {
        push_context(&mut lines, before, &mut at, change.before.start);
        push_changed(&mut lines, before, Kind::Removed, change.before.clone());
        push_changed(&mut lines, after, Kind::Added, change.after.clone());
        at = (change.before.end, change.after.end);
    }
    push_context(&mut lines, before, &mut at, last.before.end + tail);
    Hunk {
        before_start: number(start.0, at.0),
        after_start: number(start.1, at.1),
        heading: headings.above(before, start.0),
        lines,
    }
}

/// The number of the first of these lines, or where there is none, of the one in front.
fn number(start: usize, end: usize) -> usize {
    if start == end { start } else { start + 1 }
}

/// Adds the common lines from `at` on up to the line `end` of the file before.
fn push_context<'a>(
    to: &mut Vec<Line<'a>>,
    before: &[&'a [u8]],
    at: &mut (usize, usize),
    end: usize,
) {
    while at.0 < end {
        let line = line(before[at.0], Kind::Context);
        to.push(Line {
            before_line: Some(at.0 + 1),
            after_line: Some(at.1 + 1),
            ..line
        });
        *at = (at.0 + 1, at.1 + 1);
    }
}

fn push_changed<'a>(to: &mut Vec<Line<'a>>, of: &[&'a [u8]], kind: Kind, range: Range<usize>) {
    for index in range {
        let number = Some(index + 1);
        let line = line(of[index], kind);
        to.push(match kind {
            Kind::Added => Line {
                after_line: number,
                ..line
            },
            Kind::Removed | Kind::Context => Line {
                before_line: number,
                ..line
            },
        });
    }
}

fn line(bytes: &[u8], kind: Kind) -> Line<'_> {
    let text = bytes.strip_suffix(b"\n");
    Line {
        kind,
        text: text.unwrap_or(bytes),
        newline: text.is_some(),
        before_line: None,
        after_line: None,
    }
}

/// Finds headings, hunk by hunk: no line is looked at twice.
#[derive(Debug, Default)]
struct Headings<'a> {
    last: Option<&'a [u8]>,
    looked_at: usize,
}

impl<'a> Headings<'a> {
    fn above(&mut self, lines: &[&'a [u8]], start: usize) -> Option<&'a [u8]> {
        let found = lines[self.looked_at..start].iter().rev();
        let mut found = found.filter_map(|line| heading(line));
        self.last = found.next().or(self.last);
        self.looked_at = start;
        self.last
    }
}

fn heading(line: &[u8]) -> Option<&[u8]> {
    let begins = line
        .first()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$'));
    let mut shown = &line[..line.len().min(80)];
    while let [rest @ .., b' ' | b'\t' | b'\r' | b'\n'] = shown {
        shown = rest;
    }
    begins.then_some(shown)
}
