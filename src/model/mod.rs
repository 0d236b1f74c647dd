//! Every language model behind one trait, and the table of those that are known.
//!
//! `http`, `anthropic::server` and `ollama::server` use the network; the wire formats (`anthropic`, `azure`, `gemini`, `ollama`, `openai`) are pure. Guarantees that a [`Reply`] is whole:
//! whatever was blocked, refused, empty or cut short is a [`ModelError`].

mod anthropic;
mod azure;
pub(crate) mod catalogue;
pub(crate) mod endpoint;
mod error;
pub(crate) mod estimate;
mod gemini;
mod http;
mod json_text;
mod manner;
pub mod message;
mod ollama;
mod openai;
pub(crate) mod price;
pub(crate) mod prompt;
mod raw_reply;
pub(crate) mod served;
mod step_id;
pub(crate) mod table;
#[cfg(test)]
mod tests;
mod tier;
pub mod tokens;
pub(crate) mod usage;
mod vendor_server;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::manner::Manner;
use crate::model::message::{Call, Message, ReplyPart};
use crate::model::price::Price;
use crate::model::prompt::PromptOrder;
use crate::model::raw_reply::{RawPart, RawReply};
use crate::model::usage::Usage;
use crate::sys::text::without_mark;

pub(crate) use crate::sys::http::endpoint::{Endpoint, EndpointProblem, Proxies};
pub use azure::{AzureProblem, azure_spec, is_plain as is_plain_in_url};
pub(crate) use catalogue::retired;
pub(crate) use error::human_duration;
pub use error::{ModelError, Setup, Spent};
pub use http::{HttpModel, Route};
pub use ollama::server::{OllamaServer, PullProgress, ServerProblem};
pub use step_id::{Purpose, REPAIRS, StepId};
pub use table::Place;
pub(crate) use table::{CHAT_MODELS, ModelTable, TableFile, TableProblem, TaskType, Unselected};
pub use tier::Tier;
pub use vendor_server::{ListedModel, VendorServer};

/// The largest size that an answer may have, in bytes.
const ANSWER_LIMIT: u64 = 256 << 20;

/// A model of the table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelSpec {
    /// The name that `--model` takes.
    pub name: String,
    /// The provider whose wire format it speaks.
    pub provider: Provider,
    /// The vendor's name for it.
    pub id: String,
    /// The server to ask; `None`: the vendor's, or the one that the environment names.
    pub base_url: Option<String>,
    /// The file that names the server.
    pub base_url_from: Place,
    /// The version of Azure's API in which it is asked; `None`: the usual one.
    pub api_version: Option<String>,
    /// The name of its key file in `agent-config`; `None`: it needs no key.
    pub key_file: Option<String>,
    /// The limit on a prompt's tokens, or `None` if unknown.
    pub context_window: Option<u64>,
    /// The number of tokens an answer may have, thoughts included; `None`: the server decides.
    pub max_output_tokens: Option<u32>,
    /// The reasoning effort; `None`: the server decides.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The mode of thinking, for Anthropic; `None`: not at all.
    pub thinking: Option<Thinking>,
    /// The sampling temperature; `None`: the server decides, since many models reject one.
    pub temperature: Option<f64>,
    /// The form in which it calls an agent's tools; `None`: the agent's own choice.
    pub tools: Option<ToolForm>,
    /// The tier of service in which it is to answer.
    pub tier: Tier,
    /// The order of its prompts, but an agent's.
    pub prompt_order: PromptOrder,
    /// Its price, or `None` if unknown.
    pub price: Option<Price>,
    /// The entry that is asked where this one is overloaded.
    pub fallback: Option<String>,
    /// The name shown to people; `None`: its name.
    pub display_name: Option<String>,
    /// Its strengths, in its entry's words.
    pub capabilities: Vec<String>,
    /// The tasks that it is recommended for, in its entry's words.
    pub recommended_for: Vec<String>,
    /// A prompt for this model alone, after an agent's instructions; `None`: nothing.
    pub prompt: Option<String>,
    /// The number of tokens of context that Ollama loads it with; `None`: its window, within limits.
    pub num_ctx: Option<u32>,
    /// The time Ollama is to keep it loaded, in Ollama's words: a duration or a number of seconds.
    pub keep_alive: Option<Value>,
    /// Where the entry comes from.
    pub origin: Origin,
}

impl ModelSpec {
    /// A model of which nothing but this is known.
    #[must_use]
    pub fn new(name: &str, provider: Provider) -> Self {
        Self {
            name: name.to_owned(),
            provider,
            id: name.to_owned(),
            ..Self::default()
        }
    }

    /// The vendor's name of the model; `None` where the id is the user's name for a deployment, which says nothing of it.
    #[must_use]
    pub fn vendors_name(&self) -> Option<&str> {
        (self.provider != Provider::Azure).then_some(&*self.id)
    }

