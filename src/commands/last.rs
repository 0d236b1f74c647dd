//! Selects the run to which a command applies: the named one, or the last one that qualifies.

use std::path::Path;

use super::spent::Spent;
use crate::edit::undo::is_undone;
use crate::edit::undo_log;
use crate::model::Purpose;
use crate::record::result::{RunRecord, TreeState};
use crate::run::context::Context;
use crate::run::error::RunError;
use crate::run::past::history::{self, PastRun};
use crate::run::past::{folders, naming};
use crate::sys::error::Error;

/// Returns the folder of `run`, relative to the root; without a name, that of the last run that changed anything.
///
/// # Errors
/// Fails if there is no such run, or the runs cannot be read.
pub fn folder(context: &Context<'_>, run: Option<&Path>) -> Result<String, Error> {
    let Some(run) = run else {
        let found = changed(context, |_| true)?;
        return found.ok_or_else(|| RunError::NoRun("changed anything").into());
    };
    let found = naming::find(&context.project, run, context.today())?;
    Ok(folders::relative(&found))
}

/// Like [`folder`], but without a name, selects the last run that was not undone; `None` if all were.
///
/// # Errors
/// Same as for [`folder`].
pub fn to_undo(context: &Context<'_>, run: Option<&Path>) -> Result<Option<String>, Error> {
    let found = folder(context, run)?;
    match run {
        Some(_) => Ok(Some(found)),
        None => changed(context, |run| run.undone_by.is_none()),
    }
}

/// Facts from the existing runs of an agent's session.
#[derive(Debug, Default)]
pub struct SessionRuns {
    /// Folders of the runs whose changes have not been undone, oldest first.
    pub changed: Vec<String>,
    /// `true` if the last run is one of them.
    pub is_latest: bool,
    /// The number of tokens in the conversation, according to the agent's last call or the last summary.
    pub context: Option<u64>,
    /// The amount spent.
    pub spent: Spent,
}

impl SessionRuns {
    /// Adds the usage of a run.
    pub fn used(&mut self, record: &RunRecord) {
        self.spent = self.spent.plus(Spent::on(&record.steps));
        let last = |purpose| {
            let mut steps = record.steps.iter().rev();
            steps.find_map(|step| step.usage.filter(|_| step.purpose == purpose))
        };
        let asked = last(Purpose::STEP).map(|usage| usage.input_tokens);
        // A run that only compresses leaves nothing but the summary.
        let summary = last(Purpose::COMPRESSION).filter(|_| record.exit.code == 0);
        let summary = summary.map(|usage| usage.output_tokens);
        self.context = asked.or(summary).or(self.context);
    }
}

/// Returns the facts from the runs of an agent's session.
///
/// # Errors
/// Fails if the runs cannot be read.
pub fn runs_of(context: &Context<'_>, session: &str) -> Result<SessionRuns, Error> {
    let root = context.project.root();
    let journal = context.project.journal_directory();
    let mut runs = SessionRuns::default();
    for run in history::runs(&context.project)? {
        let folder = run.relative();
        if run.agent().and_then(|about| about.session.as_deref()) != Some(session) {
            continue;
        }
        // The record is missing if the run was killed.
        let record = run.record.as_ref();
        match record {
            Some(record) => runs.used(record),
            None => runs.spent = runs.spent.plus(Spent::on(&run.recorded_steps())),
        }
        let may_have_changed = record.is_none_or(|record| record.tree == TreeState::Changed);
        let changes = undo_log::read(root, &folder)?
            .filter(|changes| may_have_changed && !changes.are_none());
        runs.is_latest = match changes {
            Some(changes) => !is_undone(context.tree(&journal), &folder, &changes)?,
            None => false,
        };
        runs.changed.extend(runs.is_latest.then_some(folder));
    }
    Ok(runs)
}

/// Returns the last run that changed anything and that `counts`, other than an undo. Runs that were rolled back, or
/// that reverted their own edits, do not count.
fn changed(context: &Context<'_>, counts: fn(&PastRun) -> bool) -> Result<Option<String>, Error> {
    let root = context.project.root();
    let journal = context.project.journal_directory();
    for run in history::latest(&context.project)? {
        let folder = run.relative();
        if run.workflow() == "undo" || !counts(&run) {
            continue;
        }
        let Some(changes) = undo_log::read(root, &folder)?.filter(|changes| !changes.are_none())
        else {
            continue;
        };
        let undone = is_undone(context.tree(&journal), &folder, &changes);
        // The record is missing if the run was killed.
        let says_changed = run.record.is_some_and(|it| it.tree == TreeState::Changed);
        if says_changed || !matches!(undone, Ok(true)) {
            return Ok(Some(folder));
        }
    }
    Ok(None)
}
