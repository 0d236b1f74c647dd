//! Memory: what is sent of a conversation that grows too long for the model.
//!
//! One type a way: [`Compress`] asks the model for a summary. Others, like one that forgets the middle or
//! one that keeps a plan instead ([`recent`]) or everything ([`whole`]), are further implementations of [`Memory`].

pub(crate) mod recent;
pub(crate) mod truncate;
pub(crate) mod whole;

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::conversation::{Conversation, HistoryMessage, transcript};
use super::error::AgentError;
use super::host::{Compressed, Host};
use super::protocol::Protocol;
use super::protocol::markdown::without_thoughts;
use super::tagged::{Tag, tagged};
use crate::model::message::{Message, Role};
use crate::model::prompt::Prompt;
use crate::model::{ModelError, Purpose, tokens};
use crate::sys::excerpt::text::bounded;

/// The part of a conversation that is sent.
pub struct View {
    /// The messages to send, in the protocol's form.
    pub messages: Vec<Message<'static>>,
    /// The system prompt that it stands behind, where that is another for this call.
    pub system: Option<Vec<String>>,
    /// The compression made for this call, if any.
    pub compressed: Option<Compressed>,
}

impl View {
    /// Messages as they are.
    fn of(messages: Vec<Message<'static>>) -> Self {
        Self {
            messages,
            system: None,
            compressed: None,
        }
    }
}

/// The frame in which a conversation is sent.
#[derive(Clone, Copy)]
pub struct Frame<'f> {
    /// The run in which the model is asked.
    pub host: &'f dyn Host,
    /// The system prompt ahead of it.
    pub system: &'f [String],
    /// The form of its messages.
    pub protocol: &'f dyn Protocol,
}

/// Keeps what is sent of a conversation short enough. What was said stays in the conversation.
pub trait Memory {
    /// Gives what is to be sent of the conversation in this frame.
    ///
    /// # Errors
    /// When it cannot be made short enough; the conversation is then as it was.
    fn view(&self, frame: Frame<'_>, conversation: &mut Conversation) -> Result<View, AgentError>;

    /// The notice to the user when it was made shorter, besides by how much.
    fn notice(&self) -> Option<&'static str> {
        None
    }

    /// Makes the conversation shorter, since the model does not take it as it is, and says by how much; `None` where
    /// there is no way.
    ///
    /// # Errors
    /// As [`view`](Self::view).
    fn shorten(
        &self,
        _frame: Frame<'_>,
        _conversation: &mut Conversation,
    ) -> Result<Option<Compressed>, AgentError> {
        Ok(None)
    }
}

/// Bytes of a single message, or of a result, that are sent; fewer where that is still too long.
const SHARES: [usize; 4] = [usize::MAX, 8 << 10, 2 << 10, 512];

/// Tokens of texts that were counted before, by the texts' hashes: a conversation grows at its end, and is counted before
/// each step.
#[derive(Debug, Default)]
pub struct TokenCounts(RefCell<HashMap<u64, u64>>);

impl TokenCounts {
    /// A shorter text, in bytes, is counted as fast as it is hashed.
    const SHORT: usize = 64;

    fn count(&self, text: &str) -> u64 {
        if text.len() < Self::SHORT {
            return tokens::count(text);
        }
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let mut known = self.0.borrow_mut();
        let known = known.entry(hasher.finish());
        *known.or_insert_with(|| tokens::count(text))
    }

    /// The tokens of a prompt.
    fn size(&self, system: &[String], messages: &[Message<'_>]) -> u64 {
        let pieces = messages.iter().flat_map(Message::pieces);
        let conversation: u64 = pieces.map(|piece| self.count(&piece)).sum();
        let system: u64 = system.iter().map(|text| self.count(text)).sum();
        system + conversation
    }
}

/// Replaces the conversation by a summary that the model writes, and the user's requests.
#[derive(Debug, Clone, Copy)]
pub struct Compress<'a> {
    /// From so many tokens on, the system prompt included.
    pub limit: u64,
    /// The instructions for the summary; the conversation follows.
    pub instructions: &'a str,
    /// Remembers the tokens of what was said.
    pub counts: &'a TokenCounts,
}

