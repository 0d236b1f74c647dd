//! The configuration of an orchestration, from environment variables and command-line flags. Pure.
//!
//! Guarantees that all missing or wrong variables are reported together, by name and, except for numbers, without their
//! values; that an accepted URL is encrypted or leads to this machine; and that an agent is polled at growing intervals
//! until its time limit.

use std::time::Duration;

use super::args::OrchestrateArgs;
use super::publish::Publishing;
use crate::agent::mcp::{McpAddress, McpError};
use crate::model::{Endpoint, EndpointProblem, ModelSpec, azure_spec, is_plain_in_url};
use crate::project::home::{GITHUB_TOKEN, MCP_TOKEN, MCP_URL};
use crate::record::orchestration::Polling;
use crate::record::seconds::Seconds;
use crate::secret::ApiKey;
use crate::sys::environment::Environment;

/// The key of the Azure OpenAI resource.
pub const AZURE_KEY: &str = "AZURE_OPENAI_API_KEY";
/// The URL of the Azure OpenAI resource.
const AZURE_URL: &str = "AZURE_OPENAI_BASE_URL";
/// The deployment to use, which is the model's name at Azure.
const AZURE_DEPLOYMENT: &str = "AZURE_OPENAI_DEPLOYMENT";
/// The version of the Azure OpenAI API.
const AZURE_VERSION: &str = "AZURE_OPENAI_API_VERSION";
/// The delay between the first two polls of an agent, in seconds.
const POLL_INITIAL: &str = "MCP_POLL_INITIAL_SECONDS";
/// The maximum delay between polls, in seconds.
const POLL_MAX: &str = "MCP_POLL_MAX_SECONDS";
/// The time limit of an agent, in seconds.
const POLL_TIMEOUT: &str = "MCP_POLL_TIMEOUT_SECONDS";
/// The factor by which each delay is longer than the previous one.
const POLL_FACTOR: &str = "MCP_POLL_BACKOFF_FACTOR";
/// The project's name on the server.
const PROJECT: &str = "PROJECT_NAME";
/// The agents' work directory.
const WORKSPACE: &str = "WORKSPACE_DIR";
/// The name of the commit's author.
const AUTHOR_NAME: &str = "GIT_AUTHOR_NAME";
/// The email address of the commit's author.
const AUTHOR_EMAIL: &str = "GIT_AUTHOR_EMAIL";

const DEFAULT_MCP_URL: &str = "http://localhost:8000/mcp/sse";
const DEFAULT_WORKSPACE: &str = "/home/pan/workspace";
/// The variables for the polling times, with their defaults in seconds. Each time must be shorter than the next.
const POLL_TIMES: [(&str, f64); 3] = [
    (POLL_INITIAL, 2.0),
    (POLL_MAX, 30.0),
    (POLL_TIMEOUT, 10_800.0),
];
const DEFAULT_FACTOR: f64 = 2.0;
/// The shortest accepted time, in seconds; shorter ones would amount to polling without a pause.
const SHORTEST: f64 = 0.001;
/// The longest accepted time, in seconds: about thirty years.
const LONGEST: f64 = 1e9;

/// The configuration of an orchestration.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentConfig {
    /// The Azure deployment; `None` if another model is selected.
    pub azure: Option<AzureVariables>,
    /// The MCP server, and the bearer token sent to it.
    pub mcp: (McpAddress, Option<ApiKey>),
    /// The polling intervals and the time limit of an agent.
    pub polling: Polling,
    /// The project's name on the server, not blank.
    pub project: String,
    /// The agents' work directory: an absolute path without a trailing slash.
    pub workspace: String,
    /// The token and the author for publishing; `None` to publish nothing.
    pub publishing: Option<Publishing>,
}

/// The model deployment that the `AZURE_OPENAI_…` variables name.
#[derive(Debug, Clone, PartialEq)]
pub struct AzureVariables {
    /// The key of the Azure OpenAI resource.
    pub key: ApiKey,
    /// The deployment, with its server and API version.
    pub spec: ModelSpec,
}

/// A variable that is missing or wrong. Its value is never shown, except for numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[error("{message}")]
#[diagnostic(code("/settings"), help("{hint}"))]
pub struct ConfigProblem {
    message: String,
    hint: String,
}

