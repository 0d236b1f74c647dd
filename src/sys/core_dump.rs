//! Keeps what this process holds in memory, keys among it, from lying about in a file.
//!
//! Touches this process's own limits and nothing else. What it starts writes no core dumps either, unless it raises
//! its limit again.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Has this process write no core dump, whatever ends it. On Linux, other processes of the same user cannot read its
/// memory and its environment any more, and no helper that the system may have gets a dump of it. To be called
/// before anything else. Where the system refuses it, the process goes on as it is.
pub fn forbid() {
    let limit = Rlimit {
        current: Some(0),
        maximum: getrlimit(Resource::Core).maximum,
    };
    let _ = setrlimit(Resource::Core, limit);
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_dumped_from_then_on() {
        forbid();
        assert_eq!(getrlimit(Resource::Core).current, Some(0));
        #[cfg(target_os = "linux")]
        assert_eq!(
            rustix::process::dumpable_behavior().unwrap(),
            rustix::process::DumpableBehavior::NotDumpable
        );
    }
}
