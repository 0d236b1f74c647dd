//! The signals that tell of the terminal: that it has another size, that the shell wants it, and has given it back.
//!
//! Takes over SIGCONT, SIGTSTP and SIGWINCH. Guarantees that a signal that came earlier ends the next wait, and that the
//! process is stopped only where a shell is there to have it go on.

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

/// The signals that tell of the terminal.
#[derive(Debug)]
pub struct Signals {
    /// Can be read when one has come.
    came: UnixStream,
    /// True if the process goes on after a stop, in which the shell had the terminal.
    continued: Arc<AtomicBool>,
    /// True if the process is to stop.
    stops: Arc<AtomicBool>,
    registered: Vec<signal_hook::SigId>,
}

impl Signals {
    /// Listens to them. Where the terminal is given back, a stop is nobody's business here; else `stops` is set.
    ///
    /// # Errors
    /// When no socket pair can be made, or the system refuses the handlers.
    pub fn new(is_given_back: Arc<AtomicBool>, stops: Arc<AtomicBool>) -> io::Result<Self> {
        let (came, handlers) = UnixStream::pair()?;
        let continued = Arc::<AtomicBool>::default();
        // The flags first: a wait that they end must find them set.
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

    /// Stops the process, if that was asked for, after `give_back`, until it is to go on; whether it was.
    pub fn stop(&self, give_back: impl FnOnce()) -> bool {
        let is_asked = self.stops.swap(false, Ordering::SeqCst);
        if is_asked {
            give_back();
            // Where it cannot be stopped, it goes on at once.
            let _ = emulate_default_handler(SIGTSTP);
        }
        is_asked
    }

    /// Takes what has come; whether the process has gone on after a stop.
    pub fn have_continued(&self) -> bool {
        let mut bytes = [0u8; 64];
        let mut has_more = || recv(&self.came, &mut bytes, RecvFlags::DONTWAIT);
        while matches!(has_more(), Ok((1.., _))) {}
        self.continued.swap(false, Ordering::SeqCst)
    }
}

/// Returns whether the parent has this process as a job, in the same session and another group: only a shell does.
///
/// In a container, the session and the group can be ones outside of it, which have the number 0: the types of rustix
/// have none such. A parent outside has it, too; as an argument it means this process, which is no shell of its own.
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
