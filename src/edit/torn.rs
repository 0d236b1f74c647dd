//! Undoes an application that counted already when a power cut tore one of its files.
//!
//! Looks at what the journal names and puts back what was kept, as one application of its own.
//! Guarantees that nothing is undone where somebody has changed a file since.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd as _;

use rustix::fs::fstat;
use rustix::io::Errno;

use super::apply::{self, Durability, New, Step, Tree};
use super::beneath::{Root, split};
use super::journal::{Change, Digest, Old, Record, Stamp, modified};
use super::recovery::{RecoverError, failed};
use super::undo_log::{Before, open_regular};
use super::verify::Present;

/// What has become of a new file.
enum Fate {
    /// It is as it was written.
    Whole(Present),
    /// It is as it was written, but not all of it is there.
    Torn(Present),
    /// Somebody has written to it, or put something else there.
    Changed,
    /// It is not there.
    Gone,
}

/// Whether a file is not as the reply asked for, although nobody has changed it.
pub fn is_torn(root: &Root, record: &Record) -> Result<bool, RecoverError> {
    let files = record.new_files();
    let looked = apply::in_parallel(files.len(), |share| {
        for (path, new) in &files[share] {
            let fate = fate(root, path, *new, record.stamp).map_err(failed(path))?;
            if matches!(fate, Fate::Torn(_)) {
                return Ok(true);
            }
        }
        Ok(false)
    });
    let torn: Result<Vec<bool>, RecoverError> = looked.into_iter().collect();
    Ok(torn?.contains(&true))
}

/// Puts everything back.
pub fn undo(tree: Tree<'_>, root: &Root, record: &Record) -> Result<(), RecoverError> {
    let paths = Paths::of(record);
    let mut steps = Vec::new();
    let mut changed = Vec::new();
    for (path, new, old) in &paths.all {
        let fate = match new {
            Some(new) => fate(root, path, *new, record.stamp),
            None => fate_of_removed(root, path),
        };
        let before = old.and_then(|old| old.kept.as_ref());
        match fate.map_err(failed(path))? {
            Fate::Whole(present) | Fate::Torn(present) => {
                steps.push(step(path, before, Some(present)));
            }
            Fate::Gone if new.is_none() => steps.push(step(path, before, None)),
            Fate::Gone if before.is_none() => {}
            Fate::Gone | Fate::Changed => changed.push(explain(path, before)),
        }
    }
    if !changed.is_empty() {
        return Err(RecoverError::Changed(changed));
    }
    steps.sort_by_key(|step| step.path);
    let undone = apply::take(tree, &steps, paths.directories, None, Durability::AtOnce);
    let undone = undone.map_err(|error| RecoverError::Torn(Box::new(error)))?;
    undone.left.map_or(Ok(()), Err)
}

fn explain(path: &str, before: Option<&(String, Before)>) -> String {
    let kept = before.map_or(String::new(), |(kept, _)| {
        format!("; what was there before the run is `{kept}`")
    });
    format!("`{path}` was changed, but other files of the same reply are torn{kept}")
}

fn step<'p>(
    path: &'p str,
    before: Option<&'p (String, Before)>,
    present: Option<Present>,
) -> Step<'p> {
    let new = before.map_or(New::Nothing, |(kept, before)| New::Kept {
        path: kept.clone(),
        before,
    });
    Step { path, new, present }
}

/// What an application has done, file by file.
struct Paths<'r> {
    /// The path, what was written there, and what was there before.
    all: Vec<(String, Option<Digest>, Option<&'r Old>)>,
    /// The directories that it made, inner ones first.
    directories: Vec<String>,
}

impl<'r> Paths<'r> {
    fn of(record: &'r Record) -> Self {
        let mut all = Vec::new();
        let mut directories = BTreeSet::new();
        for unit in &record.units {
            match &unit.change {
                Change::Create { new } => all.push((unit.target.clone(), Some(*new), None)),
                Change::Replace { old, new } => {
                    all.push((unit.target.clone(), Some(*new), Some(old)));
                }
                Change::Remove { old: Some(old) } => {
                    all.push((unit.target.clone(), None, Some(old)));
                }
                Change::Remove { old: None } => {}
                Change::CreateDirectory { files } => {
                    directories.insert(unit.target.clone());
                    for (file, new) in files {
                        let below = file.match_indices('/').map(|(slash, _)| &file[..slash]);
                        directories.extend(below.map(|below| format!("{}/{below}", unit.target)));
                        all.push((format!("{}/{file}", unit.target), Some(*new), None));
                    }
                }
            }
        }
        Self {
            all,
            directories: directories.into_iter().rev().collect(),
        }
    }
}

fn fate(root: &Root, path: &str, new: Digest, stamp: Stamp) -> io::Result<Fate> {
    let (parent, name) = split(path);
    let directory = match root.directory(parent) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Ok(Fate::Gone),
        Err(Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => return Ok(Fate::Changed),
        Err(errno) => return Err(errno.into()),
    };
    let Some(file) = open_regular(directory.as_fd(), name)? else {
        return Ok(Fate::Gone);
    };
    let stat = fstat(&file)?;
    let present = Present::of(&stat);
    Ok(if new.is_of(file)? {
        Fate::Whole(present)
    } else if modified(&stat) == stamp {
        Fate::Torn(present)
    } else {
        Fate::Changed
    })
}

fn fate_of_removed(root: &Root, path: &str) -> io::Result<Fate> {
    // Any content is somebody else's.
    fate(root, path, Digest::of(b""), Stamp::default()).map(|fate| match fate {
        Fate::Gone => Fate::Gone,
        _ => Fate::Changed,
    })
}
