//! Tests of connection reuse and of retries, against a loopback server.

use std::cell::RefCell;
use std::io::{BufRead as _, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::{Value, json};

use super::*;
use crate::model::message::{Message, Role};
use crate::model::tests::Quiet;
use crate::model::wire::Asked;
use crate::model::{Endpoint, Provider, Proxies};
use crate::model::{Form, Thinking, Vendor, VendorError};
use crate::secret::ApiKey;
use crate::sys::environment::SystemClock;
use crate::sys::interrupt::Signal;

/// Reads a request's head and body.
fn receive(stream: &TcpStream) -> Option<(String, Value)> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let lower = head.to_lowercase();
    let (_, length) = lower.split_once("content-length: ")?;
    let mut body = vec![0; length.lines().next()?.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some((head, serde_json::from_slice(&body).ok()?))
}

/// A request: the index of its connection, its head and its body.
type Seen = (usize, String, Value);

/// Starts a server that gives the requests of each connection these answers, and closes it after the last one. Returns
/// the route to it, and the requests it receives.
fn serving(connections: Vec<Vec<String>>) -> (Route, Receiver<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (seen, asked) = channel();
    thread::spawn(move || {
        for (number, answers) in connections.into_iter().enumerate() {
            let (mut stream, _) = listener.accept().unwrap();
            for answer in answers {
                let Some((head, body)) = receive(&stream) else {
                    break;
                };
                let _ = seen.send((number, head, body));
                let _ = stream.write_all(answer.as_bytes());
            }
        }
    });
    let route = Route {
        endpoint: Endpoint::parse("baseUrl", &url, true).unwrap(),
        proxies: Proxies::default(),
        key: Some(ApiKey::parse(b"sk-ant-test-0123456789").unwrap()),
    };
    (route, asked)
}

/// Returns a streamed answer with these events, in chunks.
fn events(events: &[Value]) -> String {
    let events = events.iter();
    let chunks = events.map(|event| {
        let event = format!(
            "event: {}\ndata: {event}\n\n",
            event["type"].as_str().unwrap()
        );
        format!("{:x}\r\n{event}\r\n", event.len())
    });
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n{}0\r\n\r\n",
        chunks.collect::<String>()
    )
}

fn reply(text: &str) -> String {
    events(&[
        json!({"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": text}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ])
}

fn failing(kind: &str) -> String {
    let error = json!({"type": kind, "message": "words"});
    events(&[
        json!({"type": "message_start", "message": {"model": "m"}}),
        json!({"type": "error", "error": error}),
    ])
}

fn request() -> Request<'static> {
    Request {
        step: StepId::INITIAL,
        messages: vec![Message::text(Role::User, "hello")],
        form: Form::default(),
        max_output_tokens: None,
        tier: Tier::Standard,
        cached_by_marks: false,
        once: false,
        deadline: None,
    }
}

