//! The stream of events that a server sends on its own initiative, read by a thread: all answers in HTTP+SSE, and the
//! server's own requests, such as pings, in streamable HTTP.
//!
//! Accesses the network. Guarantees that its threads end with it, that nothing is sent to another origin, and that the
//! reading thread stores only the answer that is awaited.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

use super::error::{Failed, McpError, words};
use super::http::{Caller, EVENTS, HttpCall, Peer, WholeAnswer, is_stream, same_origin};
use super::message::{Incoming, RpcError};
use super::transport::{ASIDE, Deadline};
use crate::sys::http::HttpError;
use crate::sys::http::retry::Advice;
use crate::sys::interrupt::Interrupt;
use crate::sys::sse::{Event, Events};

/// An id that no request has.
pub(super) const NONE: u64 = 0;
/// The interval at which a wait for the threads checks for a signal.
const TICK: Duration = Duration::from_millis(20);
/// The shortest time until a session's stream that has ended is opened again.
const REOPEN: Duration = Duration::from_secs(1);
/// The error when the stream ends.
pub(super) const ENDED: &str = "the stream of answers has ended";

/// An open stream, the thread that reads it, and threads that make requests at the same time.
pub(super) struct Listener {
    /// The id of the awaited answer.
    pub awaited: Arc<AtomicU64>,
    pub caller: Arc<Caller>,
    pub news: Receiver<ListenerEvent>,
    pub sender: Sender<ListenerEvent>,
    pub threads: Vec<JoinHandle<()>>,
    /// Stops the threads.
    stop: Interrupt,
}

/// Messages from the threads. If sending fails, the receiver is gone and the thread is about to end.
pub(super) enum ListenerEvent {
    /// The stream is open, with the URL for requests.
    Endpoint(String),
    /// The answer to the request with this id.
    Answer(u64, Result<Value, RpcError>),
    /// The progress of the awaited request.
    Progress(String),
    /// The answer to the POST of the request with this id.
    Posted(u64, Result<WholeAnswer, HttpError>),
    /// The stream has ended, or an event exceeds the size limit.
    Ended(Failed),
}

