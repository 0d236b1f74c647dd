//! A scripted loopback server in place of Anthropic's API, which validates every request as that API does.
//!
//! A request that breaks a rule is answered with a 400, and fails the test when the server is dropped.

mod judge;
mod reply;

use std::collections::VecDeque;
use std::io::{BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Value, json};

use self::judge::Judge;
use self::reply::What;
pub use self::reply::{
    Gate, Reply, call, error, made, nothing, plain, say, silence, status, thinking,
};
use super::azure::description;
use super::server::{Recorded, receive};

/// The key that the server accepts by default.
pub const KEY: &str = "sk-ant-api03-TestKey_0123456789-abcdefghij";

/// The models that the server lists.
pub const MODELS: [&str; 4] = [
    "claude-fable-5-1",
    "claude-opus-5-5",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
];

/// A model that is served as well, but is in none of our tables.
pub const PREVIEW: &str = "claude-preview-6";

/// A scripted server. Each request for a message gets the next reply of the script; a request after its end is an
/// error.
pub struct Anthropic {
    port: u16,
    state: Arc<Mutex<State>>,
}

struct State {
    script: VecDeque<Reply>,
    /// The reply to requests after the end of the script.
    always: Option<Reply>,
    keys: Vec<String>,
    requests: Vec<Recorded>,
    connections: usize,
    judge: Judge,
    usages: Vec<Value>,
    faults: Vec<String>,
    are_expected: bool,
}

impl Anthropic {
    pub fn start(script: impl IntoIterator<Item = Reply>) -> Self {
        Self::begin(script.into_iter().collect(), None)
    }

    /// Creates a server that computes every reply from the request.
    pub fn making(make: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Self {
        Self::begin(VecDeque::new(), Some(made(make)))
    }

    fn begin(script: VecDeque<Reply>, always: Option<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State {
            script,
            always,
            keys: vec![KEY.to_owned()],
            requests: Vec::new(),
            connections: 0,
            judge: Judge::default(),
            usages: Vec::new(),
            faults: Vec::new(),
            are_expected: false,
        }));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let state = Arc::clone(&shared);
                // Some tests disconnect the client on purpose.
                thread::spawn(move || serve(&stream.unwrap(), &state));
            }
        });
        Self { port, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Accepts only these keys.
    pub fn takes(&self, keys: &[&str]) {
        self.state().keys = keys.iter().map(|&key| key.to_owned()).collect();
    }

    /// Appends these replies to the script.
    pub fn then(&self, replies: impl IntoIterator<Item = Reply>) {
        self.state().script.extend(replies);
    }

    /// Allows changes to earlier messages from now on, for example after a compaction.
    pub fn lets_the_past_change(&self) {
        self.state().judge.may_change = true;
    }

    /// Returns the requests for messages, in order.
    pub fn messages(&self) -> Vec<Value> {
        let requests = self.requests("POST /v1/messages ");
        requests.iter().map(Recorded::json).collect()
    }

    /// Returns the requests whose request line begins with `line`.
    pub fn requests(&self, line: &str) -> Vec<Recorded> {
        let state = self.state();
        let requests = state.requests.iter();
        requests
            .filter(|request| request.line.starts_with(line))
            .cloned()
            .collect()
    }

    /// Returns the number of connections.
    pub fn connections(&self) -> usize {
        self.state().connections
    }

    /// Returns the usage of each accepted request, such as `cache_read_input_tokens`.
    pub fn usages(&self) -> Vec<Value> {
        self.state().usages.clone()
    }

    /// Returns the number of remaining replies in the script.
    pub fn left(&self) -> usize {
        self.state().script.len()
    }

    /// Returns the faults so far, which the test expects.
    pub fn takes_faults(&self) -> Vec<String> {
        let mut state = self.state();
        state.are_expected = true;
        state.faults.clone()
    }

    /// Checks that no request has broken a rule.
    #[track_caller]
    pub fn assert_clean(&self) {
        let faults = self.state().faults.clone();
        assert!(faults.is_empty(), "{faults:#?}");
    }
}

