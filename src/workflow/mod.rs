//! What a user starts: one file each, and what they share.
//!
//! A workflow strings the stages together and decides what a stage's outcome means; it does nothing
//! of a stage's work itself. Workflows never import each other, but for the demo, which writes a project
//! and then is the commit workflow.

mod agent_run;
mod builds;
mod chosen;
mod closing;
mod commit;
mod consistency;
mod demo;
mod dev;
mod diff;
mod dry_run;
pub mod error;
mod init;
mod last;
mod log;
mod models;
mod not_ready;
mod page;
mod ready;
mod recovery;
mod rollup;
mod run;
mod sections;
mod sending;
mod sessions;
mod summary;
mod talk;
mod tree;
mod undo;
mod workplace;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::cli;
use crate::edit::Program;
use crate::edit::apply::Tree;
use crate::model::price::Usd;
use crate::model::{Delivery, ModelTable};
use crate::project::Project;
use crate::record::{self, RunRecord, TreeState};
use crate::secret::Redactor;
use crate::sys::environment::{Clock, Environment};
use crate::sys::interrupt::Interrupt;
use crate::ui::Reporter;
use crate::workflow::error::Error;

pub use builds::BuildOptions;
pub use commit::{CommitOptions, OnFailure, commit};
pub use consistency::{ReportError, consistency};
pub use demo::{DemoError, demo};
pub use dev::dev;
pub use diff::diff;
pub use dry_run::dry_run;
pub use init::{InitError, init};
pub use log::log;
pub use models::{ModelsProblem, models, table};
pub use not_ready::{NotReady, Problem};
pub use page::{PageError, ReportOptions, report};
pub use rollup::{RollupError, RollupOptions, rollup};
pub use sending::SendingProblem;
pub use sessions::{config, sessions};
pub use summary::summarize;
pub use undo::undo;
pub use workplace::{AgentOptions, Wanted, Which};

/// What every workflow works with.
#[derive(Clone)]
pub struct Context<'a> {
    /// The project.
    pub project: Project,
    /// What the process was started with.
    pub environment: &'a Environment,
    /// The time.
    pub clock: &'a dyn Clock,
    /// Ends a run early.
    pub interrupt: &'a Interrupt,
    /// Knows the keys.
    pub redactor: &'a Redactor,
    /// Hears what happens.
    pub reporter: &'a dyn Reporter,
    /// The program's own file, which no reply may touch.
    pub program: Option<&'a Program>,
    /// The models that can be asked, or why their table cannot be used.
    pub models: &'a Result<ModelTable, ModelsProblem>,
}

impl Context<'_> {
    /// The key files of all models, as far as their table can be used.
    fn key_files(&self) -> Vec<&str> {
        let built_in = || vec!["gemini-key.txt", "openai-key.txt"];
        self.models
            .as_ref()
            .map_or_else(|_| built_in(), ModelTable::key_files)
    }

    /// Where edits go, with this directory for the journal.
    fn tree<'t>(&'t self, journal: &'t Path) -> Tree<'t> {
        Tree {
            root: self.project.root(),
            journal,
            now: self.clock.now().into(),
        }
    }
}

/// Where replies come from.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelChoice {
    /// The name of the model asked for; `None`: the recorded one, or what the table says.
    pub model: Option<String>,
    /// The run to replay in place of calls.
    pub replay: Option<PathBuf>,
    /// How long a call may take, its retries included.
    pub timeout: Duration,
    /// Whether the answer comes piece by piece.
    pub delivery: Delivery,
    /// What becomes of credentials in what is to be sent.
    pub secrets: Secrets,
    /// Whether the code base must be the one on the disk.
    pub require_fresh: bool,
    /// What all calls of the run may cost.
    pub max_cost: Option<Usd>,
}

/// What becomes of credentials in the query and the code base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrets {
    /// Nothing is sent.
    Refused,
    /// They are sent, but for the project's own keys.
    Allowed,
}

/// A run that did what it was started for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// What was done; nothing, where the command is quiet about it.
    pub summary: String,
    /// What was asked for, as the text that it is: a diff, a list.
    pub text: Option<String>,
    /// The same for programs.
    pub data: Option<Value>,
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
pub struct Failure {
    /// Why.
    pub error: Error,
    /// What has become of the project.
    pub tree: TreeState,
    /// The run's folder, relative to the directory of the command, where it had got one.
    pub log: Option<String>,
    /// The run's record, where it has one.
    pub record: Option<Box<RunRecord>>,
    /// What can be told all the same, as a text.
    pub text: Option<String>,
}

/// The manual page of the program, or of one of its commands.
///
/// # Errors
/// When there is no such command.
pub fn manual(command: Option<&str>) -> Result<Outcome, Failure> {
    match cli::manual(command) {
        Some(page) => Ok(Outcome::verbatim(page)),
        None => Err(Error::NoSuchCommand(command.unwrap_or_default().to_owned()).into()),
    }
}

/// Puts the project in order after a run that was cut short.
///
/// # Errors
/// When another run has the project, or the tree cannot be put in order.
pub fn recover(context: &Context<'_>) -> Result<Outcome, Failure> {
    Ok(Outcome::said(recovery::recover(context)?))
}

impl Failure {
    /// What the user can do about it, and what has become of the project.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        record::hint(self.error.hint(), self.tree)
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
        }
    }
}
