//! The end of an agent's work: its last words, objections to them, and how often its tools may fail. Plain data.

use super::conversation::HistoryMessage;
use super::error::AgentError;

/// The number of tool failures in a row that end the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolTries {
    /// They count as replies that are not understood, and with these.
    AsReplies,
    /// Any number; a reply that calls tools was understood, whatever comes of them.
    Unlimited,
    /// A fixed number; a call that was not allowed is not one, since the model does what it can do instead.
    UpTo(u32),
}

/// An objection to an agent's last words.
#[derive(Debug)]
pub enum Objection {
    /// They are not what they should be: the model is told why. That is a failure.
    Words(String),
    /// The work is not done: the model is told this, and goes on.
    NotDone(HistoryMessage),
    /// The work is over.
    Over(AgentError),
}

impl From<String> for Objection {
    fn from(problem: String) -> Self {
        Self::Words(problem)
    }
}

/// The way on after a step. A tool's failure, or a reply that was not understood, is told to the model and goes on:
/// only an end ends the loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// The model is asked again.
    GoOn,
    /// The work is done.
    Done(Ended),
}

/// The end that an agent has come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The agent's last words.
    pub words: String,
    /// The tool by which it has said them, and the call's id; `None`: in the place of a tool.
    pub by: Option<(String, String)>,
}

impl Ended {
    /// Tells the agent what others make of it: as the result of its tool, or as a note where there was none.
    pub(super) fn message(&self, told: String) -> HistoryMessage {
        match &self.by {
            Some((tool, id)) => HistoryMessage::of_tool(tool, id, told),
            None => HistoryMessage::note(told),
        }
    }
}
