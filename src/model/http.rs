//! Calls a vendor over HTTP: the one user of ureq.
//!
//! Touches the network. Guarantees that the key travels in a header, encrypted or to this machine
//! only; that redirects are not followed; that a call ends within its time, whatever the server
//! does; and that an answer of more than [`ANSWER_LIMIT`] bytes is not read.

use std::io::{self, BufWriter, Read, Write};
use std::thread;
use std::time::Duration;

use ureq::http::{Response, header::HeaderMap};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::unversioned::transport::{ConnectProxyConnector, Connector, RustlsConnector};
use ureq::{Agent, Body, SendBody};

use super::retry::{self, Advice};
use super::{
    Delivery, Endpoint, Listener, Model, ModelError, ModelSpec, Proxies, Reply, Request, StepId,
    VendorError, Wire,
};
use crate::secret::ApiKey;
use crate::sys::environment::Clock;
use crate::sys::interrupt::{Interrupt, Interrupted};
use crate::sys::sse::Events;
use crate::sys::transport::{InterruptibleResolver, TcpConnector};

/// How large an answer may be, in bytes.
pub const ANSWER_LIMIT: u64 = 256 << 20;
/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How large an error's answer may be; vendors' are a few hundred bytes.
const FAILURE_LIMIT: u64 = 1 << 20;

/// The way to a model.
#[derive(Debug)]
pub struct Route {
    /// The server.
    pub endpoint: Endpoint,
    /// What may stand on the way there.
    pub proxies: Proxies,
    /// The key, where the server wants one.
    pub key: Option<ApiKey>,
}

/// A model behind a vendor's API.
pub struct HttpModel<'a> {
    spec: ModelSpec,
    wire: &'static dyn Wire,
    endpoint: Endpoint,
    key: Option<ApiKey>,
    delivery: Delivery,
    agent: Agent,
    timeout: Duration,
    clock: &'a dyn Clock,
    interrupt: Interrupt,
}

/// Why one try gave no answer.
enum TryError {
    /// An answer with an error's status.
    Status {
        status: u16,
        advice: Advice,
        vendor: VendorError,
        answer: Vec<u8>,
    },
    /// The connection could not be made, or broke.
    Broken(String),
    /// What no further try mends.
    Final(ModelError),
}

impl TryError {
    fn reason(&self) -> String {
        match self {
            Self::Status { status, .. } => format!("the server answered {status}"),
            Self::Broken(reason) => format!("the connection failed: {reason}"),
            Self::Final(error) => error.to_string(),
        }
    }
}

impl<'a> HttpModel<'a> {
    /// `timeout` covers a whole call: all tries, and the waits between them. Nothing is opened or
    /// loaded yet; TLS is set up by the first call that needs it.
    #[must_use]
    pub fn new(
        spec: ModelSpec,
        route: Route,
        delivery: Delivery,
        timeout: Duration,
        clock: &'a dyn Clock,
        interrupt: Interrupt,
    ) -> Self {
        let Route {
            endpoint,
            proxies,
            key,
        } = route;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_idle_connections(0)
            .proxy(proxies.for_endpoint(&endpoint))
            .tls_config(
                TlsConfig::builder()
                    .root_certs(RootCerts::PlatformVerifier)
                    .build(),
            )
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_resolve(Some(CONNECT_TIMEOUT))
            .user_agent(concat!("code-commit/", env!("CARGO_PKG_VERSION")))
            .accept("application/json, text/event-stream")
            .accept_encoding("identity")
            .build();
        let connector =
            ().chain(ConnectProxyConnector::default())
                .chain(TcpConnector::new(interrupt.clone(), !endpoint.is_secure()))
                .chain(RustlsConnector::default());
        let resolver = InterruptibleResolver::new(interrupt.clone());
        let agent = Agent::with_parts(config, connector, resolver);
        let wire = spec.provider.wire();
        Self {
            spec,
            wire,
            endpoint,
            key,
            delivery,
            agent,
            timeout,
            clock,
            interrupt,
        }
    }

    /// Tries until there is an answer, the failure is final, or the time is over.
    fn call_with_retries(
        &self,
        request: &Request<'_>,
        listener: &dyn Listener,
    ) -> Result<Vec<u8>, ModelError> {
        let deadline = self.clock.elapsed() + self.timeout;
        let timed_out = ModelError::TimedOut {
            after: self.timeout,
        };
        for tries in 1.. {
            let left = deadline.saturating_sub(self.clock.elapsed());
            if left.is_zero() {
                return Err(timed_out);
            }
            let error = match self.try_once(request, left, listener) {
                Ok(body) => return Ok(body),
                Err(error) => error,
            };
            let Some(wait) = self.wait_before_next(&error, tries) else {
                return Err(self.give_up(error, tries));
            };
            let left = deadline.saturating_sub(self.clock.elapsed());
            if wait > left {
                let error = Box::new(self.give_up(error, tries));
                return Err(ModelError::NoTimeLeft { error, wait });
            }
            let reason = error.reason();
            listener.restart();
            listener.retrying(tries + 1, wait, &reason);
            self.interrupt.sleep(wait)?;
        }
        Err(timed_out)
    }

