//! The model of a run that is replayed, by its record alone. Reads nothing but that.

use super::{Models, SelectedModel};
use crate::model::ModelSpec;
use crate::record::orchestration::OrchestrationSettings;
use crate::record::replay::{Recording, RecordingProblem};
use crate::run::context::{Context, ModelChoice};
use crate::sys::error::Error;

/// The model of an orchestration that is replayed, by its record alone: what told of it may be set no more, and the table
/// need not know it.
///
/// # Errors
/// When another one is asked for.
pub fn recorded_model<'a>(
    context: &Context<'a>,
    choice: &ModelChoice,
    recording: &Recording,
    OrchestrationSettings {
        model, provider, ..
    }: &OrchestrationSettings,
) -> Result<Models<'a>, Error> {
    if let Some(asked) = choice.model.as_ref().filter(|asked| *asked != model) {
        let other = RecordingProblem::OtherModel {
            folder: recording.folder().to_owned(),
            recorded: model.clone(),
            asked: asked.clone(),
        };
        return Err(other.into());
    }
    let known = context.models.as_ref().ok();
    let known = known.and_then(|table| table.named(model));
    let known = known.filter(|spec| spec.provider == *provider).cloned();
    let spec = known.unwrap_or_else(|| ModelSpec::new(model, *provider));
    let first = SelectedModel::replayed(context, spec, recording);
    Ok(Models::new(choice, true, first, Vec::new()))
}
