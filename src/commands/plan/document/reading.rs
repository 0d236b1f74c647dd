//! What a plan document says. Pure.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Map;

use super::layout::{LineRole, ListItem, PlanLayout, PlanPart};
use super::text::{Slot, field, is_placeholder, read, read_list, read_time, split_notes};
use crate::commands::plan::types::{
    Criterion, LogEntry, Plan, PlanDecision, PlanMetadata, PlanStatus, PlanTask, PlanTaskStatus,
    is_done,
};
use crate::sys::text::regex;

/// A line of the front matter: its value with the blanks before it, and without a comment behind it.
static FRONT: LazyLock<Regex> = LazyLock::new(|| regex(r"^[A-Za-z]+\s*:(\s*?.*?)(?:\s+#.*)?\s*$"));

/// The line of the status: its word with the blanks before it.
static STATUS: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^(?i)\s*\*\*Status(?::\*\*|\*\*\s*:)(\s*(?:in[\x20_-]progress|\w*))"));

/// Where a value stands: its line, and its bytes there, the blanks before it included.
pub type ValuePlace = (usize, Range<usize>);

impl PlanLayout<'_> {
    /// The whole plan.
    pub fn plan(&self) -> Plan {
        let metadata = self.metadata();
        Plan {
            status: self.status(),
            goal: self.goal(),
            acceptance_criteria: self
                .criteria()
                .into_iter()
                .map(|(_, found)| found)
                .collect(),
            decisions_made: self.decisions(PlanPart::Made, metadata.updated_at),
            decisions_rejected: self.decisions(PlanPart::Rejected, metadata.updated_at),
            tasks: self.tasks().into_iter().map(|(_, task)| task).collect(),
            execution_log: self.log(metadata.updated_at),
            metadata,
        }
    }

    /// Where a value of the front matter stands.
    pub fn front_value(&self, key: &str) -> Option<ValuePlace> {
        let mut lines = self.front.clone().map(|at| (at, self.lines[at]));
        let (at, line) = lines.find(|(_, line)| {
            let rest = line.strip_prefix(key);
            rest.is_some_and(|rest| rest.trim_start().starts_with(':'))
        })?;
        Some((at, FRONT.captures(line)?.get(1)?.range()))
    }

    /// A value of the front matter, less quotes.
    fn front_text(&self, key: &str) -> Option<&str> {
        let (at, value) = self.front_value(key)?;
        Some(self.lines[at][value].trim().trim_matches(['"', '\'']))
    }

    /// What the front matter notes.
    pub fn metadata(&self) -> PlanMetadata {
        let time = |key| self.front_text(key).and_then(|text| text.parse().ok());
        let version = self
            .front_text("version")
            .and_then(|text| text.parse().ok());
        let default = PlanMetadata::default();
        PlanMetadata {
            created_at: time("createdAt").unwrap_or(default.created_at),
            updated_at: time("updatedAt").unwrap_or(default.updated_at),
            version: version.unwrap_or(default.version),
        }
    }

    /// Where the status stands: above the sections, or below the title.
    pub fn status_value(&self) -> Option<ValuePlace> {
        let mut sections = self.sections.iter().map(|section| section.heading);
        let first = sections.find(|at| self.lines[*at].starts_with("##"));
        let end = first.unwrap_or(self.lines.len());
        let title = self.sections(PlanPart::Title).next();
        let below = title.map(|title| title.body.clone()).unwrap_or_default();
        let mut lines = (self.front.end..end)
            .chain(below)
            .filter(|at| self.is_text(*at));
        lines.find_map(|at| Some((at, STATUS.captures(self.lines[at])?.get(1)?.range())))
    }

    /// That of the text counts more than that of the front matter.
    pub fn status(&self) -> PlanStatus {
        let place = self.status_value();
        let word = place.map(|(at, value)| self.lines[at][value].trim());
        let word = word.or_else(|| self.front_text("status"));
        word.map_or(PlanStatus::default(), PlanStatus::of)
    }

    /// The lines that the goal stands in, and comments.
    pub fn goal_lines(&self) -> Range<usize> {
        let Some(section) = self.sections(PlanPart::Goal).next() else {
            return 0..0;
        };
        let is_text =
            |at: &usize| self.roles[*at] != LineRole::Comment && !self.lines[*at].trim().is_empty();
        let mut lines = section.body.clone().filter(is_text);
        match lines.next() {
            Some(first) => first..lines.next_back().unwrap_or(first) + 1,
            None => section.body.start..section.body.start,
        }
    }

    /// The goal, less comments and what says that there is none yet.
    pub fn goal(&self) -> String {
        let lines = self.goal_lines().filter_map(|at| match self.roles[at] {
            LineRole::Comment => None,
            LineRole::Code => Some(self.lines[at]),
            LineRole::Plain if is_placeholder(self.lines[at]) => None,
            LineRole::Plain => Some(Slot::Goal.unescape(self.lines[at].trim_end())),
        });
        read(&lines.collect::<Vec<_>>())
    }

    /// The criteria, each with its item.
    pub fn criteria(&self) -> Vec<(ListItem<'_>, Criterion)> {
        let items = self.items(PlanPart::Criteria, usize::MAX).into_iter();
        let items = items.filter(|item| !is_placeholder(item.text[0]));
        let criteria = items.map(|item| {
            let (description, notes) = split_notes(&item_text(&item.text));
            let completed = is_done(item.mark);
            let criterion = Criterion {
                description,
                completed,
                notes,
            };
            (item, criterion)
        });
        criteria
            .filter(|(_, criterion)| !criterion.description.is_empty())
            .collect()
    }

    /// The tasks, each with its item, numbered as they stand there. Lists below them are part of them.
    pub fn tasks(&self) -> Vec<(ListItem<'_>, PlanTask)> {
        let items = self.items(PlanPart::Tasks, 1).into_iter();
        let items = items.filter(|item| !item.text[0].is_empty());
        let tasks = (1..).zip(items).map(|(step, item)| {
            let is_tool = |line: &&str| field(line).is_some_and(|(name, _)| name == "tool");
            let tool = item.text.iter().skip(1).position(is_tool);
            let text_end = tool.map_or(item.text.len(), |at| at + 1);
            let tool = tool.and_then(|at| field(item.text[at + 1]));
            let (tool, params) = tool.map_or(("", ""), |(_, text)| {
                text.split_once(char::is_whitespace).unwrap_or((text, ""))
            });
            let tool = tool.trim_matches('`');
            let task = PlanTask {
                step,
                description: item_text(&item.text[..text_end]),
                tool: if tool.is_empty() { "analyze" } else { tool }.to_owned(),
                params: serde_json::from_str(params).unwrap_or(Map::new()),
                status: PlanTaskStatus::of(item.mark),
            };
            (item, task)
        });
        tasks.collect()
    }

    fn decisions(&self, part: PlanPart, saved: i64) -> Vec<PlanDecision> {
        let entries = self.titled(part).map(|(title, fields)| PlanDecision {
            title,
            rationale: fields.text(&["rationale"]),
            alternatives: read_list(&fields.text(&["alternative"])),
            timestamp: read_time(&fields.text(&["decided", "rejected"]))
                .map_or(saved, |(time, _)| time),
        });
        entries.filter(|entry| !entry.title.is_empty()).collect()
    }

    fn log(&self, saved: i64) -> Vec<LogEntry> {
        let entries = self.titled(PlanPart::Log).map(|(title, fields)| {
            let (timestamp, action) = read_time(&title).unwrap_or((saved, &title));
            LogEntry {
                timestamp,
                action: action.to_owned(),
                details: fields.text(&["actions", "details"]),
                result: fields.text(&["result"]),
                tools_used: read_list(&fields.text(&["tools"])),
            }
        });
        entries.collect()
    }

    /// The title and the fields of each entry of a part.
    fn titled(&self, part: PlanPart) -> impl Iterator<Item = (String, Fields)> {
        let entries = self
            .sections(part)
            .flat_map(|section| self.entries(section));
        entries.map(|entry| {
            let title = self.lines[entry.start].trim_start_matches('#').trim();
            (read(&[title]), self.fields(entry.start + 1..entry.end))
        })
    }

    /// The fields in these lines. Each goes on to the next one, or to a blank line.
    fn fields(&self, lines: Range<usize>) -> Fields {
        let mut fields: Vec<(String, Vec<&str>)> = Vec::new();
        let mut is_open = false;
        for at in lines {
            if !self.is_text(at) {
                is_open &= self.roles[at] == LineRole::Comment;
                continue;
            }
            let line = self.lines[at].trim();
            match (field(line), fields.last_mut()) {
                (Some((name, text)), _) => {
                    fields.push((name, vec![Slot::Rest.unescape(text)]));
                    is_open = true;
                }
                (None, Some((_, text))) if is_open => text.push(Slot::Field.unescape(line)),
                _ => {}
            }
        }
        let fields = fields.into_iter().map(|(name, text)| (name, read(&text)));
        Fields(fields.collect())
    }
}

/// The fields of an entry, by their names in lower case.
struct Fields(Vec<(String, String)>);

impl Fields {
    /// The text of the first field whose name begins with one of these; "" where there is none.
    fn text(&self, names: &[&str]) -> String {
        let mut fields = self.0.iter();
        let found = fields.find(|(name, _)| names.iter().any(|own| name.starts_with(own)));
        found.map(|(_, text)| text.clone()).unwrap_or_default()
    }
}

/// The text of an item's lines.
fn item_text(lines: &[&str]) -> String {
    let (first, others) = lines.split_first().unwrap_or((&"", &[]));
    let first = [Slot::Rest.unescape(first)];
    let others = others.iter().map(|line| Slot::Item.unescape(line));
    read(&first.into_iter().chain(others).collect::<Vec<_>>())
}
