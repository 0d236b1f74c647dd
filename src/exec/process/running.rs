//! A command that was started: what its keeper says of it, waiting for its end, and ending it.
//!
//! Touches the line to the keeper, and the output's file. Guarantees that whoever waits does so no longer than was
//! said, and that nothing of a command is left that has been ended.

use std::os::fd::AsFd as _;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use rustix::event::PollFlags;

use super::output::{Output, line_end};
use super::standing::{Report, Standing, Status};
use super::{Circumstances, ProcessError, Ran};
use crate::exec::sandbox::Kept;
use crate::exec::sandbox::keeper::GRACE;
use crate::exec::sandbox::kept::Heard;
use crate::exec::sandbox::words::{Ended, Word};
use crate::sys::environment::Clock;
use crate::sys::interrupt::is_readable_within;

/// How long a command may take to be gone when its grace is over.
const TEAR_DOWN: Duration = Duration::from_secs(2);
/// How long the rest of an output may take to be read when nobody is left who could write it.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How and when a command has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ending {
    pub ended: Ended,
    pub took: Duration,
}

impl Ending {
    fn status(self) -> Status {
        match self.ended {
            Ended::Exited(code) => Status::Exited(code),
            Ended::Signaled(signal) => Status::Signaled(signal),
            Ended::NotStarted(_) | Ended::Lost => Status::Lost,
        }
    }
}

/// How far a command is.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Running,
    /// It has ended; what it has left running may not have.
    Ending(Ending),
    /// Nothing of it is left.
    Over(Ending),
}

/// A command that was started.
pub(super) struct Process {
    /// As it was given, less what is secret.
    pub command: String,
    /// When, by the clock of the circumstances.
    started: Duration,
    kept: Kept,
    output: Output,
    /// Closed when all of the output was read.
    drained: Receiver<()>,
    stage: Stage,
    /// How many processes it has left running, which were ended.
    left_behind: u64,
}

impl Process {
    /// One that its keeper has just started.
    pub fn new(
        command: String,
        started: Duration,
        kept: Kept,
        output: Output,
        drained: Receiver<()>,
    ) -> Self {
        Self {
            command,
            started,
            kept,
            output,
            drained,
            stage: Stage::Running,
            left_behind: 0,
        }
    }

    /// Takes in what its keeper has said.
    pub fn hear(&mut self, clock: &dyn Clock) {
        while !self.is_over() {
            match self.kept.hear() {
                Ok(Heard::NotYet) => return,
                Ok(Heard::Word(Word::Ended(ended, took))) => {
                    self.stage = Stage::Ending(Ending { ended, took });
                }
                Ok(Heard::Word(Word::LeftBehind(count))) => self.left_behind = count,
                Ok(Heard::Word(Word::Ready)) => {}
                // A line that cannot be read has ended as far as we are concerned.
                Ok(Heard::End) | Err(_) => self.close(clock),
            }
        }
    }

    /// Nothing more will come.
    fn close(&mut self, clock: &dyn Clock) {
        self.kept.end();
        self.stage = Stage::Over(self.ending().unwrap_or(Ending {
            ended: Ended::Lost,
            took: clock.elapsed().saturating_sub(self.started),
        }));
        // Who has escaped its keeper may still hold the pipe; it is not waited for.
        let _ = self.drained.recv_timeout(LAST_WORDS);
    }

    /// Waits until nothing of it is left, or it has had its time.
    ///
    /// # Errors
    /// When a signal came, or nobody can wait.
    pub fn wait(
        &mut self,
        patience: Duration,
        circumstances: &Circumstances<'_>,
    ) -> Result<(), ProcessError> {
        let Circumstances {
            clock, interrupt, ..
        } = circumstances;
        // Who has ended is not put in the background: what it has left running has its seconds.
        let last = patience.saturating_add(GRACE * 2 + TEAR_DOWN);
        loop {
            self.hear(*clock);
            let spent = clock.elapsed().saturating_sub(self.started);
            let limit = match self.stage {
                Stage::Running => patience,
                Stage::Ending(_) => last,
                Stage::Over(_) => return Ok(()),
            };
            if spent >= limit {
                return Ok(());
            }
            let watched = [self.kept.as_fd()];
            if let Err(error) =
                interrupt.poll(&watched, PollFlags::IN, Some(limit.saturating_sub(spent)))
            {
                interrupt.check()?;
                return Err(ProcessError::Io(error));
            }
        }
    }

    /// Asks it and what it has started to end.
    pub fn ask_to_end(&self) {
        self.kept.ask_to_end();
    }

    /// Ends it, where it has been asked to end already.
    pub fn end(&mut self, clock: &dyn Clock) {
        let deadline = clock.elapsed() + GRACE + TEAR_DOWN;
        loop {
            self.hear(clock);
            let left = deadline.saturating_sub(clock.elapsed());
            if self.is_over() || !is_readable_within(self.kept.as_fd(), left) {
                break;
            }
        }
        if !self.is_over() {
            self.close(clock);
        }
    }

    /// Asks it to end, and ends it.
    pub fn stop(&mut self, clock: &dyn Clock) {
        self.ask_to_end();
        self.end(clock);
    }

    /// Whether nothing of it is left.
    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over(_))
    }

    /// How it has ended, if it has.
    pub fn ending(&self) -> Option<Ending> {
        match self.stage {
            Stage::Running => None,
            Stage::Ending(ending) | Stage::Over(ending) => Some(ending),
        }
    }

    /// Whether it still runs.
    pub fn standing(&self) -> Standing {
        match self.ending() {
            Some(ending) => Standing::Ended(ending.status()),
            None => Standing::Running,
        }
    }

    /// How long it took, or has taken so far.
    pub fn took(&self, clock: &dyn Clock) -> Duration {
        let so_far = || clock.elapsed().saturating_sub(self.started);
        self.ending().map_or_else(so_far, |ending| ending.took)
    }

    /// What came of it.
    pub fn ended(&self, ending: Ending) -> Ran {
        Ran::Ended {
            status: ending.status(),
            output: self.text(),
            took: ending.took,
        }
    }

    /// How it stands, and what it has printed so far.
    pub fn report(&self, clock: &dyn Clock) -> Report {
        Report {
            standing: self.standing(),
            command: self.command.clone(),
            took: self.took(clock),
            output: self.text(),
        }
    }

    /// What it has printed so far, and what was left of it.
    pub fn text(&self) -> String {
        let mut text = self.output.text();
        if self.left_behind > 0 {
            text.push_str(line_end(&text));
            let (noun, verb) = match self.left_behind {
                1 => ("process", "was"),
                _ => ("processes", "were"),
            };
            text.push_str(&format!(
                "[{} {noun} that the command had left running {verb} ended with it]\n",
                self.left_behind
            ));
        }
        text
    }
}
