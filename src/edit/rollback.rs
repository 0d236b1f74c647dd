//! Undoes an application that was cut short, and removes what one that was not has left.
//!
//! Looks at what the journal's record names and at nothing else. Guarantees that a file which is neither
//! the old one nor the reply's is not touched; that it may be cut short itself and started again; and that
//! it puts nothing back before it knows that it can put back all of it.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{AtFlags, RawDir};
use rustix::io::Errno;

use super::beneath::{Root, ancestors, if_there, open_regular, split};
use super::digest::{Digest, FOR_EVER, Fingerprint};
use super::disk::{renameat, statat, unlinkat};
use super::error::{RecoverError, recover_failed};
use super::journal::{Journal, JournalState};
use super::place::{StagedEntry, kept_name};
use super::record::{Record, RecordedUnit, UnitChange};
use super::torn::{self, TornState, Written};

/// What an earlier run has left, and what was made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovered {
    /// It was cut short while it changed files; the tree is as it was before that.
    RolledBack,
    /// What it changed did not reach the disk whole; the tree is as it was before that.
    Torn,
    /// It was cut short when all files were changed; the tree is the new one.
    Completed,
}

/// Undoes what the record says was under way, however far it came.
///
/// # Errors
/// When that cannot be done without touching what is somebody else's; nothing is then put back.
pub(super) fn roll_back(
    root: &Root,
    record: &Record,
    journal: &mut Journal,
) -> Result<Recovered, RecoverError> {
    let mut torn = false;
    if journal.state() == JournalState::Installing {
        torn = put_all_back(root, record)?;
        // Where that cannot be noted, what follows is done all the same: once more, if it must be.
        let _ = journal.advance(JournalState::RolledBack);
    }
    remove_all_staged(root, record)?;
    Ok(if torn {
        Recovered::Torn
    } else {
        Recovered::RolledBack
    })
}

/// Puts back what has got into its place. Says whether any of it was torn.
fn put_all_back(root: &Root, record: &Record) -> Result<bool, RecoverError> {
    let written = Written {
        stamp: record.stamp,
        until: FOR_EVER,
    };
    let look = Look { root, written };
    let mut moves = Vec::new();
    let mut changed = Vec::new();
    for unit in &record.units {
        match look.at(unit).map_err(recover_failed(&unit.target))? {
            Verdict::Untouched => {}
            Verdict::Back(back) => moves.push((unit, back)),
            Verdict::Changed => changed.push(explain(unit, record)),
        }
    }
    if !changed.is_empty() {
        return Err(RecoverError::Changed(changed));
    }
    let torn = torn::keep(root, record)?;
    for (unit, back) in moves.into_iter().rev() {
        put_back(root, unit, back).map_err(recover_failed(&unit.target))?;
    }
    Ok(torn)
}

