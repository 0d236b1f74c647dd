//! A client for third-party MCP servers: lists their tools and calls them.
//!
//! | part | purpose |
//! |---|---|
//! | here | [`McpClient`]: handshake, retries and requests |
//! | `address`, `version`, `message`, `result` | the data on the wire and its meaning |
//! | `error`, `observer` | errors, and reports of the traffic |
//! | `transport` | the transports: `streamable` and `http_sse`, both using `http` and `listener`; `stdio`; `recorded` |
//!
//! Accesses the network, or starts the server's program. Guarantees that a call that must not be repeated is retried
//! only if the server has certainly not begun it; that every wait ends with its time limit or a signal; and that
//! dropping the client leaves nothing behind.

mod address;
mod error;
mod http;
mod http_sse;
mod listener;
mod message;
mod observer;
mod recorded;
mod result;
mod stdio;
mod streamable;
mod transport;
mod version;

use std::borrow::Cow;
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Value, json};
use ureq::http::HeaderMap;

pub use self::address::McpAddress;
pub use self::error::McpError;
pub use self::observer::{Exchange, McpObserver};

use self::error::{Failed, Retry};
use self::http::{Caller, MakeCaller, Peer};
use self::http_sse::HttpSse;
use self::message::Outgoing;
use self::recorded::Recorded;
use self::result::normalized;
use self::stdio::Stdio;
use self::streamable::Streamable;
use self::transport::{ANSWER_LIMIT, Deadline, Retries, Transport};
use self::version::{Version, supported};
use crate::exec::child_env::ChildEnv;
use crate::secret::{ApiKey, Redactor};
use crate::sys::environment::{Clock, RecordedClock};
use crate::sys::http::HttpClient;
use crate::sys::http::endpoint::Proxies;
use crate::sys::interrupt::Interrupt;
use crate::sys::text::one_line;

/// The time limit of a handshake, which a running server answers immediately.
const HANDSHAKE_LIMIT: Duration = Duration::from_mins(1);
/// The maximum number of pages in a list of tools.
const MAX_PAGES: usize = 100;

/// The options of a client.
pub struct McpOptions<'a> {
    /// Redacts API keys.
    pub redactor: &'a Redactor,
    /// Proxies for the connection to a server.
    pub proxies: Proxies,
    /// The token sent to the server, if it requires one.
    pub token: Option<ApiKey>,
    /// Further headers for a server at a URL.
    pub headers: HeaderMap,
    /// The environment of a server that is run as a program.
    pub env: ChildEnv,
    /// The path of this program's executable, to supervise such a server.
    pub program: Option<&'a Path>,
    /// The time limit of a call, including all tries and the waits between them.
    pub timeout: Duration,
    /// Provides the time.
    pub clock: &'a dyn Clock,
    /// Interrupts every wait.
    pub interrupt: Interrupt,
    /// Receives reports of the traffic.
    pub observer: &'a dyn McpObserver,
}

/// Permission to repeat a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// The call may be repeated: it changes nothing.
    Always,
    /// The call may be repeated only if the server has certainly not begun it.
    UnlessBegun,
}

/// A tool offered by a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDescription {
    /// The name of the tool.
    pub name: String,
    /// The server's complete description: text, `inputSchema` and more.
    pub whole: Value,
}

/// Calls the tools of a server.
pub trait McpTools {
    /// Calls a tool and normalizes its result: `structuredContent`, the JSON in its text, or its text as a JSON string.
    ///
    /// # Errors
    /// Fails if there is no result; [`McpError::is_lost`] reports whether further calls can succeed.
    fn call(&self, tool: &str, arguments: Value, repeat: Repeat) -> Result<Value, McpError>;
}

/// A connected client. The session ends when it is dropped.
pub struct McpClient<'a> {
    options: McpOptions<'a>,
    /// The server's name in errors.
    server: String,
    connection: RefCell<Connection<'a>>,
}

struct Connection<'a> {
    transport: Box<dyn Transport + 'a>,
    /// The negotiated version; `None` without a session.
    version: Option<Version>,
    last_id: u64,
}

