//! The plan as a Markdown file that the user reads, edits and owns. Pure.
//!
//! ```text
//! ---                         front matter: status, createdAt, updatedAt, version
//! # Plan: …                   the goal's first line
//! **Status:** in_progress     takes precedence over the front matter
//! ## Goal                     any lines
//! ## Acceptance Criteria      `- [x] description *(notes)*`
//! ## Decisions Made           `### title`, `**Rationale:**`, `**Alternatives considered:**`, `**Decided:**`
//! ## Decisions Rejected       `### title`, `**Rationale:**`, `**Alternative:**`, `**Rejected:**`
//! ## Tasks                    `1. [ ] description` and `**Tool:** name {…}`, only if there are tasks
//! ## Execution Log            `### time - action`, `**Actions:**`, `**Tools:**`, `**Result:**`
//! ```
//!
//! Guarantees that an edit preserves, byte for byte, everything that it does not change, including line endings and a
//! byte order mark; that changed items are written in normal form, each text except the goal on one line; and that text
//! never turns into structure. Times are in milliseconds since 1970; the document shows them in UTC.

mod chunks;
mod items;

use strum::VariantArray as _;

use self::chunks::{Chunk, ChunkKind, PlanPart, chunks, front_matter, is_conflict_marker, unclear};
use super::types::{Plan, PlanMetadata, PlanStatus};
use crate::sys::files::MIB;
use crate::sys::text::{BYTE_ORDER_MARK, line_of};

/// Errors from reading a plan document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanDocumentError {
    /// The document contains an unresolved merge conflict. Holds the line of the first marker, counted from 1.
    #[error("line {0} is a conflict marker of git")]
    ConflictMarkers(usize),
    /// The document is ambiguous, or a required part of the plan cannot be found. Holds a description for the user.
    #[error("{0}")]
    Unclear(String),
    /// The document has none of a plan's headings: it is another kind of file, or damaged.
    #[error("it has no heading of a plan, like `## Goal`")]
    NoHeading,
    /// The document must be repaired or replaced. Holds a description of the damage.
    #[error("{0}")]
    Damaged(String),
}

/// Returns the prompt for a model that repairs a damaged plan.
pub fn retry_prompt(error: &PlanDocumentError, now: i64) -> String {
    include_str!("../../../prompts/plan_retry.txt")
        .trim_end()
        .replace("{error}", &error.to_string())
        .replace("{now}", &now.to_string())
}

/// A plan document, parsed so that its text can be reproduced byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanDocument {
    /// The byte order mark, or an empty string.
    mark: &'static str,
    /// The line ending for added text.
    end: &'static str,
    /// The lines of the front matter, including blank lines above it.
    front: Vec<String>,
    /// The text below the front matter.
    chunks: Vec<Chunk>,
}

impl PlanDocument {
    /// Parses a document.
    ///
    /// # Errors
    /// Fails if the bytes are not a plan, or contain conflict markers.
    pub fn parse(bytes: &[u8]) -> Result<Self, PlanDocumentError> {
        check_length(bytes.len())?;
        let damaged = |at: usize, what| {
            PlanDocumentError::Damaged(format!("line {} {what}", line_of(bytes, at)))
        };
        let text =
            str::from_utf8(bytes).map_err(|error| damaged(error.valid_up_to(), "is not UTF-8"))?;
        if let Some(at) = text.find('\0') {
            return Err(damaged(at, "has a NUL byte"));
        }
        if let Some(at) = text.lines().position(is_conflict_marker) {
            return Err(PlanDocumentError::ConflictMarkers(at + 1));
        }
        let unmarked = text.strip_prefix(BYTE_ORDER_MARK);
        let lines: Vec<&str> = unmarked.unwrap_or(text).split_inclusive('\n').collect();
        let front = front_matter(&lines).ok_or_else(|| {
            let what = "the front matter never ends: a line `---` is missing";
            PlanDocumentError::Damaged(what.to_owned())
        })?;
        let chunks = chunks(&lines[front..]);
        if chunks.iter().all(|chunk| chunk.part.is_none()) {
            return Err(PlanDocumentError::NoHeading);
        }
        if let Some((line, what)) = unclear(&chunks) {
            let line = front + line;
            return Err(PlanDocumentError::Unclear(format!("line {line} is {what}")));
        }
        let mark = unmarked.map_or("", |_| BYTE_ORDER_MARK);
        Ok(Self::of(mark, &lines, front, chunks))
    }

