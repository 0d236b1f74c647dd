//! Streamable HTTP: a request is a POST, and its answer JSON or a stream of events.
//!
//! Touches the network. Guarantees that the session's id is the server's, and that a stream that ends without the
//! answer is taken up again where it gave ids; whether the request is then begun anew is not decided here.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use ureq::Body;
use ureq::http::Response;

use super::error::{Failed, McpError, Retry};
use super::http::{EVENTS, HttpCall, JSON_OR_EVENTS, Peer, is_stream};
use super::message::{Incoming, Outgoing};
use super::transport::{ASIDE, Deadline, Transport};
use crate::sys::http::{HttpError, header};
use crate::sys::sse::Events;

/// The time limit of a session's end.
const END: Duration = Duration::from_secs(2);

/// A server that is spoken to so.
pub(super) struct Streamable<'a> {
    pub peer: Peer<'a>,
    /// The id that the server has given, and the version that was agreed on, for the session's end.
    pub session: Option<String>,
    pub headers_of_session: Vec<(&'static str, String)>,
}

/// The position in a stream.
#[derive(Default)]
struct StreamPlace {
    last_id: Option<String>,
    retry: Option<Duration>,
    /// Set if there was a new id since it was taken up last.
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
        let call = HttpCall {
            method: "POST",
            url: None,
            headers,
            body: Some(body),
            limit: Some(deadline.left()),
        };
        self.peer.call(&call, self.session.is_some(), deadline)
    }

    /// The result in a stream, which is taken up again as often as it ends before, and goes on.
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
                // The request can be made anew, where it may be made twice.
                Err(failed) => {
                    let retry = Retry::After(None);
                    return Err(Failed { retry, ..failed });
                }
            };
        }
    }

    /// The result in a stream.
    ///
    /// # Errors
    /// One that may be tried again where the stream has ended before.
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
                Incoming::Other => None,
            })
        });
        if events.last_id().is_some() && events.last_id() != place.last_id.as_deref() {
            place.last_id = events.last_id().map(str::to_owned);
            place.has_advanced = true;
        }
        // No wait at all is no advice.
        let said = events.retry().filter(|wait| !wait.is_zero());
        place.retry = said.or(place.retry);
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

    /// Answers a request of the server's. What it makes of that is its own affair.
    fn reply(&self, reply: &Value, message: Outgoing<'_>, deadline: Deadline<'_>) {
        let headers = self.headers(message, JSON_OR_EVENTS);
        let deadline = deadline.or_after(ASIDE);
        let _ = self.post(&headers, &reply.to_string(), deadline);
    }

    /// The rest of a stream that has ended behind the event with this id.
    fn resume(
        &self,
        id: &str,
        message: Outgoing<'_>,
        deadline: Deadline<'_>,
    ) -> Result<Response<Body>, Failed> {
        let mut headers = self.headers(message, EVENTS);
        headers.push(("last-event-id", id.to_owned()));
        let call = HttpCall {
            method: "GET",
            url: None,
            headers: &headers,
            body: None,
            limit: Some(deadline.left()),
        };
        let failed = match self.peer.call(&call, self.session.is_some(), deadline) {
            Ok(response) if is_stream(&response) => return Ok(response),
            Ok(_) => self.broken("the stream cannot be taken up again"),
            Err(failed) => failed,
        };
        // The request itself was begun before.
        Err(Failed {
            is_doubtful: true,
            ..failed
        })
    }
}

impl Transport for Streamable<'_> {
    fn open(&mut self, _deadline: Deadline<'_>) -> Result<(), Failed> {
        // A session whose handshake was cut short.
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
        let answer = self.peer.caller.read(response);
        let body = self.peer.checked(answer, true, deadline)?;
        self.peer.result(&body, message.id.unwrap_or_default())
    }

    fn notify(&mut self, message: Outgoing<'_>, deadline: Deadline<'_>) -> Result<(), Failed> {
        let headers = self.headers(message, JSON_OR_EVENTS);
        // What is kept for the end of the session.
        self.headers_of_session.clone_from(&headers);
        self.post(&headers, &message.to_text(), deadline).map(drop)
    }

    fn notify_last(&mut self, message: Outgoing<'_>) {
        let headers = self.headers(message, JSON_OR_EVENTS);
        self.peer.call_last("POST", None, &headers, Some(message));
    }

    fn close(&mut self, after_signal: bool) {
        if self.session.take().is_none() {
            return;
        }
        let headers = &self.headers_of_session;
        if after_signal {
            self.peer.call_last("DELETE", None, headers, None);
            return;
        }
        // A server may refuse it, and forgets the session by itself.
        let _ = self.peer.caller.call(&HttpCall {
            method: "DELETE",
            url: None,
            headers,
            body: None,
            limit: Some(END),
        });
    }
}

/// A name as a header has it: one that is not all visible ASCII is encoded, by the specification.
fn header_value(name: &str) -> String {
    let is_plain = name.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if is_plain && name.trim() == name && !name.starts_with("=?") {
        return name.to_owned();
    }
    format!("=?base64?{}?=", BASE64_STANDARD.encode(name))
}
