//! The keys that a command may meet, which nothing shows: those of the project, and of the system that is asked for.

use std::borrow::Cow;

use crate::agent::settings::key_in_file;
use crate::commands::cli::command::Command;
use crate::commands::cli::command_line::Cli;
use crate::commands::orchestrate::config;
use crate::model::ModelTable;
use crate::project::Project;
use crate::project::home::{self, PLAN_MODELS, System};
use crate::run::accounts::keys_in_file;
use crate::run::context::ModelsProblem;
use crate::run::env_file::EnvFile;
use crate::secret::Redactor;
use crate::sys::environment::{Environment, query_secrets};
use crate::sys::files::{self, Links, MIB};

/// Returns the text of the plan agent's own table of models, if it can be read.
fn plans_models(environment: &Environment) -> Option<String> {
    let home = home::PLAN.directory(environment, System::current()).ok()?;
    let content = files::read(&home.join(PLAN_MODELS), Links::Followed, MIB).ok()?;
    String::from_utf8(content).ok()
}

/// Knows all keys that a run may meet: those of the project's models, of the environment and the `.env`, and, where an
/// agent is asked for, of its user's settings.
#[must_use]
pub fn redactor(
    cli: &Cli,
    project: &Project,
    models: &Result<ModelTable, ModelsProblem>,
    environment: &Environment,
    env_file: &EnvFile,
) -> Redactor {
    let built_in = ModelTable::built_in();
    let mut key_files = models.as_ref().unwrap_or(&built_in).key_files();
    // Where the table cannot be used, its keys are kept out of sight all the same.
    let broken = models
        .is_err()
        .then(|| project.anybodys_models().ok())
        .flatten();
    let plans = matches!(cli.command, Some(Command::Plan(_)))
        .then(|| plans_models(environment))
        .flatten();
    let tables = broken.iter().chain(&plans);
    key_files.extend(tables.flat_map(|json| ModelTable::named_key_files(json)));
    let agents_key = matches!(cli.command, Some(Command::Dev(_)))
        .then(|| key_in_file(environment))
        .flatten();
    // What the environment hides is as secret as what counts.
    let environments = [environment, env_file.variables()];
    let orchestrators = environments.into_iter().filter(|_| cli.reads_env_file());
    let further = agents_key.iter().map(|key| key.expose().to_owned());
    let further = further.chain(keys_in_file(environment));
    let further = further.chain(orchestrators.flat_map(config::secrets));
    let server = match &cli.command {
        Some(Command::Mcp(arguments)) => arguments.command.server(),
        _ => "",
    };
    let further = further.chain(query_secrets(server).map(Cow::into_owned));
    project.redactor(&environments, key_files, further)
}
