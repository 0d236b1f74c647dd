//! Undoes a transaction that was cut short, and removes the leftovers of a completed one.
//!
//! Examines only the files named in the journal's record. Guarantees that a file which is neither the old one nor the
//! reply's is not touched; that a roll-back may itself be cut short and repeated; and that nothing is restored unless
//! everything can be.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{AtFlags, Dir};
use rustix::io::Errno;

use super::beneath::{Root, ancestors, if_there, open_regular, split};
use super::digest::Digest;
use super::disk::{renameat, statat, unlinkat};
use super::error::{ApplyError, recover_failed};
use super::journal::{Journal, JournalState};
use super::record::{Record, RecordedUnit, UnitChange};
use super::staged_entry::{StagedEntry, old_name};
use crate::project::walk::joined;
use crate::sys::identity::Fingerprint;

/// Undoes the recorded operations, however far they got.
///
/// # Errors
/// Fails if that would require touching files changed by others; nothing is restored then.
pub(super) fn roll_back(
    root: &Root,
    record: &Record,
    journal: &mut Journal,
) -> Result<(), ApplyError> {
    if journal.state() == JournalState::Installing {
        put_all_back(root, record)?;
        // An error is ignored: the steps that follow may be repeated.
        let _ = journal.advance(JournalState::RolledBack);
    }
    for unit in &record.units {
        remove_staged(root, unit).map_err(recover_failed(&unit.staged))?;
    }
    Ok(())
}

/// Moves back the units that are in place.
fn put_all_back(root: &Root, record: &Record) -> Result<(), ApplyError> {
    let (mut moves, mut changed) = (Vec::new(), Vec::new());
    for unit in &record.units {
        match plan_rollback(root, unit).map_err(recover_failed(&unit.target))? {
            Some(WayBack::None) => {}
            Some(back) => moves.push((unit, back)),
            None => changed.push(explain(unit, record)),
        }
    }
    if !changed.is_empty() {
        return Err(ApplyError::Changed(changed));
    }
    moves.into_iter().rev().try_for_each(|(unit, back)| {
        put_back(root, unit, back).map_err(recover_failed(&unit.target))
    })
}

/// Explains where to find the versions of a file that prevents a roll-back.
fn explain(unit: &RecordedUnit, record: &Record) -> String {
    let RecordedUnit { target, staged, .. } = unit;
    let log = record.folder.as_ref().map_or(String::new(), |folder| {
        format!("; the reply is in `{folder}`")
    });
    match unit.change {
        UnitChange::Create { .. } | UnitChange::CreateDirectory { .. } => format!(
            "`{target}`, which was not there before, is not as the reply made it{log} (move it \
             away, run `code-commit recover`, and move it back)"
        ),
        UnitChange::Replace { .. } | UnitChange::Remove { .. } => format!(
            "`{target}` is neither the old file nor the reply's; the old one is `{staged}`{log}"
        ),
    }
}

/// Removes the replaced and removed files of a completed transaction, and the directories that it should remove.
///
/// # Errors
/// Fails if a file or directory cannot be removed.
pub(super) fn remove_leftovers(root: &Root, record: &Record) -> Result<(), ApplyError> {
    for unit in &record.units {
        if matches!(
            unit.change,
            UnitChange::Replace { .. } | UnitChange::Remove { .. }
        ) {
            remove_staged(root, unit).map_err(recover_failed(&unit.staged))?;
        }
    }
    for directory in &record.directories {
        match remove_at(root, directory, AtFlags::REMOVEDIR) {
            // The directory is in use by others, or has become something else: leave it.
            Ok(())
            | Err(
                Errno::NOTEMPTY
                | Errno::EXIST
                | Errno::NOTDIR
                | Errno::BUSY
                | Errno::LOOP
                | Errno::XDEV,
            ) => {}
            Err(errno) => return Err(recover_failed(directory)(errno)),
        }
    }
    Ok(())
}

/// The way to restore a unit.
#[derive(Clone, Copy)]
enum WayBack {
    /// Nothing to do: the unit was never in place, or is already restored.
    None,
    /// Move the target to the staged name, and remove it there.
    TargetToStaged,
    /// Move the old file from the staged name over the target.
    StagedOverTarget,
    /// Move the old file from the staged name to the missing target.
    StagedToTarget,
    /// Move the old file from the third name over the target.
    KeptOverTarget,
}

/// Determines how far a unit got; `None` if it was changed after it was put in place.
fn plan_rollback(root: &Root, unit: &RecordedUnit) -> io::Result<Option<WayBack>> {
    let (parent, name) = split(&unit.target);
    let staged = split(&unit.staged).1;
    let Some(directory) = if_there(root.directory(parent))? else {
        // The unit was removed together with its directory.
        return Ok(Some(WayBack::None));
    };
    let staged_there = exists(&directory, staged)?;
    let target_there = exists(&directory, name)?;
    Ok(match &unit.change {
        // The staged name is free only once the unit is in place, or before it was created.
        UnitChange::Create { .. } | UnitChange::CreateDirectory { .. }
            if staged_there || !target_there =>
        {
            Some(WayBack::None)
        }
        UnitChange::Create { new } => {
            is_new(&directory, name, *new)?.then_some(WayBack::TargetToStaged)
        }
        UnitChange::CreateDirectory { files } => {
            is_new_directory(root, &unit.target, files)?.then_some(WayBack::TargetToStaged)
        }
        UnitChange::Replace { old, new } => {
            replaced(&directory, name, staged, (old.fingerprint, *new))?
        }
        UnitChange::Remove { .. } if !staged_there => Some(WayBack::None),
        UnitChange::Remove { .. } => (!target_there).then_some(WayBack::StagedToTarget),
    })
}

