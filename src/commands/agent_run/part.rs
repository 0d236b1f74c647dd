//! A part of an agent's work that is verified separately: tracks the files that it has written, builds the project with
//! them, and reverts them.

use std::collections::BTreeSet;

use super::run::AgentRun;
use crate::commands::error::CommandError;
use crate::edit::{EditKind, LossGuard, ParsedReply, PathPolicy};
use crate::exec::build_script::BuildStatus;
use crate::exec::process::ProcessError;
use crate::model::Purpose;
use crate::record::result::TreeState;
use crate::record::run_files::Artifact;
use crate::run::builds::{BuildOptions, describe};
use crate::run::closing;
use crate::run::proof::Proof;
use crate::run::verdict::{self, PassedChange};
use crate::sys::diff::FileChange;
use crate::sys::error::Error;

/// A build that has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedBuild {
    /// Exit status.
    pub status: String,
    /// Output, without its middle if long.
    pub output: String,
    /// File with the complete output, relative to the root.
    pub log: String,
}

impl AgentRun<'_> {
    /// Begins a part, to which all files written from now on belong.
    pub fn begin_part(&self) {
        if let Some(worktree) = &self.worktree {
            worktree.written.take();
        }
    }

    /// Builds the project in its current state, as part of the most recent step. Returns the failure, if any.
    ///
    /// # Errors
    /// Fails if the build cannot run or changes files that it is judged by, or the run may not change files.
    pub fn build(&self, how: BuildOptions<'_>) -> Result<Option<FailedBuild>, Error> {
        let worktree = self.worktree()?;
        let mut run = self.run.borrow_mut();
        let step = self.latest.borrow().clone();
        let log = run.log.build(&step)?;
        let mut proof = Proof::new(self.context, how, false)?;
        let (status, output) = proof.build(&mut run, &mut worktree.tree.borrow_mut(), log)?;
        Ok((status != BuildStatus::Exited(0)).then(|| FailedBuild {
            status: describe(status),
            output,
            log: run.log.path_of(&step, Artifact::Build),
        }))
    }

    /// Builds the finished work in a separate step, and judges it by the gate if requested.
    ///
    /// # Errors
    /// Fails if the build fails or cannot run.
    pub(super) fn prove(&self) -> Result<(), Error> {
        let is_wanted = !self.is_interactive() || !self.changed().is_empty();
        let Some(how) = self.setup.proof.filter(|_| is_wanted) else {
            return Ok(());
        };
        // Files that the build creates are not part of the work.
        let besides = self.besides()?;
        self.begin_own_step(Purpose::PROOF)?;
        let built = self.build(how).map_err(|error| match error.downcast() {
            Ok(ProcessError::Script(problem)) => CommandError::NoProof(problem).into(),
            Ok(error) => error.into(),
            Err(error) => error,
        });
        match built? {
            None => self.judge(how, besides),
            Some(FailedBuild { status, log, .. }) => {
                Err(CommandError::Unproven { status, log }.into())
            }
        }
    }

    /// Returns the changes since the run began that its tools did not make, and the files whose earlier state is
    /// unknown.
    fn besides(&self) -> Result<(Vec<FileChange>, Vec<String>), Error> {
        let tree = self.worktree()?.tree.borrow();
        if let Some(besides) = tree.changed_besides()? {
            return Ok((besides, Vec::new()));
        }
        let Some(files) = &self.files else {
            return Ok((Vec::new(), vec![".".to_owned()]));
        };
        let own: BTreeSet<&str> = tree.changed().collect();
        let (mut unjudged, mut new) = files.changed();
        unjudged.retain(|path| !own.contains(&**path));
        new.retain(|path| !own.contains(&**path));
        let new = new.into_iter().map(|path| {
            let after = tree.read(&path).unwrap_or_default();
            FileChange::of(path, None, after)
        });
        Ok((new.collect(), unjudged))
    }

    /// Reports the gate's verdict on the changes.
    fn judge(
        &self,
        how: BuildOptions<'_>,
        (besides, unjudged): (Vec<FileChange>, Vec<String>),
    ) -> Result<(), Error> {
        let tree = self.worktree()?.tree.borrow();
        let (mut changes, _) = closing::own_changes(&tree);
        changes.extend(besides);
        let mut run = self.run.borrow_mut();
        let agent = run.record.agent.as_ref();
        let request = agent.and_then(|it| it.request.clone()).unwrap_or_default();
        let change = PassedChange {
            files: &changes,
            unjudged: &unjudged,
            query: &request,
            apart: None,
        };
        verdict::judge(self.context, how, &mut run, change, false)
    }

    /// Reverts the files that the part has written, all or nothing. Files whose earlier content was not readable text
    /// are kept.
    ///
    /// # Errors
    /// Fails if reverting fails, or the run may not change files.
    pub fn revert_part(&self) -> Result<(), Error> {
        let worktree = self.worktree()?;
        let (mut reverted, mut left) = (Vec::new(), Vec::new());
        for (path, before) in worktree.written.take() {
            match before.map(|before| before.map(String::from_utf8)) {
                Ok(None) => reverted.push((path, EditKind::Remove)),
                Ok(Some(Ok(text))) => reverted.push((path, EditKind::Write(text))),
                Ok(Some(Err(_))) | Err(_) => left.push(path),
            }
        }
        let root = self.context.project.root();
        let policy = PathPolicy::load_for_agent(root, self.context.sandbox.program)?
            .guarded(LossGuard::off());
        let edits = policy.verify(ParsedReply::of_files(reverted))?;
        let mut run = self.run.borrow_mut();
        if !left.is_empty() {
            run.warn(format!(
                "what was no text, or could not be read, is not taken back: {}; `code-commit undo` does that",
                left.join(", ")
            ));
        }
        let mut tree = worktree.tree.borrow_mut();
        tree.apply(&mut run, &edits)?;
        if tree.is_as_before() {
            run.record.tree = TreeState::PutBack;
        }
        Ok(())
    }

    /// Returns the changes made so far, as a unified diff; empty if there are none.
    pub fn diff(&self) -> String {
        let worktree = self.worktree.as_ref();
        let diff = worktree.map(|worktree| closing::diff_so_far(&worktree.tree.borrow()));
        diff.unwrap_or_default()
    }
}
