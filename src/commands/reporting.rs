//! Reports the outcome of a command to people and programs: on standard output, on standard error, and in the exit
//! code.

use std::path::Path;

use serde_json::Value;

use crate::commands::command::Command;
use crate::commands::command_line::Cli;
use crate::record::event::{Event, Reporter as _};
use crate::record::result::RunRecord;
use crate::run::outcome::{Failure, Outcome, RunOutput, TextForm};
use crate::run::past::sarif;
use crate::sys::exit::Exit;
use crate::sys::text::line_end;
use crate::ui::columns::folded;
use crate::ui::pager::Pager;
use crate::ui::{Output, OutputFormat, json};

/// Reports the outcome, and returns the exit code. `pager` finds the program that displays long texts.
pub fn report_outcome(
    cli: &Cli,
    (output, root): (&Output<'_>, &Path),
    mut done: Result<Outcome, Failure>,
    pager: impl FnOnce() -> Option<Pager>,
) -> Exit {
    let record = &mut RunOutput::of(&mut done).record;
    if output.format() == OutputFormat::Sarif
        && let Some(record) = record
    {
        sarif::verify_places(record, root);
    }
    let findings = record.iter().flat_map(|record| &record.findings);
    findings.for_each(|findings| output.annotate(findings));
    match done {
        Ok(outcome) => succeeded(output, only_the_result(cli, outcome), pager),
        Err(failure) => failed(output, &failure),
    }
}

/// Drops secondary information from the outcome if the user gave `--quiet`.
fn only_the_result(cli: &Cli, mut outcome: Outcome) -> Outcome {
    if cli.output.quiet {
        outcome.next = None;
        // The table is optional, unless `--budget` needs it to suggest what to leave out.
        if matches!(&cli.command, Some(Command::Rollup(rollup)) if rollup.budget.is_none()) {
            outcome.output.text = None;
        }
    }
    outcome
}

fn succeeded(
    output: &Output<'_>,
    mut outcome: Outcome,
    pager: impl FnOnce() -> Option<Pager>,
) -> Exit {
    for warning in &outcome.warnings {
        output.event(&Event::Warning(warning.clone()));
    }
    let RunOutput { record, log, .. } = &outcome.output;
    let (is_run, log) = (record.is_some(), log.clone());
    let is_agents = record.as_ref().is_some_and(|it| it.agent.is_some());
    let form = outcome.output.form;
    let report = outcome.output.report.take();
    let is_answer = outcome.is_answer;
    let answered = if is_answer {
        output.answer(&outcome.summary)
    } else {
        Ok(())
    };
    if is_answer
        && output.format() == OutputFormat::Text
        && let Some(log) = outcome.output.log.take()
    {
        // Standard output must contain only the answer.
        output.event(&Event::Notice(format!("log: {log}")));
    }
    let text = match form {
        TextForm::Document => outcome.output.text.take().unwrap_or_default(),
        TextForm::Plain | TextForm::Diff => result_text(&outcome, output.columns()),
    };
    let pager = outcome.is_paged.then(pager).flatten();
    let written = answered.and_then(|()| match &report {
        Some(report) => output.report(report, || document(output, outcome)),
        None if form == TextForm::Document => output.document(&text),
        None => output.result((&text, form == TextForm::Diff), pager.as_ref(), || {
            document(output, outcome)
        }),
    });
    let Err(error) = written else {
        return Exit::Done;
    };
    let problem = format!("cannot write to stdout: {error}");
    if is_run && report.is_none() && !is_agents && output.format() == OutputFormat::Text {
        // The run succeeded regardless, and its record says so.
        output.event(&Event::Warning(problem));
        return Exit::Done;
    }
    // A program that asked for the record or the answer must not mistake part of it for the whole.
    let hint = is_run.then_some("what the run has done is done: its folder has the same record");
    output.error(&problem, hint, log.as_deref(), || Value::Null);
    Exit::LocalIo
}

fn failed(output: &Output<'_>, failure: &Failure) -> Exit {
    let (error, shown) = (&failure.error, &failure.output);
    let is_text = output.format() == OutputFormat::Text;
    if let Some(text) = shown.text.as_ref().filter(|_| is_text) {
        // A failure to write this matters less than the error that follows.
        let text = format!("{text}\n");
        let _ = output.result((&text, shown.form == TextForm::Diff), None, || Value::Null);
    }
    if let Some(report) = shown.report.as_ref().filter(|_| is_text)
        && let Err(error) = output.report(report, || Value::Null)
    {
        // The exit code reports the original failure, which matters more than the write error.
        let problem = format!("cannot write to stdout: {error}; the run's folder has the same");
        output.event(&Event::Warning(problem));
    }
    // Programs get the long form of the error.
    let (message, hint) = (format!("{error:#}"), failure.hint());
    output.error(&message, hint.as_deref(), shown.log.as_deref(), || {
        document_of(output, failure)
    });
    error.exit()
}

/// Returns the record of a failure.
fn document_of(output: &Output<'_>, failure: &Failure) -> Value {
    let record = failure.output.record.as_deref();
    record.map_or(Value::Null, |record| of_run(output, record))
}

/// Returns the record of a run in the format for programs.
fn of_run(output: &Output<'_>, record: &RunRecord) -> Value {
    match output.format() {
        OutputFormat::Sarif => sarif::log(record),
        _ => json::record(record),
    }
}

/// Reports an error from before any command to programs; the user has already seen it.
pub fn report_early(output: &Output<'_>, error: &Failure) {
    // A write error would only obscure the failure already printed.
    let _ = output.result(("", false), None, || document_of(output, error));
}

/// Returns the text for standard output: the result, a summary of the work, the log's path, and a suggested next step,
/// wrapped to this many columns, if known.
fn result_text(outcome: &Outcome, columns: Option<usize>) -> String {
    // An agent's answer has already been printed.
    let said = Some(&outcome.summary).filter(|said| !said.is_empty() && !outcome.is_answer);
    let log = outcome.output.log.as_ref().map(|log| format!("log: {log}"));
    let next = outcome.next.as_ref();
    let next = next.map(|steps| folded(steps, columns, "1. ".len()));
    let lines = [
        outcome.output.text.as_ref(),
        said,
        log.as_ref(),
        next.as_ref(),
    ];
    let line = |text: &String| format!("{text}{}", line_end(text));
    lines.into_iter().flatten().map(line).collect()
}

/// Returns the result for programs: a run's record, the requested data, or a confirmation.
fn document(output: &Output<'_>, outcome: Outcome) -> Value {
    match (outcome.output.record, outcome.data) {
        (Some(record), _) => of_run(output, &record),
        (None, Some(data)) => data,
        (None, None) => serde_json::json!({"schema": 1, "done": outcome.summary}),
    }
}
