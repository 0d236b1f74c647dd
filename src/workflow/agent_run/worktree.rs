//! The project's files, in a run whose agents may change them: written by the commit workflow's verified apply, so that
//! they can be undone.

use std::cell::RefCell;

use super::AgentRun;
use super::part::Written;
use crate::agent::tool::ToolError;
use crate::agent::tools::Files;
use crate::edit::error::ApplyError;
use crate::edit::{ParsedReply, PathPolicy, VerifiedEdits, VerifyError};
use crate::project::dirty::dirty;
use crate::record::diff::{self, FileChange, FileState, NEW_MODE};
use crate::sys::files::IfThere as _;
use crate::sys::text::escaped;
use crate::ui::Event;
use crate::workflow::Context;
use crate::workflow::error::Error;
use crate::workflow::run::Run;
use crate::workflow::run::closing;
use crate::workflow::run::tree::RunTree;

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

    /// Sees that what was written is on the disk: a command may have written to the files that the run has changed.
    pub fn flush(&self, run: &mut Run<'_>) {
        self.tree.borrow_mut().flushing(run, || ());
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
        self.flush(run);
        let tree = self.tree.borrow();
        let files = tree.changed().map(|path| (path, None));
        closing::review(context, run, &tree, files);
        tree.note_lost(run);
    }
}

impl Files for AgentRun<'_> {
    fn write(&self, path: &str, content: String) -> Result<Vec<String>, ToolError> {
        let Some(worktree) = &self.worktree else {
            return Err(ToolError::failed(
                "no file of the project is changed in this run".to_owned(),
            ));
        };
        let before = worktree.tree.borrow().read(path).if_there();
        let before = before.map(Option::flatten);
        // What cannot be read shows as nothing.
        let shown = before.as_ref().ok().cloned().flatten();
        let diff = diff_of(path, shown, &content);
        let edits = self.verified(path, content)?;
        let mut run = self.run.borrow_mut();
        let applied = worktree.tree.borrow_mut().apply(&mut run, &edits);
        applied.map_err(|error| match error {
            Error::Apply(error @ ApplyError::RolledBack { .. }) => {
                ToolError::failed(error.to_string())
            }
            error => ToolError::Fatal(error.into()),
        })?;
        let mut written = worktree.written.borrow_mut();
        written.entry(path.to_owned()).or_insert(before.ok());
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
}

/// What a tool makes of a file, as a unified diff; none where that is very long, or nothing.
fn diff_of(path: &str, before: Option<Vec<u8>>, content: &str) -> Option<String> {
    let state = |content| FileState {
        content,
        mode: NEW_MODE,
    };
    let change = FileChange {
        path: path.to_owned(),
        before: before.map(state),
        after: Some(state(content.as_bytes().to_vec())),
    };
    let diff = diff::text(&[change]);
    Some(diff).filter(|diff| (1..=LONGEST_DIFF).contains(&diff.len()))
}

impl AgentRun<'_> {
    /// Holds a file against the policy for agents.
    fn verified(&self, path: &str, content: String) -> Result<VerifiedEdits, ToolError> {
        let load = PathPolicy::load_for_agent(self.context.project.root(), self.context.program);
        let verified = load.and_then(|policy| policy.verify(ParsedReply::of_file(path, content)));
        verified.map_err(|error| match error {
            VerifyError::Rejected(rejection) => {
                let faults = rejection.faults.iter();
                let faults: Vec<String> = faults.map(|fault| fault.kind.to_string()).collect();
                ToolError::failed(faults.join("; "))
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
