//! The sections of a plan document, and the chunks that they consist of. Pure.
//!
//! Guarantees that the chunks together are the text, byte for byte; that code blocks and comments are not structure;
//! and that one which never ends is plain text: it hides nothing.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::text::{heading, is_placeholder};
use crate::commands::plan::types::PlanStatus;
use crate::sys::fences::Fence;
use crate::sys::text::regex;

/// A part of the document with a heading of its own, in the order in which parts stand there.
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
    /// Each part with its heading, which goes on in the title, and its text as long as there is nothing to say.
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

    /// All parts.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().map(|(part, _, _)| part)
    }

    /// Its heading; the title's goes on.
    pub fn heading(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Its text as long as there is nothing to say; "" for the tasks, which are missing then.
    pub fn placeholder(self) -> &'static str {
        Self::ALL[self as usize].2
    }

    /// Returns `true` if its items are entries with a third-level heading.
    pub fn has_entries(self) -> bool {
        matches!(self, Self::Made | Self::Rejected | Self::Log)
    }

    /// The part that a line is the heading of.
    pub fn of(line: &str) -> Option<Self> {
        let (level, words) = heading(line.trim_end())?;
        let words = match level {
            1 => words.split(':').next()?,
            _ => words.trim_end_matches(|c: char| c.is_whitespace() || "#:".contains(c)),
        };
        Self::all().find(|part| {
            let own = heading(part.heading().trim_end_matches(':'));
            own.is_some_and(|own| own.0 == level && own.1.eq_ignore_ascii_case(words.trim()))
        })
    }
}

/// A heading of the first or second level, and the text below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The part that it belongs to; `None` for a section of the user's own.
    pub part: Option<PlanPart>,
    /// The line of the heading; "" above the first one.
    pub heading: String,
    /// The text below it.
    pub chunks: Vec<Chunk>,
}

/// Some lines of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub kind: ChunkKind,
    /// The lines, their ends included.
    pub raw: String,
}

/// The kind of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkKind {
    /// An item of the section's part; of the goal, a paragraph.
    Item,
    /// A line that says that there is nothing yet.
    Placeholder,
    /// A blank line.
    Blank,
    /// Any other text: prose, a code block, a comment.
    Other,
}

/// The front matter with the blank lines above it; `None` where it does not end.
pub fn front_matter(text: &str) -> Option<&str> {
    let is_mark = |line: &str| line.trim_end() == "---";
    let mut end = 0;
    let mut is_open = false;
    for line in text.split_inclusive('\n') {
        end += line.len();
        if is_open && is_mark(line) {
            return Some(&text[..end]);
        }
        if is_open && PlanPart::of(line).is_some() {
            return None;
        }
        if !is_open && !is_mark(line) && !line.trim().is_empty() {
            break;
        }
        is_open |= is_mark(line);
    }
    (!is_open).then_some("")
}

/// Splits the text below the front matter. The first section has no heading, and belongs to the title.
pub fn sections(text: &str) -> Vec<Section> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut sections = vec![Section {
        part: Some(PlanPart::Title),
        heading: String::new(),
        chunks: Vec::new(),
    }];
    // A block without an end is none, nor is any below it: looking for each end again would take too long.
    let mut blocks_end = true;
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let block = Block::of(line).filter(|_| blocks_end);
        let end = block.and_then(|block| block.end(&lines, at));
        blocks_end &= block.is_none() || end.is_some();
        let raw = lines[at..end.unwrap_or(at + 1)].concat();
        at = end.unwrap_or(at + 1);
        let is_heading =
            end.is_none() && heading(line.trim_end()).is_some_and(|(level, _)| level <= 2);
        match sections.last_mut() {
            Some(section) if !is_heading => section.push(block.filter(|_| end.is_some()), raw),
            _ => sections.push(Section {
                part: PlanPart::of(line),
                heading: raw,
                chunks: Vec::new(),
            }),
        }
    }
    sections
}

