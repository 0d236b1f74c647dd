//! Keeps the memory of this process, which contains keys, out of core dumps.
//!
//! Touches only the limits of this process. Its child processes inherit them, so they write no core dumps either unless
//! they raise their limit.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Disables core dumps of this process. On Linux, this also prevents other processes of the same user from reading its
/// memory and environment, and crash handlers from receiving a dump. Call this before anything else. If the kernel
/// refuses, the process continues unprotected.
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
