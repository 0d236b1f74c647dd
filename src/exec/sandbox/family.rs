//! A command's processes, as its keeper sees them: the one that it has started, and all that come of it.
//!
//! Touches `/proc` and those processes. The keeper is the parent of whoever has lost its own, so on Linux
//! nothing escapes it. Guarantees that the leader stays a zombie, so that the number of its group is not given
//! away while signals are sent to it.

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process_group, waitid, waitpid,
};

use super::words::Ended;

/// The processes of one command.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    leader: Pid,
}

impl Family {
    /// The processes that come of this child of ours, which leads a process group.
    pub fn of(leader: Pid) -> Self {
        Self { leader }
    }

    /// How the leader has ended, if it has.
    pub fn leader_status(self) -> Option<Ended> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(self.leader), options) {
            Ok(status) => status.map(|status| match status.exit_status() {
                Some(code) => Ended::Exited(code),
                None => Ended::Signaled(status.terminating_signal().unwrap_or_default()),
            }),
            Err(Errno::INTR) => None,
            Err(_) => Some(Ended::Lost),
        }
    }

    /// Waits for the leader's end; and buries others, whose parents have ended.
    pub fn wait_for_leader(self) {
        while self.leader_status().is_none() {
            let any = waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            if any.is_ok() && self.bury() == 0 {
                // It was the leader; or one that cannot be told, and would be found again at once.
                let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                let _ = waitid(WaitId::Pid(self.leader), options);
            }
        }
    }

    /// Buries those that have ended but for the leader, and counts them.
    fn bury(self) -> usize {
        let ended = |child: &Pid| matches!(waitpid(Some(*child), WaitOptions::NOHANG), Ok(Some(_)));
        self.children().into_iter().filter(ended).count()
    }

    /// How many are left besides the leader.
    #[cfg(target_os = "linux")]
    pub fn others(self) -> u64 {
        self.bury();
        // Some that are counted have ended meanwhile; then they are the next time.
        self.descendants().len() as u64
    }

    /// Whether any are left besides the leader.
    #[cfg(not(target_os = "linux"))]
    pub fn others(self) -> u64 {
        u64::from(rustix::process::test_kill_process_group(self.leader).is_ok())
    }

    /// Whether all have ended.
    pub fn is_over(self) -> bool {
        self.leader_status().is_some() && self.others() == 0
    }

    /// Asks all to end, each once: some take a second word for an order to leave everything as it is.
    pub fn ask_to_end(self) {
        // Fails where nobody is left, which is as good.
        let _ = kill_process_group(self.leader, Signal::TERM);
        self.signal_strays(Signal::TERM);
    }

    /// Ends all.
    pub fn kill(self) {
        let _ = kill_process_group(self.leader, Signal::KILL);
        self.signal_strays(Signal::KILL);
    }
}

#[cfg(target_os = "linux")]
impl Family {
    /// Signals those that have left the group.
    fn signal_strays(self, signal: Signal) {
        use rustix::process::{getpgid, kill_process};
        for process in self.descendants() {
            // A group of number 0 would be one outside of this process's container. A child has none such.
            if getpgid(Some(process)) != Ok(self.leader) {
                let _ = kill_process(process, signal);
            }
        }
    }

    /// This process's children but for the leader: those that have left the group, or will, or have lost
    /// their parents.
    fn children(self) -> Vec<Pid> {
        let own = rustix::process::getpid();
        let mut children = children_of(own);
        children.retain(|child| *child != self.leader);
        children
    }

    /// All but the leader.
    fn descendants(self) -> Vec<Pid> {
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
    lists
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(parse)
                .collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(not(target_os = "linux"))]
impl Family {
    fn signal_strays(self, _signal: Signal) {}

    fn children(self) -> Vec<Pid> {
        Vec::new()
    }
}
