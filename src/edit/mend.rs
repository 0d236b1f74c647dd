//! Undoes an application that counted already when a power cut tore one of its files.
//!
//! Looks at what the journal names and puts back what was kept, as one application of its own.
//! Guarantees that nothing is undone where somebody has changed a file since.

use std::collections::BTreeSet;

use super::apply::{self, Journalling, Tree};
use super::beneath::{Root, ancestors};
use super::changes::Before;
use super::digest::{Digest, Present};
use super::error::{RecoverError, recover_failed};
use super::journal::Journal;
use super::record::{Change, Old, Record};
use super::step::{Durability, New, Step, Whole};
use super::torn::{Fate, Written, fate, fate_of_removed, keep};

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
        match fate.map_err(recover_failed(path))? {
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
