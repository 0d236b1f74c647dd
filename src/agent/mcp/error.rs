//! Errors of a server, and what they mean for the work and for another try.

use std::time::Duration;

use serde_json::{Value, json};

use super::message::RpcError;
use crate::secret::Redactor;
use crate::sys::interrupt::Interrupted;
use crate::sys::text::{cut, one_line};

/// Characters kept of a server's words in the place of a result.
const WORDS: usize = 4000;
/// Characters of them where they stand in a sentence.
const LINE: usize = 300;

/// Errors in the place of a result.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum McpError {
    /// A signal came.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Interrupted(#[from] Interrupted),
    /// The server cannot be reached, or has not answered to the end.
    #[error("no answer from the MCP server at `{server}`{}: {reason}", after_tries(*.tries))]
    #[diagnostic(
        code("mcp-failed"),
        help("see that the server runs and the URL is right")
    )]
    NoAnswer {
        /// The server, without its query.
        server: String,
        /// The cause.
        reason: String,
        /// The number of tries.
        tries: u32,
    },
    /// There was no answer within the time that a call may take.
    #[error("the MCP server at `{server}` has not answered within {} s", .limit.as_secs_f64())]
    #[diagnostic(code("mcp-failed"), help("{MORE_TIME}"))]
    TimedOut {
        /// The server.
        server: String,
        /// The time that a call may take, its retries included.
        limit: Duration,
    },
    /// An answer with an error's status, from the server or from a proxy.
    #[error("the MCP server at `{server}` answers {status}{}{}", after_tries(*.tries), behind(.words))]
    #[diagnostic(code("mcp-failed"), help("{}", status_hint(*status)))]
    Status {
        /// The server.
        server: String,
        /// The HTTP status.
        status: u16,
        /// The server's words.
        words: String,
        /// The number of tries.
        tries: u32,
    },
    /// The answer is not that of an MCP server that this client can speak to.
    #[error("the server at `{server}` does not speak MCP as expected: {problem}")]
    #[diagnostic(code("mcp-failed"), help("{RIGHT_URL}"))]
    Protocol {
        /// The server.
        server: String,
        /// The fault.
        problem: String,
    },
    /// The server speaks other versions of the protocol.
    #[error("the MCP server at `{server}` speaks {versions}, which this client does not")]
    #[diagnostic(
        code("mcp-failed"),
        help("use a version of the server that speaks one of 2024-11-05 to 2026-07-28")
    )]
    Version {
        /// The server.
        server: String,
        /// The versions that it names.
        versions: String,
    },
    /// The next try would come when the time for the call is over.
    #[error("{source}; the next try is {} s away, beyond the time limit", .wait.as_secs_f64())]
    #[diagnostic(code("mcp-failed"), help("{MORE_TIME}"))]
    NoTimeLeft {
        /// The failure of the last try.
        source: Box<McpError>,
        /// The wait until the next.
        wait: Duration,
    },
    /// An answer of more than 16 MB.
    #[error("the answer of the MCP server at `{server}` has more than 16 MB")]
    #[diagnostic(code("mcp-failed"), help("ask for less"))]
    TooLarge {
        /// The server.
        server: String,
    },
    /// The server says that it cannot do what it is asked for.
    #[error("the MCP server says: {} ({})", .0.message, .0.code)]
    #[diagnostic(code("mcp-failed"), help("{SHOWS_TOOLS}"))]
    Server(RpcError),
    /// The tool has failed.
    #[error("{message}")]
    #[diagnostic(code("mcp-failed"), help("{SHOWS_TOOLS}"))]
    Tool {
        /// The server's words.
        message: String,
    },
    /// A call failed that the server may have begun, and that must not be done twice.
    #[error("{source}; whether the call was begun is not known, so it was not tried again")]
    #[diagnostic(code("mcp-failed"), help("see on the server whether it was begun"))]
    Doubtful {
        /// The failure.
        source: Box<McpError>,
    },
    /// The program that is to be the server cannot be started, or has ended.
    #[error("the MCP server `{program}` {reason}{}", behind(.output))]
    #[diagnostic(code("mcp-failed"), help("{}", program_hint(*was_started)))]
    Program {
        /// The program.
        program: String,
        /// The cause, as the end of a sentence.
        reason: String,
        /// The end of what it has said on stderr; may be "".
        output: String,
        /// Set if it was started.
        was_started: bool,
    },
    /// A run that is replayed has asked for something else then.
    #[error("{}", not_recorded(asked, recorded.as_deref()))]
    #[diagnostic(
        code("mcp-failed"),
        help("the run was cut short there, or was made by another version of the program")
    )]
    NotRecorded {
        /// The request now.
        asked: String,
        /// The request in the record; `None` at its end.
        recorded: Option<String>,
    },
    /// The error of the run that is replayed.
    #[error("{message}")]
    #[diagnostic(code("mcp-failed"), help("the recorded run has ended so, too"))]
    Replayed {
        /// The error's text.
        message: String,
        /// As [`is_lost`](Self::is_lost) was.
        is_lost: bool,
    },
}

