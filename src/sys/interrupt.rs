//! The signals that ask a run to end, in a form that every wait can watch.
//!
//! Touches only the process's signal handlers, and those only in [`Interrupt::install`], which `main` calls.
//! Guarantees that a signal immediately ends every wait in [`Interrupt::poll`] or [`Interrupt::sleep`], and that an
//! earlier signal is never missed, except for the terminal's signals while it is [lent](Interrupt::lend). A SIGINT
//! can be cleared with [`Interrupt::take`]; SIGTERM and SIGHUP are permanent.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, io};

use miette::Diagnostic;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use signal_hook::SigId;
use signal_hook::consts::signal::{SIGINT, SIGQUIT, SIGXFSZ};
use signal_hook::low_level::{pipe, signal_name, unregister};

use crate::sys::files::{Links, MIB, read};

/// A signal that ends a run in an orderly way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT, sent by Ctrl-C.
    Int = 2,
    /// SIGTERM, sent by `kill`.
    Term = 15,
    /// SIGHUP, sent when the terminal is closed.
    Hup = 1,
}

impl Signal {
    pub(crate) const ALL: [Self; 3] = [Self::Int, Self::Term, Self::Hup];

    /// Returns the signal's number, which is the same on every Unix.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Returns the signal's name.
    pub fn name(self) -> &'static str {
        signal_name(self.number().into()).unwrap_or_default()
    }

    /// Returns whether the signal is permanent, that is, cannot be cleared.
    fn lasts(self) -> bool {
        self != Self::Int
    }
}

/// Error for a run that a signal asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("interrupted by {}", .signal.name())]
pub struct Interrupted {
    /// The signal. If several arrived, a permanent one takes precedence, and among those the latest.
    pub signal: Signal,
}

impl Interrupted {
    /// An interruption by Ctrl-C.
    pub const CTRL_C: Self = Self {
        signal: Signal::Int,
    };
}

impl Diagnostic for Interrupted {
    fn code(&self) -> Option<Box<dyn fmt::Display + '_>> {
        Some(Box::new(self.signal.name()))
    }

    fn help(&self) -> Option<Box<dyn fmt::Display + '_>> {
        Some(Box::new("run again"))
    }
}

/// Returns a bit mask of the signals that were ignored at the start of the process; 0 if unknown.
fn ignored_signals() -> u64 {
    let content = read(Path::new("/proc/self/status"), Links::Refused, MIB).unwrap_or_default();
    let status = String::from_utf8_lossy(&content);
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    u64::from_str_radix(mask.unwrap_or_default().trim(), 16).unwrap_or(0)
}

impl From<Interrupted> for io::Error {
    /// Converts to kind [`io::ErrorKind::Interrupted`]; the signal can be extracted again.
    fn from(interrupted: Interrupted) -> Self {
        Self::new(io::ErrorKind::Interrupted, interrupted)
    }
}

/// A view of the signals that have arrived. Cloning is cheap, and all clones see the same signals.
#[derive(Debug, Clone)]
pub struct Interrupt {
    /// Number of the latest SIGTERM or SIGHUP, or 0. Never reset to 0.
    lasting: Arc<AtomicUsize>,
    /// Socket that receives a byte for each signal, so that from the first one on every wait returns immediately. The
    /// byte is also the only record of a SIGINT, so that the record and the wake-up can never disagree.
    wake: Arc<UnixStream>,
    /// Other end of the socket pair, to which the handlers write.
    sender: Arc<UnixStream>,
    /// Handler of SIGINT, if installed.
    sigint: Arc<Mutex<Option<SigId>>>,
    /// True if SIGQUIT ends the process, as it does without a handler.
    is_ended_by_quit: Arc<AtomicBool>,
    /// Interrupt whose signals count for this one, too.
    parent: Option<Box<Interrupt>>,
}

