//! The program's side of a command's supervisor.
//!
//! Touches the supervisor and, if that is in a sandbox, every process inside. Guarantees that dropping the handle
//! leaves no process of the command; if the supervisor was lost, within the limits of [`subreaper`].

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::child_env::ChildEnv;
use super::descriptors;
use super::process_tree::Scope;
use super::proxy::HostProxy;
use super::subreaper::{self, Adoption};
use super::supervisor::{GRACE, SupervisorPlace, TEAR_DOWN, supervise};
use super::wire::{CommandStatus, MAX_REQUEST, Notice, SpawnRequest};
use crate::sys::environment::Clock;
use crate::sys::files::{Links, MIB, read};
use crate::sys::interrupt::{Interrupt, is_readable_within};

/// Time limit for a supervisor to start.
const SET_UP: Duration = Duration::from_secs(10);
/// Maximum length of a notice in bytes; longer than any real one.
const MAX_LINE: usize = 4096;

/// A running supervisor, and the command that it was asked to start.
#[derive(Debug)]
pub(super) struct SupervisedChild {
    /// The supervisor's place and process, which in a sandbox is bwrap's; `None` if it is a thread of this program.
    process: Option<(SupervisorPlace, Child)>,
    /// True once everything has been ended.
    over: bool,
    /// Connection to the supervisor.
    line: UnixStream,
    /// Incomplete last line received.
    received: Vec<u8>,
    /// Proxy through which the command reaches hosts, in a sandbox without a network.
    proxy: Option<Arc<HostProxy>>,
}

impl SupervisedChild {
    /// Starts a supervisor process: `command` must run this program as a supervisor in this place, and first take the
    /// descriptors `passed` from its standard input, if there are any. The supervisor and its command run in `root`,
    /// with this environment.
    ///
    /// # Errors
    /// Fails if the process cannot be started, with [`io::ErrorKind::Interrupted`] if a signal arrived, and with
    /// [`io::ErrorKind::ConnectionAborted`] if the supervisor does not answer.
    pub fn spawn(
        mut command: Command,
        place: SupervisorPlace,
        root: &Path,
        env: &ChildEnv,
        interrupt: &Interrupt,
        passed: &[BorrowedFd<'_>],
    ) -> io::Result<Self> {
        let (line, theirs) = UnixStream::pair()?;
        if !passed.is_empty() {
            descriptors::send(&line, passed)?;
        }
        command
            .arg(<&str>::from(place))
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null());
        prepare(&mut command, root, env);
        let child = match place {
            SupervisorPlace::Sandbox => command.process_group(0).spawn()?,
            SupervisorPlace::Outside => subreaper::spawn(&mut command)?,
        };
        // The command owns the other end of the line.
        drop(command);
        Self::wait_for_greeting(Some((place, child)), line, interrupt)
    }

