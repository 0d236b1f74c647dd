//! Google's Gemini wire: `generateContent`. Pure.
//!
//! After the vendor's discovery document, v1beta.

#[cfg(test)]
mod tests;

use std::io::Write;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::error::one_line;
use super::{
    Assembler, Delivery, End, Endpoint, Listener, ModelError, ModelSpec, RawReply, ReasoningEffort,
    Reply, Request, Spent, Tier, VendorError, Wire, count, elements, first, object, parse_answer,
    text, update,
};
use crate::model::manner::{Constraint, Manner};
use crate::model::message::{Message, Role, Words};
use crate::model::usage::Usage;

/// What the vendor's finish reasons mean.
fn end(finish: &str) -> End {
    match finish {
        "STOP" => End::Stop,
        "MAX_TOKENS" => End::MaxTokens,
        "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => {
            End::Refused
        }
        _ => End::Other,
    }
}

/// The type of a reply that is held to JSON.
const JSON: &str = "application/json";

pub(super) struct Gemini;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<GeminiContent<'a>>,
    contents: Vec<GeminiContent<'a>>,
    generation_config: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_tier: Option<Tier>,
}

#[derive(Serialize)]
struct GeminiContent<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: Vec<GeminiPart<'a>>,
}

#[derive(Serialize)]
struct GeminiPart<'a> {
    text: Words<'a>,
}

