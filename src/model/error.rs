//! Errors that can occur between sending a request and having a whole reply.

mod hint;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;
use std::{fmt, io};

use memchr::memmem;
use miette::Diagnostic;
use regex::Regex;

use super::reply::{End, Spent};
use super::setup::Setup;
use super::vendor_error::{FailureKind, VendorError};
use crate::sys::http::HttpError;
use crate::sys::http::endpoint::Endpoint;
use crate::sys::interrupt::Interrupted;
use crate::sys::text;

/// Maximum size of an answer, in bytes.
pub(super) const ANSWER_LIMIT: u64 = 256 << 20;

/// Errors from asking a model.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The vendor answered with an error status.
    #[error("the model's server answered `{status}`{}{}", vendor_sentence(.vendor), after_tries(*.tries))]
    Status {
        /// The HTTP status.
        status: u16,
        /// The error reported in the answer.
        vendor: VendorError,
        /// The requested model, by the vendor's name.
        model: String,
        /// The number of tries made.
        tries: u32,
        /// The answer's body.
        answer: Box<[u8]>,
        /// The configuration of the call.
        setup: Setup,
    },
    /// A redirect, which is never followed: the key would travel with it.
    #[error("the model's server answered `{status}`, a redirect to `{location}`")]
    Redirect { status: u16, location: String },
    /// The connection could not be established, or was lost.
    #[error("the connection to `{host}` failed: {reason}{}", after_tries(*.tries))]
    Connection {
        /// The server's host.
        host: String,
        /// The cause of the last failure.
        reason: String,
        /// The number of tries made.
        tries: u32,
        /// True if the server may have got the request.
        is_sent: bool,
    },
    /// No server listens at the given address on this machine.
    #[error("no model's server listens at `{url}`: {reason}")]
    NobodyListens { url: String, reason: String },
    /// No secure connection could be made, for instance because of the server's certificate.
    #[error("no secure connection to `{host}`: {reason}")]
    Tls { host: String, reason: String },
    /// A failure that retrying does not fix: not HTTP, or a request that cannot be built.
    #[error("the call to `{host}` failed: {reason}")]
    Protocol { host: String, reason: String },
    /// The time limit for the call, all retries included, has passed.
    #[error("the model did not finish its answer within {}", human_duration(*.0))]
    TimedOut(Duration),
    /// The next try would come after the time limit for the call.
    #[error(
        "{error}; the next try would be in {}, after the call's time limit",
        human_duration(*.wait)
    )]
    NoTimeLeft {
        /// The error of the last try.
        error: Box<ModelError>,
        /// The time until the next try.
        wait: Duration,
    },
    /// The answer exceeds the maximum size.
    #[error("the model's answer is larger than {} MiB", ANSWER_LIMIT >> 20)]
    TooLarge,
    /// The answer has no body.
    #[error("the model's answer has no content at all")]
    NoBody,
    /// The answer is not a JSON object: it is compressed, not UTF-8, or an array.
    #[error("the model's answer {0}")]
    Malformed(String),
    /// The answer is not JSON, or is not in the vendor's format.
    #[error(
        "the model's answer {}: {source}; it begins `{snippet}`",
        if .source.is_eof() { "ends in the middle of its JSON" } else { "is not the JSON that was expected" }
    )]
    NotJson {
        /// The start of the answer, truncated.
        snippet: String,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// The answer reports an error despite a success status.
    #[error("the model's answer reports an error{}", vendor_sentence(.0))]
    ErrorInAnswer(VendorError),
    /// The prompt was blocked.
    #[error("the model's vendor blocked the prompt: `{finish}`")]
    Blocked { finish: String, spent: Box<Spent> },
    /// The model refused to answer.
    #[error("the model refused to answer: {message}")]
    Refused {
        /// The model's words.
        message: String,
        /// The vendor's finish reason.
        finish: String,
        /// The usage of the call.
        spent: Box<Spent>,
    },
    /// The answer has no candidate, or one without text.
    #[error("the model's answer has no text (it ended with `{finish}`)")]
    Empty { finish: String, spent: Box<Spent> },
    /// The reply did not end normally.
    #[error("the model's reply is incomplete: it ended with `{finish}`{}", detail(.message.as_deref()))]
    CutShort {
        /// The vendor's finish reason.
        finish: String,
        /// The meaning of the finish reason.
        end: End,
        /// The vendor's message, if there is one.
        message: Option<String>,
        /// The usage of the call.
        spent: Box<Spent>,
    },
    /// The reply is a list of edits that is incomplete by its own account.
    #[error("the model's reply is incomplete: {why}")]
    Incomplete {
        /// The missing part.
        why: String,
        /// The vendor's finish reason.
        finish: String,
        /// The usage of the call.
        spent: Box<Spent>,
    },
    /// A model other than the requested one answered, which the user does not allow.
    #[error("`{asked}` was asked, but `{served}` answered")]
    OtherModel {
        /// The requested model, by the vendor's name.
        asked: String,
        /// The model that answered, by the vendor's name.
        served: String,
        /// The vendor's finish reason.
        finish: String,
        /// The usage of the call.
        spent: Box<Spent>,
    },
    /// The reply has no finish reason, so it may be incomplete.
    #[error("the model's reply has no finish reason: it may be cut short")]
    Unfinished,
    /// The recorded run contains an error instead of this reply.
    #[error("{message}")]
    Recorded {
        /// The recorded message.
        message: String,
        /// The recorded hint.
        hint: String,
        /// The recorded reason, in the form of an error's code.
        reason: String,
        /// True if the recorded call cost nothing.
        is_free: bool,
    },
    /// The recorded run does not contain this reply.
    #[error("the recorded run has no `{0}`")]
    NotRecorded(String),
    /// A recorded reply cannot be read.
    #[error("cannot read `{}`: {source}", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// A signal ended the call.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl Diagnostic for ModelError {
    fn code(&self) -> Option<Box<dyn fmt::Display + '_>> {
        match self {
            Self::Interrupted(interrupted) => interrupted.code(),
            _ if self.is_local() => None,
            _ => {
                let detail = |status| format!("/{status}");
                let status = self.http_status().map_or(String::new(), detail);
                Some(Box::new(format!("model-failed/{}{status}", self.reason())))
            }
        }
    }

    fn help(&self) -> Option<Box<dyn fmt::Display + '_>> {
        Some(Box::new(self.hint()))
    }
}

