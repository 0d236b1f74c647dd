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
use crate::model::message::{ReplyPart, Role, Thought};
use crate::model::usage::Usage;

/// The notice to the user.
const TOLD: &str = "Auto-compacting conversation...";
/// The message that replaces the omitted ones.
const NOTICE: &str = "<context_truncated>Older messages removed to save space</context_truncated>";

/// Messages kept at the end; each reply counts as one, and so does everything between two replies.
const KEPT: usize = 20;
/// Distance below the threshold to reach, as a percentage of the window; otherwise the next result would exceed it
/// again.
const ROOM: u64 = 10;

/// The number of [`ways`] that keep these messages whole but for their results, of which the first keeps those too.
const KEEPING: usize = 2 * SHARES.len() - 1;

/// If that target cannot be reached: the percentage at which to truncate, and the one to reach.
const CLOSE: (u64, u64) = (95, 90);

/// Approximate number of characters per token.
const CHARACTERS: u64 = 4;
/// Maximum number of tokens for an image.
const IMAGE: u64 = 1600;

/// Estimates the tokens that a conversation takes of a model's window: the vendor's count for the last call, plus one
/// token for four characters of the messages since.
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

    /// Sets the estimate for a conversation that was shortened or resumed; 0 without one.
    pub fn estimated(&self, tokens: u64, conversation: &Conversation) {
        self.counted.set(tokens);
        self.covered.set(conversation.history.len());
    }

    /// Resets the count for another conversation.
    pub fn reset(&self) {
        self.counted.set(0);
    }

    /// The number of tokens in a conversation; 0 if nothing was counted yet.
    pub fn used(&self, conversation: &Conversation) -> u64 {
        let since = conversation.history.get(self.covered.get()..);
        match self.counted.get() {
            0 => 0,
            counted => counted + tokens_of(since.unwrap_or_default()),
        }
    }
}

/// The approximate number of tokens in messages: one for four characters.
pub fn tokens_of(history: &[HistoryMessage]) -> u64 {
    let text = |text: &str| text.chars().count() as u64;
    let message = |message: &HistoryMessage| {
        let calls: u64 = message
            .calls
            .iter()
            .map(|call| text(&call.name) + text(&call.input.to_string()))
            .sum();
        let thoughts = message.parts.iter().map(|part| match part {
            ReplyPart::Thought(
                Thought::Shown { text: thought, .. } | Thought::Sealed { data: thought },
            ) => text(thought),
            _ => 0,
        });
        let images = CHARACTERS * IMAGE * message.images.len() as u64;
        text(&message.content) + calls + thoughts.sum::<u64>() + images
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
        Some(TOLD)
    }

    /// The window is smaller than the table says, or there are more tokens than were counted: aims for half of them, or
    /// for the smallest size that truncation allows.
    fn shorten(
        &self,
        frame: Frame<'_>,
        conversation: &mut Conversation,
    ) -> Result<Option<Compressed>, AgentError> {
        let tokens = self.tokens(frame.system, conversation);
        let tried = [tokens / 2, tokens.saturating_sub(1)].into_iter();
        let mut tried =
            tried.map(|most| self.truncate(frame.system, &[(usize::MAX, most)], conversation));
        Ok(tried.find_map(Result::ok))
    }
}

