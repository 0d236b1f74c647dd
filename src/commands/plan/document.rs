//! The plan as a Markdown file that the user reads, corrects and owns. Pure.
//!
//! ```text
//! ---                         front matter: status, createdAt, updatedAt, version
//! # Plan: …                   the goal's first line
//! **Status:** in_progress     counts more than that of the front matter
//! ## Goal                     any lines
//! ## Acceptance Criteria      `- [x] description *(notes)*`
//! ## Decisions Made           `### title`, `**Rationale:**`, `**Alternatives considered:**`, `**Decided:**`
//! ## Decisions Rejected       `### title`, `**Rationale:**`, `**Alternative:**`, `**Rejected:**`
//! ## Tasks                    `1. [ ] description` and `**Tool:** name {…}`, only where there are tasks
//! ## Execution Log            `### time - action`, `**Actions:**`, `**Tools:**`, `**Result:**`
//! ```
//!
//! Guarantees that what an edit does not change stays byte for byte, line ends and a byte order mark included; that
//! what it changes is in normal form, all but the goal in one line; and that no text becomes structure. Times are in
//! milliseconds since 1970, and UTC in the document.

mod items;
mod sections;
mod text;

use self::sections::{Chunk, ChunkKind, PlanPart, Section, front_matter, sections, status};
use self::text::{is_conflict_marker, one_line};
use super::types::{Plan, PlanMetadata, PlanStatus};
use crate::sys::files::MIB;
use crate::sys::text::BYTE_ORDER_MARK;

/// Errors from reading a plan document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanDocumentError {
    /// The user has not yet resolved a merge conflict. Holds the line of the first marker, counted from 1.
    #[error("line {0} is a conflict marker of git")]
    ConflictMarkers(usize),
    /// None of a plan's headings is there: the document is something else, or damaged.
    #[error("it has no heading of a plan, like `## Goal`")]
    NoHeading,
    /// The document must be repaired or replaced. Holds what is wrong with it.
    #[error("{0}")]
    Damaged(String),
}

/// The prompt for a model that repairs a damaged plan.
#[must_use]
pub fn retry_prompt(error: &PlanDocumentError, now: i64) -> String {
    include_str!("../../../prompts/plan_retry.txt")
        .trim_end()
        .replace("{error}", &error.to_string())
        .replace("{now}", &now.to_string())
}

/// A plan as its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanDocument {
    /// The byte order mark, or "".
    mark: &'static str,
    /// The line end for what is written.
    end: &'static str,
    /// The front matter.
    front: String,
    /// The sections; the first one has no heading, unless it is the title's.
    sections: Vec<Section>,
}

impl PlanDocument {
    /// Reads a document.
    ///
    /// # Errors
    /// If the bytes are not a plan, or have conflict markers.
    pub fn parse(bytes: &[u8]) -> Result<Self, PlanDocumentError> {
        check_length(bytes.len())?;
        let damaged = |at: usize, what| {
            let before = bytes.iter().take(at);
            let line = before.filter(|byte| **byte == b'\n').count() + 1;
            PlanDocumentError::Damaged(format!("line {line} {what}"))
        };
        let text =
            str::from_utf8(bytes).map_err(|error| damaged(error.valid_up_to(), "is not UTF-8"))?;
        if let Some(at) = text.find('\0') {
            return Err(damaged(at, "has a NUL byte"));
        }
        if let Some(at) = text.lines().position(is_conflict_marker) {
            return Err(PlanDocumentError::ConflictMarkers(at + 1));
        }
        let (mark, text) = match text.strip_prefix(BYTE_ORDER_MARK) {
            Some(text) => (BYTE_ORDER_MARK, text),
            None => ("", text),
        };
        let front = front_matter(text).ok_or_else(|| {
            let what = "the front matter never ends: a line `---` is missing";
            PlanDocumentError::Damaged(what.to_owned())
        })?;
        let sections = sections(&text[front.len()..]);
        if sections[1..].iter().all(|section| section.part.is_none()) {
            return Err(PlanDocumentError::NoHeading);
        }
        let first = text.split_inclusive('\n').next();
        let is_crlf = first.is_some_and(|line| line.ends_with("\r\n"));
        Ok(Self {
            mark,
            end: if is_crlf { "\r\n" } else { "\n" },
            front: front.to_owned(),
            sections,
        })
    }

    /// The document of a new plan.
    #[must_use]
    pub fn empty(now: i64) -> Self {
        let mut document = Self {
            mark: "",
            end: "\n",
            front: String::new(),
            sections: sections(include_str!("document/empty.md")),
        };
        document.complete_front(now);
        document
    }