impl ModelError {
    /// Returns the HTTP status, if the vendor answered with an error status.
    fn http_status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } | Self::Redirect { status, .. } => Some(*status),
            Self::NoTimeLeft { error, .. } => error.http_status(),
            _ => None,
        }
    }

    /// Returns whether the vendor reports an error of this kind.
    fn says(&self, is_it: impl Fn(&VendorError) -> bool) -> bool {
        matches!(self, Self::Status { vendor, .. } | Self::ErrorInAnswer(vendor) if is_it(vendor))
    }

    /// Returns the reason's name in the contract, followed by `/later` or `/never` if, unlike for other errors with
    /// this reason, a retry may succeed or cannot.
    fn reason(&self) -> &str {
        match self {
            Self::Status { .. } if self.refuses_key() => "key-rejected",
            Self::Status { status: 413, .. } => "window",
            _ if self.says(VendorError::is_flagged) => "refused",
            Self::Status { .. } | Self::ErrorInAnswer(_) if self.is_context_exceeded() => "window",
            _ if self.says(VendorError::is_refilled) => "busy",
            _ if self.says(|vendor| vendor.quota_spent) => "quota",
            Self::Status {
                status: 429 | 500..,
                ..
            } => "busy",
            Self::ErrorInAnswer(vendor) if vendor.may_pass() => "busy",
            Self::NoTimeLeft { error, .. } => error.reason(),
            Self::Status { status: 408, .. }
            | Self::Connection { .. }
            | Self::NobodyListens { .. }
            | Self::TimedOut(_) => "network",
            Self::Tls { .. } => "network/never",
            Self::Blocked { .. }
            | Self::Refused { .. }
            | Self::CutShort {
                end: End::Refused, ..
            } => "refused",
            Self::CutShort { .. } | Self::TooLarge => "cut-short",
            Self::NoBody | Self::Empty { .. } | Self::Unfinished | Self::Incomplete { .. } => {
                "cut-short/later"
            }
            Self::OtherModel { .. } => "other-model",
            Self::NotRecorded(_) => "missing-input",
            Self::Recorded { reason, .. } => reason,
            _ => "server",
        }
    }

    /// Adds the configuration of the call, on which hints depend.
    pub fn with_setup(mut self, known: Setup) -> Self {
        let last = match &mut self {
            Self::NoTimeLeft { error, .. } => &mut **error,
            error => error,
        };
        if let Self::Status { setup, .. } = last {
            *setup = known;
        }
        self
    }

    /// Sets the number of tries made.
    pub(super) fn after(mut self, count: u32) -> Self {
        if let Self::Status { tries, .. } | Self::Connection { tries, .. } = &mut self {
            *tries = count;
        }
        self
    }

    /// Describes the error briefly, for the notice that precedes the next try.
    pub(super) fn brief(&self) -> String {
        match self {
            Self::Status { status, .. } => format!("the server answered {status}"),
            Self::Connection { reason, .. } => format!("the connection failed: {reason}"),
            _ => self.to_string(),
        }
    }

    /// Returns whether the call costs nothing, because the vendor generated nothing that it charges for.
    pub fn costs_nothing(&self) -> bool {
        match self {
            Self::Connection { is_sent, .. } => !is_sent,
            Self::Recorded { is_free, .. } => *is_free,
            // Nothing was generated.
            Self::Blocked { spent, .. } => spent.usage.is_none(),
            Self::NoTimeLeft { error, .. } => error.costs_nothing(),
            Self::Status { .. }
            | Self::Redirect { .. }
            | Self::NobodyListens { .. }
            | Self::Tls { .. } => true,
            _ => false,
        }
    }

    /// Returns the finish reason and usage of a reply that is not whole.
    pub fn spent(&self) -> Option<(&str, &Spent)> {
        match self {
            Self::CutShort { finish, spent, .. }
            | Self::Incomplete { finish, spent, .. }
            | Self::OtherModel { finish, spent, .. }
            | Self::Refused { finish, spent, .. }
            | Self::Blocked { finish, spent }
            | Self::Empty { finish, spent } => Some((finish, spent)),
            _ => None,
        }
    }

    /// Returns the vendor's answer in place of a reply, if it is JSON.
    pub fn answer(&self) -> Option<&[u8]> {
        let answer = match self {
            Self::Status { answer, .. } => answer,
            Self::NoTimeLeft { error, .. } => return error.answer(),
            _ => return None,
        };
        serde_json::from_slice::<serde::de::IgnoredAny>(text::without_mark(answer)).ok()?;
        Some(answer)
    }

    /// Returns whether the server is overloaded at present; another model may have capacity.
    pub fn is_overload(&self) -> bool {
        match self {
            Self::Status { status, vendor, .. } => {
                matches!(status, 429 | 503 | 529) && !vendor.quota_spent
            }
            Self::ErrorInAnswer(vendor) => {
                vendor.failure == FailureKind::Overload && vendor.may_pass()
            }
            Self::NoTimeLeft { error, .. } => error.is_overload(),
            _ => false,
        }
    }

    /// Returns whether the server refuses a tier other than the standard one: it has no capacity for it at present, or
    /// does not support it.
    pub fn refuses_tier(&self) -> bool {
        match self {
            Self::Status {
                status: 400 | 422,
                answer,
                ..
            } => {
                let names = |name| memmem::find(answer, name).is_some();
                names(b"service_tier".as_slice()) || names(b"serviceTier")
            }
            Self::Status { vendor, .. } => self.is_overload() && !vendor.is_rate_limit,
            _ => false,
        }
    }

    /// Returns whether the vendor rejected the key.
    pub fn refuses_key(&self) -> bool {
        let is_it = |status, vendor: &VendorError| {
            vendor.bad_key || status == 401 || status == 403 && !vendor.is_flagged()
        };
        matches!(self, Self::Status { status, vendor, .. } if is_it(*status, vendor))
    }

    /// Returns the configuration of the call that failed.
    pub fn setup(&self) -> Option<&Setup> {
        match self {
            Self::Status { setup, .. } => Some(setup),
            _ => None,
        }
    }

    /// Returns whether the model or its vendor refused to answer.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Blocked { .. } | Self::Refused { .. } => true,
            Self::CutShort { end, .. } => *end == End::Refused,
            _ => self.says(VendorError::is_flagged),
        }
    }

    /// Returns whether the failure is this machine's, not the model's.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Unreadable { .. })
    }

    /// Returns whether the model gave less than a whole reply, and may do better when asked again.
    pub fn is_incomplete_reply(&self) -> bool {
        match self {
            Self::NoBody | Self::Empty { .. } | Self::Unfinished | Self::Incomplete { .. } => true,
            Self::CutShort { end, .. } => matches!(end, End::MaxTokens | End::ToolCalls),
            _ => false,
        }
    }

    /// Returns whether the vendor says that the same request will fail again.
    pub fn is_bad_request(&self) -> bool {
        match self {
            Self::Status { status, vendor, .. } => {
                let is_final = matches!(status, 400 | 413) || vendor.asks_too_much();
                is_final && !vendor.quota_spent && vendor.hint.is_none()
            }
            Self::ErrorInAnswer(vendor) => vendor.failure == FailureKind::BadRequest,
            _ => false,
        }
    }

    /// Returns whether the model or its server takes no tool calls.
    pub fn refuses_tools(&self) -> bool {
        self.says(VendorError::refuses_tools)
    }

    /// Returns whether the vendor says that the prompt exceeds the model's context window.
    pub fn is_context_exceeded(&self) -> bool {
        match self {
            Self::Status {
                status: 429,
                vendor,
                ..
            } => vendor.asks_too_much(),
            Self::Status {
                status: 400 | 413, ..
            }
            | Self::ErrorInAnswer(_)
            // A recorded error consists of its message alone.
            | Self::Recorded { .. } => CONTEXT_EXCEEDED.is_match(&self.to_string()),
            Self::CutShort { finish, .. } => CONTEXT_EXCEEDED.is_match(finish),
            _ => false,
        }
    }

    /// Converts the error of a call to `endpoint`, whose time limit was `timeout`.
    pub(super) fn of_call(error: HttpError, endpoint: &Endpoint, timeout: Duration) -> Self {
        let host = endpoint.host().to_owned();
        let connection = |host, reason, is_sent| Self::Connection {
            host,
            reason,
            tries: 1,
            is_sent,
        };
        match error {
            HttpError::Interrupted(interrupted) => Self::Interrupted(interrupted),
            HttpError::TimedOut => Self::TimedOut(timeout),
            HttpError::NoConnection { reason, .. } => connection(host, reason, false),
            HttpError::Broken(reason) => connection(host, reason, true),
            HttpError::Tls(reason) => Self::Tls { host, reason },
            HttpError::Protocol(reason) => Self::Protocol { host, reason },
            HttpError::Redirect { status, location } => Self::Redirect { status, location },
            HttpError::Compressed(encoding) => Self::Malformed(format!(
                "is compressed as `{encoding}`, which was not asked for"
            )),
            HttpError::TooLarge(_) => Self::TooLarge,
        }
    }

    /// Creates the error for an answer that cannot be parsed.
    pub(super) fn not_json(answer: &[u8], source: serde_json::Error) -> Self {
        let snippet = Self::snippet(answer);
        Self::NotJson { snippet, source }
    }

    /// Returns the start of an answer, on one line.
    pub(super) fn snippet(bytes: &[u8]) -> String {
        const LENGTH: usize = 200;
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LENGTH)]).into_owned();
        let ellipsis = if bytes.len() > LENGTH { "…" } else { "" };
        format!("{}{ellipsis}", text.escape_debug())
    }
}

