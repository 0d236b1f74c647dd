//! An Ollama server, apart from its models' replies: which models it has, and how it gets another.
//!
//! Touches the network. Guarantees an answer or an error within [`TIMEOUT`] to the question which models there are,
//! whatever the server does, and that a signal ends any wait.

#[cfg(test)]
mod tests;

use std::io::Read as _;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use ureq::RequestBuilder;
use ureq::http::StatusCode;

use crate::model::error::one_line;
use crate::model::http::Route;
use crate::model::{ModelError, Provider, VendorError};
use crate::secret::ApiKey;
use crate::sys::http::{HttpClient, HttpError};
use crate::sys::interrupt::{Interrupt, Interrupted};
use crate::sys::ndjson::Lines;

/// The time the server may take to say which models it has.
const TIMEOUT: Duration = Duration::from_secs(4);
/// The time a pull may be silent: what was loaded is verified without a word.
const PULL_SILENCE: Duration = Duration::from_secs(15 * 60);
/// The largest size that an answer may have, in bytes: a thousand models take half a megabyte.
const LIMIT: u64 = 16 << 20;
/// The number of models that are listed.
const NAMED: usize = 20;

/// Why a model of an Ollama server cannot be asked.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ServerProblem {
    /// There is no server, or it does not answer.
    #[error("no Ollama server answers at `{url}`: {reason}")]
    #[diagnostic(help(
        "start it with `ollama serve`; a server elsewhere is named by `OLLAMA_HOST`, or by `baseUrl` in the model's entry"
    ))]
    NotThere {
        /// The base URL.
        url: String,
        /// The reason that no answer came.
        reason: String,
    },
    /// The server is not Ollama, or refuses to answer.
    #[error("what answers at `{url}` does not tell its models as an Ollama server does: {reason}")]
    #[diagnostic(help(
        "check `OLLAMA_HOST`, or `baseUrl` in the model's entry; servers that are compatible with OpenAI's have the provider `openai`"
    ))]
    NotOllama {
        /// The base URL.
        url: String,
        /// The answer that came instead of the models.
        reason: String,
    },
    /// The server does not have the model.
    #[error("the model `{model}` is not installed at `{url}`: {}", named(.installed))]
    #[diagnostic(help("run `ollama pull {model}`, or use another model with `--model`"))]
    NotInstalled {
        /// The model, by the server's name.
        model: String,
        /// The base URL.
        url: String,
        /// The models that are.
        installed: Vec<String>,
    },
    /// A model could not be pulled.
    #[error("`{model}` could not be pulled: {reason}")]
    #[diagnostic(help(
        "check the model's name in Ollama's library, the network, and the room on the disk"
    ))]
    NotPulled {
        /// The model, by the server's name.
        model: String,
        /// Why, in the server's words.
        reason: String,
    },
    /// A signal came.
    #[error(transparent)]
    #[diagnostic(forward(0), help("start again when you like"))]
    Interrupted(#[from] Interrupted),
}

/// The installed models in words; of many, the first.
fn named(models: &[String]) -> String {
    let names: Vec<String> = models
        .iter()
        .take(NAMED)
        .map(|name| one_line(name))
        .collect();
    match models.len() {
        0 => "no model is".to_owned(),
        count if count > NAMED => format!(
            "installed are {} and {} more",
            names.join(", "),
            count - NAMED
        ),
        _ => format!("installed are {}", names.join(", ")),
    }
}

/// The progress of a pull.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct PullProgress {
    /// The server's status, in its words.
    #[serde(default)]
    pub status: String,
    /// The number of bytes loaded of the current layer.
    pub completed: Option<u64>,
    /// The number of it that has.
    pub total: Option<u64>,
}

#[derive(Deserialize)]
struct Tags {
    models: Option<Vec<Tag>>,
}

#[derive(Deserialize)]
struct Tag {
    name: Option<String>,
    model: Option<String>,
}

/// An Ollama server.
pub struct OllamaServer {
    client: HttpClient,
    key: Option<ApiKey>,
}

impl OllamaServer {
    /// The server at the end of `route`. Nothing is sent yet.
    #[must_use]
    pub fn new(route: Route, interrupt: &Interrupt) -> Self {
        let Route {
            endpoint,
            proxies,
            key,
        } = route;
        Self {
            client: HttpClient::new(endpoint, &proxies, interrupt),
            key,
        }
    }

    /// Its base URL.
    #[must_use]
    pub fn url(&self) -> String {
        self.client.endpoint().url("")
    }

    /// The models that it has, by their names and tags.
    ///
    /// # Errors
    /// When it does not tell, or not in time.
    pub fn installed(&self) -> Result<Vec<String>, ServerProblem> {
        self.client.silence.allow(None);
        let call = self
            .client
            .agent
            .get(self.client.endpoint().url("/api/tags"));
        let call = self
            .with_key(call)
            .config()
            .timeout_global(Some(TIMEOUT))
            .build();
        let response = self.client.answer(call.call());
        let response = response.map_err(|error| self.not_there(&error))?;
        let status = response.status();
        let json = self.client.read_body(response, LIMIT);
        let json = json.map_err(|error| self.not_there(&error))?;
        let not_ollama = |reason| ServerProblem::NotOllama {
            url: self.url(),
            reason,
        };
        if !status.is_success() {
            return Err(not_ollama(refusal(status, &json)));
        }
        let tags: Tags = serde_json::from_slice(&json)
            .map_err(|source| not_ollama(ModelError::not_json(&json, source).to_string()))?;
        let Some(models) = tags.models else {
            return Err(not_ollama(format!("`{}`", ModelError::snippet(&json))));
        };
        Ok(models
            .into_iter()
            .filter_map(|tag| tag.name.or(tag.model))
            .collect())
    }

