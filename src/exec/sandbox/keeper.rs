//! This program's own part beside a command: it starts the command, says how it ends, and ends all of it
//! when told to, or when nobody is left to tell it.
//!
//! Talks to the run by its standard input, which is one end of a socket pair. Inside a sandbox it is the
//! first process in there. Elsewhere it takes in what the command's processes leave behind, so that it finds
//! a daemon that has left the command's process group too; where there is no Linux, it finds the group alone.
//! Guarantees that nobody else holds that line or can take it, that a command is not taken for ended before it
//! has, and that nothing of a command outlives a run that was killed: the line closes then. A command outside
//! of a sandbox can undo the last of these by a SIGKILL to its keeper; then the run ends it in the keeper's place,
//! see [`orphans`](super::orphans), unless it was killed too.

use std::ffi::OsStr;
use std::io::{self, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::Pid;

use super::family::Family;
use super::words::{Ended, LONGEST_ORDER, Leftovers, Order, Word};
use crate::sys::environment::Clock;
use crate::sys::interrupt::{Interrupt, is_readable_within};

/// How long a command's processes have to end by themselves after a SIGTERM.
pub const GRACE: Duration = Duration::from_secs(2);
/// How long what a command has left running may take to end by itself.
const PAUSE: Duration = Duration::from_secs(1);
/// How long the kernel may take to end what was sent a SIGKILL.
const TEAR_DOWN: Duration = Duration::from_secs(2);
/// How often processes that are to end are looked at.
const TICK: Duration = Duration::from_millis(10);

/// Where a keeper works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In a sandbox, as the first process there.
    Sandbox,
    /// Beside a command that is not shut in.
    Outside,
}

impl Place {
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
        let places = [Self::Sandbox, Self::Outside];
        places.into_iter().find(|place| command == place.command())
    }
}

/// Does what is told, and returns when there is nothing more to do. `interrupt` ends the command as a
/// closed line does; in a sandbox it must be tied to no signal, since those come from the command.
///
/// # Errors
/// When the line is no such line, or is gone.
pub fn run(place: Place, clock: &dyn Clock, interrupt: &Interrupt) -> io::Result<()> {
    stand_apart(place)?;
    let mut line = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    say(&mut line, Word::Ready)?;
    let Some((order, output)) = receive_order(&line)? else {
        return Ok(());
    };
    let started = clock.elapsed();
    let leader = match spawn(&order.words, output) {
        Ok(leader) => leader,
        Err(error) => {
            let number = error.raw_os_error().unwrap_or_default();
            return say(
                &mut line,
                Word::Ended(Ended::NotStarted(number), Duration::ZERO),
            );
        }
    };
    let mut keeper = Keeper {
        family: Family::of(leader),
        line,
        clock,
        interrupt,
        started,
        has_told: false,
    };
    let outcome = keeper.watch(order.leftovers);
    // Whatever happened, nothing of it goes on running.
    keeper.end();
    outcome
}

/// Sees that neither a command nor a terminal can get at this process.
fn stand_apart(place: Place) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{
            DumpableBehavior, getpid, set_child_subreaper, set_dumpable_behavior,
        };
        // Nobody may look into this process, where the line is.
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        if place == Place::Outside {
            set_child_subreaper(Some(getpid()))?;
        }
    }
    if place == Place::Outside {
        // A command that has the user's terminal could wait there for what the user types.
        rustix::process::setsid()?;
    }
    Ok(())
}

struct Keeper<'k> {
    family: Family,
    line: UnixStream,
    clock: &'k dyn Clock,
    interrupt: &'k Interrupt,
    started: Duration,
    /// Whether it was told how the command has ended.
    has_told: bool,
}

