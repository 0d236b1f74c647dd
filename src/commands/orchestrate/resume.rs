//! An earlier orchestration that another run goes on with, or publishes.
//!
//! Reads the earlier run's folder, and writes nothing. Guarantees that a run that is still going on is left alone.

use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::args::OrchestrateArgs;
use crate::record::orchestration::{BegunWork, Lineage};
use crate::record::replay::RecordingProblem;
use crate::record::run_files::LINEAGE;
use crate::run::context::{Context, ModelChoice};
use crate::run::not_ready::NotReady;
use crate::run::selection;
use crate::sys::error::Error;
use crate::sys::file_lock;
use crate::sys::files::{self, Links, MIB};

/// The earlier run has not ended.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("the run `{}` is still going on", .0.display())]
#[diagnostic(help("wait until it has ended, or interrupt it"))]
struct StillRunning(PathBuf);

/// Reads the run that `--resume` or `--publish-only` names; `None` without these flags. Returns the arguments and the
/// task that it was started with, and its branches.
///
/// # Errors
/// If there is no such run, it is no orchestration, or it is still going on.
pub fn begun(
    context: &Context<'_>,
    arguments: &OrchestrateArgs,
) -> Result<Option<(OrchestrateArgs, String, BegunWork)>, Error> {
    let publish_only = arguments.publish_only.is_some();
    let choice = ModelChoice {
        replay: arguments.resume.clone().or(arguments.publish_only.clone()),
        ..arguments.choice()
    };
    let Some(recording) = selection::find_recording(context, &choice)? else {
        return Ok(None);
    };
    let folder = recording.folder();
    if files::open_directory(folder).is_ok_and(|it| file_lock::is_locked(&it).unwrap_or(false)) {
        return Err(NotReady::of(StillRunning(folder.to_owned())).into());
    }
    let record = recording.agent();
    let found =
        record.and_then(|record| Some((record.request?, record.orchestration?, lineage(folder)?)));
    let none = || RecordingProblem::NoOrchestration(folder.to_owned());
    let (task, settings, lineage) = found.ok_or_else(none)?;
    let arguments = OrchestrateArgs {
        parent_branch_id: Uuid::parse_str(&settings.parent_branch_id).ok(),
        project_name: Some(settings.project_name),
        no_publish: !publish_only && (arguments.no_publish || !settings.publishes),
        ..arguments.clone()
    };
    let work = BegunWork {
        lineage,
        publish_only,
    };
    Ok(Some((arguments, task, work)))
}

fn lineage(folder: &Path) -> Option<Lineage> {
    let text = files::read(&folder.join(LINEAGE), Links::Refused, MIB).ok()?;
    serde_json::from_slice(&text).ok()
}
