//! From untrusted text to changed files: parse, verify, apply.
//!
//! | module | what it is for |
//! |---|---|
//! | `parse`, `spelling`, `rule`, `comparison`, `comments`, `loss`, `form`, `guard`, `executed`, [`verify`](PathPolicy) | from a reply to edits that may be applied; only looks |
//! | `apply`, `operation`, `plan`, `stage`, `place` | from edits to the disk |
//! | `journal`, `record` | what is under way |
//! | `recovery`, `rollback` | what becomes of an application that was cut short |
//! | `undo_log`, `changes`, `undo` | what was replaced, and the way back to it |
//! | `beneath`, `disk`, `digest`, `attributes` | handles that stay below the root, the system's calls, what tells files apart, and what they have besides their content |
//! | `error` | what can go wrong between verified edits and a tree in order |
//!
//! Guarantees that nothing of a reply is written that [`PathPolicy::verify`] has not passed: only it makes
//! a [`VerifiedEdits`], and `apply` takes nothing else. What is undone or recovered is held
//! against the spelling of paths again, and goes through the same handles.

pub(crate) mod apply;
pub(crate) mod attributes;
pub(crate) mod beneath;
pub(crate) mod changes;
mod comments;
mod comparison;
mod digest;
mod disk;
pub(crate) mod error;
mod executed;
mod fault;
mod form;
mod guard;
mod journal;
mod loss;
mod operation;
mod parse;
mod place;
mod plan;
mod record;
pub(crate) mod recovery;
mod rollback;
mod rule;
pub(crate) mod spelling;
mod stage;
pub(crate) mod undo;
pub(crate) mod undo_log;
pub(crate) mod verify;

use apply::{Applied, Tree};
use error::ApplyError;
use operation::{ChangeSet, Journalling};
use undo_log::UndoLog;

pub(crate) use digest::{Digest, Stamp, stamp};
pub use fault::{Allowances, EditKind, FaultKind, FileEdit, Rejection, ReplyFault};
pub use guard::LossGuard;
pub use parse::{ParsedReply, parse};
pub use rule::Rule;
pub(crate) use spelling::PROTECTED_FILES;
pub use verify::{PathPolicy, VerifiedEdit, VerifiedEdits, VerifyError};

/// Applies `edits`. What they replace is kept in `undo_log` first.
///
/// # Errors
/// When anything fails; the tree is then as it was before, unless the error says otherwise.
pub(crate) fn apply(
    tree: Tree<'_>,
    edits: &VerifiedEdits,
    undo_log: &mut UndoLog<'_>,
) -> Result<Option<Applied>, ApplyError> {
    if edits.edits().is_empty() {
        return Ok(None);
    }
    // There is no way back behind this one: what an earlier one has left is to be in order first.
    recovery::recover(tree)?;
    let steps: Vec<_> = edits.edits().iter().map(VerifiedEdit::operation).collect();
    let whole = ChangeSet {
        steps: &steps,
        directories: Vec::new(),
        journalling: Journalling::On,
    };
    apply::take(tree, &whole, Some(undo_log)).map(Some)
}
