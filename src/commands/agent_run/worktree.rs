//! The project's files, in a run whose agents may change them: written by the commit workflow's verified apply, so that
//! they can be undone.

use std::cell::RefCell;
use std::iter;

use super::AgentRun;
use super::part::Written;
use crate::agent::tool::ToolError;
use crate::agent::tools::files::{Files, PathEdit};
use crate::edit::error::ApplyError;
use crate::edit::{EditKind, LossGuard, ParsedReply, PathPolicy, VerifiedEdits, VerifyError};
use crate::project::dirty::dirty;
use crate::record::event::Event;
use crate::run::active::Run;
use crate::run::closing;
use crate::run::context::Context;
use crate::run::tree::RunTree;
use crate::sys::diff;
use crate::sys::diff::FileChange;
use crate::sys::files::IfThere as _;
use crate::sys::text::escaped;

/// A longer diff of what a tool changed is not recorded, in bytes: its input is.
const LONGEST_DIFF: usize = 256 << 10;

/// The project's files, and what the run has made of them.
pub struct Worktree<'c> {
    /// Applies what is written.
    pub tree: RefCell<RunTree<'c>>,
    /// What was changed before the run, as far as that is known.
    before: Option<Vec<String>>,
    /// What the tool that is being used has changed.
    pub diff: RefCell<Option<String>>,
    /// What the part of the work that is under way has written.
    pub written: RefCell<Written>,
}

impl<'c> Worktree<'c> {
    /// The files before the run.
    pub fn new(context: &'c Context<'c>, run: &Run<'_>) -> Self {
        Self {
            tree: RefCell::new(RunTree::new(context, run)),
            before: dirty(context.project.root()).ok(),
            diff: RefCell::default(),
            written: RefCell::default(),
        }
    }

    /// Notes what a command has made of the files that the run has changed.
    pub fn observe(&self, run: &mut Run<'_>) {
        self.tree.borrow_mut().observe(run);
    }

    /// What was changed in the project, in this run and before it, for who judges the work.
    pub fn told(&self) -> String {
        let changed = closing::changed_so_far(&self.tree.borrow());
        let changed = listed("nothing", &changed);
        let before = match &self.before {
            None => "(not known: there is no git repository whose index can be read)".to_owned(),
            Some(before) => listed("nothing", before),
        };
        format!(
            "What the developer's tools have changed in this run. What its commands have changed is not in this \
             list:\n{changed}\n\nWhat differed from git's index, or was untracked, before this run began, and is not \
             its doing. What was staged then is not in this list:\n{before}\n"
        )
    }

    /// Tells what the run has changed and what in it should be looked at, before it ends.
    pub fn review(&self, context: &Context<'_>, run: &mut Run<'_>) {
        self.observe(run);
        let tree = self.tree.borrow();
        let files = tree.changed().map(|path| (path, None));
        closing::review(context, run, &tree, files);
        tree.note_lost(run);
    }
}

impl Files for AgentRun<'_> {
    fn apply(&self, edits: Vec<PathEdit>) -> Result<Vec<String>, ToolError> {
        let Some(worktree) = &self.worktree else {
            return Err(ToolError::failed(
                "no file of the project is changed in this run".to_owned(),
            ));
        };
        let tree = worktree.tree.borrow();
        let before: Vec<_> = edits
            .iter()
            .map(|(path, _)| tree.read(path).if_there().map(Option::flatten).ok())
            .collect();
        drop(tree);
        let diff = diff_of(&edits, before.iter().map(|before| before.clone().flatten()));
        let paths: Vec<String> = edits.iter().map(|(path, _)| path.clone()).collect();
        let edits = self.verified(edits)?;
        let mut run = self.run.borrow_mut();
        let applied = worktree.tree.borrow_mut().apply(&mut run, &edits);
        applied.map_err(|error| match error.downcast_ref() {
            Some(ApplyError::RolledBack(error)) => ToolError::failed(error.to_string()),
            _ => ToolError::Fatal(error.into()),
        })?;
        let mut written = worktree.written.borrow_mut();
        for (path, before) in paths.into_iter().zip(before) {
            written.entry(path).or_insert(before);
        }
        // A file may be written again and again.
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

/// What a tool makes of files, as a unified diff; none where that is very long, or nothing. What could not be read before
/// shows as nothing.
fn diff_of(edits: &[PathEdit], before: impl Iterator<Item = Option<Vec<u8>>>) -> Option<String> {
    let changes = edits.iter().zip(before).map(|((path, kind), before)| {
        let after = match kind {
            EditKind::Write(content) => Some(content.clone().into_bytes()),
            EditKind::Remove => None,
        };
        FileChange::of(path.clone(), before, after)
    });
    let diff = diff::text(&changes.collect::<Vec<_>>());
    Some(diff).filter(|diff| (1..=LONGEST_DIFF).contains(&diff.len()))
}

impl AgentRun<'_> {
    /// What a change may lose: lines of a file may have moved to what the part has written before.
    fn guard(&self) -> LossGuard {
        let written = self.worktree.iter().flat_map(|worktree| {
            let (tree, written) = (worktree.tree.borrow(), worktree.written.borrow());
            let read = |path: &String| String::from_utf8(tree.read(path).ok()??).ok();
            written.keys().filter_map(read).collect::<Vec<_>>()
        });
        let run = self.run.borrow();
        let asked = run.record.agent.iter();
        let asked = asked.flat_map(|agent| iter::once(&agent.request).chain(&agent.answers));
        let asked: Vec<&str> = asked.filter_map(Option::as_deref).collect();
        LossGuard {
            allowances: self.context.allowances,
            query: asked.join("\n"),
            written: written.collect(),
        }
    }

    /// Holds files against the policy for agents.
    fn verified(&self, edits: Vec<PathEdit>) -> Result<VerifiedEdits, ToolError> {
        let load = PathPolicy::load_for_agent(self.context.project.root(), self.context.program);
        let verified = load.and_then(|policy| {
            let policy = policy.guarded(self.guard());
            policy.verify(ParsedReply::of_files(edits))
        });
        verified.map_err(|error| match error {
            VerifyError::Rejected(rejection) => {
                let faults = rejection.faults.iter();
                let faults: Vec<String> = faults.map(|fault| fault.kind.to_string()).collect();
                let faults = faults.join("; ");
                if let Some(flags) = rejection.flags() {
                    self.warn(format!(
                        "a change was refused: {faults}; `{flags}` accepts it"
                    ));
                }
                ToolError::failed(faults)
            }
            error @ VerifyError::Io { .. } => ToolError::failed(error.to_string()),
        })
    }
}

/// No more lines than this of what was changed, or `nothing`, where there are none.
fn listed(nothing: &str, lines: &[String]) -> String {
    const MOST: usize = 200;
    let mut told: Vec<String> = lines.iter().take(MOST).map(|line| escaped(line)).collect();
    if lines.len() > MOST {
        told.push(format!("and {} more", lines.len() - MOST));
    }
    match told.as_slice() {
        [] => format!("({nothing})"),
        told => told.join("\n"),
    }
}
