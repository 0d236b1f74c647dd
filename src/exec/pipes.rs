//! A long-running program that exchanges lines with this one over pipes.
//!
//! Touches that program. Guarantees that no wait exceeds its limit, that a signal ends every wait, and that dropping
//! the handle ends the program and its process group or, with a supervisor, everything that it started.

use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::child_env::ChildEnv;
use super::subreaper;
use super::supervised_child::SupervisedChild;
use super::supervisor::GRACE;
use super::wire::{CommandStatus, Leftovers, Notice, SpawnRequest, Streams};
use crate::sys::interrupt::{Interrupt, is_readable_within};

/// Number of bytes kept from the end of stderr.
const LAST_WORDS: usize = 2000;
/// Interval at which the program is polled for its end.
const TICK: Duration = Duration::from_millis(10);

/// A running program, connected by pipes.
#[derive(Debug)]
pub struct PipedProgram {
    host: Host,
    stdin: Option<PipeWriter>,
    stdout: PipeReader,
    last_words: Arc<Mutex<Vec<u8>>>,
    /// Closed when stderr has been read to its end.
    stderr_end: Receiver<()>,
}

/// Parent process of the program.
#[derive(Debug)]
enum Host {
    /// This process.
    Own(Child),
    /// A supervisor, and the program's status once it was reported.
    Supervisor(SupervisedChild, Option<CommandStatus>),
}

impl PipedProgram {
    /// Starts a program, given as its name and arguments, in its own process group and with this environment.
    ///
    /// # Errors
    /// Fails if the program cannot be started, with [`ErrorKind::InvalidInput`] if `words` is empty.
    pub fn start(words: &[String], env: &ChildEnv) -> io::Result<Self> {
        let (program, arguments) = words.split_first().ok_or(ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).process_group(0);
        env.apply(&mut command);
        Self::start_with(|stdin, stdout, stderr| {
            let command = command.stdin(stdin).stdout(stdout).stderr(stderr);
            Ok(Host::Own(command.spawn()?))
        })
    }

    /// Starts a program with a supervisor, which ends all of its descendants, even daemons, however this process ends.
    /// `own` is this program's executable; if it is `None`, or processes cannot be listed, there is no supervisor.
    ///
    /// # Errors
    /// Same as [`start`](Self::start), or [`ErrorKind::Interrupted`] if a signal arrived.
    pub fn start_supervised(
        words: &[String],
        env: &ChildEnv,
        own: Option<&Path>,
        interrupt: &Interrupt,
    ) -> io::Result<Self> {
        let Some(own) = own.filter(|_| subreaper::can_look()) else {
            return Self::start(words, env);
        };
        let mut child = SupervisedChild::beside(own, Path::new("."), env, interrupt)?;
        let request = SpawnRequest {
            words: words.to_vec(),
            streams: Streams::Three,
            leftovers: Leftovers::Stay,
            grace: GRACE,
        };
        Self::start_with(|stdin, stdout, stderr| {
            child.start(&request, &[stdin.as_fd(), stdout.as_fd(), stderr.as_fd()])?;
            child.wait_for_start(interrupt)?;
            Ok(Host::Supervisor(child, None))
        })
    }

    /// Creates the pipes and lets `start` start the program with their other ends.
    fn start_with(
        start: impl FnOnce(PipeReader, PipeWriter, PipeWriter) -> io::Result<Host>,
    ) -> io::Result<Self> {
        let ((input, stdin), (stdout, output)) = (io::pipe()?, io::pipe()?);
        let (stderr, errors) = io::pipe()?;
        ioctl_fionbio(&stdin, true)?;
        ioctl_fionbio(&stdout, true)?;
        let last_words = Arc::new(Mutex::new(Vec::new()));
        let (at_end, stderr_end) = mpsc::channel();
        let program = Self {
            host: start(input, output, errors)?,
            stdin: Some(stdin),
            stdout,
            last_words: Arc::clone(&last_words),
            stderr_end,
        };
        // The thread is not joined: it ends when the last process that holds stderr closes it.
        thread::Builder::new().spawn(move || {
            keep_end(stderr, &last_words);
            drop(at_end);
        })?;
        Ok(program)
    }

