//! A JSON object that follows a given schema as the whole reply, for work without tools. Pure.
//!
//! The object is the answer. A reply in any other form is a fault; nothing is guessed.

use serde_json::Value;

use super::tool_calls::{outlines, sections};
use super::{Decision, Fault, Offer, Protocol, Turn, object, results};
use crate::agent::conversation::HistoryMessage;
use crate::agent::tool::Toolbox;
use crate::model::message::Message;
use crate::model::{Form, Reply};

/// The protocol for replies that consist of one JSON object, which follows a given schema.
pub struct Structured<'a> {
    /// The schema that a server should enforce.
    pub schema: Value,
    /// The reply format, described for the model.
    pub format: &'static str,
    /// Examples of replies; may be empty.
    pub examples: &'static str,
    /// An example shown to the model with the faults of its reply; may be empty.
    pub counter_example: &'static str,
    /// Checks an object; the error tells the model what is wrong.
    pub check: &'a dyn Fn(&Value) -> Result<(), String>,
}

impl Protocol for Structured<'_> {
    /// Describes `tools`, if there are any, because the reply may refer to them.
    fn offer(&self, tools: &Toolbox<'_>) -> Offer {
        Offer {
            instructions: sections(self.format, &outlines(tools), self.examples),
            form: Form {
                schema: Some(self.schema.clone()),
                ..Form::default()
            },
        }
    }

    fn read(&self, reply: &Reply, _tools: &Toolbox<'_>) -> Result<Turn, Fault> {
        let read = object::read(&reply.text).and_then(|object| {
            let object = Value::Object(object);
            (self.check)(&object).map_err(Fault::of_all)?;
            Ok(object.to_string())
        });
        let answer = read.map_err(|fault| fault.with_remedy(self.counter_example))?;
        Ok(Turn::of(Decision::Answer(answer.clone()), answer))
    }

    fn render(&self, history: &[HistoryMessage]) -> Vec<Message<'static>> {
        results::render(history, false, &HistoryMessage::sent)
    }
}