impl Memory for Compress<'_> {
    fn view(&self, frame: Frame<'_>, conversation: &mut Conversation) -> Result<View, AgentError> {
        let messages = frame.protocol.render(&conversation.history);
        if self.counts.size(frame.system, &messages) < self.limit {
            return Ok(View::of(messages));
        }
        let compressed = self.compress(frame, conversation, self.limit)?;
        Ok(View {
            compressed: Some(compressed),
            ..View::of(frame.protocol.render(&conversation.history))
        })
    }

    /// The window is smaller than the limit says, and nobody knows how small: the model is asked to sum up half of
    /// what did not fit, and whether the summary is short enough, it says itself.
    fn shorten(
        &self,
        frame: Frame<'_>,
        conversation: &mut Conversation,
    ) -> Result<Option<Compressed>, AgentError> {
        let messages = frame.protocol.render(&conversation.history);
        let tokens = self.counts.size(frame.system, &messages);
        let smaller = Self {
            limit: self.limit.min(tokens / 2),
            ..*self
        };
        smaller.compress(frame, conversation, tokens).map(Some)
    }
}

impl Compress<'_> {
    /// Replaces what was said by a summary, if the prompt then has less than `most` tokens.
    fn compress(
        self,
        frame: Frame<'_>,
        conversation: &mut Conversation,
        most: u64,
    ) -> Result<Compressed, AgentError> {
        let size = |history: &[HistoryMessage]| {
            let messages = frame.protocol.render(history);
            self.counts.size(frame.system, &messages)
        };
        let tokens_before = size(&conversation.history);
        let prompt = Prompt::of_agent([self.instructions], vec![self.request(conversation)], 0);
        let reply = frame.host.ask(&Purpose::COMPRESSION, prompt)?;
        let words = without_thoughts(&reply.text);
        if words.is_empty() {
            return Err(AgentError::Model(ModelError::Empty {
                finish: reply.finish,
                spent: Box::default(),
            }));
        }
        let summary = HistoryMessage::summary(&words, &conversation.requests);
        let tokens_after = size(std::slice::from_ref(&summary));
        if tokens_after >= most {
            return Err(AgentError::NotCompressed {
                before: tokens_before,
                after: tokens_after,
                limit: self.limit,
            });
        }
        conversation.sum_up(summary);
        Ok(Compressed {
            tokens_before,
            tokens_after,
        })
    }

    /// The request for a summary. It must fit where the conversation itself did not: the middle of long
    /// results is left out, as far as that is needed.
    fn request(self, conversation: &Conversation) -> Message<'static> {
        // The heading and the tags have some, too.
        let around = tokens::count(&framed("")) + tokens::count(self.instructions);
        let left = self.limit.saturating_sub(around);
        let mut told = String::new();
        for share in SHARES {
            told = transcript(&conversation.history, share);
            if tokens::count(&told) < left {
                break;
            }
        }
        // Of very many messages, even the shares may be too much.
        let tokens = tokens::count(&told);
        if tokens > left {
            let bytes = told.len() as u64 * left / tokens;
            told = bounded(&told, usize::try_from(bytes).unwrap_or(usize::MAX));
        }
        Message::text(Role::User, framed(&told))
    }
}

/// The end of the specification's prompt for a summary.
fn framed(conversation: &str) -> String {
    let conversation = tagged(Tag::CONVERSATION, &[], conversation);
    format!("## Conversation to Summarize\n\n{conversation}\n")
}

/// The tokens of a prompt that is not counted again.
fn size(system: &[String], messages: &[Message<'_>]) -> u64 {
    TokenCounts::default().size(system, messages)
}

/// The message with no more than so many bytes of what a tool or a file says.
fn shortened(message: &HistoryMessage, share: usize) -> HistoryMessage {
    let is_data = message.role == Role::Tool || message.is_tagged && !message.is_summary();
    if !is_data || message.content.len() <= share {
        return message.clone();
    }
    HistoryMessage {
        content: bounded(&message.content, share),
        ..message.clone()
    }
}
