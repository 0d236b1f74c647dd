//! Calls a vendor's API over HTTP.
//!
//! Touches the network. Guarantees that the key travels in a header, and only encrypted or to this machine; that
//! redirects are not followed; that a call ends within its time limit, whatever the server does; and that an answer of
//! more than [`ANSWER_LIMIT`] bytes is not read.

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use chrono::TimeDelta;
use memchr::memmem;
use ureq::Body;
use ureq::http::Response;

use super::error::ANSWER_LIMIT;
use super::manner::{LINE, Manner, refuses_order, refuses_schema};
use super::pace::Pace;
use super::setup::Setup;
use super::{
    Answer, Delivery, Listener, Model, ModelError, ModelSpec, Reply, Request, Route, StepId, Tier,
    VendorServer,
};
use crate::model::wire::{Assembler, Wire};
use crate::secret::ApiKey;
use crate::sys::environment::Clock;
use crate::sys::http::retry::{self, Advice};
use crate::sys::http::{HttpError, header, rate_limit};
use crate::sys::interrupt::{Interrupt, Interrupted};
use crate::sys::ndjson::Lines;
use crate::sys::sse::Events;
use crate::sys::text::without_mark;

/// Time to wait for the usage and the end of the stream after a streamed reply is whole: not all servers send them, or
/// close the connection.
const GRACE: Duration = Duration::from_secs(2);
/// Time limit of each of the [`LAST_READS`] reads that drain a stream after its last event.
const LAST_GRACE: Duration = Duration::from_millis(50);
const LAST_READS: usize = 4;
/// Average number of a request's bytes per token, used to compare a prompt with a rate limit.
const BYTES_PER_TOKEN: u64 = 4;
/// Maximum size of an error's body, in bytes; vendors send a few hundred.
const FAILURE_LIMIT: u64 = 1 << 20;

/// A model behind a vendor's API.
pub struct HttpModel<'a> {
    spec: ModelSpec,
    server: VendorServer,
    /// The features that requests use; those that the server rejects are dropped.
    manner: Cell<Manner>,
    timeout: Duration,
    /// The pace that it shares with other processes.
    pace: Option<Pace>,
    /// The size of the last request's body, in bytes.
    sent: Cell<u64>,
    clock: &'a dyn Clock,
    interrupt: Interrupt,
}

/// The failure of a single try.
struct TryError {
    error: ModelError,
    /// True if another try may succeed.
    is_retryable: bool,
    /// The time that the server asks to wait before the next try.
    wait: Option<Duration>,
}

impl From<ModelError> for TryError {
    /// Creates an error that is not retried, unless the connection failed or the vendor's code says that it is
    /// transient.
    fn from(error: ModelError) -> Self {
        Self {
            is_retryable: match &error {
                ModelError::ErrorInAnswer(vendor) => vendor.may_pass(),
                error => matches!(error, ModelError::Connection { .. }),
            },
            wait: match &error {
                ModelError::ErrorInAnswer(vendor) => vendor.retry_delay,
                _ => None,
            },
            error,
        }
    }
}

impl TryError {
    /// Rules out another try if `is_last`: the call may have cost something.
    fn last_if(self, is_last: bool) -> Self {
        Self {
            is_retryable: self.is_retryable && !is_last,
            ..self
        }
    }
}

impl<'a> HttpModel<'a> {
    /// Creates the model. `timeout` covers a whole call: all tries, and the waits between them. Nothing is opened or
    /// loaded yet; TLS is set up by the first call that needs it.
    pub fn new(
        spec: ModelSpec,
        route: Route,
        delivery: Delivery,
        timeout: Duration,
        clock: &'a dyn Clock,
        interrupt: Interrupt,
    ) -> Self {
        Self {
            server: VendorServer::new(spec.provider, route, &interrupt),
            spec,
            manner: Cell::new(delivery.into()),
            timeout,
            pace: None,
            sent: Cell::default(),
            clock,
            interrupt,
        }
    }

    /// Makes the model keep a pace together with the processes that share this directory.
    pub fn paced(self, directory: Option<&Path>) -> Self {
        let server = self.server.url();
        let key = self.server.key.as_ref().map_or("", ApiKey::expose);
        let pace = directory.map(|directory| Pace::new(directory, &server, key));
        Self { pace, ..self }
    }

    /// Makes all processes that keep the pace wait for this time.
    fn hold(&self, wait: Option<Duration>) {
        let time = wait.and_then(|wait| {
            let wait = TimeDelta::from_std(wait).ok()?;
            self.clock.now().checked_add_signed(wait)
        });
        if let (Some(pace), Some(time)) = (&self.pace, time) {
            pace.wait_until(time.into());
        }
    }

