//! Setup of an orchestration: its configuration, model and task, and the user who can answer questions.
//!
//! Guarantees that everything missing or wrong is reported together, before anything is sent.

use std::cell::{Cell, RefCell};
use std::io;
use std::ops::ControlFlow;

use super::args::OrchestrateArgs;
use super::config::{AgentConfig, AzureVariables};
use super::publish::Publishing;
use super::resume::{self, Begun, BegunRun};
use super::slash::{BEFORE_TASK, before_task, resumable};
use crate::agent::AgentError;
use crate::commands::answers::AnswerSource;
use crate::commands::mcp_server::McpSource;
use crate::commands::query;
use crate::commands::talk::menu::{chosen_model, chosen_session, table_menu};
use crate::commands::talk::question;
use crate::commands::talk::slash::{self, Slash};
use crate::model::ModelSpec;
use crate::record::orchestration::OrchestrationSettings;
use crate::record::replay::{Recording, RecordingProblem};
use crate::record::result::{AgentRecord, LimitsRecord};
use crate::record::run_files::MCP;
use crate::run::agent_models;
use crate::run::context::{Context, ModelChoice, Stdin};
use crate::run::not_ready::NotReady;
use crate::run::selection::{self, ModelKey, Models};
use crate::sys::error::Error;
use crate::sys::files::{self, Links, MIB, PathError};
use crate::ui::input::{InputError, OpenUser, User};
use crate::ui::tui::Status;

/// The prompt for the task.
const TASK_PROMPT: &str = "task> ";
/// The first message on the screen, which shows no prompt.
const GREETING: &str = "What is to be done? Two remote agents implement and review it. Enter sends, `/help` lists commands";

/// The limit of consecutive replies that are neither a call nor a report.
const TRIES: u32 = 3;
/// The limit of model calls. Eight rounds of working, reviewing and reading take 25.
const MOST_LOOPS: u16 = 100;

/// The maximum size of the recorded answers of a server, in bytes: each answer may have 16 MB.
const LARGEST: u64 = 4096 * MIB;

/// Everything an orchestration needs, prepared before it starts.
pub struct OrchestratePlace<'c> {
    /// The model.
    pub models: Models<'c>,
    /// The work to do.
    pub task: String,
    /// The settings needed to replay the run.
    pub settings: OrchestrationSettings,
    /// The publishing agent's data; `None` if nothing is published.
    pub publishing: Option<Publishing>,
    /// The user to whom questions go, if any.
    pub user: Option<User>,
    /// The limits of the model.
    pub limits: LimitsRecord,
    /// The source of the server's answers.
    pub server: McpSource,
    /// Record of the replayed run, if any.
    pub recorded: Option<AgentRecord>,
}

impl<'c> OrchestratePlace<'c> {
    /// Reads everything from the configuration, or from the run to replay. Without a `given` task, the user is asked.
    ///
    /// # Errors
    /// If something is missing or wrong, no task is given, or the user leaves.
    pub fn open(
        context: &Context<'c>,
        arguments: &OrchestrateArgs,
        given: Option<String>,
        stdin: Stdin,
        open: OpenUser<'_>,
    ) -> Result<Self, Error> {
        let choice = &arguments.choice();
        if let Some(recording) = selection::find_recording(context, choice)? {
            return Self::replayed(context, choice, &recording);
        }
        let mut missing = NotReady::default();
        missing.note_env_file(context);
        let config = AgentConfig::read(context.environment, arguments);
        let config = config.map_err(|problems| missing.extend(problems)).ok();
        let azure = config.as_ref().and_then(|config| config.azure.as_ref());
        let published = ModelChoice {
            model: None,
            replay: arguments.publish_only.clone(),
            ..choice.clone()
        };
        let models = match selection::find_recording(context, &published)? {
            // No model is asked, and the settings of the earlier run's may be gone.
            Some(earlier) => {
                let settings = earlier.agent().and_then(|record| record.orchestration);
                let model = |settings| recorded_model(context, &published, &earlier, &settings);
                settings.map(model).transpose()?
            }
            None => match models(context, choice, azure) {
                Err(error) => {
                    missing.extend(error.downcast::<NotReady>()?.problems);
                    None
                }
                models => Some(models?),
            },
        };
        let (Some(config), Some(mut models), true) = (config, models, missing.problems.is_empty())
        else {
            return Err(missing.into());
        };
        // The user is asked for the task only once everything else is complete.
        let (task, user) = match given {
            Some(task) => (task, None),
            // Nothing else is read from standard input, so all of it is the task.
            None if arguments.headless && !stdin.is_terminal => (query::from_stdin(context)?, None),
            None => {
                let user = RefCell::new(open()?);
                match typed_task(context, &user, arguments, &mut models)? {
                    ControlFlow::Continue(task) => (task, Some(user)),
                    ControlFlow::Break(work) => {
                        return Self::resumed(context, *work, stdin, (open, user));
                    }
                }
            }
        };
        let user = match user {
            _ if arguments.headless => None,
            Some(user) => Some(user),
            None => Some(RefCell::new(open()?)),
        };
        let spec = &models.first.spec;
        if let Some(user) = &user {
            stand(user, spec);
        }
        let parent = arguments.parent_branch_id.map(|id| id.to_string());
        let settings = OrchestrationSettings {
            model: spec.name.clone(),
            provider: spec.provider,
            parent_branch_id: parent.unwrap_or_default(),
            project_name: config.project,
            workspace_dir: config.workspace,
            publishes: config.publishing.is_some(),
            polling: config.polling,
            asks_parents: true,
            begun: None,
        };
        let (address, token) = config.mcp;
        Ok(Self {
            limits: LimitsRecord::new(spec.context_window, TRIES, MOST_LOOPS, None),
            models,
            task,
            settings,
            publishing: config.publishing,
            user,
            server: McpSource::Server(address, token),
            recorded: None,
        })
    }

