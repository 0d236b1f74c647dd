//! HTTP calls to an MCP server, shared by both HTTP transports.
//!
//! Accesses the network. Guarantees that the token and the URL's query are sent only to that server and never appear in
//! an error, and that at most 16 MB of an answer are read.

use std::io::Read as _;
use std::sync::{LazyLock, OnceLock};
use std::time::Duration;

use regex::Regex;
use serde_json::Value;
use ureq::http::response::Parts;
use ureq::http::{HeaderMap, Request, Response, Uri};
use ureq::{AsSendBody, Body};

use super::address::shown;
use super::error::{Failed, McpError, words};
use super::message::{Incoming, Outgoing, error_without_id};
use super::observer::McpObserver;
use super::transport::{ANSWER_LIMIT, CHUNK, Deadline, FAREWELL_LIMIT, Retries};
use crate::secret::ApiKey;
use crate::sys::environment::Clock;
use crate::sys::http::endpoint::Endpoint;
use crate::sys::http::retry::Advice;
use crate::sys::http::{HttpClient, HttpError, header};
use crate::sys::interrupt::Interrupt;
use crate::sys::sse::{Event, Events};
use crate::sys::text::regex;

/// The content types accepted as an answer.
pub(super) const JSON_OR_EVENTS: &str = "application/json, text/event-stream";
/// The content type of an event stream.
pub(super) const EVENTS: &str = "text/event-stream";
/// Matches the message of a server that has lost a session.
static NO_SESSION: LazyLock<Regex> = LazyLock::new(|| regex("(?i)session|not initialized"));
/// The maximum size of an error response, in bytes.
const FAILURE_LIMIT: u64 = 1 << 20;

/// Makes calls to a server from any thread.
#[derive(Debug)]
pub(super) struct Caller {
    pub client: HttpClient,
    pub token: Option<ApiKey>,
    /// The user's own headers, sent with each call.
    pub headers: HeaderMap,
    /// The server's URL, with the query.
    pub url: String,
    /// The URL with a slash after the path, if the server has redirected there.
    pub with_slash: OnceLock<String>,
}

/// An HTTP call before it is made.
pub(super) struct HttpCall<'c> {
    pub method: &'static str,
    /// The URL; `None` for that of the server.
    pub url: Option<&'c str>,
    pub headers: &'c [(&'static str, String)],
    pub body: Option<&'c str>,
    /// The time limit, if any.
    pub limit: Option<Duration>,
}

impl<'c> HttpCall<'c> {
    /// Creates a call to the server's own URL, without a body.
    pub fn new(
        method: &'static str,
        headers: &'c [(&'static str, String)],
        limit: Option<Duration>,
    ) -> Self {
        Self {
            method,
            url: None,
            headers,
            body: None,
            limit,
        }
    }

    /// Creates a POST of a JSON text.
    pub fn post(
        url: Option<&'c str>,
        headers: &'c [(&'static str, String)],
        body: &'c str,
        limit: Duration,
    ) -> Self {
        Self {
            url,
            body: Some(body),
            ..Self::new("POST", headers, Some(limit))
        }
    }
}

impl Caller {
    /// Makes a call and returns the answer, whatever its status. A redirect that adds a slash to the server's own URL
    /// is followed and remembered, since many servers are mounted that way.
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

    /// Returns the server's URL, or the one to which it has redirected.
    pub fn server_url(&self) -> &str {
        self.with_slash.get().unwrap_or(&self.url)
    }

