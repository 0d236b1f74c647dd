//! What a person types: a line at a time on a terminal, or from wherever stdin comes.
//!
//! Touches stdin, stderr for a prompt, and, through rustyline, the terminal: it prints the prompt and what is typed,
//! looks at `TERM` and `TERM_PROGRAM`, and handles SIGINT and SIGWINCH while a line is edited. That, and
//! [`ui`](crate::ui), is all that prints. Guarantees that a signal ends every wait, and that no
//! input grows without limit.

pub(crate) mod completion;
pub mod hidden;
pub(crate) mod history;

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::process::{Signal as Number, getpid, kill_process};
use rustix::termios::{QueueSelector, tcflush};
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{Behavior, CompletionType, Config};

use self::completion::PathHelper;
use self::history::History;
use crate::sys::interrupt::{Interrupt, Interrupted, is_readable_within};
use crate::sys::text::printable;

/// How many bytes a line may have.
pub const LINE_LIMIT: usize = 1 << 20;
/// How many bytes a whole prompt may have.
pub const PROMPT_LIMIT: usize = 10 << 20;

/// What stands before a line that goes on with the last one.
const CONTINUED: &str = "... ";

/// What came of asking for a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    /// The line, without its end. What was pasted, or continued by a `\`, may have newlines in it.
    Line(String),
    /// There is no more: Ctrl-D, or the end of the input.
    End,
    /// Ctrl-C was pressed.
    Interrupted,
    /// The same with something typed, which is gone now.
    Cleared,
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

/// Somebody who can be asked.
pub trait LineReader {
    /// Asks for a line. The prompt is shown where somebody looks on.
    ///
    /// # Errors
    /// When nothing can be read, or a signal asked the program to end.
    fn line(&mut self, prompt: &str) -> Result<Typed, InputError>;

    /// Forgets what somebody has typed ahead: it cannot be meant for a question that they have not seen.
    fn forget_typed_ahead(&mut self) {}
}

/// A person at a terminal that can move its cursor, and on which they see stdout: rustyline hears no signal at any
/// other, for which there is [`PromptedLines`]. What is typed can
/// be edited and be had again, in later sessions too. Tab completes `@path`. A text that is pasted is one input,
/// whatever lines it has; so is what ends with `\` and the line after it.
pub struct Editor {
    editor: RustylineEditor,
    config: Config,
    interrupt: Interrupt,
    helper: PathHelper,
    history: Option<History>,
}

type RustylineEditor = rustyline::Editor<PathHelper, MemHistory>;

impl Editor {
    /// An editor that any lasting signal ends, and that completes paths below `root`. Without a history, nothing is
    /// kept of what is typed.
    ///
    /// # Errors
    /// When rustyline cannot set itself up.
    pub fn new(
        interrupt: Interrupt,
        root: PathBuf,
        history: Option<History>,
    ) -> Result<Self, InputError> {
        let config = Config::builder()
            .behavior(Behavior::Stdio)
            .bracketed_paste(true)
            .completion_type(CompletionType::List)
            .build();
        let helper = PathHelper::new(root);
        let mut editor = editor(&config, &helper)?;
        for entry in history.iter().flat_map(History::entries) {
            let _ = editor.add_history_entry(entry);
        }
        Ok(Self {
            editor,
            config,
            interrupt,
            helper,
            history,
        })
    }

    /// A line as rustyline gives it.
    fn piece(&mut self, prompt: &str) -> Result<Typed, InputError> {
        if self.interrupt.take() > 0 {
            return Ok(Typed::Interrupted);
        }
        self.interrupt.check()?;
        let (open, closed) = UnixStream::pair()?;
        self.helper.take_has_text();
        let (editor, interrupt) = (&mut self.editor, &self.interrupt);
        let read = thread::scope(|scope| {
            thread::Builder::new().spawn_scoped(scope, move || watch(interrupt, &closed))?;
            let read = editor.readline(prompt);
            drop(open);
            Ok::<_, io::Error>(read)
        })?;
        // What lasts is more than the Ctrl-C that it looks like.
        if self.interrupt.take() == 0 {
            self.interrupt.check()?;
        }
        match read {
            Ok(line) => Ok(Typed::Line(line)),
            Err(ReadlineError::Eof) => Ok(Typed::End),
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => {
                let has_text = self.helper.take_has_text();
                Ok(if has_text {
                    Typed::Cleared
                } else {
                    Typed::Interrupted
                })
            }
            Err(error) => Err(failed(error)),
        }
    }
}

