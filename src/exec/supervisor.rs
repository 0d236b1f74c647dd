//! The supervisor of a command: starts it, reports how it ends, and ends all of it when told to, or when nobody is left
//! to tell it.
//!
//! Talks to the program by one end of a socket pair, the line. Inside a sandbox, the supervisor is the first
//! process in there. Beside a command that is not sandboxed it is a process that adopts what the command's
//! processes leave behind, so that it finds a daemon that has left the command's process group too; where there is
//! no Linux, it finds the group alone. Where the command may reach hosts, it opens the port of their `proxy` first.
//! For a build that is not sandboxed it is a thread, which ends the group, and then what this program has adopted of
//! the build's.
//! Guarantees that nobody else holds that line or can take it, that a command is not taken for ended before it
//! has, and that nothing of a command outlives a program that was killed, unless that was its thread: the line
//! closes then. A command outside of a sandbox can undo the last of these by a SIGKILL to its supervisor; then the
//! program ends it in the supervisor's place, see `subreaper`, unless it was killed too.

use std::ffi::OsStr;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::process::{Pid, Signal};

use super::process_tree::{ProcessTree, Scope};
use super::wire::{CommandStatus, Leftovers, MAX_REQUEST, Notice, SpawnRequest, Streams};
use super::{descriptors, proxy, subreaper};
use crate::sys::environment::Clock;
use crate::sys::interrupt::{Interrupt, is_readable_within};

/// The time that a command's processes have to end by themselves after a SIGTERM, unless they are to have less.
pub(super) const GRACE: Duration = Duration::from_secs(2);
/// The time that the kernel may take to end what was sent a SIGKILL.
pub(super) const TEAR_DOWN: Duration = Duration::from_secs(2);
/// The time that leftovers of a command may take to end by themselves.
const PAUSE: Duration = Duration::from_secs(1);
/// The interval at which processes that are to end are looked at.
const TICK: Duration = Duration::from_millis(10);

/// Where a supervisor that is a process works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SupervisorPlace {
    /// In a sandbox, as the first process there.
    Sandbox,
    /// Beside a command that is not sandboxed.
    Outside,
}

impl SupervisorPlace {
    /// The only argument of this program there.
    #[must_use]
    pub fn command(self) -> &'static str {
        match self {
            Self::Sandbox => "inside-sandbox",
            Self::Outside => "beside-command",
        }
    }

    /// The place that this argument stands for. `main` looks for it before it reads any command line.
    #[must_use]
    pub fn of_command(command: &OsStr) -> Option<Self> {
        [Self::Sandbox, Self::Outside]
            .into_iter()
            .find(|place| command == place.command())
    }
}

/// Supervises the command that standard input, the line, asks for, and returns when nothing of it is left.
/// `interrupt` ends it as a closed line does; in a sandbox it must be tied to no signal, since those come from the
/// command.
///
/// # Errors
/// When the line is no such line, or is gone.
pub fn run(place: SupervisorPlace, clock: &dyn Clock, interrupt: &Interrupt) -> io::Result<()> {
    detach(place)?;
    let line = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    supervise(line, Scope::Descendants, clock, interrupt, |_| {})
}

/// Sees that neither a command nor a terminal can get at this process.
fn detach(place: SupervisorPlace) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // Nobody may look into this process, where the line is.
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    if place == SupervisorPlace::Outside {
        subreaper::adopt_orphans()?;
        // A command that has the user's terminal could wait there for what the user types.
        rustix::process::setsid()?;
    }
    Ok(())
}

/// The same with the line and the extent of what is ended. `prepare` adds to the command what this process does
/// not pass on by itself.
pub(super) fn supervise(
    mut line: UnixStream,
    scope: Scope,
    clock: &dyn Clock,
    interrupt: &Interrupt,
    prepare: impl FnOnce(&mut Command),
) -> io::Result<()> {
    notify(&mut line, Notice::Ready)?;
    let Some((request, pipes, proxied)) = receive(&line)? else {
        return Ok(());
    };
    let started = clock.elapsed();
    let listening = proxied.map(proxy::listen).transpose();
    let spawned = listening.and_then(|line| Ok((line, spawn(&request.words, pipes, prepare)?)));
    let (_held, leader) = match spawned {
        Ok(spawned) => spawned,
        Err(error) => {
            let status = CommandStatus::NotStarted(error.raw_os_error().unwrap_or_default());
            return notify(&mut line, Notice::Ended(status, Duration::ZERO));
        }
    };
    notify(&mut line, Notice::Started)?;
    let mut supervisor = Supervisor {
        tree: ProcessTree::of(leader, scope),
        line,
        clock,
        interrupt,
        started,
        has_told: false,
        grace: request.grace,
    };
    let outcome = supervisor.watch(request.leftovers);
    // Whatever happened, nothing of it goes on running.
    supervisor.end();
    outcome
}

struct Supervisor<'k> {
    tree: ProcessTree,
    line: UnixStream,
    clock: &'k dyn Clock,
    interrupt: &'k Interrupt,
    started: Duration,
    /// True if it was told how the command has ended.
    has_told: bool,
    /// The time that leftovers have to end by themselves.
    grace: Duration,
}