/// The first line of a block that is not structure.
#[derive(Debug, Clone, Copy)]
enum Block<'l> {
    Comment,
    Code(Fence<'l>),
}

impl<'l> Block<'l> {
    fn of(line: &'l str) -> Option<Self> {
        if line.trim_start().starts_with("<!--") {
            return Some(Self::Comment);
        }
        Fence::of(line).map(Self::Code)
    }

    /// The end of the block that begins at this line.
    fn end(self, lines: &[&str], start: usize) -> Option<usize> {
        let (start, is_last): (usize, &dyn Fn(&&str) -> bool) = match &self {
            Self::Comment => (start, &|line| line.contains("-->")),
            Self::Code(open) => (start + 1, &|line| {
                Fence::of(line).is_some_and(|fence| fence.closes(open))
            }),
        };
        Some(start + lines[start..].iter().position(is_last)? + 1)
    }
}

impl Section {
    /// Adds a line, or a block that is not structure.
    fn push(&mut self, block: Option<Block<'_>>, raw: String) {
        let kind = match block {
            Some(Block::Code(_)) if self.part == Some(PlanPart::Goal) => ChunkKind::Item,
            Some(_) => ChunkKind::Other,
            None => self.kind_of(raw.trim_end()),
        };
        let is_text = matches!(kind, ChunkKind::Other | ChunkKind::Placeholder);
        let is_code = matches!(block, Some(Block::Code(_)));
        let above = match self.part {
            // All up to the next one is part of an entry, but the blank lines before that.
            Some(part) if part.has_entries() && is_text => {
                self.chunks.iter().rposition(|chunk| !chunk.is_blank())
            }
            Some(PlanPart::Criteria | PlanPart::Tasks) if is_text && !is_code => {
                let last = self.chunks.len().checked_sub(1);
                last.filter(|_| raw.starts_with([' ', '\t']))
            }
            _ => None,
        };
        if let Some(at) = above.filter(|at| self.chunks[*at].kind == ChunkKind::Item) {
            let more: Vec<_> = self.chunks.drain(at + 1..).map(|chunk| chunk.raw).collect();
            self.chunks[at].raw += &(more.concat() + &raw);
        } else {
            self.chunks.push(Chunk { kind, raw });
        }
    }

    /// The kind of a line that stands in no block.
    fn kind_of(&self, line: &str) -> ChunkKind {
        let item = match self.part {
            // Lists below a task are part of it.
            Some(PlanPart::Tasks) if line.starts_with("  ") || line.starts_with('\t') => None,
            Some(PlanPart::Criteria | PlanPart::Tasks) => ListItem::of(line),
            _ => None,
        };
        let text = item
            .as_ref()
            .map_or(line, |item| line[item.mark_box.end..].trim());
        let is_item = match self.part {
            Some(PlanPart::Title) => status(line).is_some(),
            Some(PlanPart::Goal) => true,
            Some(part) if part.has_entries() => is_entry(line),
            _ => item.is_some() && !text.is_empty(),
        };
        match self.part {
            _ if line.is_empty() => ChunkKind::Blank,
            Some(_) if is_placeholder(text) => ChunkKind::Placeholder,
            Some(_) if is_item => ChunkKind::Item,
            _ => ChunkKind::Other,
        }
    }

    /// Adds chunks behind the items. No paragraph and no block is torn apart.
    pub fn append(&mut self, kind: ChunkKind, texts: &[String], end: &str) {
        let blank = || Chunk::new(ChunkKind::Blank, end.to_owned());
        let is_item = |chunk: &Chunk| chunk.kind == ChunkKind::Item;
        let is_text = |chunk: &Chunk| !chunk.is_blank();
        let is_title = self.part == Some(PlanPart::Title);
        let is_block = is_title || self.part.is_some_and(PlanPart::has_entries);
        let chunks = &mut self.chunks;
        let mut at = match chunks.iter().rposition(is_item) {
            Some(last) => last + 1,
            None if is_title => 0,
            None => chunks.iter().rposition(is_text).map_or(0, |at| at + 1),
        };
        while !is_block && at > 0 && chunks.get(at).is_some_and(is_text) {
            at += 1;
        }
        for text in texts.iter().filter(|text| !text.is_empty()) {
            if is_block && kind == ChunkKind::Item && !(at > 0 && chunks[at - 1].is_blank()) {
                chunks.insert(at, blank());
                at += 1;
            }
            chunks.insert(at, Chunk::new(kind, text.replace('\n', end) + end));
            at += 1;
        }
        if is_block && chunks.get(at).is_some_and(is_text) {
            chunks.insert(at, blank());
        }
    }

