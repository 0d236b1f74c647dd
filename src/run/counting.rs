//! Counts the tokens of an answer while it arrives, for events that show its cost.

use std::cell::Cell;
use std::time::Duration;

use crate::model::price::{Price, Usd};
use crate::model::usage::Usage;
use crate::model::{Listener, human_duration, tokens};
use crate::record::event::{Event, Reporter};

/// A listener that passes the events of a call on to the reporter, and counts the tokens received.
pub(super) struct CountingListener<'c> {
    pub reporter: &'c dyn Reporter,
    /// The price of the call, if it is known.
    pub price: Option<Price>,
    /// The tokens sent.
    pub input_tokens: u64,
    /// The cost of the calls before.
    pub spent: Usd,
    /// The usage received so far, without the tokens sent.
    pub received: Cell<Usage>,
    /// True if part of an answer has arrived in the current try.
    pub has_begun: Cell<bool>,
    /// The number of tries that broke off after part of an answer had arrived.
    pub broken: Cell<u64>,
}

impl CountingListener<'_> {
    fn received(&self, piece: &str, is_thought: bool) {
        self.has_begun.set(true);
        if !self.reporter.is_live() {
            return;
        }
        let mut received = self.received.get();
        let kind = if is_thought {
            &mut received.thought_tokens
        } else {
            &mut received.output_tokens
        };
        *kind += tokens::count(piece);
        self.received.set(received);
        let input_tokens = self.input_tokens;
        let call = self.price.map(|price| {
            price.of(Usage {
                input_tokens,
                ..received
            })
        });
        self.reporter.event(&Event::Receiving {
            piece: piece.to_owned(),
            is_thought,
            output_tokens: received.output_tokens,
            thought_tokens: received.thought_tokens,
            spent: self.spent + call.unwrap_or_default(),
        });
    }
}

impl Listener for CountingListener<'_> {
    fn retrying(&self, next_try: u32, wait: Duration, reason: &str) {
        self.reporter.event(&Event::Retrying {
            next_try,
            wait,
            reason: reason.to_owned(),
        });
    }

    fn pausing(&self, pause: Duration) {
        let time = human_duration(pause);
        let notice = format!("waits {time}: the server's rate limit is used up");
        self.reporter.event(&Event::Notice(notice));
    }

    fn text(&self, piece: &str) {
        self.received(piece, false);
    }

    fn thought(&self, piece: &str) {
        self.received(piece, true);
    }

    fn restart(&self) {
        self.received.take();
        let broken = u64::from(self.has_begun.take());
        self.broken.set(self.broken.get() + broken);
    }
}
