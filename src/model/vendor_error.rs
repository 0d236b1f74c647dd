//! The error that a vendor reports, and what it means for the call. Plain data.

use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;

use crate::sys::text;

/// An error, as reported by the vendor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VendorError {
    /// The vendor's code, such as `RESOURCE_EXHAUSTED` or `insufficient_quota`.
    pub code: Option<String>,
    /// The vendor's message.
    pub message: Option<String>,
    /// The time to wait before the next try.
    pub(super) retry_delay: Option<Duration>,
    /// True if a quota is exhausted that waiting does not replenish.
    pub(super) quota_spent: bool,
    /// True if requests come too often, as opposed to the server being overloaded.
    pub(super) is_rate_limit: bool,
    /// True if the key is invalid.
    pub bad_key: bool,
    /// The kind of failure that an answer with a success status reports.
    pub failure: FailureKind,
    /// Advice for the user, if it differs from other vendors'.
    pub(super) hint: Option<&'static str>,
}

/// A kind of failure, judging by the vendor's code alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FailureKind {
    /// The server is overloaded.
    Overload,
    /// Another failure that may be over at the next try.
    Transient,
    /// The same request will fail again.
    BadRequest,
    /// Any other failure.
    #[default]
    Other,
}

impl FailureKind {
    /// Maps an error code to a kind of failure: a word of Anthropic's, OpenAI's or Google's, which proxies in front of
    /// them pass on, or the status that the answer would have had, as OpenRouter sends it.
    pub(super) fn of(code: Option<&str>) -> Self {
        const OVERLOAD: &str =
            "overloaded_error rate_limit_error rate_limit_exceeded RESOURCE_EXHAUSTED UNAVAILABLE";
        const TRANSIENT: &str = "api_error timeout_error server_error DEADLINE_EXCEEDED INTERNAL";
        let code = code.unwrap_or_default();
        let is_among = |words: &str| words.split(' ').any(|word| word == code);
        match code.parse().unwrap_or_default() {
            429 | 503 | 529 => Self::Overload,
            408 | 500..=599 => Self::Transient,
            400 | 413 => Self::BadRequest,
            _ if is_among(OVERLOAD) => Self::Overload,
            _ if is_among(TRANSIENT) => Self::Transient,
            _ if code == "invalid_request_error" => Self::BadRequest,
            _ => Self::Other,
        }
    }
}

impl VendorError {
    /// Applies what the status says: some vendors report exhausted credits only by the status or a message.
    pub(super) fn with_status(mut self, status: u16) -> Self {
        let is_spent =
            |text: &Option<String>| text.as_deref().is_some_and(|text| SPENT.is_match(text));
        let may_say =
            matches!(status, 400 | 429) && (is_spent(&self.code) || is_spent(&self.message));
        if status == 402 || may_say {
            (self.quota_spent, self.is_rate_limit) = (true, false);
        }
        self
    }

    /// Returns whether a single request exceeds the limit per minute, so waiting does not help.
    pub(super) fn asks_too_much(&self) -> bool {
        let message = self.message.as_deref();
        message.is_some_and(|message| message.starts_with("Request too large"))
    }

    /// Returns whether the prompt was rejected for its content.
    pub(super) fn is_flagged(&self) -> bool {
        matches!(
            self.code.as_deref(),
            Some("invalid_prompt" | "content_policy_violation" | "content_filter")
        )
    }

    /// Returns whether the model or its server takes no tool calls, by the words of Ollama, OpenRouter, Together, vLLM
    /// and llama.cpp.
    pub(super) fn refuses_tools(&self) -> bool {
        let words = [
            "support tool",
            "support function",
            "tool choice requires",
            "tools param requires",
        ];
        let message = self.message.as_deref().unwrap_or_default();
        words.iter().any(|words| message.contains(words))
    }

    /// Returns whether the spent quota is one that is refilled every day.
    pub(super) fn is_refilled(&self) -> bool {
        self.quota_spent && self.is_rate_limit
    }

    /// Returns whether an error in an answer with a success status is transient.
    pub(super) fn may_pass(&self) -> bool {
        let is_transient = matches!(self.failure, FailureKind::Overload | FailureKind::Transient);
        is_transient && !self.quota_spent && !self.asks_too_much()
    }
}

/// Matches the vendors' codes and messages for credits that are used up.
static SPENT: LazyLock<Regex> = LazyLock::new(|| {
    text::regex(concat!(
        "(?i)insufficient_quota|insufficient credits?|specified \\w+ usage limits",
        "|credits?(?: balance)? (?:is|are|has been|have been) (?:depleted|exhausted|used up|too low)"
    ))
});
