//! Streamable HTTP: each request is a POST, and its answer is JSON or an event stream.
//!
//! Accesses the network. Guarantees that the session id is the one from the server, and that a stream that ends before
//! the answer is resumed if it had event ids. The caller decides whether to repeat the whole request.

use std::rc::Rc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use ureq::Body;
use ureq::http::Response;

use super::error::{Failed, McpError, Retry};
use super::http::{EVENTS, HttpCall, JSON_OR_EVENTS, Peer, is_stream};
use super::listener::{Listener, ListenerEvent};
use super::message::{Incoming, Outgoing};
use super::transport::{ASIDE, Deadline, Transport};
use crate::sys::http::{HttpError, header};
use crate::sys::sse::Events;

/// The time limit for ending a session.
const END: Duration = Duration::from_secs(2);
/// The time that a server has to open its stream of events; the stream may also open later.
const OPEN_LIMIT: Duration = Duration::from_secs(1);

/// A server that uses this transport.
pub(super) struct Streamable<'a> {
    pub peer: Rc<Peer<'a>>,
    /// The id assigned by the server; the headers below also contain the negotiated version, which is needed to end the
    /// session.
    pub session: Option<String>,
    pub headers_of_session: Vec<(&'static str, String)>,
    /// The stream of the server's own requests, if it has one.
    pub listener: Option<Listener>,
}

/// The position in an event stream.
#[derive(Default)]
struct StreamPlace {
    last_id: Option<String>,
    retry: Option<Duration>,
    /// Set if a new id has arrived since the stream was last resumed.
    has_advanced: bool,
}

