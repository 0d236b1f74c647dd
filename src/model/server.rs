//! A vendor's server apart from its models' replies: listing models, checking a key, and pulling models into Ollama.
//!
//! Touches the network. Guarantees that a request for the list of models ends within [`TIMEOUT`], or [`LOCAL_TIMEOUT`]
//! for the user's own server, whatever the server does, and that a signal ends any wait.

#[cfg(test)]
mod ollama_tests;
#[cfg(test)]
mod tests;

use std::io::Read as _;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use ureq::http::{Response, StatusCode};
use ureq::{Body, RequestBuilder};

use super::error::{ModelError, one_line};
use super::fields::is_name;
use super::setup::Setup;
use super::spec::{ModelSpec, Provider};
use super::vendor_error::VendorError;
use super::wire::{Vendor, parse_answer, text};
use crate::secret::ApiKey;
use crate::sys::http::endpoint::{Endpoint, Proxies};
use crate::sys::http::{HttpClient, HttpError};
use crate::sys::interrupt::{Interrupt, Interrupted};
use crate::sys::ndjson::Lines;
use crate::sys::text::listed;

/// Time limit for listing the models of a vendor's server.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Time limit for listing the models of the user's own server.
const LOCAL_TIMEOUT: Duration = Duration::from_secs(4);
/// Longest silence allowed during a pull: the server verifies a download without sending anything.
const PULL_SILENCE: Duration = Duration::from_mins(15);
/// Maximum size of an answer, in bytes; a list of a thousand models takes half a megabyte.
const LIMIT: u64 = 16 << 20;
/// Maximum number of pages read of a list of models, at a thousand models a page.
const PAGES: usize = 10;
/// Maximum number of installed models named in a message.
const NAMED: usize = 20;

/// The connection to a model's server: its endpoint, proxies and key.
#[derive(Debug, Clone)]
pub struct Route {
    /// The server's endpoint.
    pub endpoint: Endpoint,
    /// The proxies to use.
    pub proxies: Proxies,
    /// The key, if the server needs one.
    pub key: Option<ApiKey>,
}

/// A model in a server's list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ListedModel {
    /// The ID used in requests.
    pub id: String,
    /// The name shown to users.
    #[serde(default)]
    pub display_name: String,
    /// The maximum number of tokens in a prompt, if the server reports it.
    pub max_input_tokens: Option<u64>,
    /// The maximum number of tokens in an answer, if the server reports it.
    pub max_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Page {
    data: Vec<ListedModel>,
    #[serde(default)]
    has_more: bool,
    last_id: Option<String>,
}

/// Errors from looking for a model on an Ollama server, or pulling it.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ServerProblem {
    /// No server is running, or it does not answer.
    #[error("no Ollama server answers at `{url}`: {reason}")]
    #[diagnostic(
        code("/network"),
        help("start it with `ollama serve`, or set `OLLAMA_HOST` or the entry's `baseUrl`")
    )]
    NotThere { url: String, reason: String },
    /// The server is not Ollama, or refuses to answer.
    #[error("what answers at `{url}` does not list its models as an Ollama server does: {reason}")]
    #[diagnostic(
        code("/settings"),
        help(
            "check `OLLAMA_HOST`, or `baseUrl` in the model's entry; servers that are compatible with OpenAI's have the provider `openai`"
        )
    )]
    NotOllama { url: String, reason: String },
    /// The server does not have the model.
    #[error("the model `{model}` is not installed at `{url}`: {}", named(.installed))]
    #[diagnostic(
        code("/settings"),
        help("run `ollama pull {model}`, or use another model with `--model`")
    )]
    NotInstalled {
        /// The model, by its name on the server.
        model: String,
        /// The base URL.
        url: String,
        /// The models that are installed.
        installed: Vec<String>,
    },
    /// A model could not be pulled.
    #[error("`{model}` could not be pulled: {reason}")]
    #[diagnostic(
        code("/network"),
        help("check the model's name in Ollama's library, the network, and the free disk space")
    )]
    NotPulled { model: String, reason: String },
    /// A signal interrupted the request.
    #[error(transparent)]
    #[diagnostic(forward(0), help("start again when you like"))]
    Interrupted(#[from] Interrupted),
}

