//! The content of an answer, and the check that it is a whole reply. Pure.

use serde_json::value::RawValue;

use super::error::one_line;
use super::{End, ModelError, Reply, Spent, json_text};
use crate::model::message::{Call, ReplyPart, Thought};
use crate::sys::text::BYTE_ORDER_MARK;

/// A part of an answer.
pub(super) enum RawPart<'a> {
    /// A JSON string that is part of the text.
    Text(&'a RawValue),
    Thought(Thought),
    Call(Call),
}

/// The content of an answer, before it is known to be a whole reply.
pub(super) struct RawReply<'a> {
    pub parts: Vec<RawPart<'a>>,
    /// True if the parts go back in their order, rather than all text before the calls.
    pub is_ordered: bool,
    /// The finish reason, where there is one.
    pub finish: Option<String>,
    /// Interprets the vendor's word.
    pub meaning: fn(&str) -> End,
    /// The vendor's sentence about the finish reason.
    pub message: Option<String>,
    pub spent: Spent,
}

impl RawReply<'_> {
    /// The reply.
    ///
    /// # Errors
    /// When it is not whole.
    pub fn checked(self) -> Result<Reply, ModelError> {
        let Some(finish) = self.finish.as_deref().map(one_line) else {
            return Err(ModelError::Unfinished);
        };
        let end = (self.meaning)(&finish);
        let has_calls = self
            .parts
            .iter()
            .any(|part| matches!(part, RawPart::Call(_)));
        // Without a call, there is nothing to wait for: the reply was cut short.
        let waits_for_nothing = end == End::ToolCalls && !has_calls;
        if !matches!(end, End::Stop | End::ToolCalls | End::Paused) || waits_for_nothing {
            return Err(ModelError::CutShort {
                finish,
                end,
                message: self.message,
                spent: self.spent.into(),
            });
        }
        let (mut text, mut calls, mut parts) = (String::new(), Vec::new(), Vec::new());
        for part in self.parts {
            let part = match part {
                RawPart::Text(literal) => {
                    let from = text.len();
                    json_text::append(&mut text, literal)
                        .map_err(|source| ModelError::not_json(literal.get().as_bytes(), source))?;
                    if !self.is_ordered || text.len() == from {
                        continue;
                    }
                    ReplyPart::Text(text[from..].to_owned())
                }
                RawPart::Thought(thought) => ReplyPart::Thought(thought),
                RawPart::Call(mut call) => {
                    // Some servers give none, or one twice.
                    if call.id.is_empty() || calls.iter().any(|other: &Call| other.id == call.id) {
                        call.id = Call::own_id(calls.len() + 1);
                    }
                    let id = call.id.clone();
                    calls.push(call);
                    ReplyPart::Call(id)
                }
            };
            parts.extend(self.is_ordered.then_some(part));
        }
        if text.starts_with(BYTE_ORDER_MARK) {
            text.drain(..BYTE_ORDER_MARK.len());
        }
        if text.trim().is_empty() && !has_calls && end != End::Paused {
            let spent = self.spent.into();
            return Err(ModelError::Empty { finish, spent });
        }
        Ok(Reply {
            text: text.into(),
            // Some servers say that they stop where they wait.
            end: if has_calls { End::ToolCalls } else { end },
            calls,
            parts,
            finish,
            usage: self.spent.usage,
            model_version: self.spent.model_version,
            tier: self.spent.tier,
        })
    }
}