impl Interrupt {
    /// Handles SIGINT, SIGTERM and SIGHUP, and SIGQUIT while the terminal is lent, and makes SIGXFSZ harmless. `main`
    /// must call this exactly once.
    ///
    /// # Errors
    /// Fails if the handlers or their socket pair cannot be created.
    pub fn install() -> io::Result<Self> {
        let interrupt = Self::never()?;
        let ignored = ignored_signals();
        if ignored & (1 << (SIGXFSZ - 1)) == 0 {
            // A write beyond the user's file size limit must fail with an error instead of ending the process.
            signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
        }
        if ignored & (1 << (SIGQUIT - 1)) == 0 {
            let is_ended = Arc::clone(&interrupt.is_ended_by_quit);
            signal_hook::flag::register_conditional_default(SIGQUIT, is_ended)?;
        }
        for signal in Signal::ALL {
            // A signal that was ignored at the start, as under `nohup`, stays ignored.
            if ignored & (1 << (signal.number() - 1)) != 0 {
                continue;
            }
            let number = signal.number().into();
            if signal.lasts() {
                // The flag comes first: a wait that the handler ends must find it set.
                let flag = Arc::clone(&interrupt.lasting);
                signal_hook::flag::register_usize(number, flag, signal.number().into())?;
            }
            let handler = pipe::register(number, interrupt.sender.try_clone()?)?;
            if signal == Signal::Int {
                *interrupt.sigint_handler() = Some(handler);
            }
        }
        Ok(interrupt)
    }

