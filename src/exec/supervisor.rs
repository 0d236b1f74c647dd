//! The supervisor of a command: starts it, reports how it ends, and ends all of its processes on request or when the
//! program is gone.
//!
//! Communicates with the program over a socket pair, the line. In a sandbox, the supervisor is the first process
//! inside. For an unsandboxed command, it is a separate process that adopts orphans, so that it finds even a
//! daemon that has left the command's process group; outside Linux, it finds only the group. For an unsandboxed
//! build, it is a thread that ends the group, and then the build's processes that this program has adopted. If the
//! command may reach hosts, the supervisor first opens the port of their `proxy`.
//!
//! Guarantees that no other process holds the line or can obtain it, that a command is not reported as ended before it
//! has, and that, unless the supervisor is a thread, nothing of a command outlives a program that was killed, since
//! the line closes then. An unsandboxed command can break the last guarantee by killing its supervisor; the program
//! then ends the command itself (see `subreaper`), unless it was killed too.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::process::{Pid, Signal};
use strum::{EnumString, IntoStaticStr};

use super::process_tree::{ProcessTree, Scope};
use super::wire::{CommandStatus, Leftovers, MAX_REQUEST, Notice, SpawnRequest, Streams};
use super::{descriptors, proxy, subreaper};
use crate::sys::environment::Clock;
use crate::sys::interrupt::{Interrupt, is_readable_within};

/// Default time that a command's processes have to exit on their own after a SIGTERM.
pub(super) const GRACE: Duration = Duration::from_secs(2);
/// Time limit for the kernel to end processes after a SIGKILL.
pub(super) const TEAR_DOWN: Duration = Duration::from_secs(2);
/// Time that a command's leftover processes have to exit on their own.
const PAUSE: Duration = Duration::from_secs(1);
/// Interval between checks of processes that must end.
const TICK: Duration = Duration::from_millis(10);

/// The side of the sandbox on which a supervisor process runs. Its name is the argument that starts this program as
/// such a supervisor; `main` checks for it before it parses a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr)]
pub enum SupervisorPlace {
    /// The inside of a sandbox, as its first process.
    #[strum(serialize = "inside-sandbox")]
    Sandbox,
    /// The outside of any sandbox, next to the command.
    #[strum(serialize = "beside-command")]
    Outside,
}

/// Supervises the command requested over the line (standard input). Returns once none of its processes is left.
/// `interrupt` has the same effect as closing the line. In a sandbox, it must not react to signals, since the command
/// may send them.
///
/// # Errors
/// Fails if standard input is not such a line or is closed.
pub fn run(place: SupervisorPlace, clock: &dyn Clock, interrupt: &Interrupt) -> io::Result<()> {
    detach(place)?;
    let line = descriptors::standard_input()?;
    supervise(line, Scope::Descendants, clock, interrupt, |_| {})
}

/// Isolates this process from the command and the terminal.
fn detach(place: SupervisorPlace) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // Other processes must not inspect this one, because it holds the line.
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    if place == SupervisorPlace::Outside {
        subreaper::adopt_orphans()?;
        // With the user's terminal, a command could read what the user types.
        rustix::process::setsid()?;
    }
    Ok(())
}

/// Supervises a command like [`run`], over any line and in any scope; `prepare` configures it before it starts.
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
        has_reported: false,
        grace: request.grace,
    };
    let outcome = supervisor.watch(request.leftovers);
    // However the watch ended, no process of the command may remain.
    supervisor.end();
    outcome
}

struct Supervisor<'k> {
    tree: ProcessTree,
    line: UnixStream,
    clock: &'k dyn Clock,
    interrupt: &'k Interrupt,
    started: Duration,
    /// True once the command's end has been reported.
    has_reported: bool,
    /// Time that leftover processes have to exit on their own.
    grace: Duration,
}

