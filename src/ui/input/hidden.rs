//! A terminal that does not echo what is typed, such as a key.
//!
//! Touches the terminal's echo. Guarantees that the setting is restored when the value is dropped.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// A terminal whose echo is off until this value is dropped.
pub struct HiddenEcho {
    terminal: OwnedFd,
    before: Termios,
}

impl HiddenEcho {
    /// Turns the echo of this terminal off.
    ///
    /// # Errors
    /// Fails if that is impossible.
    pub fn of(terminal: impl AsFd) -> io::Result<Self> {
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
