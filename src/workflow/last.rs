//! The run that a command is about, by its name or as the last one that counts.

use std::path::Path;

use super::Context;
use crate::edit::undo::is_undone;
use crate::edit::undo_log;
use crate::record::TreeState;
use crate::review::history;
use crate::review::naming::{self, NoSuchRun};
use crate::workflow::error::Error;

/// The folder of `run`, relative to the root; where none is named, that of the last run that changed anything.
///
/// # Errors
/// When there is none, or the runs cannot be read.
pub fn folder(context: &Context<'_>, run: Option<&Path>) -> Result<String, Error> {
    match run {
        Some(run) => Ok(history::relative(&naming::find(
            &context.project,
            run,
            context.today(),
        )?)),
        None => changed(context),
    }
}

/// The last run that changed anything, undoing left out. One that was rolled back, or has taken its edits
/// back itself, has not.
fn changed(context: &Context<'_>) -> Result<String, Error> {
    let root = context.project.root();
    let journal = context.project.journal_directory();
    for run in history::runs(&context.project)?.into_iter().rev() {
        let folder = run.relative();
        if run.workflow() == "undo" {
            continue;
        }
        let Some(changes) = undo_log::read(root, &folder)?.filter(|changes| !changes.are_none())
        else {
            continue;
        };
        let undone = is_undone(context.tree(&journal), &folder, &changes);
        // A run that was killed has no record.
        let says_changed = run
            .record
            .is_some_and(|record| record.tree == TreeState::Changed);
        if says_changed || !matches!(undone, Ok(true)) {
            return Ok(folder);
        }
    }
    Err(NoSuchRun::NoRun("changed anything").into())
}
