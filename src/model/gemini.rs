//! Google's Gemini wire format: `generateContent`. Pure.
//!
//! Follows the vendor's discovery document, v1beta. A part's thought signature becomes a [`Thought::Sealed`] before
//! that part, and is sent back on it; thoughts themselves are shown but not sent back.

#[cfg(test)]
mod tests;

use std::io::Write;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::error::one_line;
use super::openai::plain_name;
use super::{
    Delivery, End, Endpoint, FailureKind, Listener, ModelError, ModelSpec, ReasoningEffort, Reply,
    Spent, Tier, ToolChoice, ToolSchema, Vendor, VendorError,
};
use crate::model::manner::Constraint;
use crate::model::message::{
    Call, CallResult, CallsById, Image, Message, Part, Role, Thought, Words,
};
use crate::model::raw_reply::{RawPart, RawReply};
use crate::model::usage::Usage;
use crate::model::wire::{
    Asked, Assembler, Wire, count, elements, first, object, parse_answer, text, update,
};

/// Maps the vendor's finish reason.
fn end(finish: &str) -> End {
    match finish {
        "STOP" => End::Stop,
        "MAX_TOKENS" => End::MaxTokens,
        "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => {
            End::Refused
        }
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => End::ToolCalls,
        _ => End::Other,
    }
}

/// The MIME type of a reply constrained to JSON.
const JSON: &str = "application/json";

struct Gemini;

pub(super) static GEMINI: Vendor = Vendor {
    telemetry_name: "gcp.gemini",
    key_file: Some("gemini-key.txt"),
    key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    url: Some("https://generativelanguage.googleapis.com"),
    key_prefixes: &["AIza", "AQ."],
    key_header: ("x-goog-api-key", ""),
    models_path: "/v1beta/models",
    ..Vendor::of(&Gemini, "gemini", "Google", "GOOGLE_GEMINI_BASE_URL")
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<GeminiContent<'a>>,
    contents: Vec<GeminiContent<'a>>,
    #[serde(flatten)]
    rest: Value,
}

#[derive(Serialize)]
struct GeminiContent<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: Vec<GeminiPart<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiPart<'a> {
    #[serde(flatten)]
    content: GeminiPartContent<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum GeminiPartContent<'a> {
    Text(Words<'a>),
    InlineData(Value),
    FunctionCall(Value),
    FunctionResponse(Value),
}

/// Returns the settings for thinking: a number of tokens for models of version 2, a level for later ones. The numbers
/// are those that the vendor itself substitutes for OpenAI's levels (`ai.google.dev/gemini-api/docs/openai`); 128 is
/// the minimum for gemini-2.5-pro. Agents with native tool calls show thoughts, which are sent only on request.
fn thinking(spec: &ModelSpec, has_tools: bool) -> Option<Value> {
    use ReasoningEffort::{High, Low, Max, Medium, Minimal, None, XHigh};
    let effort = spec.reasoning_effort.map(|effort| match effort {
        None | Minimal => (Minimal, 128),
        Low => (Low, 1024),
        Medium => (Medium, 8192),
        High | XHigh => (High, 24_576),
        Max => (High, 32_768),
    });
    let (words, tokens) = if is_version_2(spec) {
        (Option::None, effort.map(|(_, tokens)| tokens))
    } else {
        (effort.map(|(word, _)| word), Option::None)
    };
    let config = object(json!({
        "thinkingLevel": words,
        "thinkingBudget": tokens,
        "includeThoughts": (has_tools && !spec.id.starts_with("gemini-2.0")).then_some(true),
    }));
    (config != json!({})).then_some(config)
}

fn is_version_2(spec: &ModelSpec) -> bool {
    spec.id.starts_with("gemini-2")
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct GeminiAnswer<'a> {
    #[serde(borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
    prompt_feedback: Value,
    usage_metadata: Value,
    model_version: Option<String>,
    error: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow)]
    content: Option<CandidateContent<'a>>,
    finish_reason: Option<String>,
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct CandidateContent<'a> {
    #[serde(borrow)]
    parts: Option<Vec<CandidatePart<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CandidatePart<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    thought: Option<bool>,
    thought_signature: Option<String>,
    function_call: Option<FunctionCall>,
}

#[derive(Deserialize)]
struct FunctionCall {
    id: Option<String>,
    name: Option<String>,
    args: Option<Value>,
}

impl Wire for Gemini {
    fn url(&self, endpoint: &Endpoint, spec: &ModelSpec, delivery: Delivery) -> String {
        let method = match delivery {
            Delivery::Whole => "generateContent",
            Delivery::Streamed | Delivery::StreamedPlainly => "streamGenerateContent?alt=sse",
        };
        endpoint.url(&format!("/v1beta/models/{}:{method}", spec.id))
    }

