//! A client of MCP servers that others wrote: it asks what tools there are, and calls them.
//!
//! | part | what it is for |
//! |---|---|
//! | here | [`McpClient`]: handshake, retries, and what is asked for |
//! | `address`, `version`, `message`, `result` | what goes over the wire, and what that means |
//! | `error`, `retries`, `observer` | what can go wrong, what is tried again, and who hears of it |
//! | `transport` | what carries it: `streamable` and `http_sse`, both by `http`; `stdio`; `recorded` |
//!
//! Touches the network, or the program that is the server. Guarantees that a call that must not be done twice is tried
//! again only where the server has certainly not begun it; that every wait ends with its time, or a signal; and that
//! nothing of the client is left when it is dropped.

mod address;
mod error;
mod http;
mod http_sse;
mod message;
mod observer;
mod recorded;
mod result;
mod retries;
mod stdio;
mod streamable;
mod transport;
mod version;

use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

pub use self::address::{McpAddress, McpAddressProblem};
pub use self::error::McpError;
pub use self::observer::{Exchange, McpObserver};

use self::error::{Begun, Failed, Retry};
use self::http::{Caller, Peer};
use self::http_sse::HttpSse;
use self::message::Outgoing;
use self::recorded::Recorded;
use self::result::normalized;
use self::retries::Retries;
use self::stdio::Stdio;
use self::streamable::Streamable;
use self::transport::{Deadline, Transport};
use self::version::{Version, supported};
use crate::exec::child_env::ChildEnv;
use crate::secret::{ApiKey, Redactor};
use crate::sys::environment::{Clock, RecordedClock};
use crate::sys::http::HttpClient;
use crate::sys::http::endpoint::Proxies;
use crate::sys::interrupt::Interrupt;
use crate::sys::text::one_line;

/// The time limit of a handshake: a server that is there answers it at once.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(60);
/// The pages that a list of tools may have.
const MAX_PAGES: usize = 100;

/// The options of a client.
pub struct McpOptions<'a> {
    /// Knows the keys.
    pub redactor: &'a Redactor,
    /// Proxies on the way to a server.
    pub proxies: Proxies,
    /// The token that travels along, where the server wants one.
    pub token: Option<ApiKey>,
    /// The environment of a server that is a program.
    pub env: ChildEnv,
    /// This program's own file, for the supervisor of such a server.
    pub program: Option<&'a Path>,
    /// The time limit of a call: all tries, and the waits between them.
    pub timeout: Duration,
    /// Tells the time.
    pub clock: &'a dyn Clock,
    /// Ends every wait.
    pub interrupt: Interrupt,
    /// Hears what happens.
    pub observer: &'a dyn McpObserver,
}

/// Permission to repeat a call that has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// Yes: it changes nothing.
    Always,
    /// Only where the server has certainly not begun it.
    UnlessBegun,
}

/// A tool of a server's.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDescription {
    /// The name.
    pub name: String,
    /// The server's whole description: text, `inputSchema` and more.
    pub whole: Value,
}

/// Calls tools of a server.
pub trait McpTools {
    /// Calls a tool, and makes its result one form: `structuredContent`, the JSON in its text, or its text as a JSON
    /// string.
    ///
    /// # Errors
    /// When there is no result; [`McpError::is_lost`] says whether there can be any.
    fn call(&self, tool: &str, arguments: Value, repeat: Repeat) -> Result<Value, McpError>;
}

/// A client that is connected. The session ends when it is dropped.
pub struct McpClient<'a> {
    options: McpOptions<'a>,
    /// The server's name in errors.
    server: String,
    connection: RefCell<Connection<'a>>,
}

struct Connection<'a> {
    transport: Box<dyn Transport + 'a>,
    /// The version that was agreed on; `None`: there is no session.
    version: Option<Version>,
    last_id: u64,
}

