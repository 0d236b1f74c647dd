//! Takes the project for a run, and puts its tree in order first where an earlier run was cut short.
//!
//! Touches the lock, the journals and what they speak of.

use super::context::Context;
use super::not_ready::NotReady;
use crate::edit;
use crate::edit::recovery::Recovered;
use crate::project::{ProjectLock, ProjectProblem};
use crate::ui::Event;
use crate::workflow::error::Error;

/// Takes the project, and puts its tree in order, for a workflow that needs nothing else.
///
/// # Errors
/// When another run has the project, or the tree cannot be put in order.
pub fn take(context: &Context<'_>) -> Result<ProjectLock, Error> {
    let taken = put_in_order(context)?.map_err(NotReady::from)?;
    Ok(taken.with_warning(context))
}

/// A project that no other run has, and whose tree is in order.
pub(in crate::workflow) struct Taken {
    lock: ProjectLock,
    /// What there was to do about the tree, in words.
    recovered: Option<&'static str>,
}

impl Taken {
    /// For a command that has something else to do: what was recovered is told by the way.
    pub fn with_warning(self, context: &Context<'_>) -> ProjectLock {
        if let Some(recovered) = self.recovered {
            context
                .reporter
                .event(&Event::Warning(recovered.to_owned()));
        }
        self.lock
    }
}

/// Takes the project, and puts its tree in order where an earlier run was cut short.
///
/// # Errors
/// When the tree cannot be put in order; inside, when another run has the project.
pub(in crate::workflow) fn put_in_order(
    context: &Context<'_>,
) -> Result<Result<Taken, ProjectProblem>, Error> {
    let lock = match context.project.lock() {
        Ok(lock) => lock,
        Err(problem) => return Ok(Err(problem)),
    };
    let recovered = recovered(context)?;
    Ok(Ok(Taken { lock, recovered }))
}

/// Puts the tree in order, and says in words what there was to do. The project is locked.
fn recovered(context: &Context<'_>) -> Result<Option<&'static str>, Error> {
    let mut recovered = None;
    for journal in context.project.journal_directories() {
        recovered = recovered.or(edit::recovery::recover(context.tree(&journal))?);
    }
    Ok(recovered.map(|recovered| match recovered {
        Recovered::RolledBack => {
            "an earlier command was interrupted while changing files: the tree is as it was before it"
        }
        Recovered::Torn => {
            "an earlier command's changes did not fully reach the disk: the tree is as it was before \
             it; what was found of them is in `agent-config/torn`"
        }
        Recovered::Completed => {
            "an earlier command was interrupted after changing files: the tree has all its changes"
        }
    }))
}

/// The command `recover`: does what every run does first, and nothing else.
///
/// # Errors
/// When another run has the project, or the tree cannot be put in order.
pub fn recover(context: &Context<'_>) -> Result<String, Error> {
    let taken = put_in_order(context)?.map_err(NotReady::from)?;
    let done = taken.recovered.unwrap_or("nothing to recover");
    Ok(format!("done: {done}"))
}