    /// Returns the time to wait before a call, to keep the pace; at most the time limit of a call.
    fn pause(&self) -> Duration {
        let until = self.pace.as_ref().and_then(Pace::until);
        let wait = until.and_then(|until| (until - self.clock.now().to_utc()).to_std().ok());
        wait.unwrap_or_default().min(self.timeout)
    }

    /// Waits until the pace allows a call, but no longer than `most`. Other processes may prolong the wait in the
    /// meantime.
    fn keep_pace(&self, mut most: Duration, listener: &dyn Listener) -> Result<(), Interrupted> {
        loop {
            let pause = self.pause().min(most);
            if pause.is_zero() {
                return Ok(());
            }
            listener.pausing(pause);
            self.interrupt.sleep(pause)?;
            most -= pause;
        }
    }

    fn try_once(
        &self,
        request: &Request<'_>,
        left: Duration,
        listener: &dyn Listener,
    ) -> Result<Answer, TryError> {
        let wire = self.server.vendor.wire;
        self.server.client.silence.allow(None);
        let (client, send) = (&self.server.client, || self.send(request, left));
        let called = if request.once {
            client.answer(send())
        } else {
            client.call(send)
        };
        let response = called.map_err(|error| {
            let is_unsent = matches!(error, HttpError::NoConnection { .. });
            self.failed(error).last_if(request.once && !is_unsent)
        })?;
        let status = response.status().as_u16();
        let headers = response.headers();
        let tokens = self.sent.get() / BYTES_PER_TOKEN;
        let now = self.clock.now();
        self.hold(rate_limit::reset(|name| header(headers, name), now, tokens));
        let pieces = Pieces::of(header(headers, "content-type"), wire);
        if response.status().is_success() {
            let tier = wire
                .tier_header()
                .and_then(|name| Tier::parse(header(headers, name)?.trim()));
            let read = match pieces {
                Some(pieces) => self.read_stream(response, pieces, listener),
                None => self
                    .server
                    .client
                    .read_body(response, ANSWER_LIMIT)
                    .map_err(|error| self.failed(error)),
            };
            let json = read.map_err(|failed| failed.last_if(request.once))?;
            let is_small = json.len() <= FAILURE_HEAD;
            let error = is_small.then(|| wire.read_reply(&json).err()).flatten();
            // As in a stream, the error may be over at the next try.
            if let Some(error @ ModelError::ErrorInAnswer(_)) = error {
                return Err(TryError::from(error).last_if(request.once));
            }
            return Ok(Answer { json, tier });
        }
        let advice = Advice::read(|name| header(headers, name), now);
        // The status matters even if the body of an error cannot be read.
        let body = match self.server.client.read_body(response, FAILURE_LIMIT) {
            Err(error @ (HttpError::Interrupted(_) | HttpError::TimedOut)) => {
                return Err(self.failed(error));
            }
            read => read.unwrap_or_default(),
        };
        let mut vendor = wire.read_failure(&body).with_status(status);
        vendor.hint = wire.hint(status, vendor.code.as_deref());
        if vendor.message.is_none() && !body.trim_ascii().is_empty() {
            vendor.message = Some(format!("`{}`", ModelError::snippet(&body)));
        }
        let is_retryable =
            !vendor.quota_spent && !vendor.asks_too_much() && retry::is_retryable(status, &advice);
        let wait = advice.wait.or(vendor.retry_delay);
        if is_retryable && matches!(status, 429 | 503 | 529) {
            self.hold(wait);
        }
        let error = ModelError::Status {
            status,
            vendor,
            model: self.spec.id.clone(),
            tries: 1,
            answer: body.into(),
            setup: Setup::default(),
        };
        Err(TryError {
            // Another tier may have capacity immediately.
            is_retryable: is_retryable && (request.tier == Tier::Standard || !error.refuses_tier()),
            wait,
            error,
        })
    }

