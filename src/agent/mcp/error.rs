//! Errors from MCP servers, and their consequences for retries and for the work.

use std::fmt;
use std::time::Duration;

use miette::Diagnostic;
use serde_json::{Value, json};

use super::message::RpcError;
use crate::model::after_tries;
use crate::secret::Redactor;
use crate::sys::http::endpoint::EndpointProblem;
use crate::sys::http::retry::{Advice, is_retryable};
use crate::sys::interrupt::Interrupted;
use crate::sys::text::{cut, one_line};

/// Maximum length, in characters, of server output kept in an error.
const WORDS: usize = 4000;
/// Maximum length, in characters, of server output within a sentence.
const LINE: usize = 300;

/// Errors from naming and calling an MCP server. `server` is its URL without the query, or its program.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// The URL in an address is invalid.
    #[error(transparent)]
    Url(#[from] EndpointProblem),
    /// The query in an address is not valid in a URL.
    #[error("the query of `{0}` has characters that a URL cannot have")]
    Query(String),
    /// The command in an address is invalid.
    #[error("`{0}` is not a command: it is empty, or a quote is not closed")]
    Command(String),
    /// The run was interrupted by a signal.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// The server cannot be reached, or its answer is incomplete.
    #[error("no answer from the MCP server at `{server}`{}: {reason}", after_tries(*.tries))]
    NoAnswer {
        server: String,
        /// The cause.
        reason: String,
        /// The number of tries.
        tries: u32,
    },
    /// No answer came within the time limit of a call.
    #[error("the MCP server at `{server}` has not answered within {} s", .limit.as_secs_f64())]
    TimedOut { server: String, limit: Duration },
    /// The server or a proxy answered with an error status.
    #[error("the MCP server at `{server}` answers {status}{}{}", after_tries(*.tries), behind(.words))]
    Status {
        server: String,
        /// The HTTP status.
        status: u16,
        /// The message from the server.
        words: String,
        /// The number of tries.
        tries: u32,
    },
    /// The answer does not come from an MCP server that this client supports.
    #[error("the server at `{server}` does not speak MCP as expected: {problem}")]
    Protocol { server: String, problem: String },
    /// The server supports only other versions of the protocol.
    #[error("the MCP server at `{server}` speaks {versions}, which this client does not")]
    Version { server: String, versions: String },
    /// The next try would start after the time limit of the call.
    #[error("{source}; the next try is {} s away, beyond the time limit", .wait.as_secs_f64())]
    NoTimeLeft {
        /// The failure of the last try.
        source: Box<McpError>,
        /// The wait until the next try.
        wait: Duration,
    },
    /// The answer from this server is larger than 16 MB.
    #[error("the answer of the MCP server at `{0}` has more than 16 MB")]
    TooLarge(String),
    /// The server returned an error for the request.
    #[error("the MCP server says: {} ({})", .0.message, .0.code)]
    Server(RpcError),
    /// The tool reported a failure, in the words of the server.
    #[error("{0}")]
    Tool(String),
    /// A call failed that the server may have begun and that must not be repeated.
    #[error("{0}; the call may have begun, so it was not tried again")]
    Doubtful(#[source] Box<McpError>),
    /// The server's program cannot be started, or has ended.
    #[error("the MCP server `{program}` {reason}{}", behind(.output))]
    Program {
        /// The program's name.
        program: String,
        /// The cause, worded as the end of a sentence.
        reason: String,
        /// The last lines of its stderr; may be empty.
        output: String,
        /// Set if the program was started.
        was_started: bool,
    },
    /// A replayed run made a request that differs from the recorded one.
    #[error("{}", not_recorded(asked, recorded.as_deref()))]
    NotRecorded {
        /// The request made in the replay.
        asked: String,
        /// The recorded request; `None` at the end of the record.
        recorded: Option<String>,
    },
    /// The recorded error of a replayed run.
    #[error("{message}")]
    Replayed { message: String, is_lost: bool },
}

const RIGHT_URL: &str =
    "see that the URL is that of the server's MCP endpoint, as `https://host/mcp`";

impl Diagnostic for McpError {
    fn code(&self) -> Option<Box<dyn fmt::Display + '_>> {
        if let Self::Interrupted(interrupted) = self {
            return interrupted.code();
        }
        if matches!(self, Self::Url(_) | Self::Query(_) | Self::Command(_)) {
            return Some(Box::new("usage"));
        }
        let status = self
            .http_status()
            .map_or(String::new(), |status| format!("/{status}"));
        Some(Box::new(format!("mcp-failed/{}{status}", self.reason())))
    }

    fn help(&self) -> Option<Box<dyn fmt::Display + '_>> {
        Some(Box::new(match self {
            Self::Interrupted(interrupted) => return interrupted.help(),
            Self::Url(_) => {
                "name a server like `https://host/mcp`, or `http://localhost:8000/mcp`, or `stdio:npx some-server`"
            }
            Self::Query(_) => "escape them by `%` and two digits",
            Self::Command(_) => "write it like `stdio:npx some-server --flag`",
            Self::NoAnswer { .. } => "see that the server runs and the URL is right",
            Self::TimedOut { .. } | Self::NoTimeLeft { .. } => {
                "see what the server is doing, or give it more time with `--timeout`"
            }
            Self::Status { status, .. } => match status {
                401 | 403 | 407 => "set `MCP_BEARER_TOKEN` to a token that the server takes",
                408 | 429 | 500..=599 => "try again later, or see what the server says in its log",
                _ => RIGHT_URL,
            },
            Self::Protocol { .. } => RIGHT_URL,
            Self::Version { .. } => {
                "use a version of the server that speaks one of 2024-11-05 to 2026-07-28"
            }
            Self::TooLarge(_) => "ask for less",
            Self::Server(_) | Self::Tool(_) => {
                "`code-commit mcp tools` shows what the server's tools take"
            }
            Self::Doubtful(_) => "check on the server whether it has begun",
            Self::Program { was_started, .. } if *was_started => {
                "see why the server has ended, and run again"
            }
            Self::Program { .. } => "name a program that speaks MCP on stdin and stdout",
            Self::NotRecorded { .. } => {
                "the run was cut short there, or was made by another version of the program"
            }
            Self::Replayed { .. } => "the recorded run ended the same way",
        }))
    }
}