    fn of(mark: &'static str, lines: &[&str], front: usize, chunks: Vec<Chunk>) -> Self {
        let is_crlf = lines.first().is_some_and(|line| line.ends_with("\r\n"));
        Self {
            mark,
            end: if is_crlf { "\r\n" } else { "\n" },
            front: lines[..front].iter().copied().map(str::to_owned).collect(),
            chunks,
        }
    }

    /// Creates the document for a new plan.
    pub fn empty(now: i64) -> Self {
        let text = include_str!("document/empty.md").replace("{now}", &now.to_string());
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let front = front_matter(&lines).unwrap_or_default();
        Self::of("", &lines, front, chunks(&lines[front..]))
    }

    /// Extracts the plan from the document.
    pub fn plan(&self) -> Plan {
        let number = |key| self.front_value(key).and_then(|text| text.parse().ok());
        let updated_at = number("updatedAt").unwrap_or_default();
        let decision = |entry| items::decision(entry, updated_at);
        let log_entry = |entry| items::log_entry(entry, updated_at);
        let criteria = self.items(PlanPart::Criteria).map(items::criterion);
        let tasks = (1..).zip(self.items(PlanPart::Tasks));
        Plan {
            status: self.status(),
            goal: items::goal(self.items(PlanPart::Goal)),
            acceptance_criteria: criteria.collect(),
            decisions_made: self.items(PlanPart::Made).map(decision).collect(),
            decisions_rejected: self.items(PlanPart::Rejected).map(decision).collect(),
            tasks: tasks.map(|(step, item)| items::task(step, item)).collect(),
            execution_log: self.items(PlanPart::Log).map(log_entry).collect(),
            metadata: PlanMetadata {
                created_at: number("createdAt").unwrap_or_default(),
                updated_at,
                version: self.version(),
            },
        }
    }

    fn version(&self) -> u64 {
        let version = self.front_value("version");
        version.and_then(|text| text.parse().ok()).unwrap_or(1)
    }

    /// Returns the plan's status. The line below the title takes precedence over the front matter.
    fn status(&self) -> PlanStatus {
        let below = self.items(PlanPart::Title).find_map(items::status);
        below
            .or_else(|| self.front_value("status").map(PlanStatus::of))
            .unwrap_or_default()
    }

    /// Returns the file's content.
    pub fn text(&self) -> String {
        let front = self.front.iter().map(|line| &**line);
        let chunks = self.chunks.iter().map(|chunk| &*chunk.raw);
        [self.mark].into_iter().chain(front).chain(chunks).collect()
    }

    /// Returns the document with only the latest `entries` of the execution log.
    pub fn recent(&self, entries: usize) -> String {
        let mut recent = self.clone();
        let mut over = self.items(PlanPart::Log).count().saturating_sub(entries);
        // Blank lines after a dropped entry are dropped with it.
        let mut is_over = false;
        recent.chunks.retain(|chunk| {
            if chunk.kind != ChunkKind::Blank {
                is_over = over > 0 && chunk.is(PlanPart::Log, ChunkKind::Item);
                over -= usize::from(is_over);
            }
            !is_over
        });
        recent.text()
    }

    /// Applies a change to the plan; returns `false` if it changes nothing. [`save`](Self::save) updates the metadata.
    pub fn edit(&mut self, change: impl FnOnce(&mut Plan)) -> bool {
        let before = self.plan();
        let mut after = before.clone();
        change(&mut after);
        if after == before {
            return false;
        }
        let last = self.chunks.last_mut();
        if let Some(last) = last.filter(|last| !last.raw.ends_with('\n')) {
            last.raw += self.end;
        }
        for &part in PlanPart::VARIANTS {
            let [old, new] = [&before, &after].map(|plan| items::write(part, plan));
            if old != new {
                self.rewrite(part, &old, &new);
            }
        }
        if before.status != after.status {
            self.set_front("status", after.status.into_str());
        }
        if before.goal != after.goal
            && let Some(at) = self.heading(PlanPart::Title)
        {
            self.chunks[at].raw = items::title(&after.goal) + self.end;
        }
        true
    }

    /// Prepares the document for writing: completes the front matter and increments the version.
    ///
    /// # Errors
    /// Fails if the document is now too long to be read again. It must then not be written.
    pub fn save(&mut self, now: i64) -> Result<(), PlanDocumentError> {
        let (now, version) = (now.to_string(), self.version().saturating_add(1));
        for (key, value) in [("status", self.status().into_str()), ("createdAt", &now)] {
            if self.front_value(key).is_none() {
                self.set_front(key, value);
            }
        }
        self.set_front("updatedAt", &now);
        self.set_front("version", &version.to_string());
        check_length(self.text().len())
    }

