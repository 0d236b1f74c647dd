//! The plan as a Markdown file that the user reads, corrects and owns: read by lines, changed by lines. Pure.
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
//! Guarantees that an edit changes only its own lines, all others staying byte by byte, ends of lines and a byte order
//! mark included; that what it has written is read as it was given, less blanks at the ends of lines; and that nothing
//! it is given becomes structure. Times are in milliseconds since 1970, and UTC in the document.

mod editing;
mod layout;
mod reading;
mod text;

use memchr::memchr2;
use serde_json::Value;

use self::layout::{PlanPart, front_matter};
use self::text::{Slot, is_conflict_marker, one_line, with_notes, write, write_list, write_time};
use super::types::{
    Criterion, DONE, LogEntry, Plan, PlanDecision, PlanStatus, PlanTask, PlanTaskStatus,
};
use crate::sys::files::MIB;
use crate::sys::text::BYTE_ORDER_MARK;

/// Why a file is no plan document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanDocumentError {
    /// It is to be repaired or replaced.
    #[error(transparent)]
    Damaged(#[from] DamagedPlan),
    /// The user has not yet resolved a conflict of git's.
    #[error("line {line} is a conflict marker of git")]
    ConflictMarkers {
        /// The first marker's line, from 1 on.
        line: usize,
    },
}

/// What is wrong with a damaged plan document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DamagedPlan {
    /// It has bytes that are no UTF-8.
    #[error("line {line} is not UTF-8")]
    NotUtf8 {
        /// The first such line, from 1 on.
        line: usize,
    },
    /// It has a NUL byte.
    #[error("line {line} has a NUL byte")]
    Nul {
        /// The first such line, from 1 on.
        line: usize,
    },
    /// It is too long.
    #[error("it has {bytes} bytes, more than 1 MiB")]
    TooLong {
        /// How many bytes it has.
        bytes: usize,
    },
    /// Nothing closes the front matter.
    #[error("the front matter never ends: a line `---` is missing")]
    OpenFrontMatter,
    /// It has none of a plan's headings.
    #[error("it has no heading of a plan, like `## Goal`")]
    NoHeading,
}

/// What a model is told that is to mend a damaged plan.
#[must_use]
pub fn retry_prompt(error: &DamagedPlan, now: i64) -> String {
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
    /// The lines, each with its end.
    lines: Vec<String>,
}

const LINE_ENDS: [char; 2] = ['\r', '\n'];

impl PlanDocument {
    /// The document that these bytes are.
    ///
    /// # Errors
    /// When they are none, or one that is being merged.
    pub fn parse(bytes: &[u8]) -> Result<Self, PlanDocumentError> {
        check_length(bytes.len())?;
        let line_of = |at: usize| {
            let before = bytes.iter().take(at);
            before.filter(|byte| **byte == b'\n').count() + 1
        };
        let text = str::from_utf8(bytes).map_err(|error| DamagedPlan::NotUtf8 {
            line: line_of(error.valid_up_to()),
        })?;
        if let Some(at) = text.find('\0') {
            return Err(DamagedPlan::Nul { line: line_of(at) }.into());
        }
        let (mark, text) = match text.strip_prefix(BYTE_ORDER_MARK) {
            Some(text) => (BYTE_ORDER_MARK, text),
            None => ("", text),
        };
        let lines = split(text);
        let document = Self { mark, lines };
        let layout = document.layout();
        let mut lines = layout.lines.iter();
        if let Some(at) = lines.position(|line| is_conflict_marker(line)) {
            return Err(PlanDocumentError::ConflictMarkers { line: at + 1 });
        }
        front_matter(&layout.lines).ok_or(DamagedPlan::OpenFrontMatter)?;
        if layout.sections.iter().all(|section| section.part.is_none()) {
            return Err(DamagedPlan::NoHeading.into());
        }
        Ok(document)
    }

    /// The document of a plan that nobody has made yet.
    #[must_use]
    pub fn empty(now: i64) -> Self {
        let mut document = Self {
            mark: "",
            lines: Vec::new(),
        };
        document.complete(now);
        document
    }

