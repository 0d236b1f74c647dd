//! Undoes an application that counted already when a power cut tore one of its files.
//!
//! Looks at what the journal names and puts back what was kept, as one application of its own.
//! Guarantees that nothing is undone where somebody has changed a file since.

use super::apply::{self, Journalling, Tree};
use super::beneath::{OpenDirectory, PathEntry, Root};
use super::changes::Before;
use super::error::{RecoverError, recover_failed};
use super::journal::Journal;
use super::operation::{ChangeSet, Durability, FileOperation, Operation};
use super::record::{FileRecord, Record, Written};
use super::torn::{TornState, keep};

/// Puts everything back.
pub fn mend(
    tree: Tree<'_>,
    root: &Root,
    record: &Record,
    journal: &mut Journal,
    written: Written,
) -> Result<(), RecoverError> {
    let files = record.files();
    let mut steps = Vec::new();
    let mut changed = Vec::new();
    for FileRecord { path, new, old } in &files {
        let before = old.and_then(|old| old.kept.as_ref());
        let present = match new {
            Some(new) => match written.state_at(root, path, *new) {
                Ok(TornState::Whole(present) | TornState::Torn(present)) => Ok(Some(Some(present))),
                // Where nothing was before, there is nothing to do.
                Ok(TornState::Gone) if before.is_none() => continue,
                Ok(TornState::Gone | TornState::Changed) => Ok(None),
                Err(error) => Err(error),
            },
            // From where a file was removed: anything is somebody else's.
            None => OpenDirectory::default()
                .entry(root, path)
                .map(|entry| matches!(entry, PathEntry::Nothing).then_some(None)),
        };
        match present.map_err(recover_failed(path))? {
            Some(present) => steps.push(FileOperation {
                path,
                action: before.map_or(Operation::Remove, |(kept, before)| Operation::Restore {
                    path: kept.clone(),
                    before,
                    held: None,
                }),
                present,
            }),
            None => changed.push(explain(path, before)),
        }
    }
    if !changed.is_empty() {
        return Err(RecoverError::Changed(changed));
    }
    journal.mark_torn()?;
    keep(root, record)?;
    steps.sort_by_key(|step| step.path);
    let whole = ChangeSet {
        steps: &steps,
        directories: record.new_directories().into_iter().rev().collect(),
        durability: Durability::AtOnce,
    };
    let undone = apply::take(tree, &whole, None, Journalling::On);
    let undone = undone.map_err(|error| RecoverError::Torn(Box::new(error)))?;
    undone.left.map_or(Ok(()), Err)
}

fn explain(path: &str, before: Option<&(String, Before)>) -> String {
    let kept = before.map_or(String::new(), |(kept, _)| {
        format!("; what was there before the run is `{kept}`")
    });
    format!("`{path}` was changed, but other files of the same reply are torn{kept}")
}
