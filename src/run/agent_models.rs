//! Selection of the models that agents ask.
//!
//! Reads the table of models, the run to be replayed, and key files. Queries no servers but Ollama's, for their models.

use super::context::{Context, ModelChoice};
use super::not_ready::NotReady;
use super::selection::{
    ModelKey, Models, SelectedModel, find_recording, named, named_or_installed, table_of,
};
use super::sending;
use crate::model::{Endpoint, ModelSpec, ModelTable, Origin, Provider, Purpose};
use crate::record::replay::{Recording, RecordingProblem};
use crate::sys::error::Error;
use crate::sys::interrupt::Interrupted;

/// Selects the model for an agent: the one named by `--model`, or the recorded one, or else the user's own, with its
/// server and key; if the user has no server, the table's entry of that name.
///
/// # Errors
/// Fails if the model does not exist, or a requirement is missing.
pub fn agent_model<'a>(
    context: &Context<'a>,
    choice: &ModelChoice,
    own: &str,
    server: Option<(&str, ModelKey)>,
) -> Result<Models<'a>, Error> {
    let recording = find_recording(context, choice.replay.as_deref())?;
    let table = table_of(context.models)?;
    let recorded = recording
        .as_ref()
        .and_then(Recording::first_model)
        .filter(|name| table.named(name).is_some());
    let (spec, key) = match (choice.model.as_deref().or(recorded), server) {
        (Some(name), _) => (named_or_installed(context, table, name)?, ModelKey::ByRule),
        (None, Some((url, key))) => {
            let has_key = matches!(key, ModelKey::Given(..));
            Endpoint::parse("apiUrl", url, has_key).map_err(NotReady::of)?;
            (own_spec(own, url, table), key)
        }
        (None, None) => (named(table, own)?, ModelKey::ByRule),
    };
    one_model(context, choice, recording.as_ref(), spec, key)
}

/// Returns the one model that an agent asks, with this key, or its recorded replies.
///
/// # Errors
/// Fails if something is missing.
pub fn one_model<'a>(
    context: &Context<'a>,
    choice: &ModelChoice,
    recording: Option<&Recording>,
    spec: ModelSpec,
    key: ModelKey,
) -> Result<Models<'a>, Error> {
    let stage = (Purpose::STEP, spec, key);
    selected(context, choice, recording, [stage], &|_| Ok(false))
}

/// Selects the models for an agent with several stages, by purpose and with the default first; or the recorded ones.
/// Models that Ollama lacks are pulled if allowed.
///
/// # Errors
/// Fails if a model does not exist, or a requirement is missing.
pub fn stage_models<'a>(
    context: &Context<'a>,
    choice: &ModelChoice,
    stages: Vec<(Purpose, ModelSpec)>,
    may_pull: &dyn Fn(&str) -> Result<bool, Interrupted>,
) -> Result<Models<'a>, Error> {
    let recording = find_recording(context, choice.replay.as_deref())?;
    let table = table_of(context.models)?;
    let stages = stages.into_iter().map(|(purpose, spec)| {
        let recorded = recording
            .as_ref()
            .and_then(|recording| table.named(recording.model_of(&purpose)?));
        (purpose, recorded.cloned().unwrap_or(spec), ModelKey::ByRule)
    });
    selected(context, choice, recording.as_ref(), stages, may_pull)
}

/// Creates the models for these purposes, the default first: from recorded replies, or at their servers.
fn selected<'a>(
    context: &Context<'a>,
    choice: &ModelChoice,
    recording: Option<&Recording>,
    stages: impl IntoIterator<Item = (Purpose, ModelSpec, ModelKey)>,
    may_pull: &dyn Fn(&str) -> Result<bool, Interrupted>,
) -> Result<Models<'a>, Error> {
    let mut missing = NotReady::default();
    let mut selected: Vec<(Purpose, SelectedModel<'a>)> = Vec::new();
    for (purpose, spec, key) in stages {
        let first = selected.first();
        let is_first = first.is_some_and(|(_, first)| first.spec == spec);
        let model = match recording {
            Some(recording) => Some(SelectedModel::replayed(context, spec, recording)),
            None if is_first => None,
            None => {
                missing.extend(sending::without_price(choice, &spec));
                SelectedModel::vendors(context, choice, spec, key, &mut missing)
            }
        };
        selected.extend(model.map(|model| (purpose, model)));
    }
    if selected.is_empty() || !missing.problems.is_empty() {
        return Err(missing.into());
    }
    let (_, first) = selected.remove(0);
    let models = Models::new(choice, recording.is_some(), first, selected);
    models.note_missing(context, &mut missing, may_pull)?;
    if missing.problems.is_empty() {
        return Ok(models);
    }
    Err(missing.into())
}

/// Returns the model of a replayed run from its record alone: the settings that named the model may be gone, and the
/// table need not contain it.
///
/// # Errors
/// Fails if another model is requested.
pub fn recorded_model<'a>(
    context: &Context<'a>,
    choice: &ModelChoice,
    recording: &Recording,
    model: &str,
    provider: Provider,
) -> Result<Models<'a>, Error> {
    if let Some(asked) = choice.model.as_ref().filter(|asked| **asked != model) {
        let other = RecordingProblem::OtherModel {
            folder: recording.folder().to_owned(),
            recorded: model.to_owned(),
            asked: asked.clone(),
        };
        return Err(other.into());
    }
    let known = context
        .models
        .as_ref()
        .ok()
        .and_then(|table| table.named(model))
        .filter(|spec| spec.provider == provider)
        .cloned();
    let spec = known.unwrap_or_else(|| ModelSpec::new(model, provider));
    let first = SelectedModel::replayed(context, spec, recording);
    Ok(Models::new(choice, true, first, Vec::new()))
}

/// Returns a model at the user's own OpenAI-compatible server. The table may add details such as its price.
fn own_spec(name: &str, url: &str, table: &ModelTable) -> ModelSpec {
    let known = table
        .named(name)
        .filter(|spec| spec.provider == Provider::OpenAi);
    let new = || ModelSpec::new(name, Provider::OpenAi);
    ModelSpec {
        base_url: Some(url.to_owned()),
        key_file: None,
        origin: Origin::Added,
        ..known.cloned().unwrap_or_else(new)
    }
}
