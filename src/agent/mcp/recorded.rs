//! The answers from a recorded run, used in place of a server.
//!
//! Performs no I/O: the record was read beforehand. Guarantees that answers come in order, immediately, and only for
//! the recorded requests.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Duration;

use serde_json::Value;

use super::error::{Failed, McpError};
use super::message::Outgoing;
use super::observer::Exchange;
use super::transport::{Deadline, Transport};
use super::version::HANDSHAKE;
use crate::sys::environment::RecordedClock;

/// The remaining exchanges of a record.
pub(super) struct Recorded<'a> {
    exchanges: VecDeque<Exchange<'static>>,
    /// The clock, which is set to the end time of the latest exchange taken.
    clock: &'a RecordedClock<'a>,
}

impl<'a> Recorded<'a> {
    /// Reads a run's `mcp.jsonl`.
    ///
    /// # Errors
    /// The number of the first invalid line, counted from 1. A truncated last line is ignored.
    pub fn read(text: &str, clock: &'a RecordedClock<'a>) -> Result<Self, usize> {
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
    fn request(&mut self, message: Outgoing<'_>, _deadline: Deadline<'_>) -> Result<Value, Failed> {
        // The recorded run started a new session when the server had forgotten the old one; a replay skips that
        // handshake.
        let is_handshake = |next: &Exchange<'_>| next.method == HANDSHAKE;
        while message.method != HANDSHAKE && self.exchanges.front().is_some_and(is_handshake) {
            self.exchanges.pop_front();
        }
        let asked = name(message.method, message.params);
        let next = self.exchanges.pop_front();
        let recorded = next.as_ref().map(|next| {
            let at = Duration::try_from_secs_f64(next.at);
            self.clock.set(at.unwrap_or_default());
            name(&next.method, &next.params)
        });
        match next {
            Some(next) if recorded.as_ref() == Some(&asked) => next
                .result
                .map(Cow::into_owned)
                .ok_or_else(|| Failed::answered(McpError::from_record(next.error))),
            _ => Err(Failed::answered(McpError::NotRecorded { asked, recorded })),
        }
    }
}

/// Names a request: by its method, or a call by its tool.
fn name(method: &str, params: &Value) -> String {
    match params["name"].as_str() {
        Some(tool) if method == "tools/call" => format!("`{tool}`"),
        _ => format!("`{method}`"),
    }
}