const MORE_TIME: &str = "see what the server is doing, or give it more time with `--timeout`";
const RIGHT_URL: &str =
    "see that the URL is that of the server's MCP endpoint, as `https://host/mcp`";
const SHOWS_TOOLS: &str = "`code-commit mcp tools` shows what the server's tools take";

fn status_hint(status: u16) -> &'static str {
    match status {
        401 | 403 | 407 => "set `MCP_BEARER_TOKEN` to a token that the server takes",
        408 | 429 | 500..=599 => "try again later, or see what the server says in its log",
        _ => RIGHT_URL,
    }
}

fn program_hint(was_started: bool) -> &'static str {
    if was_started {
        "see why the server has ended, and run again"
    } else {
        "name a program that speaks MCP on stdin and stdout"
    }
}

impl McpError {
    /// An answer that is not what it should be.
    pub(super) fn protocol(server: &str, problem: impl Into<String>) -> Self {
        let (server, problem) = (server.to_owned(), problem.into());
        Self::Protocol { server, problem }
    }

    /// Nothing has answered.
    pub(super) fn no_answer(server: &str, reason: impl Into<String>) -> Self {
        let (server, reason) = (server.to_owned(), reason.into());
        Self::NoAnswer {
            server,
            reason,
            tries: 1,
        }
    }

    /// Makes its words fit to be shown: without keys, and bounded after that, since a cut through a key
    /// would leave a part of it.
    pub(super) fn fit(mut self, redactor: &Redactor) -> Self {
        let (words, most) = match &mut self {
            Self::Status { words, .. } | Self::Protocol { problem: words, .. } => (words, LINE),
            Self::Server(RpcError { message: words, .. })
            | Self::Tool { message: words }
            | Self::Program { output: words, .. } => (words, WORDS),
            _ => return self,
        };
        *words = cut(&redactor.text(words), most).into_owned();
        self
    }

    /// Notes the number of tries, unless it knows of more.
    pub(super) fn after(mut self, count: u32) -> Self {
        if let Self::NoAnswer { tries, .. } | Self::Status { tries, .. } = &mut self {
            *tries = count.max(*tries);
        }
        self
    }

    /// Reports whether nothing can follow: a signal came, or the time is over.
    pub(super) fn is_final(&self) -> bool {
        matches!(
            self,
            Self::Interrupted(_) | Self::TimedOut { .. } | Self::NoTimeLeft { .. }
        )
    }

    /// Reports whether the server is lost to the work: no further call would fare better. Else it is something that a model
    /// can be told: what the server has said, or that it is not known whether a call was begun.
    pub fn is_lost(&self) -> bool {
        match self {
            Self::Interrupted(_)
            | Self::NoAnswer { .. }
            | Self::TimedOut { .. }
            | Self::Program { .. }
            | Self::NotRecorded { .. } => true,
            // The rest of 4xx is about the call.
            Self::Status { status, .. } => {
                matches!(status, 401 | 403 | 404 | 407 | 408 | 429 | 500..=599)
            }
            Self::Replayed { is_lost, .. } => *is_lost,
            Self::NoTimeLeft { source, .. } => source.is_lost(),
            _ => false,
        }
    }

