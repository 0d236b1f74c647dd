//! A command that runs, be it a build or an agent's: waiting for its end, reading its output, and ending it.
//!
//! Touches the line to the supervisor. Guarantees that no wait takes longer than was said, give or take
//! the seconds that a command has to end, and that nothing of a command is left that has been ended.

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

/// The time the rest of an output may take to be read when nobody is left who could write it.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

/// The status of a command that has ended, and its duration.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ending {
    pub status: CommandStatus,
    pub took: Duration,
}

/// The stage of a command's life.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Running,
    /// It has ended; what it has left running may not have.
    Ending(Ending),
    /// Nothing of it is left.
    Over(Ending),
}

/// A command that was started.
pub(super) struct Running<'c> {
    clock: &'c dyn Clock,
    /// When, by that clock.
    started: Duration,
    leftovers: Leftovers,
    child: SupervisedChild,
    pump: PumpHandle,
    stage: Stage,
    left_behind: u64,
}

impl<'c> Running<'c> {
    /// Has a supervisor start a command. Its output is to be read by the pump, on another thread.
    ///
    /// # Errors
    /// The system's; of kind [`io::ErrorKind::InvalidInput`] where the request is too long.
    pub fn start(
        child: SupervisedChild,
        request: &SpawnRequest,
        clock: &'c dyn Clock,
    ) -> io::Result<(Self, Pump)> {
        let (reader, writer) = io::pipe()?;
        let (reading, pump) = Pump::new(reader)?;
        let started = clock.elapsed();
        // The writer is closed when this returns; else the output would never come to its end.
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

    /// Takes in what the supervisor has said.
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

    /// Nothing more will come.
    fn close(&mut self) {
        self.child.end();
        self.stage = Stage::Over(self.ending().unwrap_or(Ending {
            status: CommandStatus::Lost,
            took: self.since_start(),
        }));
        // Who has escaped its supervisor may still hold the pipe; it is not waited for.
        self.drain(LAST_OUTPUT, LAST_OUTPUT);
    }

    /// Waits until the command has ended, or has had its time; and until nothing of it is left, if that is to end.
    ///
    /// # Errors
    /// When a signal came, or nobody can wait. The command still runs.
    pub fn wait(&mut self, limit: Duration, interrupt: &Interrupt) -> io::Result<()> {
        self.wait_ticking(limit, interrupt, Duration::MAX, || ())
    }

    /// The same; whenever `tick` has passed, `look` is called.
    ///
    /// # Errors
    /// Those of [`wait`](Self::wait).
    pub fn wait_ticking(
        &mut self,
        limit: Duration,
        interrupt: &Interrupt,
        tick: Duration,
        mut look: impl FnMut(),
    ) -> io::Result<()> {
        // Once it has ended, what it has left running has its seconds.
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

    /// Waits for the rest of the output, for as long as it does not pause for longer than `pause`, and for `limit`
    /// at the most; `false` where some may be left.
    pub fn drain(&self, pause: Duration, limit: Duration) -> bool {
        let deadline = self.clock.elapsed() + limit;
        self.pump.drain(pause, || self.clock.elapsed() >= deadline)
    }

    /// Asks it and what it has started to end.
    pub fn ask_to_end(&self) {
        self.child.ask_to_end();
    }

    /// Ends it, after it has been asked to.
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

    /// Asks it to end, and ends it.
    pub fn stop(&mut self) {
        self.ask_to_end();
        self.end();
    }

    /// Returns whether nothing of it is left.
    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over(_))
    }

    /// Returns its ending, or `None` while it runs.
    pub fn ending(&self) -> Option<Ending> {
        match self.stage {
            Stage::Running => None,
            Stage::Ending(ending) | Stage::Over(ending) => Some(ending),
        }
    }

    /// Returns the time it took, or has taken so far.
    pub fn took(&self) -> Duration {
        self.ending()
            .map_or_else(|| self.since_start(), |ending| ending.took)
    }

    fn since_start(&self) -> Duration {
        self.clock.elapsed().saturating_sub(self.started)
    }

    /// Returns the number of processes it has left running, which were ended.
    pub fn left_behind(&self) -> u64 {
        self.left_behind
    }
}
