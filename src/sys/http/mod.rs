//! HTTP client for one server, with proxy, TLS, deadlines and signal handling.
//!
//! | part | purpose |
//! |---|---|
//! | here | [`HttpClient`], its errors, and reading responses up to a limit |
//! | [`endpoint`] | the destination of a call, and the proxy to reach it |
//! | [`rate_limit`] | the time until a rate limit allows another call |
//! | [`retry`] | the failures that are worth a retry, and the time to wait |
//! | [`transport`] | connections with keepalive that wake up when a signal arrives |
//!
//! Touches the network. Guarantees that redirects are not followed, that a call ends within its time limit, whatever
//! the server does, and that a signal ends it immediately.

pub mod endpoint;
pub mod rate_limit;
pub mod retry;
pub mod transport;

use std::io::{self, Read as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ureq::http::{HeaderMap, Response};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::unversioned::transport::{ConnectProxyConnector, Connector as _, RustlsConnector};
use ureq::{Agent, Body};

use self::endpoint::{Endpoint, Proxies};
use self::transport::{InterruptibleResolver, Silence, TcpConnector};
use super::interrupt::{Interrupt, Interrupted};
use super::text::one_line;

/// Time limit for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Time that an idle connection is kept for the next call: NATs with the shortest timeouts drop it after that.
const LONGEST_IDLE: Duration = Duration::from_mins(1);
/// Number of bytes of a response read at a time.
const CHUNK: usize = 64 << 10;
/// Size in bytes of each buffer of a connection. The default of four times that costs a short call more than itself.
const BUFFER: usize = 32 << 10;
/// Maximum number of characters shown of a header's value.
const LONGEST_HEADER: usize = 200;

/// Errors from a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// A signal arrived.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// The time limit of the call expired.
    #[error("there was no whole answer in time")]
    TimedOut,
    /// No connection could be made, so the server has not received the call.
    #[error("{reason}")]
    NoConnection { reason: String, is_refused: bool },
    /// The connection broke, so it is unknown whether the server processed the call.
    #[error("{0}")]
    Broken(String),
    /// The TLS connection failed: the server cannot be trusted.
    #[error("{0}")]
    Tls(String),
    /// The response is not valid HTTP, or a rule of this program forbids the call.
    #[error("{0}")]
    Protocol(String),
    /// The server redirects to another location, which is not followed.
    #[error("it redirects to `{location}` with status {status}")]
    Redirect { status: u16, location: String },
    /// The response is compressed, although that was not requested.
    #[error("the answer is compressed as `{0}`, which was not asked for")]
    Compressed(String),
    /// The response exceeds the size limit in bytes.
    #[error("the answer has more than {0} bytes")]
    TooLarge(u64),
}

/// HTTP client for one server.
#[derive(Debug)]
pub struct HttpClient {
    /// Agent that makes the calls. Each call uses a new connection unless an earlier one was kept.
    pub agent: Agent,
    /// Limit on how long a connection may be silent.
    pub silence: Silence,
    /// Number of connections opened.
    opened: Arc<AtomicUsize>,
    /// Server that the calls go to.
    pub endpoint: Endpoint,
}

impl HttpClient {
    /// Creates a client for `endpoint`. Opens and loads nothing; the first call that needs TLS sets it up. Up to `kept`
    /// connections are kept for further calls; these must then be made through [`HttpClient::call`].
    pub fn new(endpoint: Endpoint, proxies: &Proxies, interrupt: &Interrupt, kept: usize) -> Self {
        let opened = Arc::default();
        let silence = Silence::default();
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_idle_connections(kept)
            .max_idle_age(LONGEST_IDLE)
            .input_buffer_size(BUFFER)
            .output_buffer_size(BUFFER)
            .proxy(proxies.for_endpoint(&endpoint))
            .tls_config(
                TlsConfig::builder()
                    .root_certs(RootCerts::PlatformVerifier)
                    .build(),
            )
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_resolve(Some(CONNECT_TIMEOUT))
            .user_agent(concat!("code-commit/", env!("CARGO_PKG_VERSION")))
            .accept("application/json, text/event-stream, application/x-ndjson")
            .accept_encoding("identity")
            .build();
        let connector = ()
            .chain(ConnectProxyConnector::default())
            .chain(TcpConnector {
                interrupt: interrupt.clone(),
                only: endpoint.plain(),
                silence: silence.clone(),
                opened: Arc::clone(&opened),
            })
            .chain(RustlsConnector::default());
        let resolver = InterruptibleResolver(interrupt.clone());
        Self {
            agent: Agent::with_parts(config, connector, resolver),
            silence,
            opened,
            endpoint,
        }
    }

