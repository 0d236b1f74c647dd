//! Undo: puts the project back as it was before a run.

use std::fs;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use super::run::{Names, Run};
use super::tree::RunTree;
use super::{Context, Failure, Outcome, ready};
use crate::edit::undo::is_undone;
use crate::edit::undo_log::{self, Changes};
use crate::error::Error;
use crate::history::{self, NoSuchRun};
use crate::record::{EditsRecord, TreeState};
use crate::report::Event;
use crate::run_files::{LOGS, RESULT};

const NAMES: Names = Names {
    record: "undo",
    folder: "undo",
};

/// Undoes `run`, by the path or the name of its folder; or the last one that changed anything and is no
/// undo itself.
///
/// # Errors
/// When there is no such run, a file has changed since, or anything fails; the tree is then as it was.
pub fn undo(context: &Context<'_>, run: Option<&Path>) -> Result<Outcome, Failure> {
    let _lock = ready::take(context)?;
    let folder = match run {
        Some(name) => format!(
            "{LOGS}/{}",
            history::find(&context.project, name).map_err(Error::from)?
        ),
        None => last(context)?,
    };
    let root = context.project.root();
    let changes = undo_log::read(root, &folder).map_err(Error::from)?;
    let Some(changes) = changes else {
        return Ok(Outcome::said(format!("done: {folder} has changed nothing")));
    };
    let mut run = Run::start(context, NAMES)?;
    let mut tree = RunTree::new(context, &run);
    let result = put_back(context, &mut run, &mut tree, &folder, &changes);
    let outcome = run.finish(result, |run| tree.put_back(run));
    tree.end();
    outcome
}

fn put_back(
    context: &Context<'_>,
    run: &mut Run<'_>,
    tree: &mut RunTree<'_>,
    folder: &str,
    changes: &Changes,
) -> Result<String, Error> {
    let edits = tree.undo(run, folder, changes)?;
    if edits == EditsRecord::default() {
        return Ok(format!(
            "done: the project is as it was before {folder} already"
        ));
    }
    run.record.tree = TreeState::Changed;
    context.reporter.event(Event::PutBack(&edits));
    let (written, removed) = (edits.written.len(), edits.removed.len());
    Ok(format!(
        "done: the project is as it was before {folder}; {written} put back, {removed} removed"
    ))
}

/// The last run that changed anything, undoing left out. One that was rolled back, or has taken its edits
/// back itself, has not.
pub fn last(context: &Context<'_>) -> Result<String, Error> {
    let root = context.project.root();
    let journal = context.project.journal_directory();
    for name in newest_first(context)?
        .into_iter()
        .filter(|name| !is_undo(name))
    {
        let folder = format!("{LOGS}/{name}");
        let Some(changes) = undo_log::read(root, &folder)? else {
            continue;
        };
        let undone = is_undone(context.tree(&journal), &folder, &changes);
        if says_changed(&root.join(&folder)) || !matches!(undone, Ok(true)) {
            return Ok(folder);
        }
    }
    Err(NoSuchRun::NoRun("changed anything").into())
}

/// Whether a run's own record says that it has changed the project. A run that was killed has none.
fn says_changed(folder: &Path) -> bool {
    let record = fs::read(folder.join(RESULT)).unwrap_or_default();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap_or_default();
    record["tree"] == "changed"
}

/// The names of the runs that have an undo log.
fn newest_first(context: &Context<'_>) -> Result<Vec<String>, Error> {
    let unreadable = |source| NoSuchRun::Unreadable {
        path: context.project.logs(),
        source,
    };
    let entries = match fs::read_dir(context.project.logs()) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(error).into()),
    };
    let mut runs = Vec::new();
    for entry in entries {
        let name = entry.map_err(unreadable)?.file_name();
        let Some(name) = name.to_str() else {
            continue;
        };
        if let Some(log) = undo_log::locate(context.project.root(), &format!("{LOGS}/{name}")) {
            let written = log.metadata().and_then(|found| found.modified());
            runs.push((written.unwrap_or(SystemTime::UNIX_EPOCH), name.to_owned()));
        }
    }
    runs.sort_by(|a, b| b.cmp(a));
    Ok(runs.into_iter().map(|(_, name)| name).collect())
}

/// Whether the folder is that of an undo: `<stamp>-undo`, perhaps with a number behind it.
fn is_undo(name: &str) -> bool {
    let workflow = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let workflow = workflow.strip_suffix('-').unwrap_or(workflow);
    workflow.ends_with("-undo") || name.ends_with("-undo")
}