    /// How long to wait before the next try; `None` where there is none to be made.
    fn wait_before_next(&self, error: &TryError, tries: u32) -> Option<Duration> {
        if tries >= retry::MAX_TRIES {
            return None;
        }
        // The wall clock's sub-second part is as good a die as any: it only keeps clients apart.
        let jitter = f64::from(self.clock.now().timestamp_subsec_micros()) / 1e6;
        let backoff = retry::backoff(tries, jitter);
        match error {
            TryError::Final(_) => None,
            TryError::Broken(_) => Some(backoff),
            TryError::Status {
                status,
                advice,
                vendor,
                ..
            } => retry::is_retryable(*status, advice, vendor).then(|| {
                advice
                    .wait
                    .or(vendor.retry_delay)
                    .filter(|wait| !wait.is_zero())
                    .unwrap_or(backoff)
            }),
        }
    }

    fn give_up(&self, error: TryError, tries: u32) -> ModelError {
        match error {
            TryError::Final(error) => error,
            TryError::Broken(reason) => ModelError::Connection {
                host: self.endpoint.host().to_owned(),
                reason,
                tries,
            },
            TryError::Status {
                status,
                vendor,
                answer,
                ..
            } => ModelError::Status {
                status,
                vendor,
                tries,
                answer,
            },
        }
    }

    fn try_once(
        &self,
        request: &Request<'_>,
        left: Duration,
        listener: &dyn Listener,
    ) -> Result<Vec<u8>, TryError> {
        let response = self
            .send(request, left)
            .map_err(|error| self.classify(error))?;
        let status = response.status().as_u16();
        let headers = response.headers();
        if response.status().is_redirection() {
            let location = header(headers, "location").unwrap_or("nowhere").to_owned();
            return Err(TryError::Final(ModelError::Redirect { status, location }));
        }
        if let Some(encoding) = header(headers, "content-encoding")
            .filter(|encoding| !encoding.eq_ignore_ascii_case("identity"))
        {
            let encoding = super::error::one_line(encoding);
            return Err(TryError::Final(ModelError::Compressed { encoding }));
        }
        // A server that does not stream answers as a whole all the same.
        let is_stream = header(headers, "content-type")
            .is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"));
        if response.status().is_success() {
            let answer = if is_stream {
                self.read_stream(response, listener)
            } else {
                self.read_body(response, ANSWER_LIMIT)
            };
            return answer.map_err(|error| match error {
                TryError::Broken(_) if request.once => TryError::Final(self.give_up(error, 1)),
                error => error,
            });
        }
        let advice = Advice::read(|name| header(headers, name), self.clock.now());
        // Whatever is wrong with the body of an error, the status is the news.
        let body = self
            .read_body(response, FAILURE_LIMIT)
            .or_else(|error| match error {
                TryError::Final(ModelError::Interrupted(_) | ModelError::TimedOut { .. }) => {
                    Err(error)
                }
                _ => Ok(Vec::new()),
            })?;
        let mut vendor = self.wire.read_failure(&body);
        if vendor.message.is_none() && !body.trim_ascii().is_empty() {
            vendor.message = Some(format!("`{}`", ModelError::snippet(&body)));
        }
        Err(TryError::Status {
            status,
            advice,
            vendor,
            answer: body,
        })
    }

    /// Sends the request. Its body is written while it is sent, never held as a whole.
    fn send(&self, request: &Request<'_>, left: Duration) -> Result<Response<Body>, ureq::Error> {
        let (wire, spec, delivery) = (self.wire, &self.spec, self.delivery);
        let mut length = ByteCount(0);
        wire.write_request(spec, request, delivery, &mut length)
            .map_err(io::Error::from)?;
        let mut call = self
            .agent
            .post(self.endpoint.url(&wire.path(spec, delivery)))
            .config()
            .timeout_global(Some(left))
            .build()
            .header("content-type", "application/json")
            .header("content-length", length.0.to_string());
        if let Some(key) = &self.key {
            let (name, prefix) = wire.key_header();
            call = call.header(name, format!("{prefix}{}", key.expose()));
        }
        let (mut reader, writer) = io::pipe()?;
        thread::scope(|scope| {
            let write = move || {
                let mut writer = BufWriter::with_capacity(PIPE_CHUNK, writer);
                // A reader that has gone away has its own reason, and reports it.
                let _ = wire.write_request(spec, request, delivery, &mut writer);
                let _ = writer.flush();
            };
            thread::Builder::new().spawn_scoped(scope, write)?;
            let response = call.send(SendBody::from_reader(&mut reader));
            // Lets the writing thread end where the server did not want the whole body.
            drop(reader);
            response
        })
    }