/// How hard to think: the models of version 2.5 take a number of tokens, later ones a word. The numbers are
/// those that the vendor itself puts in the place of OpenAI's words (`ai.google.dev/gemini-api/docs/openai`);
/// 128 is the least that gemini-2.5-pro takes.
fn thinking(spec: &ModelSpec) -> Option<Value> {
    use ReasoningEffort::{High, Low, Max, Medium, Minimal, None, XHigh};
    let effort = spec.reasoning_effort?;
    let (word, tokens) = match effort {
        None | Minimal => (Minimal, 128),
        Low => (Low, 1024),
        Medium => (Medium, 8192),
        High | XHigh => (High, 24_576),
        Max => (High, 32_768),
    };
    Some(if spec.id.starts_with("gemini-2") {
        json!({"thinkingBudget": tokens})
    } else {
        json!({"thinkingLevel": word})
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiAnswer<'a> {
    #[serde(borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(default)]
    prompt_feedback: Value,
    #[serde(default)]
    usage_metadata: Value,
    model_version: Option<String>,
    #[serde(default)]
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
struct CandidatePart<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    thought: Option<bool>,
}

impl Wire for Gemini {
    fn url(&self, endpoint: &Endpoint, spec: &ModelSpec, delivery: Delivery) -> String {
        let method = match delivery {
            Delivery::Whole => "generateContent",
            Delivery::Streamed | Delivery::StreamedPlainly => "streamGenerateContent?alt=sse",
        };
        endpoint.url(&format!("/v1beta/models/{}:{method}", spec.id))
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-goog-api-key", "")
    }

    fn tier_header(&self) -> Option<&'static str> {
        Some("x-gemini-service-tier")
    }

    fn write_request(
        &self,
        spec: &ModelSpec,
        request: &Request<'_>,
        manner: Manner,
        out: &mut dyn Write,
    ) -> serde_json::Result<()> {
        let messages = request.messages.iter();
        let (system, turns): (Vec<_>, Vec<_>) =
            messages.partition(|message| message.role == Role::System);
        let schema = request.form.schema.as_ref();
        let body = GeminiBody {
            system_instruction: (!system.is_empty()).then(|| GeminiContent {
                role: None,
                parts: system.into_iter().flat_map(parts).collect(),
            }),
            contents: turns.into_iter().map(content).collect(),
            generation_config: object(json!({
                "maxOutputTokens": request.max_output_tokens,
                "temperature": manner.temperature(spec, &request.form),
                "responseMimeType": manner.constraint.ask(schema, |_| JSON, JSON),
                "responseJsonSchema": schema.filter(|_| manner.constraint == Constraint::Schema),
                "thinkingConfig": thinking(spec),
            })),
            service_tier: (request.tier != Tier::Standard).then_some(request.tier),
        };
        serde_json::to_writer(out, &body)
    }

    fn assembler(&self) -> Box<dyn Assembler> {
        Box::new(GeminiStream::default())
    }

    fn read_reply(&self, json: &[u8]) -> Result<Reply, ModelError> {
        let answer: GeminiAnswer<'_> = parse_answer(json)?;
        self.check(&answer.error)?;
        if let Some(reason) = answer.prompt_feedback["blockReason"].as_str() {
            return Err(ModelError::Blocked(one_line(reason)));
        }
        let told = answer.usage_metadata;
        let spent = Spent {
            usage: told.is_object().then(|| usage(&told)),
            model_version: answer.model_version,
            tier: told["serviceTier"].as_str().and_then(Tier::told),
        };
        let Some(candidate) = answer.candidates.into_iter().flatten().next() else {
            return Err(ModelError::Empty {
                finish: "no answer".into(),
                spent: spent.into(),
            });
        };
        let parts = candidate.content.and_then(|content| content.parts);
        let said = parts
            .iter()
            .flatten()
            .filter(|part| part.thought != Some(true));
        RawReply {
            literals: said.filter_map(|part| part.text).collect(),
            calls: Vec::new(),
            parts: Vec::new(),
            finish: candidate.finish_reason,
            meaning: end,
            message: candidate.finish_message,
            spent,
        }
        .checked()
    }

    /// Of `google.rpc.Status`, with the details `ErrorInfo`, `RetryInfo` and `QuotaFailure`.
    fn vendor_error(&self, error: &Value) -> VendorError {
        let details = || elements(&error["details"]);
        let quotas = || details().flat_map(|detail| elements(&detail["violations"]));
        VendorError {
            is_rate_limit: quotas().next().is_some(),
            quota_spent: quotas().any(|quota| quota["quotaId"].to_string().contains("PerDay")),
            retry_delay: details().find_map(|detail| parse_delay(detail["retryDelay"].as_str()?)),
            bad_key: details().any(|detail| detail["reason"] == "API_KEY_INVALID"),
            code: text(&error["status"]),
            message: text(&error["message"]),
            hint: None,
        }
    }
}

/// A streamed answer: whole answers in form, each with the next part of the text.
#[derive(Default)]
struct GeminiStream {
    /// What the pieces tell besides the text.
    answer: Value,
    /// What they tell of the candidate.
    candidate: Value,
    text: String,
}

impl Assembler for GeminiStream {
    fn event(&mut self, data: &[u8], listener: &dyn Listener) -> Result<(), ModelError> {
        // Some proxies end streams as OpenAI does.
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
            } else {
                listener.text(text);
                self.text.push_str(text);
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
        let Self {
            mut answer,
            mut candidate,
            text,
        } = *self;
        candidate["content"] = json!({"role": "model", "parts": [{"text": text}]});
        answer["candidates"] = json!([candidate]);
        Some(answer.to_string().into_bytes())
    }
}

/// The words of a message, in as many parts as its cache marks make of it.
fn parts<'a>(message: &'a Message<'_>) -> Vec<GeminiPart<'a>> {
    let segments = message.segments().into_iter();
    segments.map(|text| GeminiPart { text }).collect()
}

fn content<'a>(message: &'a Message<'_>) -> GeminiContent<'a> {
    let is_models = message.role == Role::Assistant;
    GeminiContent {
        role: Some(if is_models { "model" } else { "user" }),
        parts: parts(message),
    }
}

fn usage(told: &Value) -> Usage {
    let tool_prompt = count(&told["toolUsePromptTokenCount"]);
    Usage {
        input_tokens: count(&told["promptTokenCount"]).saturating_add(tool_prompt),
        cached_tokens: count(&told["cachedContentTokenCount"]),
        // The vendor does not bill it.
        cache_write_tokens: 0,
        thought_tokens: count(&told["thoughtsTokenCount"]),
        output_tokens: count(&told["candidatesTokenCount"]),
    }
}

/// `google.protobuf.Duration` in JSON: `37s`, `3.5s`.
fn parse_delay(delay: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}
