//! The screen's loop, which handles keys and messages and draws frames.
//!
//! Touches the terminal at standard input and output, the user's editor and pager, and the file being edited.
//! Guarantees that the terminal is restored and the engine stopped however it ends, that there are at most
//! sixty frames a second, that nothing is written while nothing changes, and that no key typed ahead of a
//! question answers it.

mod handover;
mod painter;
mod signals;

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crossterm::event::{KeyCode, KeyModifiers};
use ratatui::layout::Size;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use signal_hook::consts::signal::SIGTSTP;
use signal_hook::low_level::raise;

use self::handover::{IS_GIVEN_BACK, STOPS, TakenTerminal, give_back};
use self::painter::Painter;
use self::signals::Signals;
use super::app::{App, ScreenEffect};
use super::channel::ScreenReceiver;
use super::clipboard::{Clipboard, FoundImage};
use super::composer::{Composer, ComposerOptions};
use super::keys::{KeyDecoder, TerminalInput, is_cancel, is_suspend, works_anytime};
use super::{FromScreen, Submission, ToScreen};
use crate::record::mode::SharedMode;
use crate::sys::environment::Clock;
use crate::sys::interrupt::{Interrupt, Interrupted, Signal, is_readable_within, wait};
use crate::sys::text::printable;
use crate::ui::editor;
use crate::ui::history::History;
use crate::ui::pager::Pager;
use crate::ui::paint::{COLUMNS, size};

/// The minimum average time between frames.
const FRAME: Duration = Duration::from_millis(18);
/// The time by which a frame showing typed text may be early: three frames. No second has more than sixty
/// frames.
const AHEAD: Duration = Duration::from_millis(54);
/// The time to wait for the rest of an escape sequence.
const ESCAPE: Duration = Duration::from_millis(25);
/// The pause in typing after which a question counts as seen.
const PAUSE: Duration = Duration::from_millis(500);
/// The sequences that ring the bell, and notify on the desktop (OSC 9).
const NOTIFY: &[u8] = b"\x07\x1b]9;code-commit waits for your answer\x07";
/// The interval between checks for whether the engine has handled a stop.
const STOP: Duration = Duration::from_millis(100);

/// The settings with which the screen is run.
pub struct ScreenOptions<'c> {
    /// The source of the time.
    pub clock: &'c dyn Clock,
    /// True if no colours are shown.
    pub no_color: bool,
    /// The mode, if the agent has modes and streams prose; `None` to show only its steps.
    pub mode: Option<SharedMode>,
    /// True if the wheel scrolls.
    pub mouse: bool,
    /// True if the user is notified of questions while the terminal is out of focus.
    pub notify: bool,
    /// The project's root.
    pub root: PathBuf,
    /// A submission to send as soon as the engine is ready, as if it had been typed.
    pub first: Option<Submission>,
    /// The history of submissions; `None` to keep none.
    pub history: Option<History>,
    /// The command of the user's editor; `None` if none is configured.
    pub editor: Option<String>,
    /// The file in which the input is edited, used by no other process.
    pub draft: PathBuf,
    /// The user's pager.
    pub pager: Option<Pager>,
    /// The access to the clipboard's picture.
    pub clipboard: Clipboard,
}

/// Runs the screen until the engine ends it or a signal arrives.
///
/// # Errors
/// Fails if the terminal cannot be set up, read or written to; returns [`Interrupted`] if a signal ended the screen or
/// the terminal is gone.
pub fn run(
    options: ScreenOptions<'_>,
    receiver: ScreenReceiver,
    sender: Sender<FromScreen>,
    interrupt: Interrupt,
) -> io::Result<()> {
    let interrupt = StopAtEnd(interrupt);
    let signals = Signals::new(Arc::clone(&IS_GIVEN_BACK), Arc::clone(&STOPS))?;
    let taken = TakenTerminal::take(options.mouse)?;
    let stdin = io::stdin();
    let terminal = Terminal {
        keys: stdin.as_fd(),
        output: io::stdout(),
        size: terminal_size,
        taken: Some(&taken),
        is_elsewhere: false,
    };
    let mut screen = ScreenLoop::new(options, terminal, receiver, sender, interrupt);
    let ended = screen.run(&signals);
    let (ended_by, lasting) = (screen.ended_by, screen.interrupt.0.lasting());
    drop(screen);
    drop(taken);
    // A terminal error after a SIGHUP is a consequence of the signal.
    let by_signal = |error| lasting.map_or(error, |signal| Interrupted { signal }.into());
    let farewell = ended.map_err(by_signal)?;
    if !farewell.is_empty() {
        // The terminal may be gone, in which case no farewell is needed.
        let _ = io::stdout().write_all(printable(&farewell, &['\n']).as_bytes());
    }
    ended_by.map_or(Ok(()), |interrupted| Err(interrupted.into()))
}