    /// The error as a run's record has it.
    pub(super) fn to_record(&self) -> Value {
        match self {
            Self::Server(error) => json!(error),
            error => json!({"message": error.to_string(), "lost": error.is_lost()}),
        }
    }

    /// The error that a run's record has.
    pub(super) fn from_record(record: Value) -> Self {
        let message = record["message"].as_str().unwrap_or_default().to_owned();
        let is_lost = record["lost"] == true;
        let said = serde_json::from_value(record).map(Self::Server);
        said.unwrap_or(Self::Replayed { message, is_lost })
    }
}

/// The way on after a request that has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    /// Nothing: another try would fare no better.
    Never,
    /// Another try after so long; `None`: as long as is usual.
    After(Option<Duration>),
    /// Another try in a new session, at once: the old one is gone.
    InNewSession,
}

/// One try that has failed.
#[derive(Debug)]
pub(super) struct Failed {
    pub error: McpError,
    /// Set if the server may have begun what it was asked for, and has not answered.
    pub is_doubtful: bool,
    pub retry: Retry,
    /// Set if nothing more can be asked in this session.
    pub ends_session: bool,
    /// The status of the answer, where it was one of an error.
    pub status: Option<u16>,
}

impl Failed {
    /// The server has answered so; that is final.
    pub fn answered(error: McpError) -> Self {
        Self {
            error,
            is_doubtful: false,
            retry: Retry::Never,
            ends_session: false,
            status: None,
        }
    }

    /// A request that may have begun, whose time is over or whose answer is useless.
    pub fn lost(error: McpError) -> Self {
        Self {
            is_doubtful: true,
            ..Self::answered(error)
        }
    }

    /// A request that may have begun; it is tried again if it may be made twice.
    pub fn broken(error: McpError) -> Self {
        Self {
            is_doubtful: true,
            ..Self::unbegun(error)
        }
    }

    /// A request that has not begun.
    pub fn unbegun(error: McpError) -> Self {
        Self {
            retry: Retry::After(None),
            ..Self::answered(error)
        }
    }

    /// The session is gone, and with it the request, which was not begun.
    pub fn session_gone(error: McpError) -> Self {
        Self {
            retry: Retry::InNewSession,
            ..Self::answered(error).ending()
        }
    }

    /// Notes that nothing more can be asked in this session.
    pub fn ending(self) -> Self {
        Self {
            ends_session: true,
            ..self
        }
    }

    /// Notes the number of tries, and rules out another.
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

/// Words of an answer that is none, in a line: the message in its JSON, or its text; may be "".
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
    let said = fields.into_iter().find_map(Value::as_str);
    one_line(said.unwrap_or(&json.to_string()), usize::MAX)
}

fn not_recorded(asked: &str, recorded: Option<&str>) -> String {
    match recorded {
        None => format!("the recorded run's `mcp.jsonl` ends before {asked} is answered"),
        Some(recorded) => {
            format!(
                "by its `mcp.jsonl`, the recorded run asked for {recorded} here, not for {asked}"
            )
        }
    }
}

fn after_tries(count: u32) -> String {
    match count {
        0 | 1 => String::new(),
        _ => format!(" (after {count} tries)"),
    }
}

/// A text behind a colon, if there is one.
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
    fn what_a_proxy_says_is_told_in_a_line() {
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
        let doubtful = McpError::Doubtful {
            source: Box::new(McpError::no_answer("s", "reset")),
        };
        for error in [lost, doubtful] {
            let again = McpError::from_record(error.to_record());
            assert_eq!(again.to_string(), error.to_string());
            assert_eq!(again.is_lost(), error.is_lost());
        }
    }
}
