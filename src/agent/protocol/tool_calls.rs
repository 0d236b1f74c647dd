//! A JSON object as the whole reply: tool calls, or the final answer in their place. Pure. Its keys are Claude Code's,
//! `{"tool_calls": [{"name": …, "parameters": {…}}]}` or `{"response": …}`, or the program's own,
//! `{"thoughts": …, "calls": [{"tool": …, "input": {…}}]}` or an `answer`.
//!
//! A reply that does not have this form, or that calls a tool in a way that does not fit its description, is a fault as
//! a whole: none of it is carried out, and nothing is guessed. The offered schema allows exactly what is supported,
//! with an upper bound on every value except file contents, since the smallest models would otherwise not stop.

mod descriptions;
mod keys;

use serde_json::{Map, Value, json};

use super::exchange::{MAX_CALLS, tasks_in};
use super::{Decision, Fault, Offer, Protocol, Turn, object, results};
use crate::agent::conversation::HistoryMessage;
use crate::agent::schema;
use crate::agent::tool::Toolbox;
use crate::model::message::{Call, Message};
use crate::model::{Form, Reply};
use crate::sys::excerpt::text::bounded;
use crate::sys::text::one_line;

pub(super) use self::descriptions::outlines;
pub use self::keys::{CLAUDE_CODE, Keys};
use self::keys::{OWN, object_schema};

/// Maximum size of a response kept in the history, in bytes, since it is sent again with every request.
const LONGEST_KEPT: usize = 16 << 10;

/// Maximum length of an unknown tool's name in messages, in characters.
const LONGEST_NAME: usize = 60;

/// The protocol with the program's own keys.
pub static JSON: ToolCalls = ToolCalls {
    keys: &OWN,
    format: "Reply with one JSON object and nothing else, such as \
             {\"thoughts\": \"First I look around.\", \"calls\": [{\"tool\": NAME, \"input\": {...}}]}. The calls are carried \
             out in their order, and you are told what came of each. With `answer`, a text, in the place of `calls`, the \
             work ends.",
    examples: "",
    no_tools: &[],
    are_words_tagged: true,
};

/// The protocol, with the wording of a profile.
#[derive(Debug, Clone, Copy)]
pub struct ToolCalls {
    /// The keys of a reply.
    pub keys: &'static Keys,
    /// The reply format, described for the model.
    pub format: &'static str,
    /// Examples of replies; may be empty.
    pub examples: &'static str,
    /// Names that models call as if they were tools, each with the sentence they get in response.
    pub no_tools: &'static [(&'static str, &'static str)],
    /// True if the user's words and the program's notes are sent between tags, which the agent's instructions explain.
    pub are_words_tagged: bool,
}

impl Protocol for ToolCalls {
    fn offer(&self, tools: &Toolbox<'_>) -> Offer {
        let described = descriptions::described(tools, self.keys);
        Offer {
            instructions: sections(self.format, &described, self.examples),
            form: Form {
                schema: Some(self.keys.reply_schema(tools)),
                ..Form::default()
            },
        }
    }

    fn read(&self, reply: &Reply, tools: &Toolbox<'_>) -> Result<Turn, Fault> {
        let keys = self.keys;
        let read = object::read(&reply.text).and_then(|mut object| {
            let text = object::thoughts(&mut object, keys.thoughts)?;
            let decision = self.decision(&object, tools).map_err(Fault::of_all)?;
            let remembered = match &decision {
                Decision::Answer(words) => json!({ keys.answer: words }),
                Decision::Use(_) => {
                    // Calls that are not carried out would fill every further prompt.
                    if let Some(Value::Array(calls)) = object.get_mut(keys.calls) {
                        calls.truncate(MAX_CALLS);
                    }
                    Value::Object(object)
                }
            };
            Ok((text, decision, remembered.to_string()))
        });
        let (thoughts, decision, remembered) =
            read.map_err(|fault| fault.with_remedy(keys.counter_example))?;
        let tasks = match &decision {
            Decision::Use(calls) => tasks_in(calls, tools),
            Decision::Answer(_) => None,
        };
        Ok(Turn {
            thoughts,
            tasks,
            ..Turn::of(decision, remembered)
        })
    }

