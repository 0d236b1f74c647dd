//! Undoes an application that counted already when a power cut tore one of its files.
//!
//! Looks at what the journal names and puts back what was kept, as one application of its own.
//! Guarantees that nothing is undone where somebody has changed a file since.

use std::collections::BTreeSet;
use std::io::{self, Seek as _};
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::fstat;
use rustix::io::Errno;

use super::apply::{self, Journalling, Tree};
use super::beneath::{Root, ancestors, open_regular, split};
use super::digest::{Digest, FOR_EVER, Stamp, changed, modified};
use super::disk::linkat;
use super::journal::Journal;
use super::parallel::in_parallel;
use super::plan::{Durability, New, Step, Whole};
use super::record::{Change, Old, Record};
use super::recovery::{RecoverError, failed};
use super::undo_log::Before;
use super::verify::Present;
use crate::project::CONFIG;

/// When the new files of an application were written.
#[derive(Clone, Copy)]
struct Written {
    /// What every one of them says of when it was last written to.
    stamp: Stamp,
    /// What was changed later than this, was changed by somebody else, whatever it says.
    until: Stamp,
}

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

/// Whether a file is not as the reply asked for, although nobody has changed it since `installed`.
pub fn is_torn(root: &Root, record: &Record, installed: Stamp) -> Result<bool, RecoverError> {
    let written = Written {
        stamp: record.stamp,
        until: installed,
    };
    let files = record.new_files();
    let looked = in_parallel(files.len(), |share| {
        for (path, new) in &files[share] {
            let fate = fate(root, path, *new, written).map_err(failed(path))?;
            if matches!(fate, Fate::Torn(_)) {
                return Ok(true);
            }
        }
        Ok(false)
    });
    let torn: Result<Vec<bool>, RecoverError> = looked.into_iter().collect();
    Ok(torn?.contains(&true))
}

/// Keeps what is torn, as far as there is anything of it: should it be somebody's work after all, it is
/// not lost. It may hold a key, and so lies beside the keys. Says whether there was any.
pub fn keep(root: &Root, record: &Record) -> Result<bool, RecoverError> {
    let written = Written {
        stamp: record.stamp,
        until: FOR_EVER,
    };
    let mut vault = None;
    for (path, new) in &record.new_files() {
        let fate = fate(root, path, *new, written).map_err(failed(path))?;
        if !matches!(fate, Fate::Torn(_)) {
            continue;
        }
        let vault = match &mut vault {
            Some(vault) => vault,
            none => {
                let kept = root.ensure_directory_of_ours(&format!("{CONFIG}/torn"));
                none.insert(kept.map_err(failed("agent-config/torn"))?)
            }
        };
        keep_one(root, path, vault).map_err(failed(path))?;
    }
    Ok(vault.is_some())
}

/// Gives a file a second name: its own, and what tells its content from others.
fn keep_one(root: &Root, path: &str, vault: &OwnedFd) -> io::Result<()> {
    let (parent, name) = split(path);
    let directory = root.directory(parent)?;
    let Some(file) = open_regular(directory.as_fd(), name)? else {
        return Ok(());
    };
    let content = Digest::of_file(file)?.to_string();
    let room = 255 - content.len() - 1;
    let start = name.len().saturating_sub(room);
    let end = (start..name.len()).find(|at| name.is_char_boundary(*at));
    let kept = format!("{}-{content}", &name[end.unwrap_or(name.len())..]);
    match linkat(&directory, name, vault, &kept) {
        // A recovery that was cut short has done so already.
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Puts everything back.
pub fn mend(
    tree: Tree<'_>,
    root: &Root,
    record: &Record,
    journal: &mut Journal,
) -> Result<(), RecoverError> {
    let written = Written {
        stamp: record.stamp,
        until: journal.own_until()?,
    };
    let paths = Paths::of(record);
    let mut steps = Vec::new();
    let mut changed = Vec::new();
    for (path, new, old) in &paths.all {
        let fate = match new {
            Some(new) => fate(root, path, *new, written),
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
    journal.mark_torn()?;
    keep(root, record)?;
    steps.sort_by_key(|step| step.path);
    let whole = Whole {
        steps: &steps,
        directories: paths.directories.clone(),
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
                        let below = ancestors(file).map(|below| format!("{}/{below}", unit.target));
                        directories.extend(below);
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

fn fate(root: &Root, path: &str, new: Digest, written: Written) -> io::Result<Fate> {
    let (parent, name) = split(path);
    let directory = match root.directory(parent) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Ok(Fate::Gone),
        Err(Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => return Ok(Fate::Changed),
        Err(errno) => return Err(errno.into()),
    };
    let Some(mut file) = open_regular(directory.as_fd(), name)? else {
        return Ok(Fate::Gone);
    };
    let stat = fstat(&file)?;
    let present = Present::of(&stat);
    if new.is_of(file.try_clone()?)? {
        return Ok(Fate::Whole(present));
    }
    file.rewind()?;
    let untouched = modified(&stat) == written.stamp && changed(&stat) <= written.until;
    Ok(if untouched && new.may_be_torn_to(file)? {
        Fate::Torn(present)
    } else {
        Fate::Changed
    })
}

fn fate_of_removed(root: &Root, path: &str) -> io::Result<Fate> {
    // Any content is somebody else's.
    let never = Written {
        stamp: Stamp::default(),
        until: Stamp::default(),
    };
    fate(root, path, Digest::of(b""), never).map(|fate| match fate {
        Fate::Gone => Fate::Gone,
        _ => Fate::Changed,
    })
}
