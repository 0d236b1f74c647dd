//! Waits for a running command, reads its output and ends it. Used for builds and for an agent's commands alike.
//!
//! Touches only the line to the supervisor. Guarantees that no wait exceeds its limit by more than the few
//! seconds that a command has to end, and that nothing remains of a command that was ended.

use std::io;
use std::os::fd::AsFd as _;
use std::time::Duration;

use rustix::event::PollFlags;

use super::output::{Pump, PumpHandle};
use super::supervised_child::SupervisedChild;
use super::supervisor::{GRACE, TEAR_DOWN};
use super::wire::{CommandStatus, Leftovers, Notice, SpawnRequest};
use crate::sys::environment::Clock;
use crate::sys::interrupt::{Interrupt, is_readable_within};

/// Time limit for reading the rest of the output after the supervisor is gone.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

/// Status and duration of a command that has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ending {
    pub status: CommandStatus,
    pub took: Duration,
}

/// Stage of a command's life.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Running,
    /// The command has ended, but processes that it left running may still exist.
    Ending(Ending),
    /// No process of the command is left.
    Over(Ending),
}

/// A started command.
pub(super) struct Running<'c> {
    clock: &'c dyn Clock,
    /// Start time on that clock.
    started: Duration,
    leftovers: Leftovers,
    child: SupervisedChild,
    pump: PumpHandle,
    stage: Stage,
    left_behind: u64,
}

impl<'c> Running<'c> {
    /// Starts a command through a supervisor. The returned pump must read its output on another thread.
    ///
    /// # Errors
    /// Fails if the command cannot be started, with [`io::ErrorKind::InvalidInput`] if the request is too long.
    pub fn start(
        child: SupervisedChild,
        request: &SpawnRequest,
        clock: &'c dyn Clock,
    ) -> io::Result<(Self, Pump)> {
        let (reader, writer) = io::pipe()?;
        let (reading, pump) = Pump::new(reader)?;
        let started = clock.elapsed();
        // The writer is closed on return; otherwise the output would never end.
        child.start(request, &[writer.as_fd()])?;
        let running = Self {
            clock,
            started,
            leftovers: request.leftovers,
            child,
            pump,
            stage: Stage::Running,
            left_behind: 0,
        };
        Ok((running, reading))
    }

    /// Processes all pending notices from the supervisor.
    pub fn update(&mut self) {
        while !self.is_over() {
            match self.child.receive() {
                Ok(None) => return,
                Ok(Some(Notice::Ended(status, took))) => {
                    self.stage = Stage::Ending(Ending { status, took });
                }
                Ok(Some(Notice::LeftBehind(count))) => self.left_behind = count,
                Ok(Some(Notice::Ready | Notice::Started)) => {}
                Err(_) => self.close(),
            }
        }
    }

    /// Marks the command as over once the supervisor can send no more notices.
    fn close(&mut self) {
        self.child.end();
        self.stage = Stage::Over(self.ending().unwrap_or(Ending {
            status: CommandStatus::Lost,
            took: self.since_start(),
        }));
        // A process that escaped the supervisor may still hold the pipe, so the wait for the rest is limited.
        self.drain(LAST_OUTPUT, LAST_OUTPUT);
    }

    /// Waits until the command has ended or `limit` has passed; with [`Leftovers::End`], until no process is left.
    ///
    /// # Errors
    /// Fails if a signal arrived or waiting failed. The command is still running.
    pub fn wait(&mut self, limit: Duration, interrupt: &Interrupt) -> io::Result<()> {
        self.wait_ticking(limit, interrupt, Duration::MAX, || ())
    }

    /// Waits like [`wait`](Self::wait), and calls `look` every `tick`.
    ///
    /// # Errors
    /// Same as [`wait`](Self::wait).
    pub fn wait_ticking(
        &mut self,
        limit: Duration,
        interrupt: &Interrupt,
        tick: Duration,
        mut look: impl FnMut(),
    ) -> io::Result<()> {
        // After the command has ended, leftover processes get their grace period.
        let last = limit.saturating_add(GRACE * 2 + TEAR_DOWN);
        loop {
            self.update();
            let limit = match (self.stage, self.leftovers) {
                (Stage::Running, _) => limit,
                (Stage::Ending(_), Leftovers::End) => last,
                (Stage::Ending(_), Leftovers::Stay) | (Stage::Over(_), _) => return Ok(()),
            };
            let left = limit.saturating_sub(self.since_start());
            if left.is_zero() {
                return Ok(());
            }
            if !interrupt.poll(&[self.child.as_fd()], PollFlags::IN, Some(left.min(tick)))? {
                look();
            }
        }
    }

    /// Waits for the rest of the output, for at most `limit` and until it pauses for longer than `pause`.
    /// Returns `false` if some may remain.
    pub fn drain(&self, pause: Duration, limit: Duration) -> bool {
        let deadline = self.clock.elapsed() + limit;
        self.pump.drain(pause, || self.clock.elapsed() >= deadline)
    }

    /// Asks the command and its descendants to end.
    pub fn ask_to_end(&self) {
        self.child.ask_to_end();
    }

    /// Ends the command after it has been asked to.
    pub fn end(&mut self) {
        let deadline = self.clock.elapsed() + GRACE + TEAR_DOWN;
        loop {
            self.update();
            let left = deadline.saturating_sub(self.clock.elapsed());
            if self.is_over() || !is_readable_within(self.child.as_fd(), left) {
                break;
            }
        }
        if !self.is_over() {
            self.close();
        }
    }

    /// Asks the command to end, then ends it.
    pub fn stop(&mut self) {
        self.ask_to_end();
        self.end();
    }

    /// Returns whether no process of the command is left.
    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over(_))
    }

    /// Returns the status and duration, or `None` while the command runs.
    pub fn ending(&self) -> Option<Ending> {
        match self.stage {
            Stage::Running => None,
            Stage::Ending(ending) | Stage::Over(ending) => Some(ending),
        }
    }

    /// Returns the command's duration, or the time so far.
    pub fn took(&self) -> Duration {
        self.ending()
            .map_or_else(|| self.since_start(), |ending| ending.took)
    }

    fn since_start(&self) -> Duration {
        self.clock.elapsed().saturating_sub(self.started)
    }

    /// Returns the number of processes that the command left running and that were ended.
    pub fn left_behind(&self) -> u64 {
        self.left_behind
    }
}
