//! An agent's settings: `config.json` and the variables that override it.
//!
//! Reads the file, and creates it if it is missing. Guarantees that every value is valid, that an error names the
//! location and the expected value, and that no error shows the key or any other value.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::model::{Endpoint, EndpointProblem, KeySource};
use crate::project::home;
use crate::run::selection::ModelKey;
use crate::secret::ApiKey;
use crate::sys::environment::Environment;
use crate::sys::files::PathError;
use crate::sys::home_file::{self, HomeFileProblem};
use crate::sys::positions::{self, Entries, Misplaced, Positions};

/// The settings file, in an agent's home.
pub const FILE: &str = home::SETTINGS;
/// Variables that override settings, and the settings' names.
const VARIABLES: [(&str, &str); 3] = [
    ("DEV_AGENT_API_URL", "apiUrl"),
    (home::DEV_KEY, "apiKey"),
    ("DEV_AGENT_MODEL", "model"),
];

/// Consequence of removing the file, for hints.
const WITHOUT: &str = "it is then made anew with the defaults";
/// The default configuration given by the specification. The file is created with these bytes, and they supply the
/// values that a file omits.
const DEFAULT: &str = r#"{
  "apiUrl": "http://localhost:8005/v1",
  "apiKey": "",
  "model": "devstral-small-2507",
  "maxContextTokens": 131072,
  "commandTimeout": 30,
  "maxRetries": 3,
  "maxRetriesAutomated": 10,
  "maxLoops": 1000,
  "sessionRetentionDays": 30
}
"#;

/// The settings of `dev`'s agents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The base URL of an OpenAI-compatible API; if `None`, [`model`](Self::model) names an entry of the table of
    /// models.
    pub api_url: Option<String>,
    /// The key for that API; `None` if it needs none.
    pub api_key: Option<ApiKey>,
    /// The model to use.
    pub model: String,
    /// The number of tokens at which a conversation is compressed.
    pub max_context_tokens: u64,
    /// The time after which a command continues in the background.
    pub command_timeout: Duration,
    /// The number of consecutive failures that end the work when a user is present; 0 counts as 1.
    pub max_retries: u32,
    /// The number of consecutive failures that end the work when no user is present.
    pub max_retries_automated: u32,
    /// The maximum number of model calls in a run, including those for audits and compressions.
    pub max_loops: u16,
    /// The number of days for which a session is kept after its last change; 0 keeps it forever.
    pub session_retention_days: u32,
    /// Further commands that an auditor may run, each split into words.
    pub audit_commands: Vec<Vec<String>>,
}

/// Errors in the settings. They contain none of the values.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum SettingsProblem {
    /// The file cannot be read or created, or contains a mistake.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] HomeFileProblem),
    /// The value of a variable is invalid.
    #[error("`{variable}` {reason}")]
    #[diagnostic(code("/settings"), help("correct `{variable}`, or unset it"))]
    Variable {
        /// The variable with the invalid value.
        variable: &'static str,
        /// A phrase that describes the expected value.
        reason: String,
    },
    /// No table of models has the settings' model, and there is no address to ask it at.
    #[error("no table of models has `{0}`, the settings' `model`, and `apiUrl` is empty")]
    #[diagnostic(
        code("/settings"),
        help(
            "`dev config` opens the settings: set `apiUrl` to the model's server, or `model` to one that \
             `code-commit models` lists"
        )
    )]
    NoModel(String),
}

impl Settings {
    /// Returns the settings of a file that omits all values.
    pub fn usual() -> Self {
        Self::parse(b"{}").unwrap_or_default()
    }

    /// Returns the URL of the user's own server and its key; `None` if the table of models determines the server.
    pub fn server(&self, environment: &Environment) -> Option<(&str, ModelKey)> {
        let variable = environment.os(home::DEV_KEY);
        let source = variable.map(|_| KeySource::Variable(home::DEV_KEY));
        let key = self
            .api_key
            .clone()
            .map(|key| ModelKey::Given(Some(key), source));
        Some((self.api_url.as_deref()?, key.unwrap_or_default()))
    }

    /// Loads the settings of the agent with this home. If the file is missing, creates it with the defaults and also
    /// returns its path. Unknown fields are ignored; missing ones have their defaults.
    ///
    /// # Errors
    /// Fails if the file cannot be read or created, or the file or a variable contains a mistake.
    pub fn load(
        home: &Path,
        environment: &Environment,
    ) -> Result<(Self, Option<PathBuf>), SettingsProblem> {
        let path = home.join(FILE);
        let is_new =
            home_file::read(&path)?.is_none() && home::DEV.create(&path, DEFAULT.as_bytes())?;
        let mut settings = home_file::load(&path, WITHOUT, Self::parse)?.ok_or_else(|| {
            // The path is a dangling link.
            HomeFileProblem::NotMade {
                own: home::DEV.variable,
                problem: PathError::of("write", &path)(io::ErrorKind::AlreadyExists),
            }
        })?;
        settings.override_by(environment)?;
        Ok((settings, is_new.then_some(path)))
    }