impl Supervisor<'_> {
    /// Reports the command's end, and returns when its remaining processes must end or have ended.
    fn watch(&mut self, leftovers: Leftovers) -> io::Result<()> {
        let (ended, ending) = UnixStream::pair()?;
        let tree = self.tree;
        thread::Builder::new().spawn(move || {
            tree.wait_for_leader();
            // Closing the stream ends the wait below.
            drop(ending);
        })?;
        self.wait(Some(&ended), None)?;
        if !is_readable_within(ended.as_fd(), Duration::ZERO) {
            return Ok(());
        }
        self.report()?;
        match leftovers {
            Leftovers::Stay => self.wait(None, None),
            Leftovers::End => self.wait_for_leftovers(),
        }
    }

    /// Reports how the command ended, if it has.
    fn report(&mut self) -> io::Result<()> {
        match self.tree.leader_status() {
            Some(status) if !self.has_reported => {
                self.has_reported = true;
                let after = self.clock.elapsed().saturating_sub(self.started);
                notify(&mut self.line, Notice::Ended(status, after))
            }
            _ => Ok(()),
        }
    }

    /// Waits until the line is closed (nothing is sent after the request), `other` is closed, a signal arrives,
    /// which counts as closing the line, or the time limit passes.
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

    fn must_end(&self) -> bool {
        self.interrupt.check().is_err() || is_readable_within(self.line.as_fd(), Duration::ZERO)
    }

    fn wait_for_leftovers(&mut self) -> io::Result<()> {
        let deadline = self.clock.elapsed() + PAUSE;
        loop {
            let left = self.tree.others();
            if left == 0 || self.must_end() {
                return Ok(());
            }
            if self.clock.elapsed() >= deadline {
                return notify(&mut self.line, Notice::LeftBehind(left));
            }
            self.wait(None, Some(TICK))?;
        }
    }

    /// Asks the remaining processes to end, then kills those that do not.
    fn end(&mut self) {
        if !self.tree.is_settled() {
            self.tree.signal(Signal::TERM);
            self.wait_until(self.grace, || self.tree.is_over());
        }
        // Sent at least once: if processes cannot be listed, some of the group may be left.
        self.tree.signal(Signal::KILL);
        self.wait_until(TEAR_DOWN, || {
            self.tree.is_settled() || {
                self.tree.signal(Signal::KILL);
                false
            }
        });
        // Fails if the program no longer listens, which needs no handling.
        let _ = self.report();
        self.tree.reap_leader();
    }

    fn wait_until(&self, limit: Duration, is_so: impl Fn() -> bool) {
        let deadline = self.clock.elapsed() + limit;
        while !is_so() && self.clock.elapsed() < deadline {
            // Neither the line nor a signal needs watching any more.
            thread::sleep(TICK);
        }
    }
}

fn notify(line: &mut UnixStream, notice: Notice) -> io::Result<()> {
    line.write_all(format!("{}\n", serde_json::to_string(&notice)?).as_bytes())
}

/// Pipe ends for a command's input, output and errors.
type Pipes = [Stdio; 3];

/// Receives the request, the command's pipes and, if it may reach hosts, the line to their proxy; returns `None` if the
/// other end was closed.
fn receive(line: &UnixStream) -> io::Result<Option<(SpawnRequest, Pipes, Option<OwnedFd>)>> {
    let mut fds = descriptors::receive(line)?.into_iter();
    let Some(first) = fds.next() else {
        return Ok(None);
    };
    let mut json = String::new();
    BufReader::new(line.take(MAX_REQUEST as u64)).read_line(&mut json)?;
    let request: SpawnRequest = serde_json::from_str(&json)?;
    let pipes = match request.streams {
        Streams::Output => [Stdio::null(), first.try_clone()?.into(), first.into()],
        Streams::Three => {
            let mut next = || fds.next().ok_or(io::ErrorKind::InvalidData);
            [first.into(), next()?.into(), next()?.into()]
        }
    };
    Ok(Some((request, pipes, fds.next())))
}

/// Starts the command in its own process group. In a sandbox, it inherits from this program only the descriptor of the
/// program's own file, read-only, through which the supervisor was started.
fn spawn(
    words: &[String],
    [stdin, stdout, stderr]: Pipes,
    prepare: impl FnOnce(&mut Command),
) -> io::Result<Pid> {
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr)
        .process_group(0);
    prepare(&mut command);
    Ok(Pid::from_child(&command.spawn()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_known_by_its_command() {
        for place in [SupervisorPlace::Sandbox, SupervisorPlace::Outside] {
            assert_eq!(<&str>::from(place).parse(), Ok(place));
        }
        assert!("commit".parse::<SupervisorPlace>().is_err());
    }
}