impl Keeper<'_> {
    /// Tells of the command's end, and returns when all of it is to end, or has.
    fn watch(&mut self, leftovers: Leftovers) -> io::Result<()> {
        let (told, teller) = UnixStream::pair()?;
        let family = self.family;
        thread::Builder::new().spawn(move || {
            family.wait_for_leader();
            // Closing it is the word.
            drop(teller);
        })?;
        self.wait_for(&told)?;
        if !is_readable_within(told.as_fd(), Duration::ZERO) {
            return Ok(());
        }
        self.tell()?;
        match leftovers {
            Leftovers::Stay => self.wait(None),
            Leftovers::End => self.wait_for_leftovers(),
        }
    }

    /// Tells how the command has ended, if it has.
    fn tell(&mut self) -> io::Result<()> {
        match self.family.leader_status() {
            Some(ended) if !self.has_told => {
                self.has_told = true;
                let after = self.clock.elapsed().saturating_sub(self.started);
                say(&mut self.line, Word::Ended(ended, after))
            }
            _ => Ok(()),
        }
    }

    /// Waits until `told` or the line can be read, or a signal comes.
    fn wait_for(&self, told: &UnixStream) -> io::Result<()> {
        let watched = [told.as_fd(), self.line.as_fd()];
        let woken = self.interrupt.poll(&watched, PollFlags::IN, None);
        self.unless_interrupted(woken.map(drop))
    }

    /// Waits until the line is closed (nothing is said in it after the order), a signal comes, or the
    /// time has passed.
    fn wait(&self, limit: Option<Duration>) -> io::Result<()> {
        let woken = self
            .interrupt
            .poll(&[self.line.as_fd()], PollFlags::IN, limit);
        self.unless_interrupted(woken.map(drop))
    }

    fn is_told_to_end(&self) -> bool {
        self.interrupt.check().is_err() || is_readable_within(self.line.as_fd(), Duration::ZERO)
    }

    /// A signal is as good as the line's end.
    fn unless_interrupted(&self, result: io::Result<()>) -> io::Result<()> {
        match self.interrupt.check() {
            Ok(()) => result,
            Err(_) => Ok(()),
        }
    }

    fn wait_for_leftovers(&mut self) -> io::Result<()> {
        let deadline = self.clock.elapsed() + PAUSE;
        loop {
            let left = self.family.others();
            if left == 0 || self.is_told_to_end() {
                return Ok(());
            }
            if self.clock.elapsed() >= deadline {
                return say(&mut self.line, Word::LeftBehind(left));
            }
            self.wait(Some(TICK))?;
        }
    }

    /// Asks whatever is left to end, and ends what does not.
    fn end(&mut self) {
        if !self.family.is_over() {
            self.family.ask_to_end();
            self.wait_for_end(GRACE, || {});
        }
        // Once in any case: where processes cannot be looked for, some of the group may be left.
        self.family.kill();
        self.wait_for_end(TEAR_DOWN, || self.family.kill());
        // Whoever no longer listens does not want to know.
        let _ = self.tell();
    }

    fn wait_for_end(&self, limit: Duration, insist: impl Fn()) {
        let deadline = self.clock.elapsed() + limit;
        while !self.family.is_over() && self.clock.elapsed() < deadline {
            insist();
            // The line and the signals have said what they have to say.
            thread::sleep(TICK);
        }
    }
}

fn say(line: &mut UnixStream, word: Word) -> io::Result<()> {
    line.write_all(format!("{}\n", word.to_line()).as_bytes())
}

/// Waits for the order and the pipe that the command is to print to; `None` where the other end is closed
/// instead.
fn receive_order(mut line: &UnixStream) -> io::Result<Option<(Order, OwnedFd)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut length = [0; 4];
    let buffers = &mut [IoSliceMut::new(&mut length)];
    let received = recvmsg(line, buffers, &mut control, FLAGS)?;
    let mut fds = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    let Some(output) = fds.next() else {
        return Ok(None);
    };
    line.read_exact(length.get_mut(received.bytes..).unwrap_or_default())?;
    let length = u32::from_be_bytes(length) as usize;
    if length > LONGEST_ORDER {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut order = vec![0; length];
    line.read_exact(&mut order)?;
    Ok(Some((serde_json::from_slice(&order)?, output)))
}

/// What is received is not to be open in the command; elsewhere than on Linux that is seen to by `spawn`
/// alone, which gives it away.
#[cfg(target_os = "linux")]
const FLAGS: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const FLAGS: RecvFlags = RecvFlags::empty();

/// Starts the command in a process group of its own. In a sandbox, nothing of this program stays open in
/// it but its own file, for reading, by whose number it was started.
fn spawn(words: &[String], output: OwnedFd) -> io::Result<Pid> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(output.try_clone()?)
        .stdout(output)
        .process_group(0)
        .spawn()?;
    i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_known_by_its_command() {
        for place in [Place::Sandbox, Place::Outside] {
            assert_eq!(Place::of_command(place.command().as_ref()), Some(place));
        }
        assert_eq!(Place::of_command("commit".as_ref()), None);
    }
}