    fn tier_header(&self) -> Option<&'static str> {
        Some("x-gemini-service-tier")
    }

    fn write_request(&self, asked: Asked<'_>, out: &mut dyn Write) -> serde_json::Result<()> {
        let (spec, request, manner) = asked;
        let messages = request.messages.iter();
        let (system, turns): (Vec<_>, Vec<_>) =
            messages.partition(|message| message.role == Role::System);
        let schema = request.form.schema.as_ref();
        let tools: Vec<Value> = request.form.tools.iter().map(declaration).collect();
        let may_not_call = request.form.tool_choice == ToolChoice::None && !tools.is_empty();
        let mut calls = CallsById::default();
        let body = GeminiBody {
            system_instruction: (!system.is_empty()).then(|| GeminiContent {
                role: None,
                parts: system
                    .into_iter()
                    .flat_map(|message| parts(message, None, &mut calls))
                    .collect(),
            }),
            contents: turns
                .into_iter()
                .map(|message| content(spec, message, &mut calls))
                .collect(),
            rest: object(json!({
                "tools": (!tools.is_empty()).then(|| json!([{"functionDeclarations": tools}])),
                "toolConfig": may_not_call.then(|| json!({"functionCallingConfig": {"mode": "NONE"}})),
                "generationConfig": object(json!({
                    "maxOutputTokens": request.max_output_tokens,
                    "temperature": manner.temperature(spec, &request.form),
                    "responseMimeType": manner.constraint.ask(schema, |_| JSON, JSON),
                    "responseJsonSchema": schema.filter(|_| manner.constraint == Constraint::Schema),
                    "thinkingConfig": thinking(spec, !tools.is_empty()),
                })),
                "serviceTier": (request.tier != Tier::Standard).then_some(request.tier),
            })),
        };
        serde_json::to_writer(out, &body)
    }

    fn assembler(&self) -> Box<dyn Assembler> {
        Box::new(GeminiStream::default())
    }

    fn read_reply(&self, json: &[u8]) -> Result<Reply, ModelError> {
        let answer: GeminiAnswer<'_> = parse_answer(json)?;
        self.check(&answer.error)?;
        let metadata = answer.usage_metadata;
        let spent = Spent {
            usage: metadata.is_object().then(|| usage(&metadata)),
            model_version: answer.model_version,
            tier: metadata["serviceTier"].as_str().and_then(Tier::parse),
        };
        if let Some(reason) = answer.prompt_feedback["blockReason"].as_str() {
            let (finish, spent) = (one_line(reason), spent.into());
            return Err(ModelError::Blocked { finish, spent });
        }
        let Some(candidate) = answer.candidates.into_iter().flatten().next() else {
            return Err(ModelError::Empty {
                finish: "no answer".into(),
                spent: spent.into(),
            });
        };
        let (mut parts, mut is_ordered) = (Vec::new(), false);
        let given = candidate.content.and_then(|content| content.parts);
        let is_answer = |part: &CandidatePart<'_>| part.thought != Some(true);
        for part in given.unwrap_or_default().into_iter().filter(is_answer) {
            if let Some(data) = part.thought_signature {
                is_ordered = true;
                parts.push(RawPart::Thought(Thought::Sealed { data }));
            }
            parts.extend(part.text.map(RawPart::Text));
            if let Some(FunctionCall { id, name, args }) = part.function_call {
                is_ordered = true;
                parts.push(RawPart::Call(Call {
                    id: id.unwrap_or_default(),
                    name: name.unwrap_or_default(),
                    input: args.unwrap_or_else(|| json!({})),
                    written: None,
                }));
            }
        }
        RawReply {
            parts,
            is_ordered,
            finish: candidate.finish_reason,
            meaning: end,
            message: candidate.finish_message,
            spent,
        }
        .checked()
    }

    /// Reads a `google.rpc.Status` with the details `ErrorInfo`, `RetryInfo` and `QuotaFailure`.
    fn vendor_error(&self, error: &Value) -> VendorError {
        let details = || elements(&error["details"]);
        let quotas = || details().flat_map(|detail| elements(&detail["violations"]));
        VendorError {
            is_rate_limit: quotas().next().is_some(),
            quota_spent: quotas().any(|quota| quota["quotaId"].to_string().contains("PerDay")),
            retry_delay: details().find_map(|detail| parse_delay(detail["retryDelay"].as_str()?)),
            bad_key: details().any(|detail| detail["reason"] == "API_KEY_INVALID"),
            failure: FailureKind::of(error["status"].as_str()),
            code: text(&error["status"]),
            message: text(&error["message"]),
            ..VendorError::default()
        }
    }
}

/// Assembles a streamed answer, whose pieces are formatted like whole answers, each with the next parts.
#[derive(Default)]
struct GeminiStream {
    /// The fields of the pieces other than the candidates.
    answer: Value,
    /// The first candidate's fields.
    candidate: Value,
    /// The text since the last part that was more than text.
    text: String,
    /// The parts before that text.
    parts: Vec<Value>,
}

impl Assembler for GeminiStream {
    fn event(&mut self, data: &[u8], listener: &dyn Listener) -> Result<(), ModelError> {
        // Some proxies end streams the way OpenAI does.
        if data.trim_ascii() == b"[DONE]" {
            return Ok(());
        }
        let chunk = Value::Object(parse_answer(data)?);
        Gemini.check(&chunk["error"])?;
        update(&mut self.answer, &chunk);
        let Some(candidate) = first(&chunk["candidates"]) else {
            return Ok(());
        };
        update(&mut self.candidate, candidate);
        for part in elements(&candidate["content"]["parts"]) {
            let text = part["text"].as_str().unwrap_or_default();
            if part["thought"] == true {
                listener.thought(text);
                continue;
            }
            listener.text(text);
            if part["functionCall"].is_null() && part["thoughtSignature"].is_null() {
                self.text.push_str(text);
            } else {
                self.end_text();
                self.parts.push(part.clone());
            }
        }
        Ok(())
    }