impl AgentConfig {
    /// Reads the environment, including variables from a `.env` file. The variables for the model are skipped if
    /// another model is selected, or no model is asked.
    ///
    /// # Errors
    /// Returns all problems with missing or wrong variables.
    pub fn read(
        environment: &Environment,
        flags: &OrchestrateArgs,
    ) -> Result<Self, Vec<ConfigProblem>> {
        let mut variables = Variables {
            environment,
            problems: Vec::new(),
        };
        let asks_azure = flags.model.is_none() && flags.publish_only.is_none();
        let azure = asks_azure.then(|| variables.azure()).flatten();
        let mcp = variables.mcp();
        let polling = variables.polling();
        let project = variables.project(flags);
        let workspace = variables.workspace();
        let publishing = (!flags.no_publish).then(|| variables.publishing());
        let config = || {
            Some(Self {
                azure,
                mcp: mcp?,
                polling: polling?,
                project: project?,
                workspace: workspace?,
                publishing,
            })
        };
        let config = config().filter(|_| variables.problems.is_empty());
        config.ok_or(variables.problems)
    }
}

/// The environment, with the problems found so far.
struct Variables<'e> {
    environment: &'e Environment,
    problems: Vec<ConfigProblem>,
}

impl<'e> Variables<'e> {
    /// Records a problem with a variable, and how to fix it. Always returns `None`.
    fn wrong<T>(&mut self, variable: &str, what: &str, how: &str) -> Option<T> {
        let (message, hint) = (
            format!("`{variable}` {what}"),
            format!("set `{variable}` {how}"),
        );
        self.problems.push(ConfigProblem { message, hint });
        None
    }

