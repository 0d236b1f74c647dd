//! Reads a line without echo, such as a key, at a terminal in its normal mode.
//!
//! Touches stdin, the terminal's echo, and stderr for the prompt. Guarantees that the echo setting is restored
//! on return, however the wait ends.

use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::{InputError, LineReader as _, Lines, Typed, stdin};
use crate::sys::interrupt::Interrupt;
use crate::sys::text::printable;

/// Asks for a line at the terminal without echoing it.
///
/// # Errors
/// When reading fails, the echo cannot be turned off, or a signal asks the program to end.
pub fn line(prompt: &str, interrupt: &Interrupt) -> Result<Typed, InputError> {
    let hidden = HiddenEcho::of(io::stdin())?;
    // A user can still answer even if the prompt cannot be written.
    let _ = io::stderr().write_all(printable(prompt, &[]).as_bytes());
    let typed = Lines::new(stdin(interrupt.clone())?, None).line("");
    drop(hidden);
    // The user's newline was not echoed either.
    let _ = io::stderr().write_all(b"\n");
    typed
}

/// A terminal whose echo is off until this value is dropped.
struct HiddenEcho {
    terminal: OwnedFd,
    before: Termios,
}

impl HiddenEcho {
    fn of(terminal: impl AsFd) -> io::Result<Self> {
        let terminal = terminal.as_fd().try_clone_to_owned()?;
        let before = tcgetattr(&terminal)?;
        let mut hidden = before.clone();
        hidden.local_modes -= LocalModes::ECHO | LocalModes::ECHONL;
        // Input typed ahead has been echoed, so discard it.
        tcsetattr(&terminal, OptionalActions::Flush, &hidden)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for HiddenEcho {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}
