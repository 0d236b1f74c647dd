//! What an orchestration is configured with: the environment's variables and the command line's words for them. Pure.
//!
//! Guarantees that all that is missing or wrong is told at once, each with its variable and without its value; that a URL
//! which is taken is encrypted or leads to this machine; and that an agent is asked for ever less often until its time
//! is over.

use std::time::Duration;

use super::publish::Publishing;
use crate::agent::mcp::{McpAddress, McpAddressProblem};
use crate::model::{Endpoint, EndpointProblem, ModelSpec, azure_spec, is_plain_in_url};
use crate::record::orchestration::Polling;
use crate::record::seconds::Seconds;
use crate::secret::{ApiKey, KeyProblem};
use crate::sys::environment::{Environment, query_secrets};

/// The key of the Azure OpenAI resource.
const AZURE_KEY: &str = "AZURE_OPENAI_API_KEY";
/// Its URL.
const AZURE_URL: &str = "AZURE_OPENAI_BASE_URL";
/// The deployment to ask, which is the model's name there.
const AZURE_DEPLOYMENT: &str = "AZURE_OPENAI_DEPLOYMENT";
/// The version of its API.
const AZURE_VERSION: &str = "AZURE_OPENAI_API_VERSION";
/// The MCP server.
const MCP_URL: &str = "MCP_BASE_URL";
/// What the server wants to be shown.
const MCP_TOKEN: &str = "MCP_BEARER_TOKEN";
/// The time until an agent is asked for again, for the first time.
const POLL_INITIAL: &str = "MCP_POLL_INITIAL_SECONDS";
/// The longest time until it is.
const POLL_MAX: &str = "MCP_POLL_MAX_SECONDS";
/// How long an agent may take.
const POLL_TIMEOUT: &str = "MCP_POLL_TIMEOUT_SECONDS";
/// By how much each wait is longer than the one before.
const POLL_FACTOR: &str = "MCP_POLL_BACKOFF_FACTOR";
/// The project's name on the server.
const PROJECT: &str = "PROJECT_NAME";
/// The agents' directory.
const WORKSPACE: &str = "WORKSPACE_DIR";
/// What the agent that publishes pushes with.
const GITHUB_TOKEN: &str = "GITHUB_TOKEN";
/// Whose name the commit is in.
const AUTHOR_NAME: &str = "GIT_AUTHOR_NAME";
/// The same for its address.
const AUTHOR_EMAIL: &str = "GIT_AUTHOR_EMAIL";

const DEFAULT_MCP_URL: &str = "http://localhost:8000/mcp/sse";
const DEFAULT_WORKSPACE: &str = "/home/pan/workspace";
/// In seconds, and times.
const DEFAULT_POLLING: [f64; 4] = [2.0, 30.0, 10_800.0, 2.0];
/// Fewer seconds would be a call after the other.
const SHORTEST: f64 = 0.001;
/// More are no time to wait for: some thirty years.
const LONGEST: f64 = 1e9;

/// What the command line says of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigFlags {
    /// The project's name on the server; blank is as if it were not given.
    pub project_name: Option<String>,
    /// Whether nothing is to be published.
    pub no_publish: bool,
}

/// What an orchestration is configured with.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentConfig {
    /// The model; `None` where another one is asked.
    pub azure: Option<AzureVariables>,
    /// The server, and what travels there as `Authorization: Bearer`.
    pub mcp: (McpAddress, Option<ApiKey>),
    /// When an agent is asked for again.
    pub polling: Polling,
    /// The project's name on the server, not blank.
    pub project: String,
    /// The agents' directory: absolute, without slashes at its end.
    pub workspace: String,
    /// What the agent that publishes is told; `None` where nothing is to be published.
    pub publishing: Option<Publishing>,
}

/// The deployment of a model that the `AZURE_OPENAI_…` variables name.
#[derive(Debug, Clone, PartialEq)]
pub struct AzureVariables {
    /// The key of its resource.
    pub key: ApiKey,
    /// It, with the server and the version of the API.
    pub spec: ModelSpec,
}