impl Drop for Anthropic {
    fn drop(&mut self) {
        let are_expected = self.state().are_expected;
        if !are_expected && !thread::panicking() {
            self.assert_clean();
        }
    }
}

/// Returns the parts of these requests that the vendor's own API description does not contain; `None` if it is not
/// installed.
pub fn undescribed(requests: &[Value]) -> Option<Vec<String>> {
    let api = description("anthropic/official/openapi.yml")?;
    let root = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$ref": "#/components/schemas/CreateMessageParams",
        "components": {"schemas": api["components"]["schemas"]},
    });
    let schema = jsonschema::validator_for(&root).unwrap();
    let faults = requests.iter().flat_map(|request| {
        let faults = schema.iter_errors(request);
        faults.map(|fault| format!("{}: {fault}", fault.instance_path()))
    });
    Some(faults.collect())
}

/// Returns the text of the last message in the n-th request: all blocks, including results.
pub fn last_said(server: &Anthropic, nth: usize) -> String {
    let requests = server.messages();
    let request = requests
        .get(nth)
        .unwrap_or_else(|| panic!("no request {nth} of {}", requests.len()));
    said(request["messages"].as_array().unwrap().last().unwrap())
}

/// Returns the text of a message.
pub fn said(message: &Value) -> String {
    let content = &message["content"];
    let Some(blocks) = content.as_array() else {
        return content.as_str().unwrap().to_owned();
    };
    let texts = blocks.iter().map(|block| {
        let text = block["text"].as_str().unwrap_or_default();
        format!("{text}{}\n", result_text(block))
    });
    texts.collect()
}

fn result_text(block: &Value) -> String {
    match &block["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .map(|part| part["text"].as_str().unwrap_or_default())
            .collect(),
        _ => String::new(),
    }
}

