//! The transport of messages to a server and back: one trait, and what its implementations share: the time for a call, and
//! the one rule by which something is tried again.
//!
//! Touches nothing. Guarantees that there are no more tries than are usual without progress, that no wait outlasts the time
//! for the call, and that a signal ends it.

use std::time::Duration;

use serde_json::Value;

use super::error::{Failed, McpError};
use super::message::Outgoing;
use super::observer::McpObserver;
use crate::sys::environment::Clock;
use crate::sys::http::retry::{MAX_TRIES, backoff};
use crate::sys::interrupt::Interrupt;

/// Bytes of an answer that are read at once.
pub(super) const CHUNK: usize = 16 << 10;
/// More of an answer, or of an event, is not read.
pub(super) const ANSWER_LIMIT: usize = 16 << 20;
/// The time limit of a notification, or of the answer to a server's ping.
pub(super) const ASIDE: Duration = Duration::from_secs(10);
/// The time limit of all that is still said to a server after a signal.
pub(super) const FAREWELL_LIMIT: Duration = Duration::from_millis(80);

/// A way to a server. One request at a time; whether it is tried again is not decided here.
pub(super) trait Transport {
    /// Makes a new connection, without a session. To be called before the first request, and when one was lost.
    ///
    /// # Errors
    /// When there is none.
    fn open(&mut self, _deadline: Deadline<'_>) -> Result<(), Failed> {
        Ok(())
    }

    /// Sends a request, and waits for its result.
    ///
    /// # Errors
    /// When there is no result: what that means is in the [`Failed`].
    fn request(&mut self, message: Outgoing<'_>, deadline: Deadline<'_>) -> Result<Value, Failed>;

    /// Sends a notification.
    ///
    /// # Errors
    /// When the server does not take it.
    fn notify(&mut self, _message: Outgoing<'_>, _deadline: Deadline<'_>) -> Result<(), Failed> {
        Ok(())
    }

    /// Sends a notification after a signal, within [`FAREWELL_LIMIT`]. Nobody asks how it went.
    fn notify_last(&mut self, _message: Outgoing<'_>) {}

    /// Ends the session; after a signal within [`FAREWELL_LIMIT`], give or take.
    fn close(&mut self, _after_signal: bool) {}
}

/// When a call has to be over.
#[derive(Clone, Copy)]
pub(super) struct Deadline<'c> {
    clock: &'c dyn Clock,
    at: Duration,
    limit: Duration,
}

impl<'c> Deadline<'c> {
    /// In so long from now on.
    pub fn after(limit: Duration, clock: &'c dyn Clock) -> Self {
        Self {
            clock,
            at: clock.elapsed().saturating_add(limit),
            limit,
        }
    }

    /// Brings it forward to this time from now on, if that is sooner.
    pub fn or_after(self, limit: Duration) -> Self {
        if self.left() <= limit {
            return self;
        }
        Self::after(limit, self.clock)
    }

    /// The time that is left.
    pub fn left(&self) -> Duration {
        self.at.saturating_sub(self.clock.elapsed())
    }

    /// The failure that tells that it is over.
    pub fn is_over(&self, server: &str) -> Failed {
        Failed::lost(McpError::TimedOut {
            server: server.to_owned(),
            limit: self.limit,
        })
    }
}

/// The tries of a request, or of the stream with its answer.
pub(super) struct Retries<'r> {
    pub observer: &'r dyn McpObserver,
    /// Ends every wait.
    pub interrupt: &'r Interrupt,
    /// Tries without progress so far, from 1 on.
    pub count: u32,
}

impl Retries<'_> {
    /// Waits for the next try: as long as the server has `advised`, or as is usual. A count of 0 says that there was
    /// progress: then nothing is told.
    ///
    /// # Errors
    /// The failure, where all tries are used up, or the time would be.
    pub fn next(
        &mut self,
        failed: Failed,
        advised: Option<Duration>,
        deadline: Deadline<'_>,
    ) -> Result<(), Failed> {
        if self.count >= MAX_TRIES {
            return Err(failed.for_good(self.count));
        }
        // The wall clock's sub-second part is as good a die as any: it only keeps clients apart.
        let jitter = f64::from(deadline.clock.now().timestamp_subsec_micros()) / 1e6;
        let wait = advised.unwrap_or_else(|| backoff(self.count, jitter));
        if wait >= deadline.left() {
            let failed = failed.for_good(self.count);
            let source = Box::new(failed.error);
            return Err(Failed {
                error: McpError::NoTimeLeft { source, wait },
                ..failed
            });
        }
        self.count += 1;
        if self.count > 1 {
            let reason = failed.error.to_string();
            self.observer.retrying(self.count, wait, &reason);
        }
        Ok(self.interrupt.sleep(wait)?)
    }
}
