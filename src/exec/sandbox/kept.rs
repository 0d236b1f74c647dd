//! A command's keeper, as the run has it: the other end of the line to [`keeper`](super::keeper).
//!
//! Touches the keeper and, where it stands in a sandbox, whatever is in there. Guarantees that nothing of a
//! command is left when this is dropped; where its keeper was lost, as far as [`orphans`] guarantees it.

use std::ffi::OsString;
use std::fs;
use std::io::{self, IoSlice, PipeWriter, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::keeper::{GRACE, Place};
use super::orphans;
use super::words::{Ended, LONGEST_ORDER, Order, Word};
use crate::sys::interrupt::{Interrupt, Woken, is_readable_within};

/// How long a keeper may take to be there.
const SET_UP: Duration = Duration::from_secs(10);
/// How long the kernel may take to end what was sent a SIGKILL.
const TEAR_DOWN: Duration = Duration::from_secs(2);
/// More than any line has.
const LONGEST_LINE: usize = 4096;

/// A keeper that is there, and the command that it was told to start. When this is dropped, nothing of it is
/// left.
#[derive(Debug)]
pub struct Kept {
    /// The keeper, or the sandbox around it.
    child: Child,
    place: Place,
    /// Whether all of it has been ended.
    over: bool,
    /// To the keeper, and back.
    line: UnixStream,
    /// What came that is no whole line yet.
    received: Vec<u8>,
}

/// What came from a keeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// A word of it.
    Word(Word),
    /// Nothing, or not all of a word.
    NotYet,
    /// Nothing will come any more: the keeper is gone.
    End,
}

impl Kept {
    /// `child` has the other end of `line`, which does not block.
    pub(super) fn new(child: Child, line: UnixStream, place: Place) -> Self {
        Self {
            child,
            place,
            over: false,
            line,
            received: Vec::new(),
        }
    }

    /// Starts a keeper that is not in a sandbox. `program` is this program's own file; the keeper and its
    /// command work in `root`, and do not get the variables in `hidden`.
    ///
    /// # Errors
    /// The system's; of kind [`io::ErrorKind::Interrupted`] where a signal came.
    pub fn outside(
        program: &Path,
        root: &Path,
        hidden: &[OsString],
        interrupt: &Interrupt,
    ) -> io::Result<Self> {
        let (line, theirs) = UnixStream::pair()?;
        line.set_nonblocking(true)?;
        let mut command = Command::new(program);
        command
            .arg0("code-commit")
            .arg(Place::Outside.command())
            .current_dir(root)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        for variable in hidden {
            command.env_remove(variable);
        }
        let child = orphans::spawn(&mut command)?;
        // It holds the line's other end.
        drop(command);
        let mut kept = Self::new(child, line, Place::Outside);
        if kept.greeting(interrupt)? {
            return Ok(kept);
        }
        Err(io::Error::other("its keeper does not answer"))
    }

