//! `chat_history.log`: everything that the user was shown and has said in a session, entry by entry.
//!
//! Appends to that file, and never changes what is in it. Guarantees that an entry begins on a line of its own, whatever
//! was cut short before it, that no text within an entry looks like the beginning of another or moves a reader's
//! cursor, and that no known key is written.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use chrono::SecondsFormat;
use regex::Regex;
use serde_json::Value;

use crate::project::changed_files::EditsRecord;
use crate::record::event::{Event, Reporter};
use crate::secret::Redactor;
use crate::sys::environment::Clock;
use crate::sys::files::{self, PathError};
use crate::sys::text::{printable, regex};

/// The file's name, in a session's folder.
pub const CHAT_LOG: &str = "chat_history.log";

/// The width of the table of changes.
const STAT_WIDTH: usize = 80;

/// The beginning of an entry, as far as a line can be mistaken for one.
static ENTRY: LazyLock<Regex> = LazyLock::new(|| regex(r"^\[[0-9]{4}-[0-9]{2}-[0-9]{2}T"));

/// The speaker of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChatEntryKind {
    System,
    User,
    Agent,
    ToolCall,
    ToolResult,
}

impl ChatEntryKind {
    fn name(self) -> &'static str {
        match self {
            Self::System => "SYSTEM",
            Self::User => "USER",
            Self::Agent => "AGENT",
            Self::ToolCall => "TOOL_CALL",
            Self::ToolResult => "TOOL_RESULT",
        }
    }
}

/// A session's log. A write that fails ends nothing: the first failure is kept for the caller.
pub struct ChatLog<'r> {
    file: File,
    path: PathBuf,
    clock: &'r dyn Clock,
    redactor: &'r Redactor,
    problem: RefCell<Option<PathError>>,
}

impl<'r> ChatLog<'r> {
    /// Opens the log at `path`, and makes it where it is missing. Who calls it holds the session.
    ///
    /// # Errors
    /// If it is no file, a link included, or cannot be opened.
    pub fn open(
        path: &Path,
        clock: &'r dyn Clock,
        redactor: &'r Redactor,
    ) -> Result<Self, PathError> {
        Ok(Self {
            file: files::append_private(path).map_err(PathError::of("write", path))?,
            path: path.to_owned(),
            clock,
            redactor,
            problem: RefCell::default(),
        })
    }

    /// Notes the program's own words.
    pub fn system(&self, text: &str) {
        self.append(ChatEntryKind::System, text);
    }

    /// Notes what the user has said.
    pub fn user(&self, text: &str) {
        self.append(ChatEntryKind::User, text);
    }

    /// Notes what the agent has said.
    pub fn agent(&self, text: &str) {
        self.append(ChatEntryKind::Agent, text);
    }

    /// Notes that the agent uses a tool.
    pub fn tool_call(&self, name: &str, arguments: &Value) {
        let (name, arguments) = (self.redactor.text(name), self.redactor.json(arguments));
        self.append_redacted(ChatEntryKind::ToolCall, &format!("{name}({arguments})"));
    }

    /// Notes what is shown.
    pub fn event(&self, event: &Event) {
        match event {
            Event::Tool {
                name, arguments, ..
            } => self.tool_call(name, arguments),
            Event::Heard { question, answer } => {
                self.system(question.trim_end());
                self.user(answer.as_deref().unwrap_or_default());
            }
            event => {
                if let Some((kind, text)) = entry(event) {
                    self.append(kind, &text);
                }
            }
        }
    }

    /// Notes that the plan was shown: the whole document.
    pub fn plan_shown(&self, document: &str) {
        let document = document.strip_suffix('\n').unwrap_or(document);
        self.agent(&format!("Here's the current plan:\n\n---\n{document}\n---"));
    }

    /// Takes the error of the first entry that could not be written, if any.
    pub fn take_problem(&self) -> Option<PathError> {
        self.problem.take()
    }

    fn append(&self, kind: ChatEntryKind, text: &str) {
        // Before anything else: what changes a text could cut a key.
        self.append_redacted(kind, &self.redactor.text(text));
    }

    fn append_redacted(&self, kind: ChatEntryKind, text: &str) {
        let time = self.clock.now().to_utc();
        let time = time.to_rfc3339_opts(SecondsFormat::Millis, true);
        let entry = format!("[{time}] {}: {}\n", kind.name(), content(text));
        let written = self.write(&entry);
        if let Err(error) = written {
            let problem = PathError::of("write", &self.path)(error);
            self.problem.borrow_mut().get_or_insert(problem);
        }
    }

    /// Writes an entry; ends the one before it, where a kill or a full disk has cut that short.
    fn write(&self, entry: &str) -> io::Result<()> {
        let mut last = [b'\n'];
        if let Some(end) = self.file.metadata()?.len().checked_sub(1) {
            self.file.read_exact_at(&mut last, end)?;
        }
        let end = if last == [b'\n'] { "" } else { "\n" };
        (&self.file).write_all(format!("{end}{entry}").as_bytes())
    }
}

