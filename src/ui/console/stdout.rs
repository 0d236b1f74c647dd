//! The contents of stdout: results, an agent's answer, and an exchange as it happens, if that is mirrored.
//!
//! Guarantees that no key is printed, and that nothing printed moves the cursor or is obeyed by a CI runner.

use std::io;

use serde_json::Value;

use super::{Output, WIDEST};
use crate::record::event::Event;
use crate::sys::text;
use crate::ui::markdown::{rendered, uncolored};
use crate::ui::options::{CiRunner, OutputFormat};
use crate::ui::pager::Pager;
use crate::ui::paint::{diff_line, lines_taken, painted, size, told_line};
use crate::ui::{json, mirror, stdout};

/// The prefixes of a result's lines that name a path.
const TELLING: [&str; 2] = ["log: ", "done: the page is in "];

impl Output<'_> {
    /// Shows what belongs to an exchange, where that is mirrored. Whether it is no progress, then.
    pub(super) fn mirrored(&self, event: &Event) -> bool {
        let columns = self
            .stdout_columns()
            .map(|columns| columns.saturating_sub(1));
        let columns = columns.unwrap_or(WIDEST);
        let lines = self
            .options
            .mirrors
            .then(|| mirror::lines(event, self.redactor, columns));
        let Some(lines) = lines.flatten() else {
            return false;
        };
        // A terminal shows by itself what is typed there.
        if !(self.options.echoes && matches!(event, Event::Heard { .. })) {
            self.spinner.stop();
            let text = lines.iter().map(|line| format!("{line}\n")).collect();
            // What comes at the end tells that nobody can read this.
            let _ = stdout::told(&self.commanding_nobody(text));
        }
        true
    }

    /// Prints the result: the text, or what stands for it.
    ///
    /// # Errors
    /// When it cannot be written, though somebody wants to read it.
    pub fn result(&self, text: &str, document: impl FnOnce() -> Value) -> io::Result<()> {
        self.spinner.stop();
        match self.format {
            OutputFormat::Text => stdout::told(&self.ready(text)),
            OutputFormat::Json => json::document(self.redactor, &document()),
            OutputFormat::JsonL => self.lines.result(&document()),
        }
    }

    /// Prints what a program reads where others get text; its reader must not go. Else what stands for it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn report(&self, report: &Value, document: impl FnOnce() -> Value) -> io::Result<()> {
        self.spinner.stop();
        match self.format {
            OutputFormat::Text => json::document(self.redactor, report),
            _ => self.result("", document),
        }
    }

    /// Prints the result as [`Self::result`] does; a text that has more lines than the terminal of somebody who looks on
    /// by `pager`.
    ///
    /// # Errors
    /// When it cannot be written, though somebody wants to read it.
    pub fn paged(
        &self,
        text: &str,
        pager: &Pager,
        document: impl FnOnce() -> Value,
    ) -> io::Result<()> {
        if self.format != OutputFormat::Text {
            return self.result(text, document);
        }
        self.spinner.stop();
        let size = size(io::stdout()).filter(|_| self.options.stdout_terminal);
        let redacted = self.redactor.text(text);
        let is_long = size.is_some_and(|(rows, columns)| lines_taken(&redacted, columns) >= rows);
        let text = self.ready(text);
        if is_long && pager.show(&text, None) {
            return Ok(());
        }
        stdout::told(&text)
    }

    /// A result as stdout gets it.
    fn ready(&self, text: &str) -> String {
        let mut text = self.redactor.text(text).into_owned();
        if text.starts_with("diff --git ") {
            // Elsewhere as bytes: it may be applied.
            if self.options.stdout_terminal || self.options.runner == CiRunner::Told {
                let lines = text.split_inclusive('\n');
                let colors = self.options.colors.stdout;
                let lines = lines.map(|line| diff_line(line, colors)).collect();
                text = self.commanding_nobody(lines);
            }
        } else {
            text = self.commanding_nobody(text::printable(&text, &['\n', '\t']));
            if self.options.colors.stdout {
                let lines = text.split_inclusive('\n').map(told_line);
                text = lines.map(|line| self.with_link(line)).collect();
            }
        }
        text
    }

    /// The line with a link on the path that it ends with, where it tells one.
    fn with_link(&self, line: String) -> String {
        let path = |told: &str| line.strip_prefix(told)?.strip_suffix('\n');
        let found = TELLING.iter().find_map(|told| Some((told, path(told)?)));
        match (&self.links, found) {
            (Some(links), Some((told, path))) => format!("{told}{}\n", links.link(path)),
            _ => line,
        }
    }

    /// Returns the number of columns stdout has, where it is a terminal.
    pub(super) fn stdout_columns(&self) -> Option<usize> {
        let size = size(io::stdout()).filter(|_| self.options.stdout_terminal);
        size.map(|(_, columns)| columns)
    }

    /// Prints an agent's answer: at a terminal, as its Markdown means it; nothing where programs read, which get the
    /// record.
    ///
    /// # Errors
    /// When it cannot be written, though somebody wants to read it.
    pub fn answer(&self, text: &str) -> io::Result<()> {
        if self.format != OutputFormat::Text {
            return Ok(());
        }
        self.spinner.stop();
        if !self.options.stdout_terminal {
            return stdout::told(&self.ready(&format!("{text}{}", text::line_end(text))));
        }
        let columns = self.stdout_columns().unwrap_or(80).saturating_sub(1);
        let text = self.redactor.text(text);
        let colors = self.options.colors.stdout;
        let lines = rendered(&text, columns, colors, &uncolored).into_iter();
        let text = lines.map(|line| painted(&line, colors) + "\n").collect();
        stdout::told(&self.commanding_nobody(text))
    }
}
