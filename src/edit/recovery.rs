//! Recovers the tree if an earlier transaction was cut short.
//!
//! Examines only the files named in the journal. Guarantees that a file which is neither the old one nor the reply's is
//! not touched; that recovery may itself be cut short and repeated; and that nothing is restored unless everything can
//! be.

use super::apply::Tree;
use super::beneath::Root;
use super::error::{ApplyError, recover_failed};
use super::journal::{Journal, JournalState};
use super::rollback::{remove_leftovers, roll_back};
use super::undo_log::release;

/// The outcome of a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovered {
    /// The transaction was cut short while changing files; the old tree is restored.
    RolledBack,
    /// The transaction was cut short after all files were changed; the new tree stays.
    Completed,
}

/// Recovers the tree if an earlier process or transaction was cut short; returns `None` if there was nothing to do.
///
/// # Errors
/// Fails if that would require touching files changed by others; nothing is restored then.
pub fn recover(tree: Tree<'_>) -> Result<Option<Recovered>, ApplyError> {
    let mut recovered = None;
    // A transaction may have been in progress while leftovers of the previous one remained.
    let find = || Journal::find(tree.journal).map_err(ApplyError::EarlierJournal);
    while let Some((mut journal, record)) = find()? {
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
            // Frees the disk space reserved by a run that was cut short.
            release(&root, folder);
        }
        journal.remove().map_err(ApplyError::EarlierJournal)?;
        recovered = recovered.or(found);
    }
    Ok(recovered)
}
