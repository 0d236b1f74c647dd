//! Checks that Ollama's servers respond and have the models that a run asks.
//!
//! Queries each server once for its models, lets it pull missing ones if allowed, and sends nothing of the project.

use std::collections::BTreeMap;

use crate::model::{ModelSpec, PullProgress, ServerProblem, VendorServer};
use crate::run::context::Context;
use crate::sys::interrupt::Interrupted;
use crate::sys::text::one_line;

/// A model served by Ollama, and its server.
pub type OnServer<'m> = (&'m ModelSpec, &'m VendorServer);

/// Returns the models that cannot be asked, with the reasons; for a server that does not respond, only the first.
///
/// # Errors
/// Fails if a signal interrupts the check.
pub fn missing<'m>(
    models: impl Iterator<Item = OnServer<'m>>,
) -> Result<Vec<(OnServer<'m>, ServerProblem)>, Interrupted> {
    let mut by_server: BTreeMap<String, Vec<OnServer<'m>>> = BTreeMap::new();
    for model in models {
        let others = by_server.entry(model.1.url()).or_default();
        if others.iter().all(|other| other.0.id != model.0.id) {
            others.push(model);
        }
    }
    let mut missing = Vec::new();
    for models in by_server.into_values() {
        match models[0].1.installed() {
            Ok(installed) => missing.extend(models.into_iter().filter_map(|model| {
                let problem = model.1.lack(&model.0.id, &installed)?;
                Some((model, problem))
            })),
            Err(ServerProblem::Interrupted(interrupted)) => return Err(interrupted),
            Err(problem) => missing.push((models[0], problem)),
        }
    }
    Ok(missing)
}

/// Pulls a missing model, if that is the only problem and pulling is allowed.
///
/// # Errors
/// The original problem, or a new one from pulling.
pub fn pulled(
    context: &Context<'_>,
    (spec, server): OnServer<'_>,
    problem: ServerProblem,
    may_pull: &dyn Fn(&str) -> Result<bool, Interrupted>,
) -> Result<(), ServerProblem> {
    if !matches!(problem, ServerProblem::NotInstalled { .. }) || !may_pull(&spec.id)? {
        return Err(problem);
    }
    let mut last = String::new();
    server.pull(&spec.id, &mut |progress| {
        let line = formatted(&spec.id, progress);
        if line != last {
            context.notice(line.clone());
            last = line;
        }
    })
}

/// Formats the progress of a pull, in steps of 10 %.
fn formatted(model: &str, progress: &PullProgress) -> String {
    let status = one_line(&progress.status, 80);
    match (progress.completed, progress.total) {
        (Some(done), Some(total)) if total > 0 => {
            let tenths = done.saturating_mul(10) / total;
            format!("pulling `{model}`: {status}: {} %", tenths.min(10) * 10)
        }
        _ => format!("pulling `{model}`: {status}"),
    }
}
