//! Waits for the processes of a fleet, which run git or this program.
//!
//! Forwards signals to them. Guarantees that no other process receives a signal, and that a process ends within its
//! time limit.

use std::io;
use std::os::fd::AsFd as _;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::process::{Pid, Signal as Number, kill_process};

use crate::sys::interrupt::{Interrupt, is_readable_within};
use crate::sys::parallel::joined;
use crate::ui::lent;

/// Interval between checks of a process with a time limit.
const TICK: Duration = Duration::from_secs(1);
/// Time that a process with a time limit is given to end after a signal.
const GRACE: Duration = Duration::from_secs(5);

/// Waits for a process to end, and forwards the first signal that arrives. With a `limit`, in seconds, kills the
/// process when the time is up, or shortly after a signal.
///
/// # Errors
/// Fails if waiting for the process fails, or the process exceeds its time limit.
pub fn wait(mut child: Child, interrupt: &Interrupt, limit: Option<u32>) -> io::Result<ExitStatus> {
    let process = Pid::from_child(&child);
    let (reader, writer) = io::pipe()?;
    let mut is_late = false;
    thread::scope(|scope| {
        let waiting = thread::Builder::new().spawn_scoped(scope, move || {
            let waited = lent::exited(process);
            drop(writer);
            waited
        })?;
        // The writer is closed when the process has ended; its process id remains valid until `wait` below.
        let mut ticks = 0;
        let signal = loop {
            match interrupt.poll(&[reader.as_fd()], PollFlags::IN, Some(TICK)) {
                Ok(true) => break None,
                Ok(false) if limit.is_none_or(|limit| ticks < limit) => ticks += 1,
                Ok(false) => {
                    is_late = true;
                    break Some(Number::KILL);
                }
                Err(_) => {
                    let came = interrupt.check().err().map(|came| came.signal.number());
                    break came.and_then(|number| Number::from_named_raw(number.into()));
                }
            }
        };
        if let Some(signal) = signal {
            // The process may have ended in the meantime.
            let _ = kill_process(process, signal);
            if limit.is_some() && !is_readable_within(reader.as_fd(), GRACE) {
                let _ = kill_process(process, Number::KILL);
            }
        }
        joined(waiting)
    })?;
    let status = child.wait()?;
    let too_late = io::ErrorKind::TimedOut;
    (!is_late).then_some(status).ok_or_else(|| too_late.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::interrupt::Signal;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    fn started(script: &str) -> Child {
        Command::new("sh").args(["-c", script]).spawn().unwrap()
    }

    #[test]
    fn a_process_ends_by_itself_by_its_limit_or_by_a_signal() {
        let interrupt = Interrupt::never().unwrap();
        let ended = wait(started("exit 7"), &interrupt, None).unwrap();
        assert_eq!(ended.code(), Some(7));
        let late = wait(started("exec sleep 3600"), &interrupt, Some(0));
        assert_eq!(late.unwrap_err().kind(), io::ErrorKind::TimedOut);
        interrupt.simulate(Signal::Term);
        let ended = wait(started("exec sleep 3600"), &interrupt, None).unwrap();
        assert_eq!(ended.signal(), Some(15));
    }
}
