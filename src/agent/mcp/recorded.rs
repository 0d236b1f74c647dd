//! The answers of a recorded run, in the place of a server's.
//!
//! Touches nothing: the record is read before. Guarantees that answers come in their order, at once, and only to what
//! was asked then; and that who looks at the [`RecordedClock`] sees the time that they came at.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, FixedOffset};

use serde::Deserialize;
use serde_json::Value;

use super::error::{Failed, McpError};
use super::message::Outgoing;
use super::transport::{CallDeadline, Transport};
use super::version::HANDSHAKE;
use crate::sys::environment::Clock;

/// The time of a recorded run: what an agent took then, it takes in the replay, so that it ends in the same way.
pub struct RecordedClock<'c> {
    clock: &'c dyn Clock,
    /// When the answer came that was taken last, in nanoseconds.
    elapsed: AtomicU64,
}

impl<'c> RecordedClock<'c> {
    /// One of a run of which no answer was taken yet; the date is that of `clock`.
    pub fn new(clock: &'c dyn Clock) -> Self {
        Self {
            clock,
            elapsed: AtomicU64::new(0),
        }
    }

    fn set(&self, seconds: f64) {
        let elapsed = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let nanoseconds = u64::try_from(elapsed.as_nanos()).unwrap_or_default();
        // Whatever the record says, time does not go back.
        self.elapsed.fetch_max(nanoseconds, Ordering::Relaxed);
    }
}

impl Clock for RecordedClock<'_> {
    fn now(&self) -> DateTime<FixedOffset> {
        self.clock.now()
    }

    fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.elapsed.load(Ordering::Relaxed))
    }
}

/// The exchanges that are left.
pub(super) struct Recorded<'r> {
    exchanges: VecDeque<RecordedExchange>,
    clock: &'r RecordedClock<'r>,
}

/// A line of the record. How long it took does not matter.
#[derive(Deserialize)]
struct RecordedExchange {
    method: String,
    #[serde(default)]
    params: Value,
    result: Option<Value>,
    #[serde(default)]
    error: Value,
    #[serde(default)]
    at: f64,
}

impl<'r> Recorded<'r> {
    /// Reads a run's `mcp.jsonl`; the clock is told when an answer came.
    ///
    /// # Errors
    /// The number of the line that is none, from 1 on. A last line that was cut counts as not there.
    pub fn read(text: &str, clock: &'r RecordedClock<'r>) -> Result<Self, usize> {
        let mut exchanges = VecDeque::new();
        let mut lines = text.lines().enumerate().peekable();
        while let Some((number, line)) = lines.next() {
            let is_cut = lines.peek().is_none() && !text.ends_with('\n');
            match serde_json::from_str(line) {
                Ok(recording) => exchanges.push_back(recording),
                Err(_) if is_cut => {}
                Err(_) => return Err(number + 1),
            }
        }
        Ok(Self { exchanges, clock })
    }
}

impl Transport for Recorded<'_> {
    fn open(&mut self, _deadline: &CallDeadline<'_>) -> Result<(), Failed> {
        Ok(())
    }

    fn request(
        &mut self,
        message: Outgoing<'_>,
        _deadline: &CallDeadline<'_>,
    ) -> Result<Value, Failed> {
        // A session begins anew in a run whose server has forgotten it.
        while message.method != HANDSHAKE
            && self
                .exchanges
                .front()
                .is_some_and(|next| next.method == HANDSHAKE)
        {
            self.exchanges.pop_front();
        }
        let asked = name(message.method, message.params);
        let next = self.exchanges.pop_front();
        let recorded = next.as_ref().map_or("nothing more".to_owned(), |next| {
            name(&next.method, &next.params)
        });
        match next {
            Some(next) if recorded == asked => {
                self.clock.set(next.at);
                let failed = || Failed::answered(McpError::from_record(next.error));
                next.result.ok_or_else(failed)
            }
            _ => Err(Failed::answered(McpError::NotRecorded { asked, recorded })),
        }
    }

    fn notify(
        &mut self,
        _message: Outgoing<'_>,
        _deadline: &CallDeadline<'_>,
    ) -> Result<(), Failed> {
        Ok(())
    }

    fn notify_in_hurry(&mut self, _message: Outgoing<'_>) {}

    fn close(&mut self, _in_hurry: bool) {}
}

/// What is asked for: the method, and of a call the tool.
fn name(method: &str, params: &Value) -> String {
    match params["name"].as_str() {
        Some(tool) if method == "tools/call" => format!("`{tool}`"),
        _ => format!("`{method}`"),
    }
}