    /// Returns the problem to report if `model` is not among the models `installed` there.
    #[must_use]
    pub fn lack(&self, model: &str, installed: &[String]) -> Option<ServerProblem> {
        let is_there = installed.iter().any(|name| is_same(name, model));
        (!is_there).then(|| ServerProblem::NotInstalled {
            model: model.to_owned(),
            url: self.url(),
            installed: installed.to_vec(),
        })
    }

    /// Lets it pull `model`, and tells how far that has come.
    ///
    /// # Errors
    /// When it cannot, in its own words; a signal ends the pull, and another one goes on from there.
    pub fn pull(
        &self,
        model: &str,
        progress: &mut dyn FnMut(&PullProgress),
    ) -> Result<(), ServerProblem> {
        let not_pulled = |reason| ServerProblem::NotPulled {
            model: model.to_owned(),
            reason,
        };
        let failed = |error| match self.not_there(&error) {
            ServerProblem::NotThere { reason, .. } => not_pulled(reason),
            other => other,
        };
        self.client.silence.allow(Some(PULL_SILENCE));
        let call = self
            .client
            .agent
            .post(self.client.endpoint().url("/api/pull"));
        let call = call.header("content-type", "application/json");
        let body = json!({"model": model, "stream": true}).to_string();
        let response = self.client.answer(self.with_key(call).send(body));
        let response = response.map_err(failed)?;
        let status = response.status();
        if !status.is_success() {
            let answer = self.client.read_body(response, LIMIT).map_err(failed)?;
            return Err(not_pulled(refusal(status, &answer)));
        }
        let mut lines = Lines::default();
        let mut chunk = vec![0; 16 << 10];
        let mut is_done = false;
        let mut line = |line: &[u8]| {
            is_done = read_progress(line, progress).map_err(not_pulled)?;
            Ok::<(), ServerProblem>(())
        };
        let mut reader = response.into_body().into_reader();
        loop {
            let read = reader.read(&mut chunk);
            match read.map_err(|error| failed(self.client.classify(error.into())))? {
                0 => break lines.end(&mut line)?,
                amount => lines.read(&chunk[..amount], &mut line)?,
            }
        }
        let broken = || not_pulled("the answer ended before it was done".to_owned());
        is_done.then_some(()).ok_or_else(broken)
    }

    fn with_key<B>(&self, call: RequestBuilder<B>) -> RequestBuilder<B> {
        let Some(key) = &self.key else {
            return call;
        };
        let (name, prefix) = Provider::Ollama.wire().key_header();
        call.header(name, format!("{prefix}{}", key.expose()))
    }

    /// Maps the error of a call that got no answer.
    fn not_there(&self, error: &HttpError) -> ServerProblem {
        let reason = match error {
            HttpError::Interrupted(interrupted) => return (*interrupted).into(),
            HttpError::TimedOut => "it gives no answer in time".to_owned(),
            other => other.to_string(),
        };
        let url = self.url();
        match error {
            HttpError::TooLarge(_) | HttpError::Redirect { .. } | HttpError::Compressed(_) => {
                ServerProblem::NotOllama { url, reason }
            }
            _ => ServerProblem::NotThere { url, reason },
        }
    }
}

/// Returns whether `installed` is the model called `asked`; a name without a tag means `latest`.
fn is_same(installed: &str, asked: &str) -> bool {
    let plain = |name: &str| {
        name.strip_suffix(":latest")
            .unwrap_or(name)
            .to_ascii_lowercase()
    };
    plain(installed) == plain(asked)
}

/// Describes an answer with an error's status.
fn refusal(status: StatusCode, body: &[u8]) -> String {
    let status = status.as_u16();
    let VendorError { message, .. } = Provider::Ollama.wire().read_failure(body);
    let words = message.map_or_else(|| ModelError::snippet(body), |words| one_line(&words));
    let colon = if words.is_empty() { "" } else { ": " };
    format!("it answers `{status}`{colon}{words}")
}

/// Reads a line of a pull, and tells `progress` of it; whether the pull is done.
///
/// # Errors
/// The server's message about a failed pull.
fn read_progress(line: &[u8], progress: &mut dyn FnMut(&PullProgress)) -> Result<bool, String> {
    let words = |error: serde_json::Error| ModelError::not_json(line, error).to_string();
    let told: Value = serde_json::from_slice(line).map_err(words)?;
    if !told["error"].is_null() {
        let VendorError { message, .. } = Provider::Ollama.wire().told(&told["error"]);
        return Err(one_line(
            &message.unwrap_or_else(|| told["error"].to_string()),
        ));
    }
    let told: PullProgress = serde_json::from_value(told).map_err(words)?;
    progress(&told);
    Ok(told.status == "success")
}
