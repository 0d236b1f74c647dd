//! The run that a command is about, by its name or as the last one that counts.

use std::path::Path;

use crate::edit::undo::is_undone;
use crate::edit::undo_log;
use crate::record::result::TreeState;
use crate::run::context::Context;
use crate::run::past::naming::NoSuchRun;
use crate::run::past::{history, naming};
use crate::sys::error::Error;

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

/// The folders of the runs of an agent's session that have changed something which was not undone, and whether the
/// session's last run is among them.
///
/// # Errors
/// When the runs cannot be read.
pub fn changed_in(context: &Context<'_>, session: &str) -> Result<(Vec<String>, bool), Error> {
    let root = context.project.root();
    let journal = context.project.journal_directory();
    let (mut changed, mut is_latest) = (Vec::new(), false);
    for run in history::runs(&context.project)? {
        let folder = run.relative();
        if run.agent().and_then(|about| about.session.as_deref()) != Some(session) {
            continue;
        }
        // A run that was killed has no record.
        let record = run.record.as_ref();
        let may_have_changed = record.is_none_or(|record| record.tree == TreeState::Changed);
        let changes = undo_log::read(root, &folder)?;
        let changes = changes.filter(|changes| may_have_changed && !changes.are_none());
        is_latest = match changes {
            Some(changes) => !is_undone(context.tree(&journal), &folder, &changes)?,
            None => false,
        };
        changed.extend(is_latest.then_some(folder));
    }
    Ok((changed, is_latest))
}

/// The last run that changed anything, undoing left out. One that was rolled back, or has taken its edits
/// back itself, has not.
fn changed(context: &Context<'_>) -> Result<String, Error> {
    let root = context.project.root();
    let journal = context.project.journal_directory();
    for run in history::latest(&context.project)? {
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
