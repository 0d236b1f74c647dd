//! The vendor's native tool calls: tools with JSON schemas, calls with ids, and one result for each id. Pure.

use serde_json::{Value, json};

use super::exchange::{in_words, tasks_in};
use super::markdown::without_thoughts;
use super::{Decision, Fault, Offer, Protocol, Turn};
use crate::agent::conversation::{CUT_SHORT, HistoryMessage, as_text};
use crate::agent::tool::{CallFailure, ToolSpec, Toolbox};
use crate::model::message::{Call, CallResult, Message, Part, ReplyPart, Role};
use crate::model::{Form, Reply};

const INSTRUCTIONS: &str = "Use the tools that you are given. A reply without a tool call is your answer, and ends \
                            the work.";

/// The protocol that uses the vendor's native tool calls.
#[derive(Debug, Clone, Copy)]
pub struct Native {
    /// Instructions for the model on how to end the work.
    pub instructions: &'static str,
    /// The format of results.
    pub results: ResultForm,
}

/// The format in which a model gets the results of its calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResultForm {
    /// Plain text.
    #[default]
    Words,
    /// JSON: `{"status": "success", "data": …}` or `{"status": "error", "error": {"code", "message", "hint"}}`.
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
            parts: reply.parts.clone(),
            ..Turn::of(decision, words)
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
                let (message, hint) = (&failure.message, &failure.hint);
                let error = json!({"code": failure.code, "message": message, "hint": hint});
                json!({"status": "error", "error": error}).to_string()
            }
        }
    }

    /// Renders calls and results as message parts, and the parts of a reply in order. Messages from another protocol
    /// have no calls to answer and remain text.
    ///
    /// Each call has exactly one result, in the message right after it. Notes between the results are moved after them,
    /// and a call without a result is reported as interrupted.
    fn render(&self, history: &[HistoryMessage]) -> Vec<Message<'static>> {
        let mut messages: Vec<Message<'static>> = Vec::new();
        let mut rest = history;
        while let Some((message, behind)) = rest.split_first() {
            rest = behind;
            if message.role != Role::Assistant {
                messages.push(of_user(message));
                continue;
            }
            let parts = reply_parts(message);
            if parts.is_empty() {
                continue;
            }
            messages.push(Message {
                role: Role::Assistant,
                parts,
            });
            if message.calls.is_empty() {
                continue;
            }
            let next = rest.iter().position(|one| one.role == Role::Assistant);
            let (turn, later) = rest.split_at(next.unwrap_or(rest.len()));
            rest = later;
            let (results, others) = results(&message.calls, turn);
            messages.push(Message {
                role: Role::Tool,
                parts: results,
            });
            messages.extend(others.into_iter().map(of_user));
        }
        messages
    }
}

/// Returns the words of the user, a tool or the program as text, after any images.
fn of_user(entry: &HistoryMessage) -> Message<'static> {
    let images = entry.images.iter().cloned().map(Part::Image);
    let texts = as_text(std::slice::from_ref(entry))
        .into_iter()
        .flat_map(|message| message.parts);
    Message {
        role: Role::User,
        parts: images.chain(texts).collect(),
    }
}

/// Returns the reply's parts without blank texts, which vendors reject; if the parts are not known, its words and
/// calls.
fn reply_parts(reply: &HistoryMessage) -> Vec<Part<'static>> {
    let text = |text: &str| {
        let text = Some(text).filter(|text| !text.trim().is_empty());
        text.map(|text| Part::Text(text.to_owned().into()))
    };
    let named = |id: &String| reply.calls.iter().find(|call| call.id == *id);
    let part = |part: &ReplyPart| match part {
        ReplyPart::Text(words) => text(words),
        ReplyPart::Thought(thought) => Some(Part::Thought(thought.clone())),
        ReplyPart::Call(id) => named(id).cloned().map(Part::Call),
    };
    let is_in_place = |call: &&Call| {
        let mut parts = reply.parts.iter();
        parts.any(|part| matches!(part, ReplyPart::Call(id) if *id == call.id))
    };
    let words = text(&reply.content).filter(|_| reply.parts.is_empty());
    let others = reply.calls.iter().filter(|call| !is_in_place(call));
    let in_place = words.into_iter().chain(reply.parts.iter().filter_map(part));
    in_place.chain(others.cloned().map(Part::Call)).collect()
}

/// Returns the result of each of these calls, and the other messages.
fn results<'h>(
    calls: &[Call],
    turn: &'h [HistoryMessage],
) -> (Vec<Part<'static>>, Vec<&'h HistoryMessage>) {
    let answer = |call: &Call| {
        let is_answer = |entry: &HistoryMessage| entry.call.as_ref() == Some(&call.id);
        turn.iter().position(is_answer)
    };
    let answers: Vec<Option<usize>> = calls.iter().map(answer).collect();
    let result = |(call, at): (&Call, &Option<usize>)| {
        let entry = at.and_then(|at| turn.get(at));
        Part::Result(CallResult {
            id: call.id.clone(),
            text: entry.map_or(CUT_SHORT, |entry| &entry.content).to_owned(),
            is_error: entry.is_none_or(|entry| entry.is_failed),
        })
    };
    let results = calls.iter().zip(&answers).map(result).collect();
    let others = turn
        .iter()
        .enumerate()
        .filter(|(at, _)| !answers.contains(&Some(*at)));
    (results, others.map(|(_, entry)| entry).collect())
}

#[cfg(test)]
pub(in crate::agent) mod tests;
