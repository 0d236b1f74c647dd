//! The tasks that `models.json` selects models for. Plain data.

use serde::Serialize;

use crate::model::Purpose;

/// A task that a model is selected for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskType {
    /// The first query of a commit.
    Commit,
    /// A repair query of a commit.
    Repair,
    /// The consistency report.
    Consistency,
    /// The plan agent's list of steps.
    Planning,
    /// The steps of the plan agent, but not those of `dev`.
    Coding,
    /// The plan agent's summary of its work.
    Summarization,
    /// Part of the plan agent's format; no call is made for it.
    Architecture,
    /// Part of the plan agent's format; no call is made for it.
    Refactoring,
}

impl TaskType {
    /// All tasks, with their names in `byTaskType`.
    pub const ALL: [(&'static str, Self); 8] = [
        ("commit", Self::Commit),
        ("repair", Self::Repair),
        ("consistency", Self::Consistency),
        ("planning", Self::Planning),
        ("coding", Self::Coding),
        ("summarization", Self::Summarization),
        ("architecture", Self::Architecture),
        ("refactoring", Self::Refactoring),
    ];

    /// Returns the purpose of the task's calls, if it belongs to the commit workflow or its report.
    pub fn workflows_purpose(self) -> Option<Purpose> {
        match self {
            Self::Commit => Some(Purpose::INITIAL),
            Self::Repair => Some(Purpose::REPAIR),
            Self::Consistency => Some(Purpose::REPORT),
            _ => None,
        }
    }

    /// Returns the task of calls with this purpose, if it belongs to the commit workflow or its report.
    pub fn of_workflow(purpose: &Purpose) -> Option<Self> {
        let mut all = Self::ALL.into_iter().map(|(_, task)| task);
        all.find(|task| task.workflows_purpose().as_ref() == Some(purpose))
    }

    /// Returns the task's name in `byTaskType`.
    pub fn word(self) -> &'static str {
        Self::ALL[self as usize].0
    }
}
