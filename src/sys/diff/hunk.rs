//! Hunks: the changed lines of a file with some lines around them. Pure.

use super::compare::{Comparison, LineChange};

/// The number of common lines shown around a change.
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
    /// The kind of the line.
    pub kind: LineKind,
    /// Its bytes, without the newline. A carriage return in front of that is one of them.
    pub text: &'a [u8],
    /// True if the line ends with a newline, as all but a file's last line do.
    pub newline: bool,
    /// Its number in the file before, from 1 on, if it is there.
    pub before_line: Option<usize>,
    /// Its number in the file after, from 1 on, if it is there.
    pub after_line: Option<usize>,
}

/// The kind of a line in a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// It is in both files.
    Context,
    /// It is in the file before only.
    Removed,
    /// It is in the file after only.
    Added,
}

impl Hunk<'_> {
    /// Returns the number of lines it has in the file before.
    pub fn before_count(&self) -> usize {
        self.count(LineKind::Added)
    }

    /// Returns the number of lines it has in the file after.
    pub fn after_count(&self) -> usize {
        self.count(LineKind::Removed)
    }

    fn count(&self, except: LineKind) -> usize {
        let lines = self.lines.iter();
        lines.filter(|line| line.kind != except).count()
    }
}

/// Returns the differences between two texts, with three lines of context. `None` if one of them is binary or too large
/// to compare; empty if they are equal.
pub fn hunks<'a>(before: &'a [u8], after: &'a [u8]) -> Option<Vec<Hunk<'a>>> {
    let comparison = Comparison::of(before, after)?;
    let are_near =
        |one: &LineChange, next: &LineChange| next.before.start - one.before.end <= 2 * CONTEXT;
    let groups = comparison.changes.chunk_by(are_near);
    let mut headings = Headings::default();
    let hunks = groups.filter_map(|near| hunk(&comparison, near, &mut headings));
    Some(hunks.collect())
}

/// Makes a hunk of changes that are near each other.
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

/// The number of the first of these lines, or where there is none, of the one in front.
fn number(start: usize, end: usize) -> usize {
    if start == end { start } else { start + 1 }
}

/// Takes a hunk's lines from the two texts.
struct HunkBuilder<'a, 'c> {
    comparison: &'c Comparison<'a>,
    /// The number of lines of each text that are behind it.
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
    let begins = matches!(line, [b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$', ..]);
    begins.then(|| line[..line.len().min(80)].trim_ascii_end())
}