impl McpError {
    /// Returns the HTTP status, if the server or a proxy answered with an error status.
    fn http_status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } => Some(*status),
            Self::NoTimeLeft { source, .. } | Self::Doubtful(source) => source.http_status(),
            _ => None,
        }
    }

    /// Returns the reason's name in the contract.
    fn reason(&self) -> &'static str {
        match self {
            Self::NoAnswer { .. } | Self::TimedOut { .. } => "network",
            Self::Status {
                status: 429 | 500..,
                ..
            } => "busy",
            Self::NoTimeLeft { source, .. } => source.reason(),
            _ => "mcp-failed",
        }
    }

    /// Creates an error for an answer that violates the protocol.
    pub(super) fn protocol(server: &str, problem: impl Into<String>) -> Self {
        let (server, problem) = (server.to_owned(), problem.into());
        Self::Protocol { server, problem }
    }

    /// Creates an error for a request without an answer.
    pub(super) fn no_answer(server: &str, reason: impl Into<String>) -> Self {
        let (server, reason) = (server.to_owned(), reason.into());
        Self::NoAnswer {
            server,
            reason,
            tries: 1,
        }
    }

    /// Prepares the server's message for display: redacts keys first and then truncates, since truncating could leave
    /// part of a key.
    pub(super) fn for_display(mut self, redactor: &Redactor) -> Self {
        let (words, most) = match &mut self {
            Self::Status { words, .. } | Self::Protocol { problem: words, .. } => (words, LINE),
            Self::Server(RpcError { message: words, .. })
            | Self::Tool(words)
            | Self::Program { output: words, .. } => (words, WORDS),
            _ => return self,
        };
        *words = cut(&redactor.text(words), most).into_owned();
        self
    }

    /// Sets the number of tries, unless the error already has a higher one.
    pub(super) fn after(mut self, count: u32) -> Self {
        if let Self::NoAnswer { tries, .. } | Self::Status { tries, .. } = &mut self {
            *tries = count.max(*tries);
        }
        self
    }

    /// Returns whether no further request can be made: a signal arrived, or time is up.
    pub(super) fn is_final(&self) -> bool {
        matches!(
            self,
            Self::Interrupted(_) | Self::TimedOut { .. } | Self::NoTimeLeft { .. }
        )
    }

    /// Returns whether further calls to the server would fail as well. If not, the error can be reported to the model:
    /// it is the server's own message, or it is not known whether a call was begun.
    pub fn is_lost(&self) -> bool {
        match self {
            Self::Interrupted(_)
            | Self::NoAnswer { .. }
            | Self::TimedOut { .. }
            | Self::Program { .. }
            | Self::NotRecorded { .. } => true,
            // Other 4xx statuses concern the call only.
            Self::Status { status, .. } => {
                matches!(status, 401 | 403 | 404 | 407 | 408 | 429 | 500..=599)
            }
            Self::Replayed { is_lost, .. } => *is_lost,
            Self::NoTimeLeft { source, .. } => source.is_lost(),
            _ => false,
        }
    }

    /// Converts the error to its form in a run's record.
    pub(super) fn to_record(&self) -> Value {
        match self {
            Self::Server(error) => json!(error),
            error => json!({"message": error.to_string(), "lost": error.is_lost()}),
        }
    }

    /// Reads an error from a run's record.
    pub(super) fn from_record(record: Value) -> Self {
        let message = record["message"].as_str().unwrap_or_default().to_owned();
        let is_lost = record["lost"] == true;
        let text = serde_json::from_value(record).map(Self::Server);
        text.unwrap_or(Self::Replayed { message, is_lost })
    }
}

/// The way to retry a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    /// No retry: another try would fail the same way.
    Never,
    /// A retry after this time; `None` means the usual delay.
    After(Option<Duration>),
    /// An immediate retry in a new session, since the old one has expired.
    InNewSession,
}

