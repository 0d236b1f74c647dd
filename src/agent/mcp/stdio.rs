//! A server run as a program: messages are lines on its stdin and stdout.
//!
//! Starts that program. Guarantees that the program and all its descendants are gone once the client is dropped.

use std::io::{self, ErrorKind};
use std::mem::take;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::error::{Failed, McpError};
use super::message::{Incoming, Outgoing};
use super::observer::McpObserver;
use super::transport::{ANSWER_LIMIT, CHUNK, Deadline, FAREWELL_LIMIT, Transport};
use crate::exec::child_env::ChildEnv;
use crate::exec::pipes::PipedProgram;
use crate::sys::interrupt::Interrupt;
use crate::sys::text::one_line;

/// The time given to the program to end by itself, and again after it was asked to.
const MAX_END: Duration = Duration::from_secs(2);

/// The number of the program's last output lines shown in errors.
const SHOWN_LINES: usize = 3;

/// A server that uses this transport.
pub(super) struct Stdio<'a> {
    pub words: Vec<String>,
    /// The program's environment.
    pub env: ChildEnv,
    /// The path of this program's executable, which supervises the server.
    pub own: Option<PathBuf>,
    pub interrupt: Interrupt,
    pub observer: &'a dyn McpObserver,
    /// The program, once started.
    pub program: Option<PipedProgram>,
    /// The lines that were received, and the beginning of an incomplete one.
    pub received: Vec<u8>,
    /// The number of these bytes that have been parsed.
    pub parsed: usize,
}

impl Stdio<'_> {
    fn name(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    fn send(&mut self, message: &str, deadline: Deadline<'_>) -> Result<(), Failed> {
        let Some(program) = &mut self.program else {
            return Err(self.failed("is not running"));
        };
        let line = format!("{message}\n");
        let sent = program.write(line.as_bytes(), &self.interrupt, &|| deadline.left());
        sent.map_err(|error| {
            let failed = self.broken(&error, deadline);
            // Part of a line may have been written, so no other can follow.
            self.program = None;
            failed.ending()
        })
    }

    /// Reads the next bytes; returns `true` if they complete a line.
    fn receive(&mut self, deadline: Deadline<'_>) -> Result<bool, Failed> {
        let Some(program) = &mut self.program else {
            return Err(self.failed("is not running"));
        };
        let known = self.received.len();
        self.received.resize(known + CHUNK, 0);
        let read = program.read(&mut self.received[known..], &self.interrupt, &|| {
            deadline.left()
        });
        self.received.truncate(known + *read.as_ref().unwrap_or(&0));
        match read {
            // The request may have begun before the program ended.
            Ok(0) => Err(Failed::lost(
                self.failed("has ended before it has answered").error,
            )),
            Ok(_) => Ok(self.received[known..].contains(&b'\n')),
            Err(error) => Err(self.broken(&error, deadline)),
        }
    }

    /// Takes a received line and parses its message; `None` if the line is other output of the program.
    fn take_line(&mut self, awaited: u64) -> Option<Vec<Incoming>> {
        let rest = &self.received[self.parsed..];
        let Some(length) = memchr::memchr(b'\n', rest) else {
            // Once for all lines, however many there are.
            self.received.drain(..take(&mut self.parsed));
            self.received.shrink_to(CHUNK);
            return None;
        };
        let message = serde_json::from_slice(&rest[..length]);
        self.parsed += length + 1;
        Some(message.map_or_else(|_| Vec::new(), |message| Incoming::read(message, awaited)))
    }

    fn broken(&self, error: &io::Error, deadline: Deadline<'_>) -> Failed {
        if let Err(interrupted) = self.interrupt.check() {
            return interrupted.into();
        }
        match error.kind() {
            ErrorKind::TimedOut => deadline.failure(self.name()),
            ErrorKind::BrokenPipe => self.failed("has ended"),
            _ => self.failed(&format!("cannot be spoken to: {error}")),
        }
    }

    /// Creates the failure of a program that sends no more output.
    fn failed(&self, reason: &str) -> Failed {
        let program = self.program.as_ref();
        let words = program
            .map(|program| program.last_words(FAREWELL_LIMIT))
            .unwrap_or_default();
        // The last lines are more informative than the first ones of a long trace.
        let first = words.lines().count().saturating_sub(SHOWN_LINES);
        let last: Vec<&str> = words.lines().skip(first).collect();
        Failed::answered(McpError::Program {
            program: self.name().to_owned(),
            reason: reason.to_owned(),
            was_started: self.program.is_some(),
            output: one_line(&last.join(" "), 500),
        })
    }
}

impl Transport for Stdio<'_> {
    fn open(&mut self, _deadline: Deadline<'_>) -> Result<(), Failed> {
        self.program = None;
        self.received.clear();
        self.parsed = 0;
        let (words, own) = (&self.words, self.own.as_deref());
        let started = PipedProgram::start_supervised(words, &self.env, own, &self.interrupt);
        self.program =
            Some(started.map_err(|error| self.failed(&format!("cannot be started: {error}")))?);
        Ok(())
    }

    fn request(&mut self, message: Outgoing<'_>, deadline: Deadline<'_>) -> Result<Value, Failed> {
        self.send(&message.to_text(), deadline)?;
        let awaited = message.id.unwrap_or_default();
        loop {
            while let Some(messages) = self.take_line(awaited) {
                for incoming in messages {
                    match incoming {
                        Incoming::Answer(outcome) => return Ok(outcome?),
                        Incoming::Asks(reply) => self.send(&reply.to_string(), deadline)?,
                        Incoming::Progress(text) => self.observer.progress(&text),
                    }
                }
            }
            // Each byte is scanned only once, however long the line is.
            while !self.receive(deadline)? {
                if self.received.len() > ANSWER_LIMIT {
                    // The rest of the line would be taken for the next line.
                    self.program = None;
                    return Err(Failed::lost(McpError::TooLarge(self.name().to_owned())).ending());
                }
            }
        }
    }

    fn notify(&mut self, message: Outgoing<'_>, deadline: Deadline<'_>) -> Result<(), Failed> {
        self.send(&message.to_text(), deadline)
    }

    fn notify_last(&mut self, message: Outgoing<'_>) {
        let line = format!("{}\n", message.to_text());
        if let Some(program) = &mut self.program {
            program.write_at_once(line.as_bytes());
        }
    }

    fn close(&mut self, after_signal: bool) {
        if let Some(mut program) = self.program.take() {
            program.end(if after_signal {
                FAREWELL_LIMIT
            } else {
                MAX_END
            });
        }
    }
}
