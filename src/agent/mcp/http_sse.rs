//! HTTP+SSE, the transport of 2024: requests are POSTs to an endpoint that the server names, and all answers come on
//! one stream of events, which a thread reads.
//!
//! Touches the network. Guarantees that the thread ends with the connection, that nothing is sent to another origin,
//! and that the thread keeps of what comes no more than the answer that is waited for.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::{self, JoinHandle};

use rustix::event::PollFlags;
use serde_json::Value;

use super::error::{Failed, McpError};
use super::http::{Caller, EVENTS, HttpCall, Peer, is_stream, same_origin};
use super::message::{Incoming, Outgoing, RpcError};
use super::transport::{ANSWER_LIMIT, ASIDE, CallDeadline, HURRY, Transport};
use crate::sys::http::HttpClient;
use crate::sys::http::endpoint::Proxies;
use crate::sys::http::retry::{Advice, is_retryable};
use crate::sys::interrupt::Interrupt;
use crate::sys::sse::{Event, Events};

/// How much of a stream is read at once.
const CHUNK: usize = 16 << 10;
/// An id that no request has.
const NONE: u64 = 0;

/// A server that is spoken to so.
pub(super) struct HttpSse<'a> {
    peer: Peer<'a>,
    /// Makes the last calls, after a signal.
    last: Caller,
    proxies: Proxies,
    interrupt: Interrupt,
    stream: Option<AnswerStream>,
}

/// The stream with the answers, and the thread that reads it.
struct AnswerStream {
    /// Where requests go.
    endpoint: String,
    /// The id of the answer that is waited for.
    awaited: Arc<AtomicU64>,
    news: Receiver<News>,
    /// Can be read when there are news.
    bell: UnixStream,
    /// Ends the thread.
    stop: Interrupt,
    thread: Option<JoinHandle<()>>,
}

/// What the thread has to say.
enum News {
    /// Where requests go.
    Endpoint(String),
    /// The answer to the request with this id.
    Answer(u64, Result<Value, RpcError>),
    /// An event with more than may be read.
    TooLarge,
    /// The stream has ended.
    Ended(McpError),
}

impl<'a> HttpSse<'a> {
    /// One without a connection. `last` is not ended by signals.
    pub fn new(peer: Peer<'a>, last: Caller, proxies: Proxies, interrupt: Interrupt) -> Self {
        Self {
            peer,
            last,
            proxies,
            interrupt,
            stream: None,
        }
    }

    fn post(
        &self,
        stream: &AnswerStream,
        message: Outgoing<'_>,
        deadline: &CallDeadline<'_>,
    ) -> Result<(), Failed> {
        let call = HttpCall {
            method: "POST",
            url: &stream.endpoint,
            headers: &headers(message),
            body: Some(&message.to_text()),
            limit: Some(deadline.left()),
        };
        self.peer.call(&call, true, deadline).map(drop)
    }

    /// Waits for the next news.
    fn next(&self, stream: &AnswerStream, deadline: &CallDeadline<'_>) -> Result<News, Failed> {
        loop {
            match stream.news.try_recv() {
                Ok(news) => return Ok(news),
                Err(TryRecvError::Disconnected) => return Ok(News::Ended(self.ended())),
                Err(TryRecvError::Empty) => {}
            }
            let left = deadline.left();
            if left.is_zero() {
                return Err(deadline.is_over(&self.peer.server));
            }
            let polled = self
                .interrupt
                .poll(&[stream.bell.as_fd()], PollFlags::IN, Some(left));
            self.interrupt.check()?;
            if matches!(polled, Ok(true)) {
                // One ring for each of the news; how many there are does not matter.
                let _ = (&stream.bell).read(&mut [0; 16]);
            }
        }
    }

    fn ended(&self) -> McpError {
        McpError::no_answer(&self.peer.server, "the stream of answers has ended")
    }

    fn connect(&self) -> io::Result<AnswerStream> {
        let stop = Interrupt::never()?;
        let endpoint = self.peer.caller.client.endpoint().clone();
        let (bell, ring) = UnixStream::pair()?;
        let (sender, news) = mpsc::channel();
        let awaited = Arc::new(AtomicU64::new(NONE));
        let reading = Reading {
            caller: Caller {
                client: HttpClient::new(endpoint, &self.proxies, &stop),
                token: self.peer.caller.token.clone(),
            },
            url: self.peer.url.clone(),
            server: self.peer.server.clone(),
            endpoint: None,
            awaited: Arc::clone(&awaited),
            news: sender,
            ring,
        };
        let thread = thread::Builder::new().spawn(move || reading.run())?;
        Ok(AnswerStream {
            endpoint: String::new(),
            awaited,
            news,
            bell,
            stop,
            thread: Some(thread),
        })
    }
}

