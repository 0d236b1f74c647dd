//! Makes the new files, under their staged names: writes them, or brings back what was kept.
//!
//! Writes beside the targets, and in new directories that have staged names themselves. Guarantees that
//! nothing is overwritten, that a file which is to replace another is private until it has that one's
//! mode, and that what is brought back is what was kept.

use std::fs::{File, FileTimes, Permissions};
use std::io::{self, Seek as _};
use std::ops::Range;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::{PermissionsExt as _, fchown};

use rustix::fs::AtFlags;

use super::beneath::{OpenDirectory, Root, create_new, if_there, open_regular, split};
use super::changes::Before;
use super::disk;
use super::error::{ApplyError, apply_failed};
use super::operation::{Durability, FileOperation, Operation};
use super::plan::Plan;

/// Makes the new directories, under their staged names.
pub fn make_directories(plan: &Plan<'_>) -> Result<(), ApplyError> {
    let in_new = plan.units.iter().filter(|unit| unit.is_directory);
    let mut last = None;
    for slot in in_new.flat_map(|unit| unit.steps.clone()) {
        let parent = split(&plan.staged[slot]).0;
        if last != Some(parent) {
            plan.root.ensure_directory(parent).map_err(apply_failed(
                "make the directory of",
                plan.whole.steps[slot].path,
            ))?;
            last = Some(parent);
        }
    }
    Ok(())
}

/// Writes new files under their staged names.
pub fn stage(plan: &Plan<'_>, slots: Range<usize>) -> Result<(), ApplyError> {
    let mut directory = OpenDirectory::default();
    for slot in slots {
        let step = &plan.whole.steps[slot];
        let (parent, name) = split(&plan.staged[slot]);
        let staged = directory.at(plan.root, parent).map_err(io::Error::from);
        staged
            .and_then(|directory| stage_one(plan, directory, name, step))
            .map_err(apply_failed("write", step.path))?;
    }
    Ok(())
}

/// Makes a file that must not exist. One that is to replace another gets its mode and owner.
fn stage_one(
    plan: &Plan<'_>,
    directory: BorrowedFd<'_>,
    name: &str,
    step: &FileOperation<'_>,
) -> io::Result<()> {
    let (file, mode_and_owner) = match &step.action {
        Operation::Remove => return Ok(()),
        Operation::Write(content) => {
            // Private until it has its mode: the file that it replaces may be.
            let mode = if step.present.is_some() { 0o600 } else { 0o666 };
            let mut file = create_new(directory, name, mode)?;
            disk::write_all(&mut file, content.as_bytes())?;
            (
                file,
                step.present.map(|present| (present.mode, present.owner)),
            )
        }
        Operation::Restore { path, before } => {
            let file = bring_back(plan.root, path, before, directory, name)?;
            (file, Some((before.mode, before.owner)))
        }
    };
    if let Some((mode, (user, group))) = mode_and_owner {
        // Somebody else's file stays theirs where we may give files away; the owner first, as a
        // change of owner clears mode bits.
        let _ = fchown(&file, Some(user), Some(group));
        disk::set_permissions(&file, Permissions::from_mode(mode))?;
    }
    // Not to the nanosecond everywhere; then a file that a power cut has torn is not known for ours.
    disk::set_times(&file, FileTimes::new().set_modified(plan.now))?;
    if plan.whole.durability == Durability::AtOnce {
        disk::sync(&file)?;
    }
    Ok(())
}

/// A copy of a file that was kept.
fn bring_back(
    root: &Root,
    path: &str,
    before: &Before,
    directory: BorrowedFd<'_>,
    name: &str,
) -> io::Result<File> {
    let (parent, kept) = split(path);
    let vault = root.directory_to_read(parent)?;
    let mut source = open_regular(vault.as_fd(), kept)?
        .ok_or_else(|| io::Error::other(format!("`{path}`, which keeps it, is gone")))?;
    let copied = create_new(directory, name, 0o600).map_err(io::Error::from);
    let copied = copied.and_then(|mut copy| {
        disk::copy(&mut source, &mut copy)?;
        Ok(copy)
    });
    source.rewind()?;
    let file = if let Ok(copy) = copied {
        copy
    } else {
        // The kept file itself takes no room.
        if_there(disk::unlinkat(directory, name, AtFlags::empty()))?;
        disk::linkat(&vault, kept, directory, name)?;
        source.try_clone()?
    };
    if before.digest.is_of(source)? {
        Ok(file)
    } else {
        Err(io::Error::other(format!(
            "`{path}`, which keeps it, was changed"
        )))
    }
}