    /// Reads a streamed answer, and puts it together. One that is cut is as good as none.
    fn read_stream(
        &self,
        response: Response<Body>,
        listener: &dyn Listener,
    ) -> Result<Vec<u8>, TryError> {
        let mut assembler = self.wire.assembler();
        let mut events = Events::default();
        let mut reader = response.into_body().into_reader();
        let mut chunk = vec![0; STREAM_CHUNK];
        let mut total = 0;
        // Where there are no events after all, what came instead.
        let mut head = Vec::new();
        loop {
            let amount = match reader.read(&mut chunk) {
                Ok(0) => break,
                Ok(amount) => amount,
                Err(error) => return Err(self.classify(ureq::Error::from(error))),
            };
            total += amount as u64;
            if total > ANSWER_LIMIT {
                let limit = ANSWER_LIMIT;
                return Err(TryError::Final(ModelError::TooLarge { limit }));
            }
            let room = FAILURE_HEAD.saturating_sub(head.len());
            head.extend_from_slice(&chunk[..amount.min(room)]);
            events
                .read(&chunk[..amount], |data| assembler.event(data, listener))
                .map_err(TryError::Final)?;
            if assembler.is_over() {
                break;
            }
        }
        if let Some(answer) = assembler.finish() {
            return Ok(answer);
        }
        if head.trim_ascii_start().starts_with(b"{") && total <= FAILURE_HEAD as u64 {
            return Ok(head);
        }
        let reason = "the stream ended before the reply was whole";
        Err(TryError::Broken(reason.to_owned()))
    }

    fn read_body(&self, response: Response<Body>, limit: u64) -> Result<Vec<u8>, TryError> {
        let announced = response.body().content_length().unwrap_or(0);
        if announced > limit {
            return Err(TryError::Final(ModelError::TooLarge { limit }));
        }
        let mut body = Vec::with_capacity(usize::try_from(announced).unwrap_or(0));
        let mut reader = response.into_body().into_reader().take(limit + 1);
        reader
            .read_to_end(&mut body)
            .map_err(|error| self.classify(ureq::Error::from(error)))?;
        if body.len() as u64 > limit {
            return Err(TryError::Final(ModelError::TooLarge { limit }));
        }
        Ok(body)
    }

    /// Sorts ureq's errors by what they mean for the call.
    fn classify(&self, error: ureq::Error) -> TryError {
        let host = || self.endpoint.host().to_owned();
        match error {
            ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
                TryError::Broken("no connection in time".to_owned())
            }
            ureq::Error::Timeout(_) => TryError::Final(ModelError::TimedOut {
                after: self.timeout,
            }),
            ureq::Error::HostNotFound => TryError::Broken("the host is not known".to_owned()),
            ureq::Error::ConnectionFailed => TryError::Broken("no connection".to_owned()),
            ureq::Error::Io(error) => self.classify_io(&error),
            ureq::Error::Rustls(_) | ureq::Error::Tls(_) | ureq::Error::Pem(_) => {
                TryError::Final(ModelError::Tls {
                    host: host(),
                    reason: error.to_string(),
                })
            }
            other => TryError::Final(ModelError::Protocol {
                host: host(),
                reason: other.to_string(),
            }),
        }
    }

    fn classify_io(&self, error: &io::Error) -> TryError {
        let host = self.endpoint.host().to_owned();
        let interrupted = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<Interrupted>());
        if let Some(interrupted) = interrupted {
            return TryError::Final(ModelError::Interrupted(*interrupted));
        }
        match error.kind() {
            // rustls reports what it does not accept as invalid data.
            io::ErrorKind::InvalidData if self.endpoint.is_secure() => {
                TryError::Final(ModelError::Tls {
                    host,
                    reason: error.to_string(),
                })
            }
            io::ErrorKind::PermissionDenied => TryError::Final(ModelError::Protocol {
                host,
                reason: error.to_string(),
            }),
            _ => TryError::Broken(error.to_string()),
        }
    }
}

impl Model for HttpModel<'_> {
    fn ask(&self, request: &Request<'_>, listener: &dyn Listener) -> Result<Vec<u8>, ModelError> {
        self.call_with_retries(request, listener)
    }

    fn read(&self, _step: &StepId, answer: &[u8]) -> Result<Reply, ModelError> {
        self.wire.read_reply(answer)
    }
}

impl std::fmt::Debug for HttpModel<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpModel")
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}

/// How much of a stream without events is kept.
const FAILURE_HEAD: usize = 64 << 10;
/// How much of a stream is read at once.
const STREAM_CHUNK: usize = 16 << 10;
/// What a pipe holds by default on Linux; larger writes only wait longer.
const PIPE_CHUNK: usize = 64 << 10;

/// Counts what is written.
struct ByteCount(u64);

impl Write for ByteCount {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}
