//! Scripted MCP servers, for streamable HTTP and for the older HTTP+SSE: each tool call gets the next answer.

use std::io::{BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::support::{Recorded, receive};
use serde_json::{Value, json};

/// The answer to a request.
pub enum Reply {
    /// Sends these bytes, and closes the connection. `$ID` is the ID of the latest call.
    Bytes(Vec<u8>),
    /// Sends these bytes, and keeps the connection open until the client closes it, which the channel reports. With the
    /// older transport they go to the stream of answers, unless they begin with `HTTP`.
    Hang(Vec<u8>, Sender<()>),
    /// Sends these bytes, and ends the stream of answers, if there is one.
    Last(Vec<u8>),
    /// Sends these bytes once the client has answered a request of the server's own.
    WhenReplied(Vec<u8>),
}

impl Reply {
    pub fn status(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        let head = format!("HTTP/1.1 {status} Status\r\ncontent-length: {length}\r\n{headers}\r\n");
        Self::Bytes((head + body).into_bytes())
    }

    pub fn json(message: &Value) -> Self {
        // The ID is a number, but the placeholder is not one yet.
        let body = message.to_string().replace("\"$ID\"", "$ID");
        Self::Bytes(
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{body}").into(),
        )
    }

    /// A call's result with this text.
    pub fn text(text: &str) -> Self {
        Self::json(&result(text))
    }

    /// A stream of events that ends.
    pub fn events(events: &str) -> Self {
        Self::Bytes(stream(events))
    }

    /// A stream of events that does not end.
    pub fn hanging(events: &str) -> (Self, Receiver<()>) {
        let (sender, receiver) = channel();
        (Self::Hang(stream(events), sender), receiver)
    }

    /// No answer at all.
    pub fn silence() -> (Self, Receiver<()>) {
        let (sender, receiver) = channel();
        (Self::Hang(Vec::new(), sender), receiver)
    }
}

/// Answers each request with the next reply.
fn by_script(
    replies: impl IntoIterator<Item = Reply>,
) -> impl FnMut(&Got) -> Option<Reply> + Send + 'static {
    let mut replies = replies.into_iter().collect::<Vec<_>>().into_iter();
    move |_| replies.next()
}

fn stream(events: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{events}").into_bytes()
}

/// The answer to a call, with this text.
pub fn result(text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": "$ID", "result": {"content": [{"type": "text", "text": text}]}})
}

/// The same as an event.
pub fn event(text: &str) -> String {
    format!(
        "data: {}\n\n",
        result(text).to_string().replace("\"$ID\"", "$ID")
    )
}

/// A received request.
#[derive(Debug, Clone)]
pub struct Got {
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Got {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// Returns whether it asks for the session's own stream, not for the rest of another one.
    fn asks_for_sessions_stream(&self) -> bool {
        let [session, last] = ["mcp-session-id", "last-event-id"].map(|name| self.header(name));
        self.method() == "GET" && session.is_some() && last.is_none()
    }

    /// Returns the JSON-RPC method, `reply` for an answer, or the HTTP method.
    pub fn method(&self) -> String {
        let json = self.json();
        match (json["method"].as_str(), json.get("id")) {
            (Some(method), _) => method.to_owned(),
            (None, Some(_)) => "reply".to_owned(),
            (None, None) => self.line.split(' ').next().unwrap().to_owned(),
        }
    }
}

/// A function from a request to a reply.
type Answering = dyn FnMut(&Got) -> Option<Reply> + Send;

/// The state of a server.
struct Script {
    answer: Box<Answering>,
    /// The replies to handshakes in place of the usual one, the next one last.
    handshakes: Vec<Reply>,
    /// The reply to the end of the first handshake.
    initialized: Option<Reply>,
    requests: Vec<Got>,
    sessions: usize,
    last_id: String,
    /// The stream of answers of the older transport.
    stream: Option<TcpStream>,
    /// The events on the own stream of a session of streamable HTTP; `None`: it has no stream.
    own: Option<String>,
    /// Receives a message for each reply of the client.
    replied: Sender<()>,
    at_reply: Option<Receiver<()>>,
}

/// A scripted MCP server.
pub struct McpServer {
    pub port: u16,
    script: Arc<Mutex<Script>>,
    is_older: bool,
}

impl McpServer {
    /// A server that speaks streamable HTTP, with sessions.
    pub fn streamable(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::shaking([], replies)
    }

    /// The same, with these replies to the first handshakes.
    pub fn shaking(
        handshakes: impl IntoIterator<Item = Reply>,
        replies: impl IntoIterator<Item = Reply>,
    ) -> Self {
        Self::begin(by_script(replies), handshakes, false)
    }

    /// A server that speaks HTTP+SSE. Bytes of the script go to the stream of answers; bytes that begin with `HTTP`
    /// answer the POST itself, and "" closes the stream.
    pub fn older(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::begin(by_script(replies), [], true)
    }

    /// A server whose replies are computed from the requests.
    pub fn answering(
        is_older: bool,
        answer: impl FnMut(&Got) -> Option<Reply> + Send + 'static,
    ) -> Self {
        Self::begin(answer, [], is_older)
    }

