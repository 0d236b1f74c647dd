//! HTTP+SSE, the transport of 2024: requests are POSTs to an endpoint named by the server, and all answers arrive on
//! one event stream, which a thread reads. Each request is made on a thread as well, since its answer may arrive on the
//! stream before the POST returns.
//!
//! Accesses the network. Guarantees that the threads end with the connection, that nothing is sent to another origin,
//! and that the reading thread stores only the answer that is awaited.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

use super::error::{Failed, McpError, words};
use super::http::{Caller, EVENTS, HttpCall, Peer, WholeAnswer, is_stream, same_origin};
use super::message::{Incoming, Outgoing, RpcError};
use super::transport::{ASIDE, Deadline, Transport};
use crate::sys::http::HttpError;
use crate::sys::http::retry::{Advice, is_retryable};
use crate::sys::interrupt::Interrupt;
use crate::sys::sse::{Event, Events};

/// An id that no request has.
const NONE: u64 = 0;
/// The statuses that merely acknowledge a request.
const ACCEPTED: [u16; 2] = [202, 204];
/// The interval at which a wait for the threads checks for a signal.
const TICK: Duration = Duration::from_millis(20);
/// The error when the stream ends.
const ENDED: &str = "the stream of answers has ended";

/// Creates a caller that the given interrupt stops.
type MakeCaller<'a> = dyn Fn(&Interrupt) -> Caller + 'a;

/// A server that uses this transport.
pub(super) struct HttpSse<'a> {
    pub peer: Peer<'a>,
    pub caller: Box<MakeCaller<'a>>,
    pub stream: Option<AnswerStream>,
}

/// The event stream of answers, the thread that reads it, and the threads that make the requests.
pub(super) struct AnswerStream {
    /// The URL for requests.
    endpoint: String,
    /// The id of the awaited answer.
    awaited: Arc<AtomicU64>,
    caller: Arc<Caller>,
    news: Receiver<News>,
    teller: Sender<News>,
    /// The reason why the stream ended, once it has.
    ended: Option<McpError>,
    /// Stops the threads.
    stop: Interrupt,
    threads: Vec<JoinHandle<()>>,
}

/// Messages from the threads. If sending fails, the receiver is gone and the thread is about to end.
enum News {
    /// The URL for requests.
    Endpoint(String),
    /// The answer to the request with this id.
    Answer(u64, Result<Value, RpcError>),
    /// The answer to the POST of the request with this id.
    Posted(u64, Result<WholeAnswer, HttpError>),
    /// The stream has ended, or an event exceeds the size limit.
    Ended(Failed),
}

impl AnswerStream {
    fn connect(peer: &Peer<'_>, caller: &MakeCaller<'_>) -> io::Result<Self> {
        let stop = Interrupt::never()?;
        let (teller, news) = mpsc::channel();
        let awaited = Arc::new(AtomicU64::new(NONE));
        let caller = Arc::new(caller(&stop));
        let reading = Reading {
            caller: Arc::clone(&caller),
            server: peer.server.clone(),
            endpoint: None,
            awaited: Arc::clone(&awaited),
            teller: teller.clone(),
        };
        let thread = thread::Builder::new().spawn(move || reading.run())?;
        Ok(Self {
            endpoint: String::new(),
            awaited,
            caller,
            news,
            teller,
            ended: None,
            stop,
            threads: vec![thread],
        })
    }

    /// Waits for the next message from the threads.
    fn next(&self, peer: &Peer<'_>, deadline: Deadline<'_>) -> Result<News, Failed> {
        loop {
            let left = deadline.left();
            if let Ok(news) = self.news.recv_timeout(left.min(TICK)) {
                return Ok(news);
            }
            peer.interrupt.check()?;
            if left.is_zero() {
                return Err(deadline.is_over(&peer.server));
            }
        }
    }

    /// Sends a request on its own thread, since the answer may arrive on the stream before the POST returns.
    fn post(&mut self, message: Outgoing<'_>, deadline: Deadline<'_>) -> io::Result<()> {
        let (caller, teller) = (Arc::clone(&self.caller), self.teller.clone());
        let (endpoint, headers, body) =
            (self.endpoint.clone(), headers(message), message.to_text());
        let (id, limit) = (message.id.unwrap_or(NONE), Some(deadline.left()));
        let run = move || {
            let answered = caller.call(&HttpCall {
                method: "POST",
                url: Some(&endpoint),
                headers: &headers,
                body: Some(&body),
                limit,
            });
            let is_accepted = |status: u16| ACCEPTED.contains(&status);
            let answered = answered.map(|response| match response.status().as_u16() {
                // The body of an acknowledgement is not needed.
                status if is_accepted(status) => WholeAnswer::without_body(response),
                _ => caller.read(response),
            });
            let _ = teller.send(News::Posted(id, answered));
        };
        self.threads.retain(|thread| !thread.is_finished());
        self.threads.push(thread::Builder::new().spawn(run)?);
        Ok(())
    }

