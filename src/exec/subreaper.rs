//! Ends what is left of a command outside of a sandbox whose supervisor was lost: by a SIGKILL of the command's,
//! say.
//!
//! Touches `/proc`, and the processes that it finds there. They are known by their session, which is their
//! supervisor's. Those that have made one of their own are found by their parents; where these have ended, by having
//! become children of this process, if it is a [subreaper](install), in sessions that are new since. Guarantees
//! that no other process is taken for one of them. Where there is no Linux, nothing is looked for: what has
//! ended its supervisor goes on there. And nobody finds what ends its supervisor and this program both.

use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::Pid;

/// The supervisors that this process has started and that are still its children: no orphans, though they have
/// made sessions too.
static SUPERVISORS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Whoever panicked while it held this, has left it whole.
fn supervisors() -> MutexGuard<'static, Vec<Pid>> {
    SUPERVISORS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has this process adopt those of its descendants whose parents have ended. For a process that starts no
/// daemons of its own afterwards: they would be taken for a command's. Those that were there before, as
/// whoever started the program in a container may have left, are not.
///
/// # Errors
/// The system's.
#[cfg(target_os = "linux")]
pub fn install() -> io::Result<()> {
    use rustix::process::{getpid, set_child_subreaper};
    linux::note_sessions();
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Does nothing: only Linux can.
///
/// # Errors
/// Never.
#[cfg(not(target_os = "linux"))]
pub fn install() -> io::Result<()> {
    Ok(())
}

/// Whether `/proc`, where there is one, tells of this process's container. It may show another's, whose processes
/// have the same numbers.
pub(super) fn can_look() -> bool {
    let own = rustix::process::getpid().to_string();
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
        #[cfg(target_os = "linux")]
        linux::end_leftovers(number);
        supervisors().retain(|known| *known != number);
    }
    let _ = supervisor.wait();
}

/// The number of a child.
pub(super) fn pid(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

#[cfg(target_os = "linux")]
pub(super) use self::linux::ProcessInfo;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashSet;
    use std::fs;
    use std::sync::OnceLock;
    use std::thread;
    use std::time::Duration;

    use rustix::io::retry_on_intr;
    use rustix::process::{
        Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, waitid, waitpid,
    };

    use super::supervisors;

    /// How often processes that are to end are looked at, and how many times: for two seconds.
    const TICK: Duration = Duration::from_millis(10);
    const TURNS: u32 = 200;

    /// The sessions that were there before orphans were adopted.
    static EARLIER: OnceLock<HashSet<Option<Pid>>> = OnceLock::new();

    pub fn note_sessions() {
        let all = ProcessInfo::all().into_iter();
        EARLIER.get_or_init(|| all.map(|process| process.session).collect());
    }

    /// Ends what is left of a command if its supervisor, which has ended or is about to, did not do that.
    pub fn end_leftovers(supervisor: Pid) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let ended = retry_on_intr(|| waitid(WaitId::Pid(supervisor), options));
        let is_lost = !matches!(ended, Ok(Some(status)) if status.exited());
        for _ in 0..TURNS {
            let left = find_leftovers(supervisor);
            reap(&left);
            if !is_lost || !kill(&left) {
                return;
            }
            thread::sleep(TICK);
        }
    }

    /// A process, as `/proc` shows it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct ProcessInfo {
        pub number: Pid,
        pub parent: Option<Pid>,
        pub group: Option<Pid>,
        /// `None` where it is led by a process that this one cannot see, outside of its container, say.
        pub session: Option<Pid>,
        pub has_ended: bool,
    }

    impl ProcessInfo {
        /// Reads what the file `stat` of a process says.
        pub fn parse(stat: &str) -> Option<Self> {
            let parse = |word: &str| word.parse().ok().and_then(Pid::from_raw);
            let number = parse(stat.split(' ').next()?)?;
            // Between the two stands its name, which may hold anything.
            let mut rest = stat.get(stat.rfind(") ")? + 2..)?.split(' ');
            Some(Self {
                number,
                has_ended: matches!(rest.next()?, "Z" | "X"),
                parent: parse(rest.next()?),
                group: parse(rest.next()?),
                session: parse(rest.next()?),
            })
        }

        /// All that there are.
        pub fn all() -> Vec<Self> {
            let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
            let stats = entries.filter_map(|entry| fs::read(entry.path().join("stat")).ok());
            stats
                .filter_map(|stat| Self::parse(&String::from_utf8_lossy(&stat)))
                .collect()
        }
    }

    /// What is left of a command, and of others whose supervisors are gone.
    fn find_leftovers(supervisor: Pid) -> Vec<ProcessInfo> {
        // Nobody is to become one, or to be reaped, meanwhile.
        let supervisors = supervisors();
        let all = ProcessInfo::all();
        let own = Some(getpid());
        // What this program has started for itself is in its own session, which was there before.
        let is_orphan = |process: &ProcessInfo| {
            let is_new = |earlier: &HashSet<_>| !earlier.contains(&process.session);
            process.parent == own && EARLIER.get().is_some_and(is_new)
        };
        let is_left = |process: &&ProcessInfo| {
            let is_of_session = process.session == Some(supervisor);
            !supervisors.contains(&process.number) && (is_of_session || is_orphan(process))
        };
        let mut found: Vec<ProcessInfo> = all.iter().filter(is_left).copied().collect();
        let mut next = 0;
        while let Some(parent) = found.get(next).map(|process| process.number) {
            let children = all.iter().filter(|child| child.parent == Some(parent));
            let is_new = |child: &&ProcessInfo| !found.contains(child);
            let new: Vec<ProcessInfo> = children.filter(is_new).copied().collect();
            found.extend(new);
            next += 1;
        }
        found
    }

    /// Reaps those that have ended and that nobody else can reap.
    fn reap(left: &[ProcessInfo]) {
        let own = Some(getpid());
        for process in left {
            if process.has_ended && process.parent == own {
                let _ = waitpid(Some(process.number), WaitOptions::NOHANG);
            }
        }
    }

    /// Ends the others; `false` where there are none. They have no time to end by themselves: one of them
    /// has most likely ended its supervisor.
    fn kill(left: &[ProcessInfo]) -> bool {
        let mut living = left.iter().filter(|process| !process.has_ended).peekable();
        let are_there = living.peek().is_some();
        for process in living {
            let _ = kill_process(process.number, Signal::KILL);
        }
        are_there
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::linux::ProcessInfo;
    use rustix::process::Pid;

    #[test]
    fn a_process_is_read_whatever_its_name() {
        for (stat, expected) in [
            (
                "12 (sh) S 10 11 9 0 -1",
                Some((12, Some(10), Some(11), Some(9), false)),
            ),
            (
                "12 (a) Z 1 (b) Z 10 11 9 0",
                Some((12, Some(10), Some(11), Some(9), true)),
            ),
            (
                "2 (kthreadd) S 0 0 0 0 -1",
                Some((2, None, None, None, false)),
            ),
            ("12 (sh", None),
            ("", None),
        ] {
            let pid = |number: i32| Pid::from_raw(number);
            let expected =
                expected.map(|(number, parent, group, session, has_ended)| ProcessInfo {
                    number: pid(number).unwrap(),
                    parent: parent.and_then(pid),
                    group: group.and_then(pid),
                    session: session.and_then(pid),
                    has_ended,
                });
            assert_eq!(ProcessInfo::parse(stat), expected, "{stat}");
        }
    }
}