    /// The document of this plan, as if it had just been saved.
    #[cfg(test)]
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        let mut document = Self::empty(plan.metadata.created_at);
        document.set_front("updatedAt", &plan.metadata.updated_at.to_string());
        document.set_front("version", &plan.metadata.version.to_string());
        document.set_status(plan.status);
        document.set_goal(&plan.goal);
        document.add_criteria(&plan.acceptance_criteria);
        document.add_decisions_made(&plan.decisions_made);
        document.add_decisions_rejected(&plan.decisions_rejected);
        document.set_tasks(&plan.tasks);
        document.add_log_entries(&plan.execution_log);
        document
    }

    /// What it says.
    #[must_use]
    pub fn plan(&self) -> Plan {
        self.layout().plan()
    }

    /// The file's content.
    #[must_use]
    pub fn text(&self) -> String {
        let lines = self.lines.iter().map(String::as_str);
        [self.mark].into_iter().chain(lines).collect()
    }

    /// The same with no more than this many entries of the execution log, the latest ones.
    #[must_use]
    pub fn recent(&self, entries: usize) -> String {
        let layout = self.layout();
        let sections = layout.sections(PlanPart::Log);
        let all: Vec<_> = sections
            .flat_map(|section| layout.entries(section))
            .collect();
        let older = &all[..all.len().saturating_sub(entries)];
        let mut text = self.mark.to_owned();
        for (at, line) in self.lines.iter().enumerate() {
            let next = older.partition_point(|entry| entry.end <= at);
            if older.get(next).is_none_or(|entry| at < entry.start) {
                text.push_str(line);
            }
        }
        text
    }

    /// Makes the document ready to be written: adds what is missing, numbers the tasks, and counts the version.
    ///
    /// # Errors
    /// When it has become too long to be read again; it must not be written then.
    pub fn save(&mut self, now: i64) -> Result<(), DamagedPlan> {
        self.complete(now);
        self.number_tasks();
        let version = self.front().metadata().version.saturating_add(1);
        self.set_front("updatedAt", &now.to_string());
        self.set_front("version", &version.to_string());
        self.end_last_line();
        check_length(self.mark.len() + self.lines.iter().map(String::len).sum::<usize>())
    }

    /// Says how far the plan has come.
    pub fn set_status(&mut self, status: PlanStatus) {
        self.complete_body();
        if let Some(place) = self.layout().status_value() {
            self.set_value(place, status.word());
        }
        self.set_front("status", status.word());
    }

    /// Says what is to be reached; "": that is still to be said.
    pub fn set_goal(&mut self, goal: &str) {
        if goal.trim() == self.layout().goal() {
            return;
        }
        self.complete_body();
        let lines = match goal.trim() {
            "" => vec![PlanPart::Goal.placeholder().to_owned()],
            goal => write("", goal, Slot::Goal, ""),
        };
        let old = self.layout().goal_lines();
        self.remove([old.clone()]);
        self.insert_list(old.start, &lines);
        let title = self.first(PlanPart::Title).map(|title| title.heading);
        if let Some(line) = title.and_then(|at| self.lines.get_mut(at)) {
            let end = line.trim_end_matches(LINE_ENDS).len();
            line.replace_range(..end, &title_of(goal));
        }
    }

    /// Adds criteria, but for those that are there.
    pub fn add_criteria(&mut self, criteria: &[Criterion]) {
        let mut known = self.plan().acceptance_criteria;
        let mut lines = Vec::new();
        for criterion in criteria {
            if !known.iter().any(|other| other.is(&criterion.description)) {
                let text = with_notes(&criterion.description, &criterion.notes);
                let mark = if criterion.completed { DONE } else { ' ' };
                lines.extend(write(&format!("- [{mark}] "), &text, Slot::Item, "  "));
                known.push(criterion.clone());
            }
        }
        if lines.is_empty() {
            return;
        }
        self.make_room(PlanPart::Criteria);
        let items = self.layout().items(PlanPart::Criteria, usize::MAX);
        let last = items.last().map(|item| item.range.end);
        self.insert_items(PlanPart::Criteria, last, &lines);
    }

    /// Says that a criterion holds; `false`: there is none that is described so.
    pub fn tick(&mut self, description: &str) -> bool {
        self.set_completed(description, true)
    }

    /// Says that a criterion does not hold; `false`: there is none that is described so.
    pub fn untick(&mut self, description: &str) -> bool {
        self.set_completed(description, false)
    }

    fn set_completed(&mut self, description: &str, completed: bool) -> bool {
        let layout = self.layout();
        let mut criteria = layout.criteria();
        criteria.retain(|(_, criterion)| criterion.is(description));
        let is_there = !criteria.is_empty();
        criteria.retain(|(_, criterion)| criterion.completed != completed);
        let boxes: Vec<_> = criteria.iter().map(|(item, _)| item.box_place()).collect();
        for place in boxes {
            self.set_mark(place, if completed { DONE } else { ' ' });
        }
        is_there
    }

    /// Adds decisions for something.
    pub fn add_decisions_made(&mut self, decisions: &[PlanDecision]) {
        let lines = |decision| decision_lines(decision, "Alternatives considered", "Decided");
        self.add_entries(PlanPart::Made, decisions.iter().map(lines));
    }

    /// Adds decisions against something.
    pub fn add_decisions_rejected(&mut self, decisions: &[PlanDecision]) {
        let lines = |decision| decision_lines(decision, "Alternative", "Rejected");
        self.add_entries(PlanPart::Rejected, decisions.iter().map(lines));
    }

    /// Puts these tasks in the place of the former ones. They are numbered as they stand there; those without a
    /// description are left out.
    pub fn set_tasks(&mut self, tasks: &[PlanTask]) {
        let tasks = tasks
            .iter()
            .filter(|task| !task.description.trim().is_empty());
        let tasks = (1..).zip(tasks);
        let lines: Vec<_> = tasks
            .flat_map(|(step, task)| task_lines(step, task))
            .collect();
        if !lines.is_empty() {
            self.make_room(PlanPart::Tasks);
        }
        let layout = self.layout();
        let old: Vec<_> = layout
            .tasks()
            .into_iter()
            .map(|(item, _)| item.range)
            .collect();
        let start = old.first().map(|range| range.start);
        self.remove(old);
        if !lines.is_empty() {
            self.insert_items(PlanPart::Tasks, start, &lines);
        } else if let Some(section) = self.first(PlanPart::Tasks)
            && self.layout().end_of_text(&section) == section.body.start
        {
            self.lines.drain(section.heading..section.body.end);
        }
    }

    /// Says how far a task has come; `false`: there is none at this place, counted from 1.
    pub fn set_task_status(&mut self, step: usize, status: PlanTaskStatus) -> bool {
        let layout = self.layout();
        let task = layout
            .tasks()
            .into_iter()
            .find(|(_, task)| task.step == step);
        let place = task.map(|(item, _)| item.box_place());
        place
            .map(|place| self.set_mark(place, status.mark()))
            .is_some()
    }

    /// Adds what was done.
    pub fn add_log_entries(&mut self, entries: &[LogEntry]) {
        self.add_entries(PlanPart::Log, entries.iter().map(log_lines));
    }
}

