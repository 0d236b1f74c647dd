//! Ends the leftovers of an unsandboxed command whose supervisor was lost, for example to a SIGKILL from the command;
//! and processes that an unsandboxed build left in sessions of their own.
//!
//! Touches `/proc` and the processes found there. Leftovers are recognized by their session, which is their
//! supervisor's. Those that created their own session are found through their parents or, if these have ended, as
//! children that this process has adopted as a [subreaper](install), in sessions that did not exist when adoption
//! began. Guarantees that no other process is mistaken for a leftover. Outside Linux, nothing is searched for, so a
//! command that kills its supervisor keeps running there. A command that kills both its supervisor and this program is
//! never found.

use std::collections::HashSet;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use std::{io, thread};

use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, waitid};

use super::process_tree::{ProcessInfo, reap, with_descendants};

/// Interval between checks of processes that must end, and the number of checks: 2 seconds in all.
const TICK: Duration = Duration::from_millis(10);
const TURNS: u32 = 200;

/// Sessions that existed before this process adopted orphans.
static EARLIER: OnceLock<HashSet<Option<Pid>>> = OnceLock::new();

/// Supervisors that this process has started and not reaped. They have sessions of their own, but are not orphans.
static SUPERVISORS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Locks [`SUPERVISORS`]. A poisoned lock is usable: a panic leaves no partial update.
fn supervisors() -> MutexGuard<'static, Vec<Pid>> {
    SUPERVISORS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes this process adopt its orphaned descendants. The process must not start daemons of its own afterwards, because
/// they would be mistaken for a command's. Earlier processes, such as those that started the program in a container,
/// are exempt. Does nothing outside Linux.
///
/// # Errors
/// Fails if the kernel refuses.
pub fn install() -> io::Result<()> {
    let all = ProcessInfo::all().into_iter();
    EARLIER.get_or_init(|| all.map(|process| process.session).collect());
    adopt_orphans()
}

/// Makes this process the parent of its orphaned descendants, on Linux.
pub(super) fn adopt_orphans() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(getpid()))?;
    Ok(())
}

/// Returns whether `/proc`, where it exists, shows this process's container. It may show another one, whose
/// processes have the same IDs.
pub(super) fn can_look() -> bool {
    let own = getpid().to_string();
    !cfg!(target_os = "linux")
        || std::fs::read_link("/proc/self").is_ok_and(|shown| shown.as_os_str() == own.as_str())
}

/// Starts a supervisor.
pub(super) fn spawn(command: &mut Command) -> io::Result<Child> {
    // Keeps the lock until the supervisor is recorded, so that no other thread takes it for an orphan.
    let mut supervisors = supervisors();
    let child = command.spawn()?;
    supervisors.push(Pid::from_child(&child));
    Ok(child)
}

/// Ends a supervisor, and the leftovers of its command if it was killed.
pub(super) fn end(supervisor: &mut Child) {
    let _ = supervisor.kill();
    // The supervisor has not been reaped, so its ID, which is also the session ID, cannot be reused.
    let number = Pid::from_child(supervisor);
    end_leftovers(number);
    supervisors().retain(|known| *known != number);
    let _ = supervisor.wait();
}

/// Ends the leftovers of a command if its supervisor, which has ended or is about to, did not do so. They get no
/// grace period, since one of them most likely killed the supervisor.
fn end_leftovers(supervisor: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let ended = retry_on_intr(|| waitid(WaitId::Pid(supervisor), options));
    if matches!(ended, Ok(Some(status)) if status.exited()) {
        reap(&find_leftovers(supervisor));
    } else {
        end_all(|| find_leftovers(supervisor), || false);
    }
}

/// Kills what `find` returns until it returns nothing and `has_more` is false; gives up after [`TURNS`] rounds.
fn end_all(find: impl Fn() -> Vec<ProcessInfo>, has_more: impl Fn() -> bool) {
    for _ in 0..TURNS {
        let mut left = find();
        reap(&left);
        left.retain(|process| !process.has_ended);
        if left.is_empty() && !has_more() {
            return;
        }
        for process in left {
            let _ = kill_process(process.number, Signal::KILL);
        }
        thread::sleep(TICK);
    }
}

/// The adoption of the processes that a build of this process leaves behind, until they are ended.
#[derive(Debug)]
pub(super) struct Adoption {
    /// Children that existed before; `None` if adoption is impossible or leftovers would be indistinguishable.
    earlier: Option<Vec<Pid>>,
}

impl Adoption {
    /// Starts adopting. Call this before the build starts, and start nothing else until [`end`](Self::end). Does
    /// nothing in the first process of a container, which adopts the orphans of others too; all of them end with it.
    pub fn begin() -> Self {
        let is_possible = cfg!(target_os = "linux") && getpid() != Pid::INIT && can_look();
        let earlier = (is_possible && adopt_orphans().is_ok()).then(children);
        Self { earlier }
    }

    /// Ends everything adopted since the start, without a grace period: these processes have left the group that had
    /// one.
    pub fn end(self) {
        let Some(earlier) = self.earlier else {
            return;
        };
        let is_new = |process: &ProcessInfo| {
            process.parent == Some(getpid()) && !earlier.contains(&process.number)
        };
        if has_children() {
            // A process that forks and exits while the others are listed is not in the list. With earlier children,
            // waiting cannot tell the new ones apart.
            end_all(
                || with_descendants(&ProcessInfo::all(), is_new),
                || earlier.is_empty() && has_children(),
            );
        }
    }
}

/// Returns whether this process has children. Most builds leave none, so this check saves listing all processes.
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

/// Finds the leftovers of a command, and those of others whose supervisors are gone.
fn find_leftovers(supervisor: Pid) -> Vec<ProcessInfo> {
    // Keeps the lock, so that no supervisor is started or reaped meanwhile.
    let supervisors = supervisors();
    let own = Some(getpid());
    // Programs that this process starts for itself share its session, which is an earlier one.
    let is_orphan = |process: &ProcessInfo| {
        let is_new = |earlier: &HashSet<_>| !earlier.contains(&process.session);
        process.parent == own && EARLIER.get().is_some_and(is_new)
    };
    with_descendants(&ProcessInfo::all(), |process| {
        let is_of_session = process.session == Some(supervisor);
        !supervisors.contains(&process.number) && (is_of_session || is_orphan(process))
    })
}
