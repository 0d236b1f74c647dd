//! A JSON object as the whole reply: `{"thoughts": …, "calls": [{"tool": …, "input": {…}}]}`, or an `answer` in the
//! place of the calls. Pure.
//!
//! For models that a server can hold to a schema. What is not of the form is a fault: nothing is guessed.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::markdown::without_thoughts;
use super::object::unfenced;
use super::{Decision, Fault, Offer, Protocol, Turn, tasks_in};
use crate::agent::tool::Toolbox;
use crate::model::message::Call;
use crate::model::{Form, Reply};

/// The protocol of one JSON object a reply.
#[derive(Debug, Clone, Copy, Default)]
pub struct Json;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonReply {
    thoughts: Option<String>,
    calls: Option<Vec<WrittenCall>>,
    answer: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCall {
    tool: String,
    #[serde(default = "nothing")]
    input: Value,
}

fn nothing() -> Value {
    json!({})
}

impl Protocol for Json {
    fn offer(&self, tools: &Toolbox<'_>) -> Offer {
        let described = tools.specs().map(|spec| {
            let input = spec.schema();
            format!(
                "- {}: {} `input` follows {input}\n",
                spec.name, spec.description
            )
        });
        let names: Vec<&str> = tools.specs().map(|spec| &*spec.name).collect();
        let call = json!({"type": "object", "required": ["tool", "input"], "properties":
            {"tool": {"type": "string", "enum": names}, "input": {"type": "object"}}});
        let schema = json!({"type": "object", "required": ["thoughts"], "properties": {
            "thoughts": {"type": "string"}, "calls": {"type": "array", "items": call}, "answer": {"type": "string"}}});
        Offer {
            instructions: format!(
                "Reply with one JSON object and nothing else, such as {}. The calls are carried out in their order, and you are told what came of each. \
                 With `answer`, a text, in the place of `calls`, the work ends.\n\n# Tools\n\n{}",
                example(tools),
                described.collect::<String>()
            ),
            form: Form {
                schema: Some(schema),
                ..Form::default()
            },
        }
    }

    fn read(&self, reply: &Reply, tools: &Toolbox<'_>) -> Result<Turn, Fault> {
        let spoken = without_thoughts(&reply.text);
        let text = unfenced(&spoken);
        let object: JsonReply = serde_json::from_str(text).map_err(|error| {
            let line = (error.line() > 0).then_some(error.line());
            Fault {
                line,
                remedy: "",
                problem: format!(
                    "the reply is not the one JSON object that was described: {error}"
                ),
            }
        })?;
        let calls = object.calls.into_iter().flatten().zip(1_usize..);
        let calls: Vec<Call> = calls
            .map(|(call, number)| Call {
                id: format!("call-{number}"),
                name: call.tool,
                input: call.input,
                ..Call::default()
            })
            .collect();
        let tasks = tasks_in(&calls, tools);
        let decision = match (calls.is_empty(), object.answer) {
            (false, None) => Decision::Use(calls),
            (true, Some(answer)) => Decision::Answer(answer),
            (false, Some(_)) => return Err(one_of_them("both `calls` and `answer`")),
            (true, None) => return Err(one_of_them("neither `calls` nor `answer`")),
        };
        Ok(Turn {
            thoughts: object.thoughts.unwrap_or_default(),
            tasks,
            decision,
            note: None,
            outside: String::new(),
            parts: Vec::new(),
            remembered: text.to_owned(),
        })
    }
}

/// A reply that calls the first tool.
fn example(tools: &Toolbox<'_>) -> Value {
    let calls = tools.specs().take(1).map(|spec| {
        let parameters = spec.parameters.iter();
        let input = parameters.map(|known| (known.name.to_owned(), known.example.into()));
        json!({"tool": spec.name, "input": input.collect::<Map<String, Value>>()})
    });
    json!({"thoughts": "First I look around.", "calls": calls.collect::<Vec<Value>>()})
}

fn one_of_them(found: &str) -> Fault {
    Fault::of_all(format!("the reply has {found}: it has one of them"))
}
