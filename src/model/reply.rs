//! A whole answer. Plain data.

use std::sync::Arc;

use super::message::{Call, ReplyPart};
use super::tier::Tier;
use super::usage::Usage;

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
