//! Errors between verified edits and a consistent tree. Plain data.

use std::io;
use std::path::PathBuf;

use crate::sys::files::PathError;

/// The way out where the run says itself what has become of the project.
const AGAIN: &str = "mend the cause and run again";
/// The way out where something is left to be put in order.
const RECOVER: &str = "mend the cause, and run `code-commit recover`";

/// Why a reply was not applied.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ApplyError {
    /// Something failed; everything was put back.
    #[error(transparent)]
    #[diagnostic(help("{AGAIN}"))]
    RolledBack(PathError),
    /// Something failed, and something else while it was being put back.
    #[error("{error}; and not everything could be put back: {obstacle}")]
    #[diagnostic(help("{RECOVER}"))]
    NotRolledBack {
        /// The first failure.
        error: Box<ApplyError>,
        /// The obstacle to putting back the rest.
        obstacle: RecoverError,
    },
    /// The journal could not be written; nothing was changed.
    #[error(transparent)]
    #[diagnostic(help("{AGAIN}"))]
    Journal(#[from] JournalError),
    /// The remains of an earlier application could not be put in order; nothing was changed.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Earlier(#[from] RecoverError),
}

/// Why the tree cannot be put in order.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum RecoverError {
    /// Files were changed since.
    #[error("files were changed after a run was cut short: {}", .0.join("; "))]
    #[diagnostic(help(
        "put right what is named, by hand: keep the version you want under its own name, and move the other away; then run `code-commit recover`"
    ))]
    Changed(Vec<String>),
    /// The system refused something.
    #[error(transparent)]
    #[diagnostic(help("{RECOVER}"))]
    Io(PathError),
    /// The journal itself.
    #[error(transparent)]
    #[diagnostic(help(
        "mend the cause: the journal tells how to undo what was cut short. If no run wrote it, remove it"
    ))]
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
