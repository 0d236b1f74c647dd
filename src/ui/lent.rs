//! A program that the user works with in this one's terminal: their editor, their pager.
//!
//! Waits for it, and ends it where this program is to end. Guarantees that it is not signalled once it has ended.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal as Number, WaitId, WaitIdOptions, kill_process, waitid};

use crate::sys::interrupt::{Interrupt, Signal, is_readable_within};

/// How often it is looked whether this program is to end.
const TICK: Duration = Duration::from_millis(100);
/// How long the other one may take to end then.
const GRACE: Duration = Duration::from_secs(2);

/// Does `feed`, and waits until the program has ended, which a signal that lasts has it do. A SIGINT is its own: the
/// terminal has sent it to both.
///
/// # Errors
/// When it cannot be waited for.
pub fn wait(
    child: &mut Child,
    interrupt: &Interrupt,
    feed: impl FnOnce(&mut Child),
) -> io::Result<ExitStatus> {
    let (ended, watched) = UnixStream::pair()?;
    let number = Pid::from_child(child);
    thread::scope(|scope| {
        let watcher = thread::Builder::new();
        // Where no thread can be had, nobody ends it but the user.
        let _ = watcher.spawn_scoped(scope, || watch(number, &watched, interrupt));
        feed(child);
        // Its number stays its own until the watcher is gone.
        let ends = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let waited = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(number), ends));
        drop(ended);
        waited
    })?;
    child.wait()
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
    use std::process::Command;

    #[test]
    fn a_signal_that_lasts_ends_the_program_and_an_interrupt_does_not() {
        for (came, ended_by) in [(Signal::Term, 15), (Signal::Hup, 1)] {
            let interrupt = Interrupt::never().unwrap();
            let mut sleep = Command::new("sleep").arg("3600").spawn().unwrap();
            let ended = wait(&mut sleep, &interrupt, |_| interrupt.simulate(came)).unwrap();
            assert_eq!(ended.signal(), Some(ended_by));
        }
        let interrupt = Interrupt::never().unwrap();
        interrupt.simulate(Signal::Int);
        let slow = ["-c", "sleep 0.3; exit 7"];
        let mut program = Command::new("sh").args(slow).spawn().unwrap();
        let ended = wait(&mut program, &interrupt, |_| {}).unwrap();
        assert_eq!(ended.code(), Some(7));
    }
}
