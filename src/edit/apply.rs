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
//! For power cuts, only the journal and the undo log are flushed to the disk before anything changes,
//! which costs next to nothing; they, and the file system's keeping of the order of renames (ext4, XFS,
//! Btrfs), see to it that the old tree can be had back. A reply's new files follow later, commonly while
//! the build runs. Until they are there, the journal stays: should a power cut tear one of them, all of
//! them are undone.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use super::beneath::{OpenDirectory, PathEntry, Root, split};
use super::digest::Stamp;
use super::disk::sync;
use super::error::{ApplyError, JournalError, RecoverError, apply_failed, recover_failed};
use super::journal::{Journal, JournalState};
use super::operation::{ChangeSet, Operation};
use super::place::StagedEntry;
use super::plan::ApplyPlan;
use super::record::Record;
use super::rollback;
use super::stage::{make_directories, stage};
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
    journal: Journal,
    record: Record,
    /// What kept the files that were replaced from being removed: the next run removes them.
    pub left: Option<RecoverError>,
    /// What the new files could not be given of those that they replace, a sentence each.
    pub lost: Vec<String>,
}

impl Applied {
    /// Sees that the new files are on the disk, and removes the journal; says whether that is done: it
    /// is left to the next run when `stop` says so, or when something could not be removed.
    ///
    /// # Errors
    /// When the system does not get them there.
    pub fn flush(&self, root: &Path, stop: &AtomicBool) -> Result<bool, RecoverError> {
        if self.left.is_some() {
            return Ok(false);
        }
        let root = Root::open(root).map_err(recover_failed("."))?;
        let flushed = flush(&root, &self.record, stop)?;
        if flushed {
            self.journal.remove()?;
        }
        Ok(flushed)
    }

    /// When it was complete.
    pub fn installed(&self) -> Stamp {
        // Where that cannot be told, everything later counts as somebody's change, and is looked at.
        self.journal.own_until().unwrap_or_default()
    }

    /// How many files were written.
    pub fn files(&self) -> usize {
        self.record.new_files().len()
    }

    /// Notes that the run has come to its end.
    ///
    /// # Errors
    /// When that cannot be noted; the next run then takes this one for cut short.
    pub fn end(mut self) -> Result<(), JournalError> {
        self.journal.advance(JournalState::Ended)
    }
}

/// Whether there is a journal of what is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Journalling {
    /// There is, so that a kill leaves nothing half done.
    On,
    /// There is none: the last resort of a run that takes its edits back on a disk that takes no more.
    Off,
}

/// Does all of it, or nothing.
pub(super) fn take(
    tree: Tree<'_>,
    whole: &ChangeSet<'_, '_>,
    mut undo_log: Option<&mut UndoLog<'_>>,
    journalling: Journalling,
) -> Result<Applied, ApplyError> {
    let root = Root::open(tree.root).map_err(apply_failed("open", tree.root))?;
    let plan = ApplyPlan::of(&root, whole, tree.now)?;
    let done = plan
        .record(undo_log.as_deref_mut())
        .and_then(|record| carry_out(&plan, tree, record, journalling));
    match (&done, undo_log) {
        (Ok(_), Some(undo_log)) => undo_log.confirm(),
        (Err(_), Some(undo_log)) => undo_log.retract(),
        (_, None) => {}
    }
    done
}

/// Does it, and undoes it where something fails.
fn carry_out(
    plan: &ApplyPlan<'_>,
    tree: Tree<'_>,
    record: Record,
    journalling: Journalling,
) -> Result<Applied, ApplyError> {
    let mut journal = match journalling {
        Journalling::On => Journal::arm(tree.journal, &record)?,
        Journalling::Off => Journal::without_file(),
    };
    let done = stage_all(plan, tree.staged).and_then(|lost| {
        journal.advance(JournalState::Installing)?;
        install_all(plan)?;
        journal.install()?;
        Ok(lost)
    });
    match done {
        // The tree is the new one, whatever comes now.
        Ok(lost) => Ok(Applied {
            lost,
            left: rollback::remove_leftovers(plan.root, &record)
                .or_else(|_| rollback::remove_leftovers(plan.root, &record))
                .err(),
            journal,
            record,
        }),
        Err(error) => match rollback::roll_back(plan.root, &record, &mut journal) {
            Ok(_) => {
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

/// Says what the new files could not be given.
fn stage_all(plan: &ApplyPlan<'_>, staged: Option<&Counter>) -> Result<Vec<String>, ApplyError> {
    make_directories(plan)?;
    let lost = in_parallel(plan.whole.steps.len(), |slots| stage(plan, slots, staged))?;
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

/// Sees that the new files are on the disk; gives up, with `false`, when `stop` says so.
///
/// # Errors
/// When the system does not get them there.
pub(super) fn flush(root: &Root, record: &Record, stop: &AtomicBool) -> Result<bool, RecoverError> {
    let files = record.new_files();
    let flushed = in_parallel(files.len(), |share| {
        let mut directory = OpenDirectory::default();
        for (path, _) in &files[share] {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            match directory.entry(root, path) {
                Ok(PathEntry::File(file)) => sync(&file).map_err(recover_failed(path))?,
                // What was replaced, removed or locked since is somebody else's concern.
                Ok(PathEntry::Nothing | PathEntry::SomethingElse) => {}
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                Err(error) => return Err(recover_failed(path)(error)),
            }
        }
        Ok(true)
    });
    Ok(!flushed?.contains(&false))
}

#[cfg(test)]
mod tests;