/// A variable that is missing or wrong. None shows what a variable holds, but for numbers.
#[derive(Debug, Clone, PartialEq, thiserror::Error, miette::Diagnostic)]
pub enum ConfigProblem {
    /// It is needed and has no value.
    #[error("`{variable}` {}", if *.is_empty { "is empty" } else { "is not set" })]
    #[diagnostic(help(
        "set `{variable}` in the environment or in `.env`, {}",
        otherwise(variable)
    ))]
    Unset {
        /// The variable.
        variable: &'static str,
        /// Whether it is there, with nothing in it.
        is_empty: bool,
    },
    /// It is no text.
    #[error("`{variable}` is not UTF-8")]
    #[diagnostic(help("set `{variable}` to a UTF-8 text, or unset it"))]
    NotUtf8 {
        /// The variable.
        variable: &'static str,
    },
    /// It cannot travel in a header.
    #[error("the key in `{variable}` {problem}")]
    #[diagnostic(help("set `{variable}` to the key alone"))]
    NoKey {
        /// The variable.
        variable: &'static str,
        /// Why not.
        problem: KeyProblem,
    },
    /// It is not the URL of a server.
    #[error("`{variable}` is not a plain URL of a server")]
    #[diagnostic(help("set `{variable}` to something like `https://host/path`"))]
    NotAUrl {
        /// The variable.
        variable: &'static str,
    },
    /// A key would travel where others can read it.
    #[error("`{variable}` is plain http, which is taken for loopback hosts only")]
    #[diagnostic(help("set `{variable}` to something like `https://host/path`"))]
    Insecure {
        /// The variable.
        variable: &'static str,
    },
    /// It is part of a URL, and would have to be escaped there.
    #[error("`{variable}` has a character other than ASCII letters, digits, `-`, `_` and `.`")]
    #[diagnostic(help("set `{variable}` to {}", shape(variable)))]
    NotAName {
        /// The variable.
        variable: &'static str,
    },
    /// It is not a number of seconds.
    #[error("`{variable}` is not a number of seconds from {SHORTEST} to {LONGEST}")]
    #[diagnostic(help("set `{variable}` to a number like `2` or `0.5`, or unset it"))]
    NotSeconds {
        /// The variable.
        variable: &'static str,
    },
    /// Waits would not grow.
    #[error("`{POLL_FACTOR}` is not a number above 1")]
    #[diagnostic(help("set `{POLL_FACTOR}` to a number like `2.0`, or unset it"))]
    NotAFactor,
    /// A wait is not below what it is to be below.
    #[error("`{variable}` ({seconds}) is not below `{limit}` ({limit_seconds})")]
    #[diagnostic(help("lower `{variable}`, or raise `{limit}`"))]
    NotBelow {
        /// The variable.
        variable: &'static str,
        /// What it is, or would be.
        seconds: f64,
        /// The variable that it is to be below.
        limit: &'static str,
        /// What that is, or would be.
        limit_seconds: f64,
    },
    /// It is no directory that everybody would find.
    #[error("`{WORKSPACE}` is not an absolute path")]
    #[diagnostic(help("set `{WORKSPACE}` to a path that begins with `/`, or unset it"))]
    NotAbsolute,
}

/// What does besides setting a variable.
fn otherwise(variable: &str) -> &'static str {
    match variable {
        PROJECT => "or use `--project-name`",
        GITHUB_TOKEN => "or leave publishing out by `--no-publish`",
        _ => "or name a model of models.json by `--model`",
    }
}

/// What a variable is to hold that is part of a URL.
fn shape(variable: &str) -> &'static str {
    match variable {
        AZURE_VERSION => "a version like `2024-10-21`, or unset it",
        _ => "the name that the Azure portal shows",
    }
}

