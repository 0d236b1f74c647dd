//! HTTP+SSE, the transport of 2024: requests are POSTs to an endpoint that the server names, and all answers come on
//! one stream of events, which a thread reads. A request is made by a thread, too, since its answer may be there first.
//!
//! Touches the network. Guarantees that the threads end with the connection, that nothing is sent to another origin,
//! and that the first thread keeps of what comes no more than the answer that is waited for.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use rustix::event::PollFlags;
use serde_json::Value;

use super::error::{Failed, McpError, words};
use super::http::{Caller, EVENTS, HttpCall, Peer, WholeAnswer, is_stream, same_origin};
use super::message::{Incoming, Outgoing, RpcError};
use super::transport::{ANSWER_LIMIT, ASIDE, CHUNK, Deadline, Transport};
use crate::sys::http::HttpError;
use crate::sys::http::retry::{Advice, is_retryable};
use crate::sys::interrupt::Interrupt;
use crate::sys::sse::{Event, Events};

/// An id that no request has.
const NONE: u64 = 0;
/// The statuses of an answer that says nothing more than that a request has come.
const ACCEPTED: [u16; 2] = [202, 204];

/// Makes what makes calls, which the interrupt ends.
type MakeCaller<'a> = dyn Fn(&Interrupt) -> Caller + 'a;

/// A server that is spoken to so.
pub(super) struct HttpSse<'a> {
    peer: Peer<'a>,
    caller: Box<MakeCaller<'a>>,
    stream: Option<AnswerStream>,
}

/// The stream with the answers, the thread that reads it, and those that make the requests.
struct AnswerStream {
    /// The URL that requests go to.
    endpoint: String,
    /// The id of the answer that is waited for.
    awaited: Arc<AtomicU64>,
    caller: Arc<Caller>,
    news: Receiver<News>,
    /// Can be read when there are news.
    bell: UnixStream,
    teller: Teller,
    /// The reason of its end, once it has ended.
    ended: Option<McpError>,
    /// Ends the threads.
    stop: Interrupt,
    threads: Vec<JoinHandle<()>>,
}

/// Messages of the threads.
enum News {
    /// The URL that requests go to.
    Endpoint(String),
    /// The answer to the request with this id.
    Answer(u64, Result<Value, RpcError>),
    /// The answer to the POST of the request with this id.
    Posted(u64, Result<WholeAnswer, HttpError>),
    /// An event with more than may be read.
    TooLarge,
    /// The stream has ended.
    Ended(McpError),
}

/// Tells news.
#[derive(Clone)]
struct Teller {
    news: Sender<News>,
    ring: Arc<UnixStream>,
}

impl Teller {
    fn tell(&self, news: News) {
        // Where nobody listens any more, the thread is about to end.
        let _ = self.news.send(news);
        let _ = (&*self.ring).write_all(&[0]);
    }
}

impl<'a> HttpSse<'a> {
    /// One without a connection.
    pub fn new(peer: Peer<'a>, caller: Box<MakeCaller<'a>>) -> Self {
        Self {
            peer,
            caller,
            stream: None,
        }
    }

    /// Waits for the next news.
    fn next(&self, stream: &AnswerStream, deadline: Deadline<'_>) -> Result<News, Failed> {
        loop {
            if let Ok(news) = stream.news.try_recv() {
                return Ok(news);
            }
            let left = deadline.left();
            if left.is_zero() {
                return Err(deadline.is_over(&self.peer.server));
            }
            let interrupt = &self.peer.interrupt;
            let polled = interrupt.poll(&[stream.bell.as_fd()], PollFlags::IN, Some(left));
            interrupt.check()?;
            if matches!(polled, Ok(true)) {
                // One ring for each of the news; how many there are does not matter.
                let _ = (&stream.bell).read(&mut [0; 16]);
            }
        }
    }

    /// The result in what was said to a POST, where there is one.
    fn posted(
        &self,
        posted: Result<WholeAnswer, HttpError>,
        awaited: u64,
        deadline: Deadline<'_>,
    ) -> Result<Option<Value>, Failed> {
        let answer = posted.map_err(|error| self.peer.failed(error, deadline))?;
        if ACCEPTED.contains(&answer.head.status.as_u16()) {
            return Ok(None);
        }
        let body = self.peer.checked(answer, true, deadline)?;
        if body.trim_ascii().is_empty() {
            return Ok(None);
        }
        self.peer.result(&body, awaited).map(Some)
    }