    fn begin(
        answer: impl FnMut(&Got) -> Option<Reply> + Send + 'static,
        handshakes: impl IntoIterator<Item = Reply>,
        is_older: bool,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut handshakes: Vec<Reply> = handshakes.into_iter().collect();
        handshakes.reverse();
        let (replied, at_reply) = channel();
        let script = Arc::new(Mutex::new(Script {
            own: None,
            replied,
            at_reply: Some(at_reply),
            answer: Box::new(answer),
            handshakes,
            initialized: None,
            requests: Vec::new(),
            sessions: 0,
            last_id: String::new(),
            stream: None,
        }));
        let known = Arc::clone(&script);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let script = Arc::clone(&known);
                // Some tests disconnect the client on purpose.
                thread::spawn(move || serve(&stream.unwrap(), &script, is_older));
            }
        });
        Self {
            port,
            script,
            is_older,
        }
    }

    /// Answers the end of the first handshake with this reply.
    pub fn with_initialized(self, reply: Reply) -> Self {
        self.script.lock().unwrap().initialized = Some(reply);
        self
    }

    /// Gives each session a stream of its own that begins with these events.
    pub fn with_stream(self, events: &str) -> Self {
        self.script.lock().unwrap().own = Some(events.to_owned());
        self
    }

    pub fn url(&self) -> String {
        let path = if self.is_older { "sse" } else { "mcp" };
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    pub fn requests(&self) -> Vec<Got> {
        self.script.lock().unwrap().requests.clone()
    }

    /// Returns the methods of all requests, in order.
    pub fn methods(&self) -> Vec<String> {
        self.requests().iter().map(Got::method).collect()
    }
}

fn serve(stream: &TcpStream, script: &Mutex<Script>, is_older: bool) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let got = read(&mut reader)?;
    let (method, json) = (got.method(), got.json());
    let mut script = script.lock().unwrap();
    let mut own = stream;
    if !is_older && got.asks_for_sessions_stream() {
        let Some(events) = script.own.clone() else {
            return own.write_all(b"HTTP/1.1 405 Not Allowed\r\ncontent-length: 0\r\n\r\n");
        };
        script.requests.push(got);
        drop(script);
        own.write_all(&self::stream(&events))?;
        return reader.read_to_end(&mut Vec::new()).map(drop);
    }
    script.requests.push(got.clone());
    if is_older && method == "GET" {
        script.sessions += 1;
        let endpoint = format!(
            "event: endpoint\ndata: /messages?session={}\n\n",
            script.sessions
        );
        own.write_all(&self::stream(&endpoint))?;
        script.stream = Some(stream.try_clone()?);
        drop(script);
        return reader.read_to_end(&mut Vec::new()).map(drop);
    }
    if is_older && got.line.starts_with("POST /sse") {
        return own.write_all(b"HTTP/1.1 405 Not Allowed\r\ncontent-length: 0\r\n\r\n");
    }
    if is_older && script.stream.is_none() {
        // A session ends with its stream, regardless of when the client notices.
        return own.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
    }
    let reply = match &*method {
        "initialize" => Some(script.handshakes.pop().unwrap_or_else(|| {
            script.sessions += usize::from(!is_older);
            let message = json!({"jsonrpc": "2.0", "id": json["id"], "result": {
                "protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "t", "version": "1"}}});
            let session = format!(
                "content-type: application/json\r\nmcp-session-id: s{}\r\n",
                script.sessions
            );
            if is_older { Reply::Bytes(format!("data: {message}\n\n").into_bytes()) } else { Reply::status(200, &session, &message.to_string()) }
        })),
        "reply" => {
            let _ = script.replied.send(());
            None
        }
        "DELETE" => None,
        "notifications/initialized" => script.initialized.take(),
        notification if notification.starts_with("notifications/") => None,
        _ => {
            if let Some(id) = json.get("id") {
                script.last_id = id.to_string();
            }
            let over = || Reply::status(400, "", "the script is over");
            Some((script.answer)(&got).unwrap_or_else(over))
        }
    };
    let accepted = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";
    match reply {
        None => own.write_all(accepted),
        Some(reply @ (Reply::Bytes(_) | Reply::Last(_))) => {
            let (bytes, is_last) = match reply {
                Reply::Last(bytes) => (bytes, true),
                Reply::Bytes(bytes) => (bytes, false),
                Reply::Hang(..) | Reply::WhenReplied(_) => unreachable!("that is another arm"),
            };
            let bytes = fill(bytes, &script.last_id);
            if !is_older || bytes.starts_with(b"HTTP") {
                drop(script);
                return own.write_all(&bytes);
            }
            own.write_all(accepted)?;
            let mut answers = script.stream.as_ref().unwrap();
            answers.write_all(&bytes)?;
            if is_last || bytes.is_empty() {
                answers.shutdown(Shutdown::Both)?;
                script.stream = None;
            }
            Ok(())
        }
        Some(Reply::WhenReplied(bytes)) => {
            let bytes = fill(bytes, &script.last_id);
            let at_reply = script.at_reply.take().unwrap();
            drop(script);
            at_reply.recv().unwrap();
            own.write_all(&bytes)
        }
        Some(Reply::Hang(bytes, told)) => {
            let bytes = fill(bytes, &script.last_id);
            match script.stream.as_ref() {
                Some(mut answers) if !bytes.starts_with(b"HTTP") => answers.write_all(&bytes)?,
                _ => own.write_all(&bytes)?,
            }
            drop(script);
            let _ = told.send(());
            reader.read_to_end(&mut Vec::new()).map(drop)
        }
    }
}

/// Replaces the placeholder with the ID of the latest call.
fn fill(bytes: Vec<u8>, id: &str) -> Vec<u8> {
    match bytes.len() {
        0..10_000 => String::from_utf8(bytes)
            .unwrap()
            .replace("$ID", id)
            .into_bytes(),
        _ => bytes,
    }
}

fn read(reader: &mut BufReader<&TcpStream>) -> std::io::Result<Got> {
    let Recorded {
        line,
        headers,
        body,
    } = receive(reader)?;
    let body = String::from_utf8(body).unwrap();
    Ok(Got {
        line,
        headers,
        body,
    })
}
