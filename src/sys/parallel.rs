//! Divides work between two threads, which on two cores halves the time.
//!
//! Touches nothing itself. Guarantees that all work is done, even if no thread can be started.

use std::ops::Range;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};

/// Minimum number of files for which work is divided.
const MANY_FILES: usize = 64;
/// Minimum size of a text in bytes for which starting a thread pays off.
pub const MUCH_TEXT: usize = 64 << 10;

/// Applies `work` to `0..count`, in two parallel halves if there are many items. Returns the results in order.
///
/// # Errors
/// Returns the error of the first half that fails.
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

/// A semaphore: a number of turns that threads take and give back.
#[derive(Debug)]
pub struct Turns {
    left: Mutex<usize>,
    given: Condvar,
}

impl Turns {
    /// Creates a semaphore of `count` turns.
    pub fn new(count: usize) -> Self {
        Self {
            left: Mutex::new(count),
            given: Condvar::new(),
        }
    }

    /// Waits for a turn, which is given back on drop.
    pub fn take(&self) -> Turn<'_> {
        let lock = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let left = self.given.wait_while(lock, |left| *left == 0);
        *left.unwrap_or_else(PoisonError::into_inner) -= 1;
        Turn(self)
    }
}

/// A turn held by a thread, and given back on drop.
#[derive(Debug)]
pub struct Turn<'t>(&'t Turns);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.left.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.given.notify_one();
    }
}

/// Returns a thread's result. A panic in the thread is resumed here.
pub(crate) fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs both closures, with `aside` on another thread if `is_much`. A panic there is resumed here.
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