/// Describes the installed models, naming only the first [`NAMED`] of them.
fn named(models: &[String]) -> String {
    let names = listed(models.iter().map(|name| one_line(name)), NAMED);
    if models.is_empty() {
        return "no model is".to_owned();
    }
    format!("installed are {names}")
}

/// The progress of a pull, as reported in one line of the stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct PullProgress {
    /// The server's status message.
    #[serde(default)]
    pub status: String,
    /// The number of bytes of the current layer downloaded so far.
    pub completed: Option<u64>,
    /// The size of the current layer, in bytes.
    pub total: Option<u64>,
}

/// A client of a vendor's API server.
pub struct VendorServer {
    pub(super) vendor: &'static Vendor,
    pub(super) client: HttpClient,
    pub(super) key: Option<ApiKey>,
}

impl VendorServer {
    /// Creates a client for the server of `route`. Nothing is opened or loaded yet; TLS is set up by the first call
    /// that needs it.
    pub fn new(provider: Provider, route: Route, interrupt: &Interrupt) -> Self {
        Self {
            vendor: provider.vendor(),
            client: HttpClient::new(route.endpoint, &route.proxies, interrupt, 1),
            key: route.key,
        }
    }

    /// Returns the server's base URL.
    pub fn url(&self) -> String {
        self.client.endpoint.url("")
    }

    /// Adds the headers, the key and the timeout to a call.
    pub(super) fn prepared<B>(
        &self,
        mut call: RequestBuilder<B>,
        spec: &ModelSpec,
        timeout: Option<Duration>,
    ) -> RequestBuilder<B> {
        for (name, value) in self.vendor.wire.headers(spec) {
            call = call.header(*name, *value);
        }
        if let Some(key) = &self.key {
            let (name, prefix) = self.vendor.key_header;
            call = call.header(name, format!("{prefix}{}", key.expose()));
        }
        call.config().timeout_global(timeout).build()
    }

    /// Requests the list of models, which requires a valid key.
    ///
    /// # Errors
    /// Fails if the list does not arrive in time; [`ModelError::refuses_key`] reports whether the key was rejected.
    pub fn check_key(&self) -> Result<(), ModelError> {
        let read: Result<IgnoredAny, _> = self.listed(self.vendor.models_path);
        read.map(drop)
    }

    /// Lists the Anthropic models available to the key, in the server's order.
    ///
    /// # Errors
    /// Fails if the list does not arrive in time; [`ModelError::refuses_key`] reports whether the key was rejected.
    pub fn models(&self) -> Result<Vec<ListedModel>, ModelError> {
        let mut models = Vec::new();
        let mut path = self.vendor.models_path.to_owned();
        for _ in 0..PAGES {
            let page: Page = self.listed(&path)?;
            models.extend(page.data);
            let Some(last) = page.last_id.filter(|last| page.has_more && is_name(last)) else {
                break;
            };
            path = format!("/v1/models?limit=1000&after_id={last}");
        }
        Ok(models)
    }

    fn listed<T: DeserializeOwned>(&self, path: &str) -> Result<T, ModelError> {
        let (status, json) = self
            .get(path, TIMEOUT)
            .map_err(|error| ModelError::of_call(error, &self.client.endpoint, TIMEOUT))?;
        if status.is_success() {
            return parse_answer(&json);
        }
        Err(ModelError::Status {
            status: status.as_u16(),
            vendor: self.vendor.wire.read_failure(&json),
            model: String::new(),
            tries: 1,
            answer: json.into(),
            setup: Setup::default(),
        })
    }

    fn get(&self, path: &str, timeout: Duration) -> Result<(StatusCode, Vec<u8>), HttpError> {
        self.client.silence.allow(None);
        let (url, spec) = (self.client.endpoint.url(path), ModelSpec::default());
        let response = self.client.call(|| {
            let call = self.client.agent.get(&url);
            self.prepared(call, &spec, Some(timeout)).call()
        })?;
        let status = response.status();
        Ok((status, self.client.read_body(response, LIMIT)?))
    }

