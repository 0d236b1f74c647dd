//! `--strategy search`: returns to the best state that a commit has reached, or to the initial one.
//!
//! Changes the project's files through the run's own tree, as replies do: reverts the run's changes, then applies the
//! files of a state, each in one transaction.

use super::replacements::Work;
use crate::edit::{EditKind, VerifiedEdits};
use crate::exec::build_script::BuildStatus;
use crate::model::StepId;
use crate::run::active::Run;
use crate::run::closing;
use crate::run::context::Context;
use crate::run::search::{Files, Search, State, files_of};
use crate::run::shown::Shown;
use crate::sys::error::Error;

/// The search of a commit.
pub struct CommitSearch<'c> {
    pub context: &'c Context<'c>,
    pub search: Search,
    /// The files as shown to the model before its first reply.
    pub begun: Shown,
}

impl CommitSearch<'_> {
    /// Adds the state produced by a reply whose build has failed with this status and output.
    pub fn add(
        &mut self,
        work: &mut Work<'_>,
        (step, edits): (&StepId, &VerifiedEdits),
        (status, output): (BuildStatus, String),
    ) {
        let (run, made) = (&mut work.run, &work.replacements);
        let built = run.record.steps.last();
        self.search.add(State {
            step: step.clone(),
            files: made.files.clone(),
            edits: files_of(edits),
            findings: built.map(|step| step.findings.clone()).unwrap_or_default(),
            lines: closing::lines_so_far(&work.tree, made.files()),
            status,
            output,
        });
        run.record.search = self.search.record(None);
    }

    /// Adds the states of parallel attempts, by their indices. Returns the index of the best one, which is repaired,
    /// the reason why it is the best, and the output of its build.
    pub fn begin(
        &mut self,
        run: &mut Run<'_>,
        attempts: Vec<(usize, State)>,
    ) -> Option<(usize, String, String)> {
        let (indices, states): (Vec<_>, Vec<_>) = attempts.into_iter().unzip();
        let best = self.search.begin(states)?;
        run.record.search = self.search.record(None);
        let why = self.search.record(Some(best))?.why?;
        Some((indices[best], why, self.search.states[best].output.clone()))
    }

    /// Restores the files to the state that the next attempt begins from. Returns the output of that state's build for
    /// a repair; `None` for an attempt that starts over.
    ///
    /// # Errors
    /// Fails if the files cannot be changed, or were changed by someone else.
    pub fn restore_next(&self, work: &mut Work<'_>) -> Result<Option<String>, Error> {
        let Search { states, from, .. } = &self.search;
        let state = from.map(|at| &states[at]);
        if *from != states.len().checked_sub(1) {
            self.context.notice(match state {
                Some(State { step, .. }) => {
                    format!("it got worse: the next repair begins from the state of {step}")
                }
                None => "a dead end: the next attempt begins afresh".to_owned(),
            });
            let files = state.map(|state| state.files.clone());
            self.go_to(work, files.unwrap_or_default())?;
        }
        Ok(state.map(|state| state.output.clone()))
    }

    /// Returns the step of the best state, and the outcome of its build.
    pub fn best(&self) -> Option<(&StepId, BuildStatus)> {
        let best = &self.search.states[self.search.best()?];
        Some((&best.step, best.status))
    }

    /// Restores the files to the best state, after the last attempt has failed.
    pub fn keep_best(&self, work: &mut Work<'_>) {
        let Some(best) = self.search.best() else {
            return;
        };
        let files = self.search.states[best].files.clone();
        let is_there = work.replacements.files == files && !work.tree.is_as_before();
        if !is_there && let Err(error) = self.go_to(work, files) {
            let run = &mut work.run;
            run.warn(format!("the best state cannot be brought back: {error}"));
            return;
        }
        let record = self.search.record(Some(best)).unwrap_or_default();
        if let (Some(kept), Some(why)) = (&record.kept, &record.why) {
            let run = &mut work.run;
            run.warn(format!("kept the state of {kept}: it has {why}"));
        }
        work.run.record.search = Some(record);
    }

    /// Reverts the run's changes, and applies these files.
    fn go_to(&self, work: &mut Work<'_>, files: Files) -> Result<(), Error> {
        let Work { run, tree, .. } = &mut *work;
        tree.restart(run, self.begun.clone())?;
        if !files.is_empty() {
            let kind =
                |text: &Option<String>| text.clone().map_or(EditKind::Remove, EditKind::Write);
            let edits = files.iter().map(|(path, text)| (path.clone(), kind(text)));
            // These files were verified before, but against an earlier state of the disk.
            let verified = tree.verified(edits.collect())?;
            tree.put(run, &verified)?;
        }
        work.replacements.files = files;
        Ok(())
    }
}
