//! Undo: restores the project's state before a run.

use std::path::{Path, PathBuf};

use clap::Args;

use super::last;
use crate::edit::changes::ChangeLog;
use crate::edit::undo::{Journalling, is_undone};
use crate::edit::undo_log;
use crate::project::changed_files::EditsRecord;
use crate::project::gitignore::GITIGNORE;
use crate::record::event::Event;
use crate::record::result::TreeState;
use crate::run::active::Run;
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome};
use crate::run::past::history::PastRun;
use crate::run::recovery;
use crate::run::tree::RunTree;
use crate::sys::error::Error;

#[derive(Debug, Clone, Args)]
pub struct UndoArgs {
    /// Run, named as for `log` [default: the last run with changes that was not undone]
    #[arg(allow_negative_numbers = true)]
    pub run: Option<PathBuf>,
}

/// Undoes `run`, given as the path or name of its folder, or else the last run that changed anything, was not undone,
/// and is not itself an undo.
///
/// # Errors
/// Fails if there is no such run, a file has changed since, or any step fails; the tree is then unchanged.
pub fn undo(context: &Context<'_>, run: Option<&Path>) -> Result<Outcome, Failure> {
    let _lock = recovery::take(context)?;
    let Some(folder) = last::to_undo(context, run)? else {
        let text = "done: every run with changes is already undone";
        return Ok(Outcome::new(text.to_owned()));
    };
    let root = context.project.root();
    let Some(changes) = undo_log::read(root, &folder)? else {
        let run = PastRun::at(&context.project, &folder);
        return Ok(Outcome::new(format!("done: {}", run.changed_nothing())));
    };
    let journal = context.project.journal_directory();
    // Check before the run starts, so that no folder is created for nothing.
    if is_undone(context.tree(&journal), &folder, &changes)? {
        return Ok(Outcome::new(already(&folder)));
    }
    let mut run = Run::start(context, "undo")?;
    // The copies of what an agent has changed are not for git, as that run's own.
    if root.join(&folder).join(GITIGNORE).exists() {
        run.log.keep_from_git()?;
    }
    let mut tree = RunTree::new(context, &run);
    let result = put_back(context, &mut run, &mut tree, &folder, &changes);
    let outcome = run.finish(result, |run| tree.put_back(run));
    tree.end();
    outcome
}

fn already(folder: &str) -> String {
    format!("done: the project is already as it was before {folder}")
}

fn put_back(
    context: &Context<'_>,
    run: &mut Run<'_>,
    tree: &mut RunTree<'_>,
    folder: &str,
    changes: &ChangeLog,
) -> Result<String, Error> {
    let edits = tree.undo(run, folder, changes, Journalling::On)?;
    if edits == EditsRecord::default() {
        return Ok(already(folder));
    }
    run.record.tree = TreeState::Changed;
    run.record.undid = Some(folder.to_owned());
    context.reporter.event(&Event::PutBack(edits.clone()));
    let (written, removed) = (edits.written.len(), edits.removed.len());
    Ok(format!(
        "done: the project is as it was before {folder}; {written} put back, {removed} removed"
    ))
}
