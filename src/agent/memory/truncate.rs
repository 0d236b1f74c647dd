//! A memory that leaves out what is in the middle: the first request is sent, and the last messages.
//!
//! Asks no model and changes nothing of what was said: what is left out is noted in the conversation, by numbers, so
//! that what is sent begins with the same bytes until the next time. Guarantees that no call is parted from its result,
//! and that the last request is always there, whole.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Range;

use super::{Compress, Frame, Memory, TokenCounts, View, shortened};
use crate::agent::AgentError;
use crate::agent::conversation::{Conversation, HistoryMessage, Truncation};
use crate::agent::host::Compressed;
use crate::agent::tagged::{Tag, tagged};
use crate::model::message::{ReplyPart, Role, Thought};
use crate::model::usage::Usage;

/// The notice to the user.
const TOLD: &str = "Auto-compacting conversation...";
/// The message that stands for those left out.
const NOTICE: &str = "<context_truncated>Older messages removed to save space</context_truncated>";

/// Messages kept at the end: replies, and what stands between two of them as one.
const KEPT: usize = 20;
/// Bytes of a result that are sent, fewer where that does not fit.
const SHARES: [usize; 4] = [usize::MAX, 8 << 10, 2 << 10, 512];
/// The distance below the threshold to get to, in percent of the window: else the next result would reach it again.
const ROOM: u64 = 10;
/// From which percentage on it gets to which where it cannot get so low.
const CLOSE: (u64, u64) = (95, 90);

/// Characters to a token, about.
const CHARACTERS: u64 = 4;
/// The most tokens of a picture.
const IMAGE: u64 = 1600;

/// The tokens of a model's window that a conversation takes: those that the vendor has counted of the last call, and one
/// for four characters of what came since.
#[derive(Debug, Default)]
pub struct Meter {
    counted: Cell<u64>,
    /// Messages of the history that were sent last.
    sent: Cell<usize>,
    /// Messages that are in what was counted, the reply among them.
    covered: Cell<usize>,
}

impl Meter {
    /// The vendor has answered the call that was made last.
    pub fn answered(&self, usage: &Usage) {
        self.counted
            .set(usage.input_tokens.saturating_add(usage.answered()));
        self.covered.set(self.sent.get() + 1);
    }

    /// Sets the estimate for a conversation that was made shorter or is taken up; 0 if there is none.
    pub fn estimated(&self, tokens: u64, conversation: &Conversation) {
        self.counted.set(tokens);
        self.covered.set(conversation.history.len());
    }

    /// Another conversation: nothing of it was counted.
    pub fn reset(&self) {
        self.counted.set(0);
    }

    /// The tokens of a conversation; 0 where nothing was counted yet.
    #[must_use]
    pub fn used(&self, conversation: &Conversation) -> u64 {
        let since = conversation.history.get(self.covered.get()..);
        match self.counted.get() {
            0 => 0,
            counted => counted + tokens_of(since.unwrap_or_default()),
        }
    }
}

