//! Work on many files, shared among a few threads.
//!
//! Touches nothing itself. Guarantees that all of the work is done, even where no thread is to be had.

use std::ops::Range;
use std::thread;

/// Many files are written in this many threads, which on two cores halves the time.
const THREADS: usize = 2;
/// From this many files on.
const MANY_FILES: usize = 64;

/// Does `work` on parts of `0..count`, several at once where there is much to do.
pub fn in_parallel<T: Send>(count: usize, work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    let size = if count < MANY_FILES {
        count
    } else {
        count.div_ceil(THREADS)
    };
    let mut shares: Vec<Range<usize>> = (0..count)
        .step_by(size.max(1))
        .map(|start| start..count.min(start + size))
        .collect();
    let own = shares.pop().unwrap_or_default();
    thread::scope(|scope| {
        let work = &work;
        let others: Vec<_> = shares
            .into_iter()
            .map(|share| {
                let part = share.clone();
                // Where no thread is to be had, this one does that part too.
                thread::Builder::new()
                    .spawn_scoped(scope, move || work(part))
                    .map_err(|_| share)
            })
            .collect();
        let own = work(own);
        // A panic there goes on here; nothing in `work` panics.
        let joined = others.into_iter().map(|other| match other {
            Ok(thread) => thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(share) => work(share),
        });
        joined.chain([own]).collect()
    })
}