    /// Makes a call with `send` and returns its response as [`HttpClient::answer`] does. If the call used a kept
    /// connection that has been closed in the meantime, the server has not processed it; it is then repeated on a new
    /// one.
    ///
    /// # Errors
    /// Fails if there is no usable response.
    pub fn call(
        &self,
        send: impl Fn() -> Result<Response<Body>, ureq::Error>,
    ) -> Result<Response<Body>, HttpError> {
        let opened = || self.opened.load(Ordering::Relaxed);
        let before = opened();
        match self.answer(send()) {
            Err(HttpError::Broken(_)) if opened() == before => self.answer(send()),
            answer => answer,
        }
    }

    /// Checks the response of a call, which must not be a redirect or compressed. Its status may be an error.
    ///
    /// # Errors
    /// Fails if there is no response, or it fails the check.
    pub fn answer(
        &self,
        called: Result<Response<Body>, ureq::Error>,
    ) -> Result<Response<Body>, HttpError> {
        let response = called.map_err(|error| self.classify(error))?;
        let headers = response.headers();
        if response.status().is_redirection() {
            let location = header(headers, "location").unwrap_or("nowhere").to_owned();
            let status = response.status().as_u16();
            return Err(HttpError::Redirect { status, location });
        }
        let encoding = header(headers, "content-encoding");
        match encoding.filter(|name| !name.eq_ignore_ascii_case("identity")) {
            Some(encoding) => Err(HttpError::Compressed(one_line(encoding, LONGEST_HEADER))),
            None => Ok(response),
        }
    }

    /// Reads the rest of a response of at most `limit` bytes.
    ///
    /// # Errors
    /// Fails if the body is larger or cannot be read.
    pub fn read_body(&self, response: Response<Body>, limit: u64) -> Result<Vec<u8>, HttpError> {
        let announced = response.body().content_length().unwrap_or(0);
        if announced > limit {
            return Err(HttpError::TooLarge(limit));
        }
        let mut body = Vec::with_capacity(usize::try_from(announced).unwrap_or(0));
        let mut reader = response.into_body().into_reader();
        let mut chunk = vec![0; CHUNK];
        // Not `read_to_end`, which would retry a read that a signal interrupted.
        loop {
            match reader.read(&mut chunk) {
                Ok(0) => return Ok(body),
                Ok(amount) if body.len() as u64 + amount as u64 > limit => {
                    return Err(HttpError::TooLarge(limit));
                }
                Ok(amount) => body.extend_from_slice(&chunk[..amount]),
                Err(error) => return Err(self.classify(error.into())),
            }
        }
    }

    /// Converts an error from ureq.
    pub fn classify(&self, error: ureq::Error) -> HttpError {
        let reason = error.to_string();
        match error {
            ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
                unconnected("no connection in time")
            }
            ureq::Error::Timeout(_) => HttpError::TimedOut,
            ureq::Error::HostNotFound => unconnected("the host is not known"),
            ureq::Error::ConnectionFailed => unconnected("no connection"),
            ureq::Error::Io(error) => self.classify_io(&error),
            ureq::Error::Rustls(_) | ureq::Error::Tls(_) | ureq::Error::Pem(_) => {
                HttpError::Tls(reason)
            }
            _ => HttpError::Protocol(reason),
        }
    }

    fn classify_io(&self, error: &io::Error) -> HttpError {
        let reason = error.to_string();
        let inner = error.get_ref();
        if let Some(interrupted) = inner.and_then(|inner| inner.downcast_ref::<Interrupted>()) {
            return (*interrupted).into();
        }
        match error.kind() {
            // rustls reports certificates and messages that it rejects as invalid data.
            io::ErrorKind::InvalidData if self.endpoint.is_secure() => HttpError::Tls(reason),
            // An established connection cannot be refused.
            kind @ (io::ErrorKind::ConnectionRefused | io::ErrorKind::NotConnected) => {
                let is_refused = kind == io::ErrorKind::ConnectionRefused;
                HttpError::NoConnection { reason, is_refused }
            }
            io::ErrorKind::PermissionDenied => HttpError::Protocol(reason),
            _ => HttpError::Broken(reason),
        }
    }
}

/// Returns a header's value if it is text.
pub fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

fn unconnected(reason: &str) -> HttpError {
    let (reason, is_refused) = (reason.to_owned(), false);
    HttpError::NoConnection { reason, is_refused }
}
