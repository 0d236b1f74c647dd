//! An earlier orchestration to continue or to publish.
//!
//! Reads the earlier run's folder, and writes nothing. Guarantees that a run in progress is not touched.

use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::args::OrchestrateArgs;
use crate::record::branches::Lineage;
use crate::record::orchestration::{
    BegunWork, OrchestrationRecord, OrchestrationSettings, OrchestrationStatus,
};
use crate::record::replay::{Recording, RecordingProblem};
use crate::record::result::{AgentRecord, RunRecord};
use crate::record::run_files::{LINEAGE, RESULT};
use crate::run::context::Context;
use crate::run::error::RunError;
use crate::run::not_ready::NotReady;
use crate::run::selection;
use crate::sys::error::Error;
use crate::sys::file_lock;
use crate::sys::files::{self, Links, MIB};

/// The earlier run is still in progress.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("the run `{}` is still going on", .0.display())]
#[diagnostic(help("wait until it has ended, or interrupt it"))]
struct StillRunning(PathBuf);

/// The record of the earlier run's branches cannot be read.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("`{}` is missing or damaged: {}", .0.display(), .1)]
#[diagnostic(help("restore it, or start a new run"))]
struct NoLineage(PathBuf, io::Error);

/// Work to continue, with the arguments and the task that the run was started with.
pub type BegunRun = (OrchestrateArgs, String, BegunWork);

/// The state that an earlier run hands over to another one.
#[derive(Debug)]
pub enum Begun {
    /// Work to continue.
    Work(Box<BegunRun>),
    /// Nothing, since the work is published.
    Published(Box<OrchestrationRecord>),
}

/// Reads the run named by `--resume` or `--publish-only`; `None` without these flags.
///
/// # Errors
/// Fails if there is no such run, or it is not an orchestration, is still in progress, or has left nothing to resume.
pub fn begun(context: &Context<'_>, arguments: &OrchestrateArgs) -> Result<Option<Begun>, Error> {
    let publish_only = arguments.publish_only.is_some();
    let run = arguments.resume.as_deref();
    let run = run.or(arguments.publish_only.as_deref());
    let Some(recording) = selection::find_recording(context, run)? else {
        return Ok(None);
    };
    let folder = recording.folder();
    if files::open_directory(folder).is_ok_and(|it| file_lock::is_locked(&it).unwrap_or(false)) {
        return Err(NotReady::of(StillRunning(folder.to_owned())).into());
    }
    let ended: Option<RunRecord> = json(folder, RESULT).ok();
    let is_killed = ended.is_none();
    match ended.and_then(|ended| ended.orchestration) {
        Some(report) if publish_only && report.publish_report.is_some() => {
            return Ok(Some(Begun::Published(Box::new(report))));
        }
        Some(report) if !publish_only && report.status == OrchestrationStatus::Completed => {
            return Err(NotReady::of(RunError::NothingToResume(report.log)).into());
        }
        _ => {}
    }
    let (task, settings, _) = recorded(&recording)?;
    let no_lineage = |error| NotReady::of(NoLineage(folder.join(LINEAGE), error));
    let mut lineage: Lineage = json(folder, LINEAGE).map_err(no_lineage)?;
    let is_cut_off = is_killed && lineage.publishes && lineage.starting.is_none();
    if let Some(last) = lineage.branches.last().filter(|_| is_cut_off) {
        // The publishing agent's report may be lost, so wait for the agent again.
        lineage.latest_branch_id.clone_from(&last.parent);
        lineage.waiting_for = Some(last.id.clone());
    }
    let is_publishing = lineage.publishes && lineage.waiting_for.is_some();
    let arguments = OrchestrateArgs {
        parent_branch_id: Uuid::parse_str(&settings.parent_branch_id).ok(),
        project_name: Some(settings.project_name),
        // Publishing asks no model.
        model: arguments
            .model
            .clone()
            .filter(|_| !publish_only)
            .or(settings.names_model.then_some(settings.model)),
        no_publish: !publish_only
            && !is_publishing
            && (arguments.no_publish || !settings.publishes),
        ..arguments.clone()
    };
    let work = BegunWork {
        lineage,
        publish_only,
    };
    Ok(Some(Begun::Work(Box::new((arguments, task, work)))))
}

/// Returns the task and the settings of a recorded run, together with its complete record.
///
/// # Errors
/// Fails if the run is not an orchestration.
pub fn recorded(
    recording: &Recording,
) -> Result<(String, OrchestrationSettings, AgentRecord), RecordingProblem> {
    let record = recording.agent();
    let found = record.and_then(|record| {
        let (task, settings) = (record.request.clone()?, record.orchestration.clone()?);
        Some((task, settings, record))
    });
    found.ok_or_else(|| RecordingProblem::NoOrchestration(recording.folder().to_owned()))
}

fn json<T: DeserializeOwned>(folder: &Path, name: &str) -> io::Result<T> {
    let text = files::read(&folder.join(name), Links::Refused, 64 * MIB)?;
    Ok(serde_json::from_slice(&text)?)
}
