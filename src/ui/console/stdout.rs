//! The contents of stdout: results, an agent's answer, and an exchange as it happens, if that is mirrored.
//!
//! Guarantees that no key is printed, and that nothing printed moves the cursor or is obeyed by a CI runner.

use std::io;

use super::{Console, WIDEST};
use crate::record::event::Event;
use crate::sys::text;
use crate::ui::markdown::{rendered, uncolored};
use crate::ui::options::CiRunner;
use crate::ui::pager::Pager;
use crate::ui::paint::{diff_line, lines_taken, painted, size, told_line};
use crate::ui::{mirror, to_stdout};

/// The prefixes of a result's lines that name a path.
const TELLING: [&str; 2] = ["log: ", "done: the page is in "];

impl Console<'_> {
    /// Shows what belongs to an exchange, where that is mirrored. Whether it is no progress, then.
    pub(super) fn mirrored(&self, event: &Event) -> bool {
        let columns = self.columns().map(|columns| columns.saturating_sub(1));
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
            let _ = to_stdout(&self.commanding_nobody(text));
        }
        true
    }

    /// Prints the run's result to stdout.
    ///
    /// # Errors
    /// When it cannot be written, though somebody wants to read it.
    pub fn result(&self, text: &str) -> io::Result<()> {
        self.spinner.stop();
        to_stdout(&self.ready(text))
    }

    /// Prints it by `pager`, where somebody looks on and it has more lines than the terminal.
    ///
    /// # Errors
    /// When it cannot be written, though somebody wants to read it.
    pub fn paged(&self, text: &str, pager: &Pager) -> io::Result<()> {
        self.spinner.stop();
        let size = size(io::stdout()).filter(|_| self.options.stdout_terminal);
        let redacted = self.redactor.text(text);
        let is_long = size.is_some_and(|(rows, columns)| lines_taken(&redacted, columns) >= rows);
        let text = self.ready(text);
        if is_long && pager.show(&text, None) {
            return Ok(());
        }
        to_stdout(&text)
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
    pub fn columns(&self) -> Option<usize> {
        let size = size(io::stdout()).filter(|_| self.options.stdout_terminal);
        size.map(|(_, columns)| columns)
    }

    /// Prints an agent's answer to stdout: at a terminal, as its Markdown means it.
    ///
    /// # Errors
    /// When it cannot be written, though somebody wants to read it.
    pub fn answer(&self, text: &str) -> io::Result<()> {
        if !self.options.stdout_terminal {
            return self.result(&format!("{text}{}", text::line_end(text)));
        }
        self.spinner.stop();
        let columns = self.columns().unwrap_or(80).saturating_sub(1);
        let text = self.redactor.text(text);
        let colors = self.options.colors.stdout;
        let lines = rendered(&text, columns, colors, &uncolored).into_iter();
        let text = lines.map(|line| painted(&line, colors) + "\n").collect();
        to_stdout(&self.commanding_nobody(text))
    }
}
