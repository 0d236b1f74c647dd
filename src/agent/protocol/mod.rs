//! How an agent and a model talk about tools: what the model is offered, how its reply is read, and how it is
//! told what came of its calls.
//!
//! Pure. One file a protocol: [`markdown`] has headings, [`tool_calls`] an object as the whole reply, [`native`] the
//! vendor's own tool calls, [`structured`] an object and no tools. Only [`tool_calls`] checks calls here: the agent holds
//! every call against its tools, and each gets its result.

pub mod markdown;
pub mod native;
pub(crate) mod object;
mod results;
pub mod structured;
pub mod tool_calls;

use serde_json::Value;

use crate::model::message::{Call, Message, ReplyPart};
use crate::model::{Form, Reply, ToolForm};
use crate::record::tasks::Task;

pub use super::error::Fault;

use super::conversation::{HistoryMessage, as_text};
use super::tool::{CallFailure, ParameterKind, Toolbox};

use self::markdown::{Markdown, PlainReplies};
use self::native::Native;

/// What a reply says.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// What the agent says of the state of things; may be blank.
    pub thoughts: String,
    /// What it says outside of the form of replies, which does not go into the history; may be blank.
    pub outside: String,
    /// The whole task list, where the reply has one.
    pub tasks: Option<Vec<Task>>,
    /// What the agent does next.
    pub decision: Decision,
    /// What the model is to know of how its reply was read: a sentence, beside the result.
    pub note: Option<String>,
    /// All of the reply in its order, where the protocol and the wire have that; else empty.
    pub parts: Vec<ReplyPart>,
    /// What of the reply's words goes into the history. Read once more, it names the same tools, so that a session
    /// that was cut short can be taken up.
    pub remembered: String,
}

impl Turn {
    /// The turn of a reply that is a JSON object and nothing else.
    fn of_object(decision: Decision, remembered: String) -> Self {
        Self {
            thoughts: String::new(),
            outside: String::new(),
            tasks: None,
            decision,
            note: None,
            parts: Vec::new(),
            remembered,
        }
    }
}

/// What an agent does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// It uses tools, at least one, in this order, whether the earlier ones fail or not; but none after one that
    /// ends the work.
    Use(Vec<Call>),
    /// It answers in words, in the place of a tool.
    Answer(String),
}

/// What a model is offered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Offer {
    /// The part of the system prompt that tells it how to reply, and which tools it has.
    pub instructions: String,
    /// What its answer is to be besides words.
    pub form: Form,
}

/// A way to talk with a model about tools.
pub trait Protocol {
    /// Returns what the model is offered.
    fn offer(&self, tools: &Toolbox<'_>) -> Offer;

    /// Reads a reply.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    fn read(&self, reply: &Reply, tools: &Toolbox<'_>) -> Result<Turn, Fault>;

    /// Returns whether the calls are no part of a reply's words, and are remembered beside them.
    fn remembers_calls(&self) -> bool {
        false
    }

    /// Returns what the model is told of a call: its output, as text and, where the tool has that, as JSON; or why it
    /// came to
    /// nothing.
    fn result(&self, done: Result<(&str, Option<&Value>), &CallFailure>) -> String {
        in_words(done)
    }

    /// The messages to send for what was said, results included.
    fn render(&self, history: &[HistoryMessage]) -> Vec<Message<'static>> {
        as_text(history)
    }
}

/// The protocol of a form; `plain_replies` says what becomes of Markdown without a tool.
#[must_use]
pub fn of(form: ToolForm, plain_replies: PlainReplies) -> Box<dyn Protocol> {
    match form {
        ToolForm::Markdown => Box::new(Markdown { plain_replies }),
        ToolForm::Json => Box::new(tool_calls::JSON),
        ToolForm::Native => Box::new(Native::default()),
    }
}

/// What stands before why a call came to nothing, where the model is told.
pub(crate) const FAILED: &str = "ERROR: ";

/// Returns what came of a call, in words.
fn in_words(done: Result<(&str, Option<&Value>), &CallFailure>) -> String {
    match done {
        Ok((text, _)) => text.to_owned(),
        Err(failure) if failure.code == CallFailure::NOT_DONE => failure.to_string(),
        Err(failure) => format!("{FAILED}{failure}"),
    }
}

/// The task list among the arguments of calls, for replies that have no section for it.
fn tasks_in(calls: &[Call], tools: &Toolbox<'_>) -> Option<Vec<Task>> {
    calls.iter().rev().find_map(|call| {
        let spec = tools.named(&call.name)?.spec();
        let mut parameters = spec.parameters.iter();
        let parameter = parameters.find(|parameter| parameter.kind == ParameterKind::Tasks)?;
        let list = call.input.get(parameter.name)?.as_str()?;
        Some(list.lines().filter_map(Task::parse).collect())
    })
}

#[cfg(test)]
mod tests;
