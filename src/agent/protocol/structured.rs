//! A JSON object of a given schema as the whole reply, for work that uses no tools. Pure.
//!
//! The object is the answer. What is not of the form is a fault: nothing is guessed.

use serde_json::Value;

use super::tool_calls::outlines;
use super::{Decision, Fault, Offer, Protocol, Turn, object, results};
use crate::agent::conversation::HistoryMessage;
use crate::agent::tool::Toolbox;
use crate::model::message::Message;
use crate::model::{Form, Reply};

/// The protocol of such an object.
pub struct Structured<'a> {
    /// The schema that a server is to hold the model to.
    pub schema: Value,
    /// The form of replies, for the model.
    pub format: &'static str,
    /// An example shown to the model beside the faults of its reply; may be "".
    pub counter_example: &'static str,
    /// Checks an object's form; the error says what is wrong, for the model.
    pub check: &'a dyn Fn(&Value) -> Result<(), String>,
}

impl Protocol for Structured<'_> {
    /// The tools, if any, are those that the reply may speak of.
    fn offer(&self, tools: &Toolbox<'_>) -> Offer {
        let format = self.format.trim_end();
        let tools = match outlines(tools) {
            none if none.is_empty() => none,
            tools => format!("\n\n# Tools\n\n{tools}"),
        };
        Offer {
            instructions: format!("# Response Format\n\n{format}{tools}"),
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
        results::render(history)
    }
}