    fn items(&self, part: PlanPart) -> impl Iterator<Item = &str> {
        let is_item = move |chunk: &&Chunk| chunk.is(part, ChunkKind::Item);
        self.chunks.iter().filter(is_item).map(|chunk| &*chunk.raw)
    }

    fn heading(&self, part: PlanPart) -> Option<usize> {
        let mut chunks = self.chunks.iter();
        chunks.position(|chunk| chunk.is(part, ChunkKind::Heading))
    }

    fn front_value(&self, key: &str) -> Option<&str> {
        let mut values = self.front.iter().filter_map(|line| front_line(line, key));
        values.next()
    }

    fn set_front(&mut self, key: &str, value: &str) {
        let line = |text: &str| text.to_owned() + self.end;
        if self.front.is_empty() {
            self.front = ["---", "---", ""].map(line).into();
        }
        let new = line(&format!("{key}: {value}"));
        let mut lines = self.front.iter_mut();
        if let Some(old) = lines.find(|line| front_line(line, key).is_some()) {
            *old = new;
        } else {
            let end = self.front.iter().rposition(|line| line.trim_end() == "---");
            self.front.insert(end.unwrap_or_default(), new);
        }
    }

    /// Replaces the items of a part, and adds its section if it is missing. Preserves items that are unchanged apart
    /// from task numbers, and all other text.
    fn rewrite(&mut self, part: PlanPart, old: &[String], new: &[String]) {
        let start = match self.heading(part) {
            Some(at) => at + 1,
            None if part == PlanPart::Title => return,
            None => self.add_section(part),
        };
        let is_below = |chunk: &&Chunk| chunk.kind != ChunkKind::Heading;
        let length = self.chunks[start..].iter().take_while(is_below).count();
        let mut body: Vec<Chunk> = self.chunks.drain(start..start + length).collect();
        let end = self.end;
        let chunk = |kind, text: &str| Chunk::new(Some(part), kind, text.replace('\n', end) + end);
        let mut nth = 0;
        body.retain_mut(|item| match item.kind {
            ChunkKind::Item => {
                let [was, text] = [old, new].map(|items| items.get(nth));
                nth += 1;
                match text {
                    Some(text) if was != Some(text) => *item = chunk(ChunkKind::Item, text),
                    Some(_) if part == PlanPart::Tasks => item.number(nth),
                    _ => {}
                }
                text.is_some()
            }
            kind => kind != ChunkKind::Placeholder,
        });
        let is_text = |chunk: &Chunk| chunk.kind != ChunkKind::Blank;
        let mut blank = body.split_off(body.iter().rposition(is_text).map_or(0, |at| at + 1));
        for text in new.iter().skip(nth) {
            if !part.is_list() {
                body.push(chunk(ChunkKind::Blank, ""));
            }
            body.push(chunk(ChunkKind::Item, text));
        }
        if new.is_empty() && part != PlanPart::Tasks {
            body.push(chunk(ChunkKind::Placeholder, part.placeholder()));
        }
        if blank.is_empty() && start < self.chunks.len() {
            blank.push(chunk(ChunkKind::Blank, ""));
        }
        body.append(&mut blank);
        self.chunks.splice(start..start, body);
    }

    /// Adds a section after those that precede it in a document. Returns the index below its heading.
    fn add_section(&mut self, part: PlanPart) -> usize {
        let is_before = |chunk: &Chunk| chunk.part.is_some_and(|other| other < part);
        let last = self.chunks.iter().rposition(is_before);
        let mut at = last.map_or(self.chunks.len(), |last| last + 1);
        if at > 0 && self.chunks[at - 1].kind != ChunkKind::Blank {
            let blank = Chunk::new(None, ChunkKind::Blank, self.end.to_owned());
            self.chunks.insert(at, blank);
            at += 1;
        }
        let raw = part.heading().to_owned() + self.end;
        let heading = Chunk::new(Some(part), ChunkKind::Heading, raw);
        self.chunks.insert(at, heading);
        at + 1
    }
}

/// Returns the value of a front matter line with this key.
fn front_line<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    let value = line.strip_prefix(key)?.trim_start().strip_prefix(':')?;
    Some(value.trim())
}

/// Checks the length of a document, in bytes.
///
/// # Errors
/// Fails if the length exceeds 1 MiB, the maximum that can be read.
fn check_length(bytes: usize) -> Result<(), PlanDocumentError> {
    if bytes as u64 > MIB {
        let what = format!("it has {bytes} bytes, more than 1 MiB");
        return Err(PlanDocumentError::Damaged(what));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
