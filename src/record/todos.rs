//! An agent's todo list, as the user sees it. Plain data.

use serde::{Deserialize, Serialize};

use super::tasks::{Task, TaskStatus};

/// The progress of a todo.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// The work has not started.
    #[default]
    Pending,
    /// The work is in progress; at most one todo on a list is.
    InProgress,
    /// The work is done.
    Completed,
}

/// A todo on the list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Todo {
    /// A description in the imperative: `Run the tests`.
    pub content: String,
    /// The todo's progress.
    pub status: TodoStatus,
    /// The description while it is in progress: `Running the tests`; `None`: `content`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_form: Option<String>,
}

impl From<&Task> for Todo {
    fn from(task: &Task) -> Self {
        Self {
            content: task.text.clone(),
            status: match task.status {
                TaskStatus::Pending => TodoStatus::Pending,
                TaskStatus::InProgress => TodoStatus::InProgress,
                TaskStatus::Complete => TodoStatus::Completed,
            },
            active_form: None,
        }
    }
}

impl Todo {
    /// Returns the description to show in its current state.
    pub fn shown(&self) -> &str {
        match (&self.active_form, self.status) {
            (Some(active), TodoStatus::InProgress) => active,
            _ => &self.content,
        }
    }
}
