//! Where among equal lines a change is shown. Pure.
//!
//! A function that is added behind one that ends alike can be shown from its first line to its last,
//! or shifted, with the other's end in front. Of the places where a run of changed lines may stand,
//! this takes the one that git takes: beside a change of the other side, else where the indentation
//! of the lines at its edges looks best.

use std::ops::Range;

/// How many bytes may be compared in search of the best places in one file. Beyond, the changes stay
/// where they are, which is as right, if less readable.
pub const PATIENCE: usize = 64 << 20;

/// Over how many lines git looks for a better place.
const FARTHEST: usize = 100;

/// Moves each run of changed lines of one side to its best place, and joins runs that meet.
///
/// `own` has the number of changed lines in front of each common line, and behind the last; `other`
/// has the other side's.
pub fn slide(lines: &[&[u8]], own: &mut [u32], other: &[u32], patience: &mut usize) {
    let (mut slot, mut start) = (0, 0);
    while slot < own.len() {
        let mut run = Run {
            lines,
            own: &mut *own,
            slot,
            at: start..start,
            patience: &mut *patience,
        };
        run.at.end += run.take();
        if !run.at.is_empty() {
            run.settle(other);
            run.put();
        }
        (slot, start) = (run.slot + 1, run.at.end + 1);
    }
}

/// A run of changed lines that is on the move.
struct Run<'a, 'b> {
    lines: &'a [&'b [u8]],
    /// The sizes of the runs, without this one.
    own: &'a mut [u32],
    /// In front of which common line the run stands.
    slot: usize,
    at: Range<usize>,
    patience: &'a mut usize,
}

impl Run<'_, '_> {
    /// Joins the run that stands where this one has come to. Its size is left to be added.
    fn take(&mut self) -> usize {
        std::mem::take(&mut self.own[self.slot]) as usize
    }

    fn put(&mut self) {
        // No text has more lines than `MAX_LINES`.
        self.own[self.slot] = u32::try_from(self.at.len()).unwrap_or(u32::MAX);
    }

    fn settle(&mut self, other: &[u32]) {
        let (top, beside) = self.explore(other);
        if self.at.end == top {
            return;
        }
        if let Some(slot) = beside {
            while self.slot > slot && self.up() {}
        } else {
            let best = self.best_end(top);
            while self.at.end > best && self.up() {}
        }
    }

    /// Moves up and down as far as it goes, and ends at the bottom. Says where the run ends at the
    /// top, and which is the lowest place beside a change of the other side.
    fn explore(&mut self, other: &[u32]) -> (usize, Option<usize>) {
        loop {
            let size = self.at.len();
            while self.up() {}
            let top = self.at.end;
            let mut beside = None;
            loop {
                if other[self.slot] > 0 {
                    beside = Some(self.slot);
                }
                if !self.down() {
                    break;
                }
            }
            // A run that has met others may go farther.
            if self.at.len() == size {
                return (top, beside);
            }
        }
    }

    /// Moves over the common line above, if that is equal to the run's last.
    fn up(&mut self) -> bool {
        if self.slot == 0 || !self.are_equal(self.at.start - 1, self.at.end - 1) {
            return false;
        }
        self.slot -= 1;
        self.at = self.at.start - 1 - self.take()..self.at.end - 1;
        true
    }

    /// Moves over the common line below, if that is equal to the run's first.
    fn down(&mut self) -> bool {
        if self.slot + 1 == self.own.len() || !self.are_equal(self.at.start, self.at.end) {
            return false;
        }
        self.slot += 1;
        self.at = self.at.start + 1..self.at.end + 1 + self.take();
        true
    }

    fn are_equal(&mut self, one: usize, other: usize) -> bool {
        let (one, other) = (self.lines[one], self.lines[other]);
        let cost = one.len().min(other.len()) + 1;
        let (left, is_too_much) = self.patience.overflowing_sub(cost);
        *self.patience = if is_too_much { 0 } else { left };
        !is_too_much && one == other
    }

    /// Where the run ends at its best place. It stands at the bottom now.
    fn best_end(&self, top: usize) -> usize {
        let (size, bottom) = (self.at.len(), self.at.end);
        // Beyond its own size, the places look alike.
        let from = top
            .max(bottom.saturating_sub(size + 1))
            .max(bottom.saturating_sub(FARTHEST));
        let rate = |end: usize| {
            let start = Border::at(self.lines, end - size).rating();
            start.with(&Border::at(self.lines, end).rating())
        };
        let mut best = (from, rate(from));
        for end in from + 1..=bottom {
            let rating = rate(end);
            // Of equals, the lower one.
            if !best.1.is_better_than(&rating) {
                best = (end, rating);
            }
        }
        best.0
    }
}

