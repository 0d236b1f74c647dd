//! Raises the limit of open files.
//!
//! Touches only the soft limit of this process, which its child processes inherit.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The number of files that a run may have open, which is the default on most systems.
const WANTED: u64 = 1024;

/// Raises the soft limit of open files, as far as the hard limit allows. Leaves a higher limit alone, and one that the
/// kernel refuses to change.
pub fn allow() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(WANTED, |most| most.min(WANTED));
    if limit.current.is_some_and(|current| current < wanted) {
        let current = Some(wanted);
        let _ = setrlimit(Resource::Nofile, Rlimit { current, ..limit });
    }
}
