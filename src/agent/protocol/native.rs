//! The vendor's own tool calls: tools with JSON schemas, calls with ids, a result for each id. Pure.

use serde_json::{Value, json};

use super::markdown::without_thoughts;
use super::{Decision, Fault, Offer, Protocol, Turn, in_words, tasks_in};
use crate::agent::conversation::{HistoryMessage, as_text};
use crate::agent::tool::{CallFailure, ToolSpec, Toolbox};
use crate::model::message::{CallResult, Message, Part, Role};
use crate::model::{Form, Reply};

const INSTRUCTIONS: &str = "Use the tools that you are given. A reply without a tool call is your answer, and ends \
                            the work.";

/// The protocol of the vendor's own tool calls.
#[derive(Debug, Clone, Copy)]
pub struct Native {
    /// How the work ends, for the model.
    pub instructions: &'static str,
    /// How results are told.
    pub results: ResultForm,
}

/// How a model is told what came of its calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResultForm {
    /// In words.
    #[default]
    Words,
    /// As `{"status": "success", "data": …}` or `{"status": "error", "error": {"code", "message", "hint"}}`.
    Json,
}

impl Default for Native {
    fn default() -> Self {
        Self {
            instructions: INSTRUCTIONS,
            results: ResultForm::Words,
        }
    }
}

impl Protocol for Native {
    fn offer(&self, tools: &Toolbox<'_>) -> Offer {
        Offer {
            instructions: self.instructions.to_owned(),
            form: Form {
                tools: tools.specs().map(ToolSpec::described).collect(),
                ..Form::default()
            },
        }
    }

    fn read(&self, reply: &Reply, tools: &Toolbox<'_>) -> Result<Turn, Fault> {
        let words = without_thoughts(&reply.text);
        if words.is_empty() && reply.calls.is_empty() {
            return Err(Fault::of_all(
                "the reply has thoughts alone, no answer and no call",
            ));
        }
        let (thoughts, decision) = if reply.calls.is_empty() {
            (String::new(), Decision::Answer(words.clone()))
        } else {
            (words.clone(), Decision::Use(reply.calls.clone()))
        };
        Ok(Turn {
            thoughts,
            tasks: tasks_in(&reply.calls, tools),
            decision,
            note: None,
            outside: String::new(),
            parts: reply.parts.clone(),
            remembered: words,
        })
    }

    fn remembers_calls(&self) -> bool {
        true
    }

    fn result(&self, done: Result<(&str, Option<&Value>), &CallFailure>) -> String {
        match (self.results, done) {
            (ResultForm::Words, done) => in_words(done),
            (ResultForm::Json, Ok((text, data))) => {
                let data = data.cloned().unwrap_or_else(|| text.into());
                json!({"status": "success", "data": data}).to_string()
            }
            (ResultForm::Json, Err(failure)) => {
                let CallFailure {
                    code,
                    message,
                    hint,
                } = failure;
                let error = json!({"code": code, "message": message, "hint": hint});
                json!({"status": "error", "error": error}).to_string()
            }
        }
    }

    /// Calls and results as parts. What was said in another protocol has no calls to answer, and stays text.
    fn render(&self, history: &[HistoryMessage]) -> Vec<Message<'static>> {
        let mut messages: Vec<Message<'static>> = Vec::new();
        let mut open: Vec<String> = Vec::new();
        for said in history {
            if !said.calls.is_empty() {
                open = said.calls.iter().map(|call| call.id.clone()).collect();
                let words = (!said.content.is_empty()).then(|| said.content.clone().into());
                let calls = said.calls.iter().cloned().map(Part::Call);
                messages.push(Message {
                    role: Role::Assistant,
                    parts: words.map(Part::Text).into_iter().chain(calls).collect(),
                });
                continue;
            }
            let answered = said.call.as_ref().filter(|id| open.contains(id));
            if let Some(id) = answered {
                let result = Part::Result(CallResult {
                    id: id.clone(),
                    text: said.content.clone(),
                    is_error: said.is_failed,
                });
                match messages.last_mut() {
                    Some(last) if last.role == Role::Tool => last.parts.push(result),
                    _ => messages.push(Message {
                        role: Role::Tool,
                        parts: vec![result],
                    }),
                }
                continue;
            }
            messages.extend(as_text(std::slice::from_ref(said)));
        }
        messages
    }
}
