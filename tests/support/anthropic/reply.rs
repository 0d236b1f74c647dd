//! Answers of the server in place of Anthropic's: messages, streamed in pieces of any size, complete or broken off, and
//! errors.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// An answer made by builder methods: `thinking("hm").say("Let me look.").call("read_file", json!({"path": "a"}))`.
#[derive(Clone)]
pub struct Reply {
    pub(super) what: What,
    stop: Option<&'static str>,
    /// The type of an error in place of the stream's end.
    fails: Option<&'static str>,
    /// The number of characters in a delta.
    delta: usize,
    /// The number of bytes in a packet.
    pub(super) packet: usize,
    /// The number of bytes of the stream after which the connection breaks.
    pub(super) cut: Option<usize>,
    pub(super) hold: Option<Hold>,
}

#[derive(Clone)]
pub(super) enum What {
    /// A message.
    Stream(Vec<Block>),
    /// A status, headers and a body.
    Plain(u16, Vec<(&'static str, String)>, String),
    /// Nothing, until the client closes the connection.
    Silence(Sender<()>),
    /// A reply computed from the request.
    Made(Arc<dyn Fn(&Value) -> Reply + Send + Sync>),
}

#[derive(Clone)]
pub(super) enum Block {
    Text(String),
    Thinking(String),
    Sealed(String),
    Call(String, String),
}

/// A pause of a stream after this many bytes, which is reported and lasts until released.
#[derive(Clone)]
pub(super) struct Hold {
    pub(super) after: usize,
    pub(super) reached: Sender<()>,
    pub(super) let_go: Arc<Mutex<Receiver<()>>>,
}

/// The other end of a pause; dropping it lets the stream continue.
pub struct Gate {
    reached: Receiver<()>,
    _let_go: Option<Sender<()>>,
}

impl Gate {
    /// Waits until the stream pauses.
    #[track_caller]
    pub fn reached(&self) {
        let reached = self.reached.recv_timeout(Duration::from_mins(1));
        assert!(reached.is_ok(), "the server was not asked for that");
    }
}

impl Reply {
    fn new(what: What) -> Self {
        Self {
            what,
            stop: None,
            fails: None,
            delta: 12,
            packet: usize::MAX,
            cut: None,
            hold: None,
        }
    }

    fn with(mut self, block: Block) -> Self {
        let What::Stream(blocks) = &mut self.what else {
            panic!("only a message has blocks");
        };
        blocks.push(block);
        self
    }

    /// Appends text.
    pub fn say(self, text: impl Into<String>) -> Self {
        self.with(Block::Text(text.into()))
    }

    /// Appends a thought, which the server signs.
    pub fn thinking(self, text: &str) -> Self {
        self.with(Block::Thinking(text.to_owned()))
    }

    /// Appends a redacted thought.
    pub fn sealed(self, data: &str) -> Self {
        self.with(Block::Sealed(data.to_owned()))
    }

    /// Appends a call.
    #[expect(clippy::needless_pass_by_value, reason = "`json!` makes a value")]
    pub fn call(self, tool: &str, input: Value) -> Self {
        self.raw_call(tool, &input.to_string())
    }

    /// Appends a call with this input, which need not be JSON.
    pub fn raw_call(self, tool: &str, input: &str) -> Self {
        self.with(Block::Call(tool.to_owned(), input.to_owned()))
    }

    /// Sets the stop reason.
    pub fn stop(self, reason: &'static str) -> Self {
        Self {
            stop: Some(reason),
            ..self
        }
    }

    /// Breaks the stream off with an error of this type, after the status 200.
    pub fn fails(self, error: &'static str) -> Self {
        Self {
            fails: Some(error),
            ..self
        }
    }

    /// Breaks the connection after this many bytes of the stream.
    pub fn cut_after(self, bytes: usize) -> Self {
        Self {
            cut: Some(bytes),
            ..self
        }
    }

    /// Sends each character as a delta and each byte as a packet.
    pub fn byte_by_byte(self) -> Self {
        Self {
            delta: 1,
            packet: 1,
            ..self
        }
    }

    /// Sends each character as a delta.
    pub fn in_many_deltas(self) -> Self {
        Self { delta: 1, ..self }
    }

    /// Pauses after this many bytes of the stream until the gate is dropped.
    pub fn hold_after(self, bytes: usize) -> (Self, Gate) {
        let (reached, is_reached) = channel();
        let (release, let_go) = channel();
        let hold = Hold {
            after: bytes,
            reached,
            let_go: Arc::new(Mutex::new(let_go)),
        };
        let gate = Gate {
            reached: is_reached,
            _let_go: Some(release),
        };
        let held = Self {
            hold: Some(hold),
            ..self
        };
        (held, gate)
    }

    /// Pauses after the last text and before the end.
    pub fn hold_at_the_end(self) -> (Self, Gate) {
        let stream = self.stream(&self.content(0), "", &json!({}));
        let end = stream.find("event: message_delta").unwrap();
        self.hold_after(end)
    }

    /// Returns the approximate length of the stream in bytes.
    pub fn length(&self) -> usize {
        self.stream(&self.content(0), "", &json!({})).len()
    }

    /// Returns the blocks in the form in which the client must send them back; `serial` distinguishes replies.
    pub(super) fn content(&self, serial: usize) -> Vec<Value> {
        let What::Stream(blocks) = &self.what else {
            return Vec::new();
        };
        let made = blocks.iter().enumerate().map(|(at, block)| match block {
            Block::Text(text) => json!({"type": "text", "text": text}),
            Block::Thinking(text) => {
                let signature = format!("EqQB{serial:04}{at:02}+/signed==");
                json!({"type": "thinking", "thinking": text, "signature": signature})
            }
            Block::Sealed(data) => {
                json!({"type": "redacted_thinking", "data": format!("{data}{serial:04}{at:02}")})
            }
            Block::Call(name, input) => json!({"type": "tool_use",
                "id": format!("toolu_{serial:04}_{at:02}"), "name": name, "input": input}),
        });
        made.collect()
    }

    /// Returns the stop reason, or how the stream is broken off.
    pub(super) fn end(&self) -> &'static str {
        let calls = match &self.what {
            What::Stream(blocks) => blocks
                .iter()
                .any(|block| matches!(block, Block::Call(_, _))),
            _ => false,
        };
        let natural = if calls { "tool_use" } else { "end_turn" };
        self.stop.unwrap_or(natural)
    }

    /// Returns whether the reply is complete.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.what, What::Stream(_)) && self.fails.is_none() && self.cut.is_none()
    }

