//! An agent's task list. Plain data that stages share.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How far a task has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskStatus {
    /// `[ ]`
    Pending,
    /// `[~]`
    InProgress,
    /// `[x]`
    Complete,
}

impl TaskStatus {
    /// Its sign in a list.
    fn sign(self) -> &'static str {
        match self {
            Self::Pending => "[ ]",
            Self::InProgress => "[~]",
            Self::Complete => "[x]",
        }
    }
}

/// A task of the list. Shown as in a list: `[x] Install it`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// How far it has come.
    pub status: TaskStatus,
    /// What is to be done, in one line.
    pub text: String,
}

impl Task {
    /// The task of a line like `[x] Install it`, a list's sign before it or not; `None` where it is none.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let line = line.trim().trim_start_matches(['-', '*']).trim_start();
        let known = [
            TaskStatus::Pending,
            TaskStatus::InProgress,
            TaskStatus::Complete,
        ];
        known.into_iter().find_map(|status| {
            let text = line.strip_prefix(status.sign())?.trim();
            let text = text.to_owned();
            (!text.is_empty()).then_some(Self { status, text })
        })
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.status.sign(), self.text)
    }
}