/// A guard that stops the engine when dropped, since its work is no longer visible.
struct StopAtEnd(Interrupt);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.raise();
    }
}

/// Returns the terminal's size; 80 by 24 if it is unknown.
fn terminal_size() -> Size {
    let (rows, columns) = size(io::stdout()).unwrap_or((24, COLUMNS));
    let [columns, rows] = [columns, rows].map(|length| u16::try_from(length).unwrap_or(u16::MAX));
    Size::new(columns, rows)
}

/// Returns the time until the next frame, planned for `next` but allowed earlier if text was typed.
fn due_in(next: Duration, is_typed: bool, now: Duration) -> Duration {
    let ahead = if is_typed { AHEAD } else { Duration::ZERO };
    next.saturating_sub(now + ahead)
}

/// Returns the earliest time for the frame after one drawn now; frames drawn early are compensated for.
fn frame_after(next: Duration, now: Duration) -> Duration {
    next.max(now) + FRAME
}

/// The input and output of the loop.
struct Terminal<'t, W> {
    keys: BorrowedFd<'t>,
    output: W,
    size: fn() -> Size,
    /// The modes of the real terminal; `None` in tests.
    taken: Option<&'t TakenTerminal>,
    /// True if the terminal has reported that it is out of focus.
    is_elsewhere: bool,
}

/// The reasons why a wait ended.
struct Woken {
    has_keys: bool,
    has_signal: bool,
}

/// The state of the loop.
struct ScreenLoop<'t, W> {
    options: ScreenOptions<'t>,
    terminal: Terminal<'t, W>,
    receiver: ScreenReceiver,
    sender: Sender<FromScreen>,
    interrupt: StopAtEnd,
    app: App,
    painter: Painter,
    decoder: KeyDecoder,
    /// True if something may look different.
    is_changed: bool,
    /// True if the change comes from typed text.
    is_typed: bool,
    /// The earliest time for the next frame; typed text may be drawn [`AHEAD`] of it.
    next_frame: Duration,
    /// The time of the last read.
    read_at: Duration,
    /// The time of the last key.
    typed_at: Duration,
    /// True if a question appeared while the user was typing, until they pause.
    is_typing_on: bool,
    /// The duration of [`PAUSE`]; differs in tests.
    pause: Duration,
    /// The channel for pictures from the clipboard.
    pictures: (Sender<FoundImage>, Receiver<FoundImage>),
    /// The text to leave on the normal screen; `None` while the loop runs.
    farewell: Option<String>,
    /// The signal that ended the screen.
    ended_by: Option<Interrupted>,
}

impl<'t, W: Write> ScreenLoop<'t, W> {
    fn new(
        mut options: ScreenOptions<'t>,
        terminal: Terminal<'t, W>,
        receiver: ScreenReceiver,
        sender: Sender<FromScreen>,
        interrupt: StopAtEnd,
    ) -> Self {
        let composer = Composer::new(ComposerOptions {
            root: options.root.clone(),
            history: options.history.take(),
            wake: Some(receiver.wake()),
            is_text_only: options.mode.is_none(),
        });
        let mut app = App::new(options.mode.take(), composer);
        app.is_plain = options.no_color;
        if let Some(first) = options.first.take() {
            app.send_first(first);
        }
        Self {
            app,
            painter: Painter::default(),
            options,
            terminal,
            receiver,
            sender,
            interrupt,
            decoder: KeyDecoder::default(),
            is_changed: true,
            is_typed: false,
            next_frame: Duration::ZERO,
            read_at: Duration::ZERO,
            typed_at: Duration::ZERO,
            is_typing_on: false,
            pause: PAUSE,
            pictures: mpsc::channel(),
            farewell: None,
            ended_by: None,
        }
    }

