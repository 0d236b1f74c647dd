//! What a wire finds in an answer, and whether that is a whole reply. Pure.

use serde_json::value::RawValue;

use super::error::one_line;
use super::{End, ModelError, Reply, Spent, json_text};
use crate::model::message::{Call, ReplyPart};
use crate::sys::text::BYTE_ORDER_MARK;

/// What a wire finds in an answer, before it is known to be a whole reply.
pub(super) struct RawReply<'a> {
    /// The JSON strings that make up the text.
    pub literals: Vec<&'a RawValue>,
    /// The tools that are called.
    pub calls: Vec<Call>,
    /// All of it in its order, where the wire has that; else empty.
    pub parts: Vec<ReplyPart>,
    /// The finish reason, where there is one.
    pub finish: Option<String>,
    /// What the vendor's word means.
    pub meaning: fn(&str) -> End,
    /// What the vendor says of the finish reason.
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
        // Without a call, there is nothing to wait for: the reply was cut short.
        let waits_for_nothing = end == End::ToolCalls && self.calls.is_empty();
        if !matches!(end, End::Stop | End::ToolCalls | End::Paused) || waits_for_nothing {
            return Err(ModelError::CutShort {
                finish,
                end,
                message: self.message,
                spent: self.spent.into(),
            });
        }
        let mut text = String::new();
        for literal in self.literals {
            json_text::append(&mut text, literal)
                .map_err(|source| ModelError::not_json(literal.get().as_bytes(), source))?;
        }
        if text.starts_with(BYTE_ORDER_MARK) {
            text.drain(..BYTE_ORDER_MARK.len());
        }
        if text.trim().is_empty() && self.calls.is_empty() && end != End::Paused {
            let spent = self.spent.into();
            return Err(ModelError::Empty { finish, spent });
        }
        Ok(Reply {
            text: text.into(),
            // Some servers say that they stop where they wait.
            end: if self.calls.is_empty() {
                end
            } else {
                End::ToolCalls
            },
            calls: self.calls,
            parts: self.parts,
            finish,
            usage: self.spent.usage,
            model_version: self.spent.model_version,
            tier: self.spent.tier,
        })
    }
}
