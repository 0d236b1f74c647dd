//! The consistency workflow: asks for a report and writes it to its file, along with its findings if requested. Changes
//! nothing else.

mod findings;
mod past;

use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use self::past::ResumedReport;
use super::cli::consistency::{ConsistencyArgs, FindingsFormat};
use super::error::CommandError;
use super::output_file::{self, OutputFile};
use super::sections;
use crate::model::prompt::Prompt;
use crate::model::thoughts::without_thoughts;
use crate::model::{ModelError, Reply, StepId};
use crate::project::rollup;
use crate::record::finding::{ReportFinding, Severity};
use crate::record::result::{RunRecord, SectionRecord};
use crate::record::seconds::Seconds;
use crate::run::active::Run;
use crate::run::context::{Context, ModelChoice};
use crate::run::outcome::{Failure, Outcome, RunOutput, ended};
use crate::run::parts::Parts;
use crate::run::past::sarif;
use crate::run::ready;
use crate::run::ready::Ready;
use crate::sys::atomic_file;
use crate::sys::error::Error;
use crate::sys::exit::Exit;
use crate::sys::files::PathError;
use crate::sys::numbers::counted;
use crate::sys::text::line_end;

/// The path of the report.
const REPORT: &str = "agent-config/consistency-report.txt";

/// Runs a consistency check.
///
/// # Errors
/// Fails if no report arrives, it cannot be written, or it has findings that `--fail-on` denies.
pub fn consistency(
    context: &Context<'_>,
    arguments: &ConsistencyArgs,
    choice: &ModelChoice,
) -> Result<Outcome, Failure> {
    check_file(context, arguments)?;
    let with_findings = arguments.findings.is_some();
    let read = |run: &Path| ResumedReport::read(context, run, with_findings);
    let resumed = choice.resume.as_deref().map(read).transpose()?;
    let mut choice = choice.clone();
    if let Some(resumed) = &resumed {
        choice.resume = Some(resumed.run.relative().into());
        let file = context.project.rollup().unwrap_or_default();
        choice.inputs = resumed.inputs(&choice.inputs, &file);
    }
    let mut ready = ready::check(context, &choice, None)?;
    if let Some(resumed) = &resumed {
        ready.models.recorded = Some(resumed.replies(context, &ready)?);
    }
    if arguments.if_changed
        && let Some((folder, record)) = past::unchanged(context, &ready, with_findings)?
    {
        return unchanged(context, arguments, folder, record);
    }
    let mut run = Run::start(context, "consistency")?;
    run.begin(&ready);
    let result = report(context, &mut run, &ready, with_findings);
    let (mut result, document) = concluded(context, arguments, &mut run.record, result);
    if let Some((format, document)) = arguments.findings.zip(document.as_ref())
        && let Err(unlogged) = run.log.json(format.file(), document)
    {
        result = result.and(Err(unlogged.into()));
    }
    // The report is not part of the project's tree.
    printing(arguments, document, run.finish(result, |_| {}))
}

/// Checks that the findings may be written to the requested file.
fn check_file(context: &Context<'_>, arguments: &ConsistencyArgs) -> Result<(), CommandError> {
    let Some(path) = arguments.findings_file.as_deref() else {
        return Ok(());
    };
    let checked = match output_file::broken_rule(&context.project, path) {
        Some(rule) => Err(rule.to_string()),
        None => OutputFile::find(&context.project, path)
            .and_then(|file| file.check())
            .map_err(|error| error.to_string()),
    };
    checked.map_err(|why| CommandError::OutputFile {
        what: "findings",
        path: path.to_owned(),
        why,
    })
}

/// Ends as the run with this record did, with its findings, but without its calls.
fn unchanged(
    context: &Context<'_>,
    arguments: &ConsistencyArgs,
    folder: String,
    mut record: RunRecord,
) -> Result<Outcome, Failure> {
    (record.exit, record.error) = (Exit::Done.into(), None);
    // The findings are as old as the report, and their document stays the same.
    record.seconds = Seconds::default();
    record.steps.clear();
    record.cost = record.total_cost();
    let text = format!("nothing has changed since {folder}, whose report is in {REPORT}");
    let (result, document) = concluded(context, arguments, &mut record, Ok(text));
    record.log = Some(folder);
    printing(arguments, document, ended(result, record))
}

