//! The outcome of a workflow. Plain data.

use chrono::{DateTime, FixedOffset};
use serde_json::Value;

use crate::record::event::Event;
use crate::record::result::{self, RunRecord, TreeState};
use crate::record::seconds::Seconds;
use crate::sys::error::Error;

/// The outcome of a successful run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// A summary of the result; empty if the command does not print one.
    pub summary: String,
    /// True if the summary is a model's answer, in Markdown.
    pub is_answer: bool,
    /// The requested output as plain text, such as a diff or a list.
    pub text: Option<String>,
    /// True if the text is a unified diff.
    pub is_diff: bool,
    /// True if the text is a document for programs, in a JSON format.
    pub is_document: bool,
    /// True if output longer than the terminal is shown in a pager.
    pub is_paged: bool,
    /// The same output as data, for programs.
    pub data: Option<Value>,
    /// Data for programs, printed instead of the text on stdout; failing to print it is an error.
    pub report: Option<Box<Value>>,
    /// The run's folder, relative to the directory of the command, if it has one.
    pub log: Option<String>,
    /// Warnings for the user that no run has shown yet.
    pub warnings: Vec<String>,
    /// A suggestion for the next step.
    pub next: Option<String>,
    /// The run's record, if it has one.
    pub record: Option<Box<RunRecord>>,
}

/// Converts the result and the record of a run to an outcome or a failure.
pub fn ended(result: Result<String, Error>, record: RunRecord) -> Result<Outcome, Failure> {
    let (log, tree) = (record.log.clone(), record.tree);
    let record = Some(Box::new(record));
    match result {
        Ok(summary) => Ok(Outcome {
            log,
            record,
            ..Outcome::new(summary)
        }),
        Err(error) => Err(Failure {
            tree,
            log,
            record,
            ..error.into()
        }),
    }
}

impl Outcome {
    /// Creates an outcome that consists of one sentence.
    pub fn new(summary: impl Into<String>) -> Self {
        Self {
            summary: summary.into(),
            ..Self::default()
        }
    }

    /// Creates an outcome that is a document for programs as text, which may be large.
    pub fn document(text: String) -> Self {
        Self {
            text: Some(text + "\n"),
            is_document: true,
            ..Self::default()
        }
    }

    /// Creates an outcome that is one of the program's own documents, printed verbatim.
    pub fn verbatim(text: Vec<u8>) -> Self {
        Self {
            text: Some(String::from_utf8(text).unwrap_or_default()),
            ..Self::default()
        }
    }

    /// Creates an outcome that consists of the requested output, as text and as data.
    pub fn shown(text: impl Into<String>, data: Value) -> Self {
        Self {
            text: Some(text.into()),
            data: Some(data),
            ..Self::default()
        }
    }

    /// Returns the same outcome with this summary.
    pub fn with_summary(mut self, summary: impl Into<String>) -> Self {
        self.summary = summary.into();
        self
    }

    /// Returns the same outcome as data, too.
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }
}

/// The outcome of a run that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The reason it failed.
    pub error: Error,
    /// The function that finds the hint for the error.
    pub advice: Advice,
    /// The state of the project's files.
    pub tree: TreeState,
    /// The run's folder, relative to the directory of the command, if it was created.
    pub log: Option<String>,
    /// The run's record, if it has one.
    pub record: Option<Box<RunRecord>>,
    /// Output that can be shown despite the failure, as text.
    pub text: Option<String>,
    /// True if the text is a unified diff.
    pub is_diff: bool,
    /// The same output for a program that reads it, even when stdout gets text.
    pub report: Option<Box<Value>>,
}

impl Failure {
    /// Adds the record of a command that failed before it had a run; `began` and `ended` are the times of the command.
    pub fn recorded(mut self, command: &str, [began, ended]: [DateTime<FixedOffset>; 2]) -> Self {
        if self.record.is_none() {
            let mut record = RunRecord::new("", self.error.exit(), began);
            record.seconds = Seconds((ended - began).to_std().unwrap_or_default());
            record.workflow = command.to_owned().into();
            record.end_with(&self.error, self.hint());
            self.record = Some(Box::new(record));
        }
        self
    }

    /// Returns the hint for the error, with the state of the project's files.
    pub fn hint(&self) -> Option<String> {
        result::hint((self.advice)(&self.error), self.tree)
    }

    /// Returns the event that reports it.
    pub fn event(&self) -> Event {
        Event::Failed {
            error: self.error.to_string(),
            hint: self.hint(),
            log: self.log.clone(),
        }
    }
}

/// A function that finds the hint for an error; a command may supply hints of its own.
pub(crate) type Advice = fn(&Error) -> Option<String>;

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self {
            error: error.into(),
            advice: Error::hint,
            tree: TreeState::Unchanged,
            log: None,
            record: None,
            text: None,
            is_diff: false,
            report: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::error::ApplyError;
    use crate::sys::files::PathError;
    use std::io;

    #[test]
    fn a_hint_says_one_thing_of_what_has_become_of_the_project() {
        let failed = PathError::of("write", "a")(io::Error::from(io::ErrorKind::StorageFull));
        let failure = Failure {
            tree: TreeState::Changed,
            ..ApplyError::RolledBack(failed).into()
        };
        let hint = failure.hint().unwrap();
        assert!(
            hint.contains("is still there") && !hint.contains("nothing"),
            "{hint}"
        );
    }
}