fn asking<T>(route: Route, ask: impl FnOnce(&HttpModel<'_>) -> T) -> T {
    let clock = SystemClock::start();
    let spec = ModelSpec {
        thinking: Some(Thinking::Adaptive),
        ..ModelSpec::new("m", Provider::Anthropic)
    };
    let interrupt = Interrupt::never().unwrap();
    let minute = Duration::from_mins(1);
    ask(&HttpModel::new(
        spec,
        route,
        Delivery::Whole,
        minute,
        &clock,
        interrupt,
    ))
}

fn said(model: &HttpModel<'_>) -> String {
    let answer = model.ask(&request(), &Quiet).unwrap();
    let reply = model.read(&StepId::INITIAL, &answer.json).unwrap();
    reply.text.to_string()
}

#[test]
fn calls_go_over_one_connection() {
    let (route, asked) = serving(vec![vec![reply("a"), reply("b"), reply("c")]]);
    asking(route, |model| {
        assert_eq!([said(model), said(model), said(model)], ["a", "b", "c"]);
    });
    let asked: Vec<Seen> = asked.iter().collect();
    let connections: Vec<usize> = asked.iter().map(|(connection, ..)| *connection).collect();
    assert_eq!(connections, [0, 0, 0]);
    let (_, head, body) = &asked[0];
    let head = head.to_lowercase();
    for header in [
        "post /v1/messages http/1.1",
        "x-api-key: sk-ant-test-0123456789",
        "anthropic-version: 2026-10-21",
        "content-type: application/json",
    ] {
        assert!(head.contains(header), "{head}");
    }
    assert_eq!(body["stream"], true);
}

#[test]
fn dead_connection_is_reopened_immediately() {
    // Connections closed after their answer, or along with the previous request.
    let dying = vec![
        vec![reply("a")],
        vec![reply("b"), String::new()],
        vec![reply("c")],
    ];
    let (route, asked) = serving(dying);
    asking(route, |model| {
        assert_eq!(said(model), "a");
        assert_eq!(said(model), "b");
        // If it counted as a try, there would be a wait before the next one.
        let answer = model.try_once(&request(), Duration::from_mins(1), &Quiet);
        assert!(answer.is_ok());
    });
    let connections: Vec<usize> = asked.iter().map(|(connection, ..)| connection).collect();
    assert_eq!(connections, [0, 1, 1, 2]);
}

#[test]
fn an_error_in_a_stream_is_worth_another_try_where_it_passes() {
    for (kind, is_retryable) in [
        ("overloaded_error", true),
        ("api_error", true),
        ("rate_limit_error", true),
        ("invalid_request_error", false),
    ] {
        let (route, _asked) = serving(vec![vec![failing(kind)], vec![failing(kind)]]);
        asking(route, |model| {
            let minute = Duration::from_mins(1);
            let failed = model.try_once(&request(), minute, &Quiet).err().unwrap();
            assert_eq!(failed.is_retryable, is_retryable, "{kind}");
            let once = Request {
                once: true,
                ..request()
            };
            let failed = model.try_once(&once, minute, &Quiet).err().unwrap();
            assert!(!failed.is_retryable, "{kind}");
        });
    }
}

#[test]
fn a_cut_stream_is_worth_another_try() {
    let whole = reply("a");
    let cut = &whole[..whole.len() - 40];
    let (route, _asked) = serving(vec![vec![cut.to_owned()]]);
    asking(route, |model| {
        let tried = model.try_once(&request(), Duration::from_mins(1), &Quiet);
        let failed = tried.err().unwrap();
        assert!(failed.is_retryable && matches!(failed.error, ModelError::Connection { .. }));
    });
}

#[test]
fn the_last_event_of_a_stream_may_lack_its_blank_line() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    let text =
        json!({"type": "content_block_start", "content_block": {"type": "text", "text": "a"}});
    let stop = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}});
    for end in ["", "\n"] {
        let over = r#"{"type": "message_stop"}"#;
        let stream = format!("{head}data: {text}\n\ndata: {stop}\n\ndata: {over}{end}");
        let (route, _asked) = serving(vec![vec![stream]]);
        asking(route, |model| assert_eq!(said(model), "a", "{end:?}"));
    }
}

#[test]
fn a_rate_limit_that_is_used_up_paces_all_processes_with_the_key() {
    let told = |headers: &str| reply("a").replacen("\r\n", &format!("\r\n{headers}\r\n"), 1);
    let refused = |status: u16, headers: &str| {
        format!("HTTP/1.1 {status} No\r\ncontent-length: 2\r\n{headers}\r\n\r\n{{}}")
    };
    for (answer, is_paced) in [
        (
            told("x-ratelimit-remaining-requests: 0\r\nx-ratelimit-reset-requests: 6m0s"),
            true,
        ),
        // The request is longer than a hundred bytes.
        (
            told("x-ratelimit-remaining-tokens: 20\r\nx-ratelimit-reset-tokens: 6m0s"),
            true,
        ),
        (
            told("x-ratelimit-remaining-tokens: 20000\r\nx-ratelimit-reset-tokens: 6m0s"),
            false,
        ),
        (reply("a"), false),
        (refused(429, "retry-after: 360"), true),
        (refused(503, "retry-after: 360"), true),
        (refused(529, "retry-after-ms: 360000"), true),
        (refused(429, "x: y"), false),
        (refused(429, "retry-after: 1e18"), false),
        (refused(400, "retry-after: 360"), false),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (route, _asked) = serving(vec![vec![answer.clone()]]);
        let minute = Duration::from_mins(1);
        let clock = SystemClock::start();
        let model = |route: Route| {
            let interrupt = Interrupt::never().unwrap();
            let spec = ModelSpec::new("m", Provider::Anthropic);
            HttpModel::new(spec, route, Delivery::Whole, minute, &clock, interrupt)
                .paced(Some(dir.path()))
        };
        let _ = model(route.clone()).try_once(&request(), minute, &Quiet);
        // A call's time limit is the longest wait.
        let expected = if is_paced { minute } else { Duration::ZERO };
        assert_eq!(model(route.clone()).pause(), expected, "{answer}");
        let key = Some(ApiKey::parse(b"sk-ant-test-9876543210").unwrap());
        assert_eq!(model(Route { key, ..route }).pause(), Duration::ZERO);
    }
}

