//! Lookup of a run: by its folder, a prefix of its name, a time of today, or its position in the list.
//!
//! Reads `logs`; changes nothing. Guarantees that an ambiguous name never selects a run.

use std::path::{Path, PathBuf};

use chrono::NaiveDate;

use super::folders::names;
use super::history::{PastRun, latest};
use crate::project::Project;
use crate::run::error::RunError;
use crate::sys::files;

/// Returns the name of the folder that `run` refers to: by its name, or its path from the root; an unambiguous prefix
/// of its name; a time of `today`, such as `14:05`, in which only one run began; or `last`, or `-2` for the one before.
///
/// # Errors
/// Fails if no run matches, or several do.
pub fn find(project: &Project, run: &Path, today: NaiveDate) -> Result<String, RunError> {
    find_among(project, run, today, |_| true)
}

/// Like [`find`], for resuming or repeating a run: `last` means the last run that is not an undo.
///
/// # Errors
/// Same as [`find`].
pub fn find_asked(project: &Project, run: &Path, today: NaiveDate) -> Result<String, RunError> {
    find_among(project, run, today, |run| run.workflow() != "undo")
}

/// Finds a run; positions from the end count only the runs that `counts` accepts.
fn find_among(
    project: &Project,
    run: &Path,
    today: NaiveDate,
    counts: impl FnMut(&PastRun) -> bool,
) -> Result<String, RunError> {
    if let Some(name) = folder(project, run) {
        return Ok(name);
    }
    let missing = || RunError::NoSuchRun(run.to_path_buf());
    let named = run.to_str().unwrap_or_default();
    if let Some(from_end) = place_from_end(named) {
        let run = latest(project)?.filter(counts).nth(from_end - 1);
        return Ok(run.ok_or_else(missing)?.name);
    }
    let beginning = time_of_day(named).map_or_else(
        || named.trim_start_matches("logs/").to_owned(),
        |time| format!("{}-{time}", today.format("%Y-%m-%d")),
    );
    let mut names = names(project)?;
    names.retain(|name| !beginning.is_empty() && name.starts_with(&beginning));
    match names.len() {
        0 => Err(missing()),
        1 => names.pop().ok_or_else(missing),
        _ => Err(RunError::AmbiguousRun {
            named: named.to_owned(),
            names,
        }),
    }
}

/// Returns the name of the folder that `run` gives by name or path.
fn folder(project: &Project, run: &Path) -> Option<String> {
    let logs = project.logs();
    // Only direct children of `logs` are runs: their saved files are located by the folder's name.
    let is_run =
        |path: &PathBuf| files::is_directory(path) && path.parent() == Some(logs.as_path());
    let named = [project.home().join(run), logs.join(run)].map(path_clean::clean);
    let found = named.iter().find(|path| is_run(path))?;
    Some(found.file_name()?.to_str()?.to_owned())
}

/// Returns the position from the end that `last` or `-2` denotes: 1 is the last run.
fn place_from_end(named: &str) -> Option<usize> {
    match named.strip_prefix('-') {
        Some(number) => number.parse().ok().filter(|number| *number > 0),
        None => (named == "last").then_some(1),
    }
}

/// Converts `14:05`, `14-05` or `14:05:33` to the format of run names.
fn time_of_day(named: &str) -> Option<String> {
    let parts: Vec<&str> = named.split([':', '-']).collect();
    let is_number = |part: &&str| part.len() == 2 && part.bytes().all(|c| c.is_ascii_digit());
    let is_time = (2..=3).contains(&parts.len()) && parts.iter().all(is_number);
    is_time.then(|| parts.join("-") + "-")
}