impl Transport for HttpSse<'_> {
    fn open(&mut self, deadline: &CallDeadline<'_>) -> Result<(), Failed> {
        // The old thread ends first.
        self.stream = None;
        let no_thread = |error: io::Error| {
            let error = McpError::no_answer(&self.peer.server, error.to_string());
            Failed::answered(error)
        };
        let mut stream = self.connect().map_err(no_thread)?;
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
                News::TooLarge | News::Answer(..) => {}
            }
        }
    }

    fn request(
        &mut self,
        message: Outgoing<'_>,
        deadline: &CallDeadline<'_>,
    ) -> Result<Value, Failed> {
        let Some(stream) = &self.stream else {
            return Err(Failed::session_gone(self.ended()));
        };
        while let Ok(news) = stream.news.try_recv() {
            if let News::Ended(error) = news {
                return Err(Failed::session_gone(error));
            }
        }
        let awaited = message.id.unwrap_or(NONE);
        stream.awaited.store(awaited, Ordering::SeqCst);
        self.post(stream, message, deadline)?;
        loop {
            match self.next(stream, deadline)? {
                News::Answer(id, outcome) if id == awaited => {
                    return outcome.map_err(|error| Failed::answered(McpError::server(error)));
                }
                News::TooLarge => {
                    let server = self.peer.server.clone();
                    let failed = Failed::answered(McpError::TooLarge { server });
                    return Err(Failed {
                        ends_session: true,
                        ..failed
                    });
                }
                News::Ended(error) => {
                    return Err(Failed {
                        ends_session: true,
                        ..Failed::broken(error)
                    });
                }
                News::Answer(..) | News::Endpoint(_) => {}
            }
        }
    }

    fn notify(&mut self, message: Outgoing<'_>, deadline: &CallDeadline<'_>) -> Result<(), Failed> {
        match &self.stream {
            Some(stream) => self.post(stream, message, deadline),
            None => Err(Failed::session_gone(self.ended())),
        }
    }

    fn notify_in_hurry(&mut self, message: Outgoing<'_>) {
        let Some(stream) = &self.stream else {
            return;
        };
        let call = HttpCall {
            method: "POST",
            url: &stream.endpoint,
            headers: &headers(message),
            body: Some(&message.to_text()),
            limit: Some(HURRY),
        };
        let _ = self.last.call(&call);
    }

    fn close(&mut self, _in_hurry: bool) {
        self.stream = None;
    }
}

impl Drop for AnswerStream {
    fn drop(&mut self) {
        self.stop.raise();
        if let Some(thread) = self.thread.take() {
            // A thread that has panicked has ended, too.
            let _ = thread.join();
        }
    }
}

/// What the thread works with.
struct Reading {
    caller: Caller,
    url: String,
    server: String,
    /// Where answers to the server's own requests go.
    endpoint: Option<String>,
    awaited: Arc<AtomicU64>,
    news: Sender<News>,
    ring: UnixStream,
}

impl Reading {
    fn run(mut self) {
        let ended = self.read();
        self.tell(News::Ended(ended));
    }

    fn tell(&mut self, news: News) {
        // Where nobody listens any more, the thread is about to end.
        let _ = self.news.send(news);
        let _ = self.ring.write_all(&[0]);
    }

    /// Reads the stream to its end, which is for this reason.
    fn read(&mut self) -> McpError {
        let call = HttpCall {
            method: "GET",
            url: &self.url,
            headers: &[("accept", EVENTS.to_owned())],
            body: None,
            limit: None,
        };
        let response = match self.caller.call(&call) {
            Ok(response) => response,
            Err(error) => return McpError::no_answer(&self.server, error.to_string()),
        };
        if !response.status().is_success() {
            return McpError::Status {
                server: self.server.clone(),
                status: response.status().as_u16(),
                words: String::new(),
                tries: 1,
            };
        }
        if !is_stream(&response) {
            return McpError::Status {
                server: self.server.clone(),
                status: response.status().as_u16(),
                words: "no stream of events".to_owned(),
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
                self.tell(News::TooLarge);
                return McpError::TooLarge {
                    server: self.server.clone(),
                };
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
                    self.tell(News::Answer(awaited, outcome));
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
        let Some(url) = same_origin(self.caller.client.endpoint(), said) else {
            let problem = "the endpoint that it names is no URL of the same origin";
            return Err(McpError::protocol(&self.server, problem));
        };
        self.endpoint = Some(url.clone());
        self.tell(News::Endpoint(url));
        Ok(())
    }

    /// Answers a request of the server's. What it makes of that is its own affair.
    fn reply(&self, reply: &Value) {
        let Some(endpoint) = &self.endpoint else {
            return;
        };
        let call = HttpCall {
            method: "POST",
            url: endpoint,
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