    /// Returns whether it is one of OpenAI's own models, by its name: those take what is new in its API.
    #[must_use]
    pub fn is_openais_own(&self) -> bool {
        let id = self.id.rsplit('/').next().unwrap_or_default();
        let families = ["gpt-", "o1", "o3", "o4"];
        self.provider == Provider::OpenAi
            && families.iter().any(|family| id.starts_with(family))
            && !id.starts_with("gpt-oss")
    }
}

/// The form in which a model calls an agent's tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolForm {
    /// By headings in Markdown, which every model can write.
    #[default]
    Markdown,
    /// By a JSON object as the whole reply, which many servers can hold a model to.
    Json,
    /// By the vendor's own tool calls.
    Native,
}

/// Where an entry of the table comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The specification, as it came with the program.
    #[default]
    BuiltIn,
    /// The specification, changed by `models.json`.
    Overridden,
    /// `models.json` alone: the specification has no such model.
    Added,
}

/// The reasoning effort, in OpenAI's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the vendor's words say it")]
pub enum ReasoningEffort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    XHigh,
    Max,
}

impl ReasoningEffort {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        }
    }
}

/// The mode of thinking of Anthropic's models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Thinking {
    /// As far as it sees fit.
    Adaptive,
}

/// A vendor, that is: a wire format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// Google's Gemini API.
    #[default]
    Gemini,
    /// OpenAI's chat completions, and what is compatible with them.
    OpenAi,
    /// Ollama's own API, on the user's machine.
    Ollama,
    /// Chat completions of a deployment of the user's in Azure.
    Azure,
    /// Anthropic's messages.
    Anthropic,
}

impl Provider {
    const ALL: [Self; 5] = [
        Self::Gemini,
        Self::OpenAi,
        Self::Ollama,
        Self::Azure,
        Self::Anthropic,
    ];

    /// The facts of its vendor.
    #[must_use]
    pub fn vendor(self) -> &'static Vendor {
        self.wire().vendor()
    }

    /// The provider of that word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|provider| provider.vendor().word == word)
    }

    /// The model of an entry of which nothing but the name is known.
    fn spec(self, name: &str) -> ModelSpec {
        self.wire().entry(ModelSpec::new(name, self))
    }

    /// Reads the JSON of an answer with status 200.
    ///
    /// # Errors
    /// When it is not a whole reply.
    pub fn read_reply(self, answer: &[u8]) -> Result<Reply, ModelError> {
        self.wire().read_reply(answer)
    }

    fn wire(self) -> &'static dyn Wire {
        match self {
            Self::Gemini => &gemini::Gemini,
            Self::OpenAi => &openai::OpenAi,
            Self::Ollama => &ollama::Ollama,
            Self::Azure => &azure::Azure,
            Self::Anthropic => &anthropic::Anthropic,
        }
    }
}

/// The form of an answer: plain words unless set otherwise.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Form {
    /// The tools that it can call by the vendor's own means.
    pub tools: Vec<ToolSchema>,
    /// The JSON schema that its words are to follow, where the server can hold it to that.
    pub schema: Option<Value>,
    /// The sampling temperature, unless the model's entry sets one; `None`: the server decides.
    pub temperature: Option<f64>,
    /// The permission to call them.
    pub tool_choice: ToolChoice,
}

/// The permission to call the tools that a model is told of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// As it sees fit.
    #[default]
    Auto,
    /// Not now. They are described all the same: what is cached stays the same.
    None,
}

/// The kind of thing that a tool works on, for people and for the words that they are told of it by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// Files and directories as a whole.
    File,
    /// Programs.
    Shell,
    /// The content of many files.
    Search,
    /// The content of one file.
    Edit,
    /// A server's offer; the tool came at run time.
    Mcp,
    /// The agent's own: its list, its helpers, its last words.
    Agent,
}

/// A tool, as a vendor is told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSchema {
    /// The name by which the model calls it.
    pub name: String,
    /// The description, for the model.
    pub description: String,
    /// The JSON schema of what it is given: an object.
    pub schema: Value,
}

/// A request to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Request<'a> {
    /// Which call of the run this is.
    pub step: StepId,
    /// The conversation so far.
    pub messages: Vec<Message<'a>>,
    /// The form of the answer.
    pub form: Form,
    /// The number of tokens the answer may have, thoughts included; `None`: the server decides.
    pub max_output_tokens: Option<u32>,
    /// The tier of service in which it is to be answered.
    pub tier: Tier,
    /// True if the vendor is to cache up to the marks only, and without any nothing; else, as it likes.
    pub cached_by_marks: bool,
    /// True if a call whose answer has begun and then broke off is not to be made again.
    pub once: bool,
}

