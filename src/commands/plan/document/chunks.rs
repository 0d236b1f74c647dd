//! Splits a plan document into chunks: headings, items, and the text between them. Pure.
//!
//! Guarantees that the chunks add up to the text, byte for byte; that code blocks and comments are not parsed as
//! structure; and that an unterminated block counts as plain text, so that it hides nothing.

use std::sync::LazyLock;

use regex::Regex;
use strum::VariantArray;

use crate::sys::fences::Fence;
use crate::sys::text::regex;

/// A part of the document with its own heading. The variants are in document order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, VariantArray)]
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
    /// The heading (for the title, only a prefix) and the placeholder text of each part, in the order of the variants.
    const WORDS: [(&str, &str); 7] = [
        ("# Plan:", "[Goal to be defined]"),
        ("## Goal", "[User will provide goal]"),
        (
            "## Acceptance Criteria",
            "- [ ] [Criteria will be added once goal is defined]",
        ),
        ("## Decisions Made", "[No decisions yet]"),
        ("## Decisions Rejected", "[No rejected decisions yet]"),
        ("## Tasks", ""),
        ("## Execution Log", "[No actions taken yet]"),
    ];

    /// Returns the heading of the part; for the title, only a prefix.
    pub fn heading(self) -> &'static str {
        Self::WORDS[self as usize].0
    }

    /// Returns the text that replaces missing items; empty for the tasks, which have no placeholder.
    pub fn placeholder(self) -> &'static str {
        Self::WORDS[self as usize].1
    }

    /// Returns `true` if items are on adjacent lines, `false` if they are separated by blank lines.
    pub fn is_list(self) -> bool {
        matches!(self, Self::Goal | Self::Criteria | Self::Tasks)
    }

    /// Parses the heading of a part; `None` for any other line.
    pub fn of(line: &str) -> Option<Self> {
        let (level, text) = heading(line)?;
        let words = match level {
            1 => text.split(':').next()?.trim_end(),
            _ => text.trim_end_matches([' ', '#', ':']),
        };
        let is_own = |(own, name): (usize, &str)| own == level && name.eq_ignore_ascii_case(words);
        let mut all = Self::VARIANTS.iter().copied();
        all.find(|part| heading(part.heading().trim_end_matches(':')).is_some_and(is_own))
    }
}

/// Adjacent lines of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The part to which the lines belong; `None` outside a plan's own sections.
    pub part: Option<PlanPart>,
    pub kind: ChunkKind,
    /// The lines, including their line endings.
    pub raw: String,
}

/// The kind of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkKind {
    /// A heading of the first or second level.
    Heading,
    /// An item of its part; in the goal, a line or a code block.
    Item,
    /// A placeholder line, such as `[No decisions yet]`.
    Placeholder,
    /// A blank line.
    Blank,
    /// Any other text: prose, a code block, a comment.
    Other,
}

impl Chunk {
    pub fn new(part: Option<PlanPart>, kind: ChunkKind, raw: String) -> Self {
        Self { part, kind, raw }
    }

    /// Returns `true` if the chunk has this part and kind.
    pub fn is(&self, part: PlanPart, kind: ChunkKind) -> bool {
        self.part == Some(part) && self.kind == kind
    }

    /// Renumbers a task.
    pub fn number(&mut self, step: usize) {
        static MARKER: LazyLock<Regex> = LazyLock::new(|| regex(r"^\s*([-*+]|[0-9]+[.)])"));
        self.raw = MARKER.replace(&self.raw, format!("{step}.")).into_owned();
    }
}

/// Returns the number of lines in the front matter, including blank lines above it; `None` if the closing line is
/// missing.
pub fn front_matter(lines: &[&str]) -> Option<usize> {
    let is_mark = |line: &str| line.trim_end() == "---";
    let first = lines.iter().position(|line| !line.trim().is_empty());
    let Some(start) = first.filter(|at| is_mark(lines[*at])) else {
        return Some(0);
    };
    let mut below = (start + 2..).zip(&lines[start + 1..]);
    let (count, end) = below.find(|(_, line)| is_mark(line) || PlanPart::of(line).is_some())?;
    is_mark(end).then_some(count)
}

