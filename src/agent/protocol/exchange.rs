//! The interface of a protocol: the offer to a model, the interpretation of its replies, and the form of tool results.
//! Pure.

use serde_json::Value;

use crate::agent::conversation::{HistoryMessage, as_text};
use crate::agent::error::Fault;
use crate::agent::tool::{CallFailure, ParameterKind, Toolbox};
use crate::model::message::{Call, Message, ReplyPart};
use crate::model::{Form, Reply};
use crate::record::tasks::Task;

/// The interpreted content of a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The agent's reasoning about the current state; may be blank.
    pub thoughts: String,
    /// Words outside the reply format, which are not added to the history; may be blank.
    pub outside: String,
    /// The complete task list, if the reply has one.
    pub tasks: Option<Vec<Task>>,
    /// The agent's next action.
    pub decision: Decision,
    /// A sentence for the model on how its reply was interpreted, sent with the result.
    pub note: Option<String>,
    /// The parts of the reply in order, if the protocol and the wire format have them; otherwise empty.
    pub parts: Vec<ReplyPart>,
    /// The reply's text for the history. Parsing it again yields the same tool calls, so that an interrupted session
    /// can be resumed.
    pub remembered: String,
}

impl Turn {
    /// Creates a turn that has only a decision.
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
    /// Uses at least one tool, in this order, even if earlier calls fail; calls after one that ends the work are
    /// skipped.
    Use(Vec<Call>),
    /// Answers in plain text, without a tool.
    Answer(String),
}

/// The reply format and the tools, as presented to a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Offer {
    /// The part of the system prompt that describes the reply format and the available tools.
    pub instructions: String,
    /// The form of the model's answer.
    pub form: Form,
}

/// A protocol for tool calls between a model and the program.
pub trait Protocol {
    /// Describes the reply format and the tools to the model.
    fn offer(&self, tools: &Toolbox<'_>) -> Offer;

    /// Reads a reply.
    ///
    /// # Errors
    /// A fault that names the problem and its place.
    fn read(&self, reply: &Reply, tools: &Toolbox<'_>) -> Result<Turn, Fault>;

    /// Returns whether calls are stored separately from a reply's text in the history.
    fn remembers_calls(&self) -> bool {
        false
    }

    /// Returns the model's text for the result of a call: its output, as text and, if the tool provides it, as JSON; or
    /// the reason for the failure.
    fn result(&self, done: Result<(&str, Option<&Value>), &CallFailure>) -> String {
        in_words(done)
    }

    /// Renders a history, results included, as the messages to send.
    fn render(&self, history: &[HistoryMessage]) -> Vec<Message<'static>> {
        as_text(history)
    }
}

/// The most calls of one reply that are carried out; each is recorded before the next.
pub(crate) const MAX_CALLS: usize = 100;

/// The prefix of a failed call's reason, shown to the model.
pub(crate) const FAILED: &str = "ERROR: ";

/// Describes the result of a call in words.
pub(super) fn in_words(done: Result<(&str, Option<&Value>), &CallFailure>) -> String {
    match done {
        Ok((text, _)) => text.to_owned(),
        Err(failure) if failure.code == CallFailure::NOT_DONE => failure.to_string(),
        Err(failure) => format!("{FAILED}{failure}"),
    }
}

/// Returns the task list in the arguments of calls, for replies that have no section for it.
pub(super) fn tasks_in(calls: &[Call], tools: &Toolbox<'_>) -> Option<Vec<Task>> {
    calls.iter().rev().find_map(|call| {
        let mut parameters = tools.named(&call.name)?.parameters.iter();
        let parameter = parameters.find(|parameter| parameter.kind == ParameterKind::Tasks)?;
        let list = call.input.get(parameter.name)?.as_str()?;
        Some(list.lines().filter_map(Task::parse).collect())
    })
}