    /// Starts a supervisor process outside any sandbox; `program` is this program's executable.
    ///
    /// # Errors
    /// Same as [`spawn`](Self::spawn).
    pub fn beside(
        program: &Path,
        root: &Path,
        env: &ChildEnv,
        interrupt: &Interrupt,
    ) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.arg0("code-commit").stderr(Stdio::null());
        Self::spawn(command, SupervisorPlace::Outside, root, env, interrupt, &[])
    }

    /// Starts a supervisor on a thread. It ends the command's process group, and orphaned processes that left the
    /// group. When the thread ends, all of them have.
    ///
    /// # Errors
    /// Fails if the thread cannot be started, with [`io::ErrorKind::Interrupted`] if a signal arrived, and with
    /// [`io::ErrorKind::ConnectionAborted`] if the supervisor does not answer.
    pub fn on_thread<'scope>(
        scope: &'scope thread::Scope<'scope, '_>,
        clock: &'scope dyn Clock,
        root: &'scope Path,
        env: &'scope ChildEnv,
        interrupt: &Interrupt,
    ) -> io::Result<Self> {
        let (line, theirs) = UnixStream::pair()?;
        // The thread need not watch for signals: the program closes its end of the line.
        let never = Interrupt::never()?;
        thread::Builder::new().spawn_scoped(scope, move || {
            let prepare = |command: &mut Command| prepare(command, root, env);
            let adoption = Adoption::begin();
            let supervised = supervise(theirs, Scope::Group, clock, &never, prepare);
            adoption.end();
            supervised
        })?;
        Self::wait_for_greeting(None, line, interrupt)
    }

    /// Waits for the supervisor's first notice.
    fn wait_for_greeting(
        process: Option<(SupervisorPlace, Child)>,
        line: UnixStream,
        interrupt: &Interrupt,
    ) -> io::Result<Self> {
        let no_answer = || {
            let reason = "its supervisor does not answer";
            io::Error::new(io::ErrorKind::ConnectionAborted, reason)
        };
        line.set_nonblocking(true)?;
        let mut child = Self {
            process,
            over: false,
            line,
            received: Vec::new(),
            proxy: None,
        };
        match child.next(interrupt) {
            Ok(Notice::Ready) => Ok(child),
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
            _ => Err(no_answer()),
        }
    }

    /// Waits for the supervisor's next notice.
    fn next(&mut self, interrupt: &Interrupt) -> io::Result<Notice> {
        loop {
            if let Some(notice) = self.receive()? {
                return Ok(notice);
            }
            if !interrupt.poll(&[self.as_fd()], PollFlags::IN, Some(SET_UP))? {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    /// Sets the proxy through which the command reaches hosts.
    pub fn with_proxy(mut self, proxy: Option<Arc<HostProxy>>) -> Self {
        self.proxy = proxy;
        self
    }

    /// Starts a command in the project's root, with the pipes that the request asks for.
    ///
    /// # Errors
    /// Fails if the request is too long or the supervisor is gone.
    pub fn start(&self, request: &SpawnRequest, streams: &[BorrowedFd<'_>]) -> io::Result<()> {
        let request = format!("{}\n", serde_json::to_string(request)?);
        if request.len() > MAX_REQUEST {
            let reason = "it is longer than 1 MiB";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        let proxied = self.proxy.as_ref().map(HostProxy::start).transpose()?;
        let fds = streams
            .iter()
            .copied()
            .chain(proxied.iter().map(AsFd::as_fd));
        // Cannot block: the line is empty, and its buffer holds at least a byte.
        descriptors::send(&self.line, &fds.collect::<Vec<_>>())?;
        // Blocking, since a long request exceeds the line's buffer.
        self.line.set_nonblocking(false)?;
        self.line.set_write_timeout(Some(SET_UP))?;
        (&self.line).write_all(request.as_bytes())?;
        self.line.set_nonblocking(true)
    }

    /// Waits until the command runs.
    ///
    /// # Errors
    /// Returns the reason if the command could not be started.
    pub fn wait_for_start(&mut self, interrupt: &Interrupt) -> io::Result<()> {
        loop {
            match self.next(interrupt)? {
                Notice::Started => return Ok(()),
                Notice::Ended(CommandStatus::NotStarted(number), _) => {
                    return Err(io::Error::from_raw_os_error(number));
                }
                _ => {}
            }
        }
    }

    /// Asks the command to end, with a SIGTERM to all of its processes. The supervisor kills those that remain after
    /// the request's grace period.
    pub fn ask_to_end(&self) {
        // Fails if the supervisor is gone, which needs no handling.
        let _ = self.line.shutdown(Shutdown::Write);
    }

    /// Ends the command: immediately in a sandbox, elsewhere after the request's grace period. On return, no process of
    /// it is left.
    pub fn end(&mut self) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        let limit = if let Some((SupervisorPlace::Sandbox, bwrap)) = &self.process {
            end_sandbox(bwrap);
            TEAR_DOWN
        } else {
            self.ask_to_end();
            GRACE + TEAR_DOWN
        };
        let mut rest = [0; 256];
        while is_readable_within(self.line.as_fd(), limit)
            && matches!(self.line.read(&mut rest), Ok(1..))
        {}
        match &mut self.process {
            Some((SupervisorPlace::Outside, supervisor)) => subreaper::end(supervisor),
            Some((SupervisorPlace::Sandbox, bwrap)) => {
                let _ = bwrap.kill();
                let _ = bwrap.wait();
            }
            None => {}
        }
    }

    /// Returns the supervisor's next notice, or `None` if none has arrived.
    ///
    /// # Errors
    /// Fails if the supervisor is gone and no more notices can arrive.
    pub fn receive(&mut self) -> io::Result<Option<Notice>> {
        let end = || io::Error::from(io::ErrorKind::UnexpectedEof);
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.received) {
                let line = self.received.drain(..=at).collect::<Vec<_>>();
                // Anything else does not come from a supervisor of this program.
                return serde_json::from_slice(&line).map(Some).map_err(|_| end());
            }
            let mut chunk = [0; 256];
            match self.line.read(&mut chunk) {
                // A supervisor of this program sends no line this long.
                _ if self.received.len() > MAX_LINE => return Err(end()),
                Ok(0) => return Err(end()),
                Ok(amount) => self.received.extend_from_slice(&chunk[..amount]),
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock => return Ok(None),
                    _ => return Err(error),
                },
            }
        }
    }
}

/// Sets a command's working directory and environment.
fn prepare(command: &mut Command, root: &Path, env: &ChildEnv) {
    env.apply(command.current_dir(root));
}

/// Kills the first process in the sandbox. The kernel then ends all others inside, after which bwrap exits by itself
/// without leaving orphans. All of them hold the line.
fn end_sandbox(bwrap: &Child) {
    let _ = match first_process(bwrap) {
        Some(first) => kill_process(first, Signal::KILL),
        None => kill_process_group(Pid::from_child(bwrap), Signal::KILL),
    };
}

/// Returns the sandbox's first process, which is bwrap's only child.
fn first_process(bwrap: &Child) -> Option<Pid> {
    let id = bwrap.id();
    let path = format!("/proc/{id}/task/{id}/children");
    let children = String::from_utf8(read(Path::new(&path), Links::Refused, MIB).ok()?).ok()?;
    Pid::from_raw(children.split_whitespace().next()?.parse().ok()?)
}

impl AsFd for SupervisedChild {
    /// Returns a descriptor that is readable when the supervisor has sent something or is gone.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.line.as_fd()
    }
}

impl Drop for SupervisedChild {
    fn drop(&mut self) {
        self.end();
    }
}
