//! Whether Ollama's servers are there, and have the models that a run asks.
//!
//! Asks each server once what it has, and sends nothing of the project.

use std::collections::BTreeMap;

use crate::model::{ModelSpec, OllamaServer, ServerProblem};
use crate::sys::interrupt::Interrupted;

/// A model of Ollama's, and its server.
pub type OnServer<'m> = (&'m ModelSpec, &'m OllamaServer);

/// Those of `models` that cannot be asked, and why; of a server that does not answer, the first.
///
/// # Errors
/// When a signal comes.
pub fn missing<'m>(
    models: impl Iterator<Item = OnServer<'m>>,
) -> Result<Vec<(OnServer<'m>, ServerProblem)>, Interrupted> {
    let mut by_server: BTreeMap<String, Vec<OnServer<'m>>> = BTreeMap::new();
    for model in models {
        by_server.entry(model.1.url()).or_default().push(model);
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
