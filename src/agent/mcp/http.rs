//! Calls to an MCP server over HTTP, as both of its transports make them.
//!
//! Touches the network. Guarantees that the token and the URL's query reach that server alone, and no error; and that
//! of an answer no more than 16 MB is read.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;
use ureq::http::response::Parts;
use ureq::http::{Request, Response, Uri};
use ureq::{AsSendBody, Body};

use super::address::shown;
use super::error::{Begun, Failed, McpError, Retry, words};
use super::message::{Incoming, Outgoing, error_without_id};
use super::observer::McpObserver;
use super::retries::Retries;
use super::transport::{ANSWER_LIMIT, Deadline, FAREWELL_LIMIT};
use crate::secret::ApiKey;
use crate::sys::environment::Clock;
use crate::sys::http::endpoint::Endpoint;
use crate::sys::http::retry::{Advice, is_retryable};
use crate::sys::http::{HttpClient, HttpError, header};
use crate::sys::interrupt::Interrupt;

/// The content types of an answer.
pub(super) const JSON_OR_EVENTS: &str = "application/json, text/event-stream";
/// The content type of a stream.
pub(super) const EVENTS: &str = "text/event-stream";
/// The largest answer of an error, in bytes.
const FAILURE_LIMIT: u64 = 1 << 20;

/// Makes calls to a server, on whatever thread.
#[derive(Debug)]
pub(super) struct Caller {
    pub client: HttpClient,
    token: Option<ApiKey>,
    /// The server's URL, with the query.
    url: String,
    /// The URL with a slash behind the path, where the server has redirected there.
    with_slash: OnceLock<String>,
}

/// A call.
pub(super) struct HttpCall<'c> {
    pub method: &'static str,
    /// The URL; `None` for the server's own.
    pub url: Option<&'c str>,
    pub headers: &'c [(&'static str, String)],
    pub body: Option<&'c str>,
    /// The time limit, if any.
    pub limit: Option<Duration>,
}

impl Caller {
    /// Makes calls to the server at `url`.
    pub fn new(client: HttpClient, token: Option<ApiKey>, url: String) -> Self {
        Self {
            client,
            token,
            url,
            with_slash: OnceLock::new(),
        }
    }

    /// The answer, of whatever status. A redirect that adds a slash to the server's own URL is followed, and remembered:
    /// many servers are mounted so.
    pub fn call(&self, call: &HttpCall<'_>) -> Result<Response<Body>, HttpError> {
        if let Some(url) = call.url.or(self.with_slash.get().map(String::as_str)) {
            return self.call_at(url, call);
        }
        match self.call_at(&self.url, call) {
            Err(HttpError::Redirect {
                status: 301 | 302 | 307 | 308,
                location,
            }) if adds_slash(&self.client.endpoint, &location) => {
                let (base, query) = self.url.split_once('?').unwrap_or((&self.url, ""));
                let joint = if query.is_empty() { "" } else { "?" };
                let url = format!("{base}/{joint}{query}");
                self.call_at(self.with_slash.get_or_init(|| url), call)
            }
            called => called,
        }
    }

    fn call_at(&self, url: &str, call: &HttpCall<'_>) -> Result<Response<Body>, HttpError> {
        let mut request = Request::builder().method(call.method).uri(url);
        for (name, value) in call.headers {
            request = request.header(*name, value);
        }
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {}", token.expose()));
        }
        match call.body {
            Some(body) => {
                let request = request.header("content-type", "application/json");
                self.run(request.body(body), call.limit)
            }
            None => self.run(request.body(()), call.limit),
        }
    }

    /// All of an answer; of one with an error's status no more than an error takes.
    pub fn read(&self, response: Response<Body>) -> WholeAnswer {
        let is_success = response.status().is_success();
        let limit = if is_success {
            ANSWER_LIMIT as u64
        } else {
            FAILURE_LIMIT
        };
        let (head, body) = response.into_parts();
        let body = Response::new(body);
        let body = self.client.read_body(body, limit);
        WholeAnswer { head, body }
    }

    fn run<B: AsSendBody>(
        &self,
        request: Result<Request<B>, ureq::http::Error>,
        limit: Option<Duration>,
    ) -> Result<Response<Body>, HttpError> {
        let request = request.map_err(|error| HttpError::Protocol(error.to_string()))?;
        let agent = &self.client.agent;
        let request = agent.configure_request(request);
        self.client
            .answer(agent.run(request.timeout_global(limit).build()))
    }
}

