//! A line that nobody sees being typed: a key, at a terminal that is not the program's own.
//!
//! Touches stdin, the terminal's echo, and stderr for the prompt. Guarantees that the echo is as it was when this
//! returns, whatever ends the wait.

use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::{InputError, LineReader as _, Lines, Typed, stdin};
use crate::sys::interrupt::Interrupt;
use crate::sys::text::printable;

/// Asks for a line at the terminal, without showing what is typed.
///
/// # Errors
/// When nothing can be read, the terminal does not stop showing it, or a signal asked the program to end.
pub fn line(prompt: &str, interrupt: &Interrupt) -> Result<Typed, InputError> {
    let hidden = HiddenEcho::of(io::stdin())?;
    // Who cannot read the prompt can still answer.
    let _ = io::stderr().write_all(printable(prompt, &[]).as_bytes());
    let typed = Lines::new(stdin(interrupt.clone())?, None).line(prompt);
    drop(hidden);
    // The end of the line was not shown either.
    let _ = io::stderr().write_all(b"\n");
    typed
}

/// A terminal that does not show what is typed, until this is dropped.
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
        // What was typed ahead was seen, and is forgotten.
        tcsetattr(&terminal, OptionalActions::Flush, &hidden)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for HiddenEcho {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}