/// A failed try.
#[derive(Debug)]
pub(super) struct Failed {
    pub error: McpError,
    /// Set if the server may have begun the request but has not answered.
    pub is_doubtful: bool,
    pub retry: Retry,
    /// Set if no further request can be made in this session.
    pub ends_session: bool,
    /// The HTTP status, if the server answered with an error status.
    pub status: Option<u16>,
}

impl Failed {
    /// Creates a failure from the server's own answer; it is not retried.
    pub fn answered(error: McpError) -> Self {
        Self {
            error,
            is_doubtful: false,
            retry: Retry::Never,
            ends_session: false,
            status: None,
        }
    }

    /// Creates a failure for an answer with an error status.
    pub fn refused(error: McpError, status: u16, advice: &Advice) -> Self {
        let may_pass = is_retryable(status, advice);
        Self {
            is_doubtful: matches!(status, 408 | 409 | 500..=502 | 504..=599),
            retry: if may_pass {
                Retry::After(advice.wait)
            } else {
                Retry::Never
            },
            status: Some(status),
            ..Self::answered(error)
        }
    }

    /// Creates a failure of a request that may have begun, and timed out or got an unusable answer.
    pub fn lost(error: McpError) -> Self {
        Self {
            is_doubtful: true,
            ..Self::answered(error)
        }
    }

    /// Creates a failure of a request that may have begun; it is retried if it may be repeated.
    pub fn broken(error: McpError) -> Self {
        Self {
            is_doubtful: true,
            ..Self::unbegun(error)
        }
    }

    /// Creates a failure of a request that was not begun.
    pub fn unbegun(error: McpError) -> Self {
        Self {
            retry: Retry::After(None),
            ..Self::answered(error)
        }
    }

    /// Creates a failure for an expired session; the request was not begun.
    pub fn session_gone(error: McpError) -> Self {
        Self {
            retry: Retry::InNewSession,
            ..Self::answered(error).ending()
        }
    }

    /// Marks the session as unusable for further requests.
    pub fn ending(self) -> Self {
        Self {
            ends_session: true,
            ..self
        }
    }

    /// Sets the number of tries and rules out another.
    pub fn for_good(self, tries: u32) -> Self {
        Self {
            error: self.error.after(tries),
            retry: Retry::Never,
            ..self
        }
    }
}

impl From<Interrupted> for Failed {
    fn from(interrupted: Interrupted) -> Self {
        Self::lost(interrupted.into())
    }
}

impl From<RpcError> for Failed {
    fn from(error: RpcError) -> Self {
        Self::answered(McpError::Server(error))
    }
}

/// Returns the message of an error response on one line: the one in its JSON, or else its text; may be empty.
pub(super) fn words(body: &[u8]) -> String {
    let Ok(json) = serde_json::from_slice::<Value>(body) else {
        let text = String::from_utf8_lossy(&body[..body.len().min(64 << 10)]);
        return one_line(&text, usize::MAX);
    };
    let fields = [
        &json["error"]["message"],
        &json["message"],
        &json["error_description"],
        &json["detail"],
        &json["error"],
    ];
    let reply = fields.into_iter().find_map(Value::as_str);
    one_line(reply.unwrap_or(&json.to_string()), usize::MAX)
}

fn not_recorded(asked: &str, recorded: Option<&str>) -> String {
    match recorded {
        None => format!("the recorded run's `mcp.jsonl` ends before {asked} is answered"),
        Some(recorded) => {
            format!(
                "according to its `mcp.jsonl`, the recorded run asked for {recorded} here, not for {asked}"
            )
        }
    }
}

/// Puts a colon before a text that is not empty.
fn behind(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!(": {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_of_a_proxy_is_reported_in_one_line() {
        for (body, expected) in [
            ("", ""),
            ("Not Found\n", "Not Found"),
            (r#"{"detail": "Not Found"}"#, "Not Found"),
            (
                r#"{"error": "invalid_token", "error_description": "expired"}"#,
                "expired",
            ),
            (r#"{"error": {"message": "no"}}"#, "no"),
            (r#"{"a": 1}"#, r#"{"a":1}"#),
            ("\n<title>502\nBad</title>", "<title>502 Bad</title>"),
        ] {
            assert_eq!(words(body.as_bytes()), expected, "{body}");
        }
    }

    #[test]
    fn an_error_is_replayed_as_it_was() {
        let data = json!({"supported": ["2026-07-28"]});
        let server = |message: &str| RpcError {
            code: -32022,
            message: message.to_owned(),
            data: data.clone(),
        };
        let error = McpError::Server(server("no"));
        let again = McpError::from_record(error.to_record());
        assert!(matches!(again, McpError::Server(error) if error == server("no")));
        let lost = McpError::no_answer("s", "reset").after(5);
        let doubtful = McpError::Doubtful(Box::new(McpError::no_answer("s", "reset")));
        for error in [lost, doubtful] {
            let again = McpError::from_record(error.to_record());
            assert_eq!(again.to_string(), error.to_string());
            assert_eq!(again.is_lost(), error.is_lost());
        }
    }
}
