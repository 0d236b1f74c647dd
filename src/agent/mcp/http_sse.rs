//! HTTP+SSE, the transport of 2024: requests are POSTs to an endpoint named by the server, and all answers arrive on
//! one event stream, which a thread reads. Each request is made on a thread as well, since its answer may arrive on the
//! stream before the POST returns.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::{io, thread};

use serde_json::Value;

use super::error::{Failed, McpError};
use super::http::{HttpCall, Peer, WholeAnswer};
use super::listener::{ENDED, Listener, ListenerEvent, NONE};
use super::message::Outgoing;
use super::transport::{Deadline, Transport};
use crate::sys::http::HttpError;

/// The statuses that merely acknowledge a request.
const ACCEPTED: [u16; 2] = [202, 204];
/// A server that uses this transport.
pub(super) struct HttpSse<'a> {
    pub peer: Rc<Peer<'a>>,
    pub stream: Option<AnswerStream>,
}

/// The event stream of answers.
pub(super) struct AnswerStream {
    listener: Listener,
    /// The URL for requests.
    endpoint: String,
    /// The reason why the stream ended, once it has.
    ended: Option<McpError>,
}

impl AnswerStream {
    /// Sends a request on its own thread, since the answer may arrive on the stream before the POST returns.
    fn post(&mut self, message: Outgoing<'_>, deadline: Deadline<'_>) -> io::Result<()> {
        let (caller, sender) = (
            Arc::clone(&self.listener.caller),
            self.listener.sender.clone(),
        );
        let (endpoint, headers, body) =
            (self.endpoint.clone(), headers(message), message.to_text());
        let (id, limit) = (message.id.unwrap_or(NONE), deadline.left());
        let run = move || {
            let call = HttpCall::post(Some(&endpoint), &headers, &body, limit);
            let is_accepted = |status: u16| ACCEPTED.contains(&status);
            let called = caller.call(&call);
            let answered = called.map(|response| match response.status().as_u16() {
                // The body of an acknowledgement is not needed.
                status if is_accepted(status) => WholeAnswer {
                    head: response.into_parts().0,
                    body: Ok(Vec::new()),
                },
                _ => caller.read(response),
            });
            let _ = sender.send(ListenerEvent::Posted(id, answered));
        };
        let threads = &mut self.listener.threads;
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread::Builder::new().spawn(run)?);
        Ok(())
    }

    fn request(
        &mut self,
        peer: &Peer<'_>,
        message: Outgoing<'_>,
        deadline: Deadline<'_>,
    ) -> Result<Value, Failed> {
        while let Ok(news) = self.listener.news.try_recv() {
            if let ListenerEvent::Ended(failed) = news {
                self.ended = Some(failed.error);
            }
        }
        if let Some(error) = self.ended.take() {
            return Err(Failed::session_gone(error));
        }
        let awaited = message.id.unwrap_or(NONE);
        self.listener.awaited.store(awaited, Ordering::SeqCst);
        let posted = self.post(message, deadline);
        posted.map_err(|error| no_thread(peer, &error))?;
        let mut is_posted = false;
        loop {
            // The outcome of the POST is more informative.
            if let Some(error) = self.ended.take_if(|_| is_posted) {
                return Err(Failed::broken(error).ending());
            }
            match self.listener.next(peer, deadline)? {
                ListenerEvent::Answer(id, outcome) if id == awaited => return Ok(outcome?),
                ListenerEvent::Posted(id, answer) if id == awaited => {
                    is_posted = true;
                    if let Some(result) = posted_result(peer, answer, awaited, deadline)? {
                        return Ok(result);
                    }
                }
                ListenerEvent::Ended(failed) if matches!(failed.error, McpError::TooLarge(_)) => {
                    return Err(failed.ending());
                }
                ListenerEvent::Ended(failed) => self.ended = Some(failed.error),
                ListenerEvent::Progress(text) => peer.observer.progress(&text),
                ListenerEvent::Answer(..)
                | ListenerEvent::Posted(..)
                | ListenerEvent::Endpoint(_) => {}
            }
        }
    }
}

/// Returns the result in the response to a POST, if it has one.
fn posted_result(
    peer: &Peer<'_>,
    posted: Result<WholeAnswer, HttpError>,
    awaited: u64,
    deadline: Deadline<'_>,
) -> Result<Option<Value>, Failed> {
    let answer = posted.map_err(|error| peer.failed(error, deadline))?;
    if ACCEPTED.contains(&answer.head.status.as_u16()) {
        return Ok(None);
    }
    if !answer.head.status.is_success() {
        return Err(peer.refused(answer, true, deadline));
    }
    let body = answer.body.map_err(|error| peer.failed(error, deadline))?;
    let is_blank = body.trim_ascii().is_empty();
    (!is_blank).then(|| peer.result(&body, awaited)).transpose()
}

fn no_thread(peer: &Peer<'_>, error: &io::Error) -> Failed {
    Failed::answered(McpError::no_answer(&peer.server, error.to_string()))
}

impl HttpSse<'_> {
    fn gone(&self) -> Failed {
        Failed::session_gone(McpError::no_answer(&self.peer.server, ENDED))
    }
}

impl Transport for HttpSse<'_> {
    fn open(&mut self, deadline: Deadline<'_>) -> Result<(), Failed> {
        // The old thread must end first.
        self.stream = None;
        let opened = Listener::open(&self.peer, None);
        let listener = opened.map_err(|error| no_thread(&self.peer, &error))?;
        let endpoint = loop {
            match listener.next(&self.peer, deadline)? {
                ListenerEvent::Endpoint(endpoint) => break endpoint,
                ListenerEvent::Ended(failed) => return Err(failed),
                ListenerEvent::Answer(..)
                | ListenerEvent::Posted(..)
                | ListenerEvent::Progress(_) => {}
            }
        };
        self.stream = Some(AnswerStream {
            listener,
            endpoint,
            ended: None,
        });
        Ok(())
    }

    fn request(&mut self, message: Outgoing<'_>, deadline: Deadline<'_>) -> Result<Value, Failed> {
        match &mut self.stream {
            Some(stream) => stream.request(&self.peer, message, deadline),
            None => Err(self.gone()),
        }
    }

    fn notify(&mut self, message: Outgoing<'_>, deadline: Deadline<'_>) -> Result<(), Failed> {
        let stream = self.stream.as_ref().ok_or_else(|| self.gone())?;
        let (headers, body) = (headers(message), message.to_text());
        let call = HttpCall::post(Some(&*stream.endpoint), &headers, &body, deadline.left());
        self.peer.call(&call, true, deadline).map(drop)
    }

    fn notify_last(&mut self, message: Outgoing<'_>) {
        if let Some(stream) = &self.stream {
            let url = Some(&*stream.endpoint);
            let headers = headers(message);
            self.peer.call_last("POST", url, &headers, Some(message));
        }
    }

    fn close(&mut self, _after_signal: bool) {
        self.stream = None;
    }
}

fn headers(message: Outgoing<'_>) -> Vec<(&'static str, String)> {
    let version = message
        .version
        .map(|version| version.name().to_owned())
        .map(|name| ("mcp-protocol-version", name));
    version.into_iter().collect()
}
