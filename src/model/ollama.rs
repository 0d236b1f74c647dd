//! Ollama's own wire format: `POST /api/chat`, which streams lines of JSON. Pure.
//!
//! Follows the types of Ollama's `api` package and of its Python client. Guarantees that the server never cuts a prompt
//! (`truncate`, `shift`), and that thinking is shown but not kept.

#[cfg(test)]
mod tests;
mod window;

use std::borrow::Cow;
use std::io::Write;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{
    Delivery, End, Endpoint, Listener, ModelError, ModelSpec, ReasoningEffort, Reply, Spent,
    ToolChoice, Vendor, VendorError, openai,
};
use crate::model::message::{Call, CallResult, CallsById, Message, Part, UnsignedThought};
use crate::model::openai::{ChatBody, ChatContent, ChatMessage};
use crate::model::raw_reply::RawReply;
use crate::model::usage::Usage;
use crate::model::wire::{Asked, Assembler, Wire, count, object, parse_answer, text};

/// Maps `done_reason`. Other values, such as `load` and `unload`, do not follow a reply.
fn end(reason: &str) -> End {
    match reason {
        "stop" => End::Stop,
        "length" => End::MaxTokens,
        _ => End::Other,
    }
}

struct Ollama;

pub(super) static OLLAMA: Vendor = Vendor {
    url: Some("http://127.0.0.1:11434"),
    is_local: true,
    models_path: "/api/tags",
    ..Vendor::of(&Ollama, "ollama", "Ollama", "OLLAMA_HOST")
};

/// A line of a stream, or a whole answer.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ChatAnswer<'a> {
    #[serde(borrow)]
    message: Option<AnswerMessage<'a>>,
    done: bool,
    done_reason: Value,
    model: Value,
    prompt_eval_count: Value,
    eval_count: Value,
    error: Value,
}

#[derive(Deserialize, Default)]
struct AnswerMessage<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking: Option<Cow<'a, str>>,
    tool_calls: Option<Vec<Value>>,
}

impl Wire for Ollama {
    fn url(&self, endpoint: &Endpoint, _spec: &ModelSpec, _delivery: Delivery) -> String {
        endpoint.url("/api/chat")
    }

    /// Returns `true`: answers are always streamed, since a whole one would only arrive later.
    fn streams_lines(&self) -> bool {
        true
    }

    fn write_request(&self, asked: Asked<'_>, out: &mut dyn Write) -> serde_json::Result<()> {
        let (spec, request, manner) = asked;
        let form = &request.form;
        let schema = form.schema.as_ref();
        // The API cannot describe tools without allowing calls.
        let may_call = form.tool_choice == ToolChoice::Auto && !form.tools.is_empty();
        let tools = || -> Value { form.tools.iter().map(openai::body_tool).collect() };
        let body = ChatBody {
            messages: body_messages(&request.messages),
            rest: object(json!({
                "model": spec.id,
                "stream": true,
                "format": manner.constraint.ask(schema, Value::clone, json!("json")),
                "tools": may_call.then(tools),
                "think": spec.reasoning_effort.map(think),
                "keep_alive": spec.keep_alive,
                // Otherwise, Ollama drops the start of the prompt when prompt and answer do not fit.
                "truncate": false,
                "shift": false,
                "options": object(json!({
                    "temperature": manner.temperature(spec, form),
                    "num_ctx": window::num_ctx(spec),
                    "num_predict": window::num_predict(spec, request.max_output_tokens),
                })),
            })),
        };
        serde_json::to_writer(out, &body)
    }

    fn assembler(&self) -> Box<dyn Assembler> {
        Box::new(ChatLines::default())
    }

    fn read_reply(&self, json: &[u8]) -> Result<Reply, ModelError> {
        let answer: ChatAnswer<'_> = parse_answer(json)?;
        self.check(&answer.error)?;
        let counts = [&answer.prompt_eval_count, &answer.eval_count];
        let usage = || Usage::plain(count(counts[0]), count(counts[1]));
        let spent = Spent {
            usage: counts.iter().any(|count| count.is_u64()).then(usage),
            model_version: text(&answer.model),
            tier: None,
        };
        let message = answer.message.unwrap_or_default();
        let thought = message
            .thinking
            .map(|text| UnsignedThought::Thinking(text.into()));
        RawReply {
            parts: openai::parts(thought, message.content, message.tool_calls),
            is_ordered: false,
            finish: text(&answer.done_reason).filter(|reason| answer.done && !reason.is_empty()),
            meaning: end,
            message: None,
            spent,
        }
        .checked()
    }