    /// Goes on with the earlier run that the user has chosen.
    fn resumed(
        context: &Context<'c>,
        (arguments, task, begun): BegunRun,
        stdin: Stdin,
        (open, user): (OpenUser<'_>, User),
    ) -> Result<Self, Error> {
        context.notice(format!("the run goes on: {task}"));
        let user = Cell::new(Some(user.into_inner()));
        let open = || user.take().map_or_else(open, Ok);
        let mut place = Self::open(context, &arguments, Some(task), stdin, &open)?;
        place.settings.begun = Some(begun);
        Ok(place)
    }

    fn replayed(
        context: &Context<'c>,
        choice: &ModelChoice,
        recording: &Recording,
    ) -> Result<Self, Error> {
        let found = recording.agent().and_then(|record| {
            Some((
                record.request.clone()?,
                record.orchestration.clone()?,
                record,
            ))
        });
        let Some((task, settings, record)) = found else {
            let folder = recording.folder().to_owned();
            return Err(RecordingProblem::NoOrchestration(folder).into());
        };
        let path = recording.folder().join(MCP);
        let exchanges = files::read(&path, Links::Refused, LARGEST);
        let text = exchanges.and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
        let exchanges = text.map_err(PathError::of("read", &path))?;
        Ok(Self {
            models: recorded_model(context, choice, recording, &settings)?,
            task,
            publishing: settings.publishes.then(Publishing::default),
            settings,
            user: None,
            limits: record.limits,
            server: McpSource::Recorded(exchanges),
            recorded: Some(record),
        })
    }

    /// Returns the source of answers to the model's questions.
    pub fn answers(&self) -> AnswerSource<'_> {
        match (&self.recorded, &self.user) {
            (Some(record), _) => AnswerSource::recorded(record),
            (None, Some(user)) => AnswerSource::Typed(user),
            (None, None) => AnswerSource::Nowhere,
        }
    }
}

/// Returns the model of a replayed run with these settings.
///
/// # Errors
/// When another model is requested.
fn recorded_model<'c>(
    context: &Context<'c>,
    choice: &ModelChoice,
    recording: &Recording,
    settings: &OrchestrationSettings,
) -> Result<Models<'c>, Error> {
    let (model, provider) = (&settings.model, settings.provider);
    agent_models::recorded_model(context, choice, recording, model, provider)
}

