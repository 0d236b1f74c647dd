//! Google's Gemini wire: `generateContent`. Pure.
//!
//! After the vendor's discovery document, v1beta.

use std::io::Write;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::error::one_line;
use super::{
    Assembler, Delivery, Ending, Listener, ModelError, ModelSpec, ReasoningEffort, Reply, Request,
    Spent, VendorError, Wire, lenient_count, parse_answer, parse_failure, parse_sentence,
};
use crate::model::message::{Message, Role, Text};
use crate::model::usage::Usage;

/// The only finish reason of a whole answer.
const STOP: &str = "STOP";

pub(super) struct Gemini;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Content<'a>>,
    contents: Vec<Content<'a>>,
    generation_config: GenerationConfig,
}

#[derive(Serialize)]
struct Content<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: Vec<Part<'a>>,
}

#[derive(Serialize)]
struct Part<'a> {
    text: &'a Text<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
}

/// How hard to think: the models of version 2.5 take a number of tokens, later ones a word.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum ThinkingConfig {
    ThinkingBudget(u32),
    ThinkingLevel(ReasoningEffort),
}

impl ThinkingConfig {
    /// The numbers are those that the vendor itself puts in the place of OpenAI's words
    /// (`ai.google.dev/gemini-api/docs/openai`); 128 is the least that gemini-2.5-pro takes.
    fn of(spec: &ModelSpec) -> Option<Self> {
        use ReasoningEffort::{High, Low, Medium, Minimal, None, XHigh};
        let effort = spec.reasoning_effort?;
        if !spec.id.starts_with("gemini-2") {
            return Some(Self::ThinkingLevel(match effort {
                None | Minimal => Minimal,
                XHigh => High,
                effort => effort,
            }));
        }
        Some(Self::ThinkingBudget(match effort {
            None | Minimal => 128,
            Low => 1024,
            Medium => 8192,
            High | XHigh => 24_576,
        }))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    #[serde(borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
    prompt_feedback: Option<PromptFeedback>,
    usage_metadata: Option<UsageMetadata>,
    model_version: Option<String>,
    error: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow)]
    content: Option<AnswerContent<'a>>,
    finish_reason: Option<String>,
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct AnswerContent<'a> {
    #[serde(borrow)]
    parts: Option<Vec<AnswerPart<'a>>>,
}