    /// Returns the trimmed value of a variable; `None` if it is unset or blank, or if it is not UTF-8, which is
    /// recorded as a problem.
    fn text(&mut self, variable: &str) -> Option<&'e str> {
        match self.environment.os(variable)?.to_str() {
            Some(text) => Some(text.trim()).filter(|text| !text.is_empty()),
            None => self.wrong(variable, "is not UTF-8", "to a UTF-8 text, or unset it"),
        }
    }

    /// Returns the value of a required variable; `otherwise` is a hint for doing without it.
    fn required(&mut self, variable: &str, otherwise: &str) -> Option<&'e str> {
        let known = self.problems.len();
        let text = self.text(variable);
        if text.is_some() || self.problems.len() > known {
            return text;
        }
        let environment = self.environment;
        let is_there = environment.is_empty(variable) || environment.os(variable).is_some();
        let what = if is_there { "is empty" } else { "is not set" };
        let how = format!("in the environment or in `.env`, {otherwise}");
        self.wrong(variable, what, &how)
    }

    fn key(&mut self, variable: &str, text: &str) -> Option<ApiKey> {
        let problem = match ApiKey::parse(text.as_bytes()) {
            Ok(key) => return Some(key),
            Err(problem) => problem,
        };
        self.problems.push(ConfigProblem {
            message: format!("the key in `{variable}` {problem}"),
            hint: format!("set `{variable}` to the key alone"),
        });
        None
    }

    fn no_url<T>(&mut self, variable: &str, problem: Option<&EndpointProblem>) -> Option<T> {
        let what = match problem {
            Some(EndpointProblem::Insecure { .. }) => {
                "is plain http, which is taken for loopback hosts only"
            }
            _ => "is not a plain URL of a server",
        };
        self.wrong(variable, what, "to something like `https://host/path`")
    }

    /// Checks that a name can be part of a URL without escaping.
    fn plain_name(&mut self, variable: &str, name: &'e str, how: &str) -> Option<&'e str> {
        if is_plain_in_url(name) {
            return Some(name);
        }
        let what = "has a character other than ASCII letters, digits, `-`, `_` and `.`";
        self.wrong(variable, what, how)
    }

    fn azure(&mut self) -> Option<AzureVariables> {
        const OTHERWISE: &str = "or name a model of models.json by `--model`";
        let key = self
            .required(AZURE_KEY, OTHERWISE)
            .and_then(|key| self.key(AZURE_KEY, key));
        let url = self.required(AZURE_URL, OTHERWISE);
        let endpoint = url.and_then(|url| match Endpoint::parse(AZURE_URL, url, true) {
            Ok(endpoint) => Some(endpoint),
            Err(problem) => self.no_url(AZURE_URL, Some(&problem)),
        });
        let how = "to the name that the Azure portal shows";
        let deployment = self
            .required(AZURE_DEPLOYMENT, OTHERWISE)
            .and_then(|name| self.plain_name(AZURE_DEPLOYMENT, name, how));
        let how = "to a version like `2024-10-21`, or unset it";
        let version = self
            .text(AZURE_VERSION)
            .and_then(|version| self.plain_name(AZURE_VERSION, version, how));
        Some(AzureVariables {
            key: key?,
            spec: azure_spec(&endpoint?, deployment?, version),
        })
    }

    fn mcp(&mut self) -> Option<(McpAddress, Option<ApiKey>)> {
        let url = self.text(MCP_URL).unwrap_or(DEFAULT_MCP_URL);
        let address = match McpAddress::parse(MCP_URL, url) {
            Ok(address @ McpAddress::Http { .. }) => Some(address),
            Err(McpError::Url(problem)) => self.no_url(MCP_URL, Some(&problem)),
            Ok(McpAddress::Stdio(_)) | Err(_) => self.no_url(MCP_URL, None),
        };
        let token = self
            .text(MCP_TOKEN)
            .and_then(|token| self.key(MCP_TOKEN, token));
        Some((address?, token))
    }

    fn publishing(&mut self) -> Publishing {
        let otherwise = "or leave publishing out by `--no-publish`";
        let token = self.required(GITHUB_TOKEN, otherwise);
        Publishing {
            token: token.and_then(|token| self.key(GITHUB_TOKEN, token)),
            author_name: self.text(AUTHOR_NAME).map(str::to_owned),
            author_email: self.text(AUTHOR_EMAIL).map(str::to_owned),
        }
    }

    fn polling(&mut self) -> Option<Polling> {
        let what = format!("is not a number of seconds from {SHORTEST} to {LONGEST}");
        let is_time = |seconds: &f64| (SHORTEST..=LONGEST).contains(seconds);
        let times = POLL_TIMES.map(|(variable, default)| {
            self.number(variable, default, is_time, &what, "`2` or `0.5`")
        });
        for (pair, names) in times.windows(2).zip(POLL_TIMES.windows(2)) {
            if let ([Some(is), Some(most)], [(variable, _), (limit, _)]) = (pair, names)
                && is >= most
            {
                self.problems.push(ConfigProblem {
                    message: format!("`{variable}` ({is}) is not below `{limit}` ({most})"),
                    hint: format!("lower `{variable}`, or raise `{limit}`"),
                });
            }
        }
        let what = "is not a number above 1";
        let is_factor = |factor: &f64| *factor > 1.0;
        let factor = self.number(POLL_FACTOR, DEFAULT_FACTOR, is_factor, what, "`2.0`");
        let [initial, max, timeout] =
            times.map(|time| time.map(|seconds| Seconds(Duration::from_secs_f64(seconds))));
        Some(Polling {
            initial: initial?,
            max: max?,
            timeout: timeout?,
            factor: factor?,
        })
    }

    fn number(
        &mut self,
        variable: &str,
        default: f64,
        is_allowed: impl Fn(&f64) -> bool,
        what: &str,
        example: &str,
    ) -> Option<f64> {
        let Some(text) = self.text(variable) else {
            return Some(default);
        };
        let number = text.parse().ok();
        let allowed = number.filter(|number: &f64| number.is_finite() && is_allowed(number));
        allowed.or_else(|| {
            let how = format!("to a number like {example}, or unset it");
            self.wrong(variable, what, &how)
        })
    }

    fn project(&mut self, flags: &OrchestrateArgs) -> Option<String> {
        let given = flags.project_name.as_deref().map(str::trim);
        given
            .filter(|name| !name.is_empty())
            .or_else(|| self.required(PROJECT, "or use `--project-name`"))
            .map(str::to_owned)
    }

    fn workspace(&mut self) -> Option<String> {
        let path = self.text(WORKSPACE).unwrap_or(DEFAULT_WORKSPACE);
        if !path.starts_with('/') {
            let how = "to a path that begins with `/`, or unset it";
            return self.wrong(WORKSPACE, "is not an absolute path", how);
        }
        let path = path.trim_end_matches('/');
        Some(if path.is_empty() { "/" } else { path }.to_owned())
    }
}

#[cfg(test)]
mod tests;