/// A text as it stands in an entry.
fn content(text: &str) -> String {
    let lines = text.lines().map(|line| printable(line, &['\t']));
    let lines = lines.enumerate().map(|(at, line)| match at {
        1.. if ENTRY.is_match(&line) => format!(" {line}"),
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Notes in a log what is shown, and has it shown.
pub struct ChatReporter<'a> {
    /// Shows the events.
    pub inner: &'a dyn Reporter,
    /// Notes the events.
    pub log: &'a ChatLog<'a>,
}

impl Reporter for ChatReporter<'_> {
    fn event(&self, event: &Event) {
        // First, so that a kill cannot leave out what was seen.
        self.log.event(event);
        self.inner.event(event);
    }

    fn is_live(&self) -> bool {
        self.inner.is_live()
    }

    fn columns(&self) -> Option<usize> {
        self.inner.columns()
    }
}

/// The entry for an event; `None` for what only moves on the screen, since other events follow.
fn entry(event: &Event) -> Option<(ChatEntryKind, String)> {
    let said = |text: &String| Some((ChatEntryKind::Agent, text.clone()));
    let told = |text: String| Some((ChatEntryKind::System, text));
    match event {
        Event::Asking { .. }
        | Event::Receiving { .. }
        | Event::Answered { .. }
        | Event::Building { .. }
        | Event::Printed(_)
        | Event::Progress { .. }
        | Event::Heard { .. }
        | Event::Waiting { .. }
        | Event::Tool { .. } => None,
        Event::Prose(text) | Event::Thoughts(text) | Event::Words(text) => said(text),
        Event::ToolResult { text, failed, .. } => {
            let mark = if *failed { "❌ Error: " } else { "" };
            Some((ChatEntryKind::ToolResult, format!("{mark}{text}")))
        }
        Event::Tasks(tasks) => {
            let tasks = tasks.iter().map(ToString::to_string);
            told(tasks.collect::<Vec<_>>().join("\n"))
        }
        Event::Todos(todos) => {
            let todos = todos.iter().map(|todo| todo.shown().to_owned());
            told(todos.collect::<Vec<_>>().join("\n"))
        }
        Event::Notice(text) | Event::Status(text) | Event::Shown(text) => told(text.clone()),
        Event::Changed { diff } => told(diff.clone()),
        Event::Warning(text) => told(format!("warning: {text}")),
        Event::Started { log } => told(format!("log: {log}")),
        Event::Retrying {
            next_try, reason, ..
        } => told(format!("{reason}; try {next_try} follows")),
        Event::Applied(edits) => told(format!("applied: {}", paths(edits))),
        Event::PutBack(edits) => told(format!("undone: {}", paths(edits))),
        Event::Uncontained { reason } => told(format!("sandbox: none: {reason}")),
        Event::Built {
            status, reasons, ..
        } => told(with_lines(format!("build.sh: {status}"), reasons)),
        Event::Reviewed {
            warnings,
            told: earlier,
            stat,
        } => {
            let warnings = warnings.iter().skip(*earlier);
            let warnings = warnings.map(|text| format!("warning: {text}"));
            told(with_lines(
                stat.text(STAT_WIDTH),
                &warnings.collect::<Vec<_>>(),
            ))
        }
        Event::Finished { summary, log } => {
            let log = log.iter().map(|log| format!("log: {log}"));
            said(&with_lines(summary.clone(), &log.collect::<Vec<_>>()))
        }
        Event::Failed { error, hint, log } => {
            let hint = hint.iter().map(|hint| format!("hint: {hint}"));
            let log = log.iter().map(|log| format!("log: {log}"));
            let more: Vec<_> = hint.chain(log).collect();
            told(with_lines(format!("error: {error}"), &more))
        }
        Event::Session { id, resumed } => {
            let begun = if *resumed { "resumed" } else { "new session" };
            told(format!("session {id} ({begun})"))
        }
        Event::Malformed {
            fault,
            failures,
            allowed,
        } => told(format!(
            "reply not understood ({failures} of {allowed}): {fault}"
        )),
        Event::Connected { server, .. } => told(format!("tool server: {server}")),
        Event::BranchEnded { branch, status, .. } => told(format!("branch {branch}: {status}")),
        Event::Auditing => told("an independent audit begins".to_owned()),
        Event::Audited { passed, text } => {
            let outcome = if *passed { "passed" } else { "failed" };
            told(format!("audit {outcome}: {text}"))
        }
        Event::Compressed {
            tokens_before,
            tokens_after,
        } => told(format!(
            "context compressed: {tokens_before} → {tokens_after} tokens"
        )),
    }
}

/// A text, and lines below it.
fn with_lines(mut text: String, lines: &[String]) -> String {
    for line in lines {
        text.push('\n');
        text.push_str(line);
    }
    text
}

/// The files that were changed, a line for each.
fn paths(edits: &EditsRecord) -> String {
    let (written, removed) = (edits.written.len(), edits.removed.len());
    let removals = edits.removed.iter().map(|path| format!("{path} (removed)"));
    let paths: Vec<_> = edits.written.iter().cloned().chain(removals).collect();
    with_lines(format!("{written} written, {removed} removed"), &paths)
}

#[cfg(test)]
mod tests;