impl<'a> McpClient<'a> {
    /// Connects to a server: by streamable HTTP, or, where the server does not take that, by the older HTTP+SSE.
    ///
    /// # Errors
    /// When there is no server that this client can speak to.
    pub fn connect(address: &McpAddress, options: McpOptions<'a>) -> Result<Self, McpError> {
        let (endpoint, interrupt) = match address {
            McpAddress::Http { endpoint, .. } => (endpoint, options.interrupt.clone()),
            McpAddress::Stdio(words) => {
                let own = options.program.map(Path::to_path_buf);
                let (env, interrupt) = (options.env.clone(), options.interrupt.clone());
                let stdio = Stdio::new(words.clone(), env, own, interrupt);
                let server = words.first().cloned().unwrap_or_default();
                let client = Self::new(server, Box::new(stdio), options);
                client.initialize()?;
                return Ok(client);
            }
        };
        let server = endpoint.base().to_owned();
        let never =
            Interrupt::never().map_err(|error| McpError::no_answer(&server, error.to_string()))?;
        let (there, proxies) = (endpoint.clone(), options.proxies.clone());
        let (token, url) = (options.token.clone(), address.url());
        let caller = move |interrupt: &Interrupt| {
            let client = HttpClient::new(there.clone(), &proxies, interrupt, 0);
            Caller::new(client, token.clone(), url.clone())
        };
        let peer = || {
            Peer::new(
                caller(&interrupt),
                caller(&never),
                interrupt.clone(),
                options.clock,
                options.observer,
            )
        };
        let streamable = Streamable::new(peer());
        let older = HttpSse::new(peer(), Box::new(caller));
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
                // What a server without this transport says to it matters less.
                McpError::Status { .. } => refused.error,
                error => error,
            })),
        }
    }

    /// A client to which a recorded run's `mcp.jsonl` answers, without a server and without waiting; `clock` shows the
    /// time of that run.
    ///
    /// # Errors
    /// When the text is none, or the run has not begun so.
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

    /// The server's name: its URL without a query, or its program.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The version of the protocol that was agreed on; "" where a session has ended.
    #[must_use]
    pub fn protocol(&self) -> &'static str {
        let version = self.connection.borrow().version;
        version.map_or("", Version::name)
    }

    /// The tools that the server has.
    ///
    /// # Errors
    /// When it does not say.
    pub fn tools(&self) -> Result<Vec<ToolDescription>, McpError> {
        let mut tools = Vec::new();
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let mut page = self.exchange("tools/list", &params, Repeat::Always)?;
            let Value::Array(listed) = page["tools"].take() else {
                return Err(McpError::protocol(
                    &self.server,
                    "it gives no list of its tools",
                ));
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
        Err(McpError::protocol(
            &self.server,
            "its list of tools does not end",
        ))
    }

    /// Makes the handshake for the first time, with as many tries as a call has.
    fn initialize(&self) -> Result<(), McpError> {
        self.try_to_initialize()
            .map_err(|failed| self.handshake_failed(failed.error))
    }

    fn try_to_initialize(&self) -> Result<(), Failed> {
        let begin = |deadline: Deadline<'_>| self.begin(deadline);
        self.retry(Repeat::Always, &begin)
    }

    /// Tells of a handshake that has come to nothing.
    fn handshake_failed(&self, error: McpError) -> McpError {
        self.tell(
            version::HANDSHAKE,
            &version::offer(),
            Err(&error),
            self.now(),
        );
        error
    }

    /// Sends a request until there is a result, the failure is final, or the time is over.
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
        self.tell(method, params, outcome.as_ref(), started);
        outcome
    }

    /// Tries until it works, the failure is final, or the time is over.
    fn retry<T>(
        &self,
        repeat: Repeat,
        once: &dyn Fn(Deadline<'_>) -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        let options = &self.options;
        let deadline = Deadline::after(options.timeout, options.clock);
        let mut retries = Retries::new(options.clock, options.observer, &options.interrupt);
        let mut has_renewed = false;
        loop {
            let mut failed = match once(deadline) {
                Ok(done) => return Ok(done),
                Err(failed) => failed,
            };
            failed.error = failed.error.fit(self.options.redactor);
            if failed.ends_session {
                self.connection.borrow_mut().version = None;
            }
            if matches!(failed.error, McpError::Interrupted(_)) {
                return Err(failed);
            }
            if repeat == Repeat::UnlessBegun && failed.begun == Begun::Perhaps {
                let source = Box::new(failed.error.after(retries.count));
                return Err(Failed::answered(McpError::Doubtful { source }));
            }
            match failed.retry {
                Retry::InNewSession if !has_renewed => has_renewed = true,
                Retry::After(advised) => retries.next(failed, advised, deadline)?,
                Retry::Never | Retry::InNewSession => return Err(failed.for_good(retries.count)),
            }
        }
    }

    /// Begins a session, or finds out that this server has none.
    fn begin(&self, deadline: Deadline<'_>) -> Result<(), Failed> {
        let started = self.now();
        let deadline = deadline.or_after(HANDSHAKE_LIMIT);
        // Whatever a handshake has come to, the request behind it was not begun.
        let unbegun = |failed: Failed| Failed {
            begun: Begun::No,
            ..failed
        };
        self.connection
            .borrow_mut()
            .transport
            .open(deadline)
            .map_err(unbegun)?;
        let offer = version::offer();
        let outcome = self.send(version::HANDSHAKE, &offer, None, deadline);
        let version = match &outcome {
            Ok(result) => {
                let named = result["protocolVersion"].as_str().unwrap_or_default();
                Version::named(named)
            }
            Err(Failed {
                error: McpError::Server(error),
                ..
            }) => Version::after_refusal(error.code, &error.data),
            Err(_) => None,
        };
        let Some(version) = version else {
            return Err(unbegun(self.no_version(outcome)));
        };
        let told = outcome.as_ref().map_err(|failed| &failed.error);
        self.tell(version::HANDSHAKE, &offer, told, started);
        let mut connection = self.connection.borrow_mut();
        if !version.is_stateless() {
            let message = Outgoing {
                id: None,
                method: "notifications/initialized",
                params: &json!({}),
                version: Some(version),
            };
            let notified = connection.transport.notify(message, deadline);
            // Where the session works, it does not matter what the server says to that.
            notified.map_err(unbegun).or_else(|failed| {
                let is_answer = failed.status.is_some() && !failed.ends_session;
                if is_answer { Ok(()) } else { Err(failed) }
            })?;
        }
        connection.version = Some(version);
        Ok(())
    }

    /// A handshake that has led to no version.
    fn no_version(&self, outcome: Result<Value, Failed>) -> Failed {
        let versions = match &outcome {
            Ok(result) => Some(result["protocolVersion"].to_string()),
            Err(Failed {
                error: McpError::Server(error),
                ..
            }) => supported(error.code, &error.data)
                .map(|versions| Value::from(versions.clone()).to_string()),
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

    /// Sends a request in the session.
    fn ask(&self, method: &str, params: &Value, deadline: Deadline<'_>) -> Result<Value, Failed> {
        let version = self.connection.borrow().version;
        match version.filter(|version| version.is_stateless()) {
            // Only there are the parameters others than those that were given.
            Some(stateless) => {
                let params = stateless.complete(params.clone());
                self.send(method, &params, version, deadline)
            }
            None => self.send(method, params, version, deadline),
        }
    }

    /// Sends a request, and takes it back where nobody waits for it any longer.
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
        // By the specification, a handshake is not taken back.
        let is_over = outcome
            .as_ref()
            .is_err_and(|failed| failed.error.is_final());
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

    fn tell(
        &self,
        method: &str,
        params: &Value,
        outcome: Result<&Value, &McpError>,
        started: Duration,
    ) {
        let now = self.now();
        self.options.observer.exchanged(&Exchange {
            method,
            params,
            outcome,
            seconds: now.saturating_sub(started).as_secs_f64(),
            at: now.as_secs_f64(),
        });
    }

    fn now(&self) -> Duration {
        self.options.clock.elapsed()
    }
}

impl McpTools for McpClient<'_> {
    fn call(&self, tool: &str, arguments: Value, repeat: Repeat) -> Result<Value, McpError> {
        let params = json!({"name": tool, "arguments": arguments});
        let result = self.exchange("tools/call", &params, repeat)?;
        normalized(result, &self.server).map_err(|error| error.fit(self.options.redactor))
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
