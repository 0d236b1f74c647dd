//! Applies operations to the disk as one transaction, all or nothing, even if the program is killed part-way.
//!
//! Writes below the root, the journal, and the undo log. Each file is first written next to its target, under a staged
//! name, and renamed into place once all files are written; so no other process ever sees half a file, and a full disk
//! is noticed before anything has changed. A new directory is staged as a whole and moved into place by one rename. A
//! file that is replaced takes the staged name until the end. From before the first change until after the last, the
//! journal records the operation in progress, so that it is undone after an error or a kill: see `rollback`, and
//! `recovery`, which callers must run first. All accesses go through directory handles that cannot lead out of the
//! root.
//!
//! Before the first rename, the journal, the undo log and the new files are synced to disk. Together with file systems
//! that preserve the order of renames (ext4, XFS, Btrfs), this ensures that a power cut leaves either the old tree or
//! the new one.

use std::ops::Range;
use std::path::Path;
use std::time::SystemTime;

use super::beneath::{Beneath, Root, split};
use super::disk::sync_file_system;
use super::error::ApplyError;
use super::journal::{Journal, JournalState};
use super::operation::{ChangeSet, Journalling, Operation};
use super::plan::ApplyPlan;
use super::record::Record;
use super::rollback;
use super::stage::{FEW_FILES, make_directories, stage};
use super::staged_entry::StagedEntry;
use super::undo_log::UndoLog;
use crate::sys::counter::Counter;
use crate::sys::files::PathError;
use crate::sys::identity::Stamp;
use crate::sys::parallel::in_parallel;

/// The tree that edits are applied to.
#[derive(Debug, Clone, Copy)]
pub struct Tree<'t> {
    /// The project's root.
    pub root: &'t Path,
    /// The directory of the journal, which no reply may write to.
    pub journal: &'t Path,
    /// The time that new files get as their modification time.
    pub now: SystemTime,
    /// Counter of the files staged so far, if any; staging is most of the work.
    pub staged: Option<&'t Counter>,
}

/// The result of a transaction that has taken effect.
#[derive(Debug)]
pub struct Applied {
    /// Time at which the new tree took effect.
    pub installed: Stamp,
    /// The error that prevented replaced files from being removed; the next run removes them.
    pub left: Option<ApplyError>,
    /// Attributes of replaced files that could not be carried over, one sentence each.
    pub lost: Vec<String>,
}

/// Applies a change set, all or nothing.
pub(super) fn take(
    tree: Tree<'_>,
    whole: &ChangeSet<'_, '_>,
    mut undo_log: Option<&mut UndoLog<'_>>,
) -> Result<Applied, ApplyError> {
    let root = Root::open(tree.root).map_err(PathError::of("open", tree.root))?;
    let plan = ApplyPlan::of(&root, whole, tree.now)?;
    let done = plan
        .record(undo_log.as_deref_mut())
        .and_then(|record| carry_out(&plan, tree, &record));
    if let Some(undo_log) = undo_log {
        undo_log.settle(done.is_ok());
    }
    done
}

/// Carries out the plan, and undoes it if something fails.
fn carry_out(plan: &ApplyPlan<'_>, tree: Tree<'_>, record: &Record) -> Result<Applied, ApplyError> {
    let mut journal = match plan.whole.journalling {
        Journalling::On => Journal::arm(tree.journal, record)?,
        Journalling::Off => Journal::without_file(),
    };
    let done = stage_all(plan, tree.staged).and_then(|lost| {
        journal.advance(JournalState::Installing)?;
        in_parallel(plan.units.len(), |units| install(plan, units))?;
        Ok((journal.install()?, lost))
    });
    match done {
        // The new tree has taken effect, even if the cleanup fails.
        Ok((installed, lost)) => {
            let left = rollback::remove_leftovers(plan.root, record)
                .or_else(|_| rollback::remove_leftovers(plan.root, record))
                .and_then(|()| journal.remove().map_err(ApplyError::EarlierJournal))
                .err();
            if left.is_some() {
                // If this fails too, the next run treats this one as interrupted, and reports that it is complete.
                let _ = journal.advance(JournalState::Ended);
            }
            Ok(Applied {
                installed,
                left,
                lost,
            })
        }
        Err(error) => match rollback::roll_back(plan.root, record, &mut journal) {
            Ok(()) => {
                // Removing the journal is all that is left; if it fails, the next run does it.
                let _ = journal.remove();
                Err(error)
            }
            Err(obstacle) => Err(ApplyError::NotRolledBack {
                error: Box::new(error),
                obstacle: Box::new(obstacle),
            }),
        },
    }
}

/// Writes the new files and syncs them to disk. Returns a sentence for each attribute that could not be carried over.
fn stage_all(plan: &ApplyPlan<'_>, staged: Option<&Counter>) -> Result<Vec<String>, ApplyError> {
    make_directories(plan)?;
    let files = plan.whole.steps.len();
    let lost = in_parallel(files, |slots| stage(plan, slots, staged))?;
    if files > FEW_FILES && plan.whole.journalling == Journalling::On {
        sync_file_system(plan.root).map_err(PathError::of("write to the disk of", "."))?;
    }
    Ok(lost.concat())
}

/// Moves units into place, stopping at the first failure.
fn install(plan: &ApplyPlan<'_>, units: Range<usize>) -> Result<(), ApplyError> {
    let mut beneath = Beneath::of(plan.root.clone());
    for unit in &plan.units[units] {
        let parent = beneath
            .at(split(unit.target).0)
            .map_err(PathError::of("open the directory of", unit.target))?;
        let place = StagedEntry {
            directory: parent,
            name: split(unit.target).1,
            staged: split(&unit.staged).1,
        };
        let step = &plan.whole.steps[unit.steps.start];
        let (action, put) = match (&step.action, step.present) {
            (Operation::Remove, None) => continue,
            (Operation::Remove, Some(present)) => ("remove", place.remove(present)),
            (_, Some(present)) => ("replace", place.replace(present)),
            (_, None) => ("create", place.create()),
        };
        put.map_err(PathError::of(action, unit.target))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
