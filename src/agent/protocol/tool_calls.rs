//! A JSON object as the whole reply, in the form of Claude Code's tool calls:
//! `{"tool_calls": [{"name": …, "parameters": {…}}]}`, or `{"response": …}` in their place. Pure.
//!
//! A reply that is not of the form, or calls a tool otherwise than it is described, is a fault as a whole: nothing of it
//! is done, and nothing is guessed. The schema that is offered allows exactly what can be used, with an upper bound for
//! whatever is no file's content, since the smallest models would not come to an end without.

mod descriptions;

use serde_json::{Map, Value, json};

use super::object;
use super::results;
use super::{Decision, Fault, Offer, Protocol, Turn};
use crate::agent::conversation::HistoryMessage;
use crate::agent::schema;
use crate::agent::tool::{ToolSpec, Toolbox};
use crate::model::message::{Call, Message};
use crate::model::{Form, Reply};
use crate::sys::excerpt::text::bounded;
use crate::sys::text::one_line;

pub(super) use self::descriptions::outlines;

const CALLS: &str = "tool_calls";
const RESPONSE: &str = "response";

/// How many calls a reply may have where the server holds the model to the schema.
const MOST_CALLS: u32 = 10;
/// How long a response may be there, in characters. Grammars of llama.cpp take no bound of 2,000 or more.
const LONGEST_RESPONSE: u32 = 1900;

/// How much of a response is kept, in bytes: it is sent again and again.
const LONGEST_KEPT: usize = 16 << 10;

/// How much of an unknown tool's name is told, in characters.
const LONGEST_NAME: usize = 60;

/// What the model is shown beside what is wrong with its reply.
const COUNTER_EXAMPLE: &str = "\n❌ WRONG: {\"action\": \"read_file\", \"args\": {...}}\n\
                               ✅ CORRECT: {\"tool_calls\": [{\"name\": \"read_file\", \"parameters\": {...}}]}";

/// The protocol, in a profile's words.
#[derive(Debug, Clone, Copy)]
pub struct ToolCalls {
    /// How to reply, for the model.
    pub format: &'static str,
    /// Examples of replies.
    pub examples: &'static str,
    /// Names that models call as if they were tools, and what they are told then: a sentence.
    pub no_tools: &'static [(&'static str, &'static str)],
}

impl Protocol for ToolCalls {
    fn offer(&self, tools: &Toolbox<'_>) -> Offer {
        Offer {
            instructions: format!(
                "# Response Format\n\n{}\n\n# Tools\n\n{}\n\n# Examples\n\n{}",
                self.format.trim_end(),
                descriptions::described(tools),
                self.examples.trim_end()
            ),
            form: Form {
                schema: Some(reply_schema(tools)),
                ..Form::default()
            },
        }
    }

    fn read(&self, reply: &Reply, tools: &Toolbox<'_>) -> Result<Turn, Fault> {
        let read = object::read(&reply.text).and_then(|object| {
            let decision = self.decision(&object, tools).map_err(Fault::of_all)?;
            let remembered = match &decision {
                Decision::Answer(words) => json!({ RESPONSE: words }),
                Decision::Use(_) => Value::Object(object),
            };
            Ok((decision, remembered.to_string()))
        });
        let (decision, remembered) = read.map_err(|fault| fault.with_remedy(COUNTER_EXAMPLE))?;
        Ok(Turn::of_object(decision, remembered))
    }

    fn render(&self, history: &[HistoryMessage]) -> Vec<Message<'static>> {
        results::render(history)
    }
}

