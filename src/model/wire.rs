//! The seams of a model: asking it, a vendor's wire format, and a streamed answer that is put together.

use std::io::Write;
use std::time::Duration;

use serde_json::Value;

use super::error::{ModelError, VendorError};
use super::manner::Manner;
use super::reply::{Answer, Reply};
use super::request::{Delivery, Request};
use super::spec::{ModelSpec, Vendor};
use super::step_id::StepId;
use crate::sys::http::endpoint::Endpoint;
use crate::sys::text::without_mark;

/// Hears what happens during a call.
pub trait Listener {
    /// A try failed and the next one follows after `wait`. `next_try` counts from 2.
    fn retrying(&self, next_try: u32, wait: Duration, reason: &str);

    /// A piece of the reply's text. A model that does not stream has none.
    fn text(&self, piece: &str);

    /// A piece of what the model thinks, where it streams that. It is no part of the reply.
    fn thought(&self, piece: &str);

    /// Discards all pieces so far: the call is made anew.
    fn restart(&self);
}

/// A language model. Asking it and reading its answer are two steps, so that the answer can be
/// logged while it is read.
pub trait Model {
    /// Sends the conversation and waits for the answer.
    ///
    /// # Errors
    /// When there is no answer.
    fn ask(&self, request: &Request<'_>, listener: &dyn Listener) -> Result<Answer, ModelError>;

    /// Reads the answer to the call `step`.
    ///
    /// # Errors
    /// When it is not a whole reply.
    fn read(&self, step: &StepId, answer: &[u8]) -> Result<Reply, ModelError>;
}

/// A vendor's wire format; pure.
pub(super) trait Wire: Sync {
    /// The vendor.
    fn vendor(&self) -> &'static Vendor;

    /// Fills in the defaults of a new entry.
    fn entry(&self, new: ModelSpec) -> ModelSpec {
        new
    }

    /// The URL of the call, at the server of this base URL.
    fn url(&self, endpoint: &Endpoint, spec: &ModelSpec, delivery: Delivery) -> String;

    /// The header that carries the key: name, and what stands before the key in its value.
    fn key_header(&self) -> (&'static str, &'static str);

    /// Further headers of a call.
    fn headers(&self, _spec: &ModelSpec) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The header that names the tier of service, if it is not in the JSON.
    fn tier_header(&self) -> Option<&'static str> {
        None
    }

    /// Returns whether it streams lines of JSON, whatever the content type.
    fn streams_lines(&self) -> bool {
        false
    }

    /// The path of the list of models that a key may ask, in pages of Anthropic's form or as a whole.
    fn models_path(&self) -> &'static str {
        "/models"
    }

    /// Writes the request's JSON.
    fn write_request(
        &self,
        spec: &ModelSpec,
        request: &Request<'_>,
        manner: Manner,
        out: &mut dyn Write,
    ) -> serde_json::Result<()>;

    /// Puts the pieces of a streamed answer together.
    fn assembler(&self) -> Box<dyn Assembler>;

    /// Reads the JSON of an answer with status 200.
    fn read_reply(&self, json: &[u8]) -> Result<Reply, ModelError>;

    /// Reads the `error` of an answer; missing fields stay at their defaults.
    fn vendor_error(&self, error: &Value) -> VendorError;

    /// The same, where it may be a mere sentence, as with some servers.
    fn told(&self, error: &Value) -> VendorError {
        match text(error) {
            Some(sentence) => VendorError {
                message: Some(sentence),
                ..VendorError::default()
            },
            None => self.vendor_error(error),
        }
    }

    /// Returns advice for an error of this status and the vendor's code, where it differs from other vendors'.
    fn hint(&self, _status: u16, _code: Option<&str>) -> Option<&'static str> {
        None
    }

    /// Reads the JSON of an error's answer, which the vendors sometimes wrap in an array.
    fn read_failure(&self, json: &[u8]) -> VendorError {
        let answer: Value = serde_json::from_slice(without_mark(json)).unwrap_or_default();
        self.told(&answer.get(0).unwrap_or(&answer)["error"])
    }

    /// Refuses an answer that is an error, though its status says that all is well.
    fn check(&self, error: &Value) -> Result<(), ModelError> {
        if error.is_null() {
            return Ok(());
        }
        Err(ModelError::ErrorInAnswer(self.told(error)))
    }
}

/// Puts a streamed answer together, so that it is the same as one that came whole.
pub(super) trait Assembler {
    /// Takes the data of an event, and tells `listener` what text is in it.
    ///
    /// # Errors
    /// When the event reports an error, or is not of the vendor's form.
    fn event(&mut self, data: &[u8], listener: &dyn Listener) -> Result<(), ModelError>;

    /// Returns whether nothing more is to come, though the connection may stay open.
    fn is_over(&self) -> bool {
        // Only the end of the stream tells.
        false
    }

    /// Returns whether the reply is whole: only the usage and the end may still come.
    fn is_whole(&self) -> bool;

    /// The whole answer's JSON; `None` where the stream ended before it was whole.
    fn finish(self: Box<Self>) -> Option<Vec<u8>>;
}

/// An object without those of `fields` that are null.
pub(super) fn object(mut fields: Value) -> Value {
    if let Value::Object(fields) = &mut fields {
        fields.retain(|_, value| !value.is_null());
    }
    fields
}

/// The elements of an array.
pub(super) fn elements(array: &Value) -> impl Iterator<Item = &Value> {
    array.as_array().into_iter().flatten()
}

/// The first of several answers that a vendor could have been asked for.
pub(super) fn first(answers: &Value) -> Option<&Value> {
    elements(answers).find(|answer| answer["index"].as_u64().unwrap_or(0) == 0)
}

/// Replaces the fields that earlier pieces of a stream told by those that this one tells.
pub(super) fn update(known: &mut Value, told: &Value) {
    for (name, value) in told.as_object().into_iter().flatten() {
        if !value.is_null() {
            known[name] = value.clone();
        }
    }
}

pub(super) fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// A count of tokens; what is not a whole number counts as none, since a reply is not worse for it.
pub(super) fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// Parses an answer, or says what is in its place.
pub(super) fn parse_answer<'a, T: serde::Deserialize<'a>>(json: &'a [u8]) -> Result<T, ModelError> {
    let json = without_mark(json);
    if json.trim_ascii().is_empty() {
        return Err(ModelError::NoBody);
    }
    if std::str::from_utf8(json).is_err() {
        return Err(ModelError::Malformed("is not valid UTF-8".to_owned()));
    }
    if json.trim_ascii_start().starts_with(b"[") {
        let array = "is a JSON array where one object is expected";
        return Err(ModelError::Malformed(array.to_owned()));
    }
    serde_json::from_slice(json).map_err(|source| ModelError::not_json(json, source))
}
