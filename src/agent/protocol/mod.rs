//! How a reply names a tool, and how tools are described to a model.
//!
//! Pure. One file a protocol: [`markdown`] is the one of `# Agent Response`.

pub mod markdown;

use crate::model::Reply;
use crate::record::tasks::Task;

use super::tool::{ToolCall, Toolbox};

/// What a reply says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// What the agent says of the state of things; may be blank.
    pub thoughts: String,
    /// The whole task list, where the reply has one.
    pub tasks: Option<Vec<Task>>,
    /// What the agent does next.
    pub decision: Decision,
    /// What of the reply goes into the history. Read once more, it names the same tools, so that a session that
    /// was cut short can be taken up.
    pub remembered: String,
    /// What the model is to be told of the reply besides what comes of it: that a part of it was passed over.
    pub note: Option<String>,
}

/// What an agent does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It uses a tool, and then these others, in this order, whether the earlier ones fail or not; but none after
    /// one that ends the work.
    Use(ToolCall, Vec<ToolCall>),
    /// It has words for whoever asked, in the place of a tool.
    Answer(String),
}

impl Decision {
    /// The tools to use, in this order; none for an answer.
    #[must_use]
    pub fn calls(self) -> Vec<ToolCall> {
        match self {
            Self::Use(first, others) => [vec![first], others].concat(),
            Self::Answer(_) => Vec::new(),
        }
    }
}

/// A reply that is not of the protocol's form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", .line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct Fault {
    /// The line of the reply, from 1 on; `None` where it is no line's.
    pub line: Option<usize>,
    /// What is wrong there, and what is expected: for the model.
    pub problem: String,
}

impl Fault {
    /// One of a line of the reply, from 1 on.
    #[must_use]
    pub fn at(line: usize, problem: impl Into<String>) -> Self {
        Self {
            line: Some(line),
            problem: problem.into(),
        }
    }

    /// One of the reply as a whole.
    #[must_use]
    pub fn of_all(problem: impl Into<String>) -> Self {
        Self {
            line: None,
            problem: problem.into(),
        }
    }
}

/// A way to talk with a model about tools.
pub trait Protocol {
    /// The part of the system prompt that tells the model how to reply, and which tools it has.
    fn instructions(&self, tools: &Toolbox<'_>) -> String;

    /// Reads a reply.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    fn read(&self, reply: &Reply, tools: &Toolbox<'_>) -> Result<Turn, Fault>;
}
