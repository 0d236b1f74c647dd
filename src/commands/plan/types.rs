//! The plan that an agent works from: its goal, criteria, decisions, tasks and log. Plain data.
//!
//! In JSON, field names are in camel case; times are in milliseconds since 1970, UTC.

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use strum::{IntoStaticStr, VariantArray};

use crate::sys::text::one_line;

/// A plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Plan {
    /// The status.
    pub status: PlanStatus,
    /// The goal, in one or more lines; empty if unknown.
    pub goal: String,
    /// The conditions for reaching the goal.
    pub acceptance_criteria: Vec<Criterion>,
    /// Decisions in favour of an option.
    pub decisions_made: Vec<PlanDecision>,
    /// Decisions against an option.
    pub decisions_rejected: Vec<PlanDecision>,
    /// The steps of the latest request, in order of execution.
    pub tasks: Vec<PlanTask>,
    /// The log of the work, latest entry last.
    pub execution_log: Vec<LogEntry>,
    /// Metadata about the plan itself, maintained by the program.
    pub metadata: PlanMetadata,
}

/// The status of a plan.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum PlanStatus {
    /// Not started.
    #[default]
    Planning,
    /// Work has begun.
    InProgress,
    /// Waiting for the user.
    Blocked,
    /// Everything is done.
    Completed,
    /// Abandoned.
    Failed,
}

impl PlanStatus {
    /// Parses the status word at the beginning of a text, ignoring case; an unknown word stands for `Planning`.
    pub(crate) fn of(text: &str) -> Self {
        let text = text.to_lowercase().replace([' ', '-'], "_");
        let mut all = Self::VARIANTS.iter().copied();
        let found = all.find(|status| text.starts_with(status.into_str()));
        found.unwrap_or_default()
    }
}

/// A condition for reaching a goal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Criterion {
    /// The condition. Identifies the criterion, ignoring case and blanks.
    #[serde(deserialize_with = "stated")]
    pub description: String,
    /// `true` if the condition is met.
    #[serde(default)]
    pub completed: bool,
    /// Notes; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

impl Criterion {
    /// Returns the command that alone decides whether the criterion is met, from a note `check: COMMAND` with or
    /// without backticks.
    pub fn check(&self) -> Option<&str> {
        let (name, note) = self.notes.split_once(':')?;
        let text = note.trim();
        let quoted = text
            .strip_prefix('`')
            .and_then(|rest| rest.strip_suffix('`'))
            .filter(|inner| !inner.contains('`'));
        let command = quoted.unwrap_or(text);
        let is_check = name.trim().eq_ignore_ascii_case("check");
        (is_check && !command.is_empty()).then_some(command)
    }

    /// Returns `true` if the criterion has this description, ignoring case and blanks.
    pub fn is(&self, description: &str) -> bool {
        let words = |text: &str| {
            let words: Vec<_> = text.split_whitespace().map(str::to_lowercase).collect();
            words.join(" ")
        };
        words(&self.description) == words(description)
    }
}

/// A decision for or against an option.
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
    /// The time of the decision; a document stores it to the minute.
    #[serde(default)]
    pub timestamp: i64,
}

/// A step of the work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanTask {
    /// The position in the list, counted from 1.
    #[serde(skip_deserializing)]
    pub step: usize,
    /// The work to do.
    #[serde(deserialize_with = "stated")]
    pub description: String,
    /// The tool that the task needs; `analyze` if it needs none.
    #[serde(deserialize_with = "stated")]
    pub tool: String,
    /// The tool's parameters that were known at planning time.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// The status.
    #[serde(default)]
    pub status: PlanTaskStatus,
}

/// The status of a task.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum PlanTaskStatus {
    /// Not started: `[ ]`
    #[default]
    Todo,
    /// In progress: `[~]`
    Active,
    /// Done: `[x]`
    Done,
    /// Failed: `[!]`
    Failed,
    /// Skipped: `[-]`
    Skipped,
}

impl PlanTask {
    /// Returns `true` unless the task is done or skipped.
    pub fn is_open(&self) -> bool {
        !matches!(self.status, PlanTaskStatus::Done | PlanTaskStatus::Skipped)
    }
}

impl PlanTaskStatus {
    /// The marks of all statuses in a checkbox, in the order of the variants.
    const MARKS: [char; 5] = [' ', '~', 'x', '!', '-'];

    /// Returns the mark of the status in a checkbox.
    pub(crate) fn mark(self) -> char {
        Self::MARKS[self as usize]
    }

    /// Parses the mark in a checkbox; an unknown mark stands for `Todo`.
    pub(crate) fn of(mark: char) -> Self {
        if matches!(mark, 'X' | '\u{2713}' | '\u{2714}') {
            return Self::Done;
        }
        let at = Self::MARKS.iter().position(|own| *own == mark);
        Self::VARIANTS[at.unwrap_or_default()]
    }
}

/// A log entry about the work for a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry {
    /// The time; a document stores it to the minute.
    #[serde(default)]
    pub timestamp: i64,
    /// The work, in one line.
    #[serde(deserialize_with = "stated")]
    pub action: String,
    /// The details; may be empty.
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

impl fmt::Display for LogEntry {
    /// Formats the entry as the summary shown to the user, as specified.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools = self.tools_used.join(", ");
        write!(
            f,
            "=== Work Summary ===\nAction: {}\nDetails: {}\nResult: {}\nTools: {tools}",
            self.action, self.details, self.result
        )
    }
}

/// The maximum length of a line of the plan, in characters.
const LONGEST_LINE: usize = 1000;

/// Converts a text to a line of the plan; `None` if it is blank.
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

/// Deserializes a list of texts as single lines, dropping blank ones.
pub(crate) fn lines<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    Ok(texts.iter().filter_map(|text| line(text)).collect())
}

/// Metadata about a plan, maintained by the program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanMetadata {
    /// The time of creation; 0 if unknown.
    pub created_at: i64,
    /// The time of the last save; 0 if unknown.
    pub updated_at: i64,
    /// The number of saves, counted from 1.
    pub version: u64,
}