impl ToolCalls {
    fn decision(
        &self,
        object: &Map<String, Value>,
        tools: &Toolbox<'_>,
    ) -> Result<Decision, String> {
        let mut others = object
            .keys()
            .filter(|key| *key != CALLS && *key != RESPONSE);
        match (object.get(CALLS), object.get(RESPONSE), others.next()) {
            (Some(_), Some(_), _) => {
                Err("the reply has both `tool_calls` and `response`: it has one of them".to_owned())
            }
            (None, None, None) => Err(
                "the reply has neither `tool_calls` nor `response`: it has one of them".to_owned(),
            ),
            (None, None, Some(other)) => Err(format!(
                "the reply has {}, and neither `tool_calls` nor `response`",
                object::key(other)
            )),
            (_, _, Some(other)) => Err(format!(
                "the reply has {} beside `tool_calls` or `response`: nothing stands beside them",
                object::key(other)
            )),
            (Some(calls), None, None) => self.calls(calls, tools).map(Decision::Use),
            (None, Some(response), None) => match response.as_str() {
                Some(words) if words.trim().is_empty() => Err("`response` is blank".to_owned()),
                Some(words) => Ok(Decision::Answer(bounded(words, LONGEST_KEPT))),
                None => Err("`response` must be a JSON string".to_owned()),
            },
        }
    }

    fn calls(&self, calls: &Value, tools: &Toolbox<'_>) -> Result<Vec<Call>, String> {
        let call =
            object_schema(&json!({"name": {"type": "string"}, "parameters": {"type": "object"}}));
        let form = json!({"type": "array", "minItems": 1, "items": call});
        schema::check(calls, &form, CALLS)?;
        let calls = calls.as_array().into_iter().flatten().enumerate();
        calls
            .map(|(index, call)| {
                let call = Call {
                    id: format!("call-{}", index + 1),
                    name: call["name"].as_str().unwrap_or_default().to_owned(),
                    input: call["parameters"].clone(),
                    ..Call::default()
                };
                let checked = self.check(&call, tools);
                checked.map_err(|problem| format!("`{CALLS}[{index}]`: {problem}"))?;
                Ok(call)
            })
            .collect()
    }

    /// Whether a call is one of a tool that is there, with what it takes.
    fn check(&self, call: &Call, tools: &Toolbox<'_>) -> Result<(), String> {
        if tools.named(&call.name).is_some() {
            let resolved = tools.resolve(call).map(drop);
            return resolved.map_err(|failure| failure.message);
        }
        if let Some((_, told)) = self.no_tools.iter().find(|(name, _)| *name == call.name) {
            return Err((*told).to_owned());
        }
        let unknown = tools.unknown(&one_line(&call.name, LONGEST_NAME));
        let names = tools.specs().map(|spec| &*spec.name);
        Err(match schema::nearest(&call.name, names) {
            Some(meant) => format!("{unknown}; did you mean `{meant}`?"),
            None => unknown,
        })
    }
}

/// The schema of a reply: calls of these tools, or a response.
fn reply_schema(tools: &Toolbox<'_>) -> Value {
    let words = json!({"type": "string", "maxLength": LONGEST_RESPONSE});
    let response = object_schema(&json!({ RESPONSE: words }));
    let calls: Vec<Value> = tools.specs().map(call_schema).collect();
    if calls.is_empty() {
        return response;
    }
    let calls =
        json!({"type": "array", "minItems": 1, "maxItems": MOST_CALLS, "items": {"anyOf": calls}});
    json!({"anyOf": [object_schema(&json!({ CALLS: calls })), response]})
}

fn call_schema(tool: &ToolSpec) -> Value {
    let parameters = tool.schema.clone().unwrap_or_else(|| {
        let own = tool.parameters.iter();
        let properties = own.map(|known| (known.name.to_owned(), known.bounded_schema()));
        let mut schema = tool.schema();
        schema["properties"] = Value::Object(properties.collect());
        schema
    });
    // Not every server knows `const`.
    object_schema(
        &json!({"name": {"type": "string", "enum": [tool.name]}, "parameters": parameters}),
    )
}

/// The schema of an object with all of these properties and no others.
fn object_schema(properties: &Value) -> Value {
    let names: Vec<&String> = properties
        .as_object()
        .into_iter()
        .flat_map(Map::keys)
        .collect();
    json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false})
}

#[cfg(test)]
mod tests;