    fn now(&self) -> Duration {
        self.options.clock.elapsed()
    }

    /// Runs the loop until the screen ends, and returns the text for the normal screen.
    fn run(&mut self, signals: &Signals) -> io::Result<String> {
        loop {
            self.messages()?;
            let now = self.now();
            self.is_changed |= self.app.tick(now);
            if let Some(farewell) = self.farewell.take() {
                return Ok(farewell);
            }
            if self.is_changed && due_in(self.next_frame, self.is_typed, now).is_zero() {
                self.draw()?;
            }
            let is_stopping = match self.interrupt.0.check() {
                Ok(()) => false,
                Err(Interrupted::CTRL_C) => true,
                Err(_) => return Ok(self.end()),
            };
            if is_stopping {
                let effects = self.app.stopped();
                self.effects(effects)?;
            }
            let woken = self.wait(signals, is_stopping)?;
            if woken.has_signal {
                self.signal(signals)?;
            }
            let inputs = if woken.has_keys {
                self.read()?
            } else if self.escape_wait() == Some(Duration::ZERO) {
                Some(self.decoder.settle())
            } else {
                let effects = self.app.unfollowed(self.now());
                self.effects(effects)?;
                continue;
            };
            let Some(inputs) = inputs else {
                return Ok(self.end());
            };
            self.inputs(inputs)?;
        }
    }

    /// Ends the screen after a signal, or after the terminal is gone, which counts as SIGHUP: tells the engine
    /// and stops it.
    fn end(&mut self) -> String {
        let lasting = self.interrupt.0.lasting();
        let signal = lasting.unwrap_or(Signal::Hup);
        self.ended_by = Some(Interrupted { signal });
        self.interrupt.0.raise();
        // The engine may have ended.
        let _ = self.sender.send(FromScreen::Leave(signal));
        give_back();
        self.receiver.farewell(self.options.clock)
    }

    /// Waits until there is something to do. A stop that the engine has not handled yet would end every wait.
    fn wait(&self, signals: &Signals, is_stopping: bool) -> io::Result<Woken> {
        let now = self.now();
        let limits = [
            self.is_changed
                .then(|| due_in(self.next_frame, self.is_typed, now)),
            self.escape_wait(),
            is_stopping.then_some(STOP),
            self.app.next_tick(now),
        ];
        let soonest = limits.into_iter().flatten().min();
        let mut fds = vec![
            PollFd::from_borrowed_fd(self.terminal.keys, PollFlags::IN),
            PollFd::new(signals, PollFlags::IN),
            PollFd::new(&self.receiver, PollFlags::IN),
        ];
        if !is_stopping {
            fds.push(PollFd::new(&self.interrupt.0, PollFlags::IN));
        }
        wait(&mut fds, soonest)?;
        Ok(Woken {
            has_keys: !fds[0].revents().is_empty(),
            has_signal: !fds[1].revents().is_empty(),
        })
    }

    /// Returns the remaining time to wait for the rest of an escape sequence; `None` if none is pending.
    fn escape_wait(&self) -> Option<Duration> {
        let waited = self.now().saturating_sub(self.read_at);
        let is_open = self.decoder.is_open();
        is_open.then(|| ESCAPE.saturating_sub(waited))
    }

    /// Handles the engine's messages.
    fn messages(&mut self) -> io::Result<()> {
        let Some(messages) = self.receiver.take() else {
            return Ok(());
        };
        // A wake without a message may mean that paths were listed.
        self.is_changed = true;
        while let Ok(found) = self.pictures.1.try_recv() {
            match found {
                Ok(image) => self.app.attach_image(image),
                Err(problem) => self.app.hint(problem, self.now()),
            }
        }
        for message in messages {
            let is_question = matches!(
                message,
                ToScreen::Ask { .. } | ToScreen::Choose(_) | ToScreen::Type { .. }
            );
            let effects = self.app.handle(message, self.now());
            self.effects(effects)?;
            if is_question {
                self.show_question()?;
            }
        }
        Ok(())
    }

