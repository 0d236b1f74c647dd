//! A request to a model. Plain data.

use std::fmt;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::message::Message;
use super::step_id::StepId;
use super::tier::Tier;

/// The form of an answer; plain text by default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Form {
    /// The tools that the model can call natively.
    pub tools: Vec<ToolSchema>,
    /// The JSON schema for the answer's text, if the server can enforce one.
    pub schema: Option<Value>,
    /// The sampling temperature, unless the model's entry sets one; `None`: the server decides.
    pub temperature: Option<f64>,
    /// The permission to call the tools.
    pub tool_choice: ToolChoice,
    /// True if the last message is a reply that the model paused, and continues.
    pub continues: bool,
    /// The format of the edits in the answer; `None` if it is not a list of edits.
    pub edits: Option<ReplyFormat>,
    /// True if the answer may be a request for files in place of edits.
    pub takes_requests: bool,
}

/// The format of a reply with edits.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum ReplyFormat {
    /// Every changed file as a whole
    #[default]
    Whole,
    /// The lines to find in a file, and their replacement
    Edits,
}

impl fmt::Display for ReplyFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The permission to call the tools that a request describes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No calls for now. The tools are still described, so that the cached prefix stays the same.
    None,
}

/// A tool, as described to the vendor.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSchema {
    /// The name that the model calls it by.
    pub name: String,
    /// The description that the model reads.
    pub description: String,
    /// The JSON schema of its input, which is an object.
    pub schema: Value,
}

/// A request to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Request<'a> {
    /// The call's identity within the run.
    pub step: StepId,
    /// The conversation so far.
    pub messages: Vec<Message<'a>>,
    /// The form of the answer.
    pub form: Form,
    /// The maximum number of tokens in the answer, thinking included; `None`: the server decides.
    pub max_output_tokens: Option<u32>,
    /// The service tier to request.
    pub tier: Tier,
    /// True if the vendor caches only prefixes that end at a cache mark; otherwise, it decides by itself.
    pub cached_by_marks: bool,
    /// True if a call is not retried once its answer has begun.
    pub once: bool,
    /// The time on the clock at which the call ends; `None`: only its own time limit ends it.
    pub deadline: Option<Duration>,
}

/// The way in which a vendor sends its answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Delivery {
    /// The whole answer in one piece.
    #[default]
    Whole,
    /// A stream of pieces as they are generated.
    Streamed,
    /// A stream from a server that rejects requests for the usage.
    StreamedPlainly,
}
