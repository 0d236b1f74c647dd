//! Input from a user, line by line: at a terminal with its built-in line editing, or from any other stdin.
//!
//! Touches stdin, and stderr for a prompt. Only this module and the rest of [`ui`](crate::ui) print. Guarantees
//! that a signal ends every wait, and that the size of the input is bounded.

mod hidden;

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::os::fd::AsFd;

use rustix::event::PollFlags;
use rustix::termios::{QueueSelector, tcflush};

use self::hidden::HiddenEcho;
use crate::record::question::{Question, Verdict};
use crate::sys::interrupt::{Interrupt, Interrupted};
use crate::sys::text::{line_of, printable};
use crate::ui::stderr;
use crate::ui::tui::{CommandHint, Menu, Status, Submission, ToScreen};

/// The maximum length of a line, in bytes.
pub const LINE_LIMIT: usize = 1 << 20;
/// The maximum size of a prompt, in bytes.
pub const PROMPT_LIMIT: usize = 10 << 20;

/// A user who can be asked.
pub type User = RefCell<Box<dyn LineReader>>;
/// A function that opens the input once a user has to be asked.
pub type OpenUser<'i> = &'i dyn Fn() -> Result<Box<dyn LineReader>, InputError>;

/// The outcome of asking for a line, or for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed<T = String> {
    /// The line without its newline. On a screen, it may contain newlines.
    Line(T),
    /// The end of the input, or Ctrl-D.
    End,
    /// Ctrl-C was pressed.
    Interrupted,
}

impl<T> Typed<T> {
    /// Converts the line.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Typed<U> {
        match self {
            Self::Line(line) => Typed::Line(convert(line)),
            Self::End => Typed::End,
            Self::Interrupted => Typed::Interrupted,
        }
    }
}

impl Typed {
    /// Returns the line; `None` at the end of the input.
    ///
    /// # Errors
    /// Fails if Ctrl-C was pressed.
    pub fn answer(self) -> Result<Option<String>, Interrupted> {
        match self {
            Self::Line(line) => Ok(Some(line)),
            Self::End => Ok(None),
            Self::Interrupted => Err(Interrupted::CTRL_C),
        }
    }
}

/// The hint for input that is not usable as a prompt.
const AS_TEXT: &str = "pass the task as text, or `-` to read standard input";

/// Errors from reading input.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum InputError {
    /// A signal asked the program to end.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Interrupted(#[from] Interrupted),
    /// Reading failed.
    #[error("cannot read the input: {0}")]
    #[diagnostic(help("see where standard input comes from"))]
    Io(#[source] io::Error),
    /// The line with this number is not text.
    #[error("line {0} of the input is not UTF-8: convert it, for example with `iconv`")]
    #[diagnostic(code("usage"), help("{AS_TEXT}"))]
    NotUtf8(usize),
    /// The line with this number is too long.
    #[error("line {0} of the input exceeds {LINE_LIMIT} bytes: split it, or put it into a file")]
    #[diagnostic(code("usage"), help("{AS_TEXT}"))]
    LineTooLong(usize),
    /// The prompt is too long.
    #[error("the prompt exceeds {PROMPT_LIMIT} bytes: put its contents into files and name those")]
    #[diagnostic(code("usage"), help("{AS_TEXT}"))]
    TooLong,
    /// The prompt is blank.
    #[error("the prompt is blank: describe the task")]
    #[diagnostic(code("usage"), help("{AS_TEXT}"))]
    Blank,
}

impl From<io::Error> for InputError {
    fn from(error: io::Error) -> Self {
        error.downcast().map_or_else(Self::Io, Self::Interrupted)
    }
}

/// A source of answers from the user. Line-based input asks everything in words; a screen has its own dialogs.
pub trait LineReader {
    /// Asks for a line.
    ///
    /// # Errors
    /// Fails if reading fails, or a signal asks the program to end.
    fn line(&mut self, prompt: &str) -> Result<Typed, InputError>;

    /// Waits for the next request.
    ///
    /// # Errors
    /// Same as for [`Self::line`].
    fn request(&mut self, prompt: &str) -> Result<Typed<Submission>, InputError>;

    /// Queues a submission to be returned as the next request.
    fn send(&mut self, request: Submission);

    /// Asks for a line without echoing it, if possible.
    ///
    /// # Errors
    /// Same as for [`Self::line`].
    fn secret(&mut self, prompt: &str) -> Result<Typed, InputError>;

    /// Asks whether something may be done; `None` if the question must be asked in words.
    fn confirm(
        &mut self,
        _question: &Question,
        _preview: Option<&str>,
    ) -> Option<Result<Verdict, InputError>> {
        None
    }

    /// Lets the user choose an item of a list, or none; `None` if the question must be asked in words.
    fn choose(&mut self, _menu: Menu) -> Option<Result<Option<usize>, InputError>> {
        None
    }

    /// Shows the status and the available commands, if there is a place for them.
    fn show_status(&mut self, _status: Status, _commands: Vec<CommandHint>) {}

    /// Sends a message to the screen; returns `false` if there is none.
    fn show(&mut self, _message: ToScreen) -> bool {
        false
    }

    /// Returns whether this is a screen.
    fn is_screen(&self) -> bool {
        false
    }

    /// Returns whether a person types the answers, rather than a program or a file.
    fn is_person(&self) -> bool {
        true
    }

    /// Discards typed-ahead input, which cannot be an answer to a question not yet shown.
    fn forget_typed_ahead(&mut self) {}
}

