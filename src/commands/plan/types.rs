//! The plan that an agent keeps: what is to be reached, what was decided, the tasks, and what was done. Plain data;
//! beside it what an agent that works by it is told, uses and keeps.
//!
//! As JSON, a plan has the fields' names in camel case; times are in milliseconds since 1970, UTC.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Plan {
    /// How far it has come.
    pub status: PlanStatus,
    /// What is to be reached, in one or more lines; "" as long as nobody has said.
    pub goal: String,
    /// What must hold for the goal to be reached.
    pub acceptance_criteria: Vec<Criterion>,
    /// What was decided.
    pub decisions_made: Vec<PlanDecision>,
    /// What was decided against.
    pub decisions_rejected: Vec<PlanDecision>,
    /// The steps of the latest request, in the order in which they are to be done.
    pub tasks: Vec<PlanTask>,
    /// What was done, the latest last.
    pub execution_log: Vec<LogEntry>,
    /// What the program notes of the plan itself.
    pub metadata: PlanMetadata,
}

/// How far a plan has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// Nothing was done yet.
    #[default]
    Planning,
    /// Something was done.
    InProgress,
    /// It waits for the user.
    Blocked,
    /// All is done.
    Completed,
    /// It was given up.
    Failed,
}

impl PlanStatus {
    pub(crate) const ALL: [Self; 5] = [
        Self::Planning,
        Self::InProgress,
        Self::Blocked,
        Self::Completed,
        Self::Failed,
    ];

    /// Its word in a document.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Planning => "planning",
            Self::InProgress => "in_progress",
            Self::Blocked => "blocked",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    /// The status of this word, in any case; of an unknown one, planning.
    pub(crate) fn of(word: &str) -> Self {
        let word = word.to_lowercase().replace([' ', '-'], "_");
        let mut all = Self::ALL.into_iter();
        all.find(|status| status.word() == word).unwrap_or_default()
    }
}

/// What must hold for a goal to be reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Criterion {
    /// What must hold. Criteria are told apart by it, case and blanks aside.
    pub description: String,
    /// Whether it holds.
    #[serde(default)]
    pub completed: bool,
    /// What else is to be said about it; may be "".
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

impl Criterion {
    /// The command that alone decides whether it holds: that of a note `check: COMMAND`, in backticks or not.
    #[must_use]
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

    /// Whether it is the one that is described so, case and blanks aside.
    #[must_use]
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
    /// What was decided, in one line.
    pub title: String,
    /// Why.
    pub rationale: String,
    /// What could be done instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<String>,
    /// When it was decided; a document knows it to the minute.
    #[serde(default)]
    pub timestamp: i64,
}

/// A step of the work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanTask {
    /// Its place in the list, from 1 on.
    pub step: usize,
    /// What is to be done.
    pub description: String,
    /// The tool that it needs; `analyze` where it needs none.
    pub tool: String,
    /// What the tool is to be given, as far as that was known when the plan was made.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// How far it has come.
    #[serde(default)]
    pub status: PlanTaskStatus,
}

/// How far a task has come.
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
    /// Whether it is still to be done.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !matches!(self.status, PlanTaskStatus::Done | PlanTaskStatus::Skipped)
    }
}

impl PlanTaskStatus {
    /// Its name, as in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Todo => "todo",
            Self::Active => "active",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }

    /// Its mark in the brackets.
    pub(crate) fn mark(self) -> char {
        match self {
            Self::Todo => ' ',
            Self::Active => '~',
            Self::Done => DONE,
            Self::Failed => '!',
            Self::Skipped => '-',
        }
    }

    /// The status of this mark; of an unknown one, to do.
    pub(crate) fn of(mark: char) -> Self {
        let others = [Self::Active, Self::Failed, Self::Skipped];
        match others.into_iter().find(|status| status.mark() == mark) {
            Some(status) => status,
            None if is_done(mark) => Self::Done,
            None => Self::Todo,
        }
    }
}

/// The mark that is written for what is done.
pub(crate) const DONE: char = 'x';

/// Whether a mark in brackets says that something is done.
pub(crate) fn is_done(mark: char) -> bool {
    matches!(mark, DONE | 'X' | '\u{2713}' | '\u{2714}')
}

/// What was done for a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry {
    /// When it was done; a document knows it to the minute.
    pub timestamp: i64,
    /// What was done, in one line.
    pub action: String,
    /// What was done in detail; may be "".
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub details: String,
    /// What came of it.
    pub result: String,
    /// The tools that were used.
    pub tools_used: Vec<String>,
}

/// What the program notes of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanMetadata {
    /// When it was made; 0 where that is not known.
    pub created_at: i64,
    /// When it was saved last; 0 where that is not known.
    pub updated_at: i64,
    /// How often it was saved, from 1 on.
    pub version: u64,
}

impl Default for PlanMetadata {
    fn default() -> Self {
        Self {
            created_at: 0,
            updated_at: 0,
            version: 1,
        }
    }
}
