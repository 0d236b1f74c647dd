//! The consistency workflow: asks for a report and writes it to the expected place. Changes nothing else.

use std::io::Write as _;

use super::sections;
use crate::model::prompt::Prompt;
use crate::model::{Reply, StepId};
use crate::record::result::SectionRecord;
use crate::run::active::Run;
use crate::run::context::{Context, ModelChoice};
use crate::run::outcome::{Failure, Outcome};
use crate::run::parts::Parts;
use crate::run::ready;
use crate::run::ready::Ready;
use crate::sys::atomic_file;
use crate::sys::error::Error;
use crate::sys::files::PathError;
use crate::sys::text::line_end;

/// Runs a consistency check.
///
/// # Errors
/// When no report is received, or it cannot be written.
pub fn consistency(context: &Context<'_>, choice: &ModelChoice) -> Result<Outcome, Failure> {
    let ready = ready::check(context, choice, None)?;
    let mut run = Run::start(context, "consistency", "consistency-report")?;
    run.begin(&ready);
    let result = report(context, &mut run, &ready);
    // The report is not part of the project's tree.
    run.finish(result, |_| {})
}

fn report(context: &Context<'_>, run: &mut Run<'_>, ready: &Ready<'_>) -> Result<String, Error> {
    let parts = ready.parts.as_ref();
    let config = context.project.config();
    atomic_file::private_directory(&config).map_err(PathError::of("make", config))?;
    let prompt = if let Some(parts) = parts {
        parts.join(&findings(context, run, ready, parts)?)
    } else {
        let order = ready.models.model(&StepId::REPORT).spec.prompt_order;
        Prompt::consistency(&ready.inputs, order)
    };
    let (reply, ()) = run.ask(&ready.models, &StepId::REPORT, prompt, |_| ())?;
    context.interrupt.check()?;
    let seen = parts.map_or_else(String::new, |parts| seen(parts, &reply));
    let text = context.redactor.text(&reply.text);
    let seen = context.redactor.text(&seen);
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
    Ok("done: the report is in agent-config/consistency-report.txt".to_owned())
}

/// Asks for the findings of each part.
fn findings(
    context: &Context<'_>,
    run: &mut Run<'_>,
    ready: &Ready<'_>,
    parts: &Parts,
) -> Result<Vec<String>, Error> {
    let findings = parts.steps().map(|step| {
        context.notice(parts.described(&step));
        let (reply, ()) = run.ask(&ready.models, &step, parts.part(&step), |_| ())?;
        Ok(reply.text.to_string())
    });
    findings.collect()
}

/// The end of the report: the files that each part had.
fn seen(parts: &Parts, reply: &Reply) -> String {
    format!(
        "{}\nThe code base was read by parts:\n\n+ {}\n",
        line_end(&reply.text),
        parts.listed().join("\n+ ")
    )
}
