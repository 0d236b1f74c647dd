//! What can go wrong between verified edits and a tree in order. Plain data.

use std::io;
use std::path::PathBuf;

use crate::sys::files::PathError;

/// Why a reply was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Something failed; everything was put back.
    #[error(transparent)]
    RolledBack(PathError),
    /// Something failed, and something else while it was being put back.
    #[error("{error}; and not everything could be put back: {obstacle}")]
    NotRolledBack {
        /// The first failure.
        error: Box<ApplyError>,
        /// The obstacle to putting back the rest.
        obstacle: RecoverError,
    },
    /// The journal could not be written; nothing was changed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The remains of an earlier application could not be put in order; nothing was changed.
    #[error(transparent)]
    Earlier(#[from] RecoverError),
}

/// Why the tree cannot be put in order.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// Files were changed since.
    #[error("files were changed after a run was cut short: {}", .0.join("; "))]
    Changed(Vec<String>),
    /// The system refused something.
    #[error(transparent)]
    Io(PathError),
    /// The journal itself.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// The journal could not be written, read or removed.
pub type JournalError = PathError;

/// An [`ApplyError`] of what was being done to a path.
pub(super) fn apply_failed<E: Into<io::Error>>(
    action: &'static str,
    path: impl Into<PathBuf>,
) -> impl FnOnce(E) -> ApplyError {
    let failed = PathError::of(action, path);
    move |error| ApplyError::RolledBack(failed(error))
}

/// A [`RecoverError`] of a path.
pub(super) fn recover_failed<E: Into<io::Error>>(path: &str) -> impl FnOnce(E) -> RecoverError {
    let failed = PathError::of("put the tree in order at", path);
    move |error| RecoverError::Io(failed(error))
}
