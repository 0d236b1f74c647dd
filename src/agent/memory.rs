//! Memory: chooses which part of a conversation to send once it has grown too long for the model.
//!
//! Each strategy is a type: [`Compress`] asks the model for a summary. Others, such as one that drops the middle, one
//! for agents that keep a plan instead ([`recent`]) and one that keeps everything ([`whole`]), also implement
//! [`Memory`].

pub(crate) mod recent;
pub(crate) mod truncate;
pub(crate) mod whole;

use std::cell::RefCell;
use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

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

/// The part of a conversation to send.
pub struct View {
    /// The messages to send, in the protocol's form.
    pub messages: Vec<Message<'static>>,
    /// The system prompt to send with them, if it differs for this call.
    pub system: Option<Vec<String>>,
    /// The compression made for this call, if any.
    pub compressed: Option<Compressed>,
}

impl View {
    /// Creates a view of these messages only.
    fn of(messages: Vec<Message<'static>>) -> Self {
        Self {
            messages,
            system: None,
            compressed: None,
        }
    }
}

/// The context in which a conversation is sent.
#[derive(Clone, Copy)]
pub struct Frame<'f> {
    /// The run in which the model is asked.
    pub host: &'f dyn Host,
    /// The system prompt before the conversation.
    pub system: &'f [String],
    /// The form of its messages.
    pub protocol: &'f dyn Protocol,
}

/// Limits the part of a conversation that is sent. All messages stay in the conversation.
pub trait Memory {
    /// Returns the part of the conversation to send in this frame.
    ///
    /// # Errors
    /// Fails if it cannot be made short enough; the conversation is then unchanged.
    fn view(&self, frame: Frame<'_>, conversation: &mut Conversation) -> Result<View, AgentError>;

    /// Returns a notice to the user when the conversation was shortened, shown in addition to the sizes.
    fn notice(&self) -> Option<&'static str> {
        None
    }

    /// Shortens a conversation that the model rejected as too long, and returns by how much; `None` if that is
    /// impossible.
    ///
    /// # Errors
    /// Same as [`view`](Self::view).
    fn shorten(
        &self,
        _frame: Frame<'_>,
        _conversation: &mut Conversation,
    ) -> Result<Option<Compressed>, AgentError> {
        Ok(None)
    }
}

/// Maximum sizes of a single message or result, in bytes, tried in order until the prompt is short enough.
const SHARES: [usize; 4] = [usize::MAX, 8 << 10, 2 << 10, 512];

/// Cached token counts, by the texts' hashes: a conversation grows at its end and is counted before each step.
#[derive(Debug, Default)]
pub struct TokenCounts(RefCell<HashMap<u64, u64>>);

impl TokenCounts {
    /// Texts shorter than this, in bytes, are not cached: counting them is as fast as hashing them.
    const SHORT: usize = 64;

    fn count(&self, text: &str) -> u64 {
        if text.len() < Self::SHORT {
            return tokens::count(text);
        }
        let mut known = self.0.borrow_mut();
        let entry = known.entry(xxh3_64(text.as_bytes()));
        *entry.or_insert_with(|| tokens::count(text))
    }

    /// Returns the number of tokens in a prompt.
    fn size(&self, system: &[String], messages: &[Message<'_>]) -> u64 {
        let pieces = messages.iter().flat_map(Message::pieces);
        let conversation: u64 = pieces.map(|piece| self.count(&piece)).sum();
        let system: u64 = system.iter().map(|text| self.count(text)).sum();
        system + conversation
    }
}

/// Replaces the conversation with a summary written by the model and the user's requests.
#[derive(Debug, Clone, Copy)]
pub struct Compress<'a> {
    /// The number of tokens, including the system prompt, at which the conversation is compressed.
    pub limit: u64,
    /// The instructions for the summary; the conversation follows.
    pub instructions: &'a str,
    /// Caches the token counts of the conversation.
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

    /// Compresses the conversation. The window is smaller than the limit by an unknown amount, so the request for a
    /// summary is limited to half the size of the prompt that did not fit. If the next prompt is still too long, the
    /// model itself rejects it.
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
    /// Replaces the conversation with a summary if the prompt then has fewer than `most` tokens.
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

    /// Creates the request for a summary. It must fit where the conversation did not, so the middle of long results is
    /// omitted as necessary.
    fn request(self, conversation: &Conversation) -> Message<'static> {
        // The heading and the tags need tokens, too.
        let around = tokens::count(&framed("")) + tokens::count(self.instructions);
        let left = self.limit.saturating_sub(around);
        let mut shortened = String::new();
        for share in SHARES {
            shortened = transcript(&conversation.history, share);
            if tokens::count(&shortened) < left {
                break;
            }
        }
        // With very many messages, even the shortened ones may be too long.
        let tokens = tokens::count(&shortened);
        if tokens > left {
            let bytes = shortened.len() as u64 * left / tokens;
            shortened = bounded(&shortened, usize::try_from(bytes).unwrap_or(usize::MAX));
        }
        Message::text(Role::User, framed(&shortened))
    }
}

/// Formats the end of the summary prompt as the specification gives it.
fn framed(conversation: &str) -> String {
    let conversation = tagged(Tag::Conversation, &[], conversation);
    format!("## Conversation to Summarize\n\n{conversation}\n")
}

/// Returns the number of tokens in a prompt, without a cache.
fn size(system: &[String], messages: &[Message<'_>]) -> u64 {
    TokenCounts::default().size(system, messages)
}

/// Returns the message, truncated to `share` bytes if it has the output of a tool or the content of a file.
fn shortened(message: &HistoryMessage, share: usize) -> HistoryMessage {
    let is_data = message.role == Role::Tool || message.is_tagged && !message.is_summary();
    if !is_data || message.content.len() <= share {
        return message.clone();
    }
    HistoryMessage {
        content: bounded(&message.content, share).into(),
        ..message.clone()
    }
}
