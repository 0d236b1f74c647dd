//! What a user starts: one file each, and what they share.
//!
//! A workflow strings the stages together and decides what a stage's outcome means; it does nothing
//! of a stage's work itself. Workflows never import each other, but for the demo, which writes a project
//! and then is the commit workflow.

mod builds;
mod commit;
mod consistency;
mod demo;
mod ready;
mod run;
mod sections;
mod tree;
mod undo;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::edit::Program;
use crate::edit::apply::Tree;
use crate::environment::{Clock, Environment};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::model::ModelSpec;
use crate::project::Project;
use crate::record::{self, TreeState};
use crate::report::Reporter;
use crate::secret::Redactor;

pub use builds::{BuildOptions, Containment};
pub use commit::{CommitOptions, OnFailure, commit};
pub use consistency::{ReportError, consistency};
pub use demo::{DemoError, demo};
pub use ready::{NotReady, Problem};
pub use undo::{NoSuchRun, undo};

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
}

impl Context<'_> {
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelChoice {
    /// The model asked for; `None`: the recorded one, or the default.
    pub model: Option<ModelSpec>,
    /// The run to replay in place of calls.
    pub replay: Option<PathBuf>,
    /// How long a call may take, its retries included.
    pub timeout: Duration,
    /// What becomes of credentials in what is to be sent.
    pub secrets: Secrets,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What was done.
    pub summary: String,
    /// The run's folder, relative to the directory of the command, where it has one.
    pub log: Option<String>,
    /// What to do next.
    pub next: Option<String>,
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
}

/// Puts the project in order after a run that was cut short.
///
/// # Errors
/// When another run has the project, or the tree cannot be put in order.
pub fn recover(context: &Context<'_>) -> Result<Outcome, Failure> {
    let summary = ready::recover(context)?;
    Ok(Outcome {
        summary,
        log: None,
        next: None,
    })
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
        }
    }
}
