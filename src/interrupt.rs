//! The signals that ask a run to end, as something every wait can watch.
//!
//! Touches nothing but the process's signal handlers, and those only in [`Interrupt::install`], which `main` calls.
//! Guarantees that whoever waits through [`Interrupt::poll`] or [`Interrupt::sleep`] wakes at once when a signal
//! comes, and that a signal that came earlier is never missed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGTERM};

/// A signal that ends a run in an orderly way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT, as Ctrl-C sends it.
    Int,
    /// SIGTERM.
    Term,
    /// SIGHUP: the terminal went away.
    Hup,
}

impl Signal {
    const ALL: [Self; 3] = [Self::Int, Self::Term, Self::Hup];

    /// The signal's number, the same on every Unix.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Int => 2,
            Self::Term => 15,
            Self::Hup => 1,
        }
    }

    /// The signal's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Int => "SIGINT",
            Self::Term => "SIGTERM",
            Self::Hup => "SIGHUP",
        }
    }

    fn raw(self) -> i32 {
        match self {
            Self::Int => SIGINT,
            Self::Term => SIGTERM,
            Self::Hup => SIGHUP,
        }
    }
}

/// A signal asked the run to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("interrupted by {}", .signal.name())]
pub struct Interrupted {
    /// Which signal it was; the latest, where there were several.
    pub signal: Signal,
}

/// The signals that were ignored when the process began, a bit each; none where that cannot be told.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

impl From<Interrupted> for io::Error {
    /// Of kind [`io::ErrorKind::Interrupted`]; the signal can be taken out of it again.
    fn from(interrupted: Interrupted) -> Self {
        Self::new(io::ErrorKind::Interrupted, interrupted)
    }
}

/// What ended a wait in [`Interrupt::poll`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// A descriptor is ready, or at its end.
    Ready,
    /// The time passed.
    TimedOut,
}

/// Tells whether a signal has come. Cloning is cheap; all clones see the same signal.
#[derive(Debug, Clone)]
pub struct Interrupt {
    signal: Arc<AtomicUsize>,
    /// Readable from the first signal on; never drained, so that every later wait returns at once.
    wake: Arc<UnixStream>,
    /// Kept open so that `wake` does not read as closed.
    sender: Arc<UnixStream>,
}

impl Interrupt {
    /// Takes over SIGINT, SIGTERM and SIGHUP. To be called once, by `main`.
    ///
    /// # Errors
    /// When the system refuses the handlers or the socket pair behind them.
    pub fn install() -> io::Result<Self> {
        let interrupt = Self::never()?;
        let ignored = ignored_signals();
        for signal in Signal::ALL {
            // Whoever started the program with a signal ignored, as `nohup` does, wants it so.
            if ignored & (1 << (signal.number() - 1)) != 0 {
                continue;
            }
            // The flag first: whoever is woken must find it set.
            let value = usize::from(signal.number());
            signal_hook::flag::register_usize(signal.raw(), Arc::clone(&interrupt.signal), value)?;
            let sender = interrupt.sender.try_clone()?;
            signal_hook::low_level::pipe::register(signal.raw(), sender)?;
        }
        Ok(interrupt)
    }

    /// An interrupt that no signal is tied to.
    ///
    /// # Errors
    /// When no socket pair can be made.
    pub fn never() -> io::Result<Self> {
        let (wake, sender) = UnixStream::pair()?;
        let signal = Arc::new(AtomicUsize::new(0));
        Ok(Self {
            signal,
            wake: Arc::new(wake),
            sender: Arc::new(sender),
        })
    }

    /// Whether a signal has come.
    ///
    /// # Errors
    /// [`Interrupted`] when one has.
    pub fn check(&self) -> Result<(), Interrupted> {
        let number = self.signal.load(Ordering::SeqCst);
        match Signal::ALL
            .into_iter()
            .find(|signal| usize::from(signal.number()) == number)
        {
            Some(signal) => Err(Interrupted { signal }),
            None => Ok(()),
        }
    }

    /// Waits for `duration`, or for a signal.
    ///
    /// # Errors
    /// [`Interrupted`] when a signal came before the time had passed.
    pub fn sleep(&self, duration: Duration) -> Result<(), Interrupted> {
        // A poll that fails has nothing to say that check() does not.
        let _ = wait(
            &mut [PollFd::new(&*self.wake, PollFlags::IN)],
            Some(duration),
        );
        self.check()
    }

    /// Waits until one of `fds` is ready for `events`, the time has passed (`None`: no limit), or a signal
    /// comes.
    ///
    /// # Errors
    /// The system's error, or one of kind [`io::ErrorKind::Interrupted`] that carries [`Interrupted`].
    pub fn poll(
        &self,
        fds: &[BorrowedFd<'_>],
        events: PollFlags,
        timeout: Option<Duration>,
    ) -> io::Result<Woken> {
        let watched = fds
            .iter()
            .map(|fd| PollFd::from_borrowed_fd(*fd, events))
            .chain([PollFd::new(&*self.wake, PollFlags::IN)]);
        let mut watched: Vec<_> = watched.collect();
        wait(&mut watched, timeout)?;
        self.check()?;
        let ready = watched[..fds.len()]
            .iter()
            .any(|fd| !fd.revents().is_empty());
        Ok(if ready { Woken::Ready } else { Woken::TimedOut })
    }
}

impl AsFd for Interrupt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

/// Waits until `fd` can be read, or the time has passed. Signals do not end it: this is for work
/// that is done because one came.
#[must_use]
pub fn is_readable_within(fd: BorrowedFd<'_>, limit: Duration) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    wait(&mut fds, Some(limit)).is_ok() && !fds[0].revents().is_empty()
}

/// `poll(2)` that takes its own interruption by a signal for a wake-up.
fn wait(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<()> {
    // A time too long for the system's clock type is no limit.
    let timeout = timeout.and_then(|limit| Timespec::try_from(limit).ok());
    match poll(fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_without_a_signal_ends_with_its_time() {
        let interrupt = Interrupt::never().unwrap();
        assert_eq!(interrupt.sleep(Duration::from_millis(1)), Ok(()));
        assert_eq!(interrupt.check(), Ok(()));
    }

    #[test]
    fn a_signal_that_came_earlier_ends_every_later_wait() {
        let interrupt = Interrupt::never().unwrap();
        interrupt.signal.store(15, Ordering::SeqCst);
        io::Write::write_all(&mut &*interrupt.sender, b"x").unwrap();
        for _ in 0..2 {
            let woken = interrupt.sleep(Duration::from_secs(3600));
            assert_eq!(
                woken,
                Err(Interrupted {
                    signal: Signal::Term
                })
            );
        }
    }
}