impl Supervisor<'_> {
    /// Tells of the command's end, and returns when all of it is to end, or has.
    fn watch(&mut self, leftovers: Leftovers) -> io::Result<()> {
        let (ended, ending) = UnixStream::pair()?;
        let tree = self.tree;
        thread::Builder::new().spawn(move || {
            tree.wait_for_leader();
            // Closing it ends the wait below.
            drop(ending);
        })?;
        self.wait(Some(&ended), None)?;
        if !is_readable_within(ended.as_fd(), Duration::ZERO) {
            return Ok(());
        }
        self.tell()?;
        match leftovers {
            Leftovers::Stay => self.wait(None, None),
            Leftovers::End => self.wait_for_leftovers(),
        }
    }

    /// Tells how the command has ended, if it has.
    fn tell(&mut self) -> io::Result<()> {
        match self.tree.leader_status() {
            Some(status) if !self.has_told => {
                self.has_told = true;
                let after = self.clock.elapsed().saturating_sub(self.started);
                notify(&mut self.line, Notice::Ended(status, after))
            }
            _ => Ok(()),
        }
    }

    /// Waits until the line is closed (nothing is said in it after the request) or `other` is, a signal comes,
    /// which is as good as the line's end, or the time has passed.
    fn wait(&self, other: Option<&UnixStream>, limit: Option<Duration>) -> io::Result<()> {
        let watched: Vec<_> = other
            .into_iter()
            .chain([&self.line])
            .map(|end| end.as_fd())
            .collect();
        let woken = self.interrupt.poll(&watched, PollFlags::IN, limit);
        match self.interrupt.check() {
            Ok(()) => woken.map(drop),
            Err(_) => Ok(()),
        }
    }

    fn is_told_to_end(&self) -> bool {
        self.interrupt.check().is_err() || is_readable_within(self.line.as_fd(), Duration::ZERO)
    }

    fn wait_for_leftovers(&mut self) -> io::Result<()> {
        let deadline = self.clock.elapsed() + PAUSE;
        loop {
            let left = self.tree.others();
            if left == 0 || self.is_told_to_end() {
                return Ok(());
            }
            if self.clock.elapsed() >= deadline {
                return notify(&mut self.line, Notice::LeftBehind(left));
            }
            self.wait(None, Some(TICK))?;
        }
    }

    /// Asks whatever is left to end, and ends what does not.
    fn end(&mut self) {
        if !self.tree.is_settled() {
            self.tree.signal(Signal::TERM);
            self.wait_until(self.grace, || self.tree.is_over());
        }
        // Once in any case: where processes cannot be looked for, some of the group may be left.
        self.tree.signal(Signal::KILL);
        self.wait_until(TEAR_DOWN, || {
            self.tree.is_settled() || {
                self.tree.signal(Signal::KILL);
                false
            }
        });
        // Fails where nobody listens any more.
        let _ = self.tell();
        self.tree.reap_leader();
    }

    fn wait_until(&self, limit: Duration, is_so: impl Fn() -> bool) {
        let deadline = self.clock.elapsed() + limit;
        while !is_so() && self.clock.elapsed() < deadline {
            // The line and the signals have said what they have to say.
            thread::sleep(TICK);
        }
    }
}

fn notify(line: &mut UnixStream, notice: Notice) -> io::Result<()> {
    line.write_all(format!("{}\n", notice.to_line()).as_bytes())
}

/// The ends of pipes that a command reads from and prints to.
struct Pipes {
    stdin: Stdio,
    stdout: Stdio,
    stderr: Stdio,
}

/// Waits for the request, the command's pipes and, if it may reach hosts, the line to their proxy; `None` where the
/// other end is closed instead.
fn receive(line: &UnixStream) -> io::Result<Option<(SpawnRequest, Pipes, Option<OwnedFd>)>> {
    let mut fds = descriptors::receive(line)?.into_iter();
    let Some(first) = fds.next() else {
        return Ok(None);
    };
    let mut request = String::new();
    BufReader::new(line.take(MAX_REQUEST as u64)).read_line(&mut request)?;
    let request: SpawnRequest = serde_json::from_str(&request)?;
    let pipes = match request.streams {
        Streams::Output => Pipes {
            stdin: Stdio::null(),
            stderr: first.try_clone()?.into(),
            stdout: first.into(),
        },
        Streams::Three => {
            let mut next = || fds.next().ok_or(io::ErrorKind::InvalidData);
            Pipes {
                stdin: first.into(),
                stdout: next()?.into(),
                stderr: next()?.into(),
            }
        }
    };
    Ok(Some((request, pipes, fds.next())))
}

/// Starts the command in a process group of its own. In a sandbox, nothing of this program stays open in
/// it but its own file, for reading, by whose number it was started.
fn spawn(words: &[String], pipes: Pipes, prepare: impl FnOnce(&mut Command)) -> io::Result<Pid> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(pipes.stdin)
        .stdout(pipes.stdout)
        .stderr(pipes.stderr)
        .process_group(0);
    prepare(&mut command);
    let child = command.spawn()?;
    subreaper::pid(&child).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_known_by_its_command() {
        for place in [SupervisorPlace::Sandbox, SupervisorPlace::Outside] {
            assert_eq!(
                SupervisorPlace::of_command(place.command().as_ref()),
                Some(place)
            );
        }
        assert_eq!(SupervisorPlace::of_command("commit".as_ref()), None);
    }
}