/// An answer that was read.
pub(super) struct WholeAnswer {
    pub head: Parts,
    pub body: Result<Vec<u8>, HttpError>,
}

impl WholeAnswer {
    /// One whose body does not matter.
    pub fn without_body(response: Response<Body>) -> Self {
        Self {
            head: response.into_parts().0,
            body: Ok(Vec::new()),
        }
    }
}

/// A server, as calls for its client are made.
pub(super) struct Peer<'a> {
    pub caller: Caller,
    /// Makes the last calls, after a signal, which does not end them.
    last: Caller,
    /// The URL without the query, to be shown.
    pub server: String,
    /// Ends every wait.
    pub interrupt: Interrupt,
    clock: &'a dyn Clock,
    observer: &'a dyn McpObserver,
    /// Set once it has answered.
    was_reached: Cell<bool>,
}

impl<'a> Peer<'a> {
    /// A server that has not been asked yet.
    pub fn new(
        caller: Caller,
        last: Caller,
        interrupt: Interrupt,
        clock: &'a dyn Clock,
        observer: &'a dyn McpObserver,
    ) -> Self {
        Self {
            server: caller.client.endpoint.base().to_owned(),
            caller,
            last,
            interrupt,
            clock,
            observer,
            was_reached: Cell::new(false),
        }
    }