impl AgentConfig {
    /// Reads the environment, a `.env` file's variables included; not the model's where another one is asked.
    ///
    /// # Errors
    /// With all that is missing or wrong.
    pub fn read(
        environment: &Environment,
        flags: &ConfigFlags,
        is_other_model: bool,
    ) -> Result<Self, Vec<ConfigProblem>> {
        let mut variables = Variables {
            environment,
            problems: Vec::new(),
        };
        let azure = (!is_other_model).then(|| variables.azure());
        let mcp = variables.mcp();
        let polling = variables.polling();
        let project = variables.project(flags);
        let workspace = variables.workspace();
        let publishing = (!flags.no_publish).then(|| variables.publishing());
        match (mcp, polling, project) {
            (Some(mcp), Some(polling), Some(project)) if variables.problems.is_empty() => {
                Ok(Self {
                    azure: azure.flatten(),
                    mcp,
                    polling,
                    project,
                    workspace,
                    publishing,
                })
            }
            _ => Err(variables.problems),
        }
    }
}

/// What is secret in these variables, beside what their names tell.
pub fn secrets(environment: &Environment) -> impl Iterator<Item = String> {
    let keys = [AZURE_KEY, MCP_TOKEN, GITHUB_TOKEN];
    let keys = keys.into_iter().filter_map(|key| environment.get(key));
    let query = environment.get(MCP_URL).into_iter().flat_map(query_secrets);
    keys.map(str::to_owned).chain(query.map(String::from))
}

/// The environment while it is read.
struct Variables<'e> {
    environment: &'e Environment,
    problems: Vec<ConfigProblem>,
}