fn replaced(
    directory: &OwnedFd,
    name: &str,
    staged: &str,
    (old, new): (Fingerprint, Digest),
) -> io::Result<Option<WayBack>> {
    if is_old(directory, name, old)? {
        return Ok(Some(WayBack::None));
    }
    let target_is_new = is_new(directory, name, new)?;
    if exists(directory, &old_name(staged))? {
        let free = !exists(directory, name)?;
        return Ok((free || target_is_new).then_some(WayBack::KeptOverTarget));
    }
    let in_place = is_old(directory, staged, old)?
        || exists(directory, staged)? && !is_new(directory, staged, new)?;
    // A file other than the verified one may have been taken out; it is restored as well.
    Ok(if in_place {
        target_is_new.then_some(WayBack::StagedOverTarget)
    } else {
        Some(WayBack::None)
    })
}

/// Returns whether a file has the content of the reply.
fn is_new(directory: &OwnedFd, name: &str, new: Digest) -> io::Result<bool> {
    let file = open_regular(directory.as_fd(), name)?;
    file.map_or(Ok(false), |file| new.is_of(file))
}

/// Returns whether a directory contains only the reply's files, unchanged; some may be missing.
fn is_new_directory(root: &Root, path: &str, files: &[(String, Digest)]) -> io::Result<bool> {
    let directories = directories_of(files);
    let mut names = directories.clone();
    names.extend(files.iter().map(|(file, _)| file.as_str()));
    for directory in directories.into_iter().chain([""]) {
        let handle = match root.directory(&joined(path, directory)) {
            Ok(handle) => handle,
            // Part of the directory has been removed.
            Err(Errno::NOENT) => continue,
            Err(Errno::NOTDIR | Errno::LOOP) => return Ok(false),
            Err(errno) => return Err(errno.into()),
        };
        let is_known = |entry: &String| names.contains(joined(directory, entry).as_str());
        if !entries(&handle)?.iter().all(is_known) {
            return Ok(false);
        }
    }
    for (file, new) in files {
        let (parent, name) = split(file);
        if let Ok(handle) = root.directory(&joined(path, parent))
            && exists(&handle, name)?
            && !is_new(&handle, name, *new)?
        {
            return Ok(false);
        }
    }
    Ok(true)
}

fn put_back(root: &Root, unit: &RecordedUnit, back: WayBack) -> Result<(), Errno> {
    let (parent, name) = split(&unit.target);
    let staged = split(&unit.staged).1;
    let directory = root.directory(parent)?;
    let place = StagedEntry {
        directory: directory.as_fd(),
        name,
        staged,
    };
    match back {
        WayBack::None => Ok(()),
        WayBack::TargetToStaged => place.rename_new(name, staged),
        WayBack::StagedOverTarget => renameat(&directory, staged, name),
        WayBack::StagedToTarget => place.rename_new(staged, name),
        WayBack::KeptOverTarget => renameat(&directory, &old_name(staged), name),
    }
}

/// Removes the entry with a unit's staged name, if it exists.
fn remove_staged(root: &Root, unit: &RecordedUnit) -> Result<(), Errno> {
    let (parent, staged) = split(&unit.staged);
    let Some(directory) = if_there(root.directory(parent))? else {
        return Ok(());
    };
    if let UnitChange::CreateDirectory { files } = &unit.change {
        return remove_directory(root, &unit.staged, files);
    }
    unlink(&directory, staged, AtFlags::empty())?;
    unlink(&directory, &old_name(staged), AtFlags::empty())
}

fn remove_directory(root: &Root, path: &str, files: &[(String, Digest)]) -> Result<(), Errno> {
    for (file, _) in files {
        remove_at(root, &joined(path, file), AtFlags::empty())?;
    }
    // Reverse order puts inner directories first.
    for directory in directories_of(files).into_iter().rev() {
        remove_at(root, &joined(path, directory), AtFlags::REMOVEDIR)?;
    }
    remove_at(root, path, AtFlags::REMOVEDIR)
}

fn remove_at(root: &Root, path: &str, flags: AtFlags) -> Result<(), Errno> {
    let (parent, name) = split(path);
    let directory = if_there(root.directory(parent))?;
    directory.map_or(Ok(()), |directory| unlink(&directory, name, flags))
}

fn unlink(directory: &OwnedFd, name: &str, flags: AtFlags) -> Result<(), Errno> {
    if_there(unlinkat(directory, name, flags)).map(drop)
}

fn exists(directory: &OwnedFd, name: &str) -> Result<bool, Errno> {
    Ok(if_there(statat(directory, name))?.is_some())
}

fn is_old(directory: &OwnedFd, name: &str, old: Fingerprint) -> Result<bool, Errno> {
    Ok(if_there(statat(directory, name))?.is_some_and(|stat| old == Fingerprint::from(&stat)))
}

/// Returns the names in a directory, with invalid UTF-8 replaced.
fn entries(directory: &OwnedFd) -> Result<Vec<String>, Errno> {
    Dir::read_from(directory)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .filter(|name| !matches!(name.as_deref(), Ok("." | "..")))
        .collect()
}

/// Returns the directories on the way to `files`, outermost first.
fn directories_of(files: &[(String, Digest)]) -> BTreeSet<&str> {
    files.iter().flat_map(|(file, _)| ancestors(file)).collect()
}