/// A place between two lines, where a run would begin or end, by the indentation around it.
#[derive(Debug)]
struct Border {
    /// That of the line behind. `None` where it is blank, or the file ends.
    indent: Option<usize>,
    is_end: bool,
    above: Surroundings,
    below: Surroundings,
}

/// What lies above a border, or below the line behind it.
#[derive(Debug)]
struct Surroundings {
    /// How many blank lines come first.
    blanks: usize,
    /// The indentation of the first line that is not blank.
    indent: Option<usize>,
}

impl Surroundings {
    /// Behind so many blank lines, whatever comes stands on its own.
    const MOST_BLANKS: usize = 20;

    fn of<'a>(lines: impl Iterator<Item = &'a &'a [u8]>) -> Self {
        let mut blanks = 0;
        for line in lines {
            let indent = indent(line);
            if indent.is_some() {
                return Self { blanks, indent };
            }
            blanks += 1;
            if blanks == Self::MOST_BLANKS {
                return Self {
                    blanks,
                    indent: Some(0),
                };
            }
        }
        Self {
            blanks,
            indent: None,
        }
    }
}

impl Border {
    fn at(lines: &[&[u8]], place: usize) -> Self {
        let (above, below) = lines.split_at(place);
        Self {
            indent: below.first().and_then(|line| indent(line)),
            is_end: below.is_empty(),
            above: Surroundings::of(above.iter().rev()),
            below: Surroundings::of(below.iter().skip(1)),
        }
    }

    fn rating(&self) -> Rating {
        let mut sum = 0;
        if self.above.indent.is_none() && self.above.blanks == 0 {
            sum += penalty::FILE_START;
        }
        if self.is_end {
            sum += penalty::FILE_END;
        }
        let below = match self.indent {
            None => 1 + self.below.blanks,
            Some(_) => 0,
        };
        let blanks = self.above.blanks + below;
        sum += penalty::BLANK * weight(blanks) + penalty::BLANK_BELOW * weight(below);
        let indent = self.indent.or(self.below.indent);
        sum += self.penalty_for_indent(indent, blanks > 0);
        Rating {
            indent: indent.map_or(-1, weight),
            penalty: sum,
        }
    }

    fn penalty_for_indent(&self, indent: Option<usize>, is_blank: bool) -> i64 {
        let (Some(indent), Some(above)) = (indent, self.above.indent) else {
            return 0;
        };
        let (plain, behind_blank) = if indent > above {
            penalty::INDENTED
        } else if indent == above {
            return 0;
        } else if self.below.indent.is_some_and(|below| below > indent) {
            penalty::OUTDENTED
        } else {
            penalty::DEDENTED
        };
        if is_blank { behind_blank } else { plain }
    }
}

fn weight(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// What git has found, by trying, to be what people choose. Of two numbers, the second is for a
/// border at blank lines.
mod penalty {
    pub const FILE_START: i64 = 1;
    pub const FILE_END: i64 = 21;
    pub const BLANK: i64 = -30;
    pub const BLANK_BELOW: i64 = 6;
    pub const INDENTED: (i64, i64) = (-4, 10);
    /// Less indented than above, and what follows is indented more: `else`.
    pub const OUTDENTED: (i64, i64) = (24, 17);
    pub const DEDENTED: (i64, i64) = (23, 17);
    /// For one of two places, if it is more indented.
    pub const DEEPER: i64 = 60;
}

/// How a place looks: the less, the better.
#[derive(Debug)]
struct Rating {
    indent: i64,
    penalty: i64,
}

impl Rating {
    fn with(&self, other: &Self) -> Self {
        Self {
            indent: self.indent + other.indent,
            penalty: self.penalty + other.penalty,
        }
    }

    fn is_better_than(&self, other: &Self) -> bool {
        let deeper = (self.indent - other.indent).signum();
        deeper * penalty::DEEPER + self.penalty - other.penalty < 0
    }
}

/// How far a line is indented, in columns; `None` where it is blank.
fn indent(line: &[u8]) -> Option<usize> {
    const MOST: usize = 200;
    let mut columns = 0;
    // A line's end has no width: a line of carriage returns would be read in vain again and again.
    for byte in line.iter().take(10 * MOST) {
        match byte {
            b' ' => columns += 1,
            b'\t' => columns += 8 - columns % 8,
            b'\n' | b'\r' => {}
            _ => return Some(columns),
        }
        if columns >= MOST {
            return Some(MOST);
        }
    }
    None
}
