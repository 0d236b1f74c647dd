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
    /// The requested output.
    pub output: RunOutput,
    /// True if output longer than the terminal is shown in a pager.
    pub is_paged: bool,
    /// The same output as data, for programs.
    pub data: Option<Value>,
    /// Warnings for the user that no run has shown yet.
    pub warnings: Vec<String>,
    /// A suggestion for the next step.
    pub next: Option<String>,
}

/// The output of a command, whether or not it succeeded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunOutput {
    /// The text for stdout, such as a diff or a list.
    pub text: Option<String>,
    /// The form of the text.
    pub form: TextForm,
    /// Data for programs, printed on stdout instead of the text of a success, or after that of a failure. Failing to
    /// print it is an error.
    pub report: Option<Box<Value>>,
    /// The run's folder, relative to the directory of the command, if it has one.
    pub log: Option<String>,
    /// The run's record, if it has one.
    pub record: Option<Box<RunRecord>>,
}

/// The form of a text for stdout.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TextForm {
    #[default]
    Plain,
    /// A unified diff.
    Diff,
    /// A document for programs, in a JSON format.
    Document,
}

impl RunOutput {
    /// Returns the output of a command, whether or not it succeeded.
    pub(crate) fn of(done: &mut Result<Outcome, Failure>) -> &mut Self {
        match done {
            Ok(outcome) => &mut outcome.output,
            Err(failure) => &mut failure.output,
        }
    }

    /// Makes a unified diff the text.
    pub fn set_diff(&mut self, diff: String) {
        if !diff.is_empty() {
            self.form = TextForm::Diff;
        }
        self.text = Some(diff);
    }
}

impl From<String> for RunOutput {
    fn from(text: String) -> Self {
        Self {
            text: Some(text),
            ..Self::default()
        }
    }
}

/// Converts the result and the record of a run to an outcome or a failure.
pub fn ended(result: Result<String, Error>, record: RunRecord) -> Result<Outcome, Failure> {
    let tree = record.tree;
    let output = RunOutput {
        log: record.log.clone(),
        record: Some(Box::new(record)),
        ..RunOutput::default()
    };
    match result {
        Ok(summary) => Ok(Outcome {
            output,
            ..Outcome::new(summary)
        }),
        Err(error) => Err(Failure {
            tree,
            output,
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
            output: RunOutput {
                form: TextForm::Document,
                ..(text + "\n").into()
            },
            ..Self::default()
        }
    }

    /// Creates an outcome that is one of the program's own documents, printed verbatim.
    pub fn verbatim(text: Vec<u8>) -> Self {
        Self {
            output: String::from_utf8(text).unwrap_or_default().into(),
            ..Self::default()
        }
    }

    /// Creates an outcome that consists of the requested output, as text and as data.
    pub fn shown(text: impl Into<String>, data: Value) -> Self {
        Self {
            output: text.into().into(),
            data: Some(data),
            ..Self::default()
        }
    }

    /// Returns the same outcome with this summary.
    pub fn with_summary(mut self, summary: impl Into<String>) -> Self {
        self.summary = summary.into();
        self
    }

    /// Returns the event that reports it.
    pub fn event(&self) -> Event {
        Event::Finished {
            summary: self.summary.clone(),
            log: self.output.log.clone(),
        }
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
    /// Output that can be shown despite the failure.
    pub output: RunOutput,
}

impl Failure {
    /// Adds the record of a command that failed before it had a run; `began` and `ended` are the times of the command.
    pub fn recorded(mut self, command: &str, [began, ended]: [DateTime<FixedOffset>; 2]) -> Self {
        if self.output.record.is_none() {
            let mut record = RunRecord::new("", self.error.exit(), began);
            record.seconds = Seconds((ended - began).to_std().unwrap_or_default());
            record.workflow = command.to_owned().into();
            record.end_with(&self.error, self.hint());
            self.output.record = Some(Box::new(record));
        }
        self
    }

    /// Returns the hint for the error, with the state of the project's files.
    pub fn hint(&self) -> Option<String> {
        result::hint((self.advice)(&self.error), self.tree)
    }

    /// Returns the same failure with a text that is worth reading despite it.
    pub fn with_text(mut self, text: impl Into<Option<String>>) -> Self {
        self.output.text = text.into().or(self.output.text);
        self
    }

    /// Returns the event that reports it.
    pub fn event(&self) -> Event {
        Event::Failed {
            error: self.error.to_string(),
            hint: self.hint(),
            log: self.output.log.clone(),
        }
    }
}

/// Returns the record of a run, if there is one, whether or not the run succeeded.
pub(crate) fn record_of(done: &Result<Outcome, Failure>) -> Option<&RunRecord> {
    let output = match done {
        Ok(outcome) => &outcome.output,
        Err(failure) => &failure.output,
    };
    output.record.as_deref()
}

/// A function that finds the hint for an error; a command may supply hints of its own.
pub(crate) type Advice = fn(&Error) -> Option<String>;

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self {
            error: error.into(),
            advice: Error::hint,
            tree: TreeState::Unchanged,
            output: RunOutput::default(),
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
