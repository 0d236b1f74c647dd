//! The tries of a request, or of the stream with its answer: how many, how far apart, and that each is told.
//!
//! Touches nothing. Guarantees that there are no more than are usual without progress, that no wait outlasts the time for
//! the call, and that a signal ends it.

use std::time::Duration;

use super::error::Failed;
use super::observer::McpObserver;
use super::transport::Deadline;
use crate::sys::environment::Clock;
use crate::sys::http::retry::{MAX_TRIES, backoff};
use crate::sys::interrupt::Interrupt;

/// The tries so far.
pub(super) struct Retries<'r> {
    clock: &'r dyn Clock,
    observer: &'r dyn McpObserver,
    interrupt: &'r Interrupt,
    /// Tries without progress so far.
    pub count: u32,
}

impl<'r> Retries<'r> {
    /// The first try is about to be made.
    pub fn new(
        clock: &'r dyn Clock,
        observer: &'r dyn McpObserver,
        interrupt: &'r Interrupt,
    ) -> Self {
        Self {
            clock,
            observer,
            interrupt,
            count: 1,
        }
    }

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
        let jitter = f64::from(self.clock.now().timestamp_subsec_micros()) / 1e6;
        let wait = advised.unwrap_or_else(|| backoff(self.count, jitter));
        if wait >= deadline.left() {
            let failed = failed.for_good(self.count);
            return Err(Failed {
                error: failed.error.no_time_left(wait),
                ..failed
            });
        }
        self.count += 1;
        if self.count > 1 {
            let reason = failed.error.to_string();
            self.observer.retrying(self.count, wait, &reason);
        }
        self.interrupt.sleep(wait)?;
        Ok(())
    }
}
