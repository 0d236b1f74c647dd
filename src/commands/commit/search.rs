//! `--strategy search`: goes back to the best state that a commit has seen, or to the beginning.
//!
//! Changes the project's files as replies do, by the run's own tree: what it has changed is put back, then the files of
//! a state are applied, each as one transaction.

use super::replacements::Replacements;
use crate::edit::{EditKind, LossGuard, ParsedReply, PathPolicy, VerifiedEdits};
use crate::exec::build_script::BuildStatus;
use crate::model::StepId;
use crate::run::active::Run;
use crate::run::closing;
use crate::run::context::Context;
use crate::run::search::{Files, Next, Search, State};
use crate::run::shown::Shown;
use crate::run::tree::RunTree;
use crate::sys::error::Error;

/// A failed build: its outcome, and its output for the model.
pub struct Failed {
    pub status: BuildStatus,
    pub output: String,
}

/// The search of a commit.
pub struct CommitSearch<'c> {
    context: &'c Context<'c>,
    search: Search,
    /// The builds of the states.
    builds: Vec<Failed>,
    /// The model's view of the files before its first reply.
    begun: Shown,
    next: Next,
}

impl<'c> CommitSearch<'c> {
    pub fn new(context: &'c Context<'c>, begun: Shown) -> Self {
        Self {
            context,
            search: Search::default(),
            builds: Vec::new(),
            begun,
            next: Next::Afresh,
        }
    }

    /// Adds the state that a reply has led to.
    pub fn add(
        &mut self,
        run: &mut Run<'_>,
        tree: &RunTree<'_>,
        (step, edits): (&StepId, &VerifiedEdits),
        replacements: &Replacements,
        failed: Failed,
    ) {
        let owned =
            |(path, content): (&str, Option<&str>)| (path.to_owned(), content.map(str::to_owned));
        let findings = run.record.steps.last();
        self.next = self.search.add(State {
            step: step.clone(),
            files: replacements.files().map(owned).collect(),
            edits: edits.all().map(owned).collect(),
            findings: findings
                .map(|step| step.findings.clone())
                .unwrap_or_default(),
            is_complete: failed.status.is_complete(),
            lines: closing::lines_so_far(tree, replacements.files()),
        });
        self.builds.push(failed);
        run.record.search = self.search.record(None);
    }

    /// Adds the states of attempts that were made side by side, by their indices. Returns the index of the best one, which
    /// is repaired, why it is the best, and the output of its build.
    pub fn begin(
        &mut self,
        run: &mut Run<'_>,
        attempts: Vec<(usize, State, Failed)>,
    ) -> Option<(usize, String, String)> {
        let (mut indices, mut states) = (Vec::new(), Vec::new());
        for (nth, state, failed) in attempts {
            indices.push(nth);
            states.push(state);
            self.builds.push(failed);
        }
        let best = self.search.begin(states)?;
        run.record.search = self.search.record(None);
        let why = self.search.record(Some(best))?.why?;
        Some((indices[best], why, self.builds[best].output.clone()))
    }

    /// Forgets all states: none of them was ever in the project.
    pub fn forget(&mut self) {
        self.search = Search::default();
    }

    /// Puts the files in the state that the next attempt begins from. Returns the output of its build for a repair;
    /// `None` for an attempt that begins afresh.
    ///
    /// # Errors
    /// When the files cannot be changed, or somebody else has changed them.
    pub fn go_on(
        &self,
        run: &mut Run<'_>,
        tree: &mut RunTree<'_>,
        replacements: &mut Replacements,
    ) -> Result<Option<String>, Error> {
        let (at, files) = match self.next {
            Next::Repair(at) => (Some(at), self.files(at)),
            Next::Afresh => (None, Files::new()),
        };
        if at != self.search.last() {
            let step = at
                .and_then(|at| self.search.state(at))
                .map(|state| &state.step);
            self.context.notice(match step {
                Some(step) => {
                    format!("it got worse: the next repair begins from the state of {step}")
                }
                None => "a dead end: the next attempt begins afresh".to_owned(),
            });
            self.go_to(run, tree, replacements, files)?;
        }
        Ok(at.map(|at| self.builds[at].output.clone()))
    }

    /// The earlier attempts, as one that begins afresh is told of them.
    pub fn tried(&self) -> String {
        self.search.tried()
    }

    /// The step of the best state, and how its build ended.
    pub fn best(&self) -> Option<(&StepId, BuildStatus)> {
        let best = self.search.best()?;
        Some((&self.search.state(best)?.step, self.builds[best].status))
    }

    /// Puts the files in the best state, after the last attempt has failed.
    pub fn keep_best(
        &self,
        run: &mut Run<'_>,
        tree: &mut RunTree<'_>,
        replacements: &mut Replacements,
    ) {
        let Some(best) = self.search.best() else {
            return;
        };
        let files = self.files(best);
        let is_there = replacements.are(&files) && !tree.is_as_before();
        if !is_there && let Err(error) = self.go_to(run, tree, replacements, files) {
            run.warn(format!("the best state cannot be brought back: {error}"));
            return;
        }
        let record = self.search.record(Some(best)).unwrap_or_default();
        if let (Some(kept), Some(why)) = (&record.kept, &record.why) {
            run.warn(format!("kept the state of {kept}: it has {why}"));
        }
        run.record.search = Some(record);
    }

    fn files(&self, at: usize) -> Files {
        self.search
            .state(at)
            .map(|state| state.files.clone())
            .unwrap_or_default()
    }

    /// Puts back what the run has changed, and applies these files.
    fn go_to(
        &self,
        run: &mut Run<'_>,
        tree: &mut RunTree<'_>,
        replacements: &mut Replacements,
        files: Files,
    ) -> Result<(), Error> {
        tree.restart(run, self.begun.clone())?;
        let kind =
            |content: &Option<String>| content.clone().map_or(EditKind::Remove, EditKind::Write);
        let edits = files
            .iter()
            .map(|(path, content)| (path.clone(), kind(content)));
        let edits = ParsedReply::of_files(edits.collect());
        if !files.is_empty() {
            // All of it has been verified before, but on the files as they were then.
            let policy =
                PathPolicy::load(self.context.project.root(), self.context.sandbox.program)?;
            let policy = policy
                .guarded(LossGuard::off())
                .protecting(self.context.protection.clone());
            tree.put(run, &policy.verify(edits)?)?;
        }
        replacements.go_to(files);
        Ok(())
    }
}
