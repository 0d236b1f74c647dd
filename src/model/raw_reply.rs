//! The content of an answer, and the check that it is a whole reply. Pure.

use serde_json::value::RawValue;

use super::error::one_line;
use super::{End, ModelError, Reply, Spent, json_text};
use crate::model::message::{Call, ReplyPart, Thought};
use crate::sys::text::BYTE_ORDER_MARK;

/// A part of an answer.
pub(super) enum RawPart<'a> {
    /// A piece of the text, as a JSON string.
    Text(&'a RawValue),
    Thought(Thought),
    Call(Call),
}

/// The content of an answer that has not been checked yet.
pub(super) struct RawReply<'a> {
    pub parts: Vec<RawPart<'a>>,
    /// True if the parts are sent back in order, rather than all text before the calls. Thinking is always in order.
    pub is_ordered: bool,
    /// The vendor's finish reason, if there is one.
    pub finish: Option<String>,
    /// Maps the vendor's finish reason.
    pub meaning: fn(&str) -> End,
    /// The vendor's message about the finish reason.
    pub message: Option<String>,
    pub spent: Spent,
}

impl RawReply<'_> {
    /// Checks that the reply is whole, and builds it.
    ///
    /// # Errors
    /// Fails if the reply is not whole.
    pub fn checked(self) -> Result<Reply, ModelError> {
        let named = self.finish.as_deref().map(one_line);
        let finish = named.ok_or(ModelError::Unfinished)?;
        let end = (self.meaning)(&finish);
        let is_call = |part: &RawPart<'_>| matches!(part, RawPart::Call(_));
        let has_calls = self.parts.iter().any(is_call);
        // A reply that waits for results without a call was cut short.
        let waits_for_nothing = end == End::ToolCalls && !has_calls;
        if !matches!(end, End::Stop | End::ToolCalls | End::Paused) || waits_for_nothing {
            return Err(ModelError::CutShort {
                finish,
                end,
                message: self.message,
                spent: self.spent.into(),
            });
        }
        let is_thought = |part: &RawPart<'_>| matches!(part, RawPart::Thought(_));
        let is_ordered = self.is_ordered || self.parts.iter().any(is_thought);
        let (mut text, mut calls, mut parts) = (String::new(), Vec::new(), Vec::new());
        for part in self.parts {
            let part = match part {
                RawPart::Text(literal) => {
                    let from = text.len();
                    json_text::append(&mut text, literal)
                        .map_err(|source| ModelError::not_json(literal.get().as_bytes(), source))?;
                    if !is_ordered || text.len() == from {
                        continue;
                    }
                    ReplyPart::Text(text[from..].to_owned())
                }
                RawPart::Thought(thought) => ReplyPart::Thought(thought),
                RawPart::Call(mut call) => {
                    // Some servers send no id, or the same one twice.
                    if call.id.is_empty() || calls.iter().any(|other: &Call| other.id == call.id) {
                        call.id = Call::own_id(calls.len() + 1);
                    }
                    let id = call.id.clone();
                    calls.push(call);
                    ReplyPart::Call(id)
                }
            };
            parts.extend(is_ordered.then_some(part));
        }
        if text.starts_with(BYTE_ORDER_MARK) {
            text.drain(..BYTE_ORDER_MARK.len());
        }
        if text.trim().is_empty() && !has_calls && end != End::Paused {
            let spent = self.spent.into();
            return Err(ModelError::Empty { finish, spent });
        }
        Ok(Reply {
            is_redacted: false,
            text: text.into(),
            // Some servers report a normal stop when the model waits for results.
            end: if has_calls { End::ToolCalls } else { end },
            calls,
            parts,
            finish,
            spent: self.spent,
        })
    }
}