/// Matches the vendors' codes and messages for a prompt that exceeds the context window: those of OpenAI and compatible
/// servers, Gemini, Anthropic, llama.cpp and LM Studio.
static CONTEXT_EXCEEDED: LazyLock<Regex> = LazyLock::new(|| {
    text::regex(concat!(
        "(?i)context_length_exceeded|exceed_context_size_error|maximum context length|model_max_prompt_tokens_exceeded",
        "|exceeds? the (?:available |model's )?context (?:size|length|window)|exceeds the maximum number of tokens",
        "|context[ _](?:size|length|window)[ _](?:is |has been )?exceeded|prompt is too long|greater than the context length",
        "|exceeds? (?:the )?context limit|request_too_large|input token count.{0,40} exceeds"
    ))
});

fn vendor_sentence(vendor: &VendorError) -> String {
    let code = vendor
        .code
        .iter()
        .map(|code| format!(" `{}`", one_line(code)));
    code.chain([detail(vendor.message.as_deref())]).collect()
}

fn detail(message: Option<&str>) -> String {
    message.map_or(String::new(), |message| format!(": {}", one_line(message)))
}

/// Says how often something was tried, unless it was only once.
pub(crate) fn after_tries(count: u32) -> String {
    match count {
        0 | 1 => String::new(),
        _ => format!(" (after {count} tries)"),
    }
}

/// Puts a vendor's text on one line, for use within a sentence.
pub(super) fn one_line(text: &str) -> String {
    text::one_line(text, 1000)
}

/// Formats a duration the way flags take it: `90s`, `30m`, `1h`.
pub(crate) fn human_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{}ms", duration.as_millis()),
        _ if seconds.is_multiple_of(3600) => format!("{}h", seconds / 3600),
        _ if seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}