    fn call_at(&self, url: &str, call: &HttpCall<'_>) -> Result<Response<Body>, HttpError> {
        let mut request = Request::builder().method(call.method).uri(url);
        for (name, value) in call.headers {
            request = request.header(*name, value);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let is_given = self.headers.contains_key("authorization");
        if let Some(token) = self.token.as_ref().filter(|_| !is_given) {
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

    /// Reads an answer completely; the body of an error response has a smaller size limit.
    pub fn read(&self, response: Response<Body>) -> WholeAnswer {
        let limit = if response.status().is_success() {
            ANSWER_LIMIT as u64
        } else {
            FAILURE_LIMIT
        };
        let (head, body) = response.into_parts();
        let body = self.client.read_body(Response::new(body), limit);
        WholeAnswer { head, body }
    }

    /// Passes the events of a stream to `take` until it returns a value; `None` at the end of the stream.
    pub fn follow<T>(
        &self,
        response: Response<Body>,
        events: &mut Events,
        mut take: impl FnMut(Event) -> Option<T>,
    ) -> Result<Option<T>, HttpError> {
        let mut reader = response.into_body().into_reader();
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = reader.read(&mut chunk);
            let amount = read.map_err(|error| self.client.classify(error.into()))?;
            let mut take = |event| take(event).map_or(Ok(()), Err);
            if let Err(taken) = events.read(&chunk[..amount], &mut take) {
                return Ok(Some(taken));
            }
            if events.pending() > ANSWER_LIMIT {
                return Err(HttpError::TooLarge(ANSWER_LIMIT as u64));
            }
            if amount == 0 {
                return Ok(None);
            }
        }
    }

    fn run<B: AsSendBody>(
        &self,
        request: Result<Request<B>, ureq::http::Error>,
        limit: Option<Duration>,
    ) -> Result<Response<Body>, HttpError> {
        let request = request.map_err(|error| HttpError::Protocol(error.to_string()))?;
        let agent = &self.client.agent;
        let limited = agent.configure_request(request).timeout_global(limit);
        self.client.answer(agent.run(limited.build()))
    }
}

/// An answer that was read completely.
pub(super) struct WholeAnswer {
    pub head: Parts,
    pub body: Result<Vec<u8>, HttpError>,
}

/// A server and everything needed to call it.
pub(super) struct Peer<'a> {
    pub caller: Caller,
    /// The URL without the query, for display.
    pub server: String,
    /// Interrupts every wait.
    pub interrupt: Interrupt,
    pub clock: &'a dyn Clock,
    pub observer: &'a dyn McpObserver,
    /// Makes callers for the threads that read the server's stream of events, and for the last calls.
    pub make_caller: Box<MakeCaller<'a>>,
}

/// Creates a caller that the given interrupt stops.
pub(super) type MakeCaller<'a> = dyn Fn(&Interrupt) -> Caller + 'a;

impl Peer<'_> {
    /// Returns the retry policy for requests to this server.
    pub fn retries(&self) -> Retries<'_> {
        Retries {
            observer: self.observer,
            interrupt: &self.interrupt,
            count: 1,
        }
    }

    /// Makes a call and returns its successful answer.
    ///
    /// # Errors
    /// Fails if there is no answer, or it has an error status. `in_session` says that the call was made in a session,
    /// which may have expired.
    pub fn call(
        &self,
        call: &HttpCall<'_>,
        in_session: bool,
        deadline: Deadline<'_>,
    ) -> Result<Response<Body>, Failed> {
        let called = self.caller.call(call);
        let response = called.map_err(|error| self.failed(error, deadline))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.refused(self.caller.read(response), in_session, deadline))
    }

    /// Makes a call after a signal, which does not interrupt it, within [`FAREWELL_LIMIT`], and ignores the outcome.
    pub fn call_last(
        &self,
        method: &'static str,
        url: Option<&str>,
        headers: &[(&'static str, String)],
        message: Option<Outgoing<'_>>,
    ) {
        let Ok(never) = Interrupt::never() else {
            return;
        };
        let _ = (self.make_caller)(&never).call(&HttpCall {
            url: url.or(Some(self.caller.server_url())),
            body: message.map(Outgoing::to_text).as_deref(),
            ..HttpCall::new(method, headers, Some(FAREWELL_LIMIT))
        });
    }

    /// Returns the result in an answer that is a single JSON text.
    ///
    /// # Errors
    /// Fails if the answer is anything else.
    pub fn result(&self, body: &[u8], awaited: u64) -> Result<Value, Failed> {
        let problem = |problem: String| Failed::lost(McpError::protocol(&self.server, problem));
        let Ok(mut message) = serde_json::from_slice::<Value>(body) else {
            return Err(match &*words(body) {
                "" => problem("its answer is empty".to_owned()),
                text => problem(format!("its answer is no JSON: `{text}`")),
            });
        };
        if let Some(error) = error_without_id(&mut message) {
            return Err(error.into());
        }
        let mut messages = Incoming::read(message, awaited).into_iter();
        let answer = messages.find_map(|message| match message {
            Incoming::Answer(outcome) => Some(outcome),
            Incoming::Asks(_) | Incoming::Progress(_) => None,
        });
        let another = || problem("its answer is to another request".to_owned());
        Ok(answer.ok_or_else(another)??)
    }

    /// Interprets an error of a call.
    pub fn failed(&self, error: HttpError, deadline: Deadline<'_>) -> Failed {
        let server = &self.server;
        match error {
            HttpError::Interrupted(interrupted) => interrupted.into(),
            HttpError::TimedOut => deadline.failure(server),
            HttpError::NoConnection { reason, .. } => {
                Failed::unbegun(McpError::no_answer(server, reason))
            }
            HttpError::Broken(reason) => Failed::broken(McpError::no_answer(server, reason)),
            HttpError::Tls(reason) => Failed::answered(McpError::no_answer(server, reason)),
            HttpError::TooLarge(_) => Failed::lost(McpError::TooLarge(server.clone())),
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

    /// Interprets an answer with an error status.
    pub fn refused(&self, answer: WholeAnswer, in_session: bool, deadline: Deadline<'_>) -> Failed {
        let status = answer.head.status.as_u16();
        let advice = Advice::read(|name| header(&answer.head.headers, name), self.clock.now());
        let body = match answer.body {
            Ok(body) => body,
            Err(error @ (HttpError::Interrupted(_) | HttpError::TimedOut)) => {
                return self.failed(error, deadline);
            }
            // The status matters even if the body cannot be read.
            Err(_) => Vec::new(),
        };
        let text = words(&body);
        // Some servers answer 400 to the id of a session that they have lost, as after a restart.
        let is_lost = status == 404 || status == 400 && NO_SESSION.is_match(&text);
        let message = serde_json::from_slice::<Value>(&body).ok();
        let rpc = message.and_then(|mut message| {
            message.as_object_mut()?.remove("id");
            error_without_id(&mut message).filter(|error| error.code != 0)
        });
        let error = rpc.map(McpError::Server).unwrap_or(McpError::Status {
            server: self.server.clone(),
            status,
            words: text,
            tries: 1,
        });
        if in_session && is_lost {
            return Failed {
                status: Some(status),
                ..Failed::session_gone(error)
            };
        }
        Failed::refused(error, status, &advice)
    }
}

/// Returns whether an answer is a stream of events.
pub(super) fn is_stream(response: &Response<Body>) -> bool {
    let kind = header(response.headers(), "content-type")
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    kind.eq_ignore_ascii_case(EVENTS)
}

/// Returns whether a redirect only appends a slash to the server's own path.
fn adds_slash(endpoint: &Endpoint, location: &str) -> bool {
    let path = |url: &str| Some(url.parse::<Uri>().ok()?.path().to_owned());
    let named = same_origin(endpoint, location).and_then(|url| path(&url));
    named.is_some_and(|named| Some(named) == path(&endpoint.url("/")))
}

/// Returns the URL given by a server, if it is a path or has the same origin.
pub(super) fn same_origin(endpoint: &Endpoint, text: &str) -> Option<String> {
    let own: Uri = endpoint.base().parse().ok()?;
    let text = text.trim();
    let url = if text.starts_with('/') && !text.starts_with("//") {
        format!("{}://{}{text}", own.scheme_str()?, own.authority()?)
    } else {
        text.to_owned()
    };
    let named: Uri = url.parse().ok()?;
    let standard = if own.scheme_str() == Some("https") {
        443
    } else {
        80
    };
    let port = |uri: &Uri| uri.port_u16().unwrap_or(standard);
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
    fn an_endpoint_of_another_origin_is_refused() {
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
