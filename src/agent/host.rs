//! An agent's surroundings: the run that it works in, its reporter, its clock and its redactor.

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

/// A note on the step that is under way.
#[derive(Debug, Clone)]
pub enum Note<'n> {
    /// The agent's thoughts on its work.
    Thoughts(&'n str),
    /// A tool was used, or was to be; the effect is that of the tool, where there is such a tool.
    Acted(Action, Option<Effect>),
    /// The words with which it has ended its work, in the place of a tool.
    Answered(&'n str),
    /// The work was judged: whether it passed.
    Judged(bool),
}

/// The effect of a compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compressed {
    /// The tokens of the next prompt as it would have been.
    pub tokens_before: u64,
    /// The tokens of that prompt now.
    pub tokens_after: u64,
}

impl Compressed {
    /// The sentence for the user who has asked for it.
    pub fn told(self) -> String {
        let [after, before] = [self.tokens_after, self.tokens_before].map(grouped);
        format!("compacted: about {after} tokens, from {before}")
    }
}

/// The run that an agent works in.
pub trait Host {
    /// Asks the model for this purpose, and logs what is asked and answered.
    ///
    /// # Errors
    /// When there is no whole reply, or no further call may be made.
    fn ask(&self, purpose: &Purpose, prompt: Prompt<'_>) -> Result<Reply, AgentError>;

    /// Notes something of the latest step.
    ///
    /// # Errors
    /// When it cannot be logged.
    fn note(&self, note: Note<'_>) -> Result<(), AgentError>;

    /// Keeps the conversation of an agent with this purpose, as it is after a step.
    ///
    /// # Errors
    /// When it cannot be kept.
    fn keep(&self, _purpose: &Purpose, _conversation: &Conversation) -> Result<(), AgentError> {
        Ok(())
    }

    /// Notes that the conversation of an agent with this purpose was compressed.
    fn compressed(&self, _purpose: &Purpose, _compressed: Compressed) {}

    /// The changes to the project, in this run and before it, for an auditor; "" where they are not known.
    fn changes(&self) -> String {
        String::new()
    }

    /// Asks the user, who sees `preview`; the default host has nobody to ask, and answers No.
    ///
    /// # Errors
    /// When the run is over.
    fn confirm(&self, _question: &Question, _preview: Option<&str>) -> Result<Answer, AgentError> {
        Ok(Answer::No)
    }

    /// Somebody may have asked for a stop.
    ///
    /// # Errors
    /// When somebody has.
    fn check(&self) -> Result<(), AgentError>;
}

/// The services that an agent is given.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    /// The run that the agent works in.
    pub host: &'a dyn Host,
    /// Hears what happens.
    pub reporter: &'a dyn Reporter,
    /// Tells how long a tool took.
    pub clock: &'a dyn Clock,
    /// Knows the keys.
    pub redactor: &'a Redactor,
    /// Takes out of what tools give what else is not to be sent; `None`: nothing is.
    pub censor: Option<&'a dyn Fn(&str) -> String>,
}
