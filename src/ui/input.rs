//! Input from a person, a line at a time: at a terminal that edits its lines by itself, or from wherever stdin comes.
//!
//! Touches stdin, and stderr for a prompt. That, and [`ui`](crate::ui), is all that prints. Guarantees that a signal
//! ends every wait, and that no input grows without limit.

pub mod hidden;

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::os::fd::AsFd;

use rustix::event::PollFlags;
use rustix::termios::{QueueSelector, tcflush};

use crate::record::question::{Answer, Question};
use crate::sys::interrupt::{Interrupt, Interrupted, Signal};
use crate::sys::text::printable;
use crate::ui::tui::{CommandHint, Menu, Status, Submission};

/// The number of bytes a line may have.
pub const LINE_LIMIT: usize = 1 << 20;
/// The number of bytes a whole prompt may have.
pub const PROMPT_LIMIT: usize = 10 << 20;

/// A user who can be asked.
pub type User = RefCell<Box<dyn LineReader>>;
/// Opens the input where somebody is to be asked.
pub type OpenUser<'i> = &'i dyn Fn() -> Result<Box<dyn LineReader>, InputError>;

/// The outcome of asking for a line, or for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed<T = String> {
    /// The line, without its end. On a screen, it may have newlines in it.
    Line(T),
    /// There is no more: Ctrl-D, or the end of the input.
    End,
    /// Ctrl-C was pressed.
    Interrupted,
}

impl Typed {
    /// The line, if there is one.
    ///
    /// # Errors
    /// When Ctrl-C was pressed.
    pub fn answer(self) -> Result<Option<String>, Interrupted> {
        match self {
            Self::Line(line) => Ok(Some(line)),
            Self::End => Ok(None),
            Self::Interrupted => Err(Interrupted {
                signal: Signal::Int,
            }),
        }
    }
}

/// The way out where the input is no prompt.
const AS_TEXT: &str =
    "say what is to be done as text; `-`, in place of the text, reads standard input";

/// Why nothing could be read.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum InputError {
    /// A signal asked the program to end.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Interrupted(#[from] Interrupted),
    /// The system refused.
    #[error("cannot read the input: {0}")]
    #[diagnostic(help("see where standard input comes from"))]
    Io(#[source] io::Error),
    /// The input is not text.
    #[error("line {line} of the input is not UTF-8: convert it, for example with `iconv`")]
    #[diagnostic(code("usage"), help("{AS_TEXT}"))]
    NotUtf8 {
        /// Which line, from 1 on.
        line: usize,
    },
    /// A line is too long.
    #[error(
        "line {line} of the input has more than {LINE_LIMIT} bytes: split it, or put it into a file"
    )]
    #[diagnostic(code("usage"), help("{AS_TEXT}"))]
    LineTooLong {
        /// Which line, from 1 on.
        line: usize,
    },
    /// The prompt is too long.
    #[error(
        "the prompt has more than {PROMPT_LIMIT} bytes: put its contents into files and name those"
    )]
    #[diagnostic(code("usage"), help("{AS_TEXT}"))]
    TooLong,
    /// The prompt says nothing.
    #[error("the prompt is blank: describe the task")]
    #[diagnostic(code("usage"), help("{AS_TEXT}"))]
    Blank,
}

impl From<io::Error> for InputError {
    fn from(error: io::Error) -> Self {
        error.downcast().map_or_else(Self::Io, Self::Interrupted)
    }
}

/// Somebody who can be asked. By lines, everything is asked in words; a screen has forms of its own.
pub trait LineReader {
    /// Asks for a line. The prompt is shown where somebody looks on.
    ///
    /// # Errors
    /// When nothing can be read, or a signal asked the program to end.
    fn line(&mut self, prompt: &str) -> Result<Typed, InputError>;

    /// Waits for the next request.
    ///
    /// # Errors
    /// Those of [`Self::line`].
    fn request(&mut self, prompt: &str) -> Result<Typed<Submission>, InputError> {
        Ok(match self.line(prompt)? {
            Typed::Line(text) => Typed::Line(text.into()),
            Typed::End => Typed::End,
            Typed::Interrupted => Typed::Interrupted,
        })
    }

    /// Asks whether something may be done; `None` where that is to be asked in words.
    fn confirm(
        &mut self,
        _question: &Question,
        _preview: Option<&str>,
    ) -> Option<Result<Answer, InputError>> {
        None
    }

    /// Has one of a list chosen, or none; `None` where that is to be asked in words.
    fn choose(&mut self, _menu: Menu) -> Option<Result<Option<usize>, InputError>> {
        None
    }

    /// Shows how things stand, and which commands there are, where these have a place of their own.
    fn stands(&mut self, _status: Status, _commands: Vec<CommandHint>) {}

