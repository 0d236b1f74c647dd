//! A model's whole answer. Plain data.

use std::sync::Arc;

use super::message::{Call, ReplyPart};
use super::tier::Tier;
use super::usage::Usage;

/// The reason that an answer ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum End {
    /// The model was finished.
    #[default]
    Stop,
    /// The model waits for the results of its tool calls.
    ToolCalls,
    /// The model paused, and continues once its output is sent back unchanged.
    Paused,
    /// The answer reached its maximum length, and is incomplete.
    MaxTokens,
    /// The vendor or the model refused to continue.
    Refused,
    /// Any other reason given by the vendor.
    Other,
}

/// A whole answer, without the JSON it arrived in: an answer of 50 MB is not held longer than necessary.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// The answer's text; blank only if it has calls or is paused. Shared, since edits and log use it at the same time.
    pub text: Arc<String>,
    /// The tool calls, in order.
    pub calls: Vec<Call>,
    /// All parts in order, thinking included, if the wire format has an order; otherwise empty.
    pub parts: Vec<ReplyPart>,
    /// The reason that it ended; never one that marks an incomplete answer.
    pub end: End,
    /// The vendor's finish reason.
    pub finish: String,
    /// The usage of the call, and what answered it.
    pub spent: Spent,
    /// True if it comes from a log in which a secret was redacted.
    pub is_redacted: bool,
}

impl Reply {
    /// Creates a reply that consists only of text.
    pub fn of_text(text: impl Into<String>) -> Self {
        Self {
            text: Arc::new(text.into()),
            finish: "stop".to_owned(),
            ..Self::default()
        }
    }
}

/// The usage, model version and tier of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spent {
    /// The tokens used, if the vendor reports them.
    pub usage: Option<Usage>,
    /// The model version that answered, if the vendor reports it.
    pub model_version: Option<String>,
    /// The service tier that answered, if the reply itself names it.
    pub tier: Option<Tier>,
}

/// The answer of a server that reported no error.
#[derive(Debug)]
pub struct Answer {
    /// The answer's JSON.
    pub json: Vec<u8>,
    /// The service tier named in the answer's headers.
    pub tier: Option<Tier>,
}
