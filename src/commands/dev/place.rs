//! Setup of `dev`: its home directory with the settings, and the workspace that they configure.

use std::path::PathBuf;

use super::settings::{FILE, Settings, SettingsProblem};
use crate::commands::workspace::{AgentOptions, Workspace, check_project, home, stored};
use crate::project::home::DEV;
use crate::record::result::LimitsRecord;
use crate::run::agent_models;
use crate::run::context::{Context, ModelChoice};
use crate::run::error::RunError;
use crate::run::not_ready::NotReady;
use crate::run::selection::Models;
use crate::sys::error::Error;

/// Opens a workspace for `dev`.
///
/// # Errors
/// Fails if git tracks or does not ignore a key file, or the settings, model, session or sandbox cannot be used.
pub fn open<'c>(context: &'c Context<'c>, options: &AgentOptions) -> Result<Workspace<'c>, Error> {
    check_project(context)?;
    let (home, settings) = settings(context)?;
    let models = models(context, &options.choice, &settings)?;
    models.report(context);
    let days = settings.session_retention_days;
    let stored = stored(context, options, (&DEV, &home), days)?;
    let window = Some(context_limit(&settings, &models));
    let (tries, timeout) = (settings.max_retries, Some(settings.command_timeout));
    let limits = LimitsRecord {
        max_retries_automated: settings.max_retries_automated,
        ..LimitsRecord::new(window, tries, settings.max_loops, timeout)
    };
    let key_file = home.join(FILE);
    Ok(Workspace {
        audit_commands: settings.audit_commands,
        ..Workspace::of(context, options, stored, models, limits, &key_file)?
    })
}

/// Switches `dev` to another model: one from the model table or the one from the user's settings.
///
/// # Errors
/// Fails if the model is unknown or its configuration is incomplete.
pub fn choose_model<'c>(
    place: &mut Workspace<'c>,
    context: &'c Context<'c>,
    options: &AgentOptions,
    name: &str,
) -> Result<(), Error> {
    let (_, settings) = settings(context)?;
    let choice = ModelChoice {
        model: (name != settings.model).then(|| name.to_owned()),
        ..options.choice.clone()
    };
    let models = models(context, &choice, &settings)?;
    models.report(context);
    let limit = context_limit(&settings, &models);
    place.set_models(models, Some(limit));
    Ok(())
}

/// Selects the model of the choice, or else that of the settings.
///
/// # Errors
/// Fails if the model is unknown or its configuration is incomplete.
pub fn models<'c>(
    context: &Context<'c>,
    choice: &ModelChoice,
    settings: &Settings,
) -> Result<Models<'c>, Error> {
    let server = settings.server(context.environment);
    let is_own = choice.model.is_none() && server.is_none();
    let models = agent_models::agent_model(context, choice, &settings.model, server);
    models.map_err(|error| match error.downcast_ref() {
        Some(RunError::UnknownModel { name, .. }) if is_own => {
            NotReady::of(SettingsProblem::NoModel(name.clone())).into()
        }
        _ => error,
    })
}

/// Returns `dev`'s home directory and the settings in it, creating the settings if they are missing.
///
/// # Errors
/// Fails if the settings are invalid, or cannot be read or created.
pub fn settings(context: &Context<'_>) -> Result<(PathBuf, Settings), Error> {
    let home = home(context, &DEV)?;
    let (settings, created) = Settings::load(&home, context.environment).map_err(NotReady::of)?;
    if let Some(created) = created {
        let path = created.display();
        let Settings { api_url, model, .. } = Settings::usual();
        let url = api_url.unwrap_or_default();
        context.notice(format!(
            "`{path}` was made, with the defaults: the model `{model}` at `{url}`; `dev config` changes them, and \
             `--model NAME` asks a model of `code-commit models` instead"
        ));
    }
    Ok((home, settings))
}

/// Returns the maximum size of a conversation, in tokens.
fn context_limit(settings: &Settings, models: &Models<'_>) -> u64 {
    let window = models.first.spec.prompt_window().unwrap_or(u64::MAX);
    settings.max_context_tokens.min(window)
}
