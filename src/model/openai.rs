//! The wire format of OpenAI's chat completions and of compatible servers. Pure.
//!
//! Follows the vendor's OpenAPI description. All fields are optional, since compatible servers omit some.

mod stream;
#[cfg(test)]
mod tests;

use std::io::Write;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use self::stream::{ChatStream, DONE};
use super::error::one_line;
use super::{
    Delivery, End, Endpoint, FailureKind, ModelError, ModelSpec, Reply, Spent, Tier, ToolChoice,
    ToolSchema, Vendor, VendorError, catalogue,
};
use crate::model::message::{
    Call, CallResult, Image, Message, Part, Role, Thought, UnsignedThought, Words, in_turns,
};
use crate::model::raw_reply::{RawPart, RawReply};
use crate::model::usage::Usage;
use crate::model::wire::{Asked, Assembler, Wire, count, object, parse_answer, text, update};
use crate::sys::text::BYTE_ORDER_MARK;

/// Maps the finish reasons of the vendor and of compatible servers.
fn end(finish: &str) -> End {
    if finish == DONE {
        return End::Stop;
    }
    match &*finish.to_ascii_lowercase() {
        "stop" | "stopped" | "eos" | "eos_token" | "stop_sequence" | "stop_token" | "end_turn"
        | "finished" | "complete" | "completed" => End::Stop,
        "tool_calls" | "function_call" => End::ToolCalls,
        "length" | "max_tokens" | "model_length" => End::MaxTokens,
        "content_filter" => End::Refused,
        _ => End::Other,
    }
}

pub(super) struct OpenAi;

pub(super) static OPENAI: Vendor = Vendor {
    key_file: Some("openai-key.txt"),
    key_variables: &["OPENAI_API_KEY"],
    url: Some("https://api.openai.com/v1"),
    is_shared: true,
    key_prefixes: &["sk-proj-", "sk-svcacct-"],
    ..Vendor::of(&OpenAi, "openai", "OpenAI", "OPENAI_BASE_URL")
};

#[derive(Serialize)]
pub(super) struct ChatBody<'a> {
    pub messages: Vec<ChatMessage<'a>>,
    #[serde(flatten)]
    pub rest: Value,
}

