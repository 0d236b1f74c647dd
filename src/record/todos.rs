//! An agent's todo list, as the user sees it. Plain data.

use serde::{Deserialize, Serialize};

/// The progress of a todo.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Nothing of it is done.
    #[default]
    Pending,
    /// It is being done; of a list, one at the most.
    InProgress,
    /// It is done.
    Completed,
}

/// Something that is to be done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Todo {
    /// A description in the imperative: `Run the tests`.
    pub content: String,
    /// The todo's progress.
    pub status: TodoStatus,
    /// The same while it is being done: `Running the tests`; `None`: as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_form: Option<String>,
}

impl Todo {
    /// Returns the text to show for it in its present state.
    pub fn shown(&self) -> &str {
        match (&self.active_form, self.status) {
            (Some(active), TodoStatus::InProgress) => active,
            _ => &self.content,
        }
    }
}
