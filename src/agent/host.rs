//! An agent's environment: the run it works in, its reporter, its clock and its redactor.

use super::conversation::Conversation;
use super::error::AgentError;
use super::tool::Effect;
use crate::model::prompt::Prompt;
use crate::model::{Purpose, Reply};
use crate::record::event::Reporter;
use crate::record::question::{Answer, Question};
use crate::record::step::Action;
use crate::secret::Redactor;
use crate::sys::environment::Clock;
use crate::sys::numbers::grouped;

/// A note on the current step.
#[derive(Debug, Clone)]
pub enum Note<'n> {
    /// The agent's reasoning about its work.
    Thoughts(&'n str),
    /// A tool was called, successfully or not; includes the tool's effect if the tool exists.
    Acted(Box<Action>, Option<Effect>),
    /// The message that ended the work without a tool.
    Answered(&'n str),
    /// The work was judged; `true` if it passed.
    Judged(bool),
}

/// The size of a prompt before and after a compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compressed {
    /// The tokens of the next prompt before the compression.
    pub tokens_before: u64,
    /// The tokens of the next prompt after the compression.
    pub tokens_after: u64,
}

impl Compressed {
    /// Returns the message for the user who requested the compression.
    pub fn message(self) -> String {
        let [after, before] = [self.tokens_after, self.tokens_before].map(grouped);
        format!("compacted: about {after} tokens, from {before}")
    }
}

/// The run that an agent works in.
pub trait Host {
    /// Asks the model on behalf of `purpose`, and logs the prompt and the reply.
    ///
    /// # Errors
    /// Fails if no complete reply arrives, or no further call is allowed.
    fn ask(&self, purpose: &Purpose, prompt: Prompt<'_>) -> Result<Reply, AgentError>;

    /// Records a note on the latest step.
    ///
    /// # Errors
    /// Fails if the note cannot be logged.
    fn note(&self, note: Note<'_>) -> Result<(), AgentError>;

    /// Saves the conversation of an agent with this purpose after a step.
    ///
    /// # Errors
    /// Fails if it cannot be saved.
    fn save(&self, _purpose: &Purpose, _conversation: &Conversation) -> Result<(), AgentError> {
        Ok(())
    }

    /// Records that the conversation of an agent with this purpose was compressed.
    fn compressed(&self, _purpose: &Purpose, _compressed: Compressed) {}

    /// Returns the changes made to the project before and during this run, for an auditor; empty if they are not known.
    fn changes(&self) -> String {
        String::new()
    }

    /// Returns whether the run changes files in a scratch tree, which is discarded if the run fails.
    fn is_in_scratch(&self) -> bool {
        false
    }

    /// Asks the user, showing `preview`. By default there is no user to ask, and the answer is No.
    ///
    /// # Errors
    /// Fails if the run has ended.
    fn confirm(&self, _question: &Question, _preview: Option<&str>) -> Result<Answer, AgentError> {
        Ok(Answer::No)
    }

    /// Checks for a request to stop.
    ///
    /// # Errors
    /// Fails if a stop was requested.
    fn check(&self) -> Result<(), AgentError>;
}

/// The services available to an agent.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    /// The run that the agent works in.
    pub host: &'a dyn Host,
    /// Receives the events.
    pub reporter: &'a dyn Reporter,
    /// Measures how long tools take.
    pub clock: &'a dyn Clock,
    /// Redacts API keys.
    pub redactor: &'a Redactor,
    /// Removes other confidential content from tool results; `None` removes nothing.
    pub censor: Option<&'a dyn Fn(&str) -> String>,
}
