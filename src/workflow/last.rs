//! The last run that counts, where a command names none.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use super::Context;
use crate::edit::undo::is_undone;
use crate::edit::undo_log;
use crate::project::LOGS;
use crate::record::run_files::RESULT;
use crate::review::history::NoSuchRun;
use crate::sys::files::IfThere as _;
use crate::workflow::error::Error;

/// The last run that changed anything, undoing left out. One that was rolled back, or has taken its edits
/// back itself, has not.
///
/// # Errors
/// When there is none, or the runs cannot be read.
pub fn changed(context: &Context<'_>) -> Result<String, Error> {
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
        if changes.are_none() {
            continue;
        }
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
    let Some(entries) = fs::read_dir(context.project.logs())
        .if_there()
        .map_err(unreadable)?
    else {
        return Ok(Vec::new());
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
