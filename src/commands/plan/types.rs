//! The plan that an agent keeps: what is to be reached, what was decided, the tasks, and what was done. Plain data;
//! beside it what an agent that works by it is told, uses and keeps.
//!
//! As JSON, a plan has the fields' names in camel case; times are in milliseconds since 1970, UTC.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::sys::text::one_line;

/// A plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Plan {
    /// The status.
    pub status: PlanStatus,
    /// The goal, in one or more lines; "" if it is not known.
    pub goal: String,
    /// The criteria for the goal.
    pub acceptance_criteria: Vec<Criterion>,
    /// Decisions for something.
    pub decisions_made: Vec<PlanDecision>,
    /// Decisions against something.
    pub decisions_rejected: Vec<PlanDecision>,
    /// The steps of the latest request, in the order in which they are to be done.
    pub tasks: Vec<PlanTask>,
    /// The log of the work, the latest entry last.
    pub execution_log: Vec<LogEntry>,
    /// The program's notes about the plan itself.
    pub metadata: PlanMetadata,
}

/// The status of a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// Not begun.
    #[default]
    Planning,
    /// Something was done.
    InProgress,
    /// Waiting for the user.
    Blocked,
    /// All is done.
    Completed,
    /// Given up.
    Failed,
}

impl PlanStatus {
    /// Each status with its word in a document.
    pub(crate) const ALL: [(Self, &str); 5] = [
        (Self::Planning, "planning"),
        (Self::InProgress, "in_progress"),
        (Self::Blocked, "blocked"),
        (Self::Completed, "completed"),
        (Self::Failed, "failed"),
    ];

    /// Its word in a document.
    pub fn word(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The status of the word that a text begins with, in any case; of an unknown one, planning.
    pub(crate) fn of(text: &str) -> Self {
        let text = text.to_lowercase().replace([' ', '-'], "_");
        let mut all = Self::ALL.into_iter();
        let found = all.find(|(_, word)| text.starts_with(word));
        found.map(|(status, _)| status).unwrap_or_default()
    }
}

/// A condition for a goal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Criterion {
    /// The condition. It identifies a criterion, case and blanks aside.
    #[serde(deserialize_with = "stated")]
    pub description: String,
    /// True if it holds.
    #[serde(default)]
    pub completed: bool,
    /// Notes; may be "".
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

impl Criterion {
    /// The command that alone decides whether it holds: that of a note `check: COMMAND`, in backticks or not.
    pub fn check(&self) -> Option<&str> {
        let (name, command) = self.notes.split_once(':')?;
        let command = command.trim();
        let quoted = command
            .strip_prefix('`')
            .and_then(|rest| rest.strip_suffix('`'));
        let command = quoted
            .filter(|inner| !inner.contains('`'))
            .unwrap_or(command);
        let is_check = name.trim().eq_ignore_ascii_case("check");
        (is_check && !command.is_empty()).then_some(command)
    }

    /// Returns `true` if it has this description, ignoring case and blanks.
    pub fn is(&self, description: &str) -> bool {
        let words = |text: &str| {
            let words: Vec<_> = text.split_whitespace().map(str::to_lowercase).collect();
            words.join(" ")
        };
        words(&self.description) == words(description)
    }
}

/// A decision for something or against it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanDecision {
    /// The decision, in one line.
    #[serde(deserialize_with = "stated")]
    pub title: String,
    /// The reason.
    #[serde(deserialize_with = "stated")]
    pub rationale: String,
    /// The alternatives.
    #[serde(
        default,
        deserialize_with = "lines",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub alternatives: Vec<String>,
    /// The time of the decision; a document has it to the minute.
    #[serde(default)]
    pub timestamp: i64,
}

/// A step of the work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanTask {
    /// Its place in the list, from 1 on.
    #[serde(skip_deserializing)]
    pub step: usize,
    /// The work to do.
    #[serde(deserialize_with = "stated")]
    pub description: String,
    /// The tool that it needs; `analyze` where it needs none.
    #[serde(deserialize_with = "stated")]
    pub tool: String,
    /// The tool's parameters, as far as they were known when the plan was made.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// The status.
    #[serde(default)]
    pub status: PlanTaskStatus,
}

/// The status of a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlanTaskStatus {
    /// Not begun yet: `[ ]`
    #[default]
    Todo,
    /// Under way: `[~]`
    Active,
    /// Done: `[x]`
    Done,
    /// Failed: `[!]`
    Failed,
    /// Left out: `[-]`
    Skipped,
}

impl PlanTask {
    /// Returns `true` if it is still to be done.
    pub fn is_open(&self) -> bool {
        !matches!(self.status, PlanTaskStatus::Done | PlanTaskStatus::Skipped)
    }
}

impl PlanTaskStatus {
    /// Each status with its mark in the brackets, and its name, as in JSON.
    const ALL: [(Self, char, &str); 5] = [
        (Self::Todo, ' ', "todo"),
        (Self::Active, '~', "active"),
        (Self::Done, 'x', "done"),
        (Self::Failed, '!', "failed"),
        (Self::Skipped, '-', "skipped"),
    ];

    /// Its name, as in JSON.
    pub fn word(self) -> &'static str {
        Self::ALL[self as usize].2
    }

    /// Its mark in the brackets.
    pub(crate) fn mark(self) -> char {
        Self::ALL[self as usize].1
    }

    /// The status of this mark; of an unknown one, to do.
    pub(crate) fn of(mark: char) -> Self {
        let mark = mark.to_ascii_lowercase();
        let is_done = matches!(mark, '\u{2713}' | '\u{2714}');
        let mark = if is_done { 'x' } else { mark };
        let mut all = Self::ALL.into_iter();
        let found = all.find(|(_, own, _)| *own == mark);
        found.map(|(status, _, _)| status).unwrap_or_default()
    }
}

/// The work for a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry {
    /// The time; a document has it to the minute.
    #[serde(default)]
    pub timestamp: i64,
    /// The work, in one line.
    #[serde(deserialize_with = "stated")]
    pub action: String,
    /// The details; may be "".
    #[serde(
        default,
        deserialize_with = "stated_or_blank",
        skip_serializing_if = "String::is_empty"
    )]
    pub details: String,
    /// The outcome.
    #[serde(deserialize_with = "stated")]
    pub result: String,
    /// The tools that were used.
    #[serde(default, alias = "tools_used", deserialize_with = "lines")]
    pub tools_used: Vec<String>,
}

/// The largest length of a line of the plan, in characters.
const LONGEST_LINE: usize = 1000;

/// A text as a line of the plan; `None` if it is blank.
pub fn line(text: &str) -> Option<String> {
    Some(one_line(text, LONGEST_LINE)).filter(|line| !line.is_empty())
}

fn stated<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    line(&String::deserialize(deserializer)?)
        .ok_or_else(|| Error::custom("a text in the reply is blank, where it is to say something"))
}

fn stated_or_blank<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(line(&String::deserialize(deserializer)?).unwrap_or_default())
}

/// Reads texts as lines, without blank ones.
pub(crate) fn lines<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    Ok(texts.iter().filter_map(|text| line(text)).collect())
}

/// The program's notes about a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanMetadata {
    /// The time of its creation; 0 if unknown.
    pub created_at: i64,
    /// The time of its last save; 0 if unknown.
    pub updated_at: i64,
    /// The number of saves, counted from 1.
    pub version: u64,
}