    /// Shows a question. Keys typed before it was visible are not answers, nor are those that continue such typing.
    fn show_question(&mut self) -> io::Result<()> {
        let is_recent = self.now().saturating_sub(self.typed_at) < self.pause;
        self.is_typing_on = is_recent && self.app.is_typing();
        let frame = self.frame()?;
        // Read pending input just before the question becomes visible; later input may answer it.
        while is_readable_within(self.terminal.keys, Duration::ZERO) {
            let Some(inputs) = self.read()? else { break };
            self.before_question(inputs)?;
        }
        let inputs = self.decoder.settle();
        self.before_question(inputs)?;
        if self.terminal.is_elsewhere && self.options.notify {
            self.terminal.output.write_all(NOTIFY)?;
        }
        self.write(&frame)
    }

    /// Handles input typed before a question was visible, which cannot even close it.
    fn before_question(&mut self, inputs: Vec<TerminalInput>) -> io::Result<()> {
        for input in inputs {
            self.typed_at = self.now();
            self.is_typing_on = true;
            let left = self.ahead(input);
            // The second Escape stops the work even if a question has appeared.
            let is_meant = self.app.is_armed();
            let is_closing =
                |input: &_| matches!(input, TerminalInput::Key(key) if is_cancel(*key));
            self.input(left.filter(|input| is_meant || !is_closing(input)))?;
        }
        Ok(())
    }

    /// Handles a key from a user who has not seen the question: text goes to the input and extends their
    /// typing, keys that could answer are dropped, and keys that work at any time are returned.
    fn ahead(&mut self, input: TerminalInput) -> Option<TerminalInput> {
        match input {
            TerminalInput::Key(key) if !works_anytime(key) => {
                let KeyCode::Char(c) = key.code else {
                    return None;
                };
                if (key.modifiers - KeyModifiers::SHIFT).is_empty() {
                    self.app.typed_ahead(c.encode_utf8(&mut [0; 4]));
                }
            }
            TerminalInput::Paste(text) => self.app.typed_ahead(&text),
            input => return Some(input),
        }
        self.typed_at = self.now();
        None
    }

    /// Reads and decodes input; `None` if the terminal is gone.
    fn read(&mut self) -> io::Result<Option<Vec<TerminalInput>>> {
        self.read_at = self.now();
        let mut bytes = [0u8; 4096];
        match rustix::io::read(self.terminal.keys, &mut bytes) {
            Ok(0) | Err(Errno::IO) => Ok(None),
            Ok(length) => {
                let bytes = &bytes[..length];
                // A cancel key that arrives alone was pressed, not pasted, so the end of the paste must be
                // lost.
                let alone = KeyDecoder::default().read(bytes);
                let is_lost = matches!(alone[..], [TerminalInput::Key(key)] if is_cancel(key));
                let paste = is_lost.then(|| self.decoder.end_paste()).flatten();
                let inputs = paste.map(|paste| vec![paste]);
                Ok(Some(inputs.unwrap_or_else(|| self.decoder.read(bytes))))
            }
            Err(Errno::INTR | Errno::AGAIN) => Ok(Some(Vec::new())),
            Err(errno) => Err(errno.into()),
        }
    }

    fn inputs(&mut self, inputs: Vec<TerminalInput>) -> io::Result<()> {
        for input in inputs {
            let now = self.now();
            self.is_typing_on &= now.saturating_sub(self.typed_at) < self.pause;
            let left = if self.is_typing_on {
                self.ahead(input)
            } else {
                self.typed_at = now;
                Some(input)
            };
            self.input(left)?;
        }
        Ok(())
    }

    fn input(&mut self, input: Option<TerminalInput>) -> io::Result<()> {
        (self.is_changed, self.is_typed) = (true, true);
        match input {
            Some(TerminalInput::Key(key)) if is_suspend(key) => {
                self.app.follows();
                raise(SIGTSTP)?;
            }
            Some(TerminalInput::Key(key)) => {
                let effects = self.app.key(key, self.now());
                self.effects(effects)?;
            }
            Some(TerminalInput::Paste(text)) => self.app.paste(&text),
            Some(TerminalInput::Wheel(notches)) => self.app.wheel(notches),
            Some(TerminalInput::Focus(is_here)) => self.terminal.is_elsewhere = !is_here,
            None => {}
        }
        Ok(())
    }