fn editor(config: &Config, helper: &PathHelper) -> Result<RustylineEditor, InputError> {
    let history = MemHistory::with_config(config);
    let mut editor = RustylineEditor::with_history(config.clone(), history).map_err(failed)?;
    editor.set_helper(Some(helper.clone()));
    // Nothing is printed through it. With one, rustyline waits for signals as well as for keys.
    let _ = editor.create_external_printer();
    Ok(editor)
}

impl LineReader for Editor {
    fn forget_typed_ahead(&mut self) {
        forget_typed();
        // What rustyline has read beyond a line is forgotten with it; what was entered before is not.
        if let Ok(mut fresh) = editor(&self.config, &self.helper) {
            for entry in self.editor.history() {
                let _ = fresh.add_history_entry(entry);
            }
            self.editor = fresh;
        }
    }

    fn line(&mut self, prompt: &str) -> Result<Typed, InputError> {
        let prompt = printable(prompt, &[]);
        let mut text = String::new();
        let mut prompt = prompt.as_str();
        loop {
            match self.piece(prompt)? {
                Typed::Line(line) => {
                    text.push_str(&line);
                    if text.len() > LINE_LIMIT {
                        return Err(InputError::LineTooLong { line: 1 });
                    }
                    if !is_continued(&line) {
                        break;
                    }
                    text.pop();
                    text.push('\n');
                    prompt = CONTINUED;
                }
                // The first of several lines was typed, too.
                Typed::Interrupted if !text.is_empty() => return Ok(Typed::Cleared),
                // The line that was to follow does not.
                Typed::End if !text.is_empty() => break,
                other => return Ok(other),
            }
        }
        // A line that cannot be had again has been typed all the same.
        let _ = self.editor.add_history_entry(text.as_str());
        if let Some(history) = &self.history {
            history.add(&text);
        }
        Ok(Typed::Line(text))
    }
}

/// Whether a line ends with a `\` that is not itself behind one.
fn is_continued(line: &str) -> bool {
    let backslashes = line.len() - line.trim_end_matches('\\').len();
    backslashes % 2 == 1
}

fn failed(error: ReadlineError) -> InputError {
    match error {
        ReadlineError::Io(error) => error.into(),
        error => InputError::Io(io::Error::other(error)),
    }
}

/// How long until rustyline is told again, where it was not yet waiting.
const AGAIN: Duration = Duration::from_millis(100);

/// Ends rustyline's wait when a signal comes that lasts, until the other end of `closed` is dropped. rustyline
/// knows no signal but SIGINT, and so gets one.
fn watch(interrupt: &Interrupt, closed: &UnixStream) {
    loop {
        match interrupt.poll(&[closed.as_fd()], PollFlags::IN, None) {
            Ok(false) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                // Where rustyline is not there yet, this is one more for `interrupt`.
                let _ = kill_process(getpid(), Number::INT);
                if is_readable_within(closed.as_fd(), AGAIN) {
                    return;
                }
            }
            Ok(true) | Err(_) => return,
        }
    }
}

/// Lines from a pipe or a file. Prompts are not shown. The first error is the last: what comes after it is not read.
pub struct PlainLines<R> {
    reader: BufReader<R>,
    /// The number of the line that comes next.
    number: usize,
}

impl<R: Read> PlainLines<R> {
    /// The lines of `reader`, for which see [`stdin`].
    pub fn new(reader: R) -> Self {
        let reader = BufReader::new(reader);
        Self { reader, number: 1 }
    }
}

impl<R: Read> LineReader for PlainLines<R> {
    fn line(&mut self, _prompt: &str) -> Result<Typed, InputError> {
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

/// A person at a terminal that edits its lines by itself: one that cannot move its cursor, or on which they do not see
/// stdout, which belongs to whatever reads it. The prompt goes to stderr.
pub struct PromptedLines<R> {
    lines: PlainLines<R>,
    interrupt: Interrupt,
}

impl<R: Read> PromptedLines<R> {
    /// The lines that are typed, a wait for which `interrupt` ends.
    pub fn new(lines: PlainLines<R>, interrupt: Interrupt) -> Self {
        Self { lines, interrupt }
    }
}

impl<R: Read> LineReader for PromptedLines<R> {
    fn line(&mut self, prompt: &str) -> Result<Typed, InputError> {
        // Who cannot read the prompt can still answer.
        let _ = io::stderr().write_all(printable(prompt, &[]).as_bytes());
        match self.lines.line(prompt) {
            // What lasts cannot be taken back.
            Err(InputError::Interrupted(_)) if self.interrupt.take() > 0 => Ok(Typed::Interrupted),
            typed => typed,
        }
    }

    fn forget_typed_ahead(&mut self) {
        forget_typed();
    }
}

/// Forgets what was typed and not yet read. Where standard input is no terminal there is nothing to forget.
fn forget_typed() {
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
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