    /// Reads the plan that the document says.
    #[must_use]
    pub fn plan(&self) -> Plan {
        let number = |key| self.front_value(key).and_then(|text| text.parse().ok());
        let saved = number("updatedAt").unwrap_or_default();
        let decisions = |part| {
            let entries = self.items(part);
            entries.map(|entry| items::decision(entry, saved)).collect()
        };
        let log = self.items(PlanPart::Log);
        let criteria = self.items(PlanPart::Criteria);
        let tasks = (1..).zip(self.items(PlanPart::Tasks));
        Plan {
            status: self.status(),
            goal: items::goal(self.of_part(PlanPart::Goal)),
            acceptance_criteria: criteria.map(items::criterion).collect(),
            decisions_made: decisions(PlanPart::Made),
            decisions_rejected: decisions(PlanPart::Rejected),
            tasks: tasks.map(|(step, item)| items::task(step, item)).collect(),
            execution_log: log.map(|entry| items::log_entry(entry, saved)).collect(),
            metadata: PlanMetadata {
                created_at: number("createdAt").unwrap_or_default(),
                updated_at: saved,
                version: self.version(),
            },
        }
    }

    fn version(&self) -> u64 {
        let version = self.front_value("version");
        version.and_then(|text| text.parse().ok()).unwrap_or(1)
    }

    /// The status below the title counts more than that of the front matter.
    fn status(&self) -> PlanStatus {
        let below = self.items(PlanPart::Title).find_map(status);
        below
            .or_else(|| self.front_value("status").map(PlanStatus::of))
            .unwrap_or_default()
    }

    /// The file's content.
    #[must_use]
    pub fn text(&self) -> String {
        let front = [self.mark, &self.front].into_iter();
        let sections = self.sections.iter().flat_map(Section::text);
        front.chain(sections).collect()
    }

    /// The document with only the latest `entries` of the execution log.
    #[must_use]
    pub fn recent(&self, entries: usize) -> String {
        let mut recent = self.clone();
        recent.edit(|plan| {
            let log = &mut plan.execution_log;
            log.drain(..log.len().saturating_sub(entries));
        });
        recent.text()
    }

    /// Changes the plan in the document; `false` if nothing has changed. The metadata are left to [`save`](Self::save).
    pub fn edit(&mut self, change: impl FnOnce(&mut Plan)) -> bool {
        let before = self.plan();
        let mut after = before.clone();
        change(&mut after);
        if after == before {
            return false;
        }
        self.end_last_line();
        for part in PlanPart::all() {
            let [old, new] = [&before, &after].map(|plan| items::write(part, plan));
            if old != new {
                self.rewrite(part, &old, &new);
            }
        }
        if before.status != after.status {
            self.set_front("status", after.status.word());
        }
        if before.goal != after.goal {
            let title = title_of(&after.goal) + self.end;
            let mut sections = self.of_part_mut(PlanPart::Title);
            if let Some(section) = sections.find(|section| !section.heading.is_empty()) {
                section.heading = title;
            }
        }
        true
    }

    /// Prepares the document for being written: completes the front matter, numbers the tasks, and counts the version.
    ///
    /// # Errors
    /// If it has become too long to be read again; it must not be written then.
    pub fn save(&mut self, now: i64) -> Result<(), PlanDocumentError> {
        self.complete_front(now);
        self.end_last_line();
        let sections = self.of_part_mut(PlanPart::Tasks);
        let tasks = sections.flat_map(|section| &mut section.chunks);
        for (task, step) in tasks.filter(|chunk| chunk.kind == ChunkKind::Item).zip(1..) {
            items::number(&mut task.raw, step);
        }
        let version = self.version().saturating_add(1);
        self.set_front("updatedAt", &now.to_string());
        self.set_front("version", &version.to_string());
        check_length(self.text().len())
    }

    fn of_part(&self, part: PlanPart) -> impl Iterator<Item = &Section> {
        let sections = self.sections.iter();
        sections.filter(move |section| section.part == Some(part))
    }

    fn of_part_mut(&mut self, part: PlanPart) -> impl Iterator<Item = &mut Section> {
        let sections = self.sections.iter_mut();
        sections.filter(move |section| section.part == Some(part))
    }

    fn items(&self, part: PlanPart) -> impl Iterator<Item = &str> {
        self.of_part(part).flat_map(Section::items)
    }

    /// A value of the front matter, without quotes and without a comment behind it.
    fn front_value(&self, key: &str) -> Option<&str> {
        let mut values = self.front.lines().filter_map(|line| front_line(line, key));
        let value = values.next()?.split(" #").next()?;
        Some(value.trim().trim_matches(['"', '\'']))
    }