    /// Starts a command in the project's root. What it prints, on both streams, goes to `output`.
    ///
    /// # Errors
    /// When the order is too long, or the keeper is gone.
    pub fn start(&self, order: &Order, output: &PipeWriter) -> io::Result<()> {
        let order = serde_json::to_vec(order)?;
        let length = u32::try_from(order.len()).unwrap_or(u32::MAX);
        if order.len() > LONGEST_ORDER {
            let reason = "it is longer than 1 MiB";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        let fds = [output.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        // The space is made for this.
        let _ = control.push(SendAncillaryMessage::ScmRights(&fds));
        let length = length.to_be_bytes();
        // The line is empty, and holds a few bytes in any case.
        let sent = sendmsg(&self.line, &[IoSlice::new(&length)], &mut control, FLAGS)?;
        // A long order is more than the line holds at once.
        self.line.set_nonblocking(false)?;
        self.line.set_write_timeout(Some(SET_UP))?;
        (&self.line).write_all(length.get(sent..).unwrap_or_default())?;
        (&self.line).write_all(&order)?;
        self.line.set_nonblocking(true)
    }

    /// Waits for the word that the keeper is there; `false` where it is not.
    pub(super) fn greeting(&mut self, interrupt: &Interrupt) -> io::Result<bool> {
        loop {
            match self.hear()? {
                Heard::Word(word) => return Ok(word == Word::Ready),
                Heard::End => return Ok(false),
                Heard::NotYet => {}
            }
            match interrupt.poll(&[self.line.as_fd()], PollFlags::IN, Some(SET_UP))? {
                Woken::Ready => {}
                Woken::TimedOut => return Ok(false),
            }
        }
    }

    /// How the command has ended, if it has. Other words are passed over.
    ///
    /// # Errors
    /// When that cannot be told.
    pub fn ended(&mut self) -> io::Result<Option<Ended>> {
        loop {
            match self.hear()? {
                Heard::NotYet => return Ok(None),
                Heard::End => return Ok(Some(Ended::Lost)),
                Heard::Word(Word::Ended(ended, _)) => return Ok(Some(ended)),
                Heard::Word(_) => {}
            }
        }
    }

    /// Asks the command to end, by a SIGTERM to all of it. What has not ended after [`GRACE`], the keeper
    /// ends.
    pub fn ask_to_end(&self) {
        // Fails where nobody is left to ask.
        let _ = self.line.shutdown(Shutdown::Write);
    }

    /// Ends the command. In a sandbox it has no time for that; elsewhere it has [`GRACE`]. When this returns,
    /// nothing of it is left.
    pub fn end(&mut self) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        let limit = match self.place {
            Place::Sandbox => {
                self.end_sandbox();
                TEAR_DOWN
            }
            Place::Outside => {
                self.ask_to_end();
                GRACE + TEAR_DOWN
            }
        };
        let mut rest = [0; 256];
        while is_readable_within(self.line.as_fd(), limit)
            && matches!(self.line.read(&mut rest), Ok(1..))
        {}
        match self.place {
            Place::Outside => orphans::end(&mut self.child),
            Place::Sandbox => {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
        }
    }

    /// The kernel ends what is inside when the first process in there ends; then bwrap ends by itself,
    /// and leaves no orphan. All of them hold the line.
    fn end_sandbox(&self) {
        if let Some(first) = self.first_process() {
            let _ = kill_process(first, Signal::KILL);
        } else if let Some(group) = pid(self.child.id()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// The sandbox's first process, which is bwrap's only child.
    fn first_process(&self) -> Option<Pid> {
        let id = self.child.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
        pid(children.split_whitespace().next()?.parse().ok()?)
    }

    /// What the keeper says, if it has said something.
    ///
    /// # Errors
    /// When the line cannot be read.
    pub fn hear(&mut self) -> io::Result<Heard> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line = self.received.drain(..=end).collect::<Vec<_>>();
                let line = String::from_utf8_lossy(&line);
                // Nobody of ours says anything else.
                return Ok(Word::from_line(line.trim_end()).map_or(Heard::End, Heard::Word));
            }
            let mut chunk = [0; 256];
            match self.line.read(&mut chunk) {
                // Nor as much.
                _ if self.received.len() > LONGEST_LINE => return Ok(Heard::End),
                Ok(0) => return Ok(Heard::End),
                Ok(amount) => self.received.extend_from_slice(&chunk[..amount]),
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock => return Ok(Heard::NotYet),
                    io::ErrorKind::ConnectionReset => return Ok(Heard::End),
                    _ => return Err(error),
                },
            }
        }
    }
}

#[cfg(target_os = "linux")]
const FLAGS: SendFlags = SendFlags::NOSIGNAL;
/// Rust's runtime ignores the signal.
#[cfg(not(target_os = "linux"))]
const FLAGS: SendFlags = SendFlags::empty();

fn pid(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw)
}

impl AsFd for Kept {
    /// Readable when the command has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.line.as_fd()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.end();
    }
}