    fn request_on(
        &self,
        stream: &mut AnswerStream,
        message: Outgoing<'_>,
        deadline: Deadline<'_>,
    ) -> Result<Value, Failed> {
        while let Ok(news) = stream.news.try_recv() {
            if let News::Ended(error) = news {
                stream.ended = Some(error);
            }
        }
        if let Some(error) = stream.ended.take() {
            return Err(Failed::session_gone(error));
        }
        let awaited = message.id.unwrap_or(NONE);
        stream.awaited.store(awaited, Ordering::SeqCst);
        let posted = stream.post(message, deadline);
        posted.map_err(|error| self.no_thread(&error))?;
        let mut is_posted = false;
        loop {
            // What the POST has come to tells more.
            if let Some(error) = stream.ended.take_if(|_| is_posted) {
                return Err(Failed {
                    ends_session: true,
                    ..Failed::broken(error)
                });
            }
            match self.next(stream, deadline)? {
                News::Answer(id, outcome) if id == awaited => {
                    return outcome.map_err(|error| Failed::answered(McpError::server(error)));
                }
                News::Posted(id, posted) if id == awaited => {
                    is_posted = true;
                    if let Some(result) = self.posted(posted, awaited, deadline)? {
                        return Ok(result);
                    }
                }
                News::TooLarge => {
                    return Err(Failed {
                        ends_session: true,
                        ..self.peer.too_large()
                    });
                }
                News::Ended(error) => stream.ended = Some(error),
                News::Answer(..) | News::Posted(..) | News::Endpoint(_) => {}
            }
        }
    }

    fn ended(&self) -> McpError {
        McpError::no_answer(&self.peer.server, "the stream of answers has ended")
    }

    fn no_thread(&self, error: &io::Error) -> Failed {
        Failed::answered(McpError::no_answer(&self.peer.server, error.to_string()))
    }

    fn connect(&self) -> io::Result<AnswerStream> {
        let stop = Interrupt::never()?;
        let (bell, ring) = UnixStream::pair()?;
        let (sender, news) = mpsc::channel();
        let awaited = Arc::new(AtomicU64::new(NONE));
        let caller = Arc::new((self.caller)(&stop));
        let teller = Teller {
            news: sender,
            ring: Arc::new(ring),
        };
        let reading = Reading {
            caller: Arc::clone(&caller),
            server: self.peer.server.clone(),
            endpoint: None,
            awaited: Arc::clone(&awaited),
            teller: teller.clone(),
        };
        let thread = thread::Builder::new().spawn(move || reading.run())?;
        Ok(AnswerStream {
            endpoint: String::new(),
            awaited,
            caller,
            news,
            bell,
            teller,
            ended: None,
            stop,
            threads: vec![thread],
        })
    }
}

impl AnswerStream {
    /// Sends a request by a thread of its own: its answer may come on the stream before the POST has one.
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
                // What else it says is not waited for.
                status if is_accepted(status) => WholeAnswer::without_body(response),
                _ => caller.read(response),
            });
            teller.tell(News::Posted(id, answered));
        };
        self.threads.retain(|thread| !thread.is_finished());
        self.threads.push(thread::Builder::new().spawn(run)?);
        Ok(())
    }
}

impl Transport for HttpSse<'_> {
    fn open(&mut self, deadline: Deadline<'_>) -> Result<(), Failed> {
        // The old thread ends first.
        self.stream = None;
        let connected = self.connect();
        let mut stream = connected.map_err(|error| self.no_thread(&error))?;
        loop {
            match self.next(&stream, deadline)? {
                News::Endpoint(endpoint) => {
                    stream.endpoint = endpoint;
                    self.stream = Some(stream);
                    return Ok(());
                }
                News::Ended(error) => {
                    let may_pass = match &error {
                        McpError::NoAnswer { .. } => true,
                        McpError::Status { status, .. } => {
                            is_retryable(*status, &Advice::default())
                        }
                        _ => false,
                    };
                    let failed = if may_pass {
                        Failed::unbegun
                    } else {
                        Failed::answered
                    };
                    return Err(failed(error));
                }
                News::TooLarge | News::Answer(..) | News::Posted(..) => {}
            }
        }
    }

    fn request(&mut self, message: Outgoing<'_>, deadline: Deadline<'_>) -> Result<Value, Failed> {
        let Some(mut stream) = self.stream.take() else {
            return Err(Failed::session_gone(self.ended()));
        };
        let outcome = self.request_on(&mut stream, message, deadline);
        self.stream = Some(stream);
        outcome
    }

    fn notify(&mut self, message: Outgoing<'_>, deadline: Deadline<'_>) -> Result<(), Failed> {
        let Some(stream) = &self.stream else {
            return Err(Failed::session_gone(self.ended()));
        };
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
            // A thread that has panicked has ended, too.
            let _ = thread.join();
        }
    }
}