    /// Sets a value of the front matter.
    fn set_front(&mut self, key: &str, value: &str) {
        if self.front_value(key) == Some(value) {
            return;
        }
        if self.front.is_empty() {
            self.front = "---\n---\n\n".replace('\n', self.end);
        }
        let line = format!("{key}: {value}{}", self.end);
        let mut lines: Vec<&str> = self.front.split_inclusive('\n').collect();
        let known = lines
            .iter()
            .position(|line| front_line(line, key).is_some());
        let end = lines.iter().rposition(|line| line.trim_end() == "---");
        let at = known.or(end).unwrap_or_default();
        lines.splice(at..at + usize::from(known.is_some()), [&*line]);
        self.front = lines.concat();
    }

    /// Adds the missing values of the front matter.
    fn complete_front(&mut self, now: i64) {
        let now = now.to_string();
        let status = self.status().word();
        for (key, value) in [
            ("status", status),
            ("createdAt", &now),
            ("updatedAt", &now),
            ("version", "1"),
        ] {
            if self.front_value(key).is_none() {
                self.set_front(key, value);
            }
        }
    }

    fn end_last_line(&mut self) {
        let end = self.end;
        let last = self.sections.iter_mut().rev().find_map(Section::last_line);
        if let Some(last) = last.filter(|last| !last.ends_with('\n')) {
            last.push_str(end);
        }
    }

    /// Puts the items of a part in the place of the former ones, and adds the part where it is missing.
    fn rewrite(&mut self, part: PlanPart, old: &[String], new: &[String]) {
        if self.of_part(part).next().is_none() {
            self.add_section(part);
        }
        let (mut nth, end) = (0, self.end);
        for section in self.of_part_mut(part) {
            section.chunks.retain_mut(|chunk| match chunk.kind {
                ChunkKind::Item => {
                    if let (Some(old), Some(new)) = (old.get(nth), new.get(nth))
                        && old != new
                    {
                        chunk.raw = items::rewritten(part, &chunk.raw, old, new, end);
                    }
                    nth += 1;
                    nth <= new.len()
                }
                kind => kind != ChunkKind::Placeholder,
            });
            let is_double = |next: &mut Chunk, last: &mut Chunk| next.is_blank() && last.is_blank();
            section.chunks.dedup_by(is_double);
        }
        let has_items =
            |section: &Section| section.part == Some(part) && section.items().next().is_some();
        let last = self.sections.iter().rposition(has_items);
        let first = || self.sections.iter().position(|section| section.is(part));
        let Some(at) = last.or_else(first) else {
            return;
        };
        let section = &mut self.sections[at];
        if new.is_empty() {
            let placeholder = part.placeholder().to_owned();
            section.append(ChunkKind::Placeholder, &[placeholder], end);
        } else if let Some(more) = new.get(nth..) {
            section.append(ChunkKind::Item, more, end);
        }
        self.separate(at);
        // A list of tasks is there only where there are tasks.
        let is_over =
            |section: &Section| new.is_empty() && section.is(PlanPart::Tasks) && section.is_blank();
        self.sections.retain(|section| !is_over(section));
    }

    /// Adds a section behind those that stand before it.
    fn add_section(&mut self, part: PlanPart) {
        let before = self.sections.iter().filter_map(|section| section.part);
        let before = before.filter(|other| *other < part).max();
        let last = self
            .sections
            .iter()
            .rposition(|section| section.part == before);
        let at = last.map_or(self.sections.len(), |last| last + 1);
        let section = Section {
            part: Some(part),
            heading: part.heading().to_owned() + self.end,
            chunks: Vec::new(),
        };
        self.sections.insert(at, section);
        self.separate(at - 1);
    }

    /// Ends a section that another one follows with a blank line.
    fn separate(&mut self, at: usize) {
        let is_last = at + 1 == self.sections.len();
        let section = &mut self.sections[at];
        let is_separate = section
            .chunks
            .last()
            .map_or(section.heading.is_empty(), Chunk::is_blank);
        if !is_last && !is_separate {
            section
                .chunks
                .push(Chunk::new(ChunkKind::Blank, self.end.to_owned()));
        }
    }
}

/// The text behind the colon of a line of the front matter with this key.
fn front_line<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    line.strip_prefix(key)?.trim_start().strip_prefix(':')
}

/// The title of a plan with this goal.
fn title_of(goal: &str) -> String {
    let title = one_line(goal.trim().lines().next().unwrap_or_default());
    let title = if title.is_empty() {
        PlanPart::Title.placeholder()
    } else {
        &title
    };
    format!("{} {title}", PlanPart::Title.heading())
}

/// # Errors
/// If a document of this length is too long to be read.
fn check_length(bytes: usize) -> Result<(), PlanDocumentError> {
    if bytes as u64 > MIB {
        let what = format!("it has {bytes} bytes, more than 1 MiB");
        return Err(PlanDocumentError::Damaged(what));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
