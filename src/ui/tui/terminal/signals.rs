//! The signals that tell of the terminal: that it has another size, and that the shell has given it back.
//!
//! Takes over SIGCONT and SIGWINCH. Guarantees that a signal that came earlier ends the next wait.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::net::{RecvFlags, recv};
use signal_hook::consts::signal::{SIGCONT, SIGWINCH};

/// The signals that tell of the terminal.
#[derive(Debug)]
pub struct Signals {
    /// Can be read when one has come.
    came: UnixStream,
    /// Whether the process goes on after a stop, in which the shell had the terminal.
    continued: Arc<AtomicBool>,
    registered: Vec<signal_hook::SigId>,
}

impl Signals {
    /// Listens to them.
    ///
    /// # Errors
    /// When no socket pair can be made, or the system refuses the handlers.
    pub fn new() -> io::Result<Self> {
        let (came, handlers) = UnixStream::pair()?;
        let continued = Arc::<AtomicBool>::default();
        let mut registered = Vec::new();
        // The flag first: a wait that it ends must find it set.
        registered.push(signal_hook::flag::register(
            SIGCONT,
            Arc::clone(&continued),
        )?);
        for signal in [SIGCONT, SIGWINCH] {
            let handler = handlers.try_clone()?;
            registered.push(signal_hook::low_level::pipe::register(signal, handler)?);
        }
        Ok(Self {
            came,
            continued,
            registered,
        })
    }

    /// Takes what has come; whether the process has gone on after a stop.
    #[must_use]
    pub fn have_continued(&self) -> bool {
        let mut bytes = [0u8; 64];
        let mut has_more = || recv(&self.came, &mut bytes, RecvFlags::DONTWAIT);
        while matches!(has_more(), Ok((1.., _))) {}
        self.continued.swap(false, Ordering::SeqCst)
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.came.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}
