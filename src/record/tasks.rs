//! An agent's task list. Plain data, shared by the stages.

use std::fmt;
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::sys::text::regex;

/// The progress of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskStatus {
    /// Not started: `[ ]`
    Pending,
    /// In progress: `[~]`
    InProgress,
    /// Done: `[x]`
    Complete,
}

impl TaskStatus {
    /// Returns the status's sign in a list.
    fn sign(self) -> &'static str {
        match self {
            Self::Pending => "[ ]",
            Self::InProgress => "[~]",
            Self::Complete => "[x]",
        }
    }
}

/// A task on the list, displayed as `[x] Install it`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The task's progress.
    pub status: TaskStatus,
    /// A description of the task, in one line.
    pub text: String,
}

impl Task {
    /// Parses a line such as `[x] Install it`, with or without a bullet or number before it; `None` if it is not a
    /// task. Signs that only some models use are accepted too, so that no task is lost.
    pub fn parse(line: &str) -> Option<Self> {
        let found = TASK.captures(line)?;
        let status = match (found.name("complete"), found.name("active")) {
            (Some(_), _) => TaskStatus::Complete,
            (None, Some(_)) => TaskStatus::InProgress,
            (None, None) => TaskStatus::Pending,
        };
        let text = found.name("text")?.as_str().trim().to_owned();
        (!text.is_empty()).then_some(Self { status, text })
    }
}

/// The pattern of a task. A parenthesis right after the brackets would make it a link.
static TASK: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"^\s*(?:(?:[-*+]+|\d+[.)])\s*)?\[\s*(?:",
        r"(?P<complete>[xXvV+\x{d7}\x{221a}\x{2611}\x{2705}\x{2713}\x{2714}])",
        r"|(?P<active>[-~/>*\x{23f3}\x{1f504}\x{1f6a7}])|[!?\x{2717}\x{2718}\x{274c}]?)\x{fe0f}*\s*\]",
        r"(?P<text>[^(].*)$"
    ))
});

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.status.sign(), self.text)
    }
}
