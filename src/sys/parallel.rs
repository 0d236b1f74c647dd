//! Work shared among two threads, which on two cores halves the time.
//!
//! Touches nothing itself. Guarantees that all of the work is done, even where no thread is to be had.

use std::ops::Range;
use std::thread;

/// From this many files on, they are shared.
const MANY_FILES: usize = 64;

/// Does `work` on `0..count`, in two parts at once where there is much to do.
pub fn in_parallel<T: Send>(count: usize, work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    if count < MANY_FILES {
        return vec![work(0..count)];
    }
    let half = count.div_ceil(2);
    let (first, second) = side_by_side(|| work(0..half), || work(half..count));
    vec![first, second]
}

/// Does both, `aside` in a thread of its own. A panic there goes on here.
pub fn side_by_side<A: Send, B>(aside: impl Fn() -> A + Sync, here: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, &aside);
        let here = here();
        let aside = match thread {
            Ok(thread) => thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => aside(),
        };
        (aside, here)
    })
}