/// A reader of lines from a pipe or a file, or from a user at a terminal with its built-in line editing: a terminal
/// without cursor movement, one with stdout redirected, or by choice. Prompts go to stderr, except that piped requests
/// have none. Reading stops at the first error.
pub struct Lines<R> {
    reader: BufReader<R>,
    /// The number of the next line.
    number: usize,
    /// The interrupt for a wait for the user; `None` if no user types the lines.
    person: Option<Interrupt>,
    /// A request to return before the next line.
    pending: Option<Submission>,
}

impl<R: Read> Lines<R> {
    /// Reads the lines of `reader`, such as [`stdin`]; `person` is set if a user types them.
    pub fn new(reader: R, person: Option<Interrupt>) -> Self {
        let reader = BufReader::new(reader);
        Self {
            reader,
            number: 1,
            person,
            pending: None,
        }
    }

    fn read(&mut self) -> Result<Typed, InputError> {
        let line = self.number;
        let mut bytes = Vec::new();
        // Leave room for the line ending.
        let mut limited = self.reader.by_ref().take(LINE_LIMIT as u64 + 2);
        if limited.read_until(b'\n', &mut bytes)? == 0 {
            return Ok(Typed::End);
        }
        strip_line_end(&mut bytes);
        if bytes.len() > LINE_LIMIT {
            return Err(InputError::LineTooLong(line));
        }
        self.number += 1;
        let text = String::from_utf8(bytes).map_err(|_| InputError::NotUtf8(line))?;
        Ok(Typed::Line(text))
    }
}

impl<R: Read> LineReader for Lines<R> {
    fn line(&mut self, prompt: &str) -> Result<Typed, InputError> {
        // A user's own line ending follows the prompt.
        let is_piped = self.person.is_none() && !prompt.is_empty();
        let end = if is_piped { "\n" } else { "" };
        let shown = format!("{}{end}", printable(prompt, &['\n']));
        // A user can still answer even if the prompt cannot be written.
        stderr::print(&shown);
        match (self.read(), &self.person) {
            // A persistent signal cannot be cleared.
            (Err(InputError::Interrupted(_)), Some(interrupt)) if interrupt.take() > 0 => {
                Ok(Typed::Interrupted)
            }
            (typed, _) => typed,
        }
    }

    fn request(&mut self, prompt: &str) -> Result<Typed<Submission>, InputError> {
        if let Some(request) = self.pending.take() {
            return Ok(Typed::Line(request));
        }
        let prompt = self.person.as_ref().map_or("", |_| prompt);
        Ok(self.line(prompt)?.map(Into::into))
    }

    fn send(&mut self, request: Submission) {
        self.pending = Some(request);
    }

    fn secret(&mut self, prompt: &str) -> Result<Typed, InputError> {
        if self.person.is_none() {
            return self.line(prompt);
        }
        let hidden = HiddenEcho::of(io::stdin())?;
        let typed = self.line(prompt);
        drop(hidden);
        // The user's newline was not echoed either.
        stderr::print("\n");
        typed
    }

    fn is_person(&self) -> bool {
        self.person.is_some()
    }

    fn forget_typed_ahead(&mut self) {
        if self.person.is_some() {
            // If standard input is not a terminal, there is nothing to discard.
            let _ = tcflush(io::stdin(), QueueSelector::IFlush);
        }
    }
}

/// Reads all of `reader` as a prompt, without the last newline.
///
/// # Errors
/// Fails if it cannot be read, is not UTF-8, is blank, or exceeds [`PROMPT_LIMIT`] bytes.
pub fn prompt_from(reader: impl Read) -> Result<String, InputError> {
    let mut bytes = Vec::new();
    let mut limited = reader.take(PROMPT_LIMIT as u64 + 1);
    limited.read_to_end(&mut bytes)?;
    if bytes.len() > PROMPT_LIMIT {
        return Err(InputError::TooLong);
    }
    strip_line_end(&mut bytes);
    let text = String::from_utf8(bytes).map_err(|error| {
        let line = line_of(error.as_bytes(), error.utf8_error().valid_up_to());
        InputError::NotUtf8(line)
    })?;
    if text.trim().is_empty() {
        return Err(InputError::Blank);
    }
    Ok(text)
}

fn strip_line_end(line: &mut Vec<u8>) {
    for end in [b'\n', b'\r'] {
        line.pop_if(|byte| *byte == end);
    }
}

/// A reader whose reads are interrupted by signals.
#[derive(Debug)]
pub struct Watched<R> {
    /// The reader, unbuffered: its descriptor is polled for input.
    source: R,
    interrupt: Interrupt,
}

impl<R: Read + AsFd> Read for Watched<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            let source = [self.source.as_fd()];
            match self.interrupt.poll(&source, PollFlags::IN, None) {
                Ok(true) => return self.source.read(bytes),
                // A SIGINT already handled elsewhere does not end the wait.
                Ok(false) => {}
                Err(error) => {
                    // Avoid the kind `Interrupted`, on which readers try again.
                    let interrupted = error.downcast::<Interrupted>();
                    return Err(interrupted.map_or_else(|error| error, io::Error::other));
                }
            }
        }
    }
}

/// Returns the process's stdin without the standard library's buffer. A signal during a wait is an error.
///
/// # Errors
/// Fails if the process has no stdin.
pub fn stdin(interrupt: Interrupt) -> io::Result<Watched<File>> {
    let source = io::stdin().as_fd().try_clone_to_owned()?.into();
    Ok(Watched { source, interrupt })
}

#[cfg(test)]
mod tests;