    /// Returns the stream of these blocks, with an unknown event and unknown fields.
    pub(super) fn stream(&self, content: &[Value], model: &str, usage: &Value) -> String {
        let mut stream = String::new();
        let mut event = |event: Value| {
            let name = event["type"].as_str().unwrap();
            stream += &format!("event: {name}\ndata: {event}\n\n");
        };
        event(
            json!({"type": "message_start", "message": {"id": "msg_01", "type": "message",
            "role": "assistant", "model": model, "content": [], "stop_reason": null,
            "stop_sequence": null, "usage": usage, "of_a_later_version": {"x": [1]}}}),
        );
        event(json!({"type": "ping"}));
        for (index, block) in content.iter().enumerate() {
            let kind = block["type"].as_str().unwrap();
            let mut begun = block.clone();
            let mut deltas = Vec::new();
            for (field, delta) in [
                ("text", "text_delta"),
                ("thinking", "thinking_delta"),
                ("input", "input_json_delta"),
            ] {
                let Some(text) = block[field].as_str() else {
                    continue;
                };
                let as_part = if field == "input" {
                    "partial_json"
                } else {
                    field
                };
                begun[field] = if field == "input" {
                    json!({})
                } else {
                    "".into()
                };
                let characters: Vec<char> = text.chars().collect();
                deltas.extend(characters.chunks(self.delta).map(|piece| {
                    let piece: String = piece.iter().collect();
                    json!({"type": delta, as_part: piece})
                }));
            }
            if kind == "thinking" {
                begun["signature"] = "".into();
                deltas.push(json!({"type": "signature_delta", "signature": block["signature"]}));
            }
            event(json!({"type": "content_block_start", "index": index, "content_block": begun}));
            for delta in deltas {
                event(json!({"type": "content_block_delta", "index": index, "delta": delta}));
            }
            event(json!({"type": "content_block_stop", "index": index}));
        }
        event(json!({"type": "of_a_later_version", "index": 0, "delta": {"text": "unknown"}}));
        if let Some(error) = self.fails {
            event(json!({"type": "error", "error": {"type": error, "message": "Overloaded"}}));
            return stream;
        }
        let output = content
            .iter()
            .map(|block| block.to_string().len())
            .sum::<usize>()
            / 4;
        event(json!({"type": "message_delta",
            "delta": {"stop_reason": self.end(), "stop_sequence": null},
            "usage": {"output_tokens": output.max(1)}}));
        event(json!({"type": "message_stop"}));
        stream
    }
}

/// Returns an empty message.
pub fn nothing() -> Reply {
    Reply::new(What::Stream(Vec::new()))
}

/// Returns a message that begins with this text.
pub fn say(text: impl Into<String>) -> Reply {
    nothing().say(text)
}

/// Returns a message that begins with this thought.
pub fn thinking(text: &str) -> Reply {
    nothing().thinking(text)
}

/// Returns a message that begins with this call.
pub fn call(tool: &str, input: Value) -> Reply {
    nothing().call(tool, input)
}

/// Returns an error with this status, after which the client may retry at once.
pub fn status(status: u16) -> Reply {
    let kind = match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    error(status, kind, "Not now.")
}

/// Returns an error with this status, type and message.
pub fn error(status: u16, kind: &str, message: &str) -> Reply {
    let body = json!({"type": "error", "error": {"type": kind, "message": message},
        "request_id": "req_01"});
    plain(status, "application/json", &body.to_string())
}

/// Returns an answer with this status, content type and body.
pub fn plain(status: u16, kind: &'static str, body: &str) -> Reply {
    let headers = vec![
        ("content-type", kind.to_owned()),
        ("retry-after-ms", "1".to_owned()),
    ];
    Reply::new(What::Plain(status, headers, body.to_owned()))
}

/// Leaves a request unanswered until the client closes the connection.
pub fn silence() -> (Reply, Gate) {
    let (sender, reached) = channel();
    let gate = Gate {
        reached,
        _let_go: None,
    };
    (Reply::new(What::Silence(sender)), gate)
}

/// Returns a reply computed from the request.
pub fn made(make: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Reply {
    Reply::new(What::Made(Arc::new(make)))
}
