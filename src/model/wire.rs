//! Traits for asking a model, for a vendor's wire format, and for assembling a streamed answer.

use std::io::Write;
use std::time::Duration;

use serde_json::Value;

use super::error::ModelError;
use super::manner::Manner;
use super::reply::{Answer, Reply};
use super::request::{Delivery, Request};
use super::spec::ModelSpec;
use super::step_id::StepId;
use super::vendor_error::VendorError;
use crate::sys::http::endpoint::Endpoint;
use crate::sys::text::without_mark;

/// Receives the progress of a call; `()` ignores it.
pub trait Listener {
    /// Reports that a try failed and that the next one follows after `wait`. `next_try` counts from 2.
    fn retrying(&self, _next_try: u32, _wait: Duration, _reason: &str) {}

    /// Reports that the call waits for the server's rate limits first.
    fn pausing(&self, _pause: Duration) {}

    /// Receives a piece of the reply's text. Models that do not stream send none.
    fn text(&self, _piece: &str) {}

    /// Receives a piece of streamed thinking, which is not part of the reply.
    fn thought(&self, _piece: &str) {}

    /// Discards all pieces received so far, since the call is made again.
    fn restart(&self) {}
}

impl Listener for () {}

/// A language model. Asking it and reading its answer are separate steps, so that the answer can be logged while it is
/// being read.
pub trait Model {
    /// Sends the conversation and waits for the answer.
    ///
    /// # Errors
    /// Fails if there is no answer.
    fn ask(&self, request: &Request<'_>, listener: &dyn Listener) -> Result<Answer, ModelError>;

    /// Reads the answer to the call `step`.
    ///
    /// # Errors
    /// Fails if the answer is not a whole reply.
    fn read(&self, step: &StepId, answer: &[u8]) -> Result<Reply, ModelError>;
}

/// The model that is asked, the request, and the manner of the call.
pub(super) type Asked<'r> = (&'r ModelSpec, &'r Request<'r>, Manner);

/// A vendor's wire format. Pure.
pub(super) trait Wire: Sync {
    /// Checks the values of an entry's fields.
    ///
    /// # Errors
    /// Fails if the vendor does not accept one.
    fn check_entry(&self, _spec: &ModelSpec) -> Result<(), String> {
        Ok(())
    }

    /// Returns the URL of a call to the server at `endpoint`.
    fn url(&self, endpoint: &Endpoint, spec: &ModelSpec, delivery: Delivery) -> String;

    /// Returns additional headers of a call.
    fn headers(&self, _spec: &ModelSpec) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Returns the response header that names the service tier; `None` if the answer's JSON does.
    fn tier_header(&self) -> Option<&'static str> {
        None
    }

    /// Returns whether answers are streamed as lines of JSON, whatever their content type.
    fn streams_lines(&self) -> bool {
        false
    }

    /// Writes the request's JSON.
    fn write_request(&self, asked: Asked<'_>, out: &mut dyn Write) -> serde_json::Result<()>;

    /// Creates the assembler for a streamed answer.
    fn assembler(&self) -> Box<dyn Assembler>;

    /// Reads the JSON of an answer with status 200.
    fn read_reply(&self, json: &[u8]) -> Result<Reply, ModelError>;

    /// Reads the `error` of an answer; missing fields stay at their defaults.
    fn vendor_error(&self, error: &Value) -> VendorError;

    /// Reads an `error` that may be a plain sentence, as some servers send.
    fn read_error(&self, error: &Value) -> VendorError {
        match text(error) {
            Some(sentence) => VendorError {
                message: Some(sentence),
                ..VendorError::default()
            },
            None => self.vendor_error(error),
        }
    }

    /// Returns advice for an error with this status and vendor's code, if it differs from other vendors'.
    fn hint(&self, _status: u16, _code: Option<&str>) -> Option<&'static str> {
        None
    }

    /// Reads the JSON of a failed call's answer, which vendors sometimes wrap in an array.
    fn read_failure(&self, json: &[u8]) -> VendorError {
        let answer: Value = serde_json::from_slice(without_mark(json)).unwrap_or_default();
        self.read_error(&answer.get(0).unwrap_or(&answer)["error"])
    }

    /// Rejects an answer that reports an error despite a success status.
    fn check(&self, error: &Value) -> Result<(), ModelError> {
        if error.is_null() {
            return Ok(());
        }
        // OpenRouter and Google name the status that the answer would have had.
        let status = error["code"].as_u64().and_then(|code| code.try_into().ok());
        let vendor = self.read_error(error).with_status(status.unwrap_or(200));
        Err(ModelError::ErrorInAnswer(vendor))
    }
}

