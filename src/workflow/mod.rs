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
pub(crate) mod dispatch;
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

pub(crate) use commit::{CommitOptions, commit};
pub(crate) use consistency::consistency;
pub(crate) use demo::demo;
pub(crate) use dev::dev;
pub(crate) use diff::diff;
pub(crate) use dispatch::dispatch;
pub(crate) use dry_run::dry_run;
pub(crate) use init::init;
pub(crate) use log::log;
pub(crate) use models::{models, table};
pub(crate) use page::report;
pub(crate) use rollup::rollup;
pub(crate) use run::builds::BuildOptions;
pub(crate) use run::context::{Context, ModelChoice, redactor};
pub(crate) use run::not_ready::NotReady;
pub(crate) use run::outcome::{Failure, Outcome};
pub(crate) use sessions::{config, sessions};
pub(crate) use summary::summarize;
pub(crate) use tell::tell;
pub(crate) use undo::undo;
pub(crate) use workspace::{AgentOptions, RequestInput, SessionChoice};

/// The manual page of the program, or of one of its commands.
///
/// # Errors
/// When there is no such command.
pub(crate) fn manual(command: Option<&str>) -> Result<Outcome, Failure> {
    match cli::manual(command) {
        Some(page) => Ok(Outcome::verbatim(page)),
        None => Err(Error::NoSuchCommand(command.unwrap_or_default().to_owned()).into()),
    }
}

/// Puts the project in order after a run that was cut short.
///
/// # Errors
/// When another run has the project, or the tree cannot be put in order.
pub(crate) fn recover(context: &Context<'_>) -> Result<Outcome, Failure> {
    Ok(Outcome::said(recovery::recover(context)?))
}
