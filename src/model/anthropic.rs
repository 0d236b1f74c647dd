//! Anthropic's wire format: the Messages API. Pure.
//!
//! Follows the vendor's OpenAPI description and its notes on version 2026-10-21, which rejects sampling parameters.
//! Answers are always streamed.

mod messages;
mod stream;
#[cfg(test)]
pub(super) mod tests;

use std::io::Write;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use self::messages::{Block, Marks, Turn};
use self::stream::MessageStream;
use super::{
    Delivery, End, Endpoint, FailureKind, ModelError, ModelSpec, ReasoningEffort, Reply, Spent,
    Thinking, Tier, ToolChoice, ToolSchema, Vendor, VendorError,
};
use crate::model::manner::Constraint;
use crate::model::message::{Call, Thought};
use crate::model::openai::plain_name;
use crate::model::raw_reply::{RawPart, RawReply};
use crate::model::usage::Usage;
use crate::model::wire::{Asked, Assembler, Wire, count, object, parse_answer, text};

/// The default limit on an answer's tokens: the API requires one.
const MAX_OUTPUT_TOKENS: u32 = 32_000;

/// Maps the vendor's stop reason.
fn end(finish: &str) -> End {
    match finish {
        "end_turn" | "stop_sequence" => End::Stop,
        "tool_use" => End::ToolCalls,
        "pause_turn" => End::Paused,
        "max_tokens" => End::MaxTokens,
        "refusal" => End::Refused,
        _ => End::Other,
    }
}

struct Anthropic;

pub(super) static ANTHROPIC: Vendor = Vendor {
    key_file: Some("anthropic-key.txt"),
    key_by_default: true,
    key_variables: &["ANTHROPIC_API_KEY"],
    url: Some("https://api.anthropic.com"),
    max_output_tokens: Some(MAX_OUTPUT_TOKENS),
    refuses_tiers: true,
    takes_temperature: false,
    is_listed: true,
    key_prefixes: &["sk-ant-"],
    key_header: ("x-api-key", ""),
    models_path: "/v1/models?limit=1000",
    ..Vendor::of(&Anthropic, "anthropic", "Anthropic", "ANTHROPIC_BASE_URL")
};

#[derive(Serialize)]
struct MessagesBody<'a> {
    model: &'a str,
    #[serde(flatten)]
    rest: Value,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    messages: Vec<Turn<'a>>,
}

/// Returns the reasoning effort and the schema that constrains the reply; `None` if neither is set.
fn output_config(spec: &ModelSpec, schema: Option<&Value>) -> Option<Value> {
    let format = schema.map(|schema| json!({"type": "json_schema", "schema": closed(schema)}));
    let config = object(json!({"effort": spec.reasoning_effort, "format": format}));
    Some(config).filter(|config| *config != json!({}))
}

/// Adapts a schema to structured outputs: removes the bounds on strings, lists and numbers, and forbids additional
/// properties in every object.
fn closed(schema: &Value) -> Value {
    const BOUNDS: [&str; 4] = ["maxItems", "maxLength", "maximum", "minimum"];
    match schema {
        Value::Object(fields) => {
            let mut schema: Value = fields
                .iter()
                .filter(|(name, _)| !BOUNDS.contains(&&***name))
                .map(|(name, value)| (name.clone(), closed(value)))
                .collect();
            if schema["properties"].is_object() {
                schema["additionalProperties"] = false.into();
            }
            schema
        }
        Value::Array(schemas) => schemas.iter().map(closed).collect(),
        other => other.clone(),
    }
}

fn body_tool(tool: &ToolSchema) -> Value {
    json!({
        "name": plain_name(&tool.name), "description": tool.description, "input_schema": tool.schema,
    })
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct MessageAnswer<'a> {
    #[serde(borrow)]
    content: Option<Vec<AnswerBlock<'a>>>,
    stop_reason: Option<String>,
    stop_details: Value,
    usage: Value,
    model: Option<String>,
    error: Value,
}

#[derive(Deserialize)]
struct AnswerBlock<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    thinking: Option<String>,
    signature: Option<String>,
    data: Option<Value>,
    id: Option<String>,
    name: Option<String>,
    input: Option<Value>,
}

impl Wire for Anthropic {
    fn check_entry(&self, spec: &ModelSpec) -> Result<(), String> {
        match spec.reasoning_effort {
            Some(effort @ (ReasoningEffort::None | ReasoningEffort::Minimal)) => Err(format!(
                "the provider `anthropic` does not take the `reasoningEffort` `{}`, but low, medium, high, xhigh, max",
                effort.word()
            )),
            _ => Ok(()),
        }
    }

    fn url(&self, endpoint: &Endpoint, _spec: &ModelSpec, _delivery: Delivery) -> String {
        endpoint.url("/v1/messages")
    }

