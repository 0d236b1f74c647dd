//! Puts the project back as it was before a run.
//!
//! Looks at what the run's undo log names, and applies the inverse of all of it, journalled like any
//! other application. Guarantees that nothing is done where a file is neither what the run left there
//! nor what was there before it.

use std::io;
use std::os::fd::AsFd as _;

use rustix::fs::fstat;
use rustix::io::Errno;

use super::apply::{self, Applied, Journalling, Tree};
use super::beneath::{OpenDirectory, Root, open_regular, split};
use super::changes::{Before, Changes, FileChange, kept_path};
use super::digest::{Digest, Present};
use super::disk::statat;
use super::error::{ApplyError, RecoverError};
use super::recovery;
use super::spelling;
use super::step::{Durability, New, Step, Whole};
use super::undo_log::UndoLog;
use crate::record::EditsRecord;

/// Why a run was not undone; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// Files are not as the run left them.
    #[error("files were changed after the run: {}", .0.join("; "))]
    Changed(Vec<String>),
    /// The undo log names a file that no run changes.
    #[error("the run's `changes.json` names `{}`, which no run may change", .0.escape_debug())]
    Damaged(String),
    /// A file could not be looked at.
    #[error("cannot look at `{path}`: {source}")]
    Io {
        /// The file, relative to the root.
        path: String,
        /// The system's word.
        source: io::Error,
    },
    /// It could not be carried out.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// An earlier application could not be put in order first.
    #[error(transparent)]
    Recover(#[from] RecoverError),
}

/// A run that was undone.
#[derive(Debug)]
pub struct Undone {
    /// The files that were put back, and those that were removed; both empty where there was nothing
    /// to do.
    pub edits: EditsRecord,
    /// What is left to do about it.
    pub applied: Option<Applied>,
}

/// Undoes the `changes` of the run in `folder`, relative to the root. What that replaces is kept in
/// `undo_log`, if there is one.
///
/// # Errors
/// When a file has changed since, or anything fails; the tree is then as it was.
pub fn undo(
    tree: Tree<'_>,
    folder: &str,
    changes: &Changes,
    undo_log: Option<&mut UndoLog<'_>>,
) -> Result<Undone, UndoError> {
    undo_with(tree, folder, changes, undo_log, Journalling::On)
}

/// The same without leaving a trace: the last resort on a disk that takes no more. A kill would leave it
/// half done.
///
/// # Errors
/// As [`undo`].
pub fn undo_unrecorded(
    tree: Tree<'_>,
    folder: &str,
    changes: &Changes,
) -> Result<Undone, UndoError> {
    undo_with(tree, folder, changes, None, Journalling::Off)
}

/// Whether there is anything to undo.
///
/// # Errors
/// As [`undo`].
pub fn is_undone(tree: Tree<'_>, folder: &str, changes: &Changes) -> Result<bool, UndoError> {
    inverse(tree, folder, changes).map(|(steps, _)| steps.is_empty())
}

fn undo_with(
    tree: Tree<'_>,
    folder: &str,
    changes: &Changes,
    undo_log: Option<&mut UndoLog<'_>>,
    journalling: Journalling,
) -> Result<Undone, UndoError> {
    recovery::settle(tree)?;
    let (steps, edits) = inverse(tree, folder, changes)?;
    if steps.is_empty() {
        return Ok(Undone {
            edits,
            applied: None,
        });
    }
    let whole = Whole {
        steps: &steps,
        directories: changes.directories.iter().rev().cloned().collect(),
        durability: match journalling {
            Journalling::On => Durability::AtOnce,
            // What takes no journal will hardly get anything on the disk.
            Journalling::Off => Durability::Later,
        },
    };
    let applied = apply::take(tree, &whole, undo_log, journalling)?;
    Ok(Undone {
        edits,
        applied: Some(applied),
    })
}

/// What is to be done, in the order of the paths.
fn inverse<'c>(
    tree: Tree<'_>,
    folder: &str,
    changes: &'c Changes,
) -> Result<(Vec<Step<'c>>, EditsRecord), UndoError> {
    let root = Root::open(tree.root).map_err(failed("."))?;
    let mut directory = OpenDirectory::default();
    let mut steps = Vec::new();
    let mut edits = EditsRecord::default();
    let mut changed = Vec::new();
    // The log lies where a build may have written to it.
    let mut paths = changes.files.keys().chain(&changes.directories);
    if let Some(path) = paths.find(|path| spelling::broken_rule(path).is_some()) {
        return Err(UndoError::Damaged(path.clone()));
    }
    for (path, change) in &changes.files {
        let now = Found::of(&root, &mut directory, path).map_err(failed(path))?;
        let content_before = change.before.as_ref().map(|before| before.digest);
        if now.is(content_before) && now.has_mode_of(change.before.as_ref()) {
            continue;
        }
        if !now.is(content_before) && !change.after.iter().any(|after| now.is(*after)) {
            changed.push(explain(path, folder, change));
            continue;
        }
        let new = if let Some(before) = &change.before {
            edits.written.push(path.clone());
            let path = kept_path(folder, before);
            New::Kept { path, before }
        } else {
            edits.removed.push(path.clone());
            New::Nothing
        };
        let present = now.present();
        steps.push(Step { path, new, present });
    }
    if changed.is_empty() {
        Ok((steps, edits))
    } else {
        Err(UndoError::Changed(changed))
    }
}

fn explain(path: &str, folder: &str, change: &FileChange) -> String {
    match &change.before {
        Some(before) => format!(
            "`{path}` (before the run it was `{}`)",
            kept_path(folder, before)
        ),
        None => format!("`{path}` (before the run it was not there)"),
    }
}

fn failed<E: Into<io::Error>>(path: &str) -> impl FnOnce(E) -> UndoError {
    let path = path.to_owned();
    move |error| UndoError::Io {
        path,
        source: error.into(),
    }
}

/// What is at a path.
enum Found {
    Nothing,
    File(Present, Digest),
    /// A directory, a link or the like; or a file, where a directory was on the way.
    SomethingElse,
}

impl Found {
    fn of(root: &Root, directory: &mut OpenDirectory, path: &str) -> io::Result<Self> {
        let (parent, name) = split(path);
        let directory = match directory.at(root, parent) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => return Ok(Self::Nothing),
            Err(Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => return Ok(Self::SomethingElse),
            Err(errno) => return Err(errno.into()),
        };
        match statat(directory, name) {
            Err(Errno::NOENT) => return Ok(Self::Nothing),
            Err(errno) => return Err(errno.into()),
            Ok(_) => {}
        }
        let Some(file) = open_regular(directory.as_fd(), name)? else {
            return Ok(Self::SomethingElse);
        };
        let present = Present::of(&fstat(&file)?);
        Ok(Self::File(present, Digest::of_file(file)?))
    }

    /// Whether this is a file of that content; or nothing, where there is to be none.
    fn is(&self, wanted: Option<Digest>) -> bool {
        match self {
            Self::Nothing => wanted.is_none(),
            Self::File(_, digest) => wanted == Some(*digest),
            Self::SomethingElse => false,
        }
    }

    fn has_mode_of(&self, before: Option<&Before>) -> bool {
        match (self, before) {
            (Self::File(present, _), Some(before)) => present.mode == before.mode,
            _ => true,
        }
    }

    fn present(&self) -> Option<Present> {
        match self {
            Self::File(present, _) => Some(*present),
            Self::Nothing | Self::SomethingElse => None,
        }
    }
}