/// The state of the reading thread.
struct Reading {
    caller: Arc<Caller>,
    server: String,
    /// The URL that answers to the server's own requests go to.
    endpoint: Option<String>,
    awaited: Arc<AtomicU64>,
    teller: Teller,
}

impl Reading {
    fn run(mut self) {
        let ended = self.read();
        self.teller.tell(News::Ended(ended));
    }

    /// Reads the stream to its end, which is for this reason.
    fn read(&mut self) -> McpError {
        let call = HttpCall {
            method: "GET",
            url: None,
            headers: &[("accept", EVENTS.to_owned())],
            body: None,
            limit: None,
        };
        let response = match self.caller.call(&call) {
            Ok(response) => response,
            Err(error) => return McpError::no_answer(&self.server, error.to_string()),
        };
        let status = response.status();
        if !status.is_success() || !is_stream(&response) {
            let said = if status.is_success() {
                "no stream of events".to_owned()
            } else {
                words(&self.caller.read(response).body.unwrap_or_default())
            };
            return McpError::Status {
                server: self.server.clone(),
                status: status.as_u16(),
                words: said,
                tries: 1,
            };
        }
        let mut reader = response.into_body().into_reader();
        let mut events = Events::default();
        let mut chunk = vec![0; CHUNK];
        loop {
            let amount = match reader.read(&mut chunk) {
                Ok(0) => {
                    return McpError::no_answer(&self.server, "the stream of answers has ended");
                }
                Ok(amount) => amount,
                Err(error) => {
                    let error = self.caller.client.classify(error.into());
                    return McpError::no_answer(&self.server, error.to_string());
                }
            };
            if let Err(error) = events.read(&chunk[..amount], |event| self.take(event)) {
                return error;
            }
            if events.pending() > ANSWER_LIMIT {
                self.teller.tell(News::TooLarge);
                return McpError::too_large(&self.server);
            }
        }
    }

    fn take(&mut self, event: Event) -> Result<(), McpError> {
        if event.kind == "endpoint" {
            return self.take_endpoint(&String::from_utf8_lossy(&event.data));
        }
        let Ok(json) = serde_json::from_slice(&event.data) else {
            return Ok(());
        };
        drop(event);
        let awaited = self.awaited.load(Ordering::SeqCst);
        for incoming in Incoming::read(json, awaited) {
            match incoming {
                Incoming::Answer(outcome) => {
                    // A second answer is none.
                    self.awaited.store(NONE, Ordering::SeqCst);
                    self.teller.tell(News::Answer(awaited, outcome));
                }
                Incoming::Asks(reply) => self.reply(&reply),
                Incoming::Other => {}
            }
        }
        Ok(())
    }

    fn take_endpoint(&mut self, said: &str) -> Result<(), McpError> {
        if self.endpoint.is_some() {
            return Ok(());
        }
        let Some(url) = same_origin(&self.caller.client.endpoint, said) else {
            let problem = "the endpoint that it names is no URL of the same origin";
            return Err(McpError::protocol(&self.server, problem));
        };
        self.endpoint = Some(url.clone());
        self.teller.tell(News::Endpoint(url));
        Ok(())
    }

    /// Answers a request of the server's. What it makes of that is its own affair.
    fn reply(&self, reply: &Value) {
        let Some(endpoint) = &self.endpoint else {
            return;
        };
        let call = HttpCall {
            method: "POST",
            url: Some(endpoint),
            headers: &[],
            body: Some(&reply.to_string()),
            limit: Some(ASIDE),
        };
        let _ = self.caller.call(&call);
    }
}

fn headers(message: Outgoing<'_>) -> Vec<(&'static str, String)> {
    let version = message.version.map(|version| version.name().to_owned());
    let version = version.map(|name| ("mcp-protocol-version", name));
    version.into_iter().collect()
}
