//! Hunks: the changed lines of a file with some context lines. Pure.

use super::compare::{Comparison, LineChange};

/// Number of context lines around a change.
const CONTEXT: usize = 3;

/// Nearby changes of a file, with the lines around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk<'a> {
    /// Number of its first line in the old file, counted from 1. If it has no lines there, the number of the line
    /// before it, or 0.
    pub before_start: usize,
    /// Number of its first line in the new file, by the same rule.
    pub after_start: usize,
    /// Nearest preceding line of the old file that begins with a letter, `_` or `$`, usually the start of a
    /// function or section. Truncated to 80 bytes, as in git.
    pub heading: Option<&'a [u8]>,
    /// Lines in git's order: removed lines before added ones.
    pub lines: Vec<Line<'a>>,
}

/// A line of a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// Kind of the line.
    pub kind: LineKind,
    /// Content without the newline, but including a carriage return before it.
    pub text: &'a [u8],
    /// True if the line ends with a newline; only the last line of a file may not.
    pub newline: bool,
    /// Line number in the old file, counted from 1, if the line is in it.
    pub before_line: Option<usize>,
    /// Line number in the new file, counted from 1, if the line is in it.
    pub after_line: Option<usize>,
}

/// Kind of a line in a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// The line is in both files.
    Context,
    /// The line is only in the old file.
    Removed,
    /// The line is only in the new file.
    Added,
}

impl Hunk<'_> {
    /// Returns the number of its lines in the old file.
    pub fn before_count(&self) -> usize {
        self.count(LineKind::Added)
    }

    /// Returns the number of its lines in the new file.
    pub fn after_count(&self) -> usize {
        self.count(LineKind::Removed)
    }

    fn count(&self, except: LineKind) -> usize {
        self.lines.iter().filter(|line| line.kind != except).count()
    }
}

/// Returns the differences between two texts, with three lines of context. `None` if a text is binary or too large;
/// empty if the texts are equal.
pub fn hunks<'a>(before: &'a [u8], after: &'a [u8]) -> Option<Vec<Hunk<'a>>> {
    let comparison = Comparison::of(before, after)?;
    let are_near =
        |one: &LineChange, next: &LineChange| next.before.start - one.before.end <= 2 * CONTEXT;
    let groups = comparison.changes.chunk_by(are_near);
    let mut headings = Headings::default();
    let hunks = groups.filter_map(|near| hunk(&comparison, near, &mut headings));
    Some(hunks.collect())
}

/// Builds a hunk from nearby changes.
fn hunk<'a>(
    comparison: &Comparison<'a>,
    near: &[LineChange],
    headings: &mut Headings<'a>,
) -> Option<Hunk<'a>> {
    let (first, last) = (near.first()?, near.last()?);
    let lead = first.before.start.min(CONTEXT);
    let tail = (comparison.before.len() - last.before.end).min(CONTEXT);
    let start = (first.before.start - lead, first.after.start - lead);
    let mut lines = HunkBuilder {
        comparison,
        before: start.0,
        after: start.1,
        taken: Vec::new(),
    };
    for change in near {
        lines.take(change.before.start - lines.before, LineKind::Context);
        lines.take(change.before.len(), LineKind::Removed);
        lines.take(change.after.len(), LineKind::Added);
    }
    lines.take(tail, LineKind::Context);
    Some(Hunk {
        before_start: number(start.0, lines.before),
        after_start: number(start.1, lines.after),
        heading: headings.above(&comparison.before, start.0),
        lines: lines.taken,
    })
}

/// Returns the line number of a range's start or, for an empty range, of the line before it.
fn number(start: usize, end: usize) -> usize {
    if start == end { start } else { start + 1 }
}

/// A collector of a hunk's lines from the two texts.
struct HunkBuilder<'a, 'c> {
    comparison: &'c Comparison<'a>,
    /// Number of lines of each text that were already taken or skipped.
    before: usize,
    after: usize,
    taken: Vec<Line<'a>>,
}

impl HunkBuilder<'_, '_> {
    fn take(&mut self, count: usize, kind: LineKind) {
        for _ in 0..count {
            let bytes = match kind {
                LineKind::Added => self.comparison.after[self.after],
                LineKind::Context | LineKind::Removed => self.comparison.before[self.before],
            };
            self.before += usize::from(kind != LineKind::Added);
            self.after += usize::from(kind != LineKind::Removed);
            let text = bytes.strip_suffix(b"\n");
            self.taken.push(Line {
                kind,
                text: text.unwrap_or(bytes),
                newline: text.is_some(),
                before_line: (kind != LineKind::Added).then_some(self.before),
                after_line: (kind != LineKind::Removed).then_some(self.after),
            });
        }
    }
}

/// A finder of the headings of successive hunks, which examines each line only once.
#[derive(Debug, Default)]
struct Headings<'a> {
    last: Option<&'a [u8]>,
    looked_at: usize,
}

impl<'a> Headings<'a> {
    fn above(&mut self, lines: &[&'a [u8]], start: usize) -> Option<&'a [u8]> {
        let mut above = lines[self.looked_at..start].iter().rev();
        self.last = above.find_map(|line| heading(line)).or(self.last);
        self.looked_at = start;
        self.last
    }
}

fn heading(line: &[u8]) -> Option<&[u8]> {
    let begins = matches!(line, [b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$', ..]);
    begins.then(|| line[..line.len().min(80)].trim_ascii_end())
}
