//! From untrusted text to changed files: parse, verify, apply.
//!
//! | module | purpose |
//! |---|---|
//! | `parse`, `locate`, `spelling`, `protection`, `rule`, [`verify`](PathPolicy), `tree_after`, `mount` | from a reply to edits that may be applied; read-only |
//! | `guard`, `loss`, `comments`, `form`, `comparison`, `executed` | detection of losses and other hidden effects |
//! | `apply`, `operation`, `plan`, `stage`, `staged_entry` | application of edits to the disk |
//! | `journal`, `record` | the transaction in progress |
//! | `recovery`, `rollback` | recovery from a transaction that was cut short |
//! | `undo_log`, `changes`, `undo` | saved files, and their restoration |
//! | `beneath`, `disk`, `digest`, `attributes` | confined handles, system calls, digests and attributes |
//! | `error` | errors from applying, recovering and undoing |
//!
//! Guarantees that nothing of a reply is written that [`PathPolicy::verify`] has not passed: only it creates a
//! [`VerifiedEdits`], and `apply` accepts nothing else. Undo and recovery check the spelling of paths again, and use
//! the same handles.

pub(crate) mod apply;
pub(crate) mod attributes;
pub(crate) mod beneath;
pub(crate) mod changes;
pub mod comments;
mod comparison;
mod digest;
mod disk;
pub(crate) mod error;
pub(crate) mod executed;
mod fault;
mod form;
mod guard;
mod journal;
mod locate;
mod loss;
mod mount;
mod not_checked_out;
mod operation;
mod parse;
mod plan;
pub(crate) mod protection;
mod record;
pub(crate) mod recovery;
mod rollback;
mod rule;
pub(crate) mod spelling;
mod stage;
mod staged_entry;
mod tree_after;
pub(crate) mod undo;
pub(crate) mod undo_log;
pub(crate) mod verify;

use apply::{Applied, Tree};
use error::ApplyError;
use operation::{ChangeSet, Journalling};
use undo_log::UndoLog;

pub(crate) use digest::Digest;
pub use error::VerifyError;
pub use fault::{
    Allowances, EditKind, FaultKind, FileEdit, Rejection, Replacement, ReplyFault, Unlocated,
};
pub use guard::LossGuard;
pub use locate::{Sent, read};
#[cfg(test)]
pub use parse::parse;
pub use parse::{ParsedReply, incomplete};
pub use rule::Rule;
pub(crate) use spelling::PROTECTED_FILES;
pub use verify::{PathPolicy, VerifiedEdit, VerifiedEdits};

/// Applies `edits`. The files they replace are first saved in `undo_log`, unless it has them already.
///
/// # Errors
/// Fails if anything fails; the tree is then as it was before, unless the error says otherwise.
pub(crate) fn apply(
    tree: Tree<'_>,
    edits: &VerifiedEdits,
    undo_log: Option<&mut UndoLog<'_>>,
) -> Result<Option<Applied>, ApplyError> {
    if edits.edits().is_empty() {
        return Ok(None);
    }
    // An unfinished earlier transaction must be recovered first: afterwards it could no longer be undone.
    recovery::recover(tree)?;
    let steps: Vec<_> = edits.edits().iter().map(VerifiedEdit::operation).collect();
    let whole = ChangeSet {
        steps: &steps,
        directories: Vec::new(),
        journalling: Journalling::On,
    };
    apply::take(tree, &whole, undo_log).map(Some)
}
