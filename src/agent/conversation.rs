//! What an agent and those it works for have said so far.
//!
//! Plain data. What is sent of it is made by [`Conversation::messages`].

use serde::{Deserialize, Serialize};

use crate::tasks::Task;

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    /// The user, or what stands for one.
    User,
    /// The agent.
    Assistant,
    /// A tool.
    Tool,
}

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// By whom.
    pub role: Speaker,
    /// What.
    pub content: String,
    /// The tool whose result it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

/// What was said so far, and where the work stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// What the user has asked for, in its order.
    pub requests: Vec<String>,
    /// The task list.
    pub tasks: Vec<Task>,
    /// What was said, in its order; the system prompt is no part of it.
    pub history: Vec<Remark>,
}