    /// Writes all bytes to the program's stdin; `left` returns the time left for that.
    ///
    /// # Errors
    /// Fails if the pipe is broken, with [`ErrorKind::TimedOut`], or with [`ErrorKind::Interrupted`] if a signal
    /// arrived.
    pub fn write(
        &mut self,
        mut bytes: &[u8],
        interrupt: &Interrupt,
        left: &dyn Fn() -> Duration,
    ) -> io::Result<()> {
        let stdin = self.stdin.as_mut().ok_or(ErrorKind::BrokenPipe)?;
        while !bytes.is_empty() {
            match stdin.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !interrupt.poll(&[stdin.as_fd()], PollFlags::OUT, Some(left()))? {
                        return Err(ErrorKind::TimedOut.into());
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => interrupt.check()?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes as many of the bytes as the pipe accepts without blocking.
    pub fn write_at_once(&mut self, bytes: &[u8]) {
        let _ = self.stdin.as_mut().map(|stdin| stdin.write(bytes));
    }

    /// Waits for output on the program's stdout and reads it; returns 0 at the end.
    ///
    /// # Errors
    /// Same as [`write`](Self::write).
    pub fn read(
        &mut self,
        buffer: &mut [u8],
        interrupt: &Interrupt,
        left: &dyn Fn() -> Duration,
    ) -> io::Result<usize> {
        loop {
            // A program that never stops printing never empties its pipe.
            interrupt.check()?;
            if left().is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            match self.stdout.read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !interrupt.poll(&[self.stdout.as_fd()], PollFlags::IN, Some(left()))? {
                        return Err(ErrorKind::TimedOut.into());
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }

    /// Returns the end of stderr: complete if stderr closes within `limit`, else what has arrived so far.
    pub fn last_words(&self, limit: Duration) -> String {
        // The channel carries no messages; only its closing matters.
        let _ = self.stderr_end.recv_timeout(limit);
        let locked = self.last_words.lock();
        let words = locked.unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&words).into_owned()
    }

    /// Closes stdin and waits `limit` for the program to end, then asks it to end, waits as long again and kills
    /// it. Returns its exit code, if it has one.
    pub fn end(&mut self, limit: Duration) -> Option<i32> {
        self.stdin = None;
        if !self.host.has_ended_within(limit) {
            self.host.ask_to_end();
            self.host.has_ended_within(limit);
        }
        self.host.end()
    }
}

impl Host {
    fn has_ended_within(&mut self, limit: Duration) -> bool {
        match self {
            Self::Own(child) => has_ended_within(child, limit),
            Self::Supervisor(child, status) => {
                while status.is_none() {
                    match child.receive() {
                        Ok(Some(Notice::Ended(ended, _))) => *status = Some(ended),
                        Ok(Some(_)) => {}
                        Ok(None) if is_readable_within(child.as_fd(), limit) => {}
                        Ok(None) => return false,
                        Err(_) => return true,
                    }
                }
                true
            }
        }
    }

    fn ask_to_end(&self) {
        match self {
            Self::Own(child) => signal(child, Signal::TERM),
            Self::Supervisor(child, _) => child.ask_to_end(),
        }
    }

    /// Kills the program and returns its exit code, if it has one.
    fn end(&mut self) -> Option<i32> {
        match self {
            Self::Own(child) => {
                // Its descendants may still be running. Its process ID stays reserved until it is waited for.
                signal(child, Signal::KILL);
                child.wait().ok()?.code()
            }
            Self::Supervisor(child, status) => {
                child.end();
                match status {
                    Some(CommandStatus::Exited(code)) => Some(*code),
                    _ => None,
                }
            }
        }
    }
}

fn has_ended_within(child: &Child, limit: Duration) -> bool {
    let pid = Pid::from_child(child);
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let mut waited = Duration::ZERO;
    loop {
        // An error means that the child has already been waited for.
        if !matches!(waitid(WaitId::Pid(pid), options), Ok(None)) {
            return true;
        }
        if waited >= limit {
            return false;
        }
        thread::sleep(TICK);
        waited += TICK;
    }
}

fn signal(child: &Child, signal: Signal) {
    let _ = kill_process_group(Pid::from_child(child), signal);
}

impl Drop for PipedProgram {
    fn drop(&mut self) {
        if self.stdin.is_some() {
            self.end(Duration::ZERO);
        }
    }
}

/// Runs a program without input and returns its stdout and its exit code, if it has one; `left` returns the
/// time left.
///
/// # Errors
/// Same as [`PipedProgram::start`] and [`PipedProgram::read`], or [`ErrorKind::FileTooLarge`] if the program
/// writes more than `max_bytes`, which ends it.
pub fn output(
    words: &[String],
    max_bytes: usize,
    interrupt: &Interrupt,
    left: &dyn Fn() -> Duration,
) -> io::Result<(Vec<u8>, Option<i32>)> {
    let mut program = PipedProgram::start(words, &ChildEnv::default())?;
    program.stdin = None;
    let (mut output, mut chunk) = (Vec::new(), [0; 4096]);
    let read = loop {
        match program.read(&mut chunk, interrupt, left) {
            Ok(0) => break Ok(()),
            Ok(amount) => output.extend_from_slice(&chunk[..amount]),
            Err(error) => break Err(error),
        }
        if output.len() > max_bytes {
            break Err(ErrorKind::FileTooLarge.into());
        }
    };
    let code = program.end(read.as_ref().map_or(Duration::ZERO, |()| left()));
    read.map(|()| (output, code))
}

fn keep_end(mut stderr: PipeReader, kept: &Mutex<Vec<u8>>) {
    let mut chunk = [0; 4096];
    while let Ok(amount @ 1..) = stderr.read(&mut chunk) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&chunk[..amount]);
        let more = kept.len().saturating_sub(LAST_WORDS);
        kept.drain(..more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::environment::Environment;

    const MINUTE: Duration = Duration::from_mins(1);

    fn start(script: &str) -> PipedProgram {
        let words = ["sh", "-c", script].map(str::to_owned);
        let env = ChildEnv::new(&Environment::default(), vec!["HOME".into()]);
        PipedProgram::start(&words, &env).unwrap()
    }

    fn read(program: &mut PipedProgram) -> String {
        let mut buffer = [0; 100];
        let interrupt = Interrupt::never().unwrap();
        let amount = program.read(&mut buffer, &interrupt, &|| MINUTE).unwrap();
        String::from_utf8_lossy(&buffer[..amount]).into_owned()
    }

    #[test]
    fn a_server_program_ends_when_its_stdin_closes() {
        let mut program =
            start("read line; echo \"$line ${HOME-none}\"; echo oh >&2; exec >&-; cat >/dev/null");
        let interrupt = Interrupt::never().unwrap();
        program.write(b"a line\n", &interrupt, &|| MINUTE).unwrap();
        assert_eq!(read(&mut program), "a line none\n");
        assert_eq!(read(&mut program), "");
        program.end(MINUTE);
        assert_eq!(program.last_words(MINUTE), "oh\n");
    }

    #[test]
    fn stdout_and_exit_code_are_returned() {
        let output = |script: &str, limit| {
            let words = ["sh", "-c", script].map(str::to_owned);
            super::output(&words, 10, &Interrupt::never().unwrap(), &|| limit)
        };
        let printed = output("cat; echo a; echo b >&2; exit 3", MINUTE).unwrap();
        assert_eq!(printed, (b"a\n".to_vec(), Some(3)));
        assert_eq!(output("kill -9 $$", MINUTE).unwrap(), (Vec::new(), None));
        for (script, limit, expected) in [
            (
                "echo 12345678901; sleep 600",
                MINUTE,
                ErrorKind::FileTooLarge,
            ),
            ("sleep 600", TICK, ErrorKind::TimedOut),
        ] {
            assert_eq!(output(script, limit).unwrap_err().kind(), expected);
        }
    }

    #[test]
    fn no_wait_is_longer_than_was_said_and_a_signal_ends_it() {
        let mut program = start("echo ready; trap '' TERM; sleep 600 & wait");
        let interrupt = Interrupt::never().unwrap();
        assert_eq!(read(&mut program), "ready\n");
        let mut buffer = [0; 1];
        let late = program.read(&mut buffer, &interrupt, &|| Duration::from_millis(1));
        assert_eq!(late.unwrap_err().kind(), ErrorKind::TimedOut);
        // More than the pipe can hold.
        let full = program.write(&vec![b'x'; 1 << 20], &interrupt, &|| {
            Duration::from_millis(1)
        });
        assert_eq!(full.unwrap_err().kind(), ErrorKind::TimedOut);
        interrupt.raise();
        let woken = program.read(&mut buffer, &interrupt, &|| MINUTE);
        assert_eq!(woken.unwrap_err().kind(), ErrorKind::Interrupted);
        program.end(TICK);
    }
}