/// Splits the text below the front matter. If a part has two headings, only the first one counts.
pub fn chunks(lines: &[&str]) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = Vec::new();
    let mut part = None;
    // Kinds of blocks that are not terminated. No later block of such a kind can be terminated either, so its end is
    // not searched for.
    let mut comments_end = true;
    let mut endless: Vec<Fence<'_>> = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let is_comment = line.trim_start().starts_with("<!--");
        let mut below = lines[at..].iter();
        let length = if is_comment {
            let end = comments_end.then(|| below.position(|line| line.contains("-->")));
            comments_end = end.flatten().is_some();
            end.flatten()
        } else {
            let is_endless = |open: &Fence<'_>| endless.iter().any(|other| open.outlasts(other));
            Fence::of(line)
                .filter(|open| !is_endless(open))
                .and_then(|open| {
                    let closes =
                        |line: &&str| Fence::of(line).is_some_and(|fence| fence.closes(&open));
                    let end = below.skip(1).position(closes).map(|at| at + 1);
                    endless.extend(end.is_none().then_some(open));
                    end
                })
        };
        let is_block = length.is_some();
        let raw = lines[at..=at + length.unwrap_or_default()].concat();
        at += 1 + length.unwrap_or_default();
        if !is_block && heading(line).is_some_and(|(level, _)| level <= 2) {
            let is_new = |part: &PlanPart| chunks.iter().all(|known| known.part != Some(*part));
            part = PlanPart::of(line).filter(is_new);
            chunks.push(Chunk::new(part, ChunkKind::Heading, raw));
            continue;
        }
        let kind = match part {
            Some(PlanPart::Goal) if is_block && !is_comment => ChunkKind::Item,
            _ if is_block => ChunkKind::Other,
            part => kind_of(part, line.trim_end()),
        };
        let is_more = matches!(kind, ChunkKind::Other);
        match item_above(&chunks, part, line, is_block).filter(|_| is_more) {
            Some(at) => {
                let more: String = chunks.drain(at + 1..).map(|chunk| chunk.raw).collect();
                chunks[at].raw += &(more + &raw);
            }
            None => chunks.push(Chunk::new(part, kind, raw)),
        }
    }
    chunks
}

/// Returns the first line, counted from 1, that the user may take for a part of the plan although it is not parsed as
/// one, with a description: a second heading of a list, or an indented task. Below a task, only a numbered line is
/// reported; other indented lines belong to that task.
pub fn unclear(chunks: &[Chunk]) -> Option<(usize, String)> {
    static TASK: LazyLock<Regex> =
        LazyLock::new(|| regex(r"^\s+(?:[-*+]|([0-9]{1,9})[.)])\s*\[\s*[^\s\]]?\x{fe0f}?\s*\]\s"));
    let mut above = 0;
    for chunk in chunks {
        let second = PlanPart::of(&chunk.raw)
            .filter(|_| chunk.kind == ChunkKind::Heading && chunk.part.is_none())
            .filter(|part| matches!(part, PlanPart::Criteria | PlanPart::Tasks));
        if let Some(part) = second {
            return Some((above + 1, format!("a second heading `{}`", part.heading())));
        }
        let is_task = |(nth, line): &(usize, &str)| {
            let is_numbered = |found: regex::Captures<'_>| found.get(1).is_some();
            let found = TASK.captures(line);
            found.is_some_and(|found| match chunk.kind {
                ChunkKind::Item => *nth > 0 && is_numbered(found),
                kind => *nth == 0 && kind == ChunkKind::Other,
            })
        };
        let mut lines = chunk.raw.split_inclusive('\n').enumerate();
        if chunk.part == Some(PlanPart::Tasks)
            && let Some((nth, _)) = lines.find(is_task)
        {
            let what = "an indented task: begin the line with its number";
            return Some((above + nth + 1, what.to_owned()));
        }
        above += chunk.raw.split_inclusive('\n').count();
    }
    None
}