    fn request(
        &mut self,
        peer: &Peer<'_>,
        message: Outgoing<'_>,
        deadline: Deadline<'_>,
    ) -> Result<Value, Failed> {
        while let Ok(news) = self.news.try_recv() {
            if let News::Ended(failed) = news {
                self.ended = Some(failed.error);
            }
        }
        if let Some(error) = self.ended.take() {
            return Err(Failed::session_gone(error));
        }
        let awaited = message.id.unwrap_or(NONE);
        self.awaited.store(awaited, Ordering::SeqCst);
        let posted = self.post(message, deadline);
        posted.map_err(|error| no_thread(peer, &error))?;
        let mut is_posted = false;
        loop {
            // The outcome of the POST is more informative.
            if let Some(error) = self.ended.take_if(|_| is_posted) {
                return Err(Failed::broken(error).ending());
            }
            match self.next(peer, deadline)? {
                News::Answer(id, outcome) if id == awaited => return Ok(outcome?),
                News::Posted(id, answer) if id == awaited => {
                    is_posted = true;
                    if let Some(result) = posted_result(peer, answer, awaited, deadline)? {
                        return Ok(result);
                    }
                }
                News::Ended(failed) if matches!(failed.error, McpError::TooLarge { .. }) => {
                    return Err(failed.ending());
                }
                News::Ended(failed) => self.ended = Some(failed.error),
                News::Answer(..) | News::Posted(..) | News::Endpoint(_) => {}
            }
        }
    }
}

/// The result in the response to a POST, if it has one.
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
    let body = peer.checked(answer, true, deadline)?;
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
        let connected = AnswerStream::connect(&self.peer, &*self.caller);
        let mut stream = connected.map_err(|error| no_thread(&self.peer, &error))?;
        loop {
            match stream.next(&self.peer, deadline)? {
                News::Endpoint(endpoint) => {
                    stream.endpoint = endpoint;
                    self.stream = Some(stream);
                    return Ok(());
                }
                News::Ended(failed) => return Err(failed),
                News::Answer(..) | News::Posted(..) => {}
            }
        }
    }

    fn request(&mut self, message: Outgoing<'_>, deadline: Deadline<'_>) -> Result<Value, Failed> {
        match &mut self.stream {
            Some(stream) => stream.request(&self.peer, message, deadline),
            None => Err(self.gone()),
        }
    }

    fn notify(&mut self, message: Outgoing<'_>, deadline: Deadline<'_>) -> Result<(), Failed> {
        let stream = self.stream.as_ref().ok_or_else(|| self.gone())?;
        let call = HttpCall {
            method: "POST",
            url: Some(&stream.endpoint),
            headers: &headers(message),
            body: Some(&message.to_text()),
            limit: Some(deadline.left()),
        };
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

impl Drop for AnswerStream {
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
    /// The URL for answers to the server's own requests.
    endpoint: Option<String>,
    awaited: Arc<AtomicU64>,
    teller: Sender<News>,
}

impl Reading {
    fn run(mut self) {
        let ended = self.read();
        let _ = self.teller.send(News::Ended(ended));
    }

    /// Reads the stream to its end and returns the reason for the end.
    fn read(&mut self) -> Failed {
        let no_answer = |reason: &str| Failed::unbegun(McpError::no_answer(&self.server, reason));
        let called = self.caller.call(&HttpCall {
            method: "GET",
            url: None,
            headers: &[("accept", EVENTS.to_owned())],
            body: None,
            limit: None,
        });
        let response = match called {
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
            let refused = McpError::Status {
                server: self.server.clone(),
                status: status.as_u16(),
                words,
                tries: 1,
            };
            return if is_retryable(status.as_u16(), &Advice::default()) {
                Failed::unbegun(refused)
            } else {
                Failed::answered(refused)
            };
        }
        let (caller, server) = (Arc::clone(&self.caller), self.server.clone());
        let followed = caller.follow(response, &mut Events::default(), |event| self.take(event));
        match followed {
            Ok(Some(failed)) => failed,
            Ok(None) => Failed::unbegun(McpError::no_answer(&server, ENDED)),
            Err(HttpError::TooLarge(_)) => Failed::lost(McpError::TooLarge { server }),
            Err(error) => Failed::unbegun(McpError::no_answer(&server, error.to_string())),
        }
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
            match incoming {
                Incoming::Answer(outcome) => {
                    // A second answer to the same request is ignored.
                    self.awaited.store(NONE, Ordering::SeqCst);
                    let _ = self.teller.send(News::Answer(awaited, outcome));
                }
                Incoming::Asks(reply) => self.reply(&reply),
                Incoming::Other => {}
            }
        }
        None
    }

    fn take_endpoint(&mut self, said: &str) -> Option<Failed> {
        if self.endpoint.is_some() {
            return None;
        }
        let Some(url) = same_origin(&self.caller.client.endpoint, said) else {
            let problem = "the endpoint that it names is no URL of the same origin";
            return Some(Failed::answered(McpError::protocol(&self.server, problem)));
        };
        self.endpoint = Some(url.clone());
        let _ = self.teller.send(News::Endpoint(url));
        None
    }

    /// Answers a request from the server; the outcome is ignored.
    fn reply(&self, reply: &Value) {
        let _ = self.endpoint.as_ref().map(|endpoint| {
            self.caller.call(&HttpCall {
                method: "POST",
                url: Some(endpoint),
                headers: &[],
                body: Some(&reply.to_string()),
                limit: Some(ASIDE),
            })
        });
    }
}

fn headers(message: Outgoing<'_>) -> Vec<(&'static str, String)> {
    let version = message.version.map(|version| version.name().to_owned());
    let version = version.map(|name| ("mcp-protocol-version", name));
    version.into_iter().collect()
}