    /// Returns the features with which to repeat a call that the server rejected: without the schema, without the
    /// query's temperature, with one message for each turn, or without `stream_options`, which requests the usage. If
    /// the answer does not say what is wrong, `stream_options` is dropped first.
    fn other_manner(
        &self,
        request: &Request<'_>,
        answer: &Result<Answer, TryError>,
    ) -> Option<Manner> {
        let Err(TryError { error, .. }) = answer else {
            return None;
        };
        let (status, body) = match error {
            ModelError::Status { status, answer, .. } => (*status, answer.to_vec()),
            // Such an answer may have cost something.
            ModelError::ErrorInAnswer(_) if !request.once => (LINE, error.to_string().into_bytes()),
            _ => return None,
        };
        let names = |field: &str| status != LINE && memmem::find(&body, field.as_bytes()).is_some();
        let names_nothing = || {
            let vendor = self.server.vendor.wire.read_failure(&body);
            vendor.message.is_none() && vendor.code.is_none()
        };
        let manner = self.manner.get();
        let constraint = manner.constraint.weaker();
        let weaker = constraint
            .filter(|_| request.form.schema.is_some())
            .map(|constraint| Manner {
                constraint,
                ..manner
            });
        let asks_usage = manner.delivery == Delivery::Streamed && self.server.vendor.is_shared;
        let plainly = asks_usage.then_some(Manner {
            delivery: Delivery::StreamedPlainly,
            ..manner
        });
        let is_warm = manner.queries_temperature(&self.spec, &request.form);
        let unheated = is_warm.map(|_| Manner {
            takes_temperature: false,
            ..manner
        });
        let words = String::from_utf8_lossy(&body);
        match status {
            _ if !manner.alternates && refuses_order(&words) => Some(Manner {
                alternates: true,
                ..manner
            }),
            400 | 422 if names("temperature") && unheated.is_some() => unheated,
            _ if weaker.is_some() && refuses_schema(status, &words) => weaker,
            422 => plainly,
            400 if names("stream_options") => plainly,
            400 if names_nothing() => plainly.or(weaker),
            _ => None,
        }
    }

    /// Sends the request.
    fn send(&self, request: &Request<'_>, left: Duration) -> Result<Response<Body>, ureq::Error> {
        let (server, spec, manner) = (&self.server, &self.spec, self.manner.get());
        let wire = server.vendor.wire;
        let mut body = Vec::new();
        wire.write_request((spec, request, manner), &mut body)
            .map_err(io::Error::from)?;
        self.sent.set(body.len() as u64);
        let url = wire.url(&server.client.endpoint, spec, manner.delivery);
        let post = server.client.agent.post(url);
        let call = post.header("content-type", "application/json");
        server.prepared(call, spec, Some(left)).send(&body)
    }

    /// Reads and assembles a streamed answer. A truncated one is an error.
    fn read_stream(
        &self,
        response: Response<Body>,
        mut pieces: Pieces,
        listener: &dyn Listener,
    ) -> Result<Vec<u8>, TryError> {
        let mut assembler = self.server.vendor.wire.assembler();
        let mut reader = response.into_body().into_reader();
        let mut chunk = vec![0; STREAM_CHUNK];
        let mut total = 0;
        // The start of the response, which is the answer if no events come after all.
        let mut head = Vec::new();
        let mut whole_since = None;
        loop {
            let amount = match reader.read(&mut chunk) {
                Ok(amount) => amount,
                Err(error) => {
                    let failed = self.failed(self.server.client.classify(error.into()));
                    let is_stopped = matches!(failed.error, ModelError::Interrupted(_));
                    if is_stopped || whole_since.is_none() {
                        return Err(failed);
                    }
                    break;
                }
            };
            total += amount as u64;
            if total > ANSWER_LIMIT {
                return Err(ModelError::TooLarge.into());
            }
            let room = FAILURE_HEAD.saturating_sub(head.len());
            head.extend_from_slice(&chunk[..amount.min(room)]);
            pieces.read(&chunk[..amount], &mut *assembler, listener)?;
            if amount == 0 {
                break;
            }
            if assembler.is_over() {
                // The connection can be reused if little is left of the answer and all of it is read.
                self.server.client.silence.allow(Some(LAST_GRACE));
                for _ in 0..LAST_READS {
                    if !matches!(reader.read(&mut chunk), Ok(1..)) {
                        break;
                    }
                }
                break;
            }
            if assembler.is_whole() {
                self.server.client.silence.allow(Some(GRACE));
                // Comments that keep the connection alive must not extend the wait either.
                let now = self.clock.elapsed();
                if now.saturating_sub(*whole_since.get_or_insert(now)) > GRACE {
                    break;
                }
            }
        }
        if let Some(answer) = assembler.finish() {
            return Ok(answer);
        }
        let is_object = without_mark(&head).trim_ascii_start().starts_with(b"{");
        // In a stream of lines, a single line is not a whole answer.
        let has_events = matches!(pieces, Pieces::Events(_));
        if has_events && is_object && total <= FAILURE_HEAD as u64 {
            return Ok(head);
        }
        let reason = "the stream ended before the reply was whole".to_owned();
        Err(self.failed(HttpError::Broken(reason)))
    }