/// Returns the kind of a line outside blocks.
fn kind_of(part: Option<PlanPart>, line: &str) -> ChunkKind {
    let is_indented = line.starts_with("  ") || line.starts_with('\t');
    let listed = list_item(line).map(|(_, text)| text);
    let is_item = match part {
        Some(PlanPart::Title) => field(line).is_some_and(|(name, _)| name == "status"),
        Some(PlanPart::Goal) => true,
        Some(PlanPart::Criteria) => listed.is_some(),
        // An indented list below a task is part of that task.
        Some(PlanPart::Tasks) => listed.is_some() && !is_indented,
        Some(_) => heading(line).is_some_and(|(level, title)| level == 3 && !title.is_empty()),
        None => false,
    };
    match part {
        Some(_) if is_placeholder(listed.unwrap_or(line)) => ChunkKind::Placeholder,
        Some(_) if is_item => ChunkKind::Item,
        _ if line.is_empty() => ChunkKind::Blank,
        _ => ChunkKind::Other,
    }
}

/// Returns the index of the item to which a line of text belongs. An entry includes all text below it; a list item
/// includes indented lines up to and including a field.
fn item_above(
    chunks: &[Chunk],
    part: Option<PlanPart>,
    line: &str,
    is_block: bool,
) -> Option<usize> {
    let above = match part? {
        PlanPart::Title | PlanPart::Goal => None,
        PlanPart::Criteria | PlanPart::Tasks => {
            let last = chunks.last()?.raw.lines().next_back();
            let is_part = line.starts_with([' ', '\t']) && !is_block;
            let is_over = last.is_some_and(|last| field(last).is_some());
            chunks.len().checked_sub(1).filter(|_| is_part && !is_over)
        }
        _ => chunks
            .iter()
            .rposition(|chunk| chunk.kind != ChunkKind::Blank),
    };
    above.filter(|at| chunks[*at].kind == ChunkKind::Item)
}

/// Parses a heading into its level and its text.
pub fn heading(line: &str) -> Option<(usize, &str)> {
    let line = line.trim_end();
    let words = line.trim_start_matches('#');
    let level = line.len() - words.len();
    let is_heading = words.is_empty() || words.starts_with(char::is_whitespace);
    ((1..=6).contains(&level) && is_heading).then(|| (level, words.trim()))
}

/// Matches a list item: the mark in its checkbox, and its text. Brackets count as a checkbox only before a blank or the
/// end.
static ITEM: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?s)^\s*(?:[-*+]|[0-9]{1,9}[.)])(?:\s*\[\s*([^\s\]]?)\x{fe0f}?\s*\](?:\s+|$)|\s+)(.*?)\s*$",
    )
});

/// Parses a list item into the mark in its checkbox, or a blank if there is none, and its text.
pub fn list_item(text: &str) -> Option<(char, &str)> {
    let found = ITEM.captures(text)?;
    let mark = found.get(1).and_then(|mark| mark.as_str().chars().next());
    let text = found.get(2)?.as_str();
    (!text.is_empty()).then_some((mark.unwrap_or(' '), text))
}

/// Matches a line `**Name:** text`; the colon may follow the asterisks.
static FIELD: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^\s*\*\*([^*:]+)(?::\*\*|\*\*\s*:)\s*(.*?)\s*$"));

/// Parses a field into its name, in lower case, and its text.
pub fn field(line: &str) -> Option<(String, &str)> {
    let (_, [name, text]) = FIELD.captures(line)?.extract();
    Some((name.trim().to_lowercase(), text))
}

/// Placeholder texts, which may be enclosed in brackets in a document.
const PLACEHOLDERS: [&str; 7] = [
    "User will provide goal",
    "Clear goal description",
    "Goal to be defined",
    "Criteria will be added once goal is defined",
    "No decisions yet",
    "No rejected decisions yet",
    "No actions taken yet",
];

/// Returns `true` if a line is a placeholder.
pub fn is_placeholder(line: &str) -> bool {
    PLACEHOLDERS.contains(&line.trim_matches(|c: char| c.is_whitespace() || "[]".contains(c)))
}

/// Returns `true` if a line is one of git's conflict markers.
pub fn is_conflict_marker(line: &str) -> bool {
    ["<<<<<<<", "|||||||", ">>>>>>>"]
        .iter()
        .filter_map(|mark| line.strip_prefix(mark))
        .any(|rest| rest.is_empty() || rest.starts_with(' '))
}
