//! Every language model behind one trait, and the table of those that are known.
//!
//! What lies below may use the network (`http`, `transport`) or read a recorded run (`replay`); the
//! wire formats (`gemini`, `openai`) are pure. Guarantees that a [`Reply`] is whole: whatever was
//! blocked, refused, empty or cut short is a [`ModelError`].

pub mod endpoint;
mod error;
mod gemini;
mod http;
mod json_text;
mod openai;
mod replay;
mod retry;
mod transport;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::interrupt::Interrupted;
use crate::message::Message;
use crate::record::{Attempt, Usage};

pub use endpoint::{Endpoint, EndpointProblem, Proxies};
pub(crate) use error::human_duration;
pub use error::{ModelError, Spent};
pub use http::HttpModel;
pub use replay::{Recording, RecordingProblem, ReplayModel};

/// A model of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelSpec {
    /// What `--model` takes.
    pub name: &'static str,
    /// Whose wire it speaks.
    pub provider: Provider,
    /// The vendor's name for it.
    pub id: &'static str,
    /// How many tokens a prompt may have.
    pub context_window: u32,
    /// How many tokens an answer may have, thoughts included.
    pub max_output_tokens: u32,
    /// The name of its key file in `agent-config`.
    pub key_file: &'static str,
}

/// The models of the specification, the default first. Limits: `reference/llm-apis.md`, after the
/// vendors' published descriptions.
pub const MODELS: [ModelSpec; 2] = [
    ModelSpec {
        name: "gemini-2.5-pro",
        provider: Provider::Gemini,
        id: "gemini-2.5-pro",
        context_window: 1_048_576,
        max_output_tokens: 65_536,
        key_file: "gemini-key.txt",
    },
    ModelSpec {
        name: "gpt-5",
        provider: Provider::OpenAi,
        id: "gpt-5",
        context_window: 272_000,
        max_output_tokens: 128_000,
        key_file: "openai-key.txt",
    },
];

impl ModelSpec {
    /// The model of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        MODELS.into_iter().find(|spec| spec.name == name)
    }
}

/// A vendor, that is: a wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// Google's Gemini API.
    Gemini,
    /// OpenAI's chat completions, and what is compatible with them.
    OpenAi,
}

impl Provider {
    fn wire(self) -> &'static dyn Wire {
        match self {
            Self::Gemini => &gemini::Gemini,
            Self::OpenAi => &openai::OpenAi,
        }
    }
}

/// What is asked of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    /// Which query of the run this is.
    pub attempt: Attempt,
    /// The conversation so far.
    pub messages: Vec<Message<'a>>,
}

/// A whole answer, without the JSON that it came in: an answer of 50 MB is not held longer than it
/// must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The answer's text; never blank. Shared, since edits and log look at it at once.
    pub text: Arc<String>,
    /// The vendor's word for a normal stop.
    pub finish: String,
    /// Tokens used, where the vendor tells.
    pub usage: Option<Usage>,
    /// The model version that answered, where the vendor tells.
    pub model_version: Option<String>,
}

/// Hears what happens during a call.
pub trait Listener {
    /// A try failed and the next one follows after `wait`. `next_try` counts from 2.
    fn retrying(&self, next_try: u32, wait: Duration, reason: &str);

    /// A piece of the reply's text. A model that does not stream hands over the whole at once.
    fn text(&self, piece: &str);
}

/// A language model. Asking it and reading its answer are two steps, so that the answer can be
/// logged while it is read.
pub trait Model {
    /// Sends the conversation and waits for the answer, whose JSON it gives.
    ///
    /// # Errors
    /// When there is no answer.
    fn ask(&self, request: &Request<'_>, listener: &dyn Listener) -> Result<Vec<u8>, ModelError>;

    /// Reads the answer to the query of `attempt`. `listener` gets what text it has not had yet.
    ///
    /// # Errors
    /// When it is not a whole reply.
    fn read(
        &self,
        attempt: Attempt,
        answer: &[u8],
        listener: &dyn Listener,
    ) -> Result<Reply, ModelError>;
}

/// A vendor's wire format; pure.
trait Wire: Sync {
    /// The path of the call, behind the base URL.
    fn path(&self, spec: &ModelSpec) -> String;

    /// The header that carries the key: name, and what stands before the key in its value.
    fn key_header(&self) -> (&'static str, &'static str);

