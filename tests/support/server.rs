//! A scripted loopback server in place of both vendors', which records the requests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// The server's reaction to a request.
pub enum Answer {
    /// Sends these bytes and closes.
    Raw(Vec<u8>),
    /// Sends these bytes, reports that on the channel, and then stays silent until the client closes the connection.
    Hang(Vec<u8>, Sender<()>),
    /// Sends the first bytes once, and then the others this many times.
    Flood(Vec<u8>, Vec<u8>, usize),
    /// Sends these bytes, one per second.
    Trickle(Vec<u8>),
    /// Sends the first bytes, calls the function, and then sends the others.
    Between(Vec<u8>, Box<dyn FnOnce() + Send>, Vec<u8>),
    /// Calls the function while the client waits, and then sends these bytes.
    After(Box<dyn FnOnce() + Send>, Vec<u8>),
    /// Reacts as computed from the request.
    To(Box<dyn FnOnce(&Recorded) -> Answer + Send>),
}

impl Answer {
    pub fn new(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut head = format!(
            "HTTP/1.1 {status} Status\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "connection: close\r\n\r\n";
        Self::Raw([head.as_bytes(), body].concat())
    }

    pub fn json(body: &Value) -> Self {
        Self::new(
            200,
            &[("content-type", "application/json")],
            body.to_string(),
        )
    }

    pub fn error(status: u16, body: &Value) -> Self {
        Self::new(
            status,
            &[("content-type", "application/json")],
            body.to_string(),
        )
    }

    /// Creates an answer of JSON lines, as streamed by Ollama.
    pub fn lines(lines: &[Value]) -> Self {
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        Self::new(200, &[("content-type", "application/x-ndjson")], lines)
    }

    /// Creates Ollama's answer about the models that it has.
    pub fn tags(names: &[&str]) -> Self {
        let models = names.iter();
        let models =
            models.map(|name| json!({"name": name, "model": name, "size": 4_683_087_332_u64}));
        Self::json(&json!({"models": models.collect::<Vec<_>>()}))
    }

    /// Closes the connection without an answer.
    pub fn close() -> Self {
        Self::Raw(Vec::new())
    }

    /// Creates a complete Gemini answer with this text, before which `happens` is called.
    pub fn gemini_after(happens: impl FnOnce() + Send + 'static, text: &str) -> Self {
        let Self::Raw(bytes) = Self::json(&gemini(text)) else {
            unreachable!("what is JSON is sent as it is");
        };
        Self::After(Box::new(happens), bytes)
    }

    /// Stays silent after the request; the receiver is notified.
    pub fn silence() -> (Self, Receiver<()>) {
        let (sender, receiver) = channel();
        (Self::Hang(Vec::new(), sender), receiver)
    }
}

/// Returns a complete Gemini answer with this text.
pub fn gemini(text: &str) -> Value {
    json!({
        "candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 100, "cachedContentTokenCount": 10, "candidatesTokenCount": 20, "thoughtsTokenCount": 30, "totalTokenCount": 150},
        "modelVersion": "gemini-2.5-pro-test",
    })
}

/// Returns a complete OpenAI answer with this text.
pub fn openai(text: &str) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "model": "gpt-5-test",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text, "refusal": null}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150,
            "prompt_tokens_details": {"cached_tokens": 10}, "completion_tokens_details": {"reasoning_tokens": 30}},
    })
}

/// Returns the lines in which Ollama streams this text, at most a few thousand: thoughts first, and the usage in the
/// last one.
pub fn ollama(text: &str) -> Vec<Value> {
    let line = |message: Value| json!({"model": "local:latest", "created_at": "2026-11-23T05:00:00Z", "message": message, "done": false});
    let mut lines = vec![line(
        json!({"role": "assistant", "content": "", "thinking": "hm"}),
    )];
    let characters: Vec<char> = text.chars().collect();
    let size = (characters.len() / 1_000).max(3);
    lines.extend(characters.chunks(size).map(|piece| {
        let piece: String = piece.iter().collect();
        line(json!({"role": "assistant", "content": piece}))
    }));
    lines.push(
        json!({"model": "local:latest", "created_at": "2026-11-23T05:00:01Z",
        "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop",
        "total_duration": 9, "load_duration": 1, "prompt_eval_count": 100, "eval_count": 50}),
    );
    lines
}