    /// Lists the models installed on an Ollama server, by name and tag.
    ///
    /// # Errors
    /// Fails if the list does not arrive in time, or is not Ollama's.
    pub fn installed(&self) -> Result<Vec<String>, ServerProblem> {
        let answer = self.get(self.vendor.models_path, LOCAL_TIMEOUT);
        let (status, json) = answer.map_err(|error| self.not_there(&error))?;
        let not_ollama = |reason| ServerProblem::NotOllama {
            url: self.url(),
            reason,
        };
        if !status.is_success() {
            return Err(not_ollama(self.refusal(status, &json)));
        }
        let tags: Value = serde_json::from_slice(&json)
            .map_err(|source| not_ollama(ModelError::not_json(&json, source).to_string()))?;
        let Some(models) = tags["models"].as_array() else {
            return Err(not_ollama(format!("`{}`", ModelError::snippet(&json))));
        };
        let name = |tag: &Value| text(&tag["name"]).or(text(&tag["model"]));
        Ok(models.iter().filter_map(name).collect())
    }

    /// Returns an error if `model` is not among the `installed` models.
    pub fn lack(&self, model: &str, installed: &[String]) -> Option<ServerProblem> {
        let is_there = installed.iter().any(|name| is_same(name, model));
        (!is_there).then(|| ServerProblem::NotInstalled {
            model: model.to_owned(),
            url: self.url(),
            installed: installed.to_vec(),
        })
    }

    /// Returns the context length of a model on an Ollama server, in tokens; `None` if the server does not report it in
    /// time.
    pub fn context_length(&self, model: &str) -> Option<u64> {
        self.client.silence.allow(None);
        let asked = json!({"model": model});
        let response = self.post("/api/show", &asked, Some(LOCAL_TIMEOUT));
        let answer = self.client.read_body(response.ok()?, LIMIT).ok()?;
        let shown: Value = serde_json::from_slice(&answer).ok()?;
        let mut facts = shown["model_info"].as_object()?.iter();
        let length = facts.find(|(key, _)| key.ends_with(".context_length"));
        length?.1.as_u64()
    }

    fn post(
        &self,
        path: &str,
        body: &Value,
        timeout: Option<Duration>,
    ) -> Result<Response<Body>, HttpError> {
        let (url, body) = (self.client.endpoint.url(path), body.to_string());
        self.client.call(|| {
            let post = self.client.agent.post(&url);
            let call = post.header("content-type", "application/json");
            self.prepared(call, &ModelSpec::default(), timeout)
                .send(&body)
        })
    }

    /// Has the server pull `model`, and reports the progress.
    ///
    /// # Errors
    /// Fails if the pull fails, with the server's own message. A signal ends the pull; the next pull resumes it.
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
        let asked = json!({"model": model, "stream": true});
        let response = self.post("/api/pull", &asked, None).map_err(failed)?;
        let status = response.status();
        if !status.is_success() {
            let answer = self.client.read_body(response, LIMIT).map_err(failed)?;
            return Err(not_pulled(self.refusal(status, &answer)));
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

    /// Describes an answer with an error status.
    fn refusal(&self, status: StatusCode, body: &[u8]) -> String {
        let VendorError { message, .. } = self.vendor.wire.read_failure(body);
        let words = message.map_or_else(|| ModelError::snippet(body), |words| one_line(&words));
        let colon = if words.is_empty() { "" } else { ": " };
        format!("it answers `{}`{colon}{words}", status.as_u16())
    }
}

/// Reads a line of a pull's progress and passes it to `progress`. Returns whether the pull is done.
///
/// # Errors
/// The server's message about a failed pull, or a description of a line that cannot be read.
fn read_progress(line: &[u8], progress: &mut dyn FnMut(&PullProgress)) -> Result<bool, String> {
    let words = |error: serde_json::Error| ModelError::not_json(line, error).to_string();
    let json: Value = serde_json::from_slice(line).map_err(words)?;
    let error = &json["error"];
    if !error.is_null() {
        let message = Provider::Ollama.vendor().wire.read_error(error).message;
        return Err(one_line(&message.unwrap_or_else(|| error.to_string())));
    }
    let now: PullProgress = serde_json::from_value(json).map_err(words)?;
    progress(&now);
    Ok(now.status == "success")
}

/// Returns whether `installed` is the model `asked` for; a name without a tag means `latest`.
fn is_same(installed: &str, asked: &str) -> bool {
    let plain = |name: &str| name.trim_end_matches(":latest").to_ascii_lowercase();
    plain(installed) == plain(asked)
}