    /// Reads an error. Ollama's are plain sentences; newer versions pass on their runner's JSON as one.
    fn read_error(&self, error: &Value) -> VendorError {
        let Some(sentence) = text(error) else {
            return self.vendor_error(error);
        };
        match serde_json::from_str(&sentence) {
            Ok(runners @ Value::Object(_)) => {
                self.vendor_error(runners.get("error").unwrap_or(&runners))
            }
            _ => VendorError {
                message: Some(sentence),
                ..VendorError::default()
            },
        }
    }

    /// Reads the error of a runner, or of a proxy in front of the server: an object like OpenAI's.
    fn vendor_error(&self, error: &Value) -> VendorError {
        openai::OpenAi.vendor_error(error)
    }
}

/// Returns the setting for thinking in a form that all versions of Ollama accept: a boolean, or one of three levels.
fn think(effort: ReasoningEffort) -> Value {
    use ReasoningEffort::{High, Low, Max, Medium, Minimal, None, XHigh};
    match effort {
        None => false.into(),
        Minimal | Low => "low".into(),
        Medium => "medium".into(),
        High | XHigh | Max => "high".into(),
    }
}

/// Converts messages to the wire format, in which tool results are separate messages that name the tool.
fn body_messages<'a>(messages: &'a [Message<'_>]) -> Vec<ChatMessage<'a>> {
    let mut calls = CallsById::default();
    let mut body = Vec::new();
    for message in messages {
        let mut tool_calls = Vec::new();
        let before = body.len();
        for part in &message.parts {
            match part {
                Part::Text(_) | Part::Thought(_) | Part::Image(_) => {}
                Part::Call(call) => {
                    calls.insert(&call.id, call);
                    tool_calls.push(body_call(call));
                }
                Part::Result(CallResult { id, text, .. }) => body.push(ChatMessage {
                    role: "tool",
                    content: Some(ChatContent::Result(text)),
                    tool_name: calls.get(&**id).map(|call| &*call.name),
                    ..ChatMessage::default()
                }),
            }
        }
        let words = message.words();
        let images: Vec<&str> = message.images().map(|image| &*image.data).collect();
        if !words.is_empty() || !images.is_empty() || body.len() == before {
            body.push(ChatMessage {
                role: openai::role_name(message.role, "system"),
                content: Some(ChatContent::Words(words)),
                images,
                thought: message.unsigned_thought(),
                tool_calls,
                ..ChatMessage::default()
            });
        }
    }
    body
}

/// Converts a call. Its arguments must be an object, so anything else is replaced by an empty one.
fn body_call(call: &Call) -> Value {
    json!({"function": {"name": call.name, "arguments": call.object()}})
}

/// A streamed answer: lines, each with the next piece of the message, the last one marked `done`.
#[derive(Default)]
struct ChatLines {
    content: String,
    thinking: String,
    calls: Vec<Value>,
    /// The fields of the last line other than the message.
    last: Option<Value>,
}

impl Assembler for ChatLines {
    fn event(&mut self, data: &[u8], listener: &dyn Listener) -> Result<(), ModelError> {
        // Anything after the end is not part of the answer.
        if self.last.is_some() {
            return Ok(());
        }
        let line: ChatAnswer<'_> = parse_answer(data)?;
        Ollama.check(&line.error)?;
        let message = line.message.unwrap_or_default();
        if let Some(thought) = message.thinking.filter(|thought| !thought.is_empty()) {
            listener.thought(&thought);
            self.thinking.push_str(&thought);
        }
        if let Some(literal) = message.content {
            let from = self.content.len();
            super::json_text::append(&mut self.content, literal)
                .map_err(|source| ModelError::not_json(data, source))?;
            if self.content.len() > from {
                listener.text(&self.content[from..]);
            }
        }
        self.calls.extend(message.tool_calls.into_iter().flatten());
        self.last = line.done.then(|| {
            object(json!({
                "model": line.model,
                "done": true,
                "done_reason": line.done_reason,
                "prompt_eval_count": line.prompt_eval_count,
                "eval_count": line.eval_count,
            }))
        });
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.last.is_some()
    }

    fn finish(self: Box<Self>) -> Option<Vec<u8>> {
        let mut answer = self.last?;
        answer["message"] = json!({"role": "assistant", "content": self.content});
        if !self.calls.is_empty() {
            answer["message"]["thinking"] = self.thinking.into();
            answer["message"]["tool_calls"] = self.calls.into();
        }
        Some(answer.to_string().into_bytes())
    }
}