    fn is_whole(&self) -> bool {
        let is_blocked = self.answer["promptFeedback"]["blockReason"].is_string();
        is_blocked || !self.candidate["finishReason"].is_null()
    }

    fn finish(self: Box<Self>) -> Option<Vec<u8>> {
        if !self.is_whole() {
            return None;
        }
        let mut whole = *self;
        if whole.parts.is_empty() || !whole.text.is_empty() {
            whole.parts.push(json!({"text": whole.text}));
        }
        whole.candidate["content"] = json!({"role": "model", "parts": whole.parts});
        whole.answer["candidates"] = json!([whole.candidate]);
        Some(whole.answer.to_string().into_bytes())
    }
}

impl GeminiStream {
    /// Turns the text so far into a part.
    fn end_text(&mut self) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.parts.push(json!({"text": text}));
        }
    }
}

/// The placeholder signature of another model's call; models later than version 2 reject a call without a signature
/// (`ai.google.dev/gemini-api/docs/thought-signatures`).
const UNSIGNED: &str = "skip_thought_signature_validator";

fn content<'a>(
    spec: &ModelSpec,
    message: &'a Message<'_>,
    calls: &mut CallsById<'a>,
) -> GeminiContent<'a> {
    let is_models = message.role == Role::Assistant;
    let unsigned = (!is_version_2(spec)).then_some(UNSIGNED);
    GeminiContent {
        role: Some(if is_models { "model" } else { "user" }),
        parts: parts(message, unsigned, calls),
    }
}

/// Converts a message to parts, at least one. Cache marks split the text. The first call has its signature, or else
/// the one for `unsigned` calls.
fn parts<'a>(
    message: &'a Message<'_>,
    mut unsigned: Option<&'static str>,
    calls: &mut CallsById<'a>,
) -> Vec<GeminiPart<'a>> {
    let is_text = |part: &Part<'_>| matches!(part, Part::Text(_));
    let mut parts = Vec::new();
    let mut signature = None;
    let mut push = |content, thought_signature| {
        parts.push(GeminiPart {
            content,
            thought_signature,
        });
    };
    let are_joined =
        |one: &Part<'_>, next: &Part<'_>| is_text(one) && is_text(next) && !one.is_marked();
    for run in message.parts.chunk_by(are_joined) {
        let content = match &run[0] {
            Part::Thought(Thought::Sealed { data }) => {
                signature = Some(&**data);
                continue;
            }
            Part::Thought(Thought::Shown { .. } | Thought::Unsigned(_)) => continue,
            Part::Text(_) => GeminiPartContent::Text(Words::of(run)),
            Part::Image(Image { media_type, data }) => {
                GeminiPartContent::InlineData(json!({"mimeType": media_type, "data": data}))
            }
            Part::Call(call) => {
                calls.insert(&call.id, call);
                signature = signature.or(unsigned);
                unsigned = None;
                GeminiPartContent::FunctionCall(function_call(call))
            }
            Part::Result(result) => {
                GeminiPartContent::FunctionResponse(function_response(result, calls))
            }
        };
        push(content, signature.take());
    }
    // A signature at the end belongs to an empty text.
    if signature.is_some() || message.parts.is_empty() {
        push(GeminiPartContent::Text(Words::of(&[])), signature);
    }
    parts
}

fn declaration(tool: &ToolSchema) -> Value {
    json!({
        "name": plain_name(&tool.name), "description": tool.description, "parametersJsonSchema": tool.schema,
    })
}

/// Converts a call, whose arguments must be an object.
fn function_call(call: &Call) -> Value {
    object(json!({"id": call.vendors_id(), "name": plain_name(&call.name), "args": call.object()}))
}

fn function_response(result: &CallResult, calls: &CallsById<'_>) -> Value {
    let call = calls.get(&*result.id);
    let (name, id) = call.map_or(("", None), |call| (&call.name, call.vendors_id()));
    let outcome = if result.is_error { "error" } else { "output" };
    object(json!({"id": id, "name": plain_name(name), "response": {outcome: result.text}}))
}

fn usage(json: &Value) -> Usage {
    let tool_prompt = count(&json["toolUsePromptTokenCount"]);
    Usage {
        input_tokens: count(&json["promptTokenCount"]).saturating_add(tool_prompt),
        cached_tokens: count(&json["cachedContentTokenCount"]),
        // The vendor does not bill cache writes.
        cache_write_tokens: 0,
        thought_tokens: count(&json["thoughtsTokenCount"]),
        output_tokens: count(&json["candidatesTokenCount"]),
    }
}

/// Parses a `google.protobuf.Duration` in JSON: `37s`, `3.5s`.
fn parse_delay(delay: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}