/// Selects the model given by `--model`, or else the deployment in the environment variables.
///
/// # Errors
/// If there is no such model, or something is missing for it.
fn models<'c>(
    context: &Context<'c>,
    choice: &ModelChoice,
    azure: Option<&AzureVariables>,
) -> Result<Models<'c>, Error> {
    let (spec, key) = match (&choice.model, azure) {
        (Some(name), _) => (
            selection::named_or_installed(context, name)?,
            ModelKey::ByRule,
        ),
        (None, Some(azure)) => {
            let key = ModelKey::Given(Some(azure.key.clone()), None);
            (azure.spec.clone(), key)
        }
        // The problems with the variables are known.
        (None, None) => return Err(NotReady::default().into()),
    };
    agent_models::one_model(context, choice, None, spec, key)
}

/// Asks the user for the task; until they give it, they can choose another of the `models`. Breaks off with an earlier
/// run if they choose to go on with that.
///
/// # Errors
/// If no task is given, or the user leaves.
fn typed_task<'c>(
    context: &Context<'c>,
    user: &User,
    arguments: &OrchestrateArgs,
    models: &mut Models<'c>,
) -> Result<ControlFlow<Box<BegunRun>, String>, Error> {
    stand(user, &models.first.spec);
    user.borrow_mut().say(GREETING);
    let ask = || {
        let task = user.borrow_mut().request(TASK_PROMPT)?;
        Ok(task.map(|task| task.text).answer()?)
    };
    let mut arguments = arguments.clone();
    let obey = |command: Slash, argument: &str| -> Result<_, Error> {
        Ok(ControlFlow::Continue(match command {
            Slash::Exit => return Err(AgentError::Left.into()),
            Slash::Model => switch_model(context, user, &mut arguments, models, argument)?,
            Slash::Resume => match chosen_run(context, user, &arguments, argument)? {
                Ok(work) => return Ok(ControlFlow::Break(work)),
                Err(said) => said,
            },
            command => before_task(command).to_owned(),
        }))
    };
    Ok(match question::asked(context, BEFORE_TASK, ask, obey)? {
        ControlFlow::Break(work) => ControlFlow::Break(work),
        ControlFlow::Continue(task) => {
            let task = task.filter(|task| !task.trim().is_empty());
            ControlFlow::Continue(task.ok_or(InputError::Blank)?)
        }
    })
}

/// Switches to the model of this name, or to the one that the user chooses; returns the message for the user.
///
/// # Errors
/// If the user interrupts it.
fn switch_model<'c>(
    context: &Context<'c>,
    user: &User,
    arguments: &mut OrchestrateArgs,
    models: &mut Models<'c>,
    name: &str,
) -> Result<String, Error> {
    let now = models.first.spec.name.clone();
    let name = match name {
        "" => match chosen_model(user, table_menu(context, &now), &now)? {
            Ok(name) => name,
            Err(said) => return Ok(said),
        },
        name => name.to_owned(),
    };
    let choice = arguments.choice().with_model(&name);
    Ok(match self::models(context, &choice, None) {
        Ok(others) => {
            *models = others;
            stand(user, &models.first.spec);
            let said = format!("`{name}` is asked from now on");
            arguments.model = Some(name);
            said
        }
        Err(error) => error.to_string(),
    })
}

/// Reads the earlier run of this number, or the one that the user chooses; the message for one who chooses none.
///
/// # Errors
/// If the user interrupts it, or the runs cannot be read.
fn chosen_run(
    context: &Context<'_>,
    user: &User,
    arguments: &OrchestrateArgs,
    number: &str,
) -> Result<Result<Box<BegunRun>, String>, Error> {
    let runs = resumable(context)?;
    if runs.is_empty() {
        return Ok(Err("there is no earlier run to go on with".to_owned()));
    }
    let run = match chosen_session(context, user, &runs, number)? {
        Ok(run) => run,
        Err(said) => return Ok(Err(said)),
    };
    let arguments = OrchestrateArgs {
        resume: Some(run.into()),
        ..arguments.clone()
    };
    Ok(match resume::begun(context, &arguments) {
        Ok(Some(Begun::Work(work))) => Ok(work),
        Ok(_) => Err("there is nothing to resume".to_owned()),
        Err(error) => Err(error.to_string()),
    })
}

/// Shows the model on the screen, and the commands that are completed there.
fn stand(user: &User, spec: &ModelSpec) {
    let status = Status {
        model: spec.name.clone(),
        vendor: spec.provider.vendor().name,
        window: spec.context_window.unwrap_or_default(),
        ..Status::default()
    };
    user.borrow_mut()
        .stands(status, slash::listed(BEFORE_TASK.1, &[]));
}
