//! The processes of a command, as its supervisor sees them: the leader, which it started, and the leader's
//! descendants.
//!
//! Touches `/proc` and those processes. A supervisor with its own process adopts orphaned descendants, so on Linux
//! none escapes it. Guarantees that the leader stays a zombie until it is [reaped](ProcessTree::reap_leader), so that
//! its process group ID is not reused while signals are sent to it.

use std::ffi::OsStr;
use std::fs;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpgid, getpid, kill_process,
    kill_process_group, test_kill_process_group, waitid, waitpid,
};

use super::wire::CommandStatus;
use crate::sys::files::{Links, MIB, read};

const ENDED: WaitIdOptions = WaitIdOptions::EXITED.union(WaitIdOptions::NOWAIT);

/// Set of processes that belong to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The leader's process group, for a supervisor that has other children too.
    Group,
    /// All descendants, including adopted ones; outside Linux, only the group.
    Descendants,
}

/// The processes of one command.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessTree {
    leader: Pid,
    scope: Scope,
}

impl ProcessTree {
    /// Creates the tree of a child of this process that leads a process group.
    pub fn of(leader: Pid, scope: Scope) -> Self {
        Self { leader, scope }
    }

    /// Returns the leader's status, or `None` while it runs.
    pub fn leader_status(self) -> Option<CommandStatus> {
        match waitid(WaitId::Pid(self.leader), ENDED.union(WaitIdOptions::NOHANG)) {
            Ok(status) => status.map(|status| match status.exit_status() {
                Some(code) => CommandStatus::Exited(code),
                None => CommandStatus::Signaled(status.terminating_signal().unwrap_or_default()),
            }),
            Err(Errno::INTR) => None,
            Err(_) => Some(CommandStatus::Lost),
        }
    }

    /// Waits for the leader to end, and reaps adopted processes while waiting.
    pub fn wait_for_leader(self) {
        while self.leader_status().is_none() {
            // If nothing could be reaped, the process that ended is the leader, or the wait for any process would
            // return again immediately. Either way, wait for the leader itself.
            if self.scope == Scope::Group
                || waitid(WaitId::All, ENDED).is_ok() && reap(&self.descendants()) == 0
            {
                let _ = waitid(WaitId::Pid(self.leader), ENDED);
            }
        }
    }

    /// Reaps the leader if it has ended. No signal may be sent after that.
    pub fn reap_leader(self) {
        let _ = waitpid(Some(self.leader), WaitOptions::NOHANG);
    }

    /// Returns the number of remaining processes other than the leader.
    pub fn others(self) -> u64 {
        if !cfg!(target_os = "linux") {
            return test_kill_process_group(self.leader).is_ok().into();
        }
        let others = match self.scope {
            Scope::Group => {
                // Used only as a count. If `/proc` shows another container's processes, the worst effect is an
                // unnecessary wait for the grace period.
                let is_other = |process: &ProcessInfo| {
                    let ProcessInfo { number, group, .. } = *process;
                    group == Some(self.leader) && number != self.leader && !process.has_ended
                };
                ProcessInfo::all().into_iter().filter(is_other).count()
            }
            Scope::Descendants => {
                let found = self.descendants();
                found.len() - reap(&found)
            }
        };
        others as u64
    }

    /// Returns whether all processes have ended.
    pub fn is_over(self) -> bool {
        self.leader_status().is_some() && self.others() == 0
    }

    /// Returns whether there is nothing left to wait for. With [`Scope::Group`], that is when the leader has ended: it
    /// has waited for the group members it needed, and other processes reap the rest.
    pub fn is_settled(self) -> bool {
        self.leader_status().is_some() && (self.scope == Scope::Group || self.others() == 0)
    }

    /// Sends a signal to each process exactly once: some programs treat a second SIGTERM as an order to skip cleanup.
    pub fn signal(self, signal: Signal) {
        // Fails if the group is empty, which needs no handling.
        let _ = kill_process_group(self.leader, signal);
        let descendants = self.descendants().into_iter();
        for process in descendants.map(|found| found.number).chain([self.leader]) {
            // Group 0 would be outside this process's container; children of this process are never in one.
            if getpgid(Some(process)) != Ok(self.leader) {
                let _ = kill_process(process, signal);
            }
        }
    }

    /// Returns all descendants except the leader; empty with [`Scope::Group`].
    fn descendants(self) -> Vec<ProcessInfo> {
        if self.scope == Scope::Group {
            return Vec::new();
        }
        let own = Some(getpid());
        let mut found = with_descendants(&ProcessInfo::all(), |process| process.parent == own);
        found.retain(|process| process.number != self.leader);
        found
    }
}

/// A process, as Linux shows it in `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessInfo {
    pub number: Pid,
    pub parent: Option<Pid>,
    pub group: Option<Pid>,
    /// Session ID; `None` if the session leader is not visible, for example outside this container.
    pub session: Option<Pid>,
    pub has_ended: bool,
}

impl ProcessInfo {
    /// Parses the contents of a process's `stat` file.
    fn parse(stat: &str) -> Option<Self> {
        // The kernel reports -1 for a process that is being reaped.
        let positive = |number: &i32| *number > 0;
        let parse = |word: &str| word.parse().ok().filter(positive).and_then(Pid::from_raw);
        let number = parse(stat.split(' ').next()?)?;
        // The process name, which may contain any character, is in parentheses between the two parts.
        let mut rest = stat.get(stat.rfind(") ")? + 2..)?.split(' ');
        Some(Self {
            number,
            has_ended: matches!(rest.next()?, "Z" | "X"),
            parent: parse(rest.next()?),
            group: parse(rest.next()?),
            session: parse(rest.next()?),
        })
    }

    /// Lists all processes; empty outside Linux.
    pub fn all() -> Vec<Self> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        // Entries with other names belong to the kernel.
        let is_number = |name: &OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
        let processes = entries.filter(|entry| is_number(&entry.file_name()));
        let stats = processes
            .filter_map(|entry| read(&entry.path().join("stat"), Links::Refused, MIB).ok());
        stats
            .filter_map(|stat| Self::parse(&String::from_utf8_lossy(&stat)))
            .collect()
    }
}

/// Returns the processes for which `is_first` returns true, and all of their descendants.
pub(super) fn with_descendants(
    all: &[ProcessInfo],
    is_first: impl Fn(&ProcessInfo) -> bool,
) -> Vec<ProcessInfo> {
    let mut found: Vec<_> = all.iter().copied().filter(is_first).collect();
    let mut next = 0;
    while let Some(parent) = found.get(next).map(|process| process.number) {
        let children = all.iter().filter(|child| child.parent == Some(parent));
        let new = children.filter(|child| !found.contains(child));
        found.extend(new.copied().collect::<Vec<_>>());
        next += 1;
    }
    found
}

/// Reaps the processes that have ended and are children of this one, and returns their number.
pub(super) fn reap(processes: &[ProcessInfo]) -> usize {
    let own = Some(getpid());
    let ended = processes
        .iter()
        .filter(|process| process.has_ended && process.parent == own);
    ended
        .filter(|process| {
            matches!(
                waitpid(Some(process.number), WaitOptions::NOHANG),
                Ok(Some(_))
            )
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("12 (sh) Z 1 -1 -1 0", Some((12, Some(1), None, None, true))),
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
