//! Work on many files, shared among a few threads.
//!
//! Touches nothing itself. Guarantees that all of the work is done, even where no thread is to be had.

use std::ops::Range;
use std::panic::resume_unwind;
use std::thread;

/// From this many files on, a second thread writes half of them; on two cores that halves the time.
const MANY_FILES: usize = 64;

/// Does `work` on parts of `0..count`, two at once where there is much to do. What came of them is in order.
pub fn in_parallel<T: Send, E: Send>(
    count: usize,
    work: impl Fn(Range<usize>) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    if count < MANY_FILES {
        return work(0..count).map(|done| vec![done]);
    }
    let half = count / 2;
    let (first, second) = thread::scope(|scope| {
        let other = thread::Builder::new().spawn_scoped(scope, || work(0..half));
        let own = work(half..count);
        let other = match other {
            // A panic there goes on here; nothing in `work` panics.
            Ok(other) => other.join().unwrap_or_else(|panic| resume_unwind(panic)),
            // Where no thread is to be had, this one does that part too.
            Err(_) => work(0..half),
        };
        (other, own)
    });
    Ok(vec![first?, second?])
}