/// Returns the results in the last message of the n-th request, each with whether it is an error.
pub fn results(server: &Anthropic, nth: usize) -> Vec<(String, bool)> {
    let requests = server.messages();
    let request = requests
        .get(nth)
        .unwrap_or_else(|| panic!("no request {nth} of {}", requests.len()));
    let last = request["messages"].as_array().unwrap().last().unwrap();
    let blocks = last["content"].as_array().into_iter().flatten();
    blocks
        .filter(|block| block["type"] == "tool_result")
        .map(|block| (result_text(block), block["is_error"] == true))
        .collect()
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(stream: &TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    lock(state).connections += 1;
    let mut reader = BufReader::new(stream);
    loop {
        let request = receive(&mut reader)?;
        if request.line.is_empty() {
            return Ok(());
        }
        let (reply, stream_of) = answer(&request, &mut lock(state));
        if !give(&reply, &stream_of, stream, &mut reader)? {
            return stream.shutdown(Shutdown::Both);
        }
    }
}

/// Returns the answer, and its stream if it is a message.
fn answer(request: &Recorded, state: &mut State) -> (Reply, String) {
    state.requests.push(request.clone());
    let key = request.header("x-api-key").unwrap_or_default();
    let whole = |reply| (reply, String::new());
    if !state.keys.iter().any(|known| known == key) {
        return whole(error(401, "authentication_error", "invalid x-api-key"));
    }
    let mut words = request.line.split([' ', '?']);
    let path = (words.next().unwrap_or_default(), words.next());
    let counts = path.1 == Some("/v1/messages/count_tokens");
    match path {
        ("GET", Some("/v1/models")) => whole(plain(200, "application/json", &models())),
        ("POST", Some("/v1/messages")) => message(request, state),
        ("POST", _) if counts => {
            let tokens = json!({"input_tokens": request.body.len() / 4}).to_string();
            whole(plain(200, "application/json", &tokens))
        }
        _ => {
            let fault = format!("there is no `{}`", request.line);
            state.faults.push(fault.clone());
            whole(error(404, "not_found_error", &fault))
        }
    }
}

fn models() -> String {
    let data = MODELS.iter().chain([&PREVIEW]).map(|model| {
        json!({"type": "model", "id": model, "display_name": format!("The {model}"),
            "created_at": "2026-09-01T00:00:00Z", "max_input_tokens": 1_000_000, "max_tokens": 128_000})
    });
    json!({"data": data.collect::<Vec<_>>(), "has_more": false,
        "first_id": MODELS[0], "last_id": PREVIEW})
    .to_string()
}

fn message(request: &Recorded, state: &mut State) -> (Reply, String) {
    let nth = state.requests.iter();
    let nth = nth
        .filter(|request| request.line.starts_with("POST /v1/messages "))
        .count();
    let faults = state.judge.faults(request);
    if let Some(fault) = faults.first() {
        let refusal = error(400, "invalid_request_error", fault);
        let told = faults.iter().map(|fault| format!("request {nth}: {fault}"));
        state.faults.extend(told);
        return (refusal, String::new());
    }
    let body = request.json();
    let model = body["model"].as_str().unwrap_or_default();
    if !MODELS.contains(&model) && model != PREVIEW {
        let words = format!("model: {model}");
        return (error(404, "not_found_error", &words), String::new());
    }
    let next = state.script.pop_front().or_else(|| state.always.clone());
    let Some(mut reply) = next else {
        let fault = format!("request {nth}: the script is over");
        state.faults.push(fault.clone());
        return (error(400, "invalid_request_error", &fault), String::new());
    };
    while let What::Made(make) = &reply.what {
        let made = make(&body);
        reply = made;
    }
    let usage = state.judge.take(request);
    state.usages.push(usage.clone());
    let content = reply.content(nth);
    let stream = match reply.what {
        What::Stream(_) => reply.stream(&content, model, &usage),
        _ => String::new(),
    };
    state.judge.gives(content, reply.end(), reply.is_whole());
    (reply, stream)
}

/// Sends an answer; returns whether the connection stays open.
fn give(
    reply: &Reply,
    events: &str,
    mut stream: &TcpStream,
    reader: &mut BufReader<&TcpStream>,
) -> std::io::Result<bool> {
    match &reply.what {
        What::Made(_) => unreachable!("it was made"),
        What::Silence(told) => {
            let _ = told.send(());
            reader.read_to_end(&mut Vec::new())?;
            Ok(false)
        }
        What::Plain(status, headers, body) => {
            let mut head = format!(
                "HTTP/1.1 {status} Status\r\ncontent-length: {}\r\n",
                body.len()
            );
            for (name, value) in headers {
                head += &format!("{name}: {value}\r\n");
            }
            stream.write_all(format!("{head}request-id: req_01\r\n\r\n{body}").as_bytes())?;
            Ok(true)
        }
        What::Stream(_) => {
            stream.write_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
                  request-id: req_01\r\ntransfer-encoding: chunked\r\n\r\n",
            )?;
            let end = reply.cut.unwrap_or(events.len()).min(events.len());
            let held = reply.hold.as_ref();
            let held_at = held.map_or(end, |hold| hold.after.min(end));
            let send = |piece: &[u8], mut stream: &TcpStream| {
                piece.chunks(reply.packet).try_for_each(|packet| {
                    let head = format!("{:x}\r\n", packet.len());
                    stream.write_all(&[head.as_bytes(), packet, b"\r\n"].concat())
                })
            };
            send(&events.as_bytes()[..held_at], stream)?;
            if let Some(hold) = held {
                let _ = hold.reached.send(());
                // The stream continues when the gate is released or dropped.
                let _ = hold
                    .let_go
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .recv();
            }
            send(&events.as_bytes()[held_at..end], stream)?;
            if reply.cut.is_some() {
                return Ok(false);
            }
            stream.write_all(b"0\r\n\r\n")?;
            Ok(true)
        }
    }
}
