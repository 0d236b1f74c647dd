//! Where the parts of a plan document are, by its lines' numbers, which count from 0. Pure.
//!
//! Guarantees that what stands in a code block or in a comment is no structure, and that a block or a comment which
//! nothing ends is plain text: it hides nothing.

use std::cell::LazyCell;
use std::ops::Range;

use super::text::{ITEM, heading};
use crate::sys::fences::Fence;

/// A part of the document that has a heading of its own. In the order in which they stand in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlanPart {
    Title,
    Goal,
    Criteria,
    Made,
    Rejected,
    Tasks,
    Log,
}

impl PlanPart {
    /// All of them: the heading, which the title goes on, and what is said where there is nothing to say yet.
    const ALL: [(Self, &str, &str); 7] = [
        (Self::Title, "# Plan:", "[Goal to be defined]"),
        (Self::Goal, "## Goal", "[User will provide goal]"),
        (
            Self::Criteria,
            "## Acceptance Criteria",
            "- [ ] [Criteria will be added once goal is defined]",
        ),
        (Self::Made, "## Decisions Made", "[No decisions yet]"),
        (
            Self::Rejected,
            "## Decisions Rejected",
            "[No rejected decisions yet]",
        ),
        (Self::Tasks, "## Tasks", ""),
        (Self::Log, "## Execution Log", "[No actions taken yet]"),
    ];

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().map(|(part, _, _)| part)
    }

    /// Its heading; the title's goes on.
    pub fn heading(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// What it says where there is nothing to say yet.
    pub fn placeholder(self) -> &'static str {
        Self::ALL[self as usize].2
    }

    /// The part whose heading a line is.
    pub fn of(line: &str) -> Option<Self> {
        let (level, words) = heading(line)?;
        let words = match level {
            1 => words.split(':').next()?,
            _ => words.trim_end_matches(|c: char| c.is_whitespace() || "#:".contains(c)),
        };
        let is_named = |part: &Self| {
            let own = part.heading().trim_end_matches(':');
            heading(own).is_some_and(|(own_level, own)| {
                own_level == level && own.eq_ignore_ascii_case(words.trim())
            })
        };
        Self::all().find(is_named)
    }
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineRole {
    /// Text, which may be structure.
    Plain,
    /// Part of a code block, its fences included.
    Code,
    /// Part of a comment.
    Comment,
}

/// What stands below a heading, up to the next one of its level or above.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanSection {
    /// Which part it is; `None`: the user's own.
    pub part: Option<PlanPart>,
    /// The heading.
    pub heading: usize,
    /// The lines below it.
    pub body: Range<usize>,
}

/// Where everything is.
#[derive(Debug, Clone)]
pub struct PlanLayout<'d> {
    /// The lines, each less its end.
    pub lines: Vec<&'d str>,
    pub roles: Vec<LineRole>,
    /// The front matter's lines; those that open and close it are the first and the last one. Empty: there is none.
    pub front: Range<usize>,
    /// The sections below headings of the first and second level, in their order.
    pub sections: Vec<PlanSection>,
}

/// An item of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListItem<'d> {
    /// Its lines.
    pub range: Range<usize>,
    /// Its bullet or number, in bytes of its first line.
    pub marker: Range<usize>,
    /// Its box, likewise; empty where it has none, and is to have it.
    pub mark_box: Range<usize>,
    /// The mark in the box; a blank where there is none.
    pub mark: char,
    /// Its text, less what stands before it on each line.
    pub text: Vec<&'d str>,
}

/// The front matter's lines, those that open and close it included; `None` where it does not end.
pub fn front_matter(lines: &[&str]) -> Option<Range<usize>> {
    let is_mark = |line: &&str| line.trim_end() == "---";
    let Some(start) = lines.iter().position(|line| !line.trim().is_empty()) else {
        return Some(0..0);
    };
    if !is_mark(&lines[start]) {
        return Some(0..0);
    }
    let mut below = lines.iter().enumerate().skip(start + 1);
    let (end, line) = below.find(|(_, line)| is_mark(line) || PlanPart::of(line).is_some())?;
    is_mark(line).then_some(start..end + 1)
}

impl<'d> PlanLayout<'d> {
    /// The layout of the front matter alone: nothing is said of what is below.
    pub fn of_front(lines: Vec<&'d str>) -> Self {
        let front = front_matter(&lines).unwrap_or(0..0);
        Self {
            lines,
            roles: Vec::new(),
            front,
            sections: Vec::new(),
        }
    }

    pub fn of(lines: Vec<&'d str>) -> Self {
        let Self { lines, front, .. } = Self::of_front(lines);
        let roles = roles(&lines, front.end);
        let mut sections: Vec<PlanSection> = Vec::new();
        for (at, line) in lines.iter().enumerate().skip(front.end) {
            let is_plain = roles[at] == LineRole::Plain;
            if is_plain && heading(line).is_some_and(|(level, _)| level <= 2) {
                sections.push(PlanSection {
                    part: PlanPart::of(line),
                    heading: at,
                    body: at + 1..at + 1,
                });
            } else if let Some(last) = sections.last_mut() {
                last.body.end = at + 1;
            }
        }
        Self {
            lines,
            roles,
            front,
            sections,
        }
    }

    /// The sections of this part: more than one where the user has made more.
    pub fn sections(&self, part: PlanPart) -> impl DoubleEndedIterator<Item = &PlanSection> {
        let is_it = move |section: &&PlanSection| section.part == Some(part);
        self.sections.iter().filter(is_it)
    }

