//! Writes the project's files for an agent's tools, subject to the policy for agents.

use std::iter;

use super::run::AgentRun;
use crate::agent::tool::ToolError;
use crate::agent::tools::files::{Files, PathEdit};
use crate::edit::error::ApplyError;
use crate::edit::{LossGuard, ParsedReply, PathPolicy, VerifiedEdits, VerifyError};
use crate::record::event::Event;
use crate::secret::credentials;
use crate::sys::diff::{self, FileChange};
use crate::sys::files::IfThere as _;

/// Maximum size of a recorded diff, in bytes. The tool's input is recorded in any case.
const LONGEST_DIFF: usize = 256 << 10;

impl Files for AgentRun<'_> {
    fn apply(&self, edits: Vec<PathEdit>) -> Result<Vec<String>, ToolError> {
        let worktree = self.worktree().map_err(|none| none.to_string())?;
        let tree = worktree.tree.borrow();
        let read = |path: &String| tree.read(path).if_there().map(Option::flatten);
        let before: Vec<_> = edits.iter().map(|(path, _)| read(path)).collect();
        drop(tree);
        let diff = diff_of(&edits, before.iter().map(|it| it.as_ref().ok()?.clone()));
        let paths: Vec<String> = edits.iter().map(|(path, _)| path.clone()).collect();
        let edits = self.verified(edits)?;
        let mut run = self.run.borrow_mut();
        let applied = worktree.tree.borrow_mut().apply(&mut run, &edits);
        applied.map_err(|error| match error.downcast_ref() {
            Some(error @ ApplyError::RolledBack { .. }) => ToolError::from(error.to_string()),
            _ => ToolError::Fatal(error.into()),
        })?;
        let mut written = worktree.written.borrow_mut();
        for (path, before) in paths.into_iter().zip(before) {
            written.entry(path).or_insert(before);
        }
        // A file may be written repeatedly, with the same warning each time.
        for warning in edits.warnings() {
            if !run.record.warnings.contains(warning) {
                run.warn(warning.clone());
            }
        }
        if let Some(diff) = diff.clone() {
            self.context.reporter.event(&Event::Changed { diff });
        }
        worktree.diff.replace(diff);
        Ok(edits.warnings().to_vec())
    }

    fn check(&self, edits: Vec<PathEdit>) -> Result<(), ToolError> {
        self.verified(edits).map(drop)
    }
}

/// Returns the unified diff of a tool's edits; `None` if it is empty or too long. A file that could not be read before
/// is treated as missing.
fn diff_of(edits: &[PathEdit], before: impl Iterator<Item = Option<Vec<u8>>>) -> Option<String> {
    let changes = edits.iter().zip(before).map(|((path, kind), before)| {
        let after = kind.content().map(|text| text.as_bytes().to_vec());
        FileChange::of(path.clone(), before, after)
    });
    let diff = diff::text(&changes.collect::<Vec<_>>());
    Some(diff).filter(|diff| (1..=LONGEST_DIFF).contains(&diff.len()))
}

impl AgentRun<'_> {
    /// Creates the guard against lost lines. Lines may have moved to files that the current part
    /// wrote earlier.
    fn guard(&self) -> LossGuard {
        let written = self.worktree.iter().flat_map(|worktree| {
            let (tree, written) = (worktree.tree.borrow(), worktree.written.borrow());
            let read = |path: &String| String::from_utf8(tree.read(path).ok()??).ok();
            written.keys().filter_map(read).collect::<Vec<_>>()
        });
        let run = self.run.borrow();
        let agent = run.record.agent.iter();
        let said = agent.flat_map(|agent| iter::once(&agent.request).chain(&agent.answers));
        let asked: Vec<&str> = said.filter_map(Option::as_deref).collect();
        LossGuard {
            allowances: self.setup.changes.unwrap_or_default(),
            query: asked.join("\n"),
            written: written.collect(),
            marks: credentials::marks(self.context.redactor),
        }
    }

    /// Verifies edits against the policy for agents.
    fn verified(&self, edits: Vec<PathEdit>) -> Result<VerifiedEdits, ToolError> {
        let load =
            PathPolicy::load_for_agent(self.context.project.root(), self.context.sandbox.program);
        let verified = load.and_then(|policy| {
            let policy = policy.guarded(self.guard());
            let policy = policy.configured(self.context.configured_paths());
            policy.verify(ParsedReply::of_files(edits))
        });
        verified.map_err(|error| match error {
            VerifyError::Rejected(rejection) => {
                let kinds = rejection.faults.iter().map(|fault| fault.kind.to_string());
                let faults = kinds.collect::<Vec<_>>().join("; ");
                if let Some(flags) = rejection.flags() {
                    self.warn(format!(
                        "a change was refused: {faults}; `{flags}` accepts it"
                    ));
                }
                ToolError::from(faults)
            }
            error @ VerifyError::Io { .. } => ToolError::from(error.to_string()),
        })
    }
}