    /// Parses the content of a settings file.
    ///
    /// # Errors
    /// Returns the first mistake.
    pub fn parse(content: &[u8]) -> Result<Self, Misplaced> {
        let mut settings = Self::default();
        for json in [DEFAULT, positions::text(content)?] {
            let at = Positions(json);
            for (name, value) in at.object::<Entries<'_>>(json)?.0 {
                let set = settings.set(&name, value.get());
                set.map_err(|expected| at.problem(value.get(), format!("`{name}` {expected}")))?;
            }
        }
        Ok(settings)
    }

    /// Sets a field by its name in the file. An error describes the expected value, as the end of a sentence that
    /// begins with the name.
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "apiUrl" => self.api_url = url(&text(value)?)?,
            "apiKey" => self.api_key = key(&text(value)?)?,
            "model" => self.model = model(&text(value)?)?,
            "maxContextTokens" => {
                self.max_context_tokens = number(value, "tokens", 1024, 1_000_000_000)?;
            }
            "commandTimeout" => {
                self.command_timeout = Duration::from_secs(number(value, "seconds", 1, 86_400)?);
            }
            "maxRetries" => self.max_retries = number(value, "retries", 0, 1000)?,
            "maxRetriesAutomated" => {
                self.max_retries_automated = number(value, "retries", 1, 1000)?;
            }
            "maxLoops" => self.max_loops = number(value, "calls", 1, u16::MAX)?,
            "sessionRetentionDays" => {
                self.session_retention_days = number(value, "days", 0, 36_500)?;
            }
            "auditCommands" => self.audit_commands = commands(value)?,
            _ => {}
        }
        Ok(())
    }

    fn override_by(&mut self, environment: &Environment) -> Result<(), SettingsProblem> {
        for (variable, name) in VARIABLES {
            let Some(value) = environment.os(variable) else {
                continue;
            };
            let text = value.to_str().ok_or_else(|| "is not UTF-8".to_owned());
            let set = text.and_then(|text| self.set(name, &Value::from(text).to_string()));
            set.map_err(|reason| SettingsProblem::Variable { variable, reason })?;
        }
        Ok(())
    }
}

fn text(json: &str) -> Result<String, String> {
    // Serde's own error would show the value.
    serde_json::from_str(json).map_err(|_| "must be a string, in quotes".to_owned())
}

/// Parses commands: each is a list of words, or a string that is split into words as a shell would.
fn commands(json: &str) -> Result<Vec<Vec<String>>, String> {
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Written {
        Line(String),
        Words(Vec<String>),
    }
    let written: Option<Vec<Written>> = serde_json::from_str(json).ok();
    let words = |written| match written {
        Written::Line(line) => shlex::split(&line),
        Written::Words(words) => Some(words),
    };
    let commands = written.and_then(|all| all.into_iter().map(words).collect::<Option<Vec<_>>>());
    let is_command = |words: &Vec<String>| {
        let is_named = words.first().is_some_and(|name| !name.is_empty());
        is_named && !words.iter().any(|word| word.contains(char::is_control))
    };
    commands
        .filter(|commands| commands.iter().all(is_command))
        .ok_or_else(|| {
            "must be a list of commands, each a string like `\"cargo test\"` or a list of its words"
                .to_owned()
        })
}

fn number<T>(json: &str, unit: &str, least: T, most: T) -> Result<T, String>
where
    T: DeserializeOwned + PartialOrd + Display + Copy,
{
    let parsed: Option<T> = serde_json::from_str(json).ok();
    let number = parsed.filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("must be a whole number of {unit}, from {least} to {most}"))
}

fn url(value: &str) -> Result<Option<String>, String> {
    let value = value.trim();
    if value.is_empty() {
        return Ok(None);
    }
    match Endpoint::parse("apiUrl", value, false) {
        Ok(_) => Ok(Some(value.to_owned())),
        // The value is not shown, since a URL may contain a password or a key.
        Err(EndpointProblem::Insecure { .. }) => Err(
            "must be https, or http to `localhost` or another loopback host, or, without a key, to a private address".to_owned(),
        ),
        Err(_) => Err(
            "must be the plain URL of a server, like `https://host/v1`, without user, query and `#`".to_owned(),
        ),
    }
}

fn key(value: &str) -> Result<Option<ApiKey>, String> {
    if value.trim().is_empty() {
        return Ok(None);
    }
    let key = ApiKey::parse(value.as_bytes());
    key.map(Some)
        .map_err(|problem| format!("{problem}, which no key has"))
}

fn model(value: &str) -> Result<String, String> {
    let value = value.trim();
    if value.is_empty() || value.len() > 200 || value.contains(char::is_control) {
        return Err("must be a model's name, of 200 bytes at the most".to_owned());
    }
    Ok(value.to_owned())
}

#[cfg(test)]
mod tests;
