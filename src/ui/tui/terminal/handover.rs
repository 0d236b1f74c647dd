//! Takes the terminal from the shell, and gives it back.
//!
//! Changes the modes of the terminal at standard input and output, and the process's panic hook. Guarantees that what
//! was taken is given back once, however the screen ends: also where a thread panics, which in a release build ends the
//! process behind the hook.

use std::io::{self, Write as _};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Once};

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};

/// The second screen, pastes in brackets, and keys that can be told apart (kitty's, whose stack each screen has for
/// itself); a line that a terminal takes for too long does not run into the next. A terminal that does not know one of
/// these passes over it; none is asked what it knows.
pub const TAKE: &str = "\x1b[?1049h\x1b[?7l\x1b[?2004h\x1b[>1u";
/// The wheel: that comes with the buttons, by numbers of any size.
pub const TAKE_MOUSE: &str = "\x1b[?1000h\x1b[?1006h";
/// The reverse of both, and of a frame that was broken off.
pub const GIVE_BACK: &str =
    "\x1b[?2026l\x1b[0m\x1b[<u\x1b[?1006l\x1b[?1000l\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l";

/// True while the terminal is not taken, or is lent.
static IS_GIVEN_BACK: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| Arc::new(AtomicBool::new(true)));
/// True if the process is to stop as soon as it has given the terminal back.
static STOPS: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// The hook is set once in a process.
static HOOK: Once = Once::new();

/// The terminal, while it is taken.
#[derive(Debug)]
pub struct TakenTerminal {
    has_mouse: bool,
}

impl TakenTerminal {
    /// Takes it.
    ///
    /// # Errors
    /// When standard input is no terminal, or it cannot be written to.
    pub fn take(has_mouse: bool) -> io::Result<Self> {
        HOOK.call_once(|| {
            let hook = panic::take_hook();
            panic::set_hook(Box::new(move |panic| {
                give_back();
                hook(panic);
            }));
        });
        let taken = Self { has_mouse };
        taken.take_again()?;
        Ok(taken)
    }

    /// Takes it after it was given back, or after a stop in which the shell had it.
    ///
    /// # Errors
    /// Those of [`Self::take`].
    pub fn take_again(&self) -> io::Result<()> {
        // What the shell has set meanwhile is not looked at while the modes count as raw.
        disable_raw_mode()?;
        enable_raw_mode()?;
        IS_GIVEN_BACK.store(false, Ordering::SeqCst);
        // A stop in the meantime has been made already.
        STOPS.store(false, Ordering::SeqCst);
        let mut output = io::stdout().lock();
        output.write_all(TAKE.as_bytes())?;
        if self.has_mouse {
            output.write_all(TAKE_MOUSE.as_bytes())?;
        }
        output.flush()
    }
}

impl Drop for TakenTerminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// Returns whether the terminal is the shell's or another program's.
pub fn is_given_back() -> Arc<AtomicBool> {
    Arc::clone(&IS_GIVEN_BACK)
}

/// Returns whether the process is to stop: what SIGTSTP asks for.
pub fn stops() -> Arc<AtomicBool> {
    Arc::clone(&STOPS)
}

/// Gives the terminal back, if it is taken.
pub fn give_back() {
    if !IS_GIVEN_BACK.swap(true, Ordering::SeqCst) {
        // A terminal that has gone needs nothing.
        let mut output = io::stdout().lock();
        let _ = output.write_all(GIVE_BACK.as_bytes());
        let _ = output.flush();
        let _ = disable_raw_mode();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZero;

    #[test]
    fn the_terminal_is_as_it_was() {
        let size = |length| NonZero::new(length).unwrap();
        let mut terminal = vt100::Parser::new(size(5), size(20), 0);
        terminal.process(b"$ chat\r\n");
        let before = terminal.screen().contents_formatted();
        terminal.process(TAKE.as_bytes());
        terminal.process(TAKE_MOUSE.as_bytes());
        let screen = terminal.screen();
        assert!(screen.alternate_screen() && screen.bracketed_paste());
        assert_eq!(
            screen.mouse_protocol_mode(),
            vt100::MouseProtocolMode::PressRelease
        );
        // A frame that was broken off.
        terminal.process(b"\x1b[?2026h\x1b[?25l\x1b[1;31mframe");
        terminal.process(GIVE_BACK.as_bytes());
        let screen = terminal.screen();
        assert!(!screen.alternate_screen() && !screen.bracketed_paste() && !screen.hide_cursor());
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        assert_eq!(screen.contents_formatted(), before);
    }
}
