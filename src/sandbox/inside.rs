//! This program's part inside a sandbox: it starts the build, says how it ends, and ends all of it when
//! told to.
//!
//! Is the first process in there. Talks to the run outside by its standard input, which is one end of a
//! socket pair. Guarantees that nobody else inside holds that line or can take it, and that a build is
//! not taken for ended before it has.

use std::io::{self, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, kill_process_group, set_dumpable_behavior, wait,
};

use super::Ended;

/// The only argument of this program inside. `main` looks for it before it reads any command line.
pub const COMMAND: &str = "inside-sandbox";
/// The line that says that the sandbox stands.
pub const READY: &str = "ready";

/// Does what is told from outside, and returns when there is nothing more to do.
///
/// # Errors
/// When the line is no such line, or is gone.
pub fn run() -> io::Result<()> {
    // Nobody inside may look into this process, where the line is.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let mut line = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    say(&mut line, READY)?;
    let Some((program, output)) = receive_order(&line)? else {
        return Ok(());
    };
    let child = match spawn(&program, output) {
        Ok(child) => child,
        Err(error) => {
            let number = error.raw_os_error().unwrap_or_default();
            return say(&mut line, &to_line(&Ended::NotStarted(number)));
        }
    };
    let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return Ok(());
    };
    let mut status_line = line.try_clone()?;
    thread::Builder::new().spawn(move || {
        // Whoever no longer listens does not want to know.
        let _ = say(&mut status_line, &to_line(&wait_for(pid)));
    })?;
    // Nothing is said after the start: this waits for the other end to be closed.
    let mut rest = Vec::new();
    let _ = line.read_to_end(&mut rest);
    let _ = kill_process_group(pid, Signal::TERM);
    // Until the whole sandbox is ended from outside: some of the build may need its time to end.
    loop {
        thread::park();
    }
}

/// Waits for the build's end; and buries others, whose parents have ended, as the first process must. That
/// the number of the build's group may be given out again does no harm: whoever has it is in here too.
fn wait_for(build: Pid) -> Ended {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == build => {
                return match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => Ended::Exited(code),
                    (None, signal) => Ended::Signaled(signal.unwrap_or_default()),
                };
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return Ended::Lost,
        }
    }
}

fn say(line: &mut UnixStream, words: &str) -> io::Result<()> {
    line.write_all(format!("{words}\n").as_bytes())
}

/// Waits for the program to start and the pipe that it is to print to; `None` where the other end is
/// closed instead.
fn receive_order(line: &UnixStream) -> io::Result<Option<(String, OwnedFd)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut program = [0; 4096];
    let buffers = &mut [IoSliceMut::new(&mut program)];
    let received = recvmsg(line, buffers, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut fds = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    let program = String::from_utf8_lossy(&program[..received.bytes]).into_owned();
    Ok(fds.next().map(|output| (program, output)))
}

/// Starts the build in a process group of its own. Nothing of this program stays open in it but its own
/// file, for reading, by whose number it was started.
fn spawn(program: &str, output: OwnedFd) -> io::Result<Child> {
    Command::new(program)
        .stdin(Stdio::null())
        .stderr(output.try_clone()?)
        .stdout(output)
        .process_group(0)
        .spawn()
}

/// How a build's end is told.
fn to_line(ended: &Ended) -> String {
    match ended {
        Ended::Exited(code) => format!("exited {code}"),
        Ended::Signaled(signal) => format!("signaled {signal}"),
        Ended::NotStarted(number) => format!("not-started {number}"),
        Ended::Lost => "lost".to_owned(),
    }
}

/// Reads what the part inside says of how a build ended.
#[must_use]
pub fn from_line(line: &str) -> Option<Ended> {
    let (word, number) = line.split_once(' ')?;
    let number = number.parse().ok()?;
    match word {
        "exited" => Some(Ended::Exited(number)),
        "signaled" => Some(Ended::Signaled(number)),
        "not-started" => Some(Ended::NotStarted(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_understood() {
        for ended in [
            Ended::Exited(0),
            Ended::Exited(139),
            Ended::Signaled(11),
            Ended::NotStarted(2),
        ] {
            assert_eq!(from_line(&to_line(&ended)), Some(ended));
        }
        assert_eq!(from_line(&to_line(&Ended::Lost)), None);
        assert_eq!(from_line("exited"), None);
    }
}
