//! Puts steps on the disk, all or nothing, even if the program is killed part-way.
//!
//! Writes below the root, the journal, and the undo log. Each file is first written beside its target,
//! under a name of its own, and renamed into place when all of them are written; so nobody ever sees
//! half a file, and a full disk is noticed before anything has changed. A new directory is made as a
//! whole and gets into place by one rename. A file that is replaced takes the staged name until the end.
//! The journal says what is under way from before the first change until after the last, so that an
//! error or a kill part-way is undone: see `rollback`, and `recovery`, which is for callers to call first.
//! All of it goes through directory handles that cannot lead out of the root.
//!
//! Before the first rename, the journal, the undo log and the new files are on the disk; they, and the file
//! system's keeping of the order of renames (ext4, XFS, Btrfs), see to it that a power cut leaves the old tree or
//! the new one, too.

use std::ops::Range;
use std::path::Path;
use std::time::SystemTime;

use super::beneath::{OpenDirectory, Root, split};
use super::digest::Stamp;
use super::disk::sync_file_system;
use super::error::{ApplyError, RecoverError, apply_failed};
use super::journal::{Journal, JournalState};
use super::operation::{ChangeSet, Journalling, Operation};
use super::place::StagedEntry;
use super::plan::ApplyPlan;
use super::record::Record;
use super::rollback;
use super::stage::{FEW_FILES, make_directories, stage};
use super::undo_log::UndoLog;
use crate::sys::counter::Counter;
use crate::sys::parallel::in_parallel;

/// Where edits go.
#[derive(Debug, Clone, Copy)]
pub struct Tree<'t> {
    /// The project's root.
    pub root: &'t Path,
    /// Where the journal is kept: a directory that no reply may write to.
    pub journal: &'t Path,
    /// The time; every new file says that it was written then.
    pub now: SystemTime,
    /// Counts the files that are ready to be put into their places, which is most of the work.
    pub staged: Option<&'t Counter>,
}

/// An application whose new tree counts.
#[derive(Debug)]
pub struct Applied {
    /// When it was complete.
    pub installed: Stamp,
    /// The error that kept replaced files from being removed: the next run removes them.
    pub left: Option<RecoverError>,
    /// Attributes of replaced files that the new ones could not be given, a sentence each.
    pub lost: Vec<String>,
}

/// Does all of it, or nothing.
pub(super) fn take(
    tree: Tree<'_>,
    whole: &ChangeSet<'_, '_>,
    mut undo_log: Option<&mut UndoLog<'_>>,
) -> Result<Applied, ApplyError> {
    let root = Root::open(tree.root).map_err(apply_failed("open", tree.root))?;
    let plan = ApplyPlan::of(&root, whole, tree.now)?;
    let done = plan
        .record(undo_log.as_deref_mut())
        .and_then(|record| carry_out(&plan, tree, &record));
    match (&done, undo_log) {
        (Ok(_), Some(undo_log)) => undo_log.confirm(),
        (Err(_), Some(undo_log)) => undo_log.retract(),
        (_, None) => {}
    }
    done
}

/// Does it, and undoes it where something fails.
fn carry_out(plan: &ApplyPlan<'_>, tree: Tree<'_>, record: &Record) -> Result<Applied, ApplyError> {
    let mut journal = match plan.whole.journalling {
        Journalling::On => Journal::arm(tree.journal, record)?,
        Journalling::Off => Journal::without_file(),
    };
    let done = stage_all(plan, tree.staged).and_then(|lost| {
        journal.advance(JournalState::Installing)?;
        install_all(plan)?;
        Ok((journal.install()?, lost))
    });
    match done {
        // The tree is the new one, whatever comes now.
        Ok((installed, lost)) => {
            let left = rollback::remove_leftovers(plan.root, record)
                .or_else(|_| rollback::remove_leftovers(plan.root, record))
                .and_then(|()| Ok(journal.remove()?))
                .err();
            if left.is_some() {
                // Should that fail too, the next run takes this one for cut short, and says that it is complete.
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
                // Nothing is left to do but this: where it fails, the next run does it.
                let _ = journal.remove();
                Err(error)
            }
            Err(obstacle) => Err(ApplyError::NotRolledBack {
                error: Box::new(error),
                obstacle,
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
        sync_file_system(plan.root).map_err(apply_failed("write to the disk of", "."))?;
    }
    Ok(lost.concat())
}

fn install_all(plan: &ApplyPlan<'_>) -> Result<(), ApplyError> {
    in_parallel(plan.units.len(), |units| install(plan, units)).map(drop)
}

/// Puts units into their places, up to the first that fails.
fn install(plan: &ApplyPlan<'_>, units: Range<usize>) -> Result<(), ApplyError> {
    let mut directory = OpenDirectory::default();
    for unit in &plan.units[units] {
        let parent = directory
            .at(plan.root, split(unit.target).0)
            .map_err(apply_failed("open the directory of", unit.target))?;
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
        put.map_err(apply_failed(action, unit.target))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