impl Listener {
    /// Opens a stream. In streamable HTTP, `session` has the headers of the session, and a stream that ends is opened
    /// again; in HTTP+SSE, the session ends with its stream.
    pub fn open(peer: &Peer<'_>, session: Option<Vec<(&'static str, String)>>) -> io::Result<Self> {
        let stop = Interrupt::never()?;
        let (sender, news) = mpsc::channel();
        let awaited = Arc::new(AtomicU64::new(NONE));
        let caller = Arc::new((peer.make_caller)(&stop));
        let reading = Reading {
            caller: Arc::clone(&caller),
            server: peer.server.clone(),
            endpoint: None,
            session,
            awaited: Arc::clone(&awaited),
            sender: sender.clone(),
            stop: stop.clone(),
            last_id: None,
            wait: Duration::ZERO,
        };
        let thread = thread::Builder::new().spawn(move || reading.run())?;
        Ok(Self {
            awaited,
            caller,
            news,
            sender,
            threads: vec![thread],
            stop,
        })
    }

    /// Waits for the next message from the threads.
    pub fn next(&self, peer: &Peer<'_>, deadline: Deadline<'_>) -> Result<ListenerEvent, Failed> {
        loop {
            let left = deadline.left();
            if let Ok(news) = self.news.recv_timeout(left.min(TICK)) {
                return Ok(news);
            }
            peer.interrupt.check()?;
            if left.is_zero() {
                return Err(deadline.failure(&peer.server));
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.raise();
        for thread in self.threads.drain(..) {
            // A thread that panicked has ended as well.
            let _ = thread.join();
        }
    }
}

/// The state of the reading thread.
struct Reading {
    caller: Arc<Caller>,
    server: String,
    /// The URL for requests, once known.
    endpoint: Option<String>,
    /// The headers of a session of streamable HTTP.
    session: Option<Vec<(&'static str, String)>>,
    awaited: Arc<AtomicU64>,
    sender: Sender<ListenerEvent>,
    stop: Interrupt,
    /// The id of the last event.
    last_id: Option<String>,
    /// The time that the server asks to wait before the stream is opened again.
    wait: Duration,
}

impl Reading {
    fn run(mut self) {
        let mut ended = self.read();
        while self.session.is_some() && self.endpoint.is_some() && ended.status.is_none() {
            if self.stop.sleep(self.wait.max(REOPEN)).is_err() {
                break;
            }
            ended = self.read();
        }
        let _ = self.sender.send(ListenerEvent::Ended(ended));
    }

    /// Reads the stream to its end and returns the reason for the end.
    fn read(&mut self) -> Failed {
        let no_answer = |reason: &str| Failed::unbegun(McpError::no_answer(&self.server, reason));
        let mut headers = self.session.clone().unwrap_or_default();
        headers.retain(|(name, _)| *name != "accept");
        headers.push(("accept", EVENTS.to_owned()));
        headers.extend(self.last_id.clone().map(|id| ("last-event-id", id)));
        let response = match self.caller.call(&HttpCall::new("GET", &headers, None)) {
            Ok(response) => response,
            Err(error) => return no_answer(&error.to_string()),
        };
        let status = response.status();
        if !status.is_success() || !is_stream(&response) {
            let words = if status.is_success() {
                "no stream of events".to_owned()
            } else {
                words(&self.caller.read(response).body.unwrap_or_default())
            };
            let status = status.as_u16();
            let refused = McpError::Status {
                server: self.server.clone(),
                status,
                words,
                tries: 1,
            };
            return Failed::refused(refused, status, &Advice::default());
        }
        if self.session.is_some() && self.endpoint.is_none() {
            self.opened(self.caller.server_url().to_owned());
        }
        let (caller, server) = (Arc::clone(&self.caller), self.server.clone());
        let mut events = Events::default();
        let followed = caller.follow(response, &mut events, |event| self.take(event));
        self.last_id = events.last_id().map(str::to_owned).or(self.last_id.take());
        self.wait = events.retry().unwrap_or(self.wait);
        match followed {
            Ok(Some(failed)) => failed,
            Ok(None) => Failed::unbegun(McpError::no_answer(&server, ENDED)),
            Err(HttpError::TooLarge(_)) => Failed::lost(McpError::TooLarge(server)),
            Err(error) => Failed::unbegun(McpError::no_answer(&server, error.to_string())),
        }
    }

    fn opened(&mut self, url: String) {
        self.endpoint = Some(url.clone());
        let _ = self.sender.send(ListenerEvent::Endpoint(url));
    }

    /// Handles an event; returns the reason if reading must stop.
    fn take(&mut self, event: Event) -> Option<Failed> {
        if event.kind == "endpoint" {
            return self.take_endpoint(&String::from_utf8_lossy(&event.data));
        }
        let json = serde_json::from_slice(&event.data).ok()?;
        drop(event);
        let awaited = self.awaited.load(Ordering::SeqCst);
        for incoming in Incoming::read(json, awaited) {
            let news = match incoming {
                // Nobody would read these.
                Incoming::Answer(_) | Incoming::Progress(_) if awaited == NONE => continue,
                Incoming::Answer(outcome) => {
                    // A second answer to the same request is ignored.
                    self.awaited.store(NONE, Ordering::SeqCst);
                    ListenerEvent::Answer(awaited, outcome)
                }
                Incoming::Progress(text) => ListenerEvent::Progress(text),
                Incoming::Asks(reply) => {
                    self.reply(&reply);
                    continue;
                }
            };
            let _ = self.sender.send(news);
        }
        None
    }

    fn take_endpoint(&mut self, text: &str) -> Option<Failed> {
        if self.endpoint.is_some() {
            return None;
        }
        let Some(url) = same_origin(&self.caller.client.endpoint, text) else {
            let problem = "the endpoint that it names is no URL of the same origin";
            return Some(Failed::answered(McpError::protocol(&self.server, problem)));
        };
        self.opened(url);
        None
    }

    /// Answers a request from the server; the outcome is ignored.
    fn reply(&self, reply: &Value) {
        if let Some(url) = self.endpoint.as_deref() {
            let headers = self.session.as_deref().unwrap_or_default();
            let body = reply.to_string();
            let call = HttpCall::post(Some(url), headers, &body, ASIDE);
            let _ = self.caller.call(&call);
        }
    }
}
