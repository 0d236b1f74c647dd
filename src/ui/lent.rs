//! A program that the user works with in this one's terminal: their editor, their pager.
//!
//! Waits for it, and ends it where this program is to end. Guarantees that it is not signalled once it has ended, and
//! that what the terminal sends to both while it runs, as by Ctrl-C, is its own.

use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;
use std::{io, thread};

use rustix::process::{Pid, Signal as Number, WaitId, WaitIdOptions, kill_process, waitid};

use crate::sys::interrupt::{Interrupt, Signal, is_readable_within};

/// The interval between checks whether this program is to end.
const TICK: Duration = Duration::from_millis(100);
/// The time the other one may take to end then.
const GRACE: Duration = Duration::from_secs(2);

/// Starts the program, does `feed`, and waits until it has ended, which a signal that lasts has it do.
///
/// # Errors
/// When it cannot be started or waited for.
pub fn run(
    program: &mut Command,
    interrupt: &Interrupt,
    feed: impl FnOnce(&mut Child),
) -> io::Result<ExitStatus> {
    let (ended, watched) = UnixStream::pair()?;
    // From before its start on, so that nothing that is meant for it comes here.
    interrupt.lend(|| {
        let mut child = program.spawn()?;
        let number = Pid::from_child(&child);
        thread::scope(|scope| {
            let watcher = thread::Builder::new();
            // Where no thread can be had, nobody ends it but the user.
            let _ = watcher.spawn_scoped(scope, || watch(number, &watched, interrupt));
            feed(&mut child);
            // Its number stays its own until the watcher is gone.
            let ends = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let waited = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(number), ends));
            drop(ended);
            waited
        })?;
        child.wait()
    })
}

fn watch(child: Pid, ended: &UnixStream, interrupt: &Interrupt) {
    while !is_readable_within(ended.as_fd(), TICK) {
        let Some(signal) = interrupt.lasting() else {
            continue;
        };
        let asked = match signal {
            Signal::Hup => Number::HUP,
            Signal::Int | Signal::Term => Number::TERM,
        };
        let _ = kill_process(child, asked);
        if !is_readable_within(ended.as_fd(), GRACE) {
            let _ = kill_process(child, Number::KILL);
        }
        return;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;

    #[test]
    fn a_signal_that_lasts_ends_the_program_and_an_interrupt_does_not() {
        for (came, ended_by) in [(Signal::Term, 15), (Signal::Hup, 1)] {
            let interrupt = Interrupt::never().unwrap();
            let mut sleep = Command::new("sleep");
            sleep.arg("3600");
            let ended = run(&mut sleep, &interrupt, |_| interrupt.simulate(came)).unwrap();
            assert_eq!(ended.signal(), Some(ended_by));
        }
        let interrupt = Interrupt::never().unwrap();
        interrupt.simulate(Signal::Int);
        let slow = ["-c", "sleep 0.3; exit 7"];
        let ended = run(Command::new("sh").args(slow), &interrupt, |_| {}).unwrap();
        assert_eq!(ended.code(), Some(7));
    }
}
