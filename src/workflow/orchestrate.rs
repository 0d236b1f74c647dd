//! The orchestrator: remote agents that implement, review and fix a task.
//!
//! A profile: which parts of the engine it is made of. What it needs is looked at before anything is sent.

use uuid::Uuid;

use super::query;
use super::run::not_ready::NotReady;
use super::{Context, Failure, ModelChoice, Outcome};
use crate::agent::orchestrate::config::{AgentConfig, ConfigFlags};
use crate::sys::interrupt::{Interrupted, Signal};
use crate::ui::input::{InputError, LineReader, Typed};
use crate::workflow::error::Error;

/// What stands before the task that a user is asked for.
const TASK_PROMPT: &str = "task> ";

/// Makes the input when somebody is to be asked.
pub type OpenUser<'i> = &'i dyn Fn() -> Result<Box<dyn LineReader>, InputError>;

/// What the command line asks for.
#[derive(Debug, Clone)]
pub struct OrchestrateOptions {
    /// The branch to begin from; `None` in a replay alone.
    pub parent_branch: Option<Uuid>,
    /// What is to be done, not blank; `None` where the user is to be asked for it.
    pub task: Option<String>,
    /// Whether nobody is asked anything but for the task.
    pub headless: bool,
    /// Whether somebody types at standard input.
    pub stdin_is_terminal: bool,
    /// What the configuration is read with.
    pub config: ConfigFlags,
    /// Where replies come from.
    pub choice: ModelChoice,
}

/// Has the task done, reviewed, and published.
///
/// # Errors
/// When no review has passed it, or it was to be published and is not.
pub fn orchestrate(
    context: &Context<'_>,
    options: &OrchestrateOptions,
    open: OpenUser<'_>,
) -> Result<Outcome, Failure> {
    let _config = configured(context, &options.config).map_err(Error::from)?;
    let _task = match options.choice.replay {
        None => Some(task(context, options, open)?),
        Some(_) => None,
    };
    Err(Error::NothingAsked.into())
}

/// The configuration, of which all that is missing or wrong is told at once.
fn configured(context: &Context<'_>, flags: &ConfigFlags) -> Result<AgentConfig, NotReady> {
    if let Some(exposure) = context.env_file.exposure() {
        context.warn(exposure);
    }
    let mut missing = NotReady::default();
    missing.extend(context.env_file.problems());
    let config = AgentConfig::read(context.environment, flags);
    match config.map_err(|problems| missing.extend(problems)) {
        Ok(config) if missing.problems.is_empty() => Ok(config),
        _ => Err(missing),
    }
}

/// What is to be done, and who was asked for it, who may be asked more.
///
/// # Errors
/// When nothing is.
fn task(
    context: &Context<'_>,
    options: &OrchestrateOptions,
    open: OpenUser<'_>,
) -> Result<(String, Option<Box<dyn LineReader>>), Error> {
    if let Some(task) = &options.task {
        return Ok((task.clone(), None));
    }
    if options.headless && !options.stdin_is_terminal {
        // Nothing else will be asked: all of it is the task.
        return Ok((query::from_stdin(context)?, None));
    }
    let mut user = open()?;
    loop {
        match user.line(TASK_PROMPT)? {
            Typed::Line(task) if !task.trim().is_empty() => return Ok((task, Some(user))),
            Typed::Line(_) | Typed::End => return Err(InputError::Blank.into()),
            Typed::Cleared => {}
            Typed::Interrupted => {
                let signal = Signal::Int;
                return Err(Interrupted { signal }.into());
            }
        }
    }
}