/// The lines of a text with their ends, which are all that Markdown knows.
fn split(mut text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    while !text.is_empty() {
        let end = memchr2(b'\r', b'\n', text.as_bytes());
        let end = end.map_or(text.len(), |at| {
            let is_pair = text[at..].starts_with("\r\n");
            at + 1 + usize::from(is_pair)
        });
        let (line, rest) = text.split_at(end);
        lines.push(line.to_owned());
        text = rest;
    }
    lines
}

/// The title of a plan with this goal.
fn title_of(goal: &str) -> String {
    let first = one_line(goal.trim().lines().next().unwrap_or_default());
    let first = if first.is_empty() {
        PlanPart::Title.placeholder()
    } else {
        &first
    };
    format!("{} {first}", PlanPart::Title.heading())
}

fn decision_lines(decision: &PlanDecision, alternatives: &str, decided: &str) -> Vec<String> {
    let mut lines = vec![format!("### {}", one_line(&decision.title))];
    lines.extend(write(
        "**Rationale:** ",
        &decision.rationale,
        Slot::Field,
        "",
    ));
    if !decision.alternatives.is_empty() {
        let list = write_list(&decision.alternatives);
        lines.extend(write(
            &format!("**{alternatives}:** "),
            &list,
            Slot::Field,
            "",
        ));
    }
    lines.push(format!("**{decided}:** {}", write_time(decision.timestamp)));
    lines
}

fn log_lines(entry: &LogEntry) -> Vec<String> {
    let time = write_time(entry.timestamp);
    let mut lines = vec![format!("### {time} - {}", one_line(&entry.action))];
    if !entry.details.trim().is_empty() {
        lines.extend(write("**Actions:** ", &entry.details, Slot::Field, ""));
    }
    let tools = write_list(&entry.tools_used);
    lines.extend(write("**Tools:** ", &tools, Slot::Field, ""));
    lines.extend(write("**Result:** ", &entry.result, Slot::Field, ""));
    lines
}

fn task_lines(step: usize, task: &PlanTask) -> Vec<String> {
    let head = format!("{step}. [{}] ", task.status.mark());
    let mut lines = write(&head, &task.description, Slot::Item, "   ");
    let tool = match one_line(&task.tool) {
        tool if tool.is_empty() => "analyze".to_owned(),
        tool => tool,
    };
    let params = if task.params.is_empty() {
        String::new()
    } else {
        // In JSON, only texts can hold what ends a comment.
        let json = Value::from(task.params.clone()).to_string();
        json.replace("-->", r"--\u003e")
    };
    lines.push(
        format!("   **Tool:** {tool} {params}")
            .trim_end()
            .to_owned(),
    );
    lines
}

/// # Errors
/// When a document of this length is too long to be read.
fn check_length(bytes: usize) -> Result<(), DamagedPlan> {
    if bytes as u64 > MIB {
        return Err(DamagedPlan::TooLong { bytes });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