impl<'a> McpClient<'a> {
    /// Connects to a server: over streamable HTTP or, if the server does not support that, over the older HTTP+SSE.
    ///
    /// # Errors
    /// Fails if no server answers that this client supports.
    pub fn connect(address: &McpAddress, options: McpOptions<'a>) -> Result<Self, McpError> {
        let interrupt = options.interrupt.clone();
        let endpoint = match address {
            McpAddress::Http { endpoint, .. } => endpoint,
            McpAddress::Stdio(words) => {
                let stdio = Stdio {
                    words: words.clone(),
                    env: options.env.clone(),
                    own: options.program.map(Path::to_path_buf),
                    interrupt,
                    observer: options.observer,
                    program: None,
                    received: Vec::new(),
                    parsed: 0,
                };
                let server = words.first().cloned().unwrap_or_default();
                let client = Self::new(server, Box::new(stdio), options);
                client.initialize()?;
                return Ok(client);
            }
        };
        let server = endpoint.base().to_owned();
        let (there, proxies) = (endpoint.clone(), options.proxies.clone());
        let (token, url) = (options.token.clone(), address.url());
        let headers = options.headers.clone();
        let make_caller: Box<MakeCaller<'_>> = Box::new(move |interrupt: &Interrupt| Caller {
            client: HttpClient::new(there.clone(), &proxies, interrupt, 0),
            token: token.clone(),
            headers: headers.clone(),
            url: url.clone(),
            with_slash: OnceLock::new(),
        });
        let peer = Rc::new(Peer {
            caller: make_caller(&interrupt),
            server: server.clone(),
            interrupt,
            clock: options.clock,
            observer: options.observer,
            make_caller,
        });
        let streamable = Streamable {
            peer: Rc::clone(&peer),
            session: None,
            headers_of_session: Vec::new(),
            listener: None,
        };
        let older = HttpSse { peer, stream: None };
        let mut client = Self::new(server, Box::new(streamable), options);
        let Err(refused) = client.try_to_initialize() else {
            return Ok(client);
        };
        if !matches!(refused.status, Some(400 | 404 | 405 | 406)) {
            return Err(client.handshake_failed(refused.error));
        }
        client.connection.get_mut().transport = Box::new(older);
        match client.try_to_initialize() {
            Ok(()) => Ok(client),
            Err(failed) => Err(client.handshake_failed(match failed.error {
                McpError::Status {
                    status: 401 | 403, ..
                } => failed.error,
                // The answer from a server that lacks this transport is less informative.
                McpError::Status { .. } => refused.error,
                error => error,
            })),
        }
    }

    /// Creates a client that replays a recorded run's `mcp.jsonl`, without a server and without waiting; `clock` shows
    /// the time of that run.
    ///
    /// # Errors
    /// Fails if the text is not a record, or the run does not begin with this handshake.
    pub fn replay(
        text: &str,
        options: McpOptions<'a>,
        clock: &'a RecordedClock<'a>,
    ) -> Result<Self, McpError> {
        let server = "the recorded run";
        let options = McpOptions { clock, ..options };
        let recorded = Recorded::read(text, clock).map_err(|line| {
            McpError::protocol(server, format!("line {line} of `mcp.jsonl` is no exchange"))
        })?;
        let client = Self::new(server.to_owned(), Box::new(recorded), options);
        client.initialize()?;
        Ok(client)
    }

    fn new(server: String, transport: Box<dyn Transport + 'a>, options: McpOptions<'a>) -> Self {
        Self {
            options,
            server,
            connection: RefCell::new(Connection {
                transport,
                version: None,
                last_id: 0,
            }),
        }
    }

    /// Returns the server's name: its URL without the query, or its program.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns the negotiated protocol version; empty if a session has ended.
    pub fn protocol(&self) -> &'static str {
        self.connection.borrow().version.map_or("", Version::name)
    }

    /// Lists the tools of the server.
    ///
    /// # Errors
    /// Fails if a request fails, or the server does not return a complete list.
    pub fn tools(&self) -> Result<Vec<ToolDescription>, McpError> {
        let (mut tools, mut size) = (Vec::new(), 0);
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let mut page = self.exchange("tools/list", &params, Repeat::Always)?;
            size += page.to_string().len();
            if size > ANSWER_LIMIT {
                return Err(McpError::TooLarge(self.server.clone()));
            }
            let Value::Array(listed) = page["tools"].take() else {
                let problem = "it gives no list of its tools";
                return Err(McpError::protocol(&self.server, problem));
            };
            tools.extend(listed.into_iter().filter_map(|whole| {
                let name = whole["name"].as_str()?.to_owned();
                Some(ToolDescription { name, whole })
            }));
            match page["nextCursor"].take() {
                Value::String(cursor) if !cursor.is_empty() => params = json!({"cursor": cursor}),
                _ => return Ok(tools),
            }
        }
        let problem = "its list of tools does not end";
        Err(McpError::protocol(&self.server, problem))
    }

    /// Performs the first handshake, which is retried like a call.
    fn initialize(&self) -> Result<(), McpError> {
        self.try_to_initialize()
            .map_err(|failed| self.handshake_failed(failed.error))
    }

    fn try_to_initialize(&self) -> Result<(), Failed> {
        let begin = |deadline: Deadline<'_>| self.begin(deadline);
        self.retry(Repeat::Always, &begin)
    }

    /// Reports a failed handshake.
    fn handshake_failed(&self, error: McpError) -> McpError {
        let (method, offer) = (version::HANDSHAKE, version::offer());
        self.report(method, &offer, Err(&error), self.now());
        error
    }

    /// Sends a request until a result arrives, the failure is final, or time is up.
    fn exchange(&self, method: &str, params: &Value, repeat: Repeat) -> Result<Value, McpError> {
        let started = self.now();
        let once = |deadline: Deadline<'_>| {
            let is_open = self.connection.borrow().version.is_some();
            if !is_open {
                self.begin(deadline)?;
            }
            self.ask(method, params, deadline)
        };
        let outcome = self.retry(repeat, &once).map_err(|failed| failed.error);
        self.report(method, params, outcome.as_ref(), started);
        outcome
    }

    /// Retries until the request succeeds, the failure is final, or time is up.
    fn retry<T>(
        &self,
        repeat: Repeat,
        once: &dyn Fn(Deadline<'_>) -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        let options = &self.options;
        let deadline = Deadline::after(options.timeout, options.clock);
        let mut retries = Retries {
            observer: options.observer,
            interrupt: &options.interrupt,
            count: 1,
        };
        let mut has_renewed = false;
        loop {
            let mut failed = match once(deadline) {
                Ok(done) => return Ok(done),
                Err(failed) => failed,
            };
            failed.error = failed.error.for_display(self.options.redactor);
            if failed.ends_session {
                self.connection.borrow_mut().version = None;
            }
            if matches!(failed.error, McpError::Interrupted(_)) {
                return Err(failed);
            }
            if repeat == Repeat::UnlessBegun && failed.is_doubtful {
                let source = Box::new(failed.error.after(retries.count));
                return Err(Failed::answered(McpError::Doubtful(source)));
            }
            match failed.retry {
                Retry::InNewSession if !has_renewed => has_renewed = true,
                Retry::After(advised) => retries.next(failed, advised, deadline)?,
                Retry::Never | Retry::InNewSession => return Err(failed.for_good(retries.count)),
            }
        }
    }

    /// Begins a session, or detects that the server has none.
    fn begin(&self, deadline: Deadline<'_>) -> Result<(), Failed> {
        let started = self.now();
        let deadline = deadline.or_after(HANDSHAKE_LIMIT);
        // However a handshake fails, the request after it was not begun.
        let unbegun = |failed: Failed| Failed {
            is_doubtful: false,
            ..failed
        };
        let opened = self.connection.borrow_mut().transport.open(deadline);
        opened.map_err(unbegun)?;
        let offer = version::offer();
        let outcome = self.send(version::HANDSHAKE, &offer, None, deadline);
        let version = match &outcome {
            Ok(result) => Version::named(result["protocolVersion"].as_str().unwrap_or_default()),
            Err(Failed {
                error: McpError::Server(error),
                ..
            }) => Version::after_refusal(error.code, &error.data),
            Err(_) => None,
        };
        let Some(version) = version else {
            return Err(unbegun(self.no_version(outcome)));
        };
        let reported = outcome.as_ref().map_err(|failed| &failed.error);
        self.report(version::HANDSHAKE, &offer, reported, started);
        let mut connection = self.connection.borrow_mut();
        if !version.is_stateless() {
            let message = Outgoing {
                id: None,
                method: "notifications/initialized",
                params: &json!({}),
                version: Some(version),
            };
            let notified = connection.transport.notify(message, deadline);
            // An error in the answer to this notification does not matter if the session works.
            notified.map_err(unbegun).or_else(|failed| {
                let is_answer = failed.status.is_some() && !failed.ends_session;
                if is_answer { Ok(()) } else { Err(failed) }
            })?;
        }
        connection.version = Some(version);
        Ok(())
    }

    /// Creates the failure of a handshake that agreed on no version.
    fn no_version(&self, outcome: Result<Value, Failed>) -> Failed {
        let versions = match &outcome {
            Ok(result) => Some(result["protocolVersion"].to_string()),
            Err(Failed {
                error: McpError::Server(error),
                ..
            }) => {
                supported(error.code, &error.data).map(|all| Value::from(all.clone()).to_string())
            }
            Err(_) => None,
        };
        match (outcome, versions) {
            (Err(failed), None) => failed,
            (_, versions) => Failed::answered(McpError::Version {
                server: self.server.clone(),
                versions: one_line(&versions.unwrap_or_default(), 300),
            }),
        }
    }

    /// Sends a request within the session.
    fn ask(&self, method: &str, params: &Value, deadline: Deadline<'_>) -> Result<Value, Failed> {
        let connection = self.connection.borrow();
        let (version, id) = (connection.version, connection.last_id + 1);
        drop(connection);
        let mut params = params.clone();
        if method == "tools/call" {
            params["_meta"] = json!({"progressToken": id});
        }
        if let Some(version) = version {
            params = version.complete(params);
        }
        self.send(method, &params, version, deadline)
    }

    /// Sends a request, and cancels it if its answer is no longer awaited.
    fn send(
        &self,
        method: &str,
        params: &Value,
        version: Option<Version>,
        deadline: Deadline<'_>,
    ) -> Result<Value, Failed> {
        let mut connection = self.connection.borrow_mut();
        connection.last_id += 1;
        let id = connection.last_id;
        let message = Outgoing {
            id: Some(id),
            method,
            params,
            version,
        };
        let outcome = connection.transport.request(message, deadline);
        // The specification forbids cancelling a handshake.
        let is_final = |failed: &Failed| failed.error.is_final();
        let is_over = outcome.as_ref().is_err_and(is_final);
        if let (true, Some(version)) = (is_over, version) {
            let params = json!({"requestId": id, "reason": "nobody waits for it any longer"});
            connection.transport.notify_last(Outgoing {
                id: None,
                method: "notifications/cancelled",
                params: &version.complete(params),
                version: Some(version),
            });
        }
        outcome
    }

    fn report(
        &self,
        method: &str,
        params: &Value,
        outcome: Result<&Value, &McpError>,
        started: Duration,
    ) {
        let now = self.now();
        self.options.observer.exchanged(&Exchange {
            method: method.into(),
            params: Cow::Borrowed(params),
            result: outcome.ok().map(Cow::Borrowed),
            error: outcome.err().map(McpError::to_record).unwrap_or_default(),
            seconds: now.saturating_sub(started).as_secs_f64(),
            at: now.as_secs_f64(),
        });
    }

    fn now(&self) -> Duration {
        self.options.clock.elapsed()
    }
}

impl McpClient<'_> {
    /// Calls a tool; returns its normalized result, and the result as the server gave it.
    ///
    /// # Errors
    /// Same as [`call`](McpTools::call).
    pub fn call_whole(
        &self,
        tool: &str,
        arguments: &Value,
        repeat: Repeat,
    ) -> Result<(Value, Value), McpError> {
        let params = json!({"name": tool, "arguments": arguments});
        let whole = self.exchange("tools/call", &params, repeat)?;
        let result = normalized(whole.clone(), &self.server)
            .map_err(|error| error.for_display(self.options.redactor))?;
        Ok((result, whole))
    }
}

impl McpTools for McpClient<'_> {
    fn call(&self, tool: &str, arguments: Value, repeat: Repeat) -> Result<Value, McpError> {
        Ok(self.call_whole(tool, &arguments, repeat)?.0)
    }
}

impl Drop for McpClient<'_> {
    fn drop(&mut self) {
        let after_signal = self.options.interrupt.check().is_err();
        self.connection.get_mut().transport.close(after_signal);
    }
}

#[cfg(test)]
mod tests;
