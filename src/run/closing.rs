//! The end of a run, as a reviewer first sees it: the warnings, and the lines changed.

use super::active::Run;
use super::context::Context;
use super::outcome::{Failure, Outcome, RunOutput};
use super::tree::RunTree;
use crate::edit::changes::SavedFile;
use crate::project::Project;
use crate::record::event::Event;
use crate::record::result::{StatRecord, TreeState, WarningRecord};
use crate::record::run_files::UNAPPLIED;
use crate::run::past::history::{PastRun, file_change};
use crate::run::past::warnings;
use crate::sys::diff::{self, FileChange, FileStat, FileState, MAX_BYTES, Stat};
use crate::sys::files::{self, Links, MIB};

/// Maximum size of a file whose lines are counted, in bytes.
const LARGEST: u64 = 1024 * MIB;

/// Reports the run's changes, and those to review first. `files` are the ones that replies have written, with their
/// latest content, or removed (`None`). Returns the changes, without those of files that are too large.
pub fn review<'f>(
    context: &Context<'_>,
    run: &mut Run<'_>,
    tree: &RunTree<'_>,
    files: impl Iterator<Item = (&'f str, Option<&'f str>)>,
) -> Vec<FileChange> {
    if run.record.tree != TreeState::Changed {
        return Vec::new();
    }
    let (changes, too_large) = changes(tree, files, |path| tree.first_saved(path));
    let shown = run.record.warnings.len();
    let found = warnings(context, &changes);
    let sentences = found.iter().map(|warning| warning.message.clone());
    run.record.warnings.extend(sentences);
    run.record.warning_details = found;
    let stat = stat(&changes, too_large);
    run.record.stat = Some(StatRecord {
        files: stat.files.len() as u64,
        added: stat.added(),
        removed: stat.removed(),
    });
    context.reporter.event(&Event::Reviewed {
        warnings: run.record.warnings.clone(),
        shown,
        stat,
    });
    changes
}

/// Returns the warnings about a change.
pub fn warnings(context: &Context<'_>, changes: &[FileChange]) -> Vec<WarningRecord> {
    let commands = warnings::build_commands(context.project.root(), changes);
    warnings::warnings(changes, &commands)
}

/// Returns the run's changes so far: one line per file, with the numbers of added and removed lines.
pub fn changed_so_far(tree: &RunTree<'_>) -> Vec<String> {
    let (changes, too_large) = own_changes(tree);
    let mark = |path: &str| match changes.iter().find(|change| change.path == path) {
        Some(FileChange { before: None, .. }) => "A",
        Some(FileChange { after: None, .. }) => "D",
        _ => "M",
    };
    let lines = stat(&changes, too_large).files.into_iter().map(|file| {
        let (path, added, removed) = (file.path, file.added, file.removed);
        format!(" {} {path} (+{added} -{removed})", mark(&path))
    });
    lines.collect()
}

/// Returns the run's changes so far, as a unified diff.
pub fn diff_so_far(tree: &RunTree<'_>) -> String {
    let (changes, _) = own_changes(tree);
    diff::text(&changes)
}

/// Returns the number of lines that the run has added and removed so far; `files` as for [`review`].
pub fn lines_so_far<'f>(
    tree: &RunTree<'_>,
    files: impl Iterator<Item = (&'f str, Option<&'f str>)>,
) -> u64 {
    let (changes, _) = changes(tree, files, |path| tree.saved(path));
    let stat = diff::stat(&changes);
    stat.added() + stat.removed()
}

/// Takes back what a failed run has applied. If that was in a scratch tree, the run's folder keeps it as a diff.
pub fn take_back(run: &mut Run<'_>, tree: &mut RunTree<'_>) {
    if !tree.is_apart() {
        tree.put_back(run);
    } else if drop_unapplied(run, tree) {
        run.warn(format!(
            "nothing was applied; what the run has made is in `{}/{UNAPPLIED}`, for `git apply`",
            run.log.name()
        ));
    }
}

/// Discards the run's changes in its scratch tree. The run's folder keeps them as a diff; returns whether it has one.
pub fn drop_unapplied(run: &mut Run<'_>, tree: &mut RunTree<'_>) -> bool {
    let diff = diff_so_far(tree);
    let logged = (!diff.is_empty()).then(|| run.log.text(UNAPPLIED, &diff));
    tree.put_back(run);
    match logged {
        None => false,
        Some(Ok(())) => true,
        Some(Err(unlogged)) => {
            run.warn(unlogged.to_string());
            false
        }
    }
}

fn stat(changes: &[FileChange], too_large: Vec<FileStat>) -> Stat {
    let mut stat = diff::stat(changes);
    stat.files.extend(too_large);
    stat.files.sort_by(|a, b| a.path.cmp(&b.path));
    stat
}

/// Adds the whole change of the run to the outcome, as a unified diff.
///
/// # Errors
/// Fails if the run failed, or the record of its changes cannot be read.
pub fn with_diff(
    project: &Project,
    mut done: Result<Outcome, Failure>,
) -> Result<Outcome, Failure> {
    if matches!(&done, Err(failure) if failure.tree != TreeState::Changed) {
        return done;
    }
    let log = RunOutput::of(&mut done).log.as_deref();
    match PastRun::at(project, log.unwrap_or_default()).changes(project) {
        Ok(changes) => RunOutput::of(&mut done).set_diff(diff::text(&changes.files)),
        // The original error matters more than a diff that cannot be read.
        Err(unread) if done.is_ok() => return Err(unread.into()),
        Err(_) => {}
    }
    done
}

/// Returns the run's own changes that can be compared line by line, and those that are too large for that.
pub(crate) fn own_changes(tree: &RunTree<'_>) -> (Vec<FileChange>, Vec<FileStat>) {
    let files = tree.changed().map(|path| (path, None));
    changes(tree, files, |path| tree.saved(path))
}

/// Returns the changes since the states before that can be compared line by line, and those that are too large for
/// that.
fn changes<'f>(
    tree: &RunTree<'_>,
    files: impl Iterator<Item = (&'f str, Option<&'f str>)>,
    before: impl Fn(&str) -> Option<SavedFile>,
) -> (Vec<FileChange>, Vec<FileStat>) {
    let (mut changes, mut too_large) = (Vec::new(), Vec::new());
    for (path, after) in files {
        let built = tree.built(path, after);
        let after = after.filter(|_| !tree.is_gone(path));
        let after = built.as_deref().or(after.map(str::as_bytes));
        let copy = before(path);
        let before_size = copy
            .as_ref()
            .and_then(|copy| copy.path.metadata().ok())
            .map_or(0, |found| found.len());
        let after_size = after.map_or(0, <[u8]>::len);
        if before_size > MAX_BYTES as u64 || after_size > MAX_BYTES {
            let read = copy.and_then(|copy| files::read(&copy.path, Links::Refused, LARGEST).ok());
            let before = read.unwrap_or_default();
            too_large.push(FileStat::between(path, &before, after.unwrap_or_default()));
            continue;
        }
        let before = copy.map(|copy| FileState {
            // Unreadable content shows as empty here; the actual record is elsewhere.
            content: files::read(&copy.path, Links::Refused, MAX_BYTES as u64).unwrap_or_default(),
            mode: copy.mode,
        });
        changes.extend(file_change(path, before, after.map(<[u8]>::to_vec)));
    }
    (changes, too_large)
}
