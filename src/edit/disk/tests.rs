//! Fault injection for tests. Faults affect only the test's own thread.

use std::cell::Cell;

use rustix::io::Errno;

/// A fault injected at one of the calls, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedFault {
    /// Fails only that call, with this error.
    Once(usize, Errno),
    /// Fails that call and all later ones, with this error.
    From(usize, Errno),
}

thread_local! {
    static FAULT: Cell<Option<InjectedFault>> = const { Cell::new(None) };
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

/// Runs `work` with an injected fault, and returns its result and whether the fault was triggered.
pub fn with<T>(fault: InjectedFault, work: impl FnOnce() -> T) -> (T, bool) {
    FAULT.set(Some(fault));
    CALLS.set(0);
    let done = work();
    FAULT.set(None);
    let (InjectedFault::Once(at, _) | InjectedFault::From(at, _)) = fault;
    (done, CALLS.get() > at)
}

pub(super) fn point() -> Result<(), Errno> {
    let call = CALLS.get();
    CALLS.set(call + 1);
    match FAULT.get() {
        Some(InjectedFault::Once(at, errno)) if call == at => Err(errno),
        Some(InjectedFault::From(at, errno)) if call >= at => Err(errno),
        _ => Ok(()),
    }
}
