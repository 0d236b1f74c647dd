//! The end of an agent's work: its final message, objections to it, and the tool failures allowed. Plain data.

use super::conversation::HistoryMessage;
use super::error::{AgentError, Fault};

/// The limit on consecutive tool failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolTries {
    /// A tool failure counts as a reply that was not understood; both share one limit.
    AsReplies,
    /// No limit: a reply that calls tools was understood, whatever the tools return.
    Unlimited,
    /// A fixed number. Calls that were not permitted do not count, since the model can try something else.
    UpTo(u32),
}

/// An objection to an agent's final message.
#[derive(Debug)]
pub enum Objection {
    /// The final message is not in the required form. The model learns why, and the reply counts as a failure.
    Words(Fault),
    /// The work is not done: the model gets this message and continues.
    NotDone(HistoryMessage),
    /// The work ends with this error.
    Over(AgentError),
}

impl From<String> for Objection {
    fn from(problem: String) -> Self {
        Self::Words(Fault::of_all(problem))
    }
}

impl From<Fault> for Objection {
    fn from(fault: Fault) -> Self {
        Self::Words(fault)
    }
}

/// The action to take after a step. A tool failure or a reply that was not understood is reported to the model and does
/// not end the loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// The model is asked again.
    GoOn,
    /// The work is done.
    Done(Ended),
}

/// The end of an agent's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The text of the agent's final message.
    pub words: String,
    /// The tool that carried the message, and the call's id; `None` if it came in a reply without a tool.
    pub by: Option<(String, String)>,
}

impl Ended {
    /// Creates the response to this message: the result of the tool that carried it, or a note if there was no tool.
    pub(super) fn message(&self, text: String) -> HistoryMessage {
        match &self.by {
            Some((tool, id)) => HistoryMessage::of_tool(tool, id, text),
            None => HistoryMessage::note(text),
        }
    }
}
