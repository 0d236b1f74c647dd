//! Output for people while a run goes on, and for programs. The only code that prints.
//!
//! Writes to the standard streams: progress, warnings and errors to stderr, to stdout the result alone or, where that
//! is wanted, behind the exchange that has led to it. Guarantees that no key is printed, and that a closed terminal is
//! no reason to fail.

pub(crate) mod browser;
pub(crate) mod columns;
pub(crate) mod editor;
pub(crate) mod history;
pub(crate) mod input;

mod blocks;
mod console;
pub(crate) mod json;
mod lent;
pub(crate) mod links;
mod markdown;
mod mirror;
mod options;
pub(crate) mod pager;
mod paint;
mod present;
mod spinner;
mod steps;
pub mod syntax;
pub mod tui;

use std::fmt::Display;
use std::io::{self, Write as _};

use serde_json::Value;

use self::json::JsonLines;
use self::links::Links;
use self::pager::Pager;
use crate::record::event::{Event, Reporter};
use crate::secret::Redactor;
use crate::sys::environment::Clock;

pub use self::console::Console;
pub use self::options::{ConsoleOptions, OutputFormat, is_dumb};

/// Tells what happens to the person at the terminal, and to the program that reads stdout.
pub struct Output<'r> {
    console: Console<'r>,
    lines: JsonLines<'r>,
    format: OutputFormat,
    redactor: &'r Redactor,
}

impl<'r> Output<'r> {
    /// Prints nothing that `redactor` knows as a key.
    #[must_use]
    pub fn new(
        options: ConsoleOptions,
        format: OutputFormat,
        clock: &'r dyn Clock,
        redactor: &'r Redactor,
    ) -> Self {
        Self {
            console: Console::new(options.in_format(format), redactor),
            lines: JsonLines::new(clock, redactor),
            format,
            redactor,
        }
    }

    /// The same with links on the paths that it prints to a terminal.
    #[must_use]
    pub(crate) fn with_links(mut self, links: Option<Links>) -> Self {
        self.console.links = links;
        self
    }

    /// Returns the format of stdout.
    #[must_use]
    pub fn format(&self) -> OutputFormat {
        self.format
    }

    /// Prints the result: the text, or what stands for it.
    ///
    /// # Errors
    /// When it cannot be written, though somebody wants to read it.
    pub fn result(&self, text: &str, document: impl FnOnce() -> Value) -> io::Result<()> {
        self.console.stop_spinner();
        match self.format {
            OutputFormat::Text => self.console.result(text),
            OutputFormat::Json => json::document(self.redactor, &document()),
            OutputFormat::JsonL => self.lines.result(&document()),
        }
    }

    /// Prints what a program reads where others get text; its reader must not go. Else what stands for it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn report(&self, report: &Value, document: impl FnOnce() -> Value) -> io::Result<()> {
        self.console.stop_spinner();
        match self.format {
            OutputFormat::Text => json::document(self.redactor, report),
            _ => self.result("", document),
        }
    }

    /// Prints the result as [`Self::result`] does; a text that is longer than the terminal by `pager`.
    ///
    /// # Errors
    /// When it cannot be written, though somebody wants to read it.
    pub fn paged(
        &self,
        text: &str,
        pager: &Pager,
        document: impl FnOnce() -> Value,
    ) -> io::Result<()> {
        match self.format {
            OutputFormat::Text => self.console.paged(text, pager),
            _ => self.result(text, document),
        }
    }

    /// Prints an agent's answer; nothing where programs read, which get the record.
    ///
    /// # Errors
    /// When it cannot be written, though somebody wants to read it.
    pub fn answer(&self, text: &str) -> io::Result<()> {
        match self.format {
            OutputFormat::Text => self.console.answer(text),
            OutputFormat::Json | OutputFormat::JsonL => Ok(()),
        }
    }

    /// Prints why it failed: for the person, and for the program.
    pub fn error(
        &self,
        message: &dyn Display,
        hint: Option<&str>,
        log: Option<&str>,
        document: impl FnOnce() -> Value,
    ) {
        self.console.error(message, hint, log);
        if self.format != OutputFormat::Text {
            // What failed is told already.
            let _ = self.result("", document);
        }
    }
}

impl Reporter for Output<'_> {
    fn event(&self, event: &Event) {
        self.console.event(event);
        if self.format == OutputFormat::JsonL {
            self.lines.event(event);
        }
    }

    fn is_live(&self) -> bool {
        self.format == OutputFormat::JsonL || self.console.is_live()
    }

    fn columns(&self) -> Option<usize> {
        self.console.columns()
    }
}

/// Writes what a person reads to stdout. A reader who has gone, as `head` does, has what it wanted.
fn to_stdout(text: &str) -> io::Result<()> {
    match all_to_stdout(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes what a program reads to stdout: a program that has gone has not got it.
fn all_to_stdout(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
