//! What a user starts: one file each, and what they share.
//!
//! A workflow strings the stages together and decides what a stage's outcome means; it does nothing
//! of a stage's work itself. Workflows never import each other, but for the demo, which writes a project
//! and then is the commit workflow.

mod agent_run;
mod commit;
mod consistency;
mod demo;
mod dev;
mod diff;
pub mod dispatch;
mod dry_run;
pub mod error;
mod init;
mod last;
mod log;
mod models;
mod page;
mod rollup;
mod run;
mod sections;
mod sessions;
mod summary;
mod talk;
mod tell;
mod undo;
mod workspace;

use run::recovery;

use crate::cli;
use crate::workflow::error::Error;

pub use commit::{CommitOptions, commit};
pub use consistency::consistency;
pub use demo::demo;
pub use dev::dev;
pub use diff::diff;
pub use dispatch::dispatch;
pub use dry_run::dry_run;
pub use init::init;
pub use log::log;
pub use models::{models, table};
pub use page::{ReportOptions, report};
pub use rollup::{RollupOptions, rollup};
pub use run::builds::BuildOptions;
pub use run::context::{Context, ModelChoice, ModelsProblem, Secrets, redactor};
pub use run::not_ready::{NotReady, Problem};
pub use run::outcome::{Failure, Outcome};
pub use run::sending::SendingProblem;
pub use sessions::{config, sessions};
pub use summary::summarize;
pub use tell::tell;
pub use undo::undo;
pub use workspace::{AgentOptions, RequestInput, SessionChoice};

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
