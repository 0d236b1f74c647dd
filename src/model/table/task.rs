//! The tasks that `models.json` selects models for. Plain data.

use serde::Serialize;

use crate::model::Purpose;

/// A task that a model is selected for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskType {
    /// A commit's first query.
    Commit,
    /// A commit's repair.
    Repair,
    /// The consistency report.
    Consistency,
    /// The plan agent's list of steps.
    Planning,
    /// The steps of the plan agent; not those of `dev`.
    Coding,
    /// The plan agent's summary of what was done.
    Summarization,
    /// The plan agent's format knows it; nothing is asked for it.
    Architecture,
    /// The same.
    Refactoring,
}

impl TaskType {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Commit,
        Self::Repair,
        Self::Consistency,
        Self::Planning,
        Self::Coding,
        Self::Summarization,
        Self::Architecture,
        Self::Refactoring,
    ];

    /// Returns the purpose of that task's calls, if it belongs to the commit workflow or its report.
    pub fn workflows_purpose(self) -> Option<Purpose> {
        match self {
            Self::Commit => Some(Purpose::INITIAL),
            Self::Repair => Some(Purpose::REPAIR),
            Self::Consistency => Some(Purpose::REPORT),
            _ => None,
        }
    }

    /// The task of the commit workflow and its report that a model is called for so.
    pub fn of_workflow(purpose: &Purpose) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|task| task.workflows_purpose().as_ref() == Some(purpose))
    }

    /// Its name in `byTaskType`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Repair => "repair",
            Self::Consistency => "consistency",
            Self::Planning => "planning",
            Self::Coding => "coding",
            Self::Summarization => "summarization",
            Self::Architecture => "architecture",
            Self::Refactoring => "refactoring",
        }
    }
}
