//! A vendor's server, apart from its models' replies: the models that a key may ask, and how long a prompt is.
//!
//! Touches the network. Guarantees an answer or an error within [`TIMEOUT`] for each call, whatever the server does,
//! and that a signal ends it at once.

#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use ureq::http::Response;
use ureq::{Body, RequestBuilder};

use super::anthropic;
use crate::model::error::{ModelError, Setup};
use crate::model::http::{Route, model_error};
use crate::model::wire::{Wire, parse_answer};
use crate::model::{ModelSpec, Provider, Request};
use crate::secret::ApiKey;
use crate::sys::http::HttpClient;
use crate::sys::interrupt::Interrupt;

/// The time a call may take.
const TIMEOUT: Duration = Duration::from_secs(15);
/// The largest size that an answer may have, in bytes.
const LIMIT: u64 = 4 << 20;
/// The number of pages of models read, each of a thousand models.
const PAGES: usize = 10;

/// A model that the server tells of.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ListedModel {
    /// By which it is asked.
    pub id: String,
    /// The name shown to people.
    #[serde(default)]
    pub display_name: String,
    /// When it came out, in RFC 3339.
    #[serde(default)]
    pub created_at: String,
    /// The number of tokens a prompt may have, where the server tells.
    pub max_input_tokens: Option<u64>,
    /// The number of tokens an answer may have, where the server tells.
    pub max_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Page {
    data: Vec<ListedModel>,
    #[serde(default)]
    has_more: bool,
    last_id: Option<String>,
}

#[derive(Deserialize)]
struct Counted {
    input_tokens: u64,
}

/// The server of a vendor's API.
pub struct VendorServer {
    wire: &'static dyn Wire,
    client: HttpClient,
    key: Option<ApiKey>,
}

impl VendorServer {
    /// The server at the end of `route`. Nothing is sent yet.
    #[must_use]
    pub fn new(provider: Provider, route: Route, interrupt: &Interrupt) -> Self {
        Self {
            wire: provider.wire(),
            client: HttpClient::keeping(route.endpoint, &route.proxies, interrupt),
            key: route.key,
        }
    }

    /// Asks for the list of models, which needs a valid key.
    ///
    /// # Errors
    /// When it does not come, or not in time: [`ModelError::refuses_key`] says whether that is the key's fault.
    pub fn check_key(&self) -> Result<(), ModelError> {
        let url = self.client.endpoint().url(self.wire.models_path());
        let spec = ModelSpec::default();
        let read: Result<IgnoredAny, _> = self.read(&spec, || {
            let call = self.client.agent.get(&url);
            self.prepared(call, &spec).call()
        });
        read.map(drop)
    }

    /// The models of Anthropic's that the key may ask, in the server's order.
    ///
    /// # Errors
    /// When it does not tell, or not in time: [`ModelError::refuses_key`] says whether that is the key's fault.
    pub fn models(&self) -> Result<Vec<ListedModel>, ModelError> {
        let mut models = Vec::new();
        let mut path = self.wire.models_path().to_owned();
        for _ in 0..PAGES {
            let url = self.client.endpoint().url(&path);
            let spec = ModelSpec::new("", Provider::Anthropic);
            let page: Page = self.read(&spec, || {
                let call = self.client.agent.get(&url);
                self.prepared(call, &spec).call()
            })?;
            models.extend(page.data);
            let Some(last) = page.last_id.filter(|last| page.has_more && is_plain(last)) else {
                break;
            };
            path = format!("/v1/models?limit=1000&after_id={last}");
        }
        Ok(models)
    }

    /// Returns the number of tokens the prompt of `request` has for the model `spec`, by the vendor's own count.
    ///
    /// # Errors
    /// When the server does not tell, or not in time.
    pub fn count_tokens(&self, spec: &ModelSpec, request: &Request<'_>) -> Result<u64, ModelError> {
        let url = self.client.endpoint().url("/v1/messages/count_tokens");
        let asked = json!(anthropic::body(spec, request, &Value::Null)).to_string();
        let counted: Counted = self.read(spec, || {
            let call = self.client.agent.post(&url);
            let call = call.header("content-type", "application/json");
            self.prepared(call, spec).send(&asked)
        })?;
        Ok(counted.input_tokens)
    }

    /// A call about a model, with the key.
    fn prepared<B>(&self, mut call: RequestBuilder<B>, spec: &ModelSpec) -> RequestBuilder<B> {
        for (name, value) in self.wire.headers(spec) {
            call = call.header(*name, *value);
        }
        if let Some(key) = &self.key {
            let (name, prefix) = self.wire.key_header();
            call = call.header(name, format!("{prefix}{}", key.expose()));
        }
        call.config().timeout_global(Some(TIMEOUT)).build()
    }

    /// Reads the answer to the call about a model that `send` makes.
    fn read<T: DeserializeOwned>(
        &self,
        spec: &ModelSpec,
        send: impl Fn() -> Result<Response<Body>, ureq::Error>,
    ) -> Result<T, ModelError> {
        let failed = |error| model_error(error, self.client.endpoint(), TIMEOUT);
        let response = self.client.call(send).map_err(failed)?;
        let status = response.status();
        let json = self.client.read_body(response, LIMIT).map_err(failed)?;
        if status.is_success() {
            return parse_answer(&json);
        }
        Err(ModelError::Status {
            status: status.as_u16(),
            vendor: self.wire.read_failure(&json),
            model: spec.id.clone(),
            tries: 1,
            answer: json.into(),
            setup: Setup::default(),
        })
    }
}

/// Returns whether an id needs no escaping in a URL.
fn is_plain(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    !id.is_empty() && id.chars().all(plain)
}
