//! Takes over the terminal from the shell, and restores it.
//!
//! Changes the modes of the terminal at standard input and output, and the process's panic hook. Guarantees
//! that the terminal is restored exactly once however the screen ends, even if a thread panics, which in a
//! release build ends the process after the hook.

use std::io::{self, Write as _};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Once};

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};

/// The sequences that switch to the alternate screen without line wrapping, with bracketed paste, focus reports, and
/// unambiguous keys (kitty's protocol, whose stack is per screen). Terminals ignore sequences they do not know, so none
/// is queried.
pub const TAKE: &str = "\x1b[?1049h\x1b[?7l\x1b[?2004h\x1b[?1004h\x1b[>1u";
/// The sequences that enable mouse reporting for the wheel, with SGR coordinates of any size.
pub const TAKE_MOUSE: &str = "\x1b[?1000h\x1b[?1006h";
/// The sequences that reverse both, and end a frame that was interrupted.
pub const GIVE_BACK: &str = "\x1b[?2026l\x1b[0m\x1b[<u\x1b[?1006l\x1b[?1000l\x1b[?1004l\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l";

/// True while the terminal is not taken, or is lent.
pub static IS_GIVEN_BACK: LazyLock<Arc<AtomicBool>> =
    LazyLock::new(|| Arc::new(AtomicBool::new(true)));
/// True if the process is to stop as soon as it has restored the terminal.
pub static STOPS: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// The guard that lets the hook be set only once per process.
static HOOK: Once = Once::new();

/// A terminal that has been taken over.
#[derive(Debug)]
pub struct TakenTerminal {
    has_mouse: bool,
}

impl TakenTerminal {
    /// Takes over the terminal.
    ///
    /// # Errors
    /// Fails if standard input is not a terminal, or the terminal cannot be written to.
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

    /// Takes over the terminal again after it was lent, or after the shell had it during a stop.
    ///
    /// # Errors
    /// Same as for [`Self::take`].
    pub fn take_again(&self) -> io::Result<()> {
        // crossterm ignores modes set by the shell while it considers the terminal raw, so leave raw mode first.
        disable_raw_mode()?;
        enable_raw_mode()?;
        IS_GIVEN_BACK.store(false, Ordering::SeqCst);
        // A stop requested in the meantime has taken place.
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

/// Restores the terminal, if it is taken.
pub fn give_back() {
    if !IS_GIVEN_BACK.swap(true, Ordering::SeqCst) {
        // A terminal that is gone needs no restoring.
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
        let taken = terminal.screen();
        assert!(taken.alternate_screen() && taken.bracketed_paste());
        assert_eq!(
            taken.mouse_protocol_mode(),
            vt100::MouseProtocolMode::PressRelease
        );
        // An interrupted frame.
        terminal.process(b"\x1b[?2026h\x1b[?25l\x1b[1;31mframe");
        terminal.process(GIVE_BACK.as_bytes());
        let screen = terminal.screen();
        assert!(!screen.alternate_screen() && !screen.bracketed_paste() && !screen.hide_cursor());
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        assert_eq!(screen.contents_formatted(), before);
    }
}
