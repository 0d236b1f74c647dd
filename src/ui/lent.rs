//! Runs an interactive program, such as an editor, a pager or ssh-keygen, in this program's terminal.
//!
//! Waits for it, and ends it when this program has to end. Guarantees that it is not signalled after it has
//! exited, and that signals the terminal sends to both while it runs, such as for Ctrl-C, affect only the other
//! program.

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use std::{io, thread};

use rustix::process::{Pid, Signal as Number, WaitId, WaitIdOptions, kill_process, waitid};

use crate::sys::interrupt::{Interrupt, Signal, is_readable_within};

/// The interval between checks for whether this program has to end.
const TICK: Duration = Duration::from_millis(100);
/// The time the other program is given to exit.
const GRACE: Duration = Duration::from_secs(2);

/// Starts the program, calls `feed`, and waits for the program to exit; a persistent signal ends it.
///
/// # Errors
/// Fails if the program cannot be started or waited for.
pub fn run(
    program: &mut Command,
    interrupt: &Interrupt,
    feed: impl FnOnce(&mut Child),
) -> io::Result<ExitStatus> {
    let (ended, watched) = UnixStream::pair()?;
    // Lend the interrupt before the start, so that no signal meant for the child is handled here.
    interrupt.lend(|| {
        let mut child = program.spawn()?;
        let number = Pid::from_child(&child);
        thread::scope(|scope| {
            let watcher = thread::Builder::new();
            // Without a thread, only the user can end the program.
            let _ = watcher.spawn_scoped(scope, || watch(number, &watched, interrupt));
            feed(&mut child);
            // Leave the child unreaped, so that its process id stays valid until the watcher has ended.
            let waited = exited(number);
            drop(ended);
            waited
        })?;
        child.wait()
    })
}

/// Waits until a child process has exited, and leaves it unreaped: no other process gets its id.
///
/// # Errors
/// Fails if there is no such child.
pub fn exited(child: Pid) -> io::Result<()> {
    let ends = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    rustix::io::retry_on_intr(|| waitid(WaitId::Pid(child), ends))?;
    Ok(())
}

/// Runs a program in `directory` with this input, and returns its status, its output and its error messages; it may ask
/// at the terminal.
///
/// # Errors
/// Same as for [`run`].
pub fn piped<'w>(
    program: &str,
    words: impl Iterator<Item = &'w OsStr>,
    directory: &Path,
    input: &[u8],
    interrupt: &Interrupt,
) -> io::Result<(ExitStatus, String, String)> {
    let mut command = Command::new(program);
    command.args(words).current_dir(directory);
    command.stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let (mut output, mut complaints) = (String::new(), String::new());
    let status = run(&mut command, interrupt, |child| {
        // If the program did not read the input, its status says why.
        if let Some(mut stdin) = child.stdin.take() {
            let _ = stdin.write_all(input);
        }
        if let (Some(stdout), Some(stderr)) = (&mut child.stdout, &mut child.stderr) {
            let _ = stdout.read_to_string(&mut output);
            let _ = stderr.read_to_string(&mut complaints);
        }
    })?;
    Ok((status, output, complaints))
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
