//! The project's files in a run whose agents may change them. Changes are verified and applied as those of `commit`
//! are, and can be undone.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;

use crate::project::dirty::dirty;
use crate::run::active::Run;
use crate::run::closing;
use crate::run::context::Context;
use crate::run::tree::{Brought, RunTree};
use crate::sys::error::Error;
use crate::sys::text::{escaped, first_lines};

/// Files written by a part, with their content before it, if they existed and could be read.
pub type Written = BTreeMap<String, io::Result<Option<Vec<u8>>>>;

/// The project's files and the run's changes to them.
pub struct Worktree<'c> {
    /// The tree that edits are applied to.
    pub tree: RefCell<RunTree<'c>>,
    /// Files that differed from git's index or were untracked before the run; `None` if unknown.
    before: Option<Vec<String>>,
    /// Diff of the current tool use.
    pub diff: RefCell<Option<String>>,
    /// Files that the current part of the work has written.
    pub written: RefCell<Written>,
}

impl<'c> Worktree<'c> {
    /// Creates the worktree of a run, and records which files already differ from git's index.
    pub fn new(context: &'c Context<'c>, run: &Run<'_>) -> Self {
        Self {
            tree: RefCell::new(RunTree::new(context, run).of_agent()),
            before: dirty(context.project.root()).ok(),
            diff: RefCell::default(),
            written: RefCell::default(),
        }
    }

    /// Lists the files changed in this run and before it, for the auditor.
    pub fn changes(&self) -> String {
        let changed = listed(&closing::changed_so_far(&self.tree.borrow()));
        let before = match &self.before {
            None => "(not known: there is no git repository whose index can be read)".to_owned(),
            Some(before) => listed(before),
        };
        format!(
            "What the developer's tools have changed in this run. What its commands have changed is not in this \
             list:\n{changed}\n\nWhat differed from git's index, or was untracked, before this run began, and is not \
             its doing. What was staged then is not in this list:\n{before}\n"
        )
    }

    /// Applies a successful run's changes from its scratch tree, if any, to the project; discards those of a failed
    /// run.
    pub fn settle<T>(&self, run: &mut Run<'_>, result: Result<T, Error>) -> Result<T, Error> {
        let mut tree = self.tree.borrow_mut();
        if !tree.is_apart() {
            return result;
        }
        tree.observe(run);
        if result.is_err() {
            closing::take_back(run, &mut tree);
            return result;
        }
        let brought = tree.bring(run, Brought::All);
        if brought.is_err() && tree.is_apart() {
            closing::drop_unapplied(run, &mut tree);
        }
        result.and_then(|done| brought.map(|()| done))
    }

    /// Reports the changes of the run and the warnings about them, before it ends.
    pub fn review(&self, context: &Context<'_>, run: &mut Run<'_>) {
        self.tree.borrow_mut().observe(run);
        let tree = self.tree.borrow();
        let files = tree.changed().map(|path| (path, None));
        closing::review(context, run, &tree, files);
        tree.note_lost(run);
    }
}

/// Lists at most 200 changes, one per line, or `(nothing)`.
fn listed(lines: &[String]) -> String {
    const MOST: usize = 200;
    match first_lines(lines.iter().map(|line| escaped(line)), MOST).as_slice() {
        [] => "(nothing)".to_owned(),
        lines => lines.join("\n"),
    }
}