#[derive(Serialize, Default)]
pub(super) struct ChatMessage<'a> {
    pub role: &'static str,
    /// The text; null if a message from the model contains only calls.
    pub content: Option<ChatContent<'a>>,
    /// The base64-encoded images, for Ollama.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<&'a str>,
    #[serde(flatten)]
    pub thought: Option<&'a UnsignedThought>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<Value>,
    /// The id of the call whose result this is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<&'a str>,
    /// The tool whose result this is, for Ollama.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ChatContent<'a> {
    Words(Words<'a>),
    Parts(Vec<ChatPart<'a>>),
    Result(&'a str),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ChatPart<'a> {
    Text {
        text: Words<'a>,
        /// Marks the end of the cached prefix, for models that support marks.
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt_cache_breakpoint: Option<Value>,
    },
    ImageUrl {
        image_url: Value,
    },
}

/// Marks the end of a cached prefix or, as an option of the request, limits caching to such marks.
fn by_marks() -> Value {
    json!({"mode": "explicit"})
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ChatAnswer<'a> {
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    usage: Value,
    model: Option<String>,
    service_tier: Value,
    error: Value,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: Option<ChoiceMessage<'a>>,
    finish_reason: Option<String>,
    /// The findings of the content filter; sent only by Azure.
    #[serde(default)]
    content_filter_results: Value,
}

#[derive(Deserialize, Default)]
struct ChoiceMessage<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    refusal: Option<String>,
    #[serde(default)]
    reasoning_content: Value,
    #[serde(default)]
    reasoning: Value,
    tool_calls: Option<Vec<Value>>,
}

/// The fields in which the servers of this wire format differ.
pub(super) struct Dialect {
    /// The role of the system prompt.
    pub system: &'static str,
    /// The name of the field that limits the answer's tokens, thinking included.
    pub limit: &'static str,
    /// True if text with cache marks is sent as several texts.
    pub in_segments: bool,
    /// True if cache marks tell the server what to cache.
    pub by_marks: bool,
    /// True if unsigned thinking is sent back with the calls that it came before.
    pub has_thoughts: bool,
    /// Additional fields; null ones are left out.
    pub rest: Value,
}

impl Dialect {
    /// Writes the request's JSON.
    pub(super) fn write(self, asked: Asked<'_>, out: &mut dyn Write) -> serde_json::Result<()> {
        let (spec, request, manner) = asked;
        let form = &request.form;
        let schema = form.schema.as_ref();
        let tools: Vec<Value> = form.tools.iter().map(body_tool).collect();
        let may_not_call = form.tool_choice == ToolChoice::None && !tools.is_empty();
        let mut rest = object(json!({
            "model": spec.id,
            "tool_choice": may_not_call.then_some("none"),
            "tools": (!tools.is_empty()).then_some(tools),
            "response_format": manner.constraint.ask(schema, by_schema, json!({"type": "json_object"})),
            "temperature": manner.temperature(spec, form),
            (self.limit): request.max_output_tokens,
        }));
        update(&mut rest, &self.rest);
        let turns = manner.alternates.then(|| in_turns(&request.messages));
        let messages = turns.as_deref().unwrap_or(&request.messages);
        let body = ChatBody {
            messages: messages
                .iter()
                .flat_map(|message| body_messages(message, &self))
                .collect(),
            rest,
        };
        serde_json::to_writer(out, &body)
    }
}

impl Wire for OpenAi {
    fn url(&self, endpoint: &Endpoint, _spec: &ModelSpec, _delivery: Delivery) -> String {
        endpoint.url("/chat/completions")
    }

    fn write_request(&self, asked: Asked<'_>, out: &mut dyn Write) -> serde_json::Result<()> {
        let (spec, request, manner) = asked;
        // OpenAI has renamed fields that compatible servers know only by their old names, while its own newer models
        // accept only the new ones.
        let (system, limit) = if spec.is_openais_own() {
            ("developer", "max_completion_tokens")
        } else {
            ("system", "max_tokens")
        };
        let streamed = manner.delivery != Delivery::Whole;
        let asks_usage = manner.delivery == Delivery::Streamed;
        // Models without cache marks reject the fields for them.
        let by_marks = request.cached_by_marks && catalogue::takes_cache_marks(&spec.id);
        let dialect = Dialect {
            system,
            limit,
            in_segments: true,
            by_marks,
            has_thoughts: true,
            rest: json!({
                "reasoning_effort": spec.reasoning_effort,
                "service_tier": (request.tier != Tier::Standard).then_some(request.tier),
                "prompt_cache_options": by_marks.then(self::by_marks),
                "stream": streamed.then_some(true),
                "stream_options": asks_usage.then(|| json!({"include_usage": true})),
            }),
        };
        dialect.write(asked, out)
    }

    fn assembler(&self) -> Box<dyn Assembler> {
        Box::new(ChatStream::default())
    }

    fn read_reply(&self, json: &[u8]) -> Result<Reply, ModelError> {
        let answer: ChatAnswer<'_> = parse_answer(json)?;
        self.check(&answer.error)?;
        let spent = Spent {
            usage: answer.usage.is_object().then(|| usage(&answer.usage)),
            model_version: answer.model,
            tier: answer.service_tier.as_str().and_then(Tier::parse),
        };
        let Some(choice) = answer.choices.into_iter().flatten().next() else {
            return Err(ModelError::Empty {
                finish: "no answer".into(),
                spent: spent.into(),
            });
        };
        let message = choice.message.unwrap_or_default();
        let finish = choice.finish_reason.filter(|finish| !finish.is_empty());
        if let Some(text) = message.refusal.filter(|refusal| !refusal.trim().is_empty()) {
            return Err(ModelError::Refused {
                message: one_line(&text),
                finish: finish.unwrap_or("refusal".to_owned()),
                spent: spent.into(),
            });
        }
        let thought = |value| text(value).filter(|text| !text.is_empty());
        let thought = thought(&message.reasoning_content)
            .map(UnsignedThought::ReasoningContent)
            .or_else(|| thought(&message.reasoning).map(UnsignedThought::Reasoning));
        RawReply {
            parts: parts(thought, message.content, message.tool_calls),
            is_ordered: false,
            finish,
            meaning: end,
            message: filtered(&choice.content_filter_results),
            spent,
        }
        .checked()
    }

    fn vendor_error(&self, error: &Value) -> VendorError {
        let code = match &error["code"] {
            Value::Number(code) => Some(code.to_string()),
            code => text(code),
        };
        // OpenRouter's moderation has no code of its own.
        let (code, kind) = if error["metadata"]["flagged_input"].is_null() {
            (code, text(&error["type"]))
        } else {
            (None, Some("content_filter".to_owned()))
        };
        let is = |name: &str| code.as_deref() == Some(name) || kind.as_deref() == Some(name);
        VendorError {
            quota_spent: is("insufficient_quota"),
            is_rate_limit: is("rate_limit_exceeded"),
            bad_key: is("invalid_api_key"),
            message: text(&error["message"]),
            failure: FailureKind::of(code.as_deref().or(kind.as_deref())),
            code: code.or(kind),
            ..VendorError::default()
        }
    }
}

/// Lists what a content filter found, by category: `filtered: violence (high), jailbreak`.
pub(super) fn filtered(results: &Value) -> Option<String> {
    let found: Vec<String> = results
        .as_object()?
        .iter()
        .filter(|(_, result)| result["filtered"] == true)
        .map(|(category, result)| match result["severity"].as_str() {
            Some(severity) => format!("{category} ({severity})"),
            None => category.clone(),
        })
        .collect();
    (!found.is_empty()).then(|| format!("filtered: {}", found.join(", ")))
}

/// Reads the usage. `completion_tokens` includes thinking, unless the server's total shows otherwise;
/// [`Usage::output_tokens`] excludes it.
fn usage(json: &Value) -> Usage {
    let thoughts = count(&json["completion_tokens_details"]["reasoning_tokens"]);
    let all = ["prompt_tokens", "completion_tokens"].map(|name| count(&json[name]));
    let is_apart = count(&json["total_tokens"]) == all.iter().sum::<u64>() + thoughts;
    let included = if is_apart { 0 } else { thoughts };
    Usage {
        input_tokens: count(&json["prompt_tokens"]),
        cached_tokens: count(&json["prompt_tokens_details"]["cached_tokens"]),
        cache_write_tokens: count(&json["prompt_tokens_details"]["cache_write_tokens"]),
        thought_tokens: thoughts,
        output_tokens: count(&json["completion_tokens"]).saturating_sub(included),
    }
}

/// Converts a message to the wire format, in which tool results are separate messages.
fn body_messages<'a>(message: &'a Message<'_>, dialect: &Dialect) -> Vec<ChatMessage<'a>> {
    let mut results = Vec::new();
    let mut tool_calls = Vec::new();
    for part in &message.parts {
        match part {
            Part::Text(_) | Part::Thought(_) | Part::Image(_) => {}
            Part::Call(call) => tool_calls.push(body_call(call)),
            Part::Result(CallResult { id, text, .. }) => results.push(ChatMessage {
                role: "tool",
                content: Some(ChatContent::Result(text)),
                tool_call_id: Some(id),
                ..ChatMessage::default()
            }),
        }
    }
    let words = message.words();
    let has_words = !words.is_empty() || message.images().next().is_some();
    if has_words || results.is_empty() {
        results.push(ChatMessage {
            role: role_name(message.role, dialect.system),
            content: (has_words || tool_calls.is_empty()).then(|| content(message, dialect)),
            thought: message.unsigned_thought().filter(|_| dialect.has_thoughts),
            tool_calls,
            ..ChatMessage::default()
        });
    }
    results
}

/// Converts the images of a message, then its text. Text with cache marks is sent as several texts.
fn content<'a>(message: &'a Message<'_>, dialect: &Dialect) -> ChatContent<'a> {
    let images: Vec<ChatPart<'a>> = message
        .images()
        .map(|Image { media_type, data }| ChatPart::ImageUrl {
            image_url: json!({"url": format!("data:{media_type};base64,{data}")}),
        })
        .collect();
    let segments = if dialect.in_segments && message.is_marked() {
        message.segments()
    } else if images.is_empty() {
        return ChatContent::Words(message.words());
    } else {
        vec![message.words()]
    };
    let texts = segments.into_iter().map(|text| ChatPart::Text {
        text,
        prompt_cache_breakpoint: (dialect.by_marks && text.ends_marked()).then(by_marks),
    });
    ChatContent::Parts(images.into_iter().chain(texts).collect())
}

fn body_call(call: &Call) -> Value {
    // Arguments that were not valid JSON are sent back unchanged.
    let arguments = match (&call.written, &call.input) {
        (Some(written), _) | (None, Value::String(written)) => written.clone(),
        (None, input) => input.to_string(),
    };
    let name = plain_name(&call.name);
    json!({"id": call.id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

/// Replaces characters in a tool's name that the API does not accept. Models invent such names, and get an error as the
/// result; but Azure rejects a conversation that contains one.
pub(super) fn plain_name(name: &str) -> String {
    const LONGEST: usize = 64;
    let plain = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => c,
        _ => '_',
    };
    match name {
        "" => "_".to_owned(),
        name => name.chars().take(LONGEST).map(plain).collect(),
    }
}

/// Returns a response format for `schema`, unchanged: the vendor's strict mode supports only a subset of JSON Schema.
fn by_schema(schema: &Value) -> Value {
    json!({"type": "json_schema", "json_schema": {"name": "reply", "schema": schema, "strict": false}})
}

pub(super) fn body_tool(tool: &ToolSchema) -> Value {
    json!({"type": "function", "function": {
        "name": tool.name, "description": tool.description, "parameters": tool.schema,
    }})
}

/// A part of a message's content; only some are text.
#[derive(Deserialize)]
struct ContentPart<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

/// Collects the text, which some servers send as a list of parts, and the calls of an answer with the thinking before
/// them.
pub(super) fn parts(
    thought: Option<UnsignedThought>,
    content: Option<&RawValue>,
    calls: Option<Vec<Value>>,
) -> Vec<RawPart<'_>> {
    let list = content.and_then(|content| serde_json::from_str(content.get()).ok());
    let texts = match list {
        Some(list) => Vec::into_iter(list)
            .filter_map(|part: ContentPart<'_>| part.text)
            .collect(),
        None => Vec::from_iter(content),
    };
    let calls = calls.unwrap_or_default();
    let thought = thought.filter(|thought| !thought.text().is_empty() && !calls.is_empty());
    let thought = thought.map(|thought| RawPart::Thought(Thought::Unsigned(thought)));
    let calls = calls.iter().map(|call| RawPart::Call(self::call(call)));
    let texts = texts.into_iter().map(RawPart::Text);
    thought.into_iter().chain(texts).chain(calls).collect()
}

fn call(call: &Value) -> Call {
    let function = &call["function"];
    let input = arguments(&function["arguments"]);
    let plain = input.to_string();
    let written = text(&function["arguments"])
        .filter(|written| !input.is_string() && !written.trim().is_empty() && *written != plain);
    Call {
        id: text(&call["id"]).unwrap_or_default(),
        name: text(&function["name"]).unwrap_or_default(),
        input,
        written,
    }
}

/// Parses a call's arguments: JSON in a string or, from some servers, the object itself. Invalid JSON stays a string.
pub(super) fn arguments(written: &Value) -> Value {
    match written {
        Value::Null => json!({}),
        Value::String(text) if text.trim().is_empty() => json!({}),
        // A JSON string is not an object either, and is sent back unchanged.
        Value::String(text) => serde_json::from_str(text.trim_start_matches(BYTE_ORDER_MARK))
            .ok()
            .filter(|read: &Value| !read.is_string())
            .unwrap_or_else(|| written.clone()),
        other => other.clone(),
    }
}

/// Returns the role of a message; that of the system prompt is `system`.
pub(super) fn role_name(role: Role, system: &'static str) -> &'static str {
    match role {
        Role::System => system,
        // The program's own messages about tools are sent as the user's, since they answer no call.
        Role::User | Role::Tool => "user",
        Role::Assistant => "assistant",
    }
}
