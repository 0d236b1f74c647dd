//! Creates the new files under their staged names: writes them, or restores saved ones.
//!
//! Writes next to the targets, and in new directories that are staged themselves. Guarantees that nothing is
//! overwritten, that a file replacing another is private until it has the same permissions, and that a restored file
//! has the saved content.

use std::fs::{File, FileTimes};
use std::io::{self, Seek as _};
use std::ops::Range;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, RawMode, Stat, fstat};

use super::attributes::{Rights, preserve_metadata};
use super::beneath::{Beneath, if_there, open_regular, split};
use super::changes::Before;
use super::digest::{Present, changed_meanwhile};
use super::disk;
use super::error::ApplyError;
use super::operation::{FileOperation, Journalling, Operation};
use super::plan::ApplyPlan;
use crate::project::run_folder::REPLACED;
use crate::sys::counter::Counter;
use crate::sys::files::PathError;

/// Up to this many files are synced one by one; beyond that, the whole file system is.
pub const FEW_FILES: usize = 8;

/// Creates the new directories under their staged names.
pub fn make_directories(plan: &ApplyPlan<'_>) -> Result<(), ApplyError> {
    let in_new = plan.units.iter().filter(|unit| unit.is_directory);
    let mut last = None;
    for slot in in_new.flat_map(|unit| unit.steps.clone()) {
        let parent = split(&plan.staged[slot]).0;
        if last != Some(parent) {
            plan.root.ensure_directory(parent).map_err(PathError::of(
                "make the directory of",
                plan.whole.steps[slot].path,
            ))?;
            last = Some(parent);
        }
    }
    Ok(())
}

/// Writes new files under their staged names. Returns a sentence for each attribute of the replaced files that could
/// not be carried over.
pub fn stage(
    plan: &ApplyPlan<'_>,
    slots: Range<usize>,
    staged: Option<&Counter>,
) -> Result<Vec<String>, ApplyError> {
    let mut beneath = Beneath::of(plan.root.clone());
    let mut lost = Vec::new();
    for slot in slots {
        let step = &plan.whole.steps[slot];
        let (parent, name) = split(&plan.staged[slot]);
        let opened = beneath.at(parent).map_err(io::Error::from);
        let lost_here = opened
            .and_then(|directory| stage_one(plan, directory, name, step))
            .map_err(PathError::of("write", step.path))?;
        let sentences = lost_here.iter();
        lost.extend(sentences.map(|what| format!("`{}` {what}", step.path)));
        staged.inspect(|staged| staged.add());
    }
    Ok(lost)
}

/// Creates a file that must not exist. If it replaces or restores another, it gets that file's attributes; returns
/// those that could not be carried over.
fn stage_one(
    plan: &ApplyPlan<'_>,
    directory: BorrowedFd<'_>,
    name: &str,
    step: &FileOperation<'_>,
) -> io::Result<Vec<String>> {
    let (file, lost) = match &step.action {
        Operation::Remove => return Ok(Vec::new()),
        Operation::Write(content) => {
            // Private until it has its mode: the file that it replaces may be private.
            let mode = if step.present.is_some() { 0o600 } else { 0o666 };
            let mut file = disk::create_new_in(directory, name, mode)?;
            disk::write_all(&mut file, content.as_bytes())?;
            let lost = match step.present {
                Some(present) => {
                    let (old, stat) = open_present(directory, split(step.path).1, present)?;
                    preserve_metadata(&old, stat.st_mode, &file, Rights::of(&stat))?
                }
                None => Vec::new(),
            };
            (file, lost)
        }
        Operation::Restore { path, before, held } => {
            let vault = match held {
                Some(held) => held.directory_to_read(REPLACED),
                None => plan.root.directory_to_read(split(path).0),
            };
            let vault = if_there(vault)?.ok_or_else(|| gone(path))?;
            let (file, kept) = bring_back(&vault, path, before, directory, name)?;
            let stat = fstat(&kept)?;
            let rights = restored_rights(before.mode, Rights::of(&stat), step.present);
            let mut lost = preserve_metadata(&kept, stat.st_mode, &file, rights)?;
            if rights.mode != before.mode {
                lost.push(format!(
                    "has the mode {:o} and not {:o}, which its record gives it and no file had",
                    rights.mode, before.mode
                ));
            }
            (file, lost)
        }
    };
    // The undo log compares this time to find files not touched by a build.
    disk::set_times(&file, FileTimes::new().set_modified(plan.now))?;
    if plan.whole.steps.len() <= FEW_FILES && plan.whole.journalling == Journalling::On {
        disk::sync(&file)?;
    }
    Ok(lost)
}

/// Returns the permissions and owner of a restored file. The record is untrusted, so the owner is taken from the disk,
/// and the permissions are limited to those of the saved file and of the file being replaced.
fn restored_rights(recorded: RawMode, kept: Rights, present: Option<Present>) -> Rights {
    let present = present.map(|present| present.rights);
    Rights {
        mode: recorded & (kept.mode | present.map_or(0, |present| present.mode)),
        owner: present.unwrap_or(kept).owner,
    }
}

/// Opens the file that will be replaced.
fn open_present(
    directory: BorrowedFd<'_>,
    name: &str,
    present: Present,
) -> io::Result<(File, Stat)> {
    let file = open_regular(directory, name)?.ok_or_else(changed_meanwhile)?;
    let stat = fstat(&file)?;
    present.check(&stat)?;
    Ok((file, stat))
}

/// Returns the error for a saved file that is missing.
fn gone(path: &str) -> io::Error {
    io::Error::other(format!("`{path}`, which keeps it, is gone"))
}

/// Restores a saved file; returns the new file and the saved one.
fn bring_back(
    vault: &OwnedFd,
    path: &str,
    before: &Before,
    directory: BorrowedFd<'_>,
    name: &str,
) -> io::Result<(File, File)> {
    let kept = split(path).1;
    let mut source = open_regular(vault.as_fd(), kept)?.ok_or_else(|| gone(path))?;
    let mut copy_it = || -> io::Result<File> {
        let mut copy = disk::create_new_in(directory, name, 0o600)?;
        disk::copy(&mut source, &mut copy)?;
        Ok(copy)
    };
    let file = match copy_it() {
        Ok(copy) => copy,
        Err(error) => {
            // Links the saved file instead, which needs no space. On another disk, it cannot be linked.
            if_there(disk::unlinkat(directory, name, AtFlags::empty()))?;
            disk::linkat(vault, kept, directory, name).map_err(|_| error)?;
            source.try_clone()?
        }
    };
    source.rewind()?;
    let changed = || io::Error::other(format!("`{path}`, which keeps it, was changed"));
    let is_as_saved = before.digest.is_of(source.try_clone()?)?;
    is_as_saved.then_some((file, source)).ok_or_else(changed)
}
