//! A memory that omits the middle: it sends the first request and the last messages.
//!
//! Asks no model and changes no message. The omitted range is stored in the conversation by message index, so that the
//! prompt keeps the same prefix until the next truncation. Guarantees that no call is separated from its result, and
//! that the last request is always sent whole.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Range;

use super::{Compress, Frame, Memory, SHARES, TokenCounts, View, shortened};
use crate::agent::AgentError;
use crate::agent::conversation::{Conversation, HistoryMessage, Truncation};
use crate::agent::host::Compressed;
use crate::agent::tagged::{Tag, tagged};
use crate::model::message::{ReplyPart, Role};
use crate::model::usage::Usage;

/// The notice to the user.
const COMPACTING: &str = "Auto-compacting conversation...";
/// The message that replaces the omitted ones.
const NOTICE: &str = "<context_truncated>Older messages removed to save space</context_truncated>";

/// Number of messages kept at the end; each reply counts as one, and so does everything between two replies.
const KEPT: usize = 20;
/// Smaller numbers of messages to keep, tried in order.
const FEWER: [usize; 5] = [10, 5, 2, 1, 0];
/// Approximate number of characters per token.
const CHARACTERS: u64 = 4;
/// Maximum number of tokens for an image.
const IMAGE: u64 = 1600;

/// Estimates how much of a model's window a conversation takes: the vendor's token count for the last call, plus one
/// token per four characters of the messages since.
#[derive(Debug, Default)]
pub struct Meter {
    counted: Cell<u64>,
    /// Number of messages in the history sent last.
    sent: Cell<usize>,
    /// Number of messages included in the vendor's count, reply included.
    covered: Cell<usize>,
}

impl Meter {
    /// Records the vendor's token count for the latest call.
    pub fn answered(&self, usage: &Usage) {
        self.counted
            .set(usage.input_tokens.saturating_add(usage.answered()));
        self.covered.set(self.sent.get() + 1);
    }

    /// Sets the estimate for a conversation that was shortened or resumed; 0 if there is none.
    pub fn estimated(&self, tokens: u64, conversation: &Conversation) {
        self.counted.set(tokens);
        self.covered.set(conversation.history.len());
    }

    /// Resets the count for another conversation.
    pub fn reset(&self) {
        self.counted.set(0);
    }

    /// Returns the number of tokens in a conversation; 0 if nothing was counted yet.
    pub fn used(&self, conversation: &Conversation) -> u64 {
        let since = conversation.history.get(self.covered.get()..);
        match self.counted.get() {
            0 => 0,
            counted => counted + tokens_of(since.unwrap_or_default()),
        }
    }
}

/// Returns the approximate number of tokens in messages: one per four characters.
pub fn tokens_of(history: &[HistoryMessage]) -> u64 {
    let text = |text: &str| text.chars().count() as u64;
    let message = |message: &HistoryMessage| {
        let calls = message
            .calls
            .iter()
            .map(|call| text(&call.name) + text(&call.input.to_string()));
        let thoughts = message.parts.iter().map(|part| match part {
            ReplyPart::Thought(thought) => text(thought.text()),
            _ => 0,
        });
        let images = CHARACTERS * IMAGE * message.images.len() as u64;
        text(&message.content) + calls.sum::<u64>() + thoughts.sum::<u64>() + images
    };
    let characters: u64 = history.iter().map(message).sum();
    characters.div_ceil(CHARACTERS)
}

/// Sends the first request and the last messages of a conversation that has come close to the model's window.
#[derive(Debug, Clone, Copy)]
pub struct Truncate<'a> {
    /// The model's context window, in tokens.
    pub window: u64,
    /// The percentage of the window at which truncation begins.
    pub threshold: u64,
    /// Provides the token count of the conversation.
    pub meter: &'a Meter,
}