    /// Writes the request's JSON.
    fn write_request(
        &self,
        spec: &ModelSpec,
        messages: &[Message<'_>],
        out: &mut dyn Write,
    ) -> serde_json::Result<()>;

    /// Reads the JSON of an answer with status 200.
    fn read_reply(&self, json: &[u8]) -> Result<Reply, ModelError>;

    /// Reads the JSON of an error's answer; what it does not say stays at its default.
    fn read_failure(&self, json: &[u8]) -> VendorError;
}

/// How an answer ends, on either wire.
struct Ending {
    /// The finish reason, where there is one.
    finish: Option<String>,
    /// The only finish reason of a whole answer.
    whole: &'static str,
    /// What the vendor says of the finish reason.
    message: Option<String>,
    spent: Spent,
}

impl Ending {
    /// The reply whose text the JSON strings `literals` make up; where it is not whole, why.
    fn reply<'a>(
        self,
        literals: impl IntoIterator<Item = &'a RawValue>,
    ) -> Result<Reply, ModelError> {
        let Self {
            finish,
            whole,
            message,
            spent,
        } = self;
        let Some(finish) = finish.as_deref().map(error::one_line) else {
            return Err(ModelError::Unfinished);
        };
        if finish != whole {
            return Err(ModelError::CutShort {
                finish,
                message,
                spent: spent.into(),
            });
        }
        let mut text = String::new();
        for literal in literals {
            json_text::append(&mut text, literal).map_err(|source| ModelError::NotJson {
                snippet: ModelError::snippet(literal.get().as_bytes()),
                cut: false,
                source,
            })?;
        }
        if text.trim().is_empty() {
            return Err(ModelError::Empty {
                finish,
                spent: spent.into(),
            });
        }
        let Spent {
            usage,
            model_version,
        } = spent;
        Ok(Reply {
            text: text.into(),
            finish,
            usage,
            model_version,
        })
    }
}

/// What a vendor says of a failed call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VendorError {
    /// The vendor's code, like `RESOURCE_EXHAUSTED` or `insufficient_quota`.
    pub code: Option<String>,
    /// The vendor's sentence.
    pub message: Option<String>,
    /// How long to wait before the next try.
    retry_delay: Option<Duration>,
    /// Whether a quota is spent that waiting does not refill.
    quota_spent: bool,
    /// Whether it is the key that is wrong.
    pub bad_key: bool,
}

/// What the vendors' SDKs call an error's answer, sometimes wrapped in an array.
fn parse_failure<'a, T: serde::Deserialize<'a>>(json: &'a [u8]) -> Option<T> {
    #[derive(serde::Deserialize)]
    struct Envelope<T> {
        error: T,
    }
    // A struct can also be read from an array, by position: the first character decides.
    if json.trim_ascii_start().starts_with(b"[") {
        let envelopes: Vec<Envelope<T>> = serde_json::from_slice(json).ok()?;
        return envelopes.into_iter().next().map(|envelope| envelope.error);
    }
    serde_json::from_slice(json)
        .ok()
        .map(|envelope: Envelope<T>| envelope.error)
}

/// A count of tokens; what is not a whole number counts as not told, since a reply is not worse for
/// it.
fn lenient_count<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let value: Option<serde_json::Value> = serde::Deserialize::deserialize(from)?;
    Ok(value.and_then(|value| value.as_u64()))
}

/// An error's answer that is a mere sentence: `{"error": "…"}`.
fn parse_sentence(json: &[u8]) -> VendorError {
    let message = parse_failure::<String>(json);
    VendorError {
        message,
        ..VendorError::default()
    }
}

/// Parses an answer, or says what is in its place.
fn parse_answer<'a, T: serde::Deserialize<'a>>(json: &'a [u8]) -> Result<T, ModelError> {
    if json.trim_ascii().is_empty() {
        return Err(ModelError::NoBody);
    }
    if std::str::from_utf8(json).is_err() {
        return Err(ModelError::NotUtf8);
    }
    if json.trim_ascii_start().starts_with(b"[") {
        return Err(ModelError::ArrayAnswer);
    }
    serde_json::from_slice(json).map_err(|source| ModelError::NotJson {
        snippet: ModelError::snippet(json),
        cut: source.is_eof(),
        source,
    })
}

impl From<Interrupted> for ModelError {
    fn from(interrupted: Interrupted) -> Self {
        Self::Interrupted(interrupted)
    }
}
