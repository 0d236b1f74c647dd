//! The outcome of a workflow. Plain data.

use serde_json::Value;

use crate::record::result::{self, RunRecord, TreeState};
use crate::sys::error::Error;

/// A run that did what it was started for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// A summary of the result; empty where the command is quiet about it.
    pub summary: String,
    /// True if that is a model's answer, in Markdown.
    pub is_answer: bool,
    /// The requested output, as plain text: a diff, a list.
    pub text: Option<String>,
    /// True if a pager shows it where it is longer than the terminal.
    pub is_paged: bool,
    /// The same for programs.
    pub data: Option<Value>,
    /// Data for programs even where stdout gets text: it is printed alone, and it is an error where it cannot be.
    pub report: Option<Box<Value>>,
    /// The run's folder, relative to the directory of the command, where it has one.
    pub log: Option<String>,
    /// Warnings for the user, where no run has told them.
    pub warnings: Vec<String>,
    /// A suggestion for the next step.
    pub next: Option<String>,
    /// The run's record, where it has one.
    pub record: Option<Box<RunRecord>>,
}

impl Outcome {
    /// An outcome that has but a sentence to say.
    pub fn said(summary: impl Into<String>) -> Self {
        Self {
            summary: summary.into(),
            ..Self::default()
        }
    }

    /// An outcome that is a document of the program's own.
    pub fn verbatim(text: Vec<u8>) -> Self {
        Self {
            text: Some(String::from_utf8(text).unwrap_or_default()),
            ..Self::default()
        }
    }

    /// An outcome that consists of the requested output, as a text and for programs.
    pub fn shown(text: impl Into<String>, data: Value) -> Self {
        Self {
            text: Some(text.into()),
            data: Some(data),
            ..Self::default()
        }
    }
}

/// A run that did not.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The reason it failed.
    pub error: Error,
    /// Finds its hint.
    pub advice: Advice,
    /// The state of the project's files.
    pub tree: TreeState,
    /// The run's folder, relative to the directory of the command, where it had got one.
    pub log: Option<String>,
    /// The run's record, where it has one.
    pub record: Option<Box<RunRecord>>,
    /// The output that can be shown all the same, as a text.
    pub text: Option<String>,
    /// The same for a program that reads it where stdout gets text.
    pub report: Option<Box<Value>>,
}

impl Failure {
    /// Returns a suggestion for the user, and the state of the project's files.
    pub fn hint(&self) -> Option<String> {
        result::hint((self.advice)(&self.error), self.tree)
    }
}

/// Finds an error's hint; a system may have words of its own.
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