#[derive(Deserialize)]
struct AnswerPart<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    thought: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback {
    block_reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct UsageMetadata {
    #[serde(default, deserialize_with = "lenient_count")]
    prompt_token_count: Option<u64>,
    #[serde(default, deserialize_with = "lenient_count")]
    cached_content_token_count: Option<u64>,
    #[serde(default, deserialize_with = "lenient_count")]
    candidates_token_count: Option<u64>,
    #[serde(default, deserialize_with = "lenient_count")]
    thoughts_token_count: Option<u64>,
    #[serde(default, deserialize_with = "lenient_count")]
    tool_use_prompt_token_count: Option<u64>,
}

/// `google.rpc.Status`.
#[derive(Deserialize)]
struct Status {
    message: Option<String>,
    status: Option<String>,
    details: Option<Vec<Detail>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Detail {
    /// Of `google.rpc.ErrorInfo`.
    reason: Option<String>,
    /// Of `google.rpc.RetryInfo`: seconds with an `s` behind.
    retry_delay: Option<String>,
    /// Of `google.rpc.QuotaFailure`.
    violations: Option<Vec<Violation>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Violation {
    quota_id: Option<String>,
}

impl Wire for Gemini {
    fn path(&self, spec: &ModelSpec, delivery: Delivery) -> String {
        let method = match delivery {
            Delivery::Whole => "generateContent",
            Delivery::Streamed => "streamGenerateContent?alt=sse",
        };
        format!("/v1beta/models/{}:{method}", spec.id)
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-goog-api-key", "")
    }

    fn write_request(
        &self,
        spec: &ModelSpec,
        request: &Request<'_>,
        _delivery: Delivery,
        out: &mut dyn Write,
    ) -> serde_json::Result<()> {
        let (system, turns): (Vec<_>, Vec<_>) = request
            .messages
            .iter()
            .partition(|message| message.role == Role::System);
        let body = Body {
            system_instruction: (!system.is_empty()).then(|| Content {
                role: None,
                parts: system.into_iter().map(part).collect(),
            }),
            contents: turns
                .into_iter()
                .map(|turn| Content {
                    role: Some(role(turn.role)),
                    parts: vec![part(turn)],
                })
                .collect(),
            generation_config: GenerationConfig {
                max_output_tokens: request.max_output_tokens,
                thinking_config: ThinkingConfig::of(spec),
            },
        };
        serde_json::to_writer(out, &body)
    }

    fn assembler(&self) -> Box<dyn Assembler> {
        Box::new(Assembled::default())
    }

    fn read_reply(&self, json: &[u8]) -> Result<Reply, ModelError> {
        let answer: Answer<'_> = parse_answer(json)?;
        if let Some(status) = answer.error {
            return Err(ModelError::ErrorInAnswer(status.into()));
        }
        if let Some(reason) = answer
            .prompt_feedback
            .and_then(|feedback| feedback.block_reason)
        {
            return Err(ModelError::Blocked {
                reason: one_line(&reason),
            });
        }
        let spent = Spent {
            usage: answer.usage_metadata.map(Usage::from),
            model_version: answer.model_version,
        };
        let Some(candidate) = answer.candidates.into_iter().flatten().next() else {
            return Err(ModelError::Empty {
                finish: "no answer".into(),
                spent: spent.into(),
            });
        };
        let parts = candidate
            .content
            .and_then(|content| content.parts)
            .unwrap_or_default();
        let literals = parts.iter().filter(|part| part.thought != Some(true));
        Ending {
            finish: candidate.finish_reason,
            whole: STOP,
            message: candidate.finish_message,
            spent,
        }
        .reply(literals.filter_map(|part| part.text))
    }

    fn read_failure(&self, json: &[u8]) -> VendorError {
        parse_failure::<Status>(json).map_or_else(|| parse_sentence(json), VendorError::from)
    }
}

/// A streamed answer: whole answers in form, each with the next part of the text.
#[derive(Default)]
struct Assembled {
    text: String,
    finish: Option<String>,
    finish_message: Option<String>,
    prompt_feedback: Option<Value>,
    usage: Option<Value>,
    model_version: Option<String>,
    response_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk {
    candidates: Option<Vec<ChunkCandidate>>,
    prompt_feedback: Option<Value>,
    usage_metadata: Option<Value>,
    model_version: Option<String>,
    response_id: Option<String>,
    error: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChunkCandidate {
    content: Option<ChunkContent>,
    finish_reason: Option<String>,
    finish_message: Option<String>,
    index: Option<u64>,
}

#[derive(Deserialize)]
struct ChunkContent {
    parts: Option<Vec<ChunkPart>>,
}

#[derive(Deserialize)]
struct ChunkPart {
    text: Option<String>,
    thought: Option<bool>,
}

impl Assembler for Assembled {
    fn event(&mut self, data: &[u8], listener: &dyn Listener) -> Result<(), ModelError> {
        // Some proxies end streams as OpenAI does.
        if data.trim_ascii() == b"[DONE]" {
            return Ok(());
        }
        let chunk: Chunk = parse_answer(data)?;
        if let Some(status) = chunk.error {
            return Err(ModelError::ErrorInAnswer(status.into()));
        }
        self.prompt_feedback = chunk.prompt_feedback.or(self.prompt_feedback.take());
        self.usage = chunk.usage_metadata.or(self.usage.take());
        self.model_version = chunk.model_version.or(self.model_version.take());
        self.response_id = chunk.response_id.or(self.response_id.take());
        let candidates = chunk.candidates.into_iter().flatten();
        let Some(candidate) = candidates
            .into_iter()
            .find(|candidate| candidate.index.unwrap_or(0) == 0)
        else {
            return Ok(());
        };
        self.finish = candidate.finish_reason.or(self.finish.take());
        self.finish_message = candidate.finish_message.or(self.finish_message.take());
        let parts = candidate.content.and_then(|content| content.parts);
        for part in parts.into_iter().flatten() {
            let text = part.text.unwrap_or_default();
            if part.thought == Some(true) {
                listener.thought(&text);
            } else {
                listener.text(&text);
                self.text.push_str(&text);
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        // Only the end of the stream tells.
        false
    }

    fn finish(self: Box<Self>) -> Option<Vec<u8>> {
        let blocked = self
            .prompt_feedback
            .as_ref()
            .is_some_and(|feedback| feedback["blockReason"].is_string());
        if self.finish.is_none() && !blocked {
            return None;
        }
        let mut candidate = json!({
            "content": {"role": "model", "parts": [{"text": self.text}]},
            "finishReason": self.finish,
            "index": 0,
        });
        if let Some(message) = self.finish_message {
            candidate["finishMessage"] = message.into();
        }
        let answer = json!({
            "candidates": [candidate],
            "promptFeedback": self.prompt_feedback,
            "usageMetadata": self.usage,
            "modelVersion": self.model_version,
            "responseId": self.response_id,
        });
        Some(answer.to_string().into_bytes())
    }
}

fn part<'a>(message: &'a Message<'_>) -> Part<'a> {
    Part {
        text: &message.text,
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Assistant => "model",
        Role::System | Role::User | Role::Tool => "user",
    }
}

impl From<UsageMetadata> for Usage {
    fn from(usage: UsageMetadata) -> Self {
        let tool_prompt = usage.tool_use_prompt_token_count.unwrap_or(0);
        Self {
            input_tokens: usage
                .prompt_token_count
                .unwrap_or(0)
                .saturating_add(tool_prompt),
            cached_tokens: usage.cached_content_token_count.unwrap_or(0),
            thought_tokens: usage.thoughts_token_count.unwrap_or(0),
            output_tokens: usage.candidates_token_count.unwrap_or(0),
        }
    }
}

impl From<Status> for VendorError {
    fn from(status: Status) -> Self {
        let details = || status.details.iter().flatten();
        let mut quotas = details().flat_map(|detail| detail.violations.iter().flatten());
        let mut delays = details().filter_map(|detail| detail.retry_delay.as_deref());
        let mut reasons = details().filter_map(|detail| detail.reason.as_deref());
        Self {
            quota_spent: quotas.any(|quota| {
                quota
                    .quota_id
                    .as_deref()
                    .is_some_and(|id| id.contains("PerDay"))
            }),
            retry_delay: delays.find_map(parse_delay),
            bad_key: reasons.any(|reason| reason == "API_KEY_INVALID"),
            code: status.status,
            message: status.message,
        }
    }
}

/// `google.protobuf.Duration` in JSON: `37s`, `3.5s`.
fn parse_delay(delay: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelTable;
    use crate::model::StepId;
    use serde_json::json;

    fn read(answer: &serde_json::Value) -> Result<Reply, ModelError> {
        Gemini.read_reply(answer.to_string().as_bytes())
    }

    #[expect(clippy::needless_pass_by_value, reason = "reads better at the calls")]
    fn answer(parts: serde_json::Value, finish: &str) -> serde_json::Value {
        json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0}]})
    }

    #[test]
    fn the_request_has_the_system_prompt_in_its_own_slot() {
        let messages = [
            Message {
                role: Role::System,
                text: "be brief".into(),
            },
            Message {
                role: Role::User,
                text: "hello".into(),
            },
            Message {
                role: Role::Assistant,
                text: "hi".into(),
            },
        ];
        let table = ModelTable::built_in();
        let spec = table.named("gemini-2.5-pro").unwrap();
        let request = Request {
            step: StepId::INITIAL,
            messages: messages.to_vec(),
            max_output_tokens: spec.max_output_tokens,
            once: false,
        };
        let mut body = Vec::new();
        Gemini
            .write_request(spec, &request, Delivery::Whole, &mut body)
            .unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let expected = json!({
            "systemInstruction": {"parts": [{"text": "be brief"}]},
            "contents": [
                {"role": "user", "parts": [{"text": "hello"}]},
                {"role": "model", "parts": [{"text": "hi"}]},
            ],
            "generationConfig": {"maxOutputTokens": 65536},
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn thoughts_are_dropped_and_the_other_parts_joined() {
        let mut whole = answer(
            json!([{"text": "hmm", "thought": true}, {"text": "a\n"}, {"inlineData": {}}, {"text": "b"}]),
            "STOP",
        );
        whole["modelVersion"] = "gemini-2.5-pro-002".into();
        whole["usageMetadata"] = json!({"promptTokenCount": 5, "thoughtsTokenCount": 3,
            "candidatesTokenCount": 2, "cachedContentTokenCount": 1, "totalTokenCount": 10});
        let reply = read(&whole).unwrap();
        assert_eq!(*reply.text, "a\nb");
        assert_eq!(reply.finish, "STOP");
        assert_eq!(reply.model_version.as_deref(), Some("gemini-2.5-pro-002"));
        let usage = Usage {
            input_tokens: 5,
            cached_tokens: 1,
            thought_tokens: 3,
            output_tokens: 2,
        };
        assert_eq!(reply.usage, Some(usage));
    }

    #[test]
    fn what_is_not_a_whole_answer_says_why() {
        let text = json!([{"text": "x"}]);
        for (json, expected) in [
            (
                answer(text.clone(), "MAX_TOKENS"),
                "not whole: it ended with `MAX_TOKENS`",
            ),
            (
                answer(text.clone(), "SAFETY"),
                "not whole: it ended with `SAFETY`",
            ),
            (
                answer(json!([]), "STOP"),
                "has no text (it ended with `STOP`)",
            ),
            (answer(json!([{"text": " \n"}]), "STOP"), "has no text"),
            (
                answer(json!([{"text": 1}]), "STOP"),
                "not the JSON that was expected",
            ),
            (
                json!({"candidates": [{"finishReason": "STOP", "content": {"role": "model"}}]}),
                "has no text",
            ),
            (
                json!({"candidates": [{"finishReason": "STOP"}]}),
                "has no text",
            ),
            (
                json!({"candidates": [{"content": {"parts": text}}]}),
                "no finish reason",
            ),
            (
                json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}),
                "blocked the prompt: `PROHIBITED_CONTENT`",
            ),
            (json!({}), "has no text (it ended with `no answer`)"),
            (
                json!({"error": {"code": 500, "status": "INTERNAL", "message": "oops"}}),
                "reports an error `INTERNAL`: oops",
            ),
            (
                json!([answer(json!([{"text": "x"}]), "STOP")]),
                "JSON array",
            ),
        ] {
            let error = read(&json).unwrap_err().to_string();
            assert!(error.contains(expected), "{json}: {error}");
        }
    }

    #[test]
    fn what_is_not_json_says_so() {
        for (body, expected) in [
            (&b""[..], "no content at all"),
            (b"<html>", "begins `<html>`"),
            (b"{\"candidates\": [", "ends in the middle of its JSON"),
            (b"{\"candidates\": \"\xff\"}", "not valid UTF-8"),
        ] {
            let error = Gemini.read_reply(body).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn an_error_tells_key_quota_and_delay_even_in_an_array() {
        let wrong_key = json!({"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT",
            "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]}});
        let read = Gemini.read_failure(wrong_key.to_string().as_bytes());
        assert!(read.bad_key && !read.quota_spent);
        assert_eq!(read.code.as_deref(), Some("INVALID_ARGUMENT"));
        let quota = json!([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [
            {"violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]}, {"retryDelay": "37s"}]}}]);
        let read = Gemini.read_failure(quota.to_string().as_bytes());
        assert!(read.quota_spent);
        assert_eq!(read.retry_delay, Some(Duration::from_secs(37)));
        assert_eq!(Gemini.read_failure(b"<html>"), VendorError::default());
    }
}