    /// Shows the answer to a command, Markdown, where there is a screen.
    fn say(&mut self, _words: &str) -> bool {
        false
    }

    /// Returns whether this is a screen.
    fn is_screen(&self) -> bool {
        false
    }

    /// Forgets what somebody has typed ahead: it cannot be meant for a question that they have not seen.
    fn forget_typed_ahead(&mut self) {}
}

/// Lines from a pipe or a file, where prompts are not shown, or those of a person at a terminal that edits its lines by
/// itself: one that cannot move its cursor, on which they do not see stdout, or who wants lines. The prompt goes to
/// stderr. The first error is the last: what comes after it is not read.
pub struct Lines<R> {
    reader: BufReader<R>,
    /// The number of the line that comes next.
    number: usize,
    /// Ends a person's wait.
    person: Option<Interrupt>,
}

impl<R: Read> Lines<R> {
    /// The lines of `reader`, for which see [`stdin`]; `person` where a person types them.
    pub fn new(reader: R, person: Option<Interrupt>) -> Self {
        let reader = BufReader::new(reader);
        Self {
            reader,
            number: 1,
            person,
        }
    }

    fn read(&mut self) -> Result<Typed, InputError> {
        let line = self.number;
        let mut bytes = Vec::new();
        // With room for the line's end.
        let mut limited = self.reader.by_ref().take(LINE_LIMIT as u64 + 2);
        if limited.read_until(b'\n', &mut bytes)? == 0 {
            return Ok(Typed::End);
        }
        strip_line_end(&mut bytes);
        if bytes.len() > LINE_LIMIT {
            return Err(InputError::LineTooLong { line });
        }
        self.number += 1;
        let text = String::from_utf8(bytes).map_err(|_| InputError::NotUtf8 { line })?;
        Ok(Typed::Line(text))
    }
}

impl<R: Read> LineReader for Lines<R> {
    fn line(&mut self, prompt: &str) -> Result<Typed, InputError> {
        if self.person.is_some() {
            // Who cannot read the prompt can still answer.
            let _ = io::stderr().write_all(printable(prompt, &[]).as_bytes());
        }
        match (self.read(), &self.person) {
            // What lasts cannot be taken back.
            (Err(InputError::Interrupted(_)), Some(interrupt)) if interrupt.take() > 0 => {
                Ok(Typed::Interrupted)
            }
            (typed, _) => typed,
        }
    }

    fn forget_typed_ahead(&mut self) {
        if self.person.is_some() {
            // Where standard input is no terminal there is nothing to forget.
            let _ = tcflush(io::stdin(), QueueSelector::IFlush);
        }
    }
}

/// The whole of `reader` as a prompt, without its last newline.
///
/// # Errors
/// When it cannot be read, is not UTF-8, says nothing, or has more than [`PROMPT_LIMIT`] bytes.
pub fn prompt_from(reader: impl Read) -> Result<String, InputError> {
    let mut bytes = Vec::new();
    let mut limited = reader.take(PROMPT_LIMIT as u64 + 1);
    limited.read_to_end(&mut bytes)?;
    if bytes.len() > PROMPT_LIMIT {
        return Err(InputError::TooLong);
    }
    strip_line_end(&mut bytes);
    let text = String::from_utf8(bytes).map_err(|error| {
        let (valid, _) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        let line = 1 + memchr::memchr_iter(b'\n', valid).count();
        InputError::NotUtf8 { line }
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

/// A reader whose reads end when a signal comes.
#[derive(Debug)]
pub struct Watched<R> {
    source: R,
    interrupt: Interrupt,
}

impl<R: Read + AsFd> Watched<R> {
    /// `source` must not read ahead: its descriptor tells whether there is something to read.
    pub fn new(source: R, interrupt: Interrupt) -> Self {
        Self { source, interrupt }
    }
}

impl<R: Read + AsFd> Read for Watched<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            let source = [self.source.as_fd()];
            // A SIGINT that somebody has taken meanwhile ends no wait.
            let woken = self.interrupt.poll(&source, PollFlags::IN, None);
            // Not of kind `Interrupted`, after which readers try again.
            let woken = woken.map_err(|error| {
                let interrupted = error.downcast::<Interrupted>();
                interrupted.map_or_else(|error| error, io::Error::other)
            });
            if woken? {
                return self.source.read(bytes);
            }
        }
    }
}

/// The process's stdin, without the standard library's buffer. A signal ends a wait for it as an error.
///
/// # Errors
/// When the process has no stdin.
pub fn stdin(interrupt: Interrupt) -> io::Result<Watched<File>> {
    let stdin = io::stdin().as_fd().try_clone_to_owned()?;
    Ok(Watched::new(File::from(stdin), interrupt))
}

#[cfg(test)]
mod tests;
