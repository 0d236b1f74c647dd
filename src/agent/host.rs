//! What an agent is given from outside: the run that it works in, who hears of it, and what knows the keys.

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

/// What an agent notes of the step that is under way.
#[derive(Debug, Clone)]
pub enum Note<'n> {
    /// What it thinks of its work.
    Thoughts(&'n str),
    /// A tool was used, or was to be; the effect is that of the tool, where there is such a tool.
    Acted(Action, Option<Effect>),
    /// It has ended its work with these words, in the place of a tool.
    Answered(&'n str),
    /// The work was judged: whether it passed.
    Judged(bool),
}

/// How a conversation was made shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compressed {
    /// The tokens of the next prompt as it would have been.
    pub tokens_before: u64,
    /// Its tokens now.
    pub tokens_after: u64,
}

/// What an agent needs of the run that it works in.
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

    /// What was changed in the project, in this run and before it, for who judges the work; "" where that is not known.
    fn changes(&self) -> String {
        String::new()
    }

    /// Whether the user allows what is asked for, which `preview` shows; nobody is there to ask, unless a host says otherwise.
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

/// What an agent is given from outside.
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
