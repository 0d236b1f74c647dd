//! Dispatch of `fleet` to its commands.

use super::args::FleetCommand;
use super::manifest::CheckWords;
use super::{check, policy, publish, report, run, task};
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome};
use crate::ui::OutputFormat;

/// Runs a command on a manifest or its results; `words` checks a command line.
///
/// # Errors
/// Fails if the manifest has mistakes, a task fails, or a result cannot be read.
pub fn fleet(
    context: &Context<'_>,
    command: &FleetCommand,
    format: OutputFormat,
    words: CheckWords<'_>,
) -> Result<Outcome, Failure> {
    match command {
        FleetCommand::Check { manifest } => check::check(context, manifest, words),
        FleetCommand::Task {
            manifest,
            index,
            results,
        } => task::task(context, (manifest, *index), results, words),
        FleetCommand::Run(arguments) => run::run(context, arguments, format, words),
        FleetCommand::Report { results, page } => {
            report::report(context, (results, page.as_deref()), format)
        }
        FleetCommand::Publish { results, branch } => publish::publish(context, results, branch),
        FleetCommand::Policy { engine } => Ok(policy::policy(*engine)),
    }
}