    fn headers(&self, spec: &ModelSpec) -> &'static [(&'static str, &'static str)] {
        match spec.temperature {
            None => &[("anthropic-version", "2026-10-21")],
            // This version is the last that accepts a temperature.
            Some(_) => &[("anthropic-version", "2023-06-01")],
        }
    }

    fn write_request(&self, asked: Asked<'_>, out: &mut dyn Write) -> serde_json::Result<()> {
        let (spec, request, manner) = asked;
        let (messages, form) = (&request.messages, &request.form);
        let tools: Vec<Value> = form.tools.iter().map(body_tool).collect();
        let marks = Marks::of(messages, !request.cached_by_marks);
        let may_call = form.tool_choice == ToolChoice::Auto || tools.is_empty();
        let thinking = spec.thinking.map(|Thinking::Adaptive| {
            // Thinking is left out of the answer unless its display is requested.
            json!({"type": "adaptive", "display": "summarized"})
        });
        let schema = form
            .schema
            .as_ref()
            .filter(|_| manner.constraint == Constraint::Schema);
        let most = request.max_output_tokens.or(spec.max_output_tokens);
        let body = MessagesBody {
            model: &spec.id,
            rest: object(json!({
                "thinking": thinking,
                "output_config": output_config(spec, schema),
                "tool_choice": (!may_call).then(|| json!({"type": "none"})),
                "max_tokens": most.unwrap_or(MAX_OUTPUT_TOKENS),
                "stream": true,
                "temperature": manner.temperature(spec, form),
            })),
            system: messages::system(messages, marks),
            messages: messages::turns(messages, !tools.is_empty(), marks, form.continues),
            tools,
        };
        serde_json::to_writer(out, &body)
    }

    fn assembler(&self) -> Box<dyn Assembler> {
        Box::new(MessageStream::default())
    }

    fn read_reply(&self, json: &[u8]) -> Result<Reply, ModelError> {
        let answer: MessageAnswer<'_> = parse_answer(json)?;
        self.check(&answer.error)?;
        let spent = Spent {
            usage: answer.usage.is_object().then(|| usage(&answer.usage)),
            model_version: answer.model,
            tier: answer.usage["service_tier"].as_str().and_then(Tier::parse),
        };
        let blocks = answer.content.into_iter().flatten();
        RawReply {
            parts: blocks.filter_map(AnswerBlock::part).collect(),
            is_ordered: true,
            finish: answer.stop_reason.filter(|reason| !reason.is_empty()),
            meaning: end,
            message: text(&answer.stop_details["explanation"]),
            spent,
        }
        .checked()
    }

    fn vendor_error(&self, error: &Value) -> VendorError {
        let code = text(&error["type"]);
        let message = text(&error["message"]);
        let is = |name: &str| code.as_deref() == Some(name);
        let has_no_credit = || message.as_ref()?.find("credit balance is too low");
        VendorError {
            quota_spent: is("billing_error") || has_no_credit().is_some(),
            is_rate_limit: is("rate_limit_error"),
            bad_key: is("authentication_error"),
            failure: FailureKind::of(code.as_deref()),
            code,
            message,
            ..VendorError::default()
        }
    }
}

impl<'a> AnswerBlock<'a> {
    /// Converts the block to a part; `None` if its kind is unknown.
    fn part(self) -> Option<RawPart<'a>> {
        match &*self.kind {
            "text" => self.text.map(RawPart::Text),
            "thinking" => Some(RawPart::Thought(Thought::Shown {
                text: self.thinking.unwrap_or_default(),
                signature: self.signature.unwrap_or_default(),
            })),
            "redacted_thinking" => Some(RawPart::Thought(Thought::Sealed {
                data: self.data.as_ref().and_then(text).unwrap_or_default(),
            })),
            "tool_use" => Some(RawPart::Call(Call {
                id: self.id.unwrap_or_default(),
                name: self.name.unwrap_or_default(),
                input: self.input.unwrap_or_else(|| json!({})),
                written: None,
            })),
            _ => None,
        }
    }
}

/// Reads the usage. `input_tokens` excludes tokens read from or written to the cache, and `output_tokens` includes
/// thinking; in [`Usage`], it is the other way round.
fn usage(json: &Value) -> Usage {
    let cached = count(&json["cache_read_input_tokens"]);
    let written = count(&json["cache_creation_input_tokens"]);
    let thoughts = count(&json["output_tokens_details"]["thinking_tokens"]);
    Usage {
        input_tokens: count(&json["input_tokens"])
            .saturating_add(cached)
            .saturating_add(written),
        cached_tokens: cached,
        cache_write_tokens: written,
        thought_tokens: thoughts,
        output_tokens: count(&json["output_tokens"]).saturating_sub(thoughts),
    }
}
