//! A command's processes, as its supervisor sees them: the one that it has started, the leader, and all that come
//! of it.
//!
//! Touches `/proc` and those processes. A supervisor that is a process of its own adopts whoever has lost its
//! parent, so on Linux nothing escapes it. Guarantees that the leader stays a zombie until it is
//! [reaped](ProcessTree::reap_leader), so that the number of its group is not given away while signals are sent to it.

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process_group, waitid, waitpid,
};

use super::wire::Status;

const ENDED: WaitIdOptions = WaitIdOptions::EXITED.union(WaitIdOptions::NOWAIT);

/// Which processes belong to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The leader's process group: for a supervisor that has other children too.
    Group,
    /// All descendants, and all that this process has adopted. The group alone where there is no Linux.
    Descendants,
}

/// The processes of one command.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessTree {
    leader: Pid,
    scope: Scope,
}

impl ProcessTree {
    /// The processes that come of this child of ours, which leads a process group.
    pub fn of(leader: Pid, scope: Scope) -> Self {
        Self { leader, scope }
    }

    /// How the leader has ended, if it has.
    pub fn leader_status(self) -> Option<Status> {
        match waitid(WaitId::Pid(self.leader), ENDED.union(WaitIdOptions::NOHANG)) {
            Ok(status) => status.map(|status| match status.exit_status() {
                Some(code) => Status::Exited(code),
                None => Status::Signaled(status.terminating_signal().unwrap_or_default()),
            }),
            Err(Errno::INTR) => None,
            Err(_) => Some(Status::Lost),
        }
    }

    /// Waits for the leader's end; and reaps others, whose parents have ended.
    pub fn wait_for_leader(self) {
        while self.leader_status().is_none() {
            // An end that is none of the others' is the leader's; or one that cannot be told, and would be found
            // again at once.
            if self.scope == Scope::Group || waitid(WaitId::All, ENDED).is_ok() && self.reap() == 0
            {
                let _ = waitid(WaitId::Pid(self.leader), ENDED);
            }
        }
    }

    /// Reaps those that have ended but for the leader, and counts them.
    fn reap(self) -> usize {
        let ended = |child: &Pid| matches!(waitpid(Some(*child), WaitOptions::NOHANG), Ok(Some(_)));
        self.children().into_iter().filter(ended).count()
    }

    /// Reaps the leader, if it has ended. No signal may be sent after that.
    pub fn reap_leader(self) {
        let _ = waitpid(Some(self.leader), WaitOptions::NOHANG);
    }

    /// How many are left besides the leader.
    pub fn others(self) -> u64 {
        #[cfg(target_os = "linux")]
        if self.scope == Scope::Descendants {
            self.reap();
            // Some that are counted have ended meanwhile; then they are the next time.
            return self.descendants().len() as u64;
        }
        others_in_group(self.leader)
    }

    /// Whether all have ended.
    pub fn is_over(self) -> bool {
        self.leader_status().is_some() && self.others() == 0
    }

    /// Whether there is nobody left to wait for. A leader that has ended has waited for those of its group that it
    /// wanted to, and their ends are for others to see.
    pub fn is_settled(self) -> bool {
        self.leader_status().is_some() && (self.scope == Scope::Group || self.others() == 0)
    }

    /// Sends a signal to all, to each once: some take a second SIGTERM for an order to leave everything as it is.
    pub fn signal(self, signal: Signal) {
        // Fails where nobody is left, which is as good.
        let _ = kill_process_group(self.leader, signal);
        #[cfg(target_os = "linux")]
        self.signal_strays(signal);
    }
}

#[cfg(target_os = "linux")]
impl ProcessTree {
    /// Signals those that have left the group, the leader among them.
    fn signal_strays(self, signal: Signal) {
        use rustix::process::{getpgid, kill_process};
        for process in self.descendants().into_iter().chain([self.leader]) {
            // A group of number 0 would be one outside of this process's container. A child has none such.
            if getpgid(Some(process)) != Ok(self.leader) {
                let _ = kill_process(process, signal);
            }
        }
    }

    /// This process's children but for the leader: those that have left the group, or will, or have lost
    /// their parents.
    fn children(self) -> Vec<Pid> {
        if self.scope == Scope::Group {
            return Vec::new();
        }
        let mut children = children_of(rustix::process::getpid());
        children.retain(|child| *child != self.leader);
        children
    }

    /// All but the leader; none where the group is all there is.
    fn descendants(self) -> Vec<Pid> {
        if self.scope == Scope::Group {
            return Vec::new();
        }
        let mut found = self.children();
        found.extend(children_of(self.leader));
        let mut next = 0;
        while let Some(process) = found.get(next).copied() {
            for child in children_of(process) {
                // Who has just lost its parent is found twice.
                if !found.contains(&child) {
                    found.push(child);
                }
            }
            next += 1;
        }
        found
    }
}

/// None where that cannot be told.
#[cfg(target_os = "linux")]
fn children_of(process: Pid) -> Vec<Pid> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task"));
    let lists = threads.into_iter().flatten().flatten();
    let lists =
        lists.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let parse = |word: &str| word.parse().ok().and_then(Pid::from_raw);
    let parse_list = |list: String| {
        list.split_whitespace()
            .filter_map(parse)
            .collect::<Vec<_>>()
    };
    lists.flat_map(parse_list).collect()
}

/// Only counts: should `/proc` show another container's processes, somebody waits for nothing, and no longer than
/// a grace.
#[cfg(target_os = "linux")]
fn others_in_group(leader: Pid) -> u64 {
    let all = super::subreaper::ProcessInfo::all();
    let others = all.iter().filter(|process| {
        process.group == Some(leader) && process.number != leader && !process.has_ended
    });
    others.count() as u64
}

#[cfg(not(target_os = "linux"))]
fn others_in_group(leader: Pid) -> u64 {
    u64::from(rustix::process::test_kill_process_group(leader).is_ok())
}

#[cfg(not(target_os = "linux"))]
impl ProcessTree {
    fn children(self) -> Vec<Pid> {
        Vec::new()
    }
}