/// A received request.
#[derive(Debug, Clone)]
pub struct Recorded {
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Recorded {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Returns the user's message, in either wire format.
    pub fn user(&self) -> String {
        let body = self.json();
        let text = if body.get("contents").is_some() {
            &body["contents"][0]["parts"][0]["text"]
        } else {
            &body["messages"][1]["content"]
        };
        text.as_str().unwrap().to_owned()
    }
}

/// The server. Each request gets the next answer of the script, and 400 after its end.
pub struct ModelServer {
    port: u16,
    requests: Arc<Mutex<Vec<Recorded>>>,
}

impl ModelServer {
    pub fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::begin(None, answers)
    }

    /// Creates a server that always answers that it has these models; other requests are answered by the script.
    pub fn with_models(models: &[&str], answers: impl IntoIterator<Item = Answer>) -> Self {
        let Answer::Raw(tags) = Answer::tags(models) else {
            unreachable!("what is JSON is sent as it is");
        };
        Self::begin(Some(tags), answers)
    }

    fn begin(tags: Option<Vec<u8>>, answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let mut answers: Vec<Answer> = answers.into_iter().collect();
        answers.reverse();
        let script = Arc::new(Script {
            tags,
            answers: Mutex::new(answers),
            requests: Arc::clone(&requests),
        });
        thread::spawn(move || {
            for stream in listener.incoming() {
                let script = Arc::clone(&script);
                // Some tests disconnect the client on purpose.
                thread::spawn(move || script.serve(&stream.unwrap()));
            }
        });
        Self { port, requests }
    }

    /// Creates a server that gives these texts as complete Gemini answers.
    pub fn gemini(texts: &[&str]) -> Self {
        Self::start(texts.iter().map(|text| Answer::json(&gemini(text))))
    }

    /// Creates a server that gives these texts as complete OpenAI answers.
    pub fn openai(texts: &[&str]) -> Self {
        Self::start(texts.iter().map(|text| Answer::json(&openai(text))))
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn requests(&self) -> Vec<Recorded> {
        self.requests.lock().unwrap().clone()
    }
}

/// The remaining answers, the last one first, and the recorded requests.
struct Script {
    tags: Option<Vec<u8>>,
    answers: Mutex<Vec<Answer>>,
    requests: Arc<Mutex<Vec<Recorded>>>,
}

impl Script {
    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream);
        let request = receive(&mut reader)?;
        let mut requests = self.requests.lock().unwrap();
        requests.push(request.clone());
        let answer = match &self.tags {
            Some(tags) if request.line.starts_with("GET /api/tags ") => Answer::Raw(tags.clone()),
            _ => self.answers.lock().unwrap().pop().unwrap_or_else(|| {
                Answer::error(400, &json!({"error": {"message": "the script is over"}}))
            }),
        };
        drop(requests);
        give(answer, &request, stream, reader)
    }
}

/// Reads a request.
pub fn receive(reader: &mut BufReader<&TcpStream>) -> std::io::Result<Recorded> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim_end().split_once(": ") else {
            break;
        };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, value)| value.parse().unwrap())];
    reader.read_exact(&mut body)?;
    Ok(Recorded {
        line: line.trim_end().to_owned(),
        headers,
        body,
    })
}

/// Answers a request.
pub(super) fn give(
    answer: Answer,
    request: &Recorded,
    mut stream: &TcpStream,
    mut reader: BufReader<&TcpStream>,
) -> std::io::Result<()> {
    let answer = match answer {
        Answer::To(make) => make(request),
        other => other,
    };
    match answer {
        Answer::Raw(bytes) => stream.write_all(&bytes),
        Answer::To(_) => unreachable!("an answer is made once"),
        Answer::Between(first, happens, then) => {
            stream.write_all(&first)?;
            happens();
            stream.write_all(&then)
        }
        Answer::After(happens, bytes) => {
            happens();
            stream.write_all(&bytes)
        }
        Answer::Flood(head, chunk, times) => {
            stream.write_all(&head)?;
            (0..times).try_for_each(|_| stream.write_all(&chunk))
        }
        Answer::Trickle(bytes) => bytes.chunks(1).try_for_each(|byte| {
            thread::sleep(Duration::from_secs(1));
            stream.write_all(byte)
        }),
        Answer::Hang(bytes, told) => {
            stream.write_all(&bytes)?;
            let _ = told.send(());
            // Returns when the client closes its end.
            reader.read_to_end(&mut Vec::new()).map(drop)
        }
    }
}
