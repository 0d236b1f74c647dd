//! The transport of messages to a server and back: one trait, and the code shared by its implementations, namely
//! deadlines and the rule for retries.
//!
//! Performs no I/O. Guarantees that retries without progress are limited, that no wait exceeds the call's deadline, and
//! that a signal interrupts every wait.

use std::time::Duration;

use serde_json::Value;

use super::error::{Failed, McpError};
use super::message::Outgoing;
use super::observer::McpObserver;
use crate::sys::environment::Clock;
use crate::sys::http::retry::{MAX_TRIES, backoff};
use crate::sys::interrupt::Interrupt;

/// Bytes of an answer read in one go.
pub(super) const CHUNK: usize = 16 << 10;
/// Maximum size of an answer or an event, in bytes.
pub(super) const ANSWER_LIMIT: usize = 16 << 20;
/// The time limit of a notification, or of the reply to a server's ping.
pub(super) const ASIDE: Duration = Duration::from_secs(10);
/// The time limit of everything sent to a server after a signal.
pub(super) const FAREWELL_LIMIT: Duration = Duration::from_millis(80);

/// A connection to a server. Handles one request at a time; the caller decides on retries.
pub(super) trait Transport {
    /// Opens a new connection without a session. Called before the first request and after a connection was lost.
    ///
    /// # Errors
    /// Fails if no connection can be made.
    fn open(&mut self, _deadline: Deadline<'_>) -> Result<(), Failed> {
        Ok(())
    }

    /// Sends a request, and waits for its result.
    ///
    /// # Errors
    /// Fails if there is no result; the [`Failed`] describes the consequences.
    fn request(&mut self, message: Outgoing<'_>, deadline: Deadline<'_>) -> Result<Value, Failed>;

    /// Sends a notification.
    ///
    /// # Errors
    /// Fails if the server rejects the notification.
    fn notify(&mut self, _message: Outgoing<'_>, _deadline: Deadline<'_>) -> Result<(), Failed> {
        Ok(())
    }

    /// Sends a notification after a signal, within [`FAREWELL_LIMIT`], and ignores the outcome.
    fn notify_last(&mut self, _message: Outgoing<'_>) {}

    /// Ends the session; after a signal, within about [`FAREWELL_LIMIT`].
    fn close(&mut self, _after_signal: bool) {}
}

/// The point in time when a call must be finished.
#[derive(Clone, Copy)]
pub(super) struct Deadline<'c> {
    clock: &'c dyn Clock,
    at: Duration,
    limit: Duration,
}

impl<'c> Deadline<'c> {
    /// Creates a deadline this long from now.
    pub fn after(limit: Duration, clock: &'c dyn Clock) -> Self {
        Self {
            clock,
            at: clock.elapsed().saturating_add(limit),
            limit,
        }
    }

    /// Returns the earlier of this deadline and one this long from now.
    pub fn or_after(self, limit: Duration) -> Self {
        if self.left() <= limit {
            return self;
        }
        Self::after(limit, self.clock)
    }

    /// Returns the time left.
    pub fn left(&self) -> Duration {
        self.at.saturating_sub(self.clock.elapsed())
    }

    /// Creates the failure of a call whose deadline has passed.
    pub fn failure(&self, server: &str) -> Failed {
        Failed::lost(McpError::TimedOut {
            server: server.to_owned(),
            limit: self.limit,
        })
    }
}

/// The retries of a request, or of the stream with its answer.
pub(super) struct Retries<'r> {
    pub observer: &'r dyn McpObserver,
    /// Interrupts every wait.
    pub interrupt: &'r Interrupt,
    /// Tries without progress so far, counted from 1.
    pub count: u32,
}

impl Retries<'_> {
    /// Waits before the next try: the time that the server `advised`, or the usual delay. A count of 0 means that there
    /// was progress; then nothing is reported.
    ///
    /// # Errors
    /// The failure itself, if no tries are left or the wait would exceed the deadline.
    pub fn next(
        &mut self,
        failed: Failed,
        advised: Option<Duration>,
        deadline: Deadline<'_>,
    ) -> Result<(), Failed> {
        if self.count >= MAX_TRIES {
            return Err(failed.for_good(self.count));
        }
        // The sub-second part of the clock is random enough here: it only keeps clients from retrying in step.
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
