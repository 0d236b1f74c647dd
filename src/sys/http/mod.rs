//! The ground for whoever speaks HTTP: one way to one server, with its proxy, TLS, deadlines and signals.
//!
//! | part | what it is for |
//! |---|---|
//! | here | [`HttpClient`], what can go wrong with a call, and reading answers up to a limit |
//! | [`endpoint`] | where a call goes, and the proxy on the way there |
//! | [`retry`] | which failures are worth another try, and when |
//! | [`transport`] | connections that keep alive, and wake when a signal comes |
//!
//! Touches the network. Guarantees that redirects are not followed, that a call ends within its time, whatever the
//! server does, and that a signal ends it at once.

pub mod endpoint;
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

/// The time a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// The time a connection is kept for the next call: as long as the least patient NATs do.
const LONGEST_IDLE: Duration = Duration::from_secs(60);
/// The number of bytes of an answer read at once.
const CHUNK: usize = 64 << 10;
/// The number of characters of a header's value that are shown.
const LONGEST_HEADER: usize = 200;

/// Why a call has no answer that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// A signal came.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// The time for the call is over.
    #[error("there was no whole answer in time")]
    TimedOut,
    /// There was no connection: the server has not seen the call.
    #[error("{reason}")]
    NoConnection { reason: String, is_refused: bool },
    /// The connection broke: nobody knows what the server has made of the call.
    #[error("{0}")]
    Broken(String),
    /// The server cannot be trusted.
    #[error("{0}")]
    Tls(String),
    /// The answer is not HTTP, or a rule of this program's stands against the call.
    #[error("{0}")]
    Protocol(String),
    /// The server sends elsewhere, where nothing is sent.
    #[error("it redirects to `{location}` with status {status}")]
    Redirect { status: u16, location: String },
    /// The answer is compressed, which was not asked for.
    #[error("the answer is compressed as `{0}`, which was not asked for")]
    Compressed(String),
    /// The answer is larger than it may be.
    #[error("the answer has more than {0} bytes")]
    TooLarge(u64),
}

/// The way to one server.
#[derive(Debug)]
pub struct HttpClient {
    /// Makes the calls; each takes a connection of its own, unless those before leave theirs to it.
    pub agent: Agent,
    /// Says how long a connection may be silent.
    pub silence: Silence,
    /// The number of connections that were opened.
    opened: Arc<AtomicUsize>,
    /// Where it leads.
    pub endpoint: Endpoint,
}

impl HttpClient {
    /// The way to `endpoint`. Nothing is opened or loaded yet; TLS is set up by the first call that needs it. So many
    /// connections are kept for the next calls, which are made by [`HttpClient::call`] then.
    pub fn new(endpoint: Endpoint, proxies: &Proxies, interrupt: &Interrupt, kept: usize) -> Self {
        let opened = Arc::default();
        let silence = Silence::default();
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_idle_connections(kept)
            .max_idle_age(LONGEST_IDLE)
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

    /// The answer of the call that `send` makes, as [`HttpClient::answer`] has it. Where a connection was kept for it that
    /// has died meanwhile, nothing has come of the call, and it is made again at once over a new one.
    ///
    /// # Errors
    /// When there is none.
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

    /// The answer of a call, unless it sends elsewhere or is compressed. Its status may be that of an error.
    ///
    /// # Errors
    /// When there is none, or it does.
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

    /// Reads the rest of an answer, if that has no more than `limit` bytes.
    ///
    /// # Errors
    /// When it has more, or cannot be read.
    pub fn read_body(&self, response: Response<Body>, limit: u64) -> Result<Vec<u8>, HttpError> {
        let announced = response.body().content_length().unwrap_or(0);
        if announced > limit {
            return Err(HttpError::TooLarge(limit));
        }
        let mut body = Vec::with_capacity(usize::try_from(announced).unwrap_or(0));
        let mut reader = response.into_body().into_reader();
        let mut chunk = vec![0; CHUNK];
        // Not `read_to_end`, which reads on where a signal has ended a wait.
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

    /// Converts an error of ureq's to the call's.
    pub fn classify(&self, error: ureq::Error) -> HttpError {
        let reason = error.to_string();
        let unconnected = |reason: &str| HttpError::NoConnection {
            reason: reason.to_owned(),
            is_refused: false,
        };
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
        if let Some(interrupted) = interruption(error) {
            return interrupted.into();
        }
        match error.kind() {
            // rustls reports what it does not accept as invalid data.
            io::ErrorKind::InvalidData if self.endpoint.is_secure() => HttpError::Tls(reason),
            // A connection that stands cannot be refused.
            io::ErrorKind::ConnectionRefused => HttpError::NoConnection {
                reason,
                is_refused: true,
            },
            io::ErrorKind::NotConnected => HttpError::NoConnection {
                reason,
                is_refused: false,
            },
            io::ErrorKind::PermissionDenied => HttpError::Protocol(reason),
            _ => HttpError::Broken(reason),
        }
    }
}

/// A header's value, where it is text.
pub fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// The signal that ended an operation, if one did.
fn interruption(error: &io::Error) -> Option<Interrupted> {
    error.get_ref()?.downcast_ref::<Interrupted>().copied()
}