impl<'e> Variables<'e> {
    /// What a variable holds, less the blanks around it.
    fn text(&mut self, variable: &'static str) -> Option<&'e str> {
        let value = self.environment.os(variable)?;
        if value.to_str().is_none() {
            self.problems.push(ConfigProblem::NotUtf8 { variable });
        }
        value
            .to_str()
            .map(str::trim)
            .filter(|text| !text.is_empty())
    }

    /// The same; it is a problem where there is nothing.
    fn required(&mut self, variable: &'static str) -> Option<&'e str> {
        let known = self.problems.len();
        let text = self.text(variable);
        if text.is_none() && self.problems.len() == known {
            let is_empty =
                self.environment.is_empty(variable) || self.environment.os(variable).is_some();
            self.problems
                .push(ConfigProblem::Unset { variable, is_empty });
        }
        text
    }

    fn required_key(&mut self, variable: &'static str) -> Option<ApiKey> {
        let text = self.required(variable)?;
        self.key(variable, text)
    }

    fn key(&mut self, variable: &'static str, text: &str) -> Option<ApiKey> {
        let key = ApiKey::parse(text.as_bytes());
        self.note(key.map_err(|problem| ConfigProblem::NoKey { variable, problem }))
    }

    fn note<T>(&mut self, result: Result<T, ConfigProblem>) -> Option<T> {
        result.map_err(|problem| self.problems.push(problem)).ok()
    }

    fn azure(&mut self) -> Option<AzureVariables> {
        let key = self.required_key(AZURE_KEY);
        let url = self.required(AZURE_URL);
        let endpoint = url.and_then(|url| {
            let endpoint = Endpoint::parse(AZURE_URL, url, true);
            self.note(endpoint.map_err(|problem| no_url(AZURE_URL, &problem)))
        });
        let deployment = self.required(AZURE_DEPLOYMENT);
        let deployment = deployment.and_then(|name| self.note(plain_name(AZURE_DEPLOYMENT, name)));
        let version = self.text(AZURE_VERSION);
        let version = version.and_then(|version| self.note(plain_name(AZURE_VERSION, version)));
        Some(AzureVariables {
            key: key?,
            spec: azure_spec(&endpoint?, deployment?, version),
        })
    }

    fn mcp(&mut self) -> Option<(McpAddress, Option<ApiKey>)> {
        let variable = MCP_URL;
        let url = self.text(variable).unwrap_or(DEFAULT_MCP_URL);
        let address = match McpAddress::parse(variable, url) {
            Ok(address @ McpAddress::Http { .. }) => Ok(address),
            Err(McpAddressProblem::Url(problem)) => Err(no_url(variable, &problem)),
            Ok(McpAddress::Stdio(_)) | Err(_) => Err(ConfigProblem::NotAUrl { variable }),
        };
        let address = self.note(address);
        let token = self.text(MCP_TOKEN);
        let token = token.and_then(|token| self.key(MCP_TOKEN, token));
        Some((address?, token))
    }

    fn publishing(&mut self) -> Publishing {
        Publishing {
            token: self.required_key(GITHUB_TOKEN),
            author_name: self.text(AUTHOR_NAME).map(str::to_owned),
            author_email: self.text(AUTHOR_EMAIL).map(str::to_owned),
        }
    }

    fn polling(&mut self) -> Option<Polling> {
        let [initial, max, timeout, factor] = DEFAULT_POLLING;
        let initial = self.seconds(POLL_INITIAL, initial);
        let max = self.seconds(POLL_MAX, max);
        let timeout = self.seconds(POLL_TIMEOUT, timeout);
        self.check_below((POLL_INITIAL, initial), (POLL_MAX, max));
        self.check_below((POLL_MAX, max), (POLL_TIMEOUT, timeout));
        let factor = match self.text(POLL_FACTOR) {
            None => Ok(factor),
            Some(text) => number(text)
                .filter(|factor| *factor > 1.0)
                .ok_or(ConfigProblem::NotAFactor),
        };
        let factor = self.note(factor);
        let seconds = |seconds| Seconds(Duration::from_secs_f64(seconds));
        Some(Polling {
            initial: seconds(initial?),
            max: seconds(max?),
            timeout: seconds(timeout?),
            factor: factor?,
        })
    }

    fn seconds(&mut self, variable: &'static str, default: f64) -> Option<f64> {
        let Some(text) = self.text(variable) else {
            return Some(default);
        };
        let seconds = number(text).filter(|seconds| (SHORTEST..=LONGEST).contains(seconds));
        self.note(seconds.ok_or(ConfigProblem::NotSeconds { variable }))
    }

    /// Looks whether a number is below another, where both are known.
    fn check_below(
        &mut self,
        (variable, seconds): (&'static str, Option<f64>),
        (limit, limit_seconds): (&'static str, Option<f64>),
    ) {
        if let (Some(seconds), Some(limit_seconds)) = (seconds, limit_seconds)
            && seconds >= limit_seconds
        {
            self.problems.push(ConfigProblem::NotBelow {
                variable,
                seconds,
                limit,
                limit_seconds,
            });
        }
    }

    fn project(&mut self, flags: &ConfigFlags) -> Option<String> {
        let given = flags.project_name.as_deref().map(str::trim);
        let given = given.filter(|name| !name.is_empty());
        let name = given.or_else(|| self.required(PROJECT));
        name.map(str::to_owned)
    }

    fn workspace(&mut self) -> String {
        let path = self.text(WORKSPACE).unwrap_or(DEFAULT_WORKSPACE);
        if !path.starts_with('/') {
            self.problems.push(ConfigProblem::NotAbsolute);
        }
        match path.trim_end_matches('/') {
            "" => "/".to_owned(),
            path => path.to_owned(),
        }
    }
}

fn no_url(variable: &'static str, problem: &EndpointProblem) -> ConfigProblem {
    match problem {
        EndpointProblem::Insecure { .. } => ConfigProblem::Insecure { variable },
        _ => ConfigProblem::NotAUrl { variable },
    }
}

/// The same name, if it can be part of a URL as it is.
fn plain_name<'n>(variable: &'static str, name: &'n str) -> Result<&'n str, ConfigProblem> {
    is_plain_in_url(name)
        .then_some(name)
        .ok_or(ConfigProblem::NotAName { variable })
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests;
