//! Work shared among two threads, which on two cores halves the time.
//!
//! Touches nothing itself. Guarantees that all of the work is done, even where no thread is to be had.

use std::ops::Range;
use std::thread::{self, ScopedJoinHandle};

/// From this many files on, they are shared.
const MANY_FILES: usize = 64;
/// From this many bytes on, what is done to a text takes longer than a thread takes to start.
pub const MUCH_TEXT: usize = 64 << 10;

/// Does `work` on parts of `0..count`, two at once where there is much to do. What came of them is in order.
///
/// # Errors
/// The first part's, where it fails; else the second's.
pub fn in_parallel<T: Send, E: Send>(
    count: usize,
    work: impl Fn(Range<usize>) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    if count < MANY_FILES {
        return work(0..count).map(|done| vec![done]);
    }
    let half = count / 2;
    let (first, second) = side_by_side(true, || work(0..half), || work(half..count));
    Ok(vec![first?, second?])
}

/// Returns a thread's result. A panic in the thread resumes here.
pub(crate) fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Does both; where that is much, `aside` in a thread of its own. A panic there goes on here.
pub fn side_by_side<A: Send, B>(
    is_much: bool,
    aside: impl Fn() -> A + Sync,
    here: impl FnOnce() -> B,
) -> (A, B) {
    if !is_much {
        return (aside(), here());
    }
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, &aside);
        let here = here();
        let aside = match thread {
            Ok(thread) => joined(thread),
            Err(_) => aside(),
        };
        (aside, here)
    })
}