/// The form in which a vendor sends its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// At once, when it is whole.
    Whole,
    /// Piece by piece, as it comes to be.
    Streamed,
    /// The same from a server that does not want to be asked for the usage.
    StreamedPlainly,
}

/// The end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The model was done.
    Stop,
    /// The model waits for the results of its calls.
    ToolCalls,
    /// The model goes on as soon as it gets its words back as they are.
    Paused,
    /// The answer is as long as it may be, and not whole.
    MaxTokens,
    /// The vendor or the model would not go on.
    Refused,
    /// Anything else, by the vendor's word.
    Other,
}

/// A whole answer, without the JSON that it came in: an answer of 50 MB is not held longer than it
/// must be.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The answer's text; blank only where it has calls. Shared, since edits and log look at it at once.
    pub text: Arc<String>,
    /// The tools that it calls, in their order.
    pub calls: Vec<Call>,
    /// All of it in its order, thoughts included, where the wire has that; else empty.
    pub parts: Vec<ReplyPart>,
    /// The end: that of a whole answer.
    pub end: End,
    /// The vendor's word for that.
    pub finish: String,
    /// Tokens used, where the vendor tells.
    pub usage: Option<Usage>,
    /// The model version that answered, where the vendor tells.
    pub model_version: Option<String>,
    /// The tier of service in which it answered, where the reply itself tells.
    pub tier: Option<Tier>,
}

impl Reply {
    /// A reply of which nothing is known but its words.
    #[must_use]
    pub fn said(text: impl Into<String>) -> Self {
        Self {
            text: Arc::new(text.into()),
            calls: Vec::new(),
            parts: Vec::new(),
            end: End::Stop,
            finish: "stop".to_owned(),
            usage: None,
            model_version: None,
            tier: None,
        }
    }
}

/// A server's answer where there is no error.
#[derive(Debug)]
pub struct Answer {
    /// Its JSON.
    pub json: Vec<u8>,
    /// The tier of service that its headers name.
    pub tier: Option<Tier>,
}

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

/// The facts of a vendor that are no matter of its wire format.
#[derive(Debug, PartialEq, Eq)]
pub struct Vendor {
    /// The provider, in files.
    pub word: &'static str,
    /// The vendor's name, for people.
    pub name: &'static str,
    /// The usual key file in `agent-config`; `None`: it needs no key.
    pub key_file: Option<&'static str>,
    /// The variables that the vendor's own tools read a key from, the first one first.
    pub key_variables: &'static [&'static str],
    /// The variable that names another server.
    pub url_variable: &'static str,
    /// The base URL of its own server; `None`: its users have servers of their own.
    pub url: Option<&'static str>,
}

/// A vendor's wire format; pure.
trait Wire: Sync {
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
trait Assembler {
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

/// A vendor's account of a failed call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VendorError {
    /// The vendor's code, like `RESOURCE_EXHAUSTED` or `insufficient_quota`.
    pub code: Option<String>,
    /// The vendor's sentence.
    pub message: Option<String>,
    /// The time to wait before the next try.
    retry_delay: Option<Duration>,
    /// True if a quota is spent that waiting does not refill.
    quota_spent: bool,
    /// True if it is asked too often, and not that the server has no room.
    is_rate_limit: bool,
    /// True if it is the key that is wrong.
    pub bad_key: bool,
    /// Advice for the user, where it differs from other vendors'.
    hint: Option<&'static str>,
}

impl VendorError {
    /// Returns whether the error is transient, by Anthropic's codes for that, which it also sends with a status of
    /// success.
    fn may_pass(&self) -> bool {
        let passing = [
            "overloaded_error",
            "api_error",
            "rate_limit_error",
            "timeout_error",
        ];
        self.code
            .as_deref()
            .is_some_and(|code| passing.contains(&code))
    }
}

/// An object without those of `fields` that are null.
fn object(mut fields: Value) -> Value {
    if let Value::Object(fields) = &mut fields {
        fields.retain(|_, value| !value.is_null());
    }
    fields
}

/// The elements of an array.
fn elements(array: &Value) -> impl Iterator<Item = &Value> {
    array.as_array().into_iter().flatten()
}

/// The first of several answers that a vendor could have been asked for.
fn first(answers: &Value) -> Option<&Value> {
    elements(answers).find(|answer| answer["index"].as_u64().unwrap_or(0) == 0)
}

/// Replaces the fields that earlier pieces of a stream told by those that this one tells.
fn update(known: &mut Value, told: &Value) {
    for (name, value) in told.as_object().into_iter().flatten() {
        if !value.is_null() {
            known[name] = value.clone();
        }
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// A count of tokens; what is not a whole number counts as none, since a reply is not worse for it.
fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// Parses an answer, or says what is in its place.
fn parse_answer<'a, T: serde::Deserialize<'a>>(json: &'a [u8]) -> Result<T, ModelError> {
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