    fn render(&self, history: &[HistoryMessage]) -> Vec<Message<'static>> {
        let calls = |message: &HistoryMessage| {
            let call =
                |call: &Call| json!({self.keys.tool: call.name, self.keys.input: call.input});
            let mut object = Map::new();
            if let Some(thoughts) = self.keys.thoughts {
                object.insert(thoughts.to_owned(), (&*message.content).into());
            }
            let calls = message.calls.iter().map(call).collect();
            object.insert(self.keys.calls.to_owned(), calls);
            Value::Object(object).to_string()
        };
        results::render(history, self.are_words_tagged, &calls)
    }
}

/// Joins the non-empty sections of the system prompt on replies, each with its heading.
pub(super) fn sections(format: &str, tools: &str, examples: &str) -> String {
    let parts = [
        ("Response Format", format),
        ("Tools", tools),
        ("Examples", examples),
    ]
    .map(|(heading, text)| (heading, text.trim_end()));
    let there = parts
        .iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(heading, text)| format!("# {heading}\n\n{text}"));
    there.collect::<Vec<_>>().join("\n\n")
}

impl ToolCalls {
    fn decision(
        &self,
        object: &Map<String, Value>,
        tools: &Toolbox<'_>,
    ) -> Result<Decision, String> {
        let Keys { calls, answer, .. } = self.keys;
        let mut others = object.keys().filter(|key| *key != calls && *key != answer);
        match (object.get(*calls), object.get(*answer), others.next()) {
            (Some(_), Some(_), _) => Err(format!(
                "the reply has both `{calls}` and `{answer}`: it must have exactly one of them"
            )),
            (None, None, None) => Err(format!(
                "the reply has neither `{calls}` nor `{answer}`: it must have exactly one of them"
            )),
            (None, None, Some(other)) => Err(format!(
                "the reply has {}, and neither `{calls}` nor `{answer}`",
                object::key(other)
            )),
            (_, _, Some(other)) => Err(format!(
                "the reply has {} beside `{calls}` or `{answer}`: nothing stands beside them",
                object::key(other)
            )),
            (Some(calls), None, None) => self.calls(calls, tools).map(Decision::Use),
            (None, Some(words), None) => match words.as_str() {
                Some(words) if words.trim().is_empty() => Err(format!("`{answer}` is blank")),
                Some(words) => Ok(Decision::Answer(bounded(words, LONGEST_KEPT))),
                None => Err(format!("`{answer}` must be a JSON string")),
            },
        }
    }

    fn calls(&self, list: &Value, tools: &Toolbox<'_>) -> Result<Vec<Call>, String> {
        let Keys {
            calls, tool, input, ..
        } = *self.keys;
        let call = object_schema(&json!({tool: {"type": "string"}, input: {"type": "object"}}));
        let form = json!({"type": "array", "minItems": 1, "items": call});
        schema::check(list, &form, calls)?;
        let list = list.as_array().into_iter().flatten().enumerate();
        list.map(|(index, call)| {
            let call = Call {
                id: Call::own_id(index + 1),
                name: call[tool].as_str().unwrap_or_default().to_owned(),
                input: call[input].clone(),
                ..Call::default()
            };
            let checked = self.check(&call, tools);
            checked.map_err(|problem| format!("`{calls}[{index}]`: {problem}"))?;
            Ok(call)
        })
        .collect()
    }

    /// Checks that a call names a known tool and has valid input.
    fn check(&self, call: &Call, tools: &Toolbox<'_>) -> Result<(), String> {
        if tools.named(&call.name).is_some() {
            let resolved = tools.resolve(call).map(drop);
            return resolved.map_err(|failure| failure.message);
        }
        if let Some((_, text)) = self.no_tools.iter().find(|(name, _)| *name == call.name) {
            return Err((*text).to_owned());
        }
        let unknown = tools.unknown(&one_line(&call.name, LONGEST_NAME));
        let names = tools.specs().map(|spec| &*spec.name);
        Err(match schema::nearest(&call.name, names) {
            Some(meant) => format!("{unknown}; did you mean `{meant}`?"),
            None => unknown,
        })
    }
}

#[cfg(test)]
mod tests;
