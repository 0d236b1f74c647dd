//! The changes of a run, together with those of the runs that it resumed and whose edits it found on the disk.
//!
//! Reads the runs' folders, saved files, and project files still as a run left them; changes nothing.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};

use super::folders::{names, relative};
use super::history::{PastRun, RunChanges, file_change, read_limited, saved_state};
use crate::edit::changes::{ChangeLog, LoggedChange};
use crate::edit::undo_log::UndoLogError;
use crate::edit::{Digest, undo_log};
use crate::model::StepId;
use crate::project::Project;
use crate::record::step::Step;
use crate::sys::diff::FileState;

/// Maximum number of runs in a chain of resumed runs.
const MAX_CHAIN: usize = 50;

/// A run and the runs that it resumed one after the other, as far back as edits were found on the disk.
#[derive(Debug)]
pub struct Chain {
    /// The runs, the latest first.
    pub runs: Vec<ChainedRun>,
    /// The folder of a run whose edits were found, but whose record of changes is gone.
    pub gap: Option<String>,
}

/// A run of a chain.
#[derive(Debug)]
pub struct ChainedRun {
    pub run: PastRun,
    /// The run's own changes.
    pub log: ChangeLog,
    /// True if its own changes were on the disk when the later run began.
    is_found: bool,
}

/// The changes of a chain to a file.
#[derive(Debug)]
pub struct ChainedChange {
    /// The folder of the first run that changed the file, relative to the root.
    pub folder: String,
    /// The state before that run, and those that followed.
    pub change: LoggedChange,
}

impl Chain {
    /// Reads a run and those that it resumed.
    ///
    /// # Errors
    /// Fails if the record of the changes of one cannot be read.
    pub fn read(project: &Project, run: &PastRun) -> Result<Self, UndoLogError> {
        let (mut runs, mut gap) = (Vec::new(), None);
        let mut next = Some(run.clone());
        // The steps whose edits the later run found on the disk.
        let mut found: Option<BTreeSet<StepId>> = None;
        while let Some(run) = next.take() {
            let log = undo_log::read(project.home(), &run.relative())?;
            let steps = run.recorded_steps();
            let on_disk = || steps.iter().filter(|step| step.is_on_disk);
            let resumed = on_disk().find_map(|step| step.recorded.clone());
            let is_unknown = log.is_none() && resumed.is_none() || runs.len() == MAX_CHAIN;
            if is_unknown && found.is_some() {
                gap = Some(run.relative());
                break;
            }
            let known: BTreeSet<StepId> = on_disk().map(Step::id).collect();
            // The run's own changes may have been undone before it was resumed.
            let is_found = found.is_none_or(|found| !found.is_subset(&known));
            next = resumed.map(|folder| PastRun::at(project, &folder));
            found = Some(known);
            runs.push(ChainedRun {
                run,
                log: log.unwrap_or_default(),
                is_found,
            });
        }
        Ok(Self { runs, gap })
    }

    /// Returns the runs whose changes are a part of the last one's result, the earliest first.
    pub fn found(&self) -> impl Iterator<Item = &ChainedRun> {
        self.runs.iter().rev().filter(|chained| chained.is_found)
    }

    /// Returns the changes that are a part of the last run's result, by path.
    pub fn changes(&self) -> BTreeMap<String, ChainedChange> {
        merged(self.found())
    }

    /// Returns the changes of all runs, by path.
    pub fn all_changes(&self) -> BTreeMap<String, ChainedChange> {
        merged(self.runs.iter().rev())
    }
}

/// Merges the changes of runs, the earliest first.
fn merged<'c>(runs: impl Iterator<Item = &'c ChainedRun>) -> BTreeMap<String, ChainedChange> {
    let mut changes: BTreeMap<String, ChainedChange> = BTreeMap::new();
    for ChainedRun { run, log, .. } in runs {
        for (path, change) in &log.files {
            if let Some(known) = changes.get_mut(path) {
                known.change.then(change);
                continue;
            }
            let (folder, change) = (run.relative(), change.clone());
            changes.insert(path.clone(), ChainedChange { folder, change });
        }
    }
    changes
}

impl PastRun {
    /// Returns the overall changes of the run, and of those that it resumed, by path.
    ///
    /// # Errors
    /// Fails if the record of the changes cannot be read.
    pub fn changes(&self, project: &Project) -> Result<RunChanges, UndoLogError> {
        let (mut files, mut doubts) = (Vec::new(), Vec::new());
        let chain = Chain::read(project, self)?;
        let changes = chain.changes();
        if changes.is_empty() {
            return Ok(RunChanges::default());
        }
        let steps: Vec<_> = chain
            .found()
            .flat_map(|chained| chained.run.steps(project))
            .collect();
        let replied: BTreeMap<_, _> = steps
            .iter()
            .flat_map(|step| &step.changes)
            .map(|change| (&change.path, change.after()))
            .collect();
        let others = LazyCell::new(|| self.others(project));
        for (path, ChainedChange { folder, change }) in &changes {
            let before = change.before.as_ref().map(|before| {
                saved_state(project, folder, before).unwrap_or_else(|| {
                    doubts.push(format!(
                        "what `{}` was before is not in the run's record any more: it is shown as empty",
                        path.escape_debug()
                    ));
                    FileState::empty(before.mode)
                })
            });
            let after = change.after.last().copied().flatten().map(|digest| {
                let is_it = |content: &Vec<u8>| Digest::of(content) == digest;
                let reply = replied.get(path).map(|reply| reply.to_vec());
                // The build may have changed the file: its version may still be on disk, or saved by another run.
                let on_disk = || read_limited(&project.root().join(path)).filter(is_it);
                let elsewhere = || {
                    others.iter().find_map(|(folder, log)| {
                        let before = log.files.get(path)?.before.as_ref()?;
                        (before.digest == digest).then(|| saved_state(project, folder, before))?
                    })
                };
                let known = reply
                    .clone()
                    .filter(is_it)
                    .or_else(on_disk)
                    .or_else(|| Some(elsewhere()?.content));
                known.or_else(|| {
                    let (maker, shown) = match &reply {
                        Some(_) => ("the build", "it is shown as the reply left it"),
                        // The replies of an agent do not have the texts of files.
                        None if self.agent().is_some() => ("the agent", "its change is left out"),
                        None => ("the run", "its change is left out"),
                    };
                    let path = path.escape_debug();
                    doubts.push(format!(
                        "what {maker} made of `{path}` is not recorded: {shown}"
                    ));
                    reply
                })
            });
            // The text of a file that is there is not known.
            if after == Some(None) {
                continue;
            }
            let after = after.flatten();
            files.extend(file_change(path, before, after));
        }
        Ok(RunChanges { files, doubts })
    }

    /// Reads the change logs of the other runs, by folder.
    fn others(&self, project: &Project) -> Vec<(String, ChangeLog)> {
        let names = names(project).unwrap_or_default().into_iter();
        let read = names.filter(|name| *name != self.name).filter_map(|name| {
            let folder = relative(&name);
            let changes = undo_log::read(project.home(), &folder).ok()??;
            Some((folder, changes))
        });
        read.collect()
    }
}
