//! Restores the project to its state before a run.
//!
//! Examines the files named in the run's undo log, and applies the inverse of all changes, journalled like any other
//! transaction. Guarantees that nothing is done if a file is neither as the run left it nor as it was before.

use rustix::fs::fstat;

use super::apply::{self, Applied, Tree};
use super::beneath::{Beneath, PathEntry, Root};
use super::changes::{ChangeLog, LoggedChange, saved_path};
use super::digest::{Digest, Present};
use super::error::ApplyError;
use super::operation::{ChangeSet, FileOperation, Operation};
use super::recovery;
use super::undo_log::UndoLog;
use crate::project::changed_files::EditsRecord;
use crate::sys::files::PathError;

pub use super::operation::Journalling;

/// Errors from undoing a run; nothing was changed.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum UndoError {
    /// Files are not as the run left them.
    #[error("files were changed after the run: {}", .0.join("; "))]
    #[diagnostic(
        code("/changed-meanwhile/never"),
        help("nothing was undone; save your changes, restore these files by hand, and undo again")
    )]
    Changed(Vec<String>),
    /// A file could not be examined.
    #[error(transparent)]
    #[diagnostic(help("make it readable; nothing was undone"))]
    Io(#[from] PathError),
    /// The inverse could not be applied.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Apply(#[from] ApplyError),
}

/// The result of undoing a run.
#[derive(Debug)]
pub struct Undone {
    /// The files that were restored and those that were removed; both empty if there was nothing to do.
    pub edits: EditsRecord,
    /// The transaction that undid the run.
    pub applied: Option<Applied>,
}

/// Returns whether there is nothing to undo.
///
/// # Errors
/// Same as for [`undo`].
pub fn is_undone(tree: Tree<'_>, folder: &str, changes: &ChangeLog) -> Result<bool, UndoError> {
    inverse(tree, folder, changes, None).map(|(steps, _)| steps.is_empty())
}

/// Undoes the `changes` of the run in `folder`, relative to the root. The replaced files are saved in `undo_log`, if
/// given. Without a journal, a kill leaves the project half restored: the last resort on a full disk.
///
/// # Errors
/// Fails if a file has changed since the run, or any step fails; the tree is then unchanged.
pub fn undo(
    tree: Tree<'_>,
    folder: &str,
    changes: &ChangeLog,
    undo_log: Option<&mut UndoLog<'_>>,
    journalling: Journalling,
) -> Result<Undone, UndoError> {
    recovery::recover(tree)?;
    // The run's own folder may have been moved in the meantime.
    let own = undo_log.as_deref().filter(|log| log.folder() == folder);
    let held = own.and_then(|log| log.held().ok());
    let (steps, edits) = inverse(tree, folder, changes, held.as_ref())?;
    // Without a journal, nothing is logged either.
    let undo_log = undo_log.filter(|_| journalling == Journalling::On);
    if steps.is_empty() {
        let applied = None;
        return Ok(Undone { edits, applied });
    }
    let whole = ChangeSet {
        steps: &steps,
        directories: changes.directories.iter().rev().cloned().collect(),
        journalling,
    };
    let applied = Some(apply::take(tree, &whole, undo_log)?);
    Ok(Undone { edits, applied })
}

/// Returns the operations that undo the changes, ordered by path.
fn inverse<'c>(
    tree: Tree<'_>,
    folder: &str,
    changes: &'c ChangeLog,
    held: Option<&'c Root>,
) -> Result<(Vec<FileOperation<'c>>, EditsRecord), UndoError> {
    let mut beneath = Beneath::open(tree.root).map_err(PathError::of("look at", "."))?;
    let mut steps = Vec::new();
    let mut edits = EditsRecord::default();
    let mut changed = Vec::new();
    for (path, change) in &changes.files {
        let entry = beneath
            .entry(path)
            .map_err(PathError::of("look at", path))?;
        let mode = change.before.as_ref().map(|before| before.mode);
        let (present, now) = match entry {
            PathEntry::Nothing => (None, Some(None)),
            PathEntry::SomethingElse => (None, None),
            PathEntry::File(file) => {
                let stat = fstat(&file).map_err(PathError::of("look at", path))?;
                let digest = Digest::of_file(file).map_err(PathError::of("look at", path))?;
                (Some(Present::of(&stat)), Some(Some(digest)))
            }
        };
        let is_as_before = now == Some(change.before.as_ref().map(|before| before.digest));
        if is_as_before && present.map(|present| present.rights.mode) == mode {
            continue;
        }
        if !is_as_before && !now.is_some_and(|now| change.after.contains(&now)) {
            let now = now.map_or("now something else, such as a link; ", |_| "");
            changed.push(explain(path, folder, change, now));
            continue;
        }
        let action = if let Some(before) = &change.before {
            edits.written.push(path.clone());
            let held = held.filter(|_| !before.beside_keys);
            let path = saved_path(folder, before);
            Operation::Restore { path, before, held }
        } else {
            edits.removed.push(path.clone());
            Operation::Remove
        };
        steps.push(FileOperation {
            path,
            action,
            present,
        });
    }
    if changed.is_empty() {
        Ok((steps, edits))
    } else {
        Err(UndoError::Changed(changed))
    }
}

fn explain(path: &str, folder: &str, change: &LoggedChange, now: &str) -> String {
    let before = change.before.as_ref().map_or_else(
        || "not there".to_owned(),
        |before| format!("`{}`", saved_path(folder, before)),
    );
    format!("`{path}` ({now}before the run it was {before})")
}
