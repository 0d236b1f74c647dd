//! Dispatches `fleet` to its commands.

use super::args::{FleetArgs, FleetCommand};
use super::manifest::CheckWords;
use super::{check, policy, run, task};
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome};

/// Works on a manifest or its results; `words` checks a command line.
///
/// # Errors
/// When the manifest has mistakes, or a task fails.
pub fn fleet(
    context: &Context<'_>,
    arguments: &FleetArgs,
    words: CheckWords<'_>,
) -> Result<Outcome, Failure> {
    match &arguments.command {
        FleetCommand::Check { manifest } => check::check(context, manifest, words),
        FleetCommand::Task {
            manifest,
            index,
            results,
        } => task::task(context, (manifest, *index), results, words),
        FleetCommand::Run(arguments) => run::run(context, arguments, words),
        FleetCommand::Policy { engine } => Ok(policy::policy(*engine)),
    }
}
