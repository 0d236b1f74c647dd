//! Ends what is left of a command outside of a sandbox whose supervisor was lost, by a SIGKILL of the command's, say;
//! and what a build outside of a sandbox has left in sessions of its own.
//!
//! Touches `/proc`, and the processes that it finds there. They are known by their session, which is their
//! supervisor's. Those that have made one of their own are found by their parents; where these have ended, by having
//! become children of this process, if it is a [subreaper](install), in sessions that are new since. Guarantees
//! that no other process is taken for one of them. Where there is no Linux, nothing is looked for: what has
//! ended its supervisor goes on there. And nobody finds what ends its supervisor and this program both.

use std::collections::HashSet;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use std::{io, thread};

use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, waitid};

use super::process_tree::{ProcessInfo, reap, with_descendants};

/// The interval at which processes that are to end are looked at, and the number of looks: for two seconds.
const TICK: Duration = Duration::from_millis(10);
const TURNS: u32 = 200;

/// The sessions that were there before orphans were adopted.
static EARLIER: OnceLock<HashSet<Option<Pid>>> = OnceLock::new();

/// The supervisors that this process has started and that are still its children: no orphans, though they have
/// made sessions too.
static SUPERVISORS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// A thread that panicked while it held this has left it whole.
fn supervisors() -> MutexGuard<'static, Vec<Pid>> {
    SUPERVISORS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has this process adopt those of its descendants whose parents have ended. For a process that starts no
/// daemons of its own afterwards: they would be taken for a command's. Those that were there before, such as the
/// ones that started the program in a container, are not. Does nothing elsewhere than on Linux.
///
/// # Errors
/// The system's.
pub fn install() -> io::Result<()> {
    let all = ProcessInfo::all().into_iter();
    EARLIER.get_or_init(|| all.map(|process| process.session).collect());
    adopt_orphans()
}

/// Makes this process the parent of those of its descendants whose parents have ended, on Linux.
pub(super) fn adopt_orphans() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(getpid()))?;
    Ok(())
}

/// Returns whether `/proc`, where there is one, tells of this process's container. It may show another's, whose
/// processes have the same numbers.
pub(super) fn can_look() -> bool {
    let own = getpid().to_string();
    !cfg!(target_os = "linux")
        || std::fs::read_link("/proc/self").is_ok_and(|shown| shown.as_os_str() == own.as_str())
}

/// Starts a supervisor.
pub(super) fn spawn(command: &mut Command) -> io::Result<Child> {
    // Held until it is known: nobody is to see it before.
    let mut supervisors = supervisors();
    let child = command.spawn()?;
    supervisors.extend(pid(&child));
    Ok(child)
}

/// Ends a supervisor, and what is left of its command if it did not end by itself.
pub(super) fn end(supervisor: &mut Child) {
    let _ = supervisor.kill();
    if let Some(number) = pid(supervisor) {
        // It is not reaped yet, so that its number, which is the session's, is not given away.
        end_leftovers(number);
        supervisors().retain(|known| *known != number);
    }
    let _ = supervisor.wait();
}

/// The number of a child.
pub(super) fn pid(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

/// Ends what is left of a command if its supervisor, which has ended or is about to, did not do that. It has no
/// time to end by itself: some of it has most likely ended the supervisor.
fn end_leftovers(supervisor: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let ended = retry_on_intr(|| waitid(WaitId::Pid(supervisor), options));
    if matches!(ended, Ok(Some(status)) if status.exited()) {
        reap(&find_leftovers(supervisor));
    } else {
        end_all(|| find_leftovers(supervisor));
    }
}

/// Ends what is found, until nothing is.
fn end_all(find: impl Fn() -> Vec<ProcessInfo>) {
    for _ in 0..TURNS {
        let mut left = find();
        reap(&left);
        left.retain(|process| !process.has_ended);
        if left.is_empty() {
            return;
        }
        for process in left {
            let _ = kill_process(process.number, Signal::KILL);
        }
        thread::sleep(TICK);
    }
}

/// Adopts what a build that this very process starts leaves behind, and ends it when told to.
#[derive(Debug)]
pub(super) struct Adoption {
    /// The children that this process had before; `None` where none can be adopted, or told from others.
    earlier: Option<Vec<Pid>>,
}

impl Adoption {
    /// To be called before the build is started. Nothing else is to be started until [`end`](Self::end). The first
    /// process of a container adopts everybody else's too, and all of them end with it.
    pub fn begin() -> Self {
        let is_possible = cfg!(target_os = "linux") && getpid() != Pid::INIT && can_look();
        let earlier = (is_possible && adopt_orphans().is_ok()).then(children);
        Self { earlier }
    }

    /// Ends all that has come since. It has no time to end by itself: it has left the process group that had some.
    pub fn end(self) {
        let Some(earlier) = self.earlier else {
            return;
        };
        let is_new = |process: &ProcessInfo| {
            process.parent == Some(getpid()) && !earlier.contains(&process.number)
        };
        if has_children() {
            end_all(|| with_descendants(&ProcessInfo::all(), is_new));
        }
    }
}

/// Saves looking through all processes, which most builds leave nothing in.
fn has_children() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    retry_on_intr(|| waitid(WaitId::All, options)).is_ok()
}

fn children() -> Vec<Pid> {
    if !has_children() {
        return Vec::new();
    }
    let own = Some(getpid());
    let all = ProcessInfo::all().into_iter();
    all.filter(|process| process.parent == own)
        .map(|process| process.number)
        .collect()
}

/// Finds the remains of a command, and of others whose supervisors are gone.
fn find_leftovers(supervisor: Pid) -> Vec<ProcessInfo> {
    // Nobody is to become one, or to be reaped, meanwhile.
    let supervisors = supervisors();
    let own = Some(getpid());
    // What this program has started for itself is in its own session, which was there before.
    let is_orphan = |process: &ProcessInfo| {
        let is_new = |earlier: &HashSet<_>| !earlier.contains(&process.session);
        process.parent == own && EARLIER.get().is_some_and(is_new)
    };
    with_descendants(&ProcessInfo::all(), |process| {
        let is_of_session = process.session == Some(supervisor);
        !supervisors.contains(&process.number) && (is_of_session || is_orphan(process))
    })
}