impl Memory for Truncate<'_> {
    fn view(&self, frame: Frame<'_>, conversation: &mut Conversation) -> Result<View, AgentError> {
        let compressed = self.keep_below(frame.system, conversation)?;
        self.meter.sent.set(conversation.history.len());
        Ok(View {
            compressed,
            ..View::of(frame.protocol.render(&sent(conversation)))
        })
    }

    fn notice(&self) -> Option<&'static str> {
        Some(COMPACTING)
    }

    /// Truncates the conversation. The window is smaller than the table says, or there are more tokens than were
    /// counted, so this aims for half of them, or for the smallest size that truncation allows.
    fn shorten(
        &self,
        frame: Frame<'_>,
        conversation: &mut Conversation,
    ) -> Result<Option<Compressed>, AgentError> {
        let tokens = self.tokens(frame.system, conversation);
        let mut targets = [tokens / 2, tokens.saturating_sub(1)].into_iter();
        Ok(targets.find_map(|most| self.truncate(frame.system, most, conversation).ok()))
    }
}

impl Truncate<'_> {
    /// Truncates a conversation that has reached the threshold until it is below it. If that is impossible, nothing is
    /// done until the window is full; the target is then halfway between threshold and window, or the window itself.
    fn keep_below(
        &self,
        system: &[String],
        conversation: &mut Conversation,
    ) -> Result<Option<Compressed>, AgentError> {
        let tokens = self.tokens(system, conversation);
        let below = (self.window / 100 * self.threshold).saturating_sub(1);
        if tokens <= below {
            return Ok(None);
        }
        let mut least = tokens;
        let targets = [below, below.midpoint(self.window), self.window];
        let tried = if tokens <= self.window { 1 } else { 3 };
        for most in targets.into_iter().take(tried) {
            match self.truncate(system, most, conversation) {
                Ok(compressed) => return Ok(Some(compressed)),
                Err(size) => least = size,
            }
        }
        let fits = tokens <= self.window;
        let too_long = || AgentError::too_long(least, self.window);
        fits.then_some(None).ok_or_else(too_long)
    }

    /// Returns the number of tokens in the next prompt: counted if possible, otherwise estimated from its characters.
    fn tokens(&self, system: &[String], conversation: &Conversation) -> u64 {
        match self.meter.used(conversation) {
            0 => estimate(system, &sent(conversation)),
            used => used,
        }
    }

    /// Truncates as little as necessary for the next prompt to have at most `most` tokens.
    ///
    /// # Errors
    /// The smallest number of tokens that it can have, if that is more.
    fn truncate(
        &self,
        system: &[String],
        most: u64,
        conversation: &mut Conversation,
    ) -> Result<Compressed, u64> {
        let tokens_before = self.tokens(system, conversation);
        let estimated = estimate(system, &sent(conversation)).max(1);
        let mut least = tokens_before;
        for truncation in ways(&conversation.history) {
            let size = estimate(system, &view(&conversation.history, &truncation));
            // If the vendor counts more tokens than estimated, the same ratio applies to the remaining messages.
            let tokens = u128::from(size) * u128::from(tokens_before) / u128::from(estimated);
            let tokens_after = u64::try_from(tokens).unwrap_or(u64::MAX);
            if tokens_after <= most {
                conversation.truncation = Some(truncation);
                self.meter.estimated(tokens_after, conversation);
                return Ok(Compressed {
                    tokens_before,
                    tokens_after,
                });
            }
            least = least.min(tokens_after);
        }
        Err(least)
    }
}

/// Asks the model for a summary that replaces the conversation, following these instructions and, above all, what the
/// user asks to keep.
///
/// # Errors
/// Fails if there is no reply, or the summary is not shorter ([`AgentError::NotCompressed`]); the conversation is then
/// unchanged.
pub fn summarize(
    frame: Frame<'_>,
    meter: &Meter,
    window: u64,
    (instructions, focus): (&str, &str),
    conversation: &mut Conversation,
) -> Result<Compressed, AgentError> {
    let instructions = match focus.trim() {
        "" => instructions.to_owned(),
        focus => {
            let focus = tagged(Tag::UserRequest, &[], focus);
            format!(
                "{instructions}\n## Focus\n\nThe user asks you to keep this above all:\n\n{focus}\n"
            )
        }
    };
    let compress = Compress {
        // Leaves room for the summary and for errors in the estimate.
        limit: window / 4 * 3,
        instructions: &instructions,
        counts: &TokenCounts::default(),
    };
    let tokens_before = super::size(frame.system, &frame.protocol.render(&sent(conversation)));
    let done = compress.compress(frame, conversation, tokens_before);
    let compressed = done.map_err(|error| match error {
        AgentError::NotCompressed { after, .. } => AgentError::NotCompressed {
            before: tokens_before,
            after,
            limit: window,
        },
        error => error,
    })?;
    meter.estimated(compressed.tokens_after, conversation);
    Ok(Compressed {
        tokens_before,
        ..compressed
    })
}