    /// The tries of something at it.
    pub fn retries(&self) -> Retries<'_> {
        Retries::new(self.clock, self.observer, &self.interrupt)
    }

    /// The answer of a call that has been successful.
    ///
    /// # Errors
    /// When there is none, or it has the status of an error; `in_session`: it was made in one, which may be gone.
    pub fn call(
        &self,
        call: &HttpCall<'_>,
        in_session: bool,
        deadline: Deadline<'_>,
    ) -> Result<Response<Body>, Failed> {
        let called = self.caller.call(call);
        let response = called.map_err(|error| self.failed(error, deadline))?;
        self.was_reached.set(true);
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.refused(self.caller.read(response), in_session, deadline))
    }

    /// All of the answer of a call that has been successful.
    ///
    /// # Errors
    /// Those of [`call`](Self::call).
    pub fn checked(
        &self,
        answer: WholeAnswer,
        in_session: bool,
        deadline: Deadline<'_>,
    ) -> Result<Vec<u8>, Failed> {
        if !answer.head.status.is_success() {
            return Err(self.refused(answer, in_session, deadline));
        }
        answer.body.map_err(|error| self.failed(error, deadline))
    }

    /// Makes a call after a signal, within [`FAREWELL_LIMIT`]. Nobody asks how it went.
    pub fn call_last(
        &self,
        method: &'static str,
        url: Option<&str>,
        headers: &[(&'static str, String)],
        message: Option<Outgoing<'_>>,
    ) {
        let _ = self.last.call(&HttpCall {
            method,
            url,
            headers,
            body: message.map(Outgoing::to_text).as_deref(),
            limit: Some(FAREWELL_LIMIT),
        });
    }

    /// All of an answer.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn body(
        &self,
        response: Response<Body>,
        deadline: Deadline<'_>,
    ) -> Result<Vec<u8>, Failed> {
        let body = self.caller.read(response).body;
        body.map_err(|error| self.failed(error, deadline))
    }

    /// The result in an answer that is one JSON text.
    ///
    /// # Errors
    /// When it is something else.
    pub fn result(&self, body: &[u8], awaited: u64) -> Result<Value, Failed> {
        let problem = |problem: String| Failed::lost(McpError::protocol(&self.server, problem));
        let Ok(mut message) = serde_json::from_slice::<Value>(body) else {
            return Err(match &*words(body) {
                "" => problem("its answer is empty".to_owned()),
                said => problem(format!("its answer is no JSON: `{said}`")),
            });
        };
        if let Some(error) = error_without_id(&mut message) {
            return Err(Failed::answered(McpError::server(error)));
        }
        let messages = Incoming::read(message, awaited).into_iter();
        let mut answers = messages.filter_map(|message| match message {
            Incoming::Answer(outcome) => Some(outcome),
            Incoming::Asks(_) | Incoming::Other => None,
        });
        match answers.next() {
            Some(outcome) => outcome.map_err(|error| Failed::answered(McpError::server(error))),
            None => Err(problem("its answer is to another request".to_owned())),
        }
    }

    /// Interprets an error of a call.
    pub fn failed(&self, error: HttpError, deadline: Deadline<'_>) -> Failed {
        let server = &self.server;
        match error {
            HttpError::Interrupted(interrupted) => interrupted.into(),
            HttpError::TimedOut => deadline.is_over(server),
            HttpError::NoConnection { reason, is_refused } => {
                let failed = Failed::unbegun(McpError::no_answer(server, reason));
                let is_here = self.caller.client.endpoint.is_this_machine();
                if is_refused && is_here && !self.was_reached.get() {
                    // Nobody starts it within the seconds that tries are apart.
                    return Failed {
                        retry: Retry::Never,
                        ..failed
                    };
                }
                failed
            }
            HttpError::Broken(reason) => Failed::broken(McpError::no_answer(server, reason)),
            HttpError::Tls(reason) => Failed::answered(McpError::no_answer(server, reason)),
            HttpError::TooLarge(_) => self.too_large(),
            HttpError::Redirect { status, location } => {
                let location = shown(&location);
                let error = HttpError::Redirect { status, location };
                Failed::answered(McpError::protocol(server, error.to_string()))
            }
            HttpError::Compressed(_) | HttpError::Protocol(_) => {
                Failed::lost(McpError::protocol(server, error.to_string()))
            }
        }
    }

    /// More has come than is read: that was an answer.
    pub fn too_large(&self) -> Failed {
        Failed::lost(McpError::too_large(&self.server))
    }

    /// Interprets an answer with an error's status.
    fn refused(&self, answer: WholeAnswer, in_session: bool, deadline: Deadline<'_>) -> Failed {
        let status = answer.head.status.as_u16();
        let advice = Advice::read(|name| header(&answer.head.headers, name), self.clock.now());
        let body = match answer.body {
            Ok(body) => body,
            Err(error @ (HttpError::Interrupted(_) | HttpError::TimedOut)) => {
                return self.failed(error, deadline);
            }
            // The status matters even where the rest cannot be read.
            Err(_) => Vec::new(),
        };
        let said = words(&body);
        let rpc = serde_json::from_slice::<Value>(&body).ok();
        let rpc = rpc.and_then(|mut message| {
            message.as_object_mut()?.remove("id");
            error_without_id(&mut message).filter(|error| error.code != 0)
        });
        let error = rpc.map(McpError::server).unwrap_or(McpError::Status {
            server: self.server.clone(),
            status,
            words: said,
            tries: 1,
        });
        let failed = if in_session && status == 404 {
            Failed::session_gone(error)
        } else if is_retryable(status, &advice) {
            Failed {
                begun: match status {
                    429 | 503 => Begun::No,
                    _ => Begun::Perhaps,
                },
                retry: Retry::After(advice.wait),
                ..Failed::answered(error)
            }
        } else {
            Failed {
                begun: match status {
                    500..=599 => Begun::Perhaps,
                    _ => Begun::Answered,
                },
                ..Failed::answered(error)
            }
        };
        Failed {
            status: Some(status),
            ..failed
        }
    }
}