    fn sigint_handler(&self) -> MutexGuard<'_, Option<SigId>> {
        self.sigint.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` while another program uses the terminal. Ctrl-C and Ctrl-\ are then meant for that program, so
    /// SIGINT and SIGQUIT are ignored until `work` returns.
    pub fn lend<T>(&self, work: impl FnOnce() -> T) -> T {
        if let Some(parent) = &self.parent {
            return parent.lend(work);
        }
        let mut handler = self.sigint_handler();
        let sender = self.sender.try_clone();
        self.is_ended_by_quit.store(false, Ordering::SeqCst);
        // With the handler unregistered, the signal is ignored.
        let is_off = sender.is_ok() && handler.is_some_and(unregister);
        let done = work();
        if let (true, Ok(sender)) = (is_off, sender) {
            *handler = pipe::register(SIGINT, sender).ok();
        }
        self.is_ended_by_quit.store(true, Ordering::SeqCst);
        done
    }

    /// Creates an interrupt that no signal triggers.
    ///
    /// # Errors
    /// Fails if the socket pair cannot be created.
    pub fn never() -> io::Result<Self> {
        let (wake, sender) = UnixStream::pair()?;
        Ok(Self {
            lasting: Arc::new(AtomicUsize::new(0)),
            wake: Arc::new(wake),
            sender: Arc::new(sender),
            sigint: Arc::default(),
            is_ended_by_quit: Arc::new(AtomicBool::new(true)),
            parent: None,
        })
    }

    /// Creates an interrupt that this one's signals trigger, and that can be raised and cleared without this one.
    ///
    /// # Errors
    /// Fails if the socket pair cannot be created.
    pub fn child(&self) -> io::Result<Self> {
        Ok(Self {
            lasting: Arc::clone(&self.lasting),
            parent: Some(Box::new(self.clone())),
            ..Self::never()?
        })
    }

    /// Returns the descriptors that are readable once a signal has arrived.
    fn wakes(&self) -> impl Iterator<Item = PollFd<'_>> {
        std::iter::successors(Some(self), |interrupt| interrupt.parent.as_deref())
            .map(|interrupt| PollFd::new(&*interrupt.wake, PollFlags::IN))
    }

    /// Checks whether a signal has arrived.
    ///
    /// # Errors
    /// Returns `Interrupted` if one has.
    pub fn check(&self) -> Result<(), Interrupted> {
        // The order matters: the flag of a permanent signal is set before its byte is written.
        let mut wakes: Vec<_> = self.wakes().collect();
        let came = wait(&mut wakes, Some(Duration::ZERO)).is_ok()
            && wakes.iter().any(|wake| !wake.revents().is_empty());
        match self.lasting() {
            Some(signal) => Err(Interrupted { signal }),
            None if came => Err(Interrupted::CTRL_C),
            None => Ok(()),
        }
    }

    /// Clears the SIGINTs that have arrived and returns their number, so that an interactive program can
    /// stop a step and continue. Clears nothing and returns 0 if a permanent signal has arrived.
    pub fn take(&self) -> u32 {
        if self.lasting().is_some() {
            return 0;
        }
        let times = self.drain();
        if self.lasting().is_some() {
            // A permanent signal arrived in between, and its byte may have been cleared. If so, the socket is empty and
            // accepts another one.
            self.raise();
            return 0;
        }
        times
    }

    /// Asks for a stop like Ctrl-C, for callers that cannot send signals: the screen, or a thread that drives an agent.
    /// [`take`](Self::take) clears it as well.
    pub fn raise(&self) {
        // A full socket already holds a wake-up.
        let _ = send(&*self.sender, b"x", SendFlags::DONTWAIT);
    }

    /// Returns the permanent signal that has arrived, if any.
    pub fn lasting(&self) -> Option<Signal> {
        let number = self.lasting.load(Ordering::SeqCst);
        let is_it = |signal: &Signal| usize::from(signal.number()) == number;
        Signal::ALL.into_iter().find(is_it)
    }

    /// Reads the bytes that the handlers wrote, without blocking, and returns their number.
    fn drain(&self) -> u32 {
        let mut bytes = [0u8; 64];
        let mut times = 0u32;
        loop {
            match recv(&*self.wake, &mut bytes, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return times,
                Ok((read, _)) => {
                    times = times.saturating_add(u32::try_from(read).unwrap_or(u32::MAX));
                }
                Err(Errno::INTR) => {}
                Err(_) => return times,
            }
        }
    }

    /// Waits for `duration` or until a signal arrives.
    ///
    /// # Errors
    /// Returns `Interrupted` if a signal arrived before the time had passed.
    pub fn sleep(&self, duration: Duration) -> Result<(), Interrupted> {
        // A failed poll needs no handling: `check` below decides.
        let _ = wait(&mut self.wakes().collect::<Vec<_>>(), Some(duration));
        self.check()
    }

    /// Waits until one of `fds` is ready for `events` or closed, the timeout has passed (`None` means no limit), or a
    /// signal arrives. Returns whether one of `fds` is ready.
    ///
    /// # Errors
    /// Fails if `poll(2)` does, or with an [`io::ErrorKind::Interrupted`] that carries `Interrupted`.
    pub fn poll(
        &self,
        fds: &[BorrowedFd<'_>],
        events: PollFlags,
        timeout: Option<Duration>,
    ) -> io::Result<bool> {
        let given = fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, events));
        let mut watched: Vec<_> = given.chain(self.wakes()).collect();
        wait(&mut watched, timeout)?;
        self.check()?;
        let mut ready = watched.iter().take(fds.len());
        Ok(ready.any(|fd| !fd.revents().is_empty()))
    }
}

#[cfg(test)]
impl Interrupt {
    /// Returns an interrupt that no signal triggers, and that lives as long as the tests.
    pub(crate) fn leaked() -> &'static Self {
        Box::leak(Box::new(Self::never().unwrap()))
    }

    /// Simulates the arrival of a signal, as its handlers would record it.
    pub(crate) fn simulate(&self, signal: Signal) {
        if signal.lasts() {
            let number = usize::from(signal.number());
            self.lasting.store(number, Ordering::SeqCst);
        }
        send(&*self.sender, b"x", SendFlags::DONTWAIT).unwrap();
    }
}

impl AsFd for Interrupt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

/// Waits until `fd` is readable or the time limit has passed. Signals do not end the wait: it is used to clean
/// up after one.
pub fn is_readable_within(fd: BorrowedFd<'_>, limit: Duration) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    wait(&mut fds, Some(limit)).is_ok() && !fds[0].revents().is_empty()
}

/// Calls `poll(2)`, again after each signal: those that are to end a wait make a descriptor ready.
pub(crate) fn wait(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<()> {
    // A timeout that the system's types cannot represent means no limit.
    let end = timeout.and_then(|limit| Instant::now().checked_add(limit));
    loop {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(fds, left.as_ref()) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_os = "linux")]
    use std::thread;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_signal_that_asks_for_no_stop_does_not_end_a_wait() {
        let resized = signal_hook::consts::SIGWINCH;
        signal_hook::flag::register(resized, Arc::default()).unwrap();
        let (waiting, limit) = (rustix::thread::gettid(), Duration::from_millis(100));
        let is_over = AtomicBool::new(false);
        let began = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    // The system gives a signal to the thread that is named, if it takes any.
                    rustix::process::kill_process(waiting, rustix::process::Signal::WINCH).unwrap();
                    thread::sleep(Duration::from_millis(1));
                }
            });
            let slept = Interrupt::leaked().sleep(limit);
            is_over.store(true, Ordering::SeqCst);
            slept.unwrap();
        });
        assert!(began.elapsed() >= limit);
    }

    #[test]
    fn a_signal_counts_for_children_and_what_is_raised_there_does_not_count_outside() {
        for signal in Signal::ALL {
            let parent = Interrupt::never().unwrap();
            let child = parent.child().unwrap();
            child.raise();
            assert!(child.check().is_err() && parent.check().is_ok());
            assert_eq!((child.take(), child.check()), (1, Ok(())));
            parent.simulate(signal);
            assert_eq!(child.check(), Err(Interrupted { signal }));
            assert_eq!(child.sleep(Duration::MAX), Err(Interrupted { signal }));
            let _ = child.take();
            assert_eq!(child.check(), Err(Interrupted { signal }));
        }
    }

    #[test]
    fn a_wait_without_a_signal_ends_with_its_time() {
        let interrupt = Interrupt::never().unwrap();
        assert_eq!(interrupt.sleep(Duration::from_millis(1)), Ok(()));
        assert_eq!(interrupt.check(), Ok(()));
    }

    #[test]
    fn a_signal_that_came_earlier_ends_every_later_wait() {
        for came in Signal::ALL {
            let interrupt = Interrupt::never().unwrap();
            interrupt.simulate(came);
            for _ in 0..2 {
                let woken = interrupt.sleep(Duration::from_hours(1));
                assert_eq!(woken, Err(Interrupted { signal: came }));
                assert_eq!(interrupt.check(), Err(Interrupted { signal: came }));
            }
        }
    }

    #[test]
    fn a_sigint_can_be_taken_and_the_next_one_wakes_again() {
        let interrupt = Interrupt::never().unwrap();
        assert_eq!(interrupt.take(), 0);
        for times in [1, 3, 100] {
            for _ in 0..times {
                interrupt.simulate(Signal::Int);
            }
            let woken = interrupt.clone().sleep(Duration::from_hours(1));
            let signal = Signal::Int;
            assert_eq!(woken, Err(Interrupted { signal }));
            assert_eq!(interrupt.take(), times);
            assert_eq!(interrupt.take(), 0);
            assert_eq!(interrupt.check(), Ok(()));
            assert_eq!(interrupt.sleep(Duration::from_millis(1)), Ok(()));
        }
    }

    #[test]
    fn a_lasting_stop_cannot_be_cleared() {
        for came in [
            &[Signal::Term][..],
            &[Signal::Hup],
            &[Signal::Term, Signal::Int],
            &[Signal::Int, Signal::Term],
            &[Signal::Int, Signal::Hup, Signal::Int],
        ] {
            let interrupt = Interrupt::never().unwrap();
            for one in came {
                interrupt.simulate(*one);
            }
            let lasting = came.iter().copied().find(|signal| signal.lasts()).unwrap();
            for _ in 0..2 {
                assert_eq!(interrupt.take(), 0, "{came:?}");
                let woken = interrupt.sleep(Duration::from_hours(1));
                assert_eq!(woken, Err(Interrupted { signal: lasting }), "{came:?}");
            }
        }
    }

    #[test]
    fn a_lasting_stop_that_is_still_pending_cannot_be_cleared_either() {
        // The signal's handler has set the flag, but not yet written its byte.
        let interrupt = Interrupt::never().unwrap();
        interrupt.simulate(Signal::Int);
        interrupt.lasting.store(15, Ordering::SeqCst);
        assert_eq!(interrupt.take(), 0);
        let signal = Signal::Term;
        assert_eq!(interrupt.check(), Err(Interrupted { signal }));
    }

    #[test]
    fn signals_and_taking_race_without_a_loss() {
        const SENT: u32 = 2000;
        let interrupt = Interrupt::never().unwrap();
        let taken = std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..SENT {
                    // A full socket would lose some; the kernel's holds fewer than are sent here.
                    while send(&*interrupt.sender, b"x", SendFlags::DONTWAIT).is_err() {
                        std::thread::yield_now();
                    }
                }
            });
            let mut taken = 0;
            while taken < SENT {
                if interrupt.sleep(Duration::from_mins(1)).is_err() {
                    taken += interrupt.take();
                }
            }
            taken
        });
        assert_eq!(taken, SENT);
        assert_eq!(interrupt.check(), Ok(()));
    }
}