    /// Handles a change of the terminal's size, or a return from the shell.
    fn signal(&mut self, signals: &Signals) -> io::Result<()> {
        if signals.stop(give_back) | signals.have_continued() {
            if let Some(taken) = self.terminal.taken {
                taken.take_again()?;
            }
            self.painter.forget();
        }
        self.is_changed = true;
        Ok(())
    }

    fn draw(&mut self) -> io::Result<()> {
        (self.is_changed, self.is_typed) = (false, false);
        let frame = self.frame()?;
        self.write(&frame)
    }

    fn frame(&mut self) -> io::Result<Vec<u8>> {
        let size = (self.terminal.size)();
        self.painter.frame(size, |buf| self.app.draw(buf))
    }

    fn write(&mut self, frame: &[u8]) -> io::Result<()> {
        if !frame.is_empty() {
            self.terminal.output.write_all(frame)?;
            self.terminal.output.flush()?;
        }
        self.next_frame = frame_after(self.next_frame, self.now());
        Ok(())
    }

    fn effects(&mut self, effects: Vec<ScreenEffect>) -> io::Result<()> {
        for effect in effects {
            match effect {
                ScreenEffect::Send(message) => {
                    // Clear a stop that came too late for the previous work, so that it does not affect what is
                    // sent now; later stops do.
                    if matches!(message, FromScreen::Line(_)) {
                        let _ = self.interrupt.0.take();
                    }
                    if self.sender.send(message).is_err() {
                        self.farewell = Some(String::new());
                    }
                }
                ScreenEffect::Stop => self.interrupt.0.raise(),
                ScreenEffect::Copy(text) => {
                    let command = format!("\x1b]52;c;{}\x07", STANDARD.encode(text));
                    self.terminal.output.write_all(command.as_bytes())?;
                    self.terminal.output.flush()?;
                }
                ScreenEffect::Page(text) => self.page(&text)?,
                ScreenEffect::Editor(text) => self.edit(&text)?,
                ScreenEffect::FetchImage => {
                    let found = self.pictures.0.clone();
                    let (wake, interrupt) = (self.receiver.wake(), self.interrupt.0.clone());
                    self.options.clipboard.fetch(found, wake, interrupt);
                }
                ScreenEffect::Leave(farewell) => {
                    // Keep the first farewell; the next one only reports that the engine is gone.
                    self.farewell.get_or_insert(farewell);
                }
                ScreenEffect::Redraw => self.painter.forget(),
            }
            self.is_changed = true;
        }
        Ok(())
    }

    /// Lends the terminal to another program.
    fn lend<T>(&mut self, to: impl FnOnce() -> T) -> io::Result<T> {
        let Some(taken) = self.terminal.taken else {
            return Ok(to());
        };
        give_back();
        let result = to();
        taken.take_again()?;
        self.painter.forget();
        Ok(result)
    }

    fn page(&mut self, text: &str) -> io::Result<()> {
        let text = printable(text, &['\n', '\t']);
        let (pager, interrupt) = (self.options.pager.clone(), self.interrupt.0.clone());
        let is_shown = self.lend(|| pager.is_some_and(|pager| pager.show(&text, &interrupt)))?;
        if !is_shown {
            let problem =
                "there is no pager that stays open: set `PAGER` to one, or install `less`";
            self.app.hint(problem, self.now());
        }
        Ok(())
    }

    /// Opens the input in the user's editor.
    fn edit(&mut self, text: &str) -> io::Result<()> {
        let Some(command) = self.options.editor.clone() else {
            let problem = editor::EditorProblem::NotSet.to_string();
            self.app.hint(&problem, self.now());
            return Ok(());
        };
        let (draft, interrupt) = (self.options.draft.clone(), self.interrupt.0.clone());
        let edited = self.lend(|| editor::edited(&command, &draft, text, &interrupt))?;
        match edited {
            Ok(text) => self.app.edited(&text),
            Err(problem) => self.app.hint(&problem, self.now()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