impl Truncate<'_> {
    /// Truncates a conversation that has reached the threshold. The last messages are kept wherever they fit below
    /// it. If what remains is too long for that, the conversation may come closer to the window.
    fn keep_below(
        &self,
        system: &[String],
        conversation: &mut Conversation,
    ) -> Result<Option<Compressed>, AgentError> {
        let mut tokens = self.tokens(system, conversation);
        let room = self.share(self.threshold.saturating_sub(ROOM));
        let below = self.share(self.threshold).saturating_sub(1);
        let keeping = [
            (1, room),
            (1, below),
            (KEEPING, room),
            (KEEPING, below),
            (usize::MAX, room),
        ];
        let (close, all) = (
            [(usize::MAX, self.share(CLOSE.1))],
            [(usize::MAX, self.window)],
        );
        for (from, tries) in [
            (self.threshold, &keeping[..]),
            (CLOSE.0, &close),
            (100, &all),
        ] {
            if tokens < self.share(from) {
                return Ok(None);
            }
            match self.truncate(system, tries, conversation) {
                Ok(compressed) => return Ok(Some(compressed)),
                Err(least) if from == 100 => tokens = least,
                Err(_) => {}
            }
        }
        Err(AgentError::too_long(tokens, self.window))
    }

    fn share(&self, percent: u64) -> u64 {
        self.window / 100 * percent + self.window % 100 * percent / 100
    }

    /// The number of tokens in the next prompt: counted if possible, otherwise estimated from its characters.
    fn tokens(&self, system: &[String], conversation: &Conversation) -> u64 {
        match self.meter.used(conversation) {
            0 => estimate(system, &sent(conversation)),
            used => used,
        }
    }

    /// Truncates as little as necessary for the next prompt to have at most so many tokens, by each number of the
    /// mildest ways in `tries` in turn; if that is impossible, returns the smallest size it can have.
    fn truncate(
        &self,
        system: &[String],
        tries: &[(usize, u64)],
        conversation: &mut Conversation,
    ) -> Result<Compressed, u64> {
        let tokens_before = self.tokens(system, conversation);
        let estimated = estimate(system, &sent(conversation)).max(1);
        // If the vendor counts more tokens than estimated, the same ratio applies to the remaining messages.
        let counted = |history: &[HistoryMessage]| {
            let tokens = u128::from(estimate(system, history)) * u128::from(tokens_before);
            u64::try_from(tokens / u128::from(estimated)).unwrap_or(u64::MAX)
        };
        let ways: Vec<_> = ways(&conversation.history)
            .map(|truncation| {
                let tokens_after = counted(&view(&conversation.history, &truncation));
                (truncation, tokens_after)
            })
            .collect();
        let mut found = tries.iter().filter_map(|(first, most)| {
            let mut mildest = ways.iter().take(*first);
            mildest.find(|(_, tokens)| tokens <= most)
        });
        let Some(&(truncation, tokens_after)) = found.next() else {
            let sizes = ways.iter().map(|(_, tokens)| *tokens);
            return Err(sizes.min().unwrap_or(tokens_before).min(tokens_before));
        };
        conversation.truncation = Some(truncation);
        self.meter.estimated(tokens_after, conversation);
        Ok(Compressed {
            tokens_before,
            tokens_after,
        })
    }
}

/// Asks the model for a summary that replaces the conversation, following these instructions and, above all, what the
/// user asks to keep.
///
/// # Errors
/// When there is no reply, or the summary is not shorter ([`AgentError::NotCompressed`]); the conversation is then
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
            let focus = tagged(Tag::USER_REQUEST, &[], focus);
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
    let compressed = compress
        .compress(frame, conversation, tokens_before)
        .map_err(|error| match error {
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

/// The number of tokens in a prompt, estimated from its characters.
fn estimate(system: &[String], history: &[HistoryMessage]) -> u64 {
    let characters: usize = system.iter().map(|text| text.chars().count()).sum();
    (characters as u64).div_ceil(CHARACTERS) + tokens_of(history)
}

/// The part of a conversation to send.
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
    let first = first_request(history);
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

/// The range of the first request, or of the summary in its place, with its attachments.
fn first_request(history: &[HistoryMessage]) -> Range<usize> {
    let at = history.iter().position(is_request);
    shown_from(history, at.unwrap_or(0))
}

fn is_request(message: &HistoryMessage) -> bool {
    message.role == Role::User && (!message.is_tagged || message.is_summary())
}

fn shown_from(history: &[HistoryMessage], at: usize) -> Range<usize> {
    let behind = history.iter().skip(at + 1);
    let shown = behind.take_while(|message| message.role == Role::User && message.is_tagged);
    at..at + 1 + shown.count()
}

/// Truncations in the order to try, from the mildest on: results lose their middles, those that the model reads next
/// last of all; then fewer messages are kept, by halves.
fn ways(history: &[HistoryMessage]) -> impl Iterator<Item = Truncation> {
    let starts = turns(history);
    let start_of = move |kept: usize| {
        let turn = starts.len().saturating_sub(kept);
        let start = starts.get(turn).copied().unwrap_or(history.len());
        let before = start.checked_sub(1).and_then(|before| history.get(before));
        // Includes the reply whose calls are answered there.
        let has_calls = before.is_some_and(|said| !said.calls.is_empty());
        let is_reply = is_agents(history.get(start));
        start - usize::from(has_calls && !is_reply)
    };
    let request = history.iter().rposition(is_request).unwrap_or(0);
    let [whole, shares @ .., least] = SHARES;
    let (old, all) = (start_of(2), history.len());
    let shorter = [old, all].into_iter().flat_map(move |end| {
        let shares = shares.into_iter().chain([least]);
        shares.map(move |share| (KEPT, share, end))
    });
    let fewer = std::iter::successors(Some(KEPT / 2), |kept| (*kept > 0).then_some(kept / 2))
        .map(move |kept| (kept, least, all));
    let ways = [(KEPT, whole, old)].into_iter().chain(shorter).chain(fewer);
    ways.map(move |(kept, share, end)| Truncation {
        from: start_of(kept),
        request,
        end,
        share,
    })
}

/// The indices where messages start as the model sees them: a reply, or everything between two replies.
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