/// Where the versions of a file lie that stands in the way of a roll-back.
fn explain(unit: &RecordedUnit, record: &Record) -> String {
    let RecordedUnit { target, staged, .. } = unit;
    let log = record.folder.as_ref().map_or_else(String::new, |folder| {
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

fn remove_all_staged(root: &Root, record: &Record) -> Result<(), RecoverError> {
    for unit in &record.units {
        remove_staged(root, unit).map_err(recover_failed(&unit.staged))?;
    }
    Ok(())
}

/// Removes the files that were replaced or removed by an application that is done, and the directories
/// that it was to remove.
///
/// # Errors
/// When one of them cannot be removed.
pub(super) fn remove_leftovers(root: &Root, record: &Record) -> Result<(), RecoverError> {
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
            // Something else is in it, or it is no directory any more: it is somebody else's.
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

/// What is to be done about a unit.
enum Verdict {
    /// It never got into place, or was put back already.
    Untouched,
    /// It is in place.
    Back(Back),
    /// It is in place, and was changed since.
    Changed,
}

/// How a unit is put back.
#[derive(Clone, Copy)]
enum Back {
    /// The target takes the staged name, and is removed from there.
    TargetToStaged,
    /// What has the staged name is the old file: it takes the target's place.
    StagedOverTarget,
    /// The same, where nothing is.
    StagedToTarget,
    /// The old file is kept under a third name.
    KeptOverTarget,
}

/// Finds out how far a unit came.
struct Look<'l> {
    root: &'l Root,
    /// When the new files were written.
    written: Written,
}

impl Look<'_> {
    fn at(&self, unit: &RecordedUnit) -> Result<Verdict, io::Error> {
        let (parent, name) = split(&unit.target);
        let staged = split(&unit.staged).1;
        let Some(directory) = if_there(self.root.directory(parent))? else {
            // Whoever removed the whole directory has removed the unit with it.
            return Ok(Verdict::Untouched);
        };
        let staged_there = exists(&directory, staged)?;
        let target_there = exists(&directory, name)?;
        Ok(match &unit.change {
            // The staged name is free only once the unit is in place, or before it was made.
            UnitChange::Create { .. } | UnitChange::CreateDirectory { .. }
                if staged_there || !target_there =>
            {
                Verdict::Untouched
            }
            UnitChange::Create { new } => {
                judge(self.is_new(&directory, name, *new)?, Back::TargetToStaged)
            }
            UnitChange::CreateDirectory { files } => judge(
                self.is_new_directory(&unit.target, files)?,
                Back::TargetToStaged,
            ),
            UnitChange::Replace { old, new } => {
                self.replaced(&directory, name, staged, (old.fingerprint, *new))?
            }
            UnitChange::Remove { .. } if !staged_there => Verdict::Untouched,
            UnitChange::Remove { .. } if target_there => Verdict::Changed,
            UnitChange::Remove { .. } => Verdict::Back(Back::StagedToTarget),
        })
    }

    fn replaced(
        &self,
        directory: &OwnedFd,
        name: &str,
        staged: &str,
        (old, new): (Fingerprint, Digest),
    ) -> io::Result<Verdict> {
        if is_old(directory, name, old)? {
            return Ok(Verdict::Untouched);
        }
        let target_is_new = self.is_new(directory, name, new)?;
        if exists(directory, &kept_name(staged))? {
            let free = !exists(directory, name)?;
            return Ok(judge(free || target_is_new, Back::KeptOverTarget));
        }
        let staged_is_old = is_old(directory, staged, old)?;
        if staged_is_old {
            return Ok(judge(target_is_new, Back::StagedOverTarget));
        }
        if !exists(directory, staged)? || self.is_new(directory, staged, new)? {
            // It never got into place, or was put back already.
            return Ok(Verdict::Untouched);
        }
        // Something else than the verified file was taken out: it goes back too.
        Ok(judge(target_is_new, Back::StagedOverTarget))
    }

    /// Whether a file is the one that the reply asked for; torn by a power cut, perhaps, but not
    /// written to by anybody else.
    fn is_new(&self, directory: &OwnedFd, name: &str, new: Digest) -> io::Result<bool> {
        let Some(file) = open_regular(directory.as_fd(), name)? else {
            return Ok(false);
        };
        let state = self.written.state_of(file, new)?;
        Ok(!matches!(state, TornState::Changed))
    }

    /// Whether a directory has the reply's files and no others.
    fn is_new_directory(&self, path: &str, files: &[(String, Digest)]) -> io::Result<bool> {
        let mut names: BTreeSet<&str> = files.iter().map(|(file, _)| file.as_str()).collect();
        names.extend(directories_of(files));
        for directory in directories_of(files).into_iter().chain([""]) {
            let handle = match self.root.directory(&join(path, directory)) {
                Ok(handle) => handle,
                // After a power cut a part of it may be missing.
                Err(Errno::NOENT) => continue,
                Err(Errno::NOTDIR | Errno::LOOP) => return Ok(false),
                Err(errno) => return Err(errno.into()),
            };
            let is_known = |entry: &String| names.contains(join(directory, entry).as_str());
            if !entries(&handle)?.iter().all(is_known) {
                return Ok(false);
            }
        }
        for (file, new) in files {
            let (parent, name) = split(file);
            if let Ok(handle) = self.root.directory(&join(path, parent))
                && exists(&handle, name)?
                && !self.is_new(&handle, name, *new)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn judge(is_new: bool, back: Back) -> Verdict {
    if is_new {
        Verdict::Back(back)
    } else {
        Verdict::Changed
    }
}

fn put_back(root: &Root, unit: &RecordedUnit, back: Back) -> Result<(), Errno> {
    let (parent, name) = split(&unit.target);
    let staged = split(&unit.staged).1;
    let directory = root.directory(parent)?;
    let place = StagedEntry {
        directory: directory.as_fd(),
        name,
        staged,
    };
    match back {
        Back::TargetToStaged => place.rename_new(name, staged),
        Back::StagedOverTarget => renameat(&directory, staged, name),
        Back::StagedToTarget => place.rename_new(staged, name),
        Back::KeptOverTarget => renameat(&directory, &kept_name(staged), name),
    }
}

/// Removes what has a unit's staged name. What is not there is as good as removed.
fn remove_staged(root: &Root, unit: &RecordedUnit) -> Result<(), Errno> {
    let (parent, staged) = split(&unit.staged);
    let Some(directory) = if_there(root.directory(parent))? else {
        return Ok(());
    };
    if let UnitChange::CreateDirectory { files } = &unit.change {
        return remove_directory(root, &unit.staged, files);
    }
    unlink(&directory, staged, AtFlags::empty())?;
    unlink(&directory, &kept_name(staged), AtFlags::empty())
}

fn remove_directory(root: &Root, path: &str, files: &[(String, Digest)]) -> Result<(), Errno> {
    for (file, _) in files {
        remove_at(root, &join(path, file), AtFlags::empty())?;
    }
    // The inner ones first, which sort behind.
    for directory in directories_of(files).into_iter().rev() {
        remove_at(root, &join(path, directory), AtFlags::REMOVEDIR)?;
    }
    remove_at(root, path, AtFlags::REMOVEDIR)
}

fn remove_at(root: &Root, path: &str, flags: AtFlags) -> Result<(), Errno> {
    let (parent, name) = split(path);
    match if_there(root.directory(parent))? {
        Some(directory) => unlink(&directory, name, flags),
        None => Ok(()),
    }
}

fn unlink(directory: &OwnedFd, name: &str, flags: AtFlags) -> Result<(), Errno> {
    if_there(unlinkat(directory, name, flags)).map(drop)
}

fn exists(directory: &OwnedFd, name: &str) -> Result<bool, Errno> {
    Ok(if_there(statat(directory, name))?.is_some())
}

fn is_old(directory: &OwnedFd, name: &str, old: Fingerprint) -> Result<bool, Errno> {
    Ok(if_there(statat(directory, name))?.is_some_and(|stat| old.is_of(&stat)))
}

/// The names in a directory, as far as they are text.
fn entries(directory: &OwnedFd) -> Result<Vec<String>, Errno> {
    let mut buffer = vec![std::mem::MaybeUninit::uninit(); 8 << 10];
    let mut names = Vec::new();
    let mut listing = RawDir::new(directory, &mut buffer);
    while let Some(entry) = listing.next() {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != "." && name != ".." {
            names.push(name);
        }
    }
    Ok(names)
}

/// The directories on the way to `files`, outer ones first.
fn directories_of(files: &[(String, Digest)]) -> BTreeSet<&str> {
    files.iter().flat_map(|(file, _)| ancestors(file)).collect()
}

fn join(directory: &str, name: &str) -> String {
    match (directory, name) {
        ("", name) => name.to_owned(),
        (directory, "") => directory.to_owned(),
        (directory, name) => format!("{directory}/{name}"),
    }
}