#[test]
fn a_pause_is_reported_and_has_an_end_though_others_wait_on() {
    struct Pauses(RefCell<Vec<Duration>>);
    impl Listener for Pauses {
        fn pausing(&self, pause: Duration) {
            self.0.borrow_mut().push(pause);
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let (route, _asked) = serving(Vec::new());
    let (clock, interrupt) = (SystemClock::start(), Interrupt::never().unwrap());
    let minute = Duration::from_mins(1);
    let spec = ModelSpec::new("m", Provider::Anthropic);
    let model = HttpModel::new(
        spec,
        route,
        Delivery::Whole,
        minute,
        &clock,
        interrupt.clone(),
    )
    .paced(Some(dir.path()));
    model.hold(Some(minute * 60));
    let (pauses, most) = (Pauses(RefCell::default()), Duration::from_millis(30));
    model.keep_pace(most, &pauses).unwrap();
    let pauses = pauses.0.into_inner();
    assert_eq!(pauses, [most]);
    interrupt.simulate(Signal::Int);
    assert!(model.keep_pace(most, &Quiet).is_err());
}

#[test]
fn call_is_not_retried_when_others_have_exhausted_the_limit() {
    struct Others(Pace);
    impl Listener for Others {
        fn retrying(&self, _next_try: u32, _wait: Duration, _reason: &str) {
            self.0.wait_until(chrono::Utc::now() + TimeDelta::hours(1));
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let busy =
        "HTTP/1.1 503 No\r\ncontent-length: 2\r\nretry-after-ms: 1\r\nconnection: close\r\n\r\n{}";
    let (route, asked) = serving(vec![vec![busy.to_owned()], vec![reply("a")]]);
    let (clock, interrupt) = (SystemClock::start(), Interrupt::never().unwrap());
    let minute = Duration::from_mins(1);
    let spec = ModelSpec::new("m", Provider::Anthropic);
    let model = HttpModel::new(spec, route, Delivery::Whole, minute, &clock, interrupt)
        .paced(Some(dir.path()));
    let key = "sk-ant-test-0123456789";
    let others = Others(Pace::new(dir.path(), &model.server.url(), key));
    let failed = model.ask(&request(), &others).err().unwrap();
    // The call has not timed out, which would count as a call that was paid for.
    assert!(matches!(failed, ModelError::NoTimeLeft { .. }), "{failed}");
    assert_eq!(asked.try_iter().count(), 1);
}

/// A throw-away vendor, entirely defined by this type. Its reply is a JSON string.
struct Seventh;

static SEVENTH: Vendor = Vendor {
    key_file: Some("seventh-key.txt"),
    key_by_default: true,
    key_variables: &["SEVENTH_API_KEY"],
    key_header: ("x-seventh-key", ""),
    ..Vendor::of(&Seventh, "seventh", "Seventh", "SEVENTH_BASE_URL")
};

impl Wire for Seventh {
    fn url(&self, endpoint: &Endpoint, spec: &ModelSpec, _delivery: Delivery) -> String {
        endpoint.url(&format!("/say/{}", spec.id))
    }

    fn write_request(&self, asked: Asked<'_>, out: &mut dyn Write) -> serde_json::Result<()> {
        let said: Vec<String> = asked.1.messages.iter().map(ToString::to_string).collect();
        serde_json::to_writer(out, &said)
    }

    fn assembler(&self) -> Box<dyn Assembler> {
        Wire::assembler(&crate::model::openai::OpenAi)
    }

    fn read_reply(&self, json: &[u8]) -> Result<Reply, ModelError> {
        crate::model::wire::parse_answer::<String>(json).map(Reply::of_text)
    }

    fn vendor_error(&self, error: &Value) -> VendorError {
        VendorError {
            code: Some(error.to_string()),
            ..VendorError::default()
        }
    }
}

#[test]
fn a_seventh_vendor_is_one_type() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n\"hi you\"";
    let (route, asked) = serving(vec![vec![answer.to_owned()]]);
    let clock = SystemClock::start();
    let interrupt = Interrupt::never().unwrap();
    let timeout = Duration::from_mins(1);
    let spec = ModelSpec::new("m7", Provider::OpenAi);
    let mut model = HttpModel::new(spec, route, Delivery::Whole, timeout, &clock, interrupt);
    model.server.vendor = &SEVENTH;
    assert_eq!(said(&model), "hi you");
    let (_, head, body) = asked.recv().unwrap();
    let head = head.to_lowercase();
    assert!(head.starts_with("post /say/m7 "), "{head}");
    assert!(
        head.contains("x-seventh-key: sk-ant-test-0123456789"),
        "{head}"
    );
    assert_eq!(body, json!(["hello"]));
    assert_eq!(Provider::named("seventh"), None);
}
