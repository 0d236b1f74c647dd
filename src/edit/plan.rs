//! The plan of a change to the tree: its operations, and the renames that carry them out.
//!
//! Checks which directories exist, and saves files to be replaced in the undo log; changes nothing else. Guarantees
//! that everything is moved into place by one rename, a new directory together with its contents.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::ops::Range;
use std::time::SystemTime;

use rustix::io::Errno;

use super::beneath::{Root, ancestors, if_there, split};
use super::digest::Digest;
use super::error::ApplyError;
use super::operation::{ChangeSet, Operation};
use super::record::{Old, Record, RecordedUnit, STAGED, UnitChange, VERSION};
use super::spelling::PathScope;
use super::undo_log::UndoLog;
use crate::project::walk::joined;
use crate::sys::files::PathError;
use crate::sys::identity::stamp;
use crate::sys::parallel::in_parallel;

/// An entry moved into place by one rename: a file, or a new directory with all its files.
pub struct Unit<'e> {
    /// The final path.
    pub target: &'e str,
    /// The path where it is created: in the same directory, under a staged name.
    pub staged: String,
    /// The operations that are part of it.
    pub steps: Range<usize>,
    /// True for a new directory.
    pub is_directory: bool,
}

/// The files to create, and the renames that move them into place.
pub struct ApplyPlan<'e> {
    /// The root below which all files are changed.
    pub root: &'e Root,
    /// The operations to carry out.
    pub whole: &'e ChangeSet<'e, 'e>,
    /// The modification time for new files.
    pub now: SystemTime,
    /// The renames, in the order of their operations.
    pub units: Vec<Unit<'e>>,
    /// For each operation, the path that its file is written to.
    pub staged: Vec<String>,
}

impl<'e> ApplyPlan<'e> {
    /// Plans the change set. Checks which directories exist; changes nothing.
    pub fn of(
        root: &'e Root,
        whole: &'e ChangeSet<'e, 'e>,
        now: SystemTime,
    ) -> Result<Self, ApplyError> {
        let tag = RandomState::new().build_hasher().finish();
        let mut plan = Self {
            root,
            whole,
            now,
            units: Vec::new(),
            staged: Vec::with_capacity(whole.steps.len()),
        };
        let mut existing = None;
        for (slot, step) in whole.steps.iter().enumerate() {
            if plan.joins_last_unit(slot, step.path) {
                continue;
            }
            let parent = split(step.path).0;
            let missing = if existing == Some(parent) {
                None
            } else {
                first_missing(root, parent)
                    .map_err(PathError::of("open the directory of", step.path))?
            };
            if missing.is_some() && step.present.is_some() {
                let gone = io::Error::other("its directory was removed in the meantime");
                return Err(PathError::of("change", step.path)(gone).into());
            }
            existing = missing.is_none().then_some(parent);
            // Removing a missing file must not create its directories.
            let made = missing.filter(|_| !matches!(step.action, Operation::Remove));
            let target = made.unwrap_or(step.path);
            let unit = Unit {
                target,
                staged: joined(split(target).0, &format!("{STAGED}{tag:016x}-{slot}")),
                steps: slot..slot + 1,
                is_directory: made.is_some(),
            };
            plan.staged
                .push(format!("{}{}", unit.staged, &step.path[target.len()..]));
            plan.units.push(unit);
        }
        Ok(plan)
    }

    /// Returns whether a file lies in the new directory of the last unit, and adds it there if so.
    fn joins_last_unit(&mut self, slot: usize, path: &str) -> bool {
        let Some(unit) = self.units.last_mut().filter(|unit| unit.is_directory) else {
            return false;
        };
        match path.strip_prefix(unit.target) {
            Some(below) if below.starts_with('/') => {
                unit.steps.end = slot + 1;
                self.staged.push(format!("{}{below}", unit.staged));
                true
            }
            _ => false,
        }
    }

    /// Creates the journal's record. Saves the files to be replaced along the way.
    pub fn record(&self, mut undo_log: Option<&mut UndoLog<'_>>) -> Result<Record, ApplyError> {
        let steps = self.whole.steps;
        let digests = in_parallel(steps.len(), |slots| {
            let digests = steps[slots].iter().map(|step| match &step.action {
                Operation::Write(content) => Some(Digest::of(content.as_bytes())),
                Operation::Restore { before, .. } => Some(before.digest),
                Operation::Remove => None,
            });
            Ok::<_, ApplyError>(digests.collect::<Vec<_>>())
        })?
        .concat();
        let kept = match &mut undo_log {
            Some(log) => log.keep(self.root, steps)?,
            None => Vec::new(),
        };
        let units = self.units.iter().map(|unit| RecordedUnit {
            target: unit.target.to_owned(),
            staged: unit.staged.clone(),
            change: self.change(unit, &digests),
        });
        let record = Record {
            version: VERSION,
            stamp: stamp(self.now),
            units: units.collect(),
            directories: self.whole.directories.clone(),
            scope: PathScope::of(steps.iter().map(|step| step.path)),
            folder: undo_log.as_ref().map(|log| log.folder().to_owned()),
        };
        if let Some(log) = undo_log {
            log.note(steps, &kept, &digests, &record)?;
        }
        Ok(record)
    }

    fn change(&self, unit: &Unit<'_>, digests: &[Option<Digest>]) -> UnitChange {
        if unit.is_directory {
            let below =
                |slot: usize| self.whole.steps[slot].path[unit.target.len() + 1..].to_owned();
            let slots = unit.steps.clone();
            let files = slots.filter_map(|slot| Some((below(slot), digests[slot]?)));
            return UnitChange::CreateDirectory {
                files: files.collect(),
            };
        }
        let slot = unit.steps.start;
        let old = self.whole.steps[slot].present.map(|present| Old {
            fingerprint: present.fingerprint,
        });
        match (digests[slot], old) {
            (Some(new), None) => UnitChange::Create { new },
            (Some(new), Some(old)) => UnitChange::Replace { old, new },
            (None, old) => UnitChange::Remove { old },
        }
    }
}

/// Returns the outermost missing directory on the way to `directory`, which may be that directory itself.
fn first_missing<'p>(root: &Root, directory: &'p str) -> Result<Option<&'p str>, Errno> {
    for path in ancestors(directory).chain([directory]) {
        if if_there(root.directory(path))?.is_none() {
            return Ok(Some(path));
        }
    }
    Ok(None)
}
