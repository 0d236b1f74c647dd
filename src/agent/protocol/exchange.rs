//! A protocol: what a model is offered, what its replies come to, and how the results of its calls are told. Pure.

use serde_json::Value;

use crate::agent::conversation::{HistoryMessage, as_text};
use crate::agent::error::Fault;
use crate::agent::tool::{CallFailure, ParameterKind, Toolbox};
use crate::model::message::{Call, Message, ReplyPart};
use crate::model::{Form, Reply};
use crate::record::tasks::Task;

/// The content of a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The agent's view of the state of things; may be blank.
    pub thoughts: String,
    /// The words outside of the form of replies, which do not go into the history; may be blank.
    pub outside: String,
    /// The whole task list, where the reply has one.
    pub tasks: Option<Vec<Task>>,
    /// The agent's next action.
    pub decision: Decision,
    /// A sentence for the model on how its reply was read, beside the result.
    pub note: Option<String>,
    /// All of the reply in its order, where the protocol and the wire have that; else empty.
    pub parts: Vec<ReplyPart>,
    /// The reply's words that go into the history. Read once more, they name the same tools, so that a session that was
    /// cut short can be taken up.
    pub remembered: String,
}

impl Turn {
    /// The turn of a reply that says nothing more.
    pub(super) fn of(decision: Decision, remembered: String) -> Self {
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

/// The next action of an agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// It uses tools, at least one, in this order, whether the earlier ones fail or not; but none after one that
    /// ends the work.
    Use(Vec<Call>),
    /// It answers in words, in the place of a tool.
    Answer(String),
}

/// The offer to a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Offer {
    /// The part of the system prompt that tells it how to reply, and which tools it has.
    pub instructions: String,
    /// The form of its answer.
    pub form: Form,
}

/// A way to talk with a model about tools.
pub trait Protocol {
    /// Returns the offer to the model.
    fn offer(&self, tools: &Toolbox<'_>) -> Offer;

    /// Reads a reply.
    ///
    /// # Errors
    /// A fault that names the problem and its place.
    fn read(&self, reply: &Reply, tools: &Toolbox<'_>) -> Result<Turn, Fault>;

    /// Returns whether calls are remembered beside a reply's words, not as part of them.
    fn remembers_calls(&self) -> bool {
        false
    }

    /// Returns the model's text for the result of a call: its output, as text and, where the tool has that, as JSON; or
    /// the reason that it failed.
    fn result(&self, done: Result<(&str, Option<&Value>), &CallFailure>) -> String {
        in_words(done)
    }

    /// The messages to send for what was said, results included.
    fn render(&self, history: &[HistoryMessage]) -> Vec<Message<'static>> {
        as_text(history)
    }
}

/// The prefix of a failed call's reason, for the model.
pub(crate) const FAILED: &str = "ERROR: ";

/// Describes the result of a call in words.
pub(super) fn in_words(done: Result<(&str, Option<&Value>), &CallFailure>) -> String {
    match done {
        Ok((text, _)) => text.to_owned(),
        Err(failure) if failure.code == CallFailure::NOT_DONE => failure.to_string(),
        Err(failure) => format!("{FAILED}{failure}"),
    }
}

/// The task list among the arguments of calls, for replies that have no section for it.
pub(super) fn tasks_in(calls: &[Call], tools: &Toolbox<'_>) -> Option<Vec<Task>> {
    calls.iter().rev().find_map(|call| {
        let spec = tools.named(&call.name)?;
        let mut parameters = spec.parameters.iter();
        let parameter = parameters.find(|parameter| parameter.kind == ParameterKind::Tasks)?;
        let list = call.input.get(parameter.name)?.as_str()?;
        Some(list.lines().filter_map(Task::parse).collect())
    })
}