    /// Whether a line is plain and not blank.
    pub fn is_text(&self, at: usize) -> bool {
        self.roles[at] == LineRole::Plain && !self.lines[at].trim().is_empty()
    }

    /// Where the last line that is not blank ends, of a section with its heading.
    pub fn end_of_text(&self, section: &PlanSection) -> usize {
        let is_text = |at: &usize| !self.lines[*at].trim().is_empty();
        let last = section.body.clone().rev().find(is_text);
        last.unwrap_or(section.heading) + 1
    }

    /// The lines above a section's first entry.
    pub fn lead(&self, section: &PlanSection) -> Range<usize> {
        let first = self.entries(section).next();
        section.body.start..first.map_or(section.body.end, |entry| entry.start)
    }

    /// A section's entries, each with its heading.
    pub fn entries<'s>(
        &'s self,
        section: &'s PlanSection,
    ) -> impl Iterator<Item = Range<usize>> + 's {
        let is_heading = |at: &usize| {
            let is_third = heading(self.lines[*at]).is_some_and(|(level, _)| level == 3);
            is_third && self.roles[*at] == LineRole::Plain
        };
        let mut starts = section.body.clone().filter(is_heading).peekable();
        std::iter::from_fn(move || {
            let start = starts.next()?;
            Some(start..starts.peek().copied().unwrap_or(section.body.end))
        })
    }

    /// The items of a part's lists. What is indented by more than `most` bytes is no item, but may be part of one.
    pub fn items(&self, part: PlanPart, most: usize) -> Vec<ListItem<'d>> {
        let mut items: Vec<ListItem<'_>> = Vec::new();
        // Whether the last one may go on: not below a heading.
        let mut is_open = false;
        let sections = self.sections(part);
        for at in sections.flat_map(|section| section.heading..section.body.end) {
            let line = self.lines[at];
            let indent = line.len() - line.trim_start().len();
            if !self.is_text(at) {
                is_open &= self.roles[at] == LineRole::Comment;
            } else if let Some(item) = ListItem::of(at, line).filter(|_| indent <= most) {
                is_open = true;
                items.push(item);
            } else if let Some(last) = items.last_mut().filter(|_| is_open && indent > 0) {
                last.range.end = at + 1;
                last.text.push(line.trim());
            } else {
                is_open = false;
            }
        }
        items
    }
}

impl<'d> ListItem<'d> {
    /// The line and the bytes of its box.
    pub fn box_place(&self) -> (usize, Range<usize>) {
        (self.range.start, self.mark_box.clone())
    }

    /// The item that begins with this line.
    pub fn of(at: usize, line: &'d str) -> Option<Self> {
        let marker = ITEM.captures(line)?.get(2)?.range();
        let behind = &line[marker.end..];
        let start = line.len() - behind.trim_start().len();
        let (mark_box, mark) = checkbox(&line[start..]).unwrap_or((0, ' '));
        let has_text = marker.end < start || mark_box > 0 || behind.is_empty();
        has_text.then(|| Self {
            range: at..at + 1,
            marker,
            mark_box: start..start + mark_box,
            mark,
            text: vec![line[start + mark_box..].trim()],
        })
    }
}

/// The length and the mark of the box that `text` begins with, `[x]` or `[]`. What looks like a link is none.
fn checkbox(text: &str) -> Option<(usize, char)> {
    let (inner, behind) = text.strip_prefix('[')?.split_once(']')?;
    let mut marks = inner.trim().chars().filter(|c| *c != '\u{fe0f}');
    let mark = marks.next().unwrap_or(' ');
    let is_box = marks.next().is_none() && !behind.starts_with(['(', '[', ':']);
    is_box.then_some((inner.len() + 2, mark))
}

/// What each line is, from `start` on.
fn roles(lines: &[&str], start: usize) -> Vec<LineRole> {
    let behind_front = || lines.iter().enumerate().skip(start);
    let fences = behind_front().filter_map(|(at, line)| Some((at, Fence::of(line)?)));
    let closing: Vec<_> = fences.filter(|(_, fence)| fence.info.is_empty()).collect();
    let comment_ends = LazyCell::new(|| {
        let ends = behind_front().filter(|(_, line)| line.contains("-->"));
        ends.map(|(at, _)| at).collect::<Vec<_>>()
    });
    // Where nothing closes one, nothing closes a longer one below it.
    let mut unclosed: Vec<Fence<'_>> = Vec::new();
    let mut roles = vec![LineRole::Plain; lines.len()];
    let mut at = start;
    while at < lines.len() {
        let mut block = None;
        if lines[at].trim_start().starts_with("<!--") {
            let next = comment_ends.partition_point(|end| *end < at);
            block = comment_ends.get(next).map(|end| (*end, LineRole::Comment));
        } else if let Some(fence) = Fence::of(lines[at])
            && !unclosed
                .iter()
                .any(|open| open.mark == fence.mark && open.length <= fence.length)
        {
            let below = closing.partition_point(|(end, _)| *end <= at);
            let end = closing[below..].iter().find(|(_, end)| end.closes(&fence));
            block = end.map(|(end, _)| (*end, LineRole::Code));
            unclosed.extend(end.is_none().then_some(fence));
        }
        let (end, role) = block.unwrap_or((at, LineRole::Plain));
        roles[at..=end].fill(role);
        at = end + 1;
    }
    roles
}
