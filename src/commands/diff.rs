//! Shows what a run changed, from its own record. Changes nothing.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::last;
use crate::record::result::TreeState;
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome};
use crate::run::past::history::PastRun;
use crate::sys::diff::{self, FileChange, Stat};
use crate::sys::numbers::counted;

#[derive(Debug, Clone, Args)]
pub struct DiffArgs {
    /// Run, named as for `log` [default: the last run with changes]
    #[arg(allow_negative_numbers = true)]
    pub run: Option<PathBuf>,

    /// Show the number of changed lines per file instead
    #[arg(long)]
    pub stat: bool,
}

/// The width of the diffstat, in columns.
const WIDTH: usize = 80;

/// Shows the changes of `run`, or of the last run that changed anything; as a diffstat if
/// `as_stat`.
///
/// # Errors
/// Fails if there is no such run, or its record cannot be read.
pub fn diff(context: &Context<'_>, run: Option<&Path>, as_stat: bool) -> Result<Outcome, Failure> {
    let project = &context.project;
    let folder = last::folder(context, run)?;
    let run = PastRun::find(project, folder.rsplit('/').next().unwrap_or_default());
    let changes = run.changes(project)?;
    let files = &changes.files;
    let stat = diff::stat(files);
    let mut outcome = Outcome::shown(stat.text(WIDTH), data(&run, &stat, files));
    if !as_stat {
        outcome.output.set_diff(diff::text(files));
    }
    outcome.is_paged = true;
    if files.is_empty() && changes.doubts.is_empty() {
        let undecided = run.choice().filter(|choice| choice.taken.is_none());
        let attempts = undecided.map(|choice| {
            let attempts = counted(choice.attempts.len() as u64, "attempt");
            format!(": none of its {attempts} was applied")
        });
        let why = attempts.unwrap_or_default();
        outcome.summary = format!("{}{why}", run.changed_nothing());
    }
    outcome.warnings = changes.doubts;
    if let Some(undo) = &run.undone_by {
        let run = run.relative();
        outcome
            .warnings
            .push(format!("the changes of {run} were undone by {undo}"));
    }
    if run.record.as_ref().map(|record| record.tree) == Some(TreeState::PutBack) {
        outcome.warnings.push(format!(
            "the changes of {} were taken back at its end",
            run.relative()
        ));
    }
    Ok(outcome)
}

fn data(run: &PastRun, stat: &Stat, changes: &[FileChange]) -> serde_json::Value {
    json!({"schema": 1, "run": run.relative(), "files": stat.files, "diff": diff::text(changes)})
}
