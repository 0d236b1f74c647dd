//! Errors from verifying and applying edits, recovering and undoing. Plain data.

use std::io;

use super::fault::Rejection;
use crate::sys::files::PathError;

/// The hint if the tree still needs recovery.
const RECOVER: &str = "fix the cause, and run `code-commit recover`";

/// The hint for a rejected reply.
pub(crate) const REJECTED: &str = "the reply was not applied; run again, or say in the query what it got wrong; \
    `--reask N` asks again by itself";

/// Errors from verifying a reply.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum VerifyError {
    /// The reply breaks the grammar or the policy.
    #[error(transparent)]
    #[diagnostic(code("reply-rejected"), help("{REJECTED}"), forward(0))]
    Rejected(#[from] Rejection),
    /// The disk could not be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] PathError),
}

/// Returns the hint if the error itself states what happened to the project.
fn again(error: &PathError) -> &'static str {
    match error.source.kind() {
        io::ErrorKind::StorageFull => "make room on the disk and run again",
        _ => "fix the cause and run again",
    }
}

/// Errors from applying a reply, and from recovering the tree.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ApplyError {
    /// A step failed, or the journal could not be written; everything was reverted.
    #[error(transparent)]
    #[diagnostic(help("{}", again(.0)))]
    RolledBack(#[from] PathError),
    /// A step failed, and so did reverting the others.
    #[error("{error}; and not everything could be restored: {obstacle}")]
    #[diagnostic(help("{RECOVER}"))]
    NotRolledBack {
        /// The original error.
        error: Box<ApplyError>,
        /// The error that prevented reverting the rest.
        obstacle: Box<ApplyError>,
    },
    /// Files were changed after a run was cut short.
    #[error("files were changed after a run was cut short: {}", .0.join("; "))]
    #[diagnostic(
        code("/changed-meanwhile/never"),
        help(
            "resolve each by hand: keep the version you want under its own name, and move the other away; then run `code-commit recover`"
        )
    )]
    Changed(Vec<String>),
    /// An I/O error on a file while the tree was recovered.
    #[error(transparent)]
    #[diagnostic(help("{RECOVER}"))]
    NotRecovered(PathError),
    /// An error on the journal of a run that was cut short.
    #[error(transparent)]
    #[diagnostic(help(
        "fix the cause: the journal is needed to undo the interrupted run. If no run wrote it, remove it"
    ))]
    EarlierJournal(PathError),
}

/// Returns a function that wraps an error from recovering the tree at a path in an [`ApplyError`].
pub(super) fn recover_failed<E: Into<io::Error>>(path: &str) -> impl FnOnce(E) -> ApplyError {
    let failed = PathError::of("put the tree in order at", path);
    move |error| ApplyError::NotRecovered(failed(error))
}
