//! Locks the project for a run, and first recovers its tree if an earlier run was cut short.
//!
//! Touches the lock, the journals and the files they list, and temporary files left by killed runs.

use std::path::Path;

use super::context::Context;
use super::not_ready::NotReady;
use super::outcome::{Failure, Outcome};
use crate::edit;
use crate::edit::recovery::Recovered;
use crate::project::ProjectLock;
use crate::record::run_files::COMMIT;
use crate::record::run_log;
use crate::run::past::history::{self, PastRun};
use crate::run::past::past_step::PastStep;
use crate::sys::error::Error;

/// Locks the project and recovers its tree, for a command other than `recover`; reports a recovery as a warning.
///
/// # Errors
/// Fails if another run holds the lock, or the tree cannot be recovered.
pub fn take(context: &Context<'_>) -> Result<ProjectLock, Error> {
    let lock = context.project.lock().map_err(NotReady::of)?;
    recover_with_warning(context, None)?;
    Ok(lock)
}

/// Recovers the tree of a locked project. Warns of a recovery, and of a run that was cut short, unless `again` is its
/// folder: that of the run to be resumed or replayed.
pub fn recover_with_warning(context: &Context<'_>, again: Option<&Path>) -> Result<(), Error> {
    if let Some(recovered) = put_in_order(context)? {
        context.warn(recovered);
    }
    mention_cut_short(context, again);
    Ok(())
}

/// Runs the command `recover`: performs the recovery that every run begins with, and nothing else.
///
/// # Errors
/// Fails if another run holds the lock, or the tree cannot be recovered.
pub fn recover(context: &Context<'_>) -> Result<Outcome, Failure> {
    let _lock = context.project.lock().map_err(NotReady::of)?;
    let done = put_in_order(context)?.unwrap_or("nothing to recover");
    mention_cut_short(context, None);
    Ok(Outcome::new(format!("done: {done}")))
}

/// Warns if the last run was killed, since that run could not report it.
fn mention_cut_short(context: &Context<'_>, again: Option<&Path>) {
    let is_again = |run: &String| again.is_some_and(|folder| folder.ends_with(run));
    if let Some(run) = history::cut_short(&context.project).filter(|run| !is_again(run)) {
        let past = PastRun::read(&context.project, &run);
        let steps = past.steps(&context.project);
        let mut attempts = steps.iter().filter(|past| past.is_attempt);
        let goes_on = match attempts.clone().next() {
            None if past.workflow() == COMMIT => {
                format!(", and `code-commit --resume {run}` goes on")
            }
            Some(_) if attempts.any(PastStep::is_whole) => {
                format!(
                    ", and `code-commit --replay {run}` makes its attempts again, without a call"
                )
            }
            _ => String::new(),
        };
        context.warn(format!(
            "the last run did not finish (it was killed, or the disk was full): `code-commit log {run}` shows how far it came{goes_on}"
        ));
    }
}

/// Locks a project that a run will work on in a scratch tree, and recovers its tree, which the run would not see.
///
/// # Errors
/// Fails if another run holds the lock, or the tree cannot be recovered.
pub fn take_for_scratch(context: &Context<'_>) -> Result<ProjectLock, Error> {
    let lock = context.project.lock().map_err(NotReady::of)?;
    if let Some(recovered) = put_in_order(context)? {
        context.warn(recovered);
    }
    Ok(lock)
}

/// Recovers the tree of a locked project, and returns a description of what was done, if anything.
fn put_in_order(context: &Context<'_>) -> Result<Option<&'static str>, Error> {
    run_log::sweep(context.project.home());
    let mut recovered = None;
    for journal in context.project.journal_directories() {
        recovered = recovered.or(edit::recovery::recover(context.tree(&journal))?);
    }
    Ok(recovered.map(|recovered| match recovered {
        Recovered::RolledBack => {
            "an earlier command was interrupted while changing files: the tree is as it was before it"
        }
        Recovered::Completed => {
            "an earlier command was interrupted after changing files: the tree has all its changes"
        }
    }))
}