/// Judges the findings of a run that has succeeded so far, writes them to the requested file, if any, and returns them
/// in the requested format.
fn concluded(
    context: &Context<'_>,
    arguments: &ConsistencyArgs,
    record: &mut RunRecord,
    result: Result<String, Error>,
) -> (Result<String, Error>, Option<Value>) {
    let done = |text: String| format!("done: {text}");
    let Some((format, found)) = arguments.findings.zip(record.findings.as_deref()) else {
        return (result.map(done), None);
    };
    let limit = arguments
        .fail_on
        .filter(|limit| found.iter().any(|one| one.severity <= *limit));
    let denied = limit.map(|limit| CommandError::Findings {
        counts: counts(found),
        limit: limit.into_str(),
    });
    let mut result = result.and_then(|text| denied.map_or(Ok(text), |denied| Err(denied.into())));
    if let Err(error) = &result {
        record.end_with(error, error.hint());
    }
    let document = match format {
        FindingsFormat::Sarif => sarif::log(record),
        FindingsFormat::Json => {
            json!({"schema": 1, "log": record.log, "findings": record.findings})
        }
    };
    match (&arguments.findings_file, &result) {
        (Some(path), _) => {
            let json = format!("{document:#}\n");
            let text = context.redactor.text(&json);
            let written = output_file::write(&context.project, path, &text);
            result = result.and_then(|text| written.map(|()| text).map_err(Error::from));
        }
        // Standard output carries the findings.
        (None, Ok(text)) => context.notice(text.as_str()),
        (None, Err(_)) => {}
    }
    (result.map(done), Some(document))
}

/// Adds the findings for standard output, unless they are written to a file.
fn printing(
    arguments: &ConsistencyArgs,
    document: Option<Value>,
    mut ended: Result<Outcome, Failure>,
) -> Result<Outcome, Failure> {
    let printed = document.filter(|_| arguments.findings_file.is_none());
    RunOutput::of(&mut ended).report = printed.map(Box::new);
    ended
}

fn report(
    context: &Context<'_>,
    run: &mut Run<'_>,
    ready: &Ready<'_>,
    with_findings: bool,
) -> Result<String, Error> {
    let parts = ready.parts.as_ref();
    let config = context.project.config();
    atomic_file::private_directory(&config).map_err(PathError::of("make", config))?;
    let prompt = if let Some(parts) = parts {
        let findings = parts.steps().map(|step| {
            context.notice(parts.described(&step));
            let (reply, ()) = run.ask(&ready.models, &step, parts.part(&step), |_| ())?;
            Ok(said(&reply)?.to_owned())
        });
        parts.join(&findings.collect::<Result<Vec<_>, Error>>()?)
    } else {
        let order = ready.models.model(&StepId::REPORT).spec.prompt_order;
        Prompt::consistency(&ready.inputs, order)
    };
    let (reply, ()) = run.ask(&ready.models, &StepId::REPORT, prompt, |_| ())?;
    context.interrupt.check()?;
    let note = parts.map_or_else(String::new, |parts| seen(parts, &reply));
    let text = context.redactor.text(said(&reply)?);
    let seen = context.redactor.text(&note);
    let path = context.project.consistency_report();
    atomic_file::replace(&path, |file| {
        file.write_all(text.as_bytes())?;
        file.write_all(seen.as_bytes())
    })
    .map_err(PathError::of("write", path))?;
    let sections = sections::find(&text);
    let is_missing = |section: &&SectionRecord| section.first_line.is_none();
    for section in sections.iter().filter(is_missing) {
        run.warn(format!("the report has no section `{}`", section.title));
    }
    run.record.sections = Some(sections);
    let mut summary = format!("the report is in {REPORT}");
    if !with_findings {
        return Ok(summary);
    }
    let files = rollup::sections(&ready.inputs.rollup, context.project.root());
    let found = findings::ask(run, ready, &text, &files)?;
    summary += &format!(", and has {}", counts(&found));
    run.record.findings = Some(found);
    Ok(summary)
}

/// Counts findings by severity, in words.
fn counts(found: &[ReportFinding]) -> String {
    let [errors, warnings, notes] = Severity::ALL.map(|severity| {
        let of = found.iter().filter(|one| one.severity == severity);
        counted(of.count() as u64, severity.into_str())
    });
    format!("{errors}, {warnings} and {notes}")
}

/// Returns the text behind the thoughts that a server may leave in a reply.
fn said(reply: &Reply) -> Result<&str, ModelError> {
    let said = without_thoughts(&reply.text);
    said.filter(|said| !said.trim().is_empty())
        .map(|said| said.trim_start_matches(['\r', '\n']))
        .ok_or_else(|| ModelError::Empty {
            finish: reply.finish.clone(),
            spent: reply.spent.clone().into(),
        })
}

/// Returns the end of the report, which lists the files of each part.
fn seen(parts: &Parts, reply: &Reply) -> String {
    format!(
        "{}\nThe code base was read by parts:\n\n+ {}\n",
        line_end(&reply.text),
        parts.listed().join("\n+ ")
    )
}
