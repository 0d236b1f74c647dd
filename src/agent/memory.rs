//! What becomes of a conversation that grows too long for the model.
//!
//! One type a way: [`Compress`] asks the model for a summary. Others, like one that forgets the middle or
//! one that keeps a plan instead, are further implementations of [`Memory`].

use super::conversation::{Conversation, Remark};
use super::tagged::{Tag, tagged};
use super::{AgentError, Host, Purpose};
use crate::model::message::{Message, Role, Text};
use crate::model::prompt::Prompt;
use crate::model::tokens;
use crate::sys::excerpt::text::bounded;
use crate::workflow::error::Error;

/// How a conversation was made shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compressed {
    /// The tokens of the next prompt as it would have been.
    pub tokens_before: u64,
    /// Its tokens now.
    pub tokens_after: u64,
}

/// Keeps a conversation short enough.
pub trait Memory {
    /// Looks at the conversation before it is sent behind `system`, and makes it shorter where it is too
    /// long.
    ///
    /// # Errors
    /// When it cannot be made shorter; it is then as it was.
    fn make_room(
        &self,
        host: &dyn Host,
        system: &str,
        conversation: &mut Conversation,
    ) -> Result<Option<Compressed>, Error>;
}

/// How many bytes of a single remark go into the request for a summary; less where that is still too long.
const SHARES: [usize; 4] = [usize::MAX, 8 << 10, 2 << 10, 512];

/// Replaces the conversation by a summary that the model writes, and the user's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compress<'a> {
    /// From so many tokens on, the system prompt included.
    pub limit: u64,
    /// How the model is to summarize; the conversation follows.
    pub instructions: &'a str,
}

impl Memory for Compress<'_> {
    fn make_room(
        &self,
        host: &dyn Host,
        system: &str,
        conversation: &mut Conversation,
    ) -> Result<Option<Compressed>, Error> {
        let tokens_before = size(system, conversation);
        if tokens_before < self.limit {
            return Ok(None);
        }
        let request = self.request(conversation);
        let prompt = Prompt::of_agent(self.instructions, vec![request], 0);
        let reply = host.ask(Purpose::Compression, prompt)?;
        let mut shorter = conversation.clone();
        shorter.history = vec![Remark::summary(reply.text.trim(), &conversation.requests)];
        let tokens_after = size(system, &shorter);
        if tokens_after >= tokens_before || tokens_after >= self.limit {
            return Err(AgentError::NotCompressed {
                before: tokens_before,
                after: tokens_after,
                limit: self.limit,
            }
            .into());
        }
        *conversation = shorter;
        Ok(Some(Compressed {
            tokens_before,
            tokens_after,
        }))
    }
}

impl Compress<'_> {
    /// The request for a summary. It must fit where the conversation itself did not: the middle of long
    /// results is left out, as far as that is needed.
    fn request(self, conversation: &Conversation) -> Message<'static> {
        // The heading and the tags have some, too.
        let around = tokens::count(&framed("")) + tokens::count(self.instructions);
        let left = self.limit.saturating_sub(around);
        let mut told = String::new();
        for share in SHARES {
            told = conversation.told(share);
            if tokens::count(&told) < left {
                break;
            }
        }
        // Of very many remarks, even the shares may be too much.
        let tokens = tokens::count(&told);
        if tokens > left {
            let bytes = told.len() as u64 * left / tokens;
            told = bounded(&told, usize::try_from(bytes).unwrap_or(usize::MAX));
        }
        let mut text = Text::default();
        text.push(framed(&told));
        Message {
            role: Role::User,
            text,
        }
    }
}

/// The end of the specification's prompt for a summary.
fn framed(conversation: &str) -> String {
    let conversation = tagged(Tag::Conversation, &[], conversation);
    format!("## Conversation to Summarize\n\n{conversation}\n")
}

/// The tokens of a prompt.
fn size(system: &str, conversation: &Conversation) -> u64 {
    let messages = conversation.messages();
    let pieces = messages.iter().flat_map(|message| message.text.pieces());
    std::iter::once(system)
        .chain(pieces)
        .map(tokens::count)
        .sum()
}
