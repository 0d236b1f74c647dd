//! Prints the final output: results and an agent's answer to stdout, or the error.
//!
//! Guarantees that no key is printed, and that nothing printed moves the cursor or is taken for a command by a
//! CI runner.

use std::fmt::Display;
use std::io;

use ratatui::style::Style;
use serde_json::Value;

use super::Output;
use crate::sys::interrupt::Interrupt;
use crate::sys::text;
use crate::ui::markdown::rendered;
use crate::ui::options::{CiRunner, OutputFormat};
use crate::ui::pager::Pager;
use crate::ui::paint::{COLUMNS, diff_line, lines_taken, painted, result_line, size};
use crate::ui::{json, stdout};

/// The prefixes of result lines that end with a path.
const TELLING: [&str; 2] = ["log: ", "done: the page is in "];

impl Output<'_> {
    /// Prints the result as text, which may begin with a unified diff, or as the JSON `document`. Text longer than the
    /// user's terminal is shown with `pager`, if given.
    ///
    /// # Errors
    /// Fails if it cannot be written; a closed stdout is an error only in the JSON formats.
    pub fn result(
        &self,
        (text, is_diff): (&str, bool),
        pager: Option<&Pager>,
        document: impl FnOnce() -> Value,
    ) -> io::Result<()> {
        self.spinner.stop();
        match self.format {
            OutputFormat::Text => self.text(text, is_diff, pager),
            OutputFormat::Csv => self.text(text, is_diff, None),
            OutputFormat::Json | OutputFormat::Sarif => json::document(self.redactor, &document()),
            OutputFormat::JsonL => self.lines.result(&document()),
        }
    }

    /// Prints a document for programs that is already serialized.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn document(&self, text: &str) -> io::Result<()> {
        self.spinner.stop();
        json::text(self.redactor, text)
    }

    /// Prints a report meant for programs even in the text format, so a closed stdout is an error; in other
    /// formats, prints the `document`.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn report(&self, report: &Value, document: impl FnOnce() -> Value) -> io::Result<()> {
        self.spinner.stop();
        match self.format {
            OutputFormat::Text => json::document(self.redactor, report),
            _ => self.result(("", false), None, document),
        }
    }

    fn text(&self, text: &str, is_diff: bool, pager: Option<&Pager>) -> io::Result<()> {
        let ready = self.ready(text, is_diff);
        let size = size(io::stdout()).filter(|_| self.options.stdout_terminal);
        let is_long = |(rows, columns)| lines_taken(&self.redactor.text(text), columns) >= rows;
        let shows =
            |pager: &Pager| Interrupt::never().is_ok_and(|never| pager.show(&ready, &never));
        if size.is_some_and(is_long) && pager.is_some_and(shows) {
            return Ok(());
        }
        stdout::print(&ready)
    }

    /// Prepares a result for stdout.
    fn ready(&self, text: &str, is_diff: bool) -> String {
        let mut text = self.redactor.text(text).into_owned();
        if is_diff {
            // If stdout is not a terminal, a diff stays unchanged byte for byte, so that it can be applied.
            if self.options.stdout_terminal || self.options.runner == CiRunner::Known {
                let lines = text.split_inclusive('\n');
                let colors = self.options.colors.stdout;
                text = self.without_commands(lines.map(|line| diff_line(line, colors)).collect());
            }
        } else {
            text = self.without_commands(text::printable(&text, &['\n', '\t']));
            if self.options.colors.stdout {
                let lines = text.split_inclusive('\n').map(result_line);
                text = lines.map(|line| self.with_link(line)).collect();
            }
        }
        text
    }

    /// Turns the path at the end of the line into a link, if the line has a known prefix.
    fn with_link(&self, line: String) -> String {
        let path = |head: &str| line.strip_prefix(head)?.strip_suffix('\n');
        let found = TELLING.iter().find_map(|head| Some((head, path(head)?)));
        match (&self.links, found) {
            (Some(links), Some((head, path))) => format!("{head}{}\n", links.link(path)),
            _ => line,
        }
    }

    /// Prints an agent's answer, rendering its Markdown on a terminal. Prints nothing in JSON formats, whose
    /// record contains the answer.
    ///
    /// # Errors
    /// Fails if it cannot be written, unless the reader has closed stdout.
    pub fn answer(&self, text: &str) -> io::Result<()> {
        if self.format != OutputFormat::Text {
            return Ok(());
        }
        self.spinner.stop();
        if !self.options.stdout_terminal {
            return stdout::print(&self.ready(&format!("{text}{}", text::line_end(text)), false));
        }
        let columns = self.stdout_columns().unwrap_or(COLUMNS).saturating_sub(1);
        let text = self.redactor.text(text);
        let colors = self.options.colors.stdout;
        let lines = rendered(&text, columns, colors, None).into_iter();
        let text = lines.map(|line| painted(&line, colors) + "\n").collect();
        stdout::print(&self.without_commands(text))
    }

    /// Prints the reason for the failure and the run's folder, for the user and for the program that reads
    /// stdout.
    pub fn error(
        &self,
        message: &dyn Display,
        hint: Option<&str>,
        log: Option<&str>,
        document: impl FnOnce() -> Value,
    ) {
        self.spinner.stop();
        self.sentence("error:", Style::new().red().bold(), &message.to_string());
        if let Some(hint) = hint {
            self.sentence("hint:", Style::new(), hint);
        }
        if let Some(log) = log {
            let links = self.links.as_ref().filter(|_| self.options.colors.stderr);
            let path = self.printable(log);
            let linked = links.map(|links| links.link(&path));
            self.print(&format!("log: {}", linked.unwrap_or(path)), "");
        }
        if self.format != OutputFormat::Text {
            // A write error would only obscure the failure already printed.
            let _ = self.result(("", false), None, document);
        }
    }
}
