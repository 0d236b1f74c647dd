//! The keys to redact from all output: those of the project, the user's homes, and servers.

use super::command::Command;
use super::command_line::Cli;
use super::mcp::ServerArgs;
use crate::model::ModelTable;
use crate::project::home::{GITHUB_TOKEN, MCP_TOKEN, MCP_URL};
use crate::project::{Project, home};
use crate::run::context::ModelsProblem;
use crate::run::env_file::EnvFile;
use crate::run::keys::key_variables;
use crate::run::telemetry::header_secrets;
use crate::secret::Redactor;
use crate::sys::environment::{Environment, query_secrets};

/// Creates a redactor for all keys that a run may encounter: those of the project's models, the environment and `.env`,
/// the homes that the command uses, and the given server.
pub fn redactor(
    cli: &Cli,
    project: &Project,
    models: &Result<ModelTable, ModelsProblem>,
    environment: &Environment,
    env_file: &EnvFile,
) -> Redactor {
    let homes = home::key_files(environment, &cli.name);
    // Even if the table is unusable, redact the keys it names.
    let read = || project.unverified_models().ok();
    let broken = models.is_err().then(read).flatten();
    let tables = broken.iter().chain(&homes);
    let mut key_files = ModelTable::all_key_files(models.as_ref().ok());
    key_files.extend(tables.flat_map(|json| ModelTable::named_key_files(json)));
    // Variables in `.env` that the environment overrides are also secrets.
    let environments = [environment, env_file.variables()];
    let read = environments.iter().filter(|_| cli.reads_env_file());
    let tokens = read
        .clone()
        .flat_map(|read| [MCP_TOKEN, GITHUB_TOKEN].map(|token| read.get(token)));
    let asked = match &cli.command {
        Some(Command::Mcp(arguments)) => Some(arguments.server()),
        _ => None,
    };
    let named = asked.map(|asked| &*asked.server);
    let headers = asked.into_iter().flat_map(ServerArgs::header_secrets);
    let servers = read.filter_map(|read| read.get(MCP_URL)).chain(named);
    let variables = environments
        .iter()
        .flat_map(|environment| key_variables().filter_map(|name| environment.get(name)));
    let keys = homes
        .iter()
        .flat_map(|text| home::keys_in(text))
        .chain(tokens.flatten())
        .chain(variables);
    let queries = servers.flat_map(query_secrets).map(String::from);
    project.redactor(
        &environments,
        key_files,
        keys.chain(headers)
            .map(str::to_owned)
            .chain(queries)
            .chain(header_secrets(environment)),
    )
}
