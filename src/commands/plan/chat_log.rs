//! `chat_history.log`: everything that the user was shown or typed in a session, entry by entry.
//!
//! Only appends to that file. Guarantees that every entry begins on a new line, even after one that was cut short; that
//! no text within an entry looks like the beginning of another or contains terminal control characters; and that no
//! known key is written.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use chrono::SecondsFormat;
use regex::Regex;
use serde_json::Value;

use crate::record::event::{Event, Reporter};
use crate::secret::Redactor;
use crate::sys::environment::Clock;
use crate::sys::files::{self, PathError};
use crate::sys::text::{printable, regex};
use crate::ui::present::{Part, present};

/// The file's name, in a session's folder.
pub const CHAT_LOG: &str = "chat_history.log";

/// The width of the table of changes, in columns.
const STAT_WIDTH: usize = 80;

/// Matches a line that could be mistaken for the beginning of an entry.
static ENTRY: LazyLock<Regex> = LazyLock::new(|| regex(r"^\[[0-9]{4}-[0-9]{2}-[0-9]{2}T"));

/// The program's name in entries.
pub const SYSTEM: &str = "SYSTEM";
/// The user's name in entries.
pub const USER: &str = "USER";
/// The names of the other sources of entries.
const AGENT: &str = "AGENT";
const TOOL_CALL: &str = "TOOL_CALL";
const TOOL_RESULT: &str = "TOOL_RESULT";

/// A session's chat log, which forwards the events that it records. Failed writes are not fatal: only the first one is
/// reported, as a warning.
pub struct ChatLog<'r> {
    file: File,
    path: PathBuf,
    clock: &'r dyn Clock,
    redactor: &'r Redactor,
    /// Receives the events after they are recorded.
    inner: &'r dyn Reporter,
    has_failed: Cell<bool>,
}

impl<'r> ChatLog<'r> {
    /// Opens the log at `path`, and creates it if it is missing. The caller must hold the session's lock.
    ///
    /// # Errors
    /// Fails if the path is a link or anything else that is not a regular file, or cannot be opened.
    pub fn open(
        path: &Path,
        clock: &'r dyn Clock,
        redactor: &'r Redactor,
        inner: &'r dyn Reporter,
    ) -> Result<Self, PathError> {
        Ok(Self {
            file: files::append_private(path).map_err(PathError::of("write", path))?,
            path: path.to_owned(),
            clock,
            redactor,
            inner,
            has_failed: Cell::new(false),
        })
    }

    /// Records a tool call.
    fn tool_call(&self, name: &str, arguments: &Value) {
        let (name, arguments) = (self.redactor.text(name), self.redactor.json(arguments));
        self.append_redacted(TOOL_CALL, &format!("{name}({arguments})"));
    }

    /// Records an event without forwarding it.
    pub fn record(&self, event: &Event) {
        match event {
            Event::Tool {
                name, arguments, ..
            } => self.tool_call(name, arguments),
            Event::Prompted(question) => self.append(SYSTEM, question.trim_end()),
            Event::Heard { answer, .. } => self.append(USER, answer.as_deref().unwrap_or_default()),
            event => {
                if let Some((speaker, text)) = entry(event) {
                    self.append(speaker, &text);
                }
            }
        }
    }

    /// Records that the plan was shown, with the whole document.
    pub fn plan_shown(&self, document: &str) {
        let document = document.strip_suffix('\n').unwrap_or(document);
        let shown = format!("Here's the current plan:\n\n---\n{document}\n---");
        self.append(AGENT, &shown);
    }

    /// Records a speaker's message.
    pub fn append(&self, speaker: &str, text: &str) {
        // Redact first, since any other change to the text could split a key.
        self.append_redacted(speaker, &self.redactor.text(text));
    }

    fn append_redacted(&self, speaker: &str, text: &str) {
        let now = self.clock.now().to_utc();
        let time = now.to_rfc3339_opts(SecondsFormat::Millis, true);
        let entry = format!("[{time}] {speaker}: {}\n", content(text));
        if let Err(error) = self.write(&entry)
            && !self.has_failed.replace(true)
        {
            let problem = PathError::of("write", &self.path)(error);
            self.inner.event(&Event::Warning(problem.to_string()));
        }
    }

    /// Writes an entry on a new line, even if a kill or a full disk has cut the previous one short.
    fn write(&self, entry: &str) -> io::Result<()> {
        let mut last = [b'\n'];
        if let Some(end) = self.file.metadata()?.len().checked_sub(1) {
            self.file.read_exact_at(&mut last, end)?;
        }
        let end = if last == [b'\n'] { "" } else { "\n" };
        (&self.file).write_all(format!("{end}{entry}").as_bytes())
    }
}

/// Formats a text for an entry.
fn content(text: &str) -> String {
    let lines = text.lines().map(|line| printable(line, &['\t']));
    joined(lines.enumerate().map(|(at, line)| match at {
        1.. if ENTRY.is_match(&line) => format!(" {line}"),
        _ => line,
    }))
}

impl Reporter for ChatLog<'_> {
    fn event(&self, event: &Event) {
        // Record first, so that a kill cannot lose an event that was shown.
        self.record(event);
        self.inner.event(event);
    }

    fn is_live(&self) -> bool {
        self.inner.is_live()
    }

    fn columns(&self) -> Option<usize> {
        self.inner.columns()
    }

    fn pause(&self) {
        self.inner.pause();
    }
}

/// Returns the entry for an event; `None` for transient events that others follow, and for events that never occur in a
/// run of `plan`.
fn entry(event: &Event) -> Option<(&'static str, String)> {
    let text = match event {
        Event::Prose(text) | Event::Thoughts(text) | Event::Words(text) => {
            return Some((AGENT, text.clone()));
        }
        Event::Finished { .. } => return Some((AGENT, shown(event)?)),
        Event::ToolResult { end, .. } => {
            let mark = if end.failed { "❌ Error: " } else { "" };
            return Some((TOOL_RESULT, format!("{mark}{}", end.text)));
        }
        Event::Tasks(tasks) => joined(tasks.iter().map(ToString::to_string)),
        Event::Changed { diff } => diff.clone(),
        Event::Reviewed {
            warnings,
            shown,
            stat,
        } => {
            let new = warnings.iter().skip(*shown);
            let lines = new.map(|text| format!("warning: {text}"));
            joined(std::iter::once(stat.text(STAT_WIDTH)).chain(lines))
        }
        Event::Started { .. }
        | Event::Retrying { .. }
        | Event::PutBack(_)
        | Event::Uncontained { .. }
        | Event::Built { .. }
        | Event::Warning(_)
        | Event::Notice(_)
        | Event::Shown(_)
        | Event::ShownDiff(_)
        | Event::Failed { .. }
        | Event::Session { .. }
        | Event::Malformed { .. } => shown(event)?,
        _ => return None,
    };
    Some((SYSTEM, text))
}

/// Returns the text of an event as shown, without a title above it.
fn shown(event: &Event) -> Option<String> {
    let shown = present(event)?;
    let before = match &shown {
        shown if shown.is_error => "error: ".to_owned(),
        shown if shown.is_title_spared => String::new(),
        shown => format!("{} {}\n", shown.verb, shown.subject),
    };
    let body = joined(shown.body.iter().map(Part::text));
    Some(before.trim_start().to_owned() + &body)
}

fn joined(lines: impl Iterator<Item = String>) -> String {
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