    /// The items of the section.
    pub fn items(&self) -> impl Iterator<Item = &str> {
        let items = self
            .chunks
            .iter()
            .filter(|chunk| chunk.kind == ChunkKind::Item);
        items.map(|chunk| &*chunk.raw)
    }

    /// The text of the section.
    pub fn text(&self) -> impl Iterator<Item = &str> {
        let chunks = self.chunks.iter().map(|chunk| &*chunk.raw);
        [&*self.heading].into_iter().chain(chunks)
    }

    /// The last line of the section, and maybe some above it.
    pub fn last_line(&mut self) -> Option<&mut String> {
        let last = self
            .chunks
            .last_mut()
            .map_or(&mut self.heading, |last| &mut last.raw);
        (!last.is_empty()).then_some(last)
    }

    /// Returns `true` if the section has the heading of that part.
    pub fn is(&self, part: PlanPart) -> bool {
        self.part == Some(part) && !self.heading.is_empty()
    }

    /// Returns `true` if there is nothing below the heading.
    pub fn is_blank(&self) -> bool {
        self.chunks.iter().all(Chunk::is_blank)
    }
}

/// Returns `true` if a line is the heading of an entry.
fn is_entry(line: &str) -> bool {
    heading(line.trim_end()).is_some_and(|(level, title)| level == 3 && !title.is_empty())
}

impl Chunk {
    pub fn new(kind: ChunkKind, raw: String) -> Self {
        Self { kind, raw }
    }

    pub fn is_blank(&self) -> bool {
        self.kind == ChunkKind::Blank
    }
}

/// The line of the status, with its word.
static STATUS: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^(?i)\s*\*\*Status(?::\*\*|\*\*\s*:)\s*(in[\x20_-]progress|\w*)"));

/// Reads the status from its line.
pub fn status(line: &str) -> Option<PlanStatus> {
    Some(PlanStatus::of(&STATUS.captures(line)?[1]))
}

/// A list item's marker, the blanks behind it, its box, the mark in the box, and its text.
static ITEM: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"^\s*([-*+]|[0-9]{1,9}[.)])(\s*)(\[\s*([^\s\]]?)\x{fe0f}?\s*\])?([^\r\n]*)")
});

/// The beginning of a list item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListItem {
    /// The bytes of its bullet or number.
    pub marker: Range<usize>,
    /// The bytes of its box; none where it has no box, at the place of one.
    pub mark_box: Range<usize>,
    /// The mark in the box; a blank where there is none.
    pub mark: char,
}

impl ListItem {
    /// The list item that a text begins with.
    pub fn of(text: &str) -> Option<Self> {
        let found = ITEM.captures(text)?;
        let [marker, blank, rest] = [1, 2, 5].map(|group| found.get(group));
        let (marker, blank, rest) = (marker?, blank?, rest?.as_str());
        // A link is no box.
        let mark_box = found.get(3).filter(|_| !rest.starts_with(['(', '[', ':']));
        let mark = mark_box.and_then(|_| found[4].chars().next());
        let is_item = mark_box.is_some() || !blank.is_empty() || rest.is_empty();
        is_item.then(|| Self {
            marker: marker.range(),
            mark_box: mark_box.map_or(blank.end()..blank.end(), |found| found.range()),
            mark: mark.unwrap_or(' '),
        })
    }
}