/// A vendor: its wire format, and facts that do not concern it.
pub struct Vendor {
    /// The wire format.
    pub(super) wire: &'static dyn Wire,
    /// The provider's name in configuration files.
    pub word: &'static str,
    /// The vendor's name, as shown to users.
    pub name: &'static str,
    /// The provider's name in OpenTelemetry's conventions.
    pub telemetry_name: &'static str,
    /// The usual key file in `agent-config`; `None` if the vendor needs no key.
    pub key_file: Option<&'static str>,
    /// True if an entry without a `keyFile` uses this file; otherwise, such an entry sends no key.
    pub key_by_default: bool,
    /// The environment variables from which the vendor's own tools read a key, in order of precedence.
    pub key_variables: &'static [&'static str],
    /// The environment variable that names another server.
    pub url_variable: &'static str,
    /// The base URL of the vendor's own server; `None` if users have their own servers, on which they name the models.
    pub url: Option<&'static str>,
    /// The maximum number of tokens in an answer where an entry sets none; `None`: the server decides.
    pub max_output_tokens: Option<u32>,
    /// True if the server usually runs on the user's machine, with the models that were pulled to it.
    pub is_local: bool,
    /// True if the vendor has no service tiers, and rejects requests that name one.
    pub refuses_tiers: bool,
    /// True if a query may set the temperature.
    pub takes_temperature: bool,
    /// True if other vendors' servers speak the same format, some without all of its fields.
    pub is_shared: bool,
    /// True if the models in the vendor's list, which names all that a key may use, are added to the table.
    pub is_listed: bool,
    /// The prefixes that only this vendor's keys have.
    pub key_prefixes: &'static [&'static str],
    /// The header that carries the key: its name, and the prefix of the key in its value.
    pub key_header: (&'static str, &'static str),
    /// The path that lists the models available to a key, as a whole or in pages like Anthropic's.
    pub models_path: &'static str,
}

impl Vendor {
    /// Returns a vendor with the usual values: no key file, no server of its own, no limits, and a bearer's key. A static
    /// names what differs.
    pub(super) const fn of(
        wire: &'static dyn Wire,
        word: &'static str,
        name: &'static str,
        url_variable: &'static str,
    ) -> Self {
        Self {
            wire,
            word,
            name,
            telemetry_name: word,
            key_file: None,
            key_by_default: false,
            key_variables: &[],
            url_variable,
            url: None,
            max_output_tokens: None,
            is_local: false,
            refuses_tiers: false,
            takes_temperature: true,
            is_shared: false,
            is_listed: false,
            key_prefixes: &[],
            key_header: ("authorization", "Bearer "),
            models_path: "/models",
        }
    }
}

/// Assembles a streamed answer into the JSON that the server would have sent as a whole.
pub(super) trait Assembler {
    /// Processes the data of an event, and passes its text to `listener`.
    ///
    /// # Errors
    /// Fails if the event reports an error, or is not in the vendor's format.
    fn event(&mut self, data: &[u8], listener: &dyn Listener) -> Result<(), ModelError>;

    /// Returns whether the answer is over, even if the connection stays open.
    fn is_over(&self) -> bool {
        // By default, only the end of the stream ends the answer.
        false
    }

    /// Returns whether the reply is whole: only the usage and the end of the stream may follow.
    fn is_whole(&self) -> bool {
        self.is_over()
    }

    /// Returns the JSON of the whole answer; `None` if the stream ended too early.
    fn finish(self: Box<Self>) -> Option<Vec<u8>>;
}

/// Removes the null fields of an object.
pub(super) fn object(mut fields: Value) -> Value {
    if let Value::Object(fields) = &mut fields {
        fields.retain(|_, value| !value.is_null());
    }
    fields
}

/// Iterates over the elements of a JSON array; anything else counts as empty.
pub(super) fn elements(array: &Value) -> impl Iterator<Item = &Value> {
    array.as_array().into_iter().flatten()
}

/// Returns the alternative with index 0, since vendors can be asked for several.
pub(super) fn first(answers: &Value) -> Option<&Value> {
    elements(answers).find(|answer| answer["index"].as_u64().unwrap_or(0) == 0)
}

/// Overwrites the fields of `known` with those of `new` that are not null.
pub(super) fn update(known: &mut Value, new: &Value) {
    for (name, value) in new.as_object().into_iter().flatten() {
        if !value.is_null() {
            known[name] = value.clone();
        }
    }
}

pub(super) fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Reads a count of tokens. Anything but a whole number counts as 0: the reply is still usable.
pub(super) fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// Parses an answer, or describes what came in its place.
pub(super) fn parse_answer<'a, T: serde::Deserialize<'a>>(json: &'a [u8]) -> Result<T, ModelError> {
    let json = without_mark(json);
    if json.trim_ascii().is_empty() {
        return Err(ModelError::NoBody);
    }
    let Ok(text) = std::str::from_utf8(json) else {
        return Err(ModelError::Malformed("is not valid UTF-8".to_owned()));
    };
    if json.trim_ascii_start().starts_with(b"[") {
        let array = "is a JSON array where one object is expected";
        return Err(ModelError::Malformed(array.to_owned()));
    }
    serde_json::from_str(text).map_err(|source| ModelError::not_json(json, source))
}