/// Returns the number of tokens in a prompt, estimated from its characters.
fn estimate(system: &[String], history: &[HistoryMessage]) -> u64 {
    let characters: usize = system.iter().map(|text| text.chars().count()).sum();
    (characters as u64).div_ceil(CHARACTERS) + tokens_of(history)
}

/// Returns the part of a conversation to send.
pub fn sent(conversation: &Conversation) -> Cow<'_, [HistoryMessage]> {
    match &conversation.truncation {
        Some(truncation) if truncation.from <= conversation.history.len() => {
            Cow::Owned(view(&conversation.history, truncation))
        }
        _ => Cow::Borrowed(&conversation.history),
    }
}

/// Applies a truncation: the first request, a notice, the last request if it is not among the rest, and the rest.
fn view(history: &[HistoryMessage], truncation: &Truncation) -> Vec<HistoryMessage> {
    let Truncation { from, end, .. } = *truncation;
    // The first request, or the summary in its place, with its attachments.
    let first = shown_from(history, history.iter().position(is_request).unwrap_or(0));
    let last = shown_from(history, truncation.request);
    let requests = [first.start, last.start];
    let kept = |range: Range<usize>| {
        range.filter_map(move |at| {
            let message = history.get(at)?;
            if at >= end || requests.contains(&at) {
                return Some(message.clone());
            }
            Some(shortened(message, truncation.share))
        })
    };
    if from <= first.end {
        return kept(0..history.len()).collect();
    }
    let mut left: Vec<HistoryMessage> = kept(first.clone()).collect();
    left.push(HistoryMessage::tagged(NOTICE.to_owned()));
    if last.start < from && last != first {
        left.extend(kept(last.start..last.end.min(from)));
    }
    left.extend(kept(from..history.len()));
    left
}

fn is_request(message: &HistoryMessage) -> bool {
    message.role == Role::User && (!message.is_tagged || message.is_summary())
}

fn shown_from(history: &[HistoryMessage], at: usize) -> Range<usize> {
    let behind = history.iter().skip(at + 1);
    let shown = behind.take_while(|message| message.role == Role::User && message.is_tagged);
    at..at + 1 + shown.count()
}

/// Returns the truncations to try, mildest first: results lose their middles, the most recent results last; then fewer
/// messages are kept.
fn ways(history: &[HistoryMessage]) -> impl Iterator<Item = Truncation> {
    let starts = turns(history);
    let start_of = move |kept: usize| {
        let turn = starts.len().saturating_sub(kept);
        let start = starts.get(turn).copied().unwrap_or(history.len());
        let before = start.checked_sub(1).and_then(|before| history.get(before));
        // Includes the reply whose calls are answered there.
        let has_calls = before.is_some_and(|message| !message.calls.is_empty());
        let is_reply = is_agents(history.get(start));
        start - usize::from(has_calls && !is_reply)
    };
    let request = history.iter().rposition(is_request).unwrap_or(0);
    let ends = [start_of(2), history.len()].into_iter();
    let shorter = ends.flat_map(|end| SHARES.map(|share| (KEPT, share, end)));
    let [.., least] = SHARES;
    let ways = shorter.chain(FEWER.map(|kept| (kept, least, history.len())));
    ways.map(move |(kept, share, end)| Truncation {
        from: start_of(kept),
        request,
        end,
        share,
    })
}

/// Returns the indices where messages start as the model sees them: a reply, or everything between two replies.
fn turns(history: &[HistoryMessage]) -> Vec<usize> {
    let is_agents = |at: usize| is_agents(history.get(at));
    let begins = |at: &usize| *at == 0 || is_agents(*at) || is_agents(*at - 1);
    (0..history.len()).filter(begins).collect()
}

fn is_agents(message: Option<&HistoryMessage>) -> bool {
    message.is_some_and(|message| message.role == Role::Assistant)
}

#[cfg(test)]
mod tests;
