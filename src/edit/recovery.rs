//! Puts the tree in order where an earlier application was cut short.
//!
//! Looks at what the journal names and at nothing else. Guarantees that a file which is neither the old one nor
//! the reply's is not touched; that it may be cut short itself and started again; and that it puts nothing back
//! before it knows that it can put back all of it.

use super::apply::Tree;
use super::beneath::Root;
use super::error::{RecoverError, recover_failed};
use super::journal::{Journal, JournalState};
use super::rollback::{remove_leftovers, roll_back};
use super::undo_log::release;

/// The outcome of a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovered {
    /// It was cut short while it changed files; the tree is as it was before that.
    RolledBack,
    /// It was cut short when all files were changed; the tree is the new one.
    Completed,
}

/// Puts the tree in order, where an earlier process, or an earlier application, has left it otherwise.
///
/// # Errors
/// When that cannot be done without touching what is somebody else's; nothing is then put back.
pub fn recover(tree: Tree<'_>) -> Result<Option<Recovered>, RecoverError> {
    let mut recovered = None;
    // One application may be under way while leftovers of the one before it are still there.
    while let Some((mut journal, record)) = Journal::find(tree.journal)? {
        let root = Root::open(tree.root).map_err(recover_failed("."))?;
        let found = match journal.state() {
            JournalState::Armed | JournalState::Installing | JournalState::RolledBack => {
                roll_back(&root, &record, &mut journal)?;
                Some(Recovered::RolledBack)
            }
            JournalState::Installed | JournalState::Ended => {
                remove_leftovers(&root, &record)?;
                (journal.state() == JournalState::Installed).then_some(Recovered::Completed)
            }
        };
        if let Some(folder) = &record.folder {
            // What kept room for a run that was cut short.
            release(&root, folder);
        }
        journal.remove()?;
        recovered = recovered.or(found);
    }
    Ok(recovered)
}