/// Reports whether an answer is a stream of events.
pub(super) fn is_stream(response: &Response<Body>) -> bool {
    let kind = header(response.headers(), "content-type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case(EVENTS)
}

/// Reports whether a redirect leads to the server's own path with a slash behind it.
fn adds_slash(endpoint: &Endpoint, location: &str) -> bool {
    let path = |url: &str| Some(url.parse::<Uri>().ok()?.path().to_owned());
    let named = same_origin(endpoint, location).and_then(|url| path(&url));
    named.is_some_and(|named| Some(named) == path(&endpoint.url("/")))
}

/// The URL that a server has named, where it is a path, or a URL of the same origin.
pub(super) fn same_origin(endpoint: &Endpoint, said: &str) -> Option<String> {
    let own: Uri = endpoint.base().parse().ok()?;
    let said = said.trim();
    let url = if said.starts_with('/') && !said.starts_with("//") {
        format!("{}://{}{said}", own.scheme_str()?, own.authority()?)
    } else {
        said.to_owned()
    };
    let named: Uri = url.parse().ok()?;
    let port = |uri: &Uri| {
        let standard = if uri.scheme_str() == Some("https") {
            443
        } else {
            80
        };
        uri.port_u16().unwrap_or(standard)
    };
    let is_same = named.scheme() == own.scheme()
        && named.host()?.eq_ignore_ascii_case(own.host()?)
        && port(&named) == port(&own)
        && !named.authority()?.as_str().contains('@');
    is_same.then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_redirect_that_adds_a_slash_is_followed() {
        let endpoint = Endpoint::parse("URL", "http://127.0.0.1:8000/mcp", true).unwrap();
        for (location, expected) in [
            ("/mcp/", true),
            ("http://127.0.0.1:8000/mcp/?key=k", true),
            ("/mcp", false),
            ("/mcp//", false),
            ("/", false),
            ("http://127.0.0.1:8001/mcp/", false),
            ("mcp/", false),
            ("nowhere", false),
        ] {
            assert_eq!(adds_slash(&endpoint, location), expected, "{location}");
        }
    }

    #[test]
    fn an_endpoint_is_of_the_same_origin_or_none() {
        let endpoint = Endpoint::parse("URL", "http://127.0.0.1:8000/mcp/sse", true).unwrap();
        for (said, expected) in [
            (
                "/messages/?session_id=1",
                Some("http://127.0.0.1:8000/messages/?session_id=1"),
            ),
            (
                "/messages?next=http://x",
                Some("http://127.0.0.1:8000/messages?next=http://x"),
            ),
            (" /a\n", Some("http://127.0.0.1:8000/a")),
            ("http://127.0.0.1:8000/a", Some("http://127.0.0.1:8000/a")),
            ("messages?s=1", None),
            ("?s=1", None),
            ("//127.0.0.1:8000/a", None),
            ("127.0.0.1:8000", None),
            ("", None),
            ("//evil.example/a", None),
            ("http://evil.example/a", None),
            ("http://127.0.0.1:8001/a", None),
            ("http://127.0.0.1/a", None),
            ("https://127.0.0.1:8000/a", None),
            ("http://user@127.0.0.1:8000/a", None),
            ("file:///etc/passwd", None),
            ("/a b", None),
        ] {
            let url = same_origin(&endpoint, said);
            assert_eq!(url.as_deref(), expected, "{said}");
        }
        let endpoint = Endpoint::parse("URL", "https://Host.example/sse", true).unwrap();
        let url = same_origin(&endpoint, "https://host.example:443/a");
        assert_eq!(url.as_deref(), Some("https://host.example:443/a"));
    }
}
