//! Puts the tree in order where an earlier application was cut short, or has not reached the disk whole.
//!
//! Looks at what the journal names and at nothing else; what a power cut may have torn, it keeps in
//! `agent-config/torn`. Guarantees that a file which is neither the old one nor the reply's is not
//! touched; that it may be cut short itself and started again; and that it puts nothing back before it
//! knows that it can put back all of it.

use std::sync::atomic::AtomicBool;

use super::apply::{Tree, flush};
use super::beneath::Root;
use super::error::{RecoverError, recover_failed};
use super::journal::{Journal, JournalState};
use super::mend::mend;
use super::record::Record;
use super::rollback::{remove_leftovers, roll_back};
use super::torn::is_torn;
use super::undo_log::release;

pub use super::rollback::Recovered;

/// Puts the tree in order, where an earlier process, or an earlier application, has left it otherwise.
///
/// # Errors
/// When that cannot be done without touching what is somebody else's; nothing is then put back.
pub fn recover(tree: Tree<'_>) -> Result<Option<Recovered>, RecoverError> {
    let mut recovered = None;
    // One application may be under way while the one before it is not on the disk for good yet.
    while let Some((mut journal, record)) = Journal::find(tree.journal)? {
        let root = Root::open(tree.root).map_err(recover_failed("."))?;
        let found = match journal.state() {
            JournalState::Armed | JournalState::Installing | JournalState::RolledBack => {
                Some(roll_back(&root, &record, &mut journal)?)
            }
            JournalState::Installed | JournalState::Ended => {
                finish(tree, &root, &record, &mut journal)?
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

/// As [`recover`], for a run that has not ended since its last application: no power cut can have come
/// between.
pub(super) fn settle(tree: Tree<'_>) -> Result<(), RecoverError> {
    if let Some((journal, record)) = Journal::find(tree.journal)?
        && matches!(
            journal.state(),
            JournalState::Installed | JournalState::Ended
        )
    {
        let root = Root::open(tree.root).map_err(recover_failed("."))?;
        remove_leftovers(&root, &record)?;
        flush(&root, &record, &AtomicBool::new(false))?;
        journal.remove()?;
    }
    recover(tree).map(drop)
}

/// Brings an application whose tree counts to its end; or undoes it, where a power cut has torn it.
fn finish(
    tree: Tree<'_>,
    root: &Root,
    record: &Record,
    journal: &mut Journal,
) -> Result<Option<Recovered>, RecoverError> {
    // What was replaced is kept elsewhere too.
    remove_leftovers(root, record)?;
    if !record.durable {
        let written = record.written(journal.own_until()?);
        if is_torn(root, record, written)? {
            mend(tree, root, record, journal, written)?;
            return Ok(Some(Recovered::Torn));
        }
        flush(root, record, &AtomicBool::new(false))?;
    }
    Ok(match (journal.state(), &record.folder) {
        (JournalState::Ended, _) => None,
        // Only the mending of torn files is done by no run.
        (_, None) => Some(Recovered::Torn),
        (_, Some(_)) => Some(Recovered::Completed),
    })
}
