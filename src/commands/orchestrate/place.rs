//! Setup of an orchestration: its configuration, model and task.
//!
//! Guarantees that everything missing or wrong is reported together, before anything is sent.

use std::io;

use super::args::OrchestrateArgs;
use super::config::{AZURE_KEY, AgentConfig, AzureVariables};
use super::publish::Publishing;
use super::resume::recorded;
use crate::commands::mcp_server::McpSource;
use crate::model::KeySource;
use crate::project::LOGS;
use crate::project::home::{MCP_TOKEN, MCP_URL};
use crate::record::orchestration::{BegunWork, OrchestrationSettings};
use crate::record::replay::Recording;
use crate::record::result::{AgentRecord, LimitsRecord};
use crate::record::run_files::MCP;
use crate::run::agent_models;
use crate::run::context::{Context, ModelChoice};
use crate::run::not_ready::NotReady;
use crate::run::selection::{self, ModelKey, Models};
use crate::sys::error::Error;
use crate::sys::files::{self, Links, MIB, PathError};

/// The maximum number of consecutive replies that are neither a call nor a report.
const TRIES: u32 = 3;
/// The maximum number of model calls. Eight rounds of working, reviewing and reading take 25.
const MOST_LOOPS: u16 = 100;

/// The maximum size of the recorded answers from a server, in bytes; a single answer may have 16 MB.
const LARGEST: u64 = 4096 * MIB;

/// Everything an orchestration needs, prepared before it starts.
pub struct OrchestratePlace<'c> {
    /// The context of the command.
    pub context: &'c Context<'c>,
    /// The command line, with the values that the user has changed since.
    pub arguments: OrchestrateArgs,
    /// The model.
    pub models: Models<'c>,
    /// The deployment named by the environment variables; `None` if another model was requested at the start.
    pub azure: Option<AzureVariables>,
    /// The task; empty until the user enters it.
    pub task: String,
    /// The settings needed to replay the run.
    pub settings: OrchestrationSettings,
    /// The data for the publishing agent; `None` if nothing is published.
    pub publishing: Option<Publishing>,
    /// The limits of the model.
    pub limits: LimitsRecord,
    /// The source of the server's answers.
    pub server: McpSource,
    /// Record of the replayed run, if any.
    pub recorded: Option<AgentRecord>,
}

impl<'c> OrchestratePlace<'c> {
    /// Prepares everything from the configuration, or from the run to replay; continues the work that has `begun`.
    ///
    /// # Errors
    /// Fails if part of the setup is missing or wrong.
    pub fn open(
        context: &'c Context<'c>,
        arguments: OrchestrateArgs,
        task: Option<String>,
        begun: Option<BegunWork>,
    ) -> Result<Self, Error> {
        let choice = &arguments.choice();
        let publish_only = arguments.publish_only.as_deref();
        let run = arguments.replay.as_deref().or(publish_only);
        let recording = selection::find_recording(context, run)?;
        if let Some(recording) = recording.as_ref().filter(|_| arguments.replay.is_some()) {
            return Self::replayed(context, arguments, recording);
        }
        let mut missing = NotReady::default();
        missing.note(context.project.check_directory(LOGS));
        missing.note_env_file(context);
        let config = AgentConfig::read(context.environment, &arguments)
            .map_err(|problems| missing.extend(problems))
            .ok();
        let azure = config.as_ref().and_then(|config| config.azure.as_ref());
        let models = match models(context, choice, recording.as_ref(), azure) {
            Err(error) => {
                missing.extend(error.downcast::<NotReady>()?.problems);
                None
            }
            models => models.ok(),
        };
        let (Some(config), Some(models), true) = (config, models, missing.problems.is_empty())
        else {
            return Err(missing.into());
        };
        let spec = &models.first.spec;
        let parent = arguments.parent_branch_id.map(|id| id.to_string());
        let settings = OrchestrationSettings {
            model: spec.name.clone(),
            names_model: arguments.model.is_some(),
            provider: spec.provider,
            parent_branch_id: parent.unwrap_or_default(),
            project_name: config.project,
            workspace_dir: config.workspace,
            publishes: config.publishing.is_some(),
            polling: config.polling,
            asks_parents: true,
            begun,
        };
        let (address, token) = config.mcp;
        // A command may have written the file, and the token in the environment goes where it says.
        let is_from_file = |name| {
            let value = context.environment.get(name)?;
            Some(context.env_file.variables().get(name) == Some(value))
        };
        if (is_from_file(MCP_URL), is_from_file(MCP_TOKEN)) == (Some(true), Some(false)) {
            context.notice("the token goes to the MCP server that `.env` names");
        }
        Ok(Self {
            context,
            arguments,
            limits: LimitsRecord::new(spec.context_window, TRIES, MOST_LOOPS, None),
            models,
            azure: config.azure,
            task: task.unwrap_or_default(),
            settings,
            publishing: config.publishing,
            server: McpSource::Server(address, token),
            recorded: None,
        })
    }

    fn replayed(
        context: &'c Context<'c>,
        arguments: OrchestrateArgs,
        recording: &Recording,
    ) -> Result<Self, Error> {
        let logs = context.project.check_directory(LOGS);
        logs.map_err(NotReady::of)?;
        let (task, settings, record) = recorded(recording)?;
        let path = recording.folder().join(MCP);
        let exchanges = files::read(&path, Links::Refused, LARGEST);
        let text = exchanges.and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
        let exchanges = text.map_err(PathError::of("read", &path))?;
        Ok(Self {
            context,
            models: models(context, &arguments.choice(), Some(recording), None)?,
            azure: None,
            arguments,
            task,
            publishing: settings.publishes.then(Publishing::default),
            settings,
            limits: record.limits,
            server: McpSource::Recorded(exchanges),
            recorded: Some(record),
        })
    }
}

/// Selects the model of the `recording`, or else the one given with `--model`, or else the deployment in the
/// environment variables.
///
/// # Errors
/// Fails if there is no such model, or part of its setup is missing.
pub fn models<'c>(
    context: &Context<'c>,
    choice: &ModelChoice,
    recording: Option<&Recording>,
    azure: Option<&AzureVariables>,
) -> Result<Models<'c>, Error> {
    let (spec, key) = match (recording, &choice.model, azure) {
        (Some(earlier), ..) => {
            let (_, settings, _) = recorded(earlier)?;
            let (model, provider) = (&settings.model, settings.provider);
            return agent_models::recorded_model(context, choice, earlier, model, provider);
        }
        (None, Some(name), _) => {
            let table = selection::table_of(context.models)?;
            let spec = selection::named_or_installed(context, table, name)?;
            (spec, ModelKey::ByRule)
        }
        (None, None, Some(azure)) => {
            let source = KeySource::Variable(AZURE_KEY);
            let key = ModelKey::Given(Some(azure.key.clone()), Some(source));
            (azure.spec.clone(), key)
        }
        // The problems with the variables have already been reported.
        (None, None, None) => return Err(NotReady::default().into()),
    };
    agent_models::one_model(context, choice, None, spec, key)
}
