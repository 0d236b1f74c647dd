//! Handles the signals about the terminal: its size has changed, the shell wants it, or the shell has returned
//! it.
//!
//! Handles SIGCONT, SIGTSTP and SIGWINCH. Guarantees that an earlier signal ends the next wait, and that the
//! process is stopped only if there is a shell to continue it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::unistd::{getpgid, getppid, getsid};
use rustix::net::{RecvFlags, recv};
use signal_hook::consts::signal::{SIGCONT, SIGTSTP, SIGWINCH};
use signal_hook::flag;
use signal_hook::low_level::emulate_default_handler;

/// The signal handlers.
#[derive(Debug)]
pub struct Signals {
    /// Readable when a signal has arrived.
    came: UnixStream,
    /// True if the process has continued after a stop, during which the shell had the terminal.
    continued: Arc<AtomicBool>,
    /// True if the process is to stop.
    stops: Arc<AtomicBool>,
    registered: Vec<signal_hook::SigId>,
}

impl Signals {
    /// Installs the handlers. While the terminal is given back, SIGTSTP has its default effect; otherwise it
    /// sets `stops`.
    ///
    /// # Errors
    /// Fails if the socket pair cannot be created, or the handlers cannot be installed.
    pub fn new(is_given_back: Arc<AtomicBool>, stops: Arc<AtomicBool>) -> io::Result<Self> {
        let (came, handlers) = UnixStream::pair()?;
        let continued = Arc::<AtomicBool>::default();
        // Register the flags first: a wait that a signal ends must find them set.
        let mut registered = vec![flag::register(SIGCONT, Arc::clone(&continued))?];
        if has_shell() {
            registered.push(flag::register_conditional_default(SIGTSTP, is_given_back)?);
            registered.push(flag::register(SIGTSTP, Arc::clone(&stops))?);
        }
        for signal in [SIGCONT, SIGTSTP, SIGWINCH] {
            let handler = handlers.try_clone()?;
            registered.push(signal_hook::low_level::pipe::register(signal, handler)?);
        }
        Ok(Self {
            came,
            continued,
            stops,
            registered,
        })
    }

    /// Gives the terminal back through `give_back` and stops the process until it is continued, if a stop was
    /// requested. Returns whether it was.
    pub fn stop(&self, give_back: impl FnOnce()) -> bool {
        let is_asked = self.stops.swap(false, Ordering::SeqCst);
        if is_asked {
            give_back();
            // If it cannot be stopped, it simply continues.
            let _ = emulate_default_handler(SIGTSTP);
        }
        is_asked
    }

    /// Clears pending signals. Returns whether the process has continued after a stop.
    pub fn have_continued(&self) -> bool {
        let mut bytes = [0u8; 64];
        let mut has_more = || recv(&self.came, &mut bytes, RecvFlags::DONTWAIT);
        while matches!(has_more(), Ok((1.., _))) {}
        self.continued.swap(false, Ordering::SeqCst)
    }
}

/// Returns whether the parent runs this process as a job, in the same session but another group: only a shell
/// does.
///
/// In a container, the session and group may be outside of it and have the number 0, which rustix cannot
/// represent. A parent outside has the number 0 as well; as an argument that means this process, which is not
/// its own shell.
fn has_shell() -> bool {
    let parent = getppid();
    getsid(Some(parent)) == getsid(None) && getpgid(Some(parent)) != getpgid(None)
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
