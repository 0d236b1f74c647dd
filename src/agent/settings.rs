//! An agent's settings: `config.json` and the variables that override it.
//!
//! Reads the file, and writes it once, where it is missing. Guarantees that every value makes sense, that a mistake is
//! told with its place and what is expected there, and that no error shows the key, nor any other value.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::model::{Endpoint, EndpointProblem};
use crate::secret::ApiKey;
use crate::sys::environment::Environment;
use crate::sys::files::PathError;
use crate::sys::home_file::{self, HomeFileProblem};
use crate::sys::positions::{self, Entries, Misplaced, Positions};

/// The settings' file, in an agent's home.
pub const FILE: &str = crate::project::home::SETTINGS;
/// The variables that override fields.
const VARIABLES: [(&str, &str); 3] = [
    ("DEV_AGENT_API_URL", "apiUrl"),
    ("DEV_AGENT_API_KEY", "apiKey"),
    ("DEV_AGENT_MODEL", "model"),
];

/// Effect of removing the file.
const WITHOUT: &str = "it is then made anew with the defaults";
/// The specification's default configuration. The file is made with these bytes, and what a file leaves out is as it
/// stands here: see [`Settings::default`].
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

/// Settings of `dev`'s agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The base URL of an OpenAI-compatible API; `None`: [`model`](Self::model) names an entry of the table of models.
    pub api_url: Option<String>,
    /// The key for it; `None`: it needs none.
    pub api_key: Option<ApiKey>,
    /// The model to ask.
    pub model: String,
    /// A conversation that reaches this many tokens is compressed.
    pub max_context_tokens: u64,
    /// A command that takes longer goes on in the background.
    pub command_timeout: Duration,
    /// Failures in a row that end the work, with a user at hand; 0 counts as 1.
    pub max_retries: u32,
    /// Failures in a row that end the work without a user.
    pub max_retries_automated: u32,
    /// Limit of a run's calls to the model, those of audits and compressions included.
    pub max_loops: u16,
    /// For how many days a session is kept after its last change; 0: for ever.
    pub session_retention_days: u32,
    /// Commands that an auditor may run besides, each as its words.
    pub audit_commands: Vec<Vec<String>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            api_url: Some("http://localhost:8005/v1".to_owned()),
            api_key: None,
            model: "devstral-small-2507".to_owned(),
            max_context_tokens: 131_072,
            command_timeout: Duration::from_secs(30),
            max_retries: 3,
            max_retries_automated: 10,
            max_loops: 1000,
            session_retention_days: 30,
            audit_commands: Vec::new(),
        }
    }
}

/// Errors of settings. They hold none of the values.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum SettingsProblem {
    /// The file cannot be read, or has a mistake in it.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] HomeFileProblem),
    /// The file is missing and cannot be made.
    #[error("`{}` cannot be made: {}", .0.path.display(), .0.source)]
    #[diagnostic(help("make its directory writable, or set `DEV_AGENT_HOME` to one that is"))]
    Unwritable(PathError),
    /// A variable's value cannot be used.
    #[error("`{variable}` {reason}")]
    #[diagnostic(help("correct `{variable}`, or unset it"))]
    Variable {
        /// The variable whose value is wrong.
        variable: &'static str,
        /// The value that is expected.
        reason: String,
    },
}

impl Settings {
    /// The URL of the user's own server and its key; `None` where the table of models says whom to ask.
    #[must_use]
    pub fn server(&self) -> Option<(&str, Option<ApiKey>)> {
        Some((self.api_url.as_deref()?, self.api_key.clone()))
    }

    /// The settings of the agent whose home that is. Where the file is missing it is made with the defaults, and its
    /// path is given. Fields that are not known are passed over; those that are missing have their defaults.
    ///
    /// # Errors
    /// When the file cannot be read or made, or when there is a mistake in it or in a variable.
    pub fn load(
        home: &Path,
        environment: &Environment,
    ) -> Result<(Self, Option<PathBuf>), SettingsProblem> {
        let path = home.join(FILE);
        let is_new = home_file::read(&path)?.is_none()
            && home_file::create(&path, DEFAULT.as_bytes()).map_err(SettingsProblem::Unwritable)?;
        let mut settings = home_file::load(&path, WITHOUT, Self::parse)?.ok_or_else(|| {
            // A link that leads nowhere.
            let there = PathError::of("write", &path)(io::ErrorKind::AlreadyExists);
            SettingsProblem::Unwritable(there)
        })?;
        settings.override_by(environment)?;
        Ok((settings, is_new.then_some(path)))
    }

    /// The settings that the content of a file stands for.
    ///
    /// # Errors
    /// The first mistake in it.
    pub fn parse(content: &[u8]) -> Result<Self, Misplaced> {
        let json = positions::text(content)?;
        let at = Positions(json);
        let entries: Entries<'_> = at.object(json)?;
        let mut settings = Self::default();
        for (name, value) in &entries.0 {
            let set = settings.set(name, value.get());
            set.map_err(|expected| at.problem(value.get(), format!("`{name}` {expected}")))?;
        }
        Ok(settings)
    }

    /// Sets a field by its name in the file. The error says what is expected; the name stands before it.
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "apiUrl" | "apiKey" | "model" => self.set_text(name, &text(value)?)?,
            "maxContextTokens" => {
                self.max_context_tokens = number(value, "tokens", 1024, 1_000_000_000)?;
            }
            "commandTimeout" => {
                self.command_timeout = Duration::from_secs(number(value, "seconds", 1, 86_400)?);
            }
            "maxRetries" => self.max_retries = number(value, "retries", 0, 1000)?,
            "maxRetriesAutomated" => {
                self.max_retries_automated = number(value, "retries", 0, 1000)?;
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

    /// Sets a field that is text, likewise.
    fn set_text(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "apiUrl" => self.api_url = url(value)?,
            "apiKey" => self.api_key = key(value)?,
            _ => self.model = model(value)?,
        }
        Ok(())
    }

    fn override_by(&mut self, environment: &Environment) -> Result<(), SettingsProblem> {
        for (variable, name) in VARIABLES {
            let Some(value) = environment.os(variable) else {
                continue;
            };
            let value = value.to_str().ok_or_else(|| "is not UTF-8".to_owned());
            let set = value.and_then(|value| self.set_text(name, value));
            set.map_err(|reason| SettingsProblem::Variable { variable, reason })?;
        }
        Ok(())
    }
}

fn text(json: &str) -> Result<String, String> {
    // Not by serde's error: that would show the value.
    serde_json::from_str(json).map_err(|_| "must be a string, in quotes".to_owned())
}

/// Commands: each a list of words, or one string that is split into words as a shell does it.
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
    let number: Option<T> = serde_json::from_str(json).ok();
    let number = number.filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("must be a whole number of {unit}, from {least} to {most}"))
}

fn url(value: &str) -> Result<Option<String>, String> {
    let value = value.trim();
    if value.is_empty() {
        return Ok(None);
    }
    match Endpoint::parse("apiUrl", value, false) {
        Ok(_) => Ok(Some(value.to_owned())),
        // Without the value: some put a password or a key into a URL.
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