/// About how many tokens messages have: one for four characters.
#[must_use]
pub fn tokens_of(history: &[HistoryMessage]) -> u64 {
    let text = |text: &str| text.chars().count() as u64;
    let message = |message: &HistoryMessage| {
        let calls = message.calls.iter();
        let calls: u64 = calls
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

/// Sends the first request and the last messages of a conversation that has come near the model's window.
#[derive(Debug, Clone, Copy)]
pub struct Truncate<'a> {
    /// The most tokens that the model takes.
    pub window: u64,
    /// At how many percent of them something is left out.
    pub threshold: u64,
    /// Knows how many tokens the conversation has.
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

    /// The window is smaller than the table says, or there are more tokens than were counted: half of them are to do, or
    /// what can be left out.
    fn shorten(
        &self,
        frame: Frame<'_>,
        conversation: &mut Conversation,
    ) -> Result<Option<Compressed>, AgentError> {
        let tokens = self.tokens(frame.system, conversation);
        let tried = [tokens / 2, tokens.saturating_sub(1)].into_iter();
        let mut tried = tried.map(|most| self.truncate(frame.system, most, conversation));
        Ok(tried.find_map(Result::ok))
    }
}

impl Truncate<'_> {
    /// Leaves something out where the conversation has come to the threshold. What cannot be brought below that, since
    /// what is left is that long, may come closer to the window.
    fn keep_below(
        &self,
        system: &[String],
        conversation: &mut Conversation,
    ) -> Result<Option<Compressed>, AgentError> {
        let room = self.threshold.saturating_sub(ROOM);
        for (from, most) in [(self.threshold, room), CLOSE] {
            if self.tokens(system, conversation) < self.share(from) {
                return Ok(None);
            }
            if let Ok(compressed) = self.truncate(system, self.share(most), conversation) {
                return Ok(Some(compressed));
            }
        }
        if self.tokens(system, conversation) <= self.window {
            return Ok(None);
        }
        let truncated = self.truncate(system, self.window, conversation);
        truncated.map(Some).map_err(|tokens| AgentError::TooLong {
            tokens,
            window: self.window,
            larger: None,
        })
    }

    fn share(&self, percent: u64) -> u64 {
        self.window / 100 * percent + self.window % 100 * percent / 100
    }

    /// The tokens of the next prompt: as it was counted, or else by its characters.
    fn tokens(&self, system: &[String], conversation: &Conversation) -> u64 {
        match self.meter.used(conversation) {
            0 => estimate(system, &sent(conversation)),
            used => used,
        }
    }

    /// Leaves out what must be for the next prompt to have no more than `most` tokens; else, how many it has at the
    /// least.
    fn truncate(
        &self,
        system: &[String],
        most: u64,
        conversation: &mut Conversation,
    ) -> Result<Compressed, u64> {
        let tokens_before = self.tokens(system, conversation);
        let estimated = estimate(system, &sent(conversation)).max(1);
        // What the vendor counts more than characters tell, it counts of what is left, too.
        let counted = |history: &[HistoryMessage]| {
            let tokens = u128::from(estimate(system, history)) * u128::from(tokens_before);
            u64::try_from(tokens / u128::from(estimated)).unwrap_or(u64::MAX)
        };
        let mut least = tokens_before;
        for truncation in ways(&conversation.history) {
            let tokens_after = counted(&view(&conversation.history, &truncation));
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

/// Asks the model for a summary, which takes the place of all that was said; by these
/// instructions, and above all of what the user asks to keep.
///
/// # Errors
/// When there is no reply, or the summary is not shorter ([`AgentError::NotCompressed`]); the conversation is then as it
/// was.
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
        // The summary needs room, and the estimate may be off.
        limit: window / 4 * 3,
        instructions: &instructions,
        counts: &TokenCounts::default(),
    };
    let tokens_before = super::size(frame.system, &frame.protocol.render(&sent(conversation)));
    let compressed = compress.compress(frame, conversation, tokens_before);
    let compressed = compressed.map_err(|error| match error {
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

/// The tokens of a prompt, by its characters.
fn estimate(system: &[String], history: &[HistoryMessage]) -> u64 {
    let characters: usize = system.iter().map(|text| text.chars().count()).sum();
    (characters as u64).div_ceil(CHARACTERS) + tokens_of(history)
}

/// The part of a conversation that is sent.
#[must_use]
pub fn sent(conversation: &Conversation) -> Cow<'_, [HistoryMessage]> {
    match &conversation.truncation {
        Some(truncation) if truncation.from <= conversation.history.len() => {
            Cow::Owned(view(&conversation.history, truncation))
        }
        _ => Cow::Borrowed(&conversation.history),
    }
}

/// Applies a truncation: the first request, a notice, the last request where it is not among the rest, the rest.
fn view(history: &[HistoryMessage], truncation: &Truncation) -> Vec<HistoryMessage> {
    let Truncation { from, end, .. } = *truncation;
    let first = first_request(history);
    let last = shown_from(history, truncation.request);
    let requests = [first.start, last.start];
    let kept = |range: Range<usize>| {
        range.filter_map(move |at| {
            let message = history.get(at)?;
            let is_whole = at >= end || requests.contains(&at);
            let share = if is_whole {
                usize::MAX
            } else {
                truncation.share
            };
            Some(shortened(message, share))
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

/// The range of the first request, or of the summary in its place, with what is shown behind it.
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

/// The ways to leave something out, less and less of it being left: results lose their middles, those that the model
/// reads next at last, then fewer messages are kept by halves.
fn ways(history: &[HistoryMessage]) -> impl Iterator<Item = Truncation> {
    let starts = turns(history);
    let start_of = move |kept: usize| {
        let turn = starts.len().saturating_sub(kept);
        let start = starts.get(turn).copied().unwrap_or(history.len());
        let before = start.checked_sub(1).and_then(|before| history.get(before));
        // The reply whose calls are answered there comes with it.
        let has_calls = before.is_some_and(|said| !said.calls.is_empty());
        let is_reply = is_agents(history.get(start));
        start - usize::from(has_calls && !is_reply)
    };
    let request = history.iter().rposition(is_request).unwrap_or(0);
    let [whole, shares @ ..] = SHARES;
    let [.., least] = SHARES;
    let (old, all) = (start_of(2), history.len());
    let shorter = [old, all].into_iter();
    let shorter =
        shorter.flat_map(move |end| shares.into_iter().map(move |share| (KEPT, share, end)));
    let fewer = std::iter::successors(Some(KEPT / 2), |kept| (*kept > 0).then_some(kept / 2));
    let fewer = fewer.map(move |kept| (kept, least, all));
    let ways = [(KEPT, whole, old)].into_iter().chain(shorter).chain(fewer);
    ways.map(move |(kept, share, end)| Truncation {
        from: start_of(kept),
        request,
        end,
        share,
    })
}

/// The starts of messages as the model sees them: a reply, or all that is said between two replies.
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
