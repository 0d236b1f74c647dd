//! How a workflow ends. Plain data.

use serde_json::Value;

use crate::agent::AgentError;
use crate::commands::error::{Error, hint_in_chat};
use crate::record::result;
use crate::record::result::{RunRecord, TreeState};
use crate::ui::pager::Pager;

/// The workflow whose settings are in the user's home.
pub(crate) const CHAT_RUN: &str = "chat";

/// A run that did what it was started for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// What was done; nothing, where the command is quiet about it.
    pub summary: String,
    /// Whether that is a model's answer, in Markdown.
    pub is_answer: bool,
    /// What was asked for, as the text that it is: a diff, a list.
    pub text: Option<String>,
    /// What shows it where it is longer than the terminal.
    pub pager: Option<Pager>,
    /// The same for programs.
    pub data: Option<Value>,
    /// What a program reads even where stdout gets text: it is printed alone, and it is an error where it cannot be.
    pub report: Option<Box<Value>>,
    /// The run's folder, relative to the directory of the command, where it has one.
    pub log: Option<String>,
    /// What the user should look at, where no run has told it.
    pub warnings: Vec<String>,
    /// What to do next.
    pub next: Option<String>,
    /// The run's record, where it has one.
    pub record: Option<Box<RunRecord>>,
}

impl Outcome {
    /// An outcome that has but a sentence to say.
    #[must_use]
    pub fn said(summary: impl Into<String>) -> Self {
        Self {
            summary: summary.into(),
            ..Self::default()
        }
    }

    /// An outcome that is a document of the program's own.
    #[must_use]
    pub fn verbatim(text: Vec<u8>) -> Self {
        Self {
            text: Some(String::from_utf8(text).unwrap_or_default()),
            ..Self::default()
        }
    }

    /// An outcome that is what was asked for, as a text and for programs.
    #[must_use]
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
    /// Why it failed.
    pub error: Error,
    /// What has become of the project.
    pub tree: TreeState,
    /// The run's folder, relative to the directory of the command, where it had got one.
    pub log: Option<String>,
    /// The run's record, where it has one.
    pub record: Option<Box<RunRecord>>,
    /// What can be told all the same, as a text.
    pub text: Option<String>,
    /// The same for a program that reads it where stdout gets text.
    pub report: Option<Box<Value>>,
}

impl Failure {
    /// What the user can do about it, and what has become of the project.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let workflow = self.record.as_ref().map_or("", |record| &record.workflow);
        let advice = advice(&self.error, workflow, self.report.is_some());
        result::hint(advice, self.tree)
    }
}

/// What the user can do about an error in a run of this workflow. A run that ends with a report has no session that could be resumed.
#[must_use]
pub(crate) fn advice(error: &Error, workflow: &str, has_report: bool) -> Option<String> {
    use AgentError::{Interrupted, LoopLimit, OverBudget, ToolsFailed};
    match error {
        Error::Agent(ToolsFailed { .. } | LoopLimit { .. } | OverBudget(_) | Interrupted(_))
            if has_report =>
        {
            Some("the report's `instructions` say how to go on".to_owned())
        }
        // It reads no `config.json`.
        Error::AgentsModel(error) if has_report => Some(error.hint()),
        error if workflow == CHAT_RUN => hint_in_chat(error),
        error => error.hint(),
    }
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self {
            error: error.into(),
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
    use crate::model::{ModelError, Setup, VendorError};
    use crate::sys::files::PathError;
    use crate::sys::interrupt::{Interrupted, Signal};
    use std::io;

    #[test]
    fn where_there_is_a_report_it_says_how_to_go_on() {
        let signal = Signal::Int;
        for error in [
            AgentError::Interrupted(Interrupted { signal }),
            AgentError::LoopLimit { loops: 500 },
        ] {
            let error = Error::from(error);
            assert!(advice(&error, "dev", false).unwrap().contains("`--resume`"));
            assert_eq!(
                advice(&error, "orchestrate", true).unwrap(),
                "the report's `instructions` say how to go on"
            );
        }
        let refused = ModelError::Connection {
            host: String::new(),
            reason: String::new(),
            tries: 1,
        };
        let hint = advice(&Error::AgentsModel(refused), "orchestrate", true).unwrap();
        assert!(!hint.contains("config.json"), "{hint}");
    }

    #[test]
    fn no_hint_of_a_chat_tells_of_settings_that_it_does_not_read() {
        let status = |status| ModelError::Status {
            status,
            vendor: VendorError::default(),
            model: "claude-sonnet-5-5".to_owned(),
            tries: 1,
            answer: Box::default(),
            setup: Setup::default(),
        };
        let mut invalid = VendorError::default();
        invalid.code = Some("invalid_request_error".to_owned());
        for (error, way_out) in [
            (AgentError::Model(status(401)), "`/login`"),
            (AgentError::Model(status(400)), "`/compact`"),
            (AgentError::Model(status(404)), "`/model`"),
            (
                AgentError::Model(ModelError::ErrorInAnswer(invalid)),
                "`/compact`",
            ),
            (AgentError::LoopLimit { loops: 500 }, "`--resume`"),
        ] {
            let hint = advice(&Error::from(error), CHAT_RUN, false).unwrap();
            assert!(hint.contains(way_out), "{hint}");
            for word in ["config.json", "agent-config", "maxLoops", "later"] {
                assert!(!hint.contains(word), "{hint}");
            }
        }
    }

    #[test]
    fn a_hint_says_one_thing_of_what_has_become_of_the_project() {
        let failed = PathError::of("write", "a")(io::Error::from(io::ErrorKind::StorageFull));
        let failure = Failure {
            tree: TreeState::Changed,
            ..Error::Apply(ApplyError::RolledBack(failed)).into()
        };
        let hint = failure.hint().unwrap();
        assert!(
            hint.contains("is still there") && !hint.contains("nothing"),
            "{hint}"
        );
    }
}
