//! How an agent's work ends: its last words, what stands against them, and how often its tools may fail. Plain data.

use super::conversation::HistoryMessage;
use super::error::AgentError;

/// How many failures of tools in a row end the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolTries {
    /// They count as replies that are not understood, and with these.
    AsReplies,
    /// Any number; a reply that calls tools was understood, whatever comes of them.
    Unlimited,
    /// So many; a call that was not allowed is none, for the model does what it can do instead.
    UpTo(u32),
}

/// What stands against an agent's last words.
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

/// How it goes on behind a step. That a tool has failed, or a reply was not understood, is told to the model and goes on:
/// only an end ends the loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// The model is asked again.
    GoOn,
    /// The work is done.
    Done(Ended),
}

/// How an agent has come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its last words.
    pub words: String,
    /// The tool by which it has said them, and the call's id; `None`: in the place of a tool.
    pub by: Option<(String, String)>,
}

impl Ended {
    /// What others make of it, for the agent: the result of its tool, or a note where there was none.
    pub(super) fn message(&self, told: String) -> HistoryMessage {
        match &self.by {
            Some((tool, id)) => HistoryMessage::of_tool(tool, id, told),
            None => HistoryMessage::note(told),
        }
    }
}
