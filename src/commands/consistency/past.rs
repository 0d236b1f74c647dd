//! Earlier reports: the run to resume, and the last report, which may still be current. Reads their
//! folders.

use std::collections::BTreeSet;
use std::path::Path;

use crate::model::prompt::Prompt;
use crate::model::{Purpose, StepId};
use crate::record::result::RunRecord;
use crate::record::run_files::Artifact;
use crate::run::context::{Context, InputOptions, QuerySource};
use crate::run::error::RunError;
use crate::run::not_ready::NotReady;
use crate::run::past::history::{PastRun, latest};
use crate::run::past::naming;
use crate::run::past::past_step::PastStep;
use crate::run::ready::Ready;
use crate::run::selection::RecordedReplies;
use crate::sys::error::Error;
use crate::sys::excerpt::lossy;
use crate::sys::exit::Exit;
use crate::sys::files::{self, Links, MIB};
use crate::sys::numbers::counted;

/// Name of the workflow in records.
const WORKFLOW: &str = "consistency";
/// Maximum size of a report, in bytes.
const LARGEST: u64 = 128 * MIB;

/// An earlier run to resume.
pub struct ResumedReport {
    /// The run.
    pub run: PastRun,
    /// The steps with complete replies that were not rejected.
    steps: Vec<PastStep>,
}

impl ResumedReport {
    /// Reads the named run.
    ///
    /// # Errors
    /// Fails if no such run exists, or it has nothing left to ask for: its report is written, and its findings if
    /// requested.
    pub fn read(context: &Context<'_>, name: &Path, with_findings: bool) -> Result<Self, Error> {
        let name = naming::find_asked(&context.project, name, context.today())?;
        let run = PastRun::read(&context.project, &name);
        let folder = run.relative();
        let not = |problem| Err(NotReady::of(problem).into());
        if run.workflow() != WORKFLOW {
            return not(RunError::OtherWorkflow(folder, "a report"));
        }
        let lacks_findings = |record: &RunRecord| with_findings && record.findings.is_none();
        let is_done =
            |record: &RunRecord| record.exit.exit() == Some(Exit::Done) && !lacks_findings(record);
        if run.record.as_ref().is_some_and(is_done) {
            return not(RunError::NothingToResume(folder));
        }
        let mut steps = run.steps(&context.project);
        steps.retain(|past| past.is_whole() && past.step.rejected.is_none());
        Ok(Self { run, steps })
    }

    /// Replaces the `given` inputs with those that the run sent: all of them or, for a report by parts, only the query.
    /// In the latter case the code base is rolled up again, unless it came from a file, whose text is `file`.
    pub fn inputs(&self, given: &InputOptions, file: &str) -> InputOptions {
        let first = self.steps.first().map(|past| &past.step);
        let by_parts = first.is_some_and(|step| step.purpose == Purpose::PART);
        let sent = first.and_then(|step| self.run.sent(step));
        let is_of_file = sent.as_ref().is_some_and(|it| file.contains(&it.rollup));
        let query = match sent {
            None => given.query.clone(),
            Some(sent) if by_parts => QuerySource::Given(sent.query),
            Some(sent) => QuerySource::Recorded(sent),
        };
        InputOptions {
            query,
            by_parts: by_parts || given.by_parts,
            roll_up: given.roll_up || by_parts && !is_of_file,
            ..given.clone()
        }
    }

    /// Returns the run's replies, which need no calls.
    ///
    /// # Errors
    /// Fails if its inputs differ from the current ones.
    pub fn replies<'c>(
        &self,
        context: &Context<'c>,
        ready: &Ready<'_>,
    ) -> Result<RecordedReplies<'c>, Error> {
        let folder = self.run.relative();
        match is_as_sent(context, ready, &self.run) {
            Some(true) => {}
            Some(false) => return Err(NotReady::of(RunError::OtherInputs(folder)).into()),
            None => return Err(NotReady::of(RunError::NoQuery(folder)).into()),
        }
        let steps: BTreeSet<StepId> = self.steps.iter().map(|past| past.step.id()).collect();
        let count = counted(steps.len() as u64, "step");
        context.notice(format!(
            "resuming {folder}: {count} recorded, which cost nothing"
        ));
        RecordedReplies::new(context, &folder, steps)
    }
}

/// Returns the last report and its record, if the same model made it from the current inputs.
///
/// # Errors
/// Fails if the runs cannot be listed.
pub fn unchanged(
    context: &Context<'_>,
    ready: &Ready<'_>,
    with_findings: bool,
) -> Result<Option<(String, RunRecord)>, Error> {
    let is_written = |run: &PastRun| {
        let exit = run.record.as_ref().and_then(|record| record.exit.exit());
        run.workflow() == WORKFLOW && matches!(exit, Some(Exit::Done | Exit::Findings))
    };
    let last = latest(&context.project)?.find(is_written);
    let is_same = |run: &PastRun, record: &RunRecord| {
        record.model.as_ref() == Some(&ready.models.first.spec.name)
            && record.base_urls == ready.models.base_urls()
            && (record.findings.is_some() || !with_findings)
            && is_written_by(context, run)
            && is_as_sent(context, ready, run) == Some(true)
    };
    Ok(last.and_then(|run| {
        let record = run.record.clone()?;
        is_same(&run, &record).then(|| (run.relative(), record))
    }))
}

/// Returns `true` if the report on disk begins with the run's recorded reply; a list of parts may follow it.
fn is_written_by(context: &Context<'_>, run: &PastRun) -> bool {
    let path = context.project.consistency_report();
    let report = files::read(&path, Links::Followed, LARGEST).map(lossy);
    let reply = run.text(&StepId::REPORT, Artifact::ResponseText);
    report.is_ok_and(|report| reply.is_some_and(|reply| report.starts_with(&reply)))
}

/// Returns `true` if every query that a run sent equals the one that would be sent now; `None` if it sent none. Later
/// queries depend on nothing else.
fn is_as_sent(context: &Context<'_>, ready: &Ready<'_>, run: &PastRun) -> Option<bool> {
    let order = ready.models.first.spec.prompt_order;
    let queries: Vec<(StepId, Prompt<'_>)> = match &ready.parts {
        Some(parts) => parts
            .steps()
            .map(|step| (step.clone(), parts.part(&step)))
            .collect(),
        None => vec![(StepId::REPORT, Prompt::consistency(&ready.inputs, order))],
    };
    let logged = queries.into_iter().map_while(|(step, query)| {
        let logged = run.text(&step, Artifact::Query)?;
        Some(query.redacted(context.redactor).to_string() == logged)
    });
    logged.reduce(|one, other| one && other)
}