impl Streamable<'_> {
    fn headers(&self, message: Outgoing<'_>, accept: &str) -> Vec<(&'static str, String)> {
        let mut headers = vec![("accept", accept.to_owned())];
        let Some(version) = message.version else {
            return headers;
        };
        headers.push(("mcp-protocol-version", version.name().to_owned()));
        headers.extend(self.session.clone().map(|id| ("mcp-session-id", id)));
        if version.is_stateless() {
            headers.push(("mcp-method", message.method.to_owned()));
            let name = message.params["name"].as_str();
            headers.extend(name.map(|name| ("mcp-name", header_value(name))));
        }
        headers
    }

    fn post(
        &self,
        headers: &[(&'static str, String)],
        body: &str,
        deadline: Deadline<'_>,
    ) -> Result<Response<Body>, Failed> {
        let call = HttpCall::post(None, headers, body, deadline.left());
        self.peer.call(&call, self.session.is_some(), deadline)
    }

    /// Returns the result in a stream; a stream that ends too early is resumed as long as it makes progress.
    fn follow(
        &self,
        response: Response<Body>,
        message: Outgoing<'_>,
        deadline: Deadline<'_>,
    ) -> Result<Value, Failed> {
        let mut place = StreamPlace::default();
        let mut retries = self.peer.retries();
        let mut outcome = self.read(response, &mut place, message, deadline);
        loop {
            let ended = match outcome {
                Ok(result) => return Ok(result),
                Err(ended) => ended,
            };
            let id = place.last_id.clone().filter(|id| !id.is_empty());
            let (Some(id), Retry::After(advised)) = (id, ended.retry) else {
                return Err(ended);
            };
            if std::mem::take(&mut place.has_advanced) {
                retries.count = 0;
            }
            retries.next(ended, advised.or(place.retry), deadline)?;
            outcome = match self.resume(&id, message, deadline) {
                Ok(response) => self.read(response, &mut place, message, deadline),
                Err(failed) if matches!(failed.retry, Retry::After(_)) => Err(failed),
                Err(failed) if failed.error.is_final() => return Err(failed),
                // The request can be made again if it may be repeated.
                Err(failed) => {
                    let retry = Retry::After(None);
                    return Err(Failed { retry, ..failed });
                }
            };
        }
    }

    /// Reads a stream up to the result.
    ///
    /// # Errors
    /// An error that allows a retry if the stream ended too early.
    fn read(
        &self,
        response: Response<Body>,
        place: &mut StreamPlace,
        message: Outgoing<'_>,
        deadline: Deadline<'_>,
    ) -> Result<Value, Failed> {
        let awaited = message.id.unwrap_or_default();
        let mut events = Events::default();
        let caller = &self.peer.caller;
        let followed = caller.follow(response, &mut events, |event| {
            let json = serde_json::from_slice(&event.data).ok()?;
            drop(event);
            let mut messages = Incoming::read(json, awaited).into_iter();
            messages.find_map(|incoming| match incoming {
                Incoming::Answer(outcome) => Some(outcome),
                Incoming::Asks(reply) => {
                    self.reply(&reply, message, deadline);
                    None
                }
                Incoming::Progress(text) => {
                    self.peer.observer.progress(&text);
                    None
                }
            })
        });
        if events.last_id().is_some() && events.last_id() != place.last_id.as_deref() {
            place.last_id = events.last_id().map(str::to_owned);
            place.has_advanced = true;
        }
        // A delay of zero is not advice.
        let delay = events.retry().filter(|wait| !wait.is_zero());
        place.retry = delay.or(place.retry);
        match followed {
            Ok(Some(outcome)) => Ok(outcome?),
            Ok(None) => Err(self.broken("the stream ended before the answer")),
            Err(
                error @ (HttpError::Interrupted(_) | HttpError::TimedOut | HttpError::TooLarge(_)),
            ) => Err(self.peer.failed(error, deadline)),
            Err(error) => Err(self.broken(&error.to_string())),
        }
    }

    fn broken(&self, reason: &str) -> Failed {
        Failed::broken(McpError::no_answer(&self.peer.server, reason))
    }

    /// Answers a request from the server; the outcome is ignored.
    fn reply(&self, reply: &Value, message: Outgoing<'_>, deadline: Deadline<'_>) {
        let headers = self.headers(message, JSON_OR_EVENTS);
        let _ = self.post(&headers, &reply.to_string(), deadline.or_after(ASIDE));
    }

    /// Requests the rest of a stream, after the event with this id.
    fn resume(
        &self,
        id: &str,
        message: Outgoing<'_>,
        deadline: Deadline<'_>,
    ) -> Result<Response<Body>, Failed> {
        let mut headers = self.headers(message, EVENTS);
        headers.push(("last-event-id", id.to_owned()));
        let call = HttpCall::new("GET", &headers, Some(deadline.left()));
        let failed = match self.peer.call(&call, self.session.is_some(), deadline) {
            Ok(response) if is_stream(&response) => return Ok(response),
            Ok(_) => self.broken("the stream cannot be taken up again"),
            Err(failed) => failed,
        };
        // The original request has already begun.
        Err(Failed {
            is_doubtful: true,
            ..failed
        })
    }
}

impl Transport for Streamable<'_> {
    fn open(&mut self, _deadline: Deadline<'_>) -> Result<(), Failed> {
        // Ends a session whose handshake was interrupted.
        self.close(false);
        Ok(())
    }

    fn request(&mut self, message: Outgoing<'_>, deadline: Deadline<'_>) -> Result<Value, Failed> {
        let headers = self.headers(message, JSON_OR_EVENTS);
        let posted = self.post(&headers, &message.to_text(), deadline);
        if posted.as_ref().is_err_and(|failed| failed.ends_session) {
            self.session = None;
        }
        let response = posted?;
        if message.version.is_none() {
            let id = header(response.headers(), "mcp-session-id");
            self.session = id.filter(|id| !id.is_empty()).map(str::to_owned);
            let id = self.session.clone();
            self.headers_of_session = id.map(|id| ("mcp-session-id", id)).into_iter().collect();
        }
        if is_stream(&response) {
            return self.follow(response, message, deadline);
        }
        let body = self.peer.caller.read(response).body;
        let body = body.map_err(|error| self.peer.failed(error, deadline))?;
        self.peer.result(&body, message.id.unwrap_or_default())
    }

    fn notify(&mut self, message: Outgoing<'_>, deadline: Deadline<'_>) -> Result<(), Failed> {
        let headers = self.headers(message, JSON_OR_EVENTS);
        // The headers are needed again to end the session.
        self.headers_of_session.clone_from(&headers);
        self.post(&headers, &message.to_text(), deadline)?;
        // Without a session, the server could not tell which client these requests belong to.
        if self.session.is_some() {
            self.listener = Listener::open(&self.peer, Some(headers)).ok();
            let opened = self
                .listener
                .as_ref()
                .map(|it| it.next(&self.peer, deadline.or_after(OPEN_LIMIT)));
            self.listener
                .take_if(|_| matches!(opened, Some(Ok(ListenerEvent::Ended(_)))));
        }
        Ok(())
    }

    fn notify_last(&mut self, message: Outgoing<'_>) {
        let headers = self.headers(message, JSON_OR_EVENTS);
        self.peer.call_last("POST", None, &headers, Some(message));
    }

    fn close(&mut self, after_signal: bool) {
        self.listener = None;
        if self.session.take().is_none() {
            return;
        }
        let headers = &self.headers_of_session;
        if after_signal {
            self.peer.call_last("DELETE", None, headers, None);
            return;
        }
        // A server may refuse this, and let the session expire instead.
        let call = HttpCall::new("DELETE", headers, Some(END));
        let _ = self.peer.caller.call(&call);
    }
}

/// Encodes a name as a header value, as the specification requires unless all of it is visible ASCII.
fn header_value(name: &str) -> String {
    let is_plain = name.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if is_plain && name.trim() == name && !name.starts_with("=?") {
        return name.to_owned();
    }
    format!("=?base64?{}?=", BASE64_STANDARD.encode(name))
}