    /// Converts an error of the HTTP client to one of this model's calls.
    fn failed(&self, error: HttpError) -> TryError {
        let endpoint = &self.server.client.endpoint;
        let error = match error {
            // The user's own server is not running, and is unlikely to be started in the seconds between tries.
            HttpError::NoConnection {
                reason,
                is_refused: true,
            } if self.is_users_own() && endpoint.is_this_machine() => {
                let url = endpoint.url("");
                ModelError::NobodyListens { url, reason }
            }
            other => ModelError::of_call(other, endpoint, self.timeout),
        };
        error.into()
    }

    /// Returns whether the server is the user's own, not a vendor's.
    fn is_users_own(&self) -> bool {
        let vendor = self.server.vendor;
        // A vendor that lets users name their own address still hosts the server.
        vendor.is_local || vendor.url.is_some() && self.spec.base_url.is_some()
    }
}

impl Model for HttpModel<'_> {
    /// Tries until there is an answer, the failure is final, or the time is up.
    fn ask(&self, request: &Request<'_>, listener: &dyn Listener) -> Result<Answer, ModelError> {
        // A pause before the first try is not a part of the call's time.
        let until = request.deadline.unwrap_or(Duration::MAX);
        let most = until.saturating_sub(self.clock.elapsed());
        self.keep_pace(most.min(self.timeout), listener)?;
        let own = self.clock.elapsed() + self.timeout;
        let deadline = request.deadline.unwrap_or(own);
        let left = || deadline.saturating_sub(self.clock.elapsed());
        let mut tries = 0;
        while !left().is_zero() {
            tries += 1;
            let mut answer = self.try_once(request, left(), listener);
            while let Some(manner) = self.other_manner(request, &answer) {
                self.manner.set(manner);
                listener.restart();
                answer = self.try_once(request, left(), listener);
            }
            let failed = match answer {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            let error = failed.error.after(tries);
            if !failed.is_retryable || tries >= retry::MAX_TRIES {
                return Err(error);
            }
            // The sub-second part of the clock is random enough, since jitter only keeps clients apart.
            let jitter = f64::from(self.clock.now().timestamp_subsec_micros()) / 1e6;
            let mut wait = failed
                .wait
                .filter(|wait| !wait.is_zero())
                .unwrap_or_else(|| retry::backoff(tries, jitter))
                .max(self.pause());
            // Other processes may slow down the pace in the meantime.
            while !wait.is_zero() {
                if wait > left() {
                    let error = Box::new(error);
                    return Err(ModelError::NoTimeLeft { error, wait });
                }
                listener.restart();
                listener.retrying(tries + 1, wait, &error.brief());
                self.interrupt.sleep(wait)?;
                wait = self.pause();
            }
        }
        Err(ModelError::TimedOut(self.timeout))
    }

    fn read(&self, _step: &StepId, answer: &[u8]) -> Result<Reply, ModelError> {
        self.server.vendor.wire.read_reply(answer)
    }
}

/// The framing of a streamed answer: server-sent events, or lines.
enum Pieces {
    Events(Events),
    Lines(Lines),
}

impl Pieces {
    /// Selects the framing by the answer's content type or, failing that, by what the vendor is known to send. `None`:
    /// the server does not stream, and sends its answer as a whole.
    fn of(content_type: Option<&str>, wire: &dyn Wire) -> Option<Self> {
        let content_type = content_type.unwrap_or_default().to_ascii_lowercase();
        let is = |kind: &str| content_type.trim_start().starts_with(kind);
        if is("text/event-stream") {
            Some(Self::Events(Events::default()))
        } else if is("application/x-ndjson") || wire.streams_lines() {
            Some(Self::Lines(Lines::default()))
        } else {
            None
        }
    }

    /// Reads the next bytes; an empty slice marks the end of the stream.
    fn read(
        &mut self,
        bytes: &[u8],
        assembler: &mut dyn Assembler,
        listener: &dyn Listener,
    ) -> Result<(), ModelError> {
        let is_end = bytes.is_empty();
        let read = match self {
            // Some servers end the stream without the blank line that ends an event.
            Self::Events(events) => {
                let bytes = if is_end { b"\n\n" } else { bytes };
                events.read(bytes, |event| assembler.event(&event.data, listener))
            }
            Self::Lines(lines) if is_end => lines.end(|line| assembler.event(line, listener)),
            Self::Lines(lines) => lines.read(bytes, |line| assembler.event(line, listener)),
        };
        match read {
            // The last piece is incomplete because the stream was cut off, which the caller detects.
            Err(ModelError::NotJson { source, .. }) if is_end && source.is_eof() => Ok(()),
            read => read,
        }
    }
}

/// Maximum number of bytes kept of a response without events.
const FAILURE_HEAD: usize = 64 << 10;
/// Number of bytes read from a stream at a time.
const STREAM_CHUNK: usize = 16 << 10;
