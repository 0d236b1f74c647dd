//! OpenAI's chat completions wire, and what is compatible with it. Pure.
//!
//! After the vendor's OpenAPI description; compatible servers leave fields out, so all are optional.

use std::io::Write;

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
const STOP: &str = "stop";

pub(super) struct OpenAi;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<BodyMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    /// The same for servers that know only the older name.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<ReasoningEffort>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct BodyMessage<'a> {
    role: &'static str,
    content: &'a Text<'a>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    usage: Option<AnswerUsage>,
    model: Option<String>,
    error: Option<ErrorBody>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: Option<AnswerMessage<'a>>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct AnswerMessage<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct AnswerUsage {
    #[serde(default, deserialize_with = "lenient_count")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient_count")]
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default, deserialize_with = "lenient_count")]
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    #[serde(default, deserialize_with = "lenient_count")]
    reasoning_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct ErrorBody {
    message: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    /// A string, a number or null.
    code: Option<Value>,
}

impl Wire for OpenAi {
    fn path(&self, _spec: &ModelSpec, _delivery: Delivery) -> String {
        "/chat/completions".to_owned()
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("authorization", "Bearer ")
    }

    fn write_request(
        &self,
        spec: &ModelSpec,
        request: &Request<'_>,
        delivery: Delivery,
        out: &mut dyn Write,
    ) -> serde_json::Result<()> {
        let dialect = Dialect::of(spec);
        let limit = request.max_output_tokens;
        let message = |message| body_message(message, dialect);
        let streamed = delivery == Delivery::Streamed;
        let body = Body {
            model: &spec.id,
            messages: request.messages.iter().map(message).collect(),
            max_completion_tokens: limit.filter(|_| dialect == Dialect::OpenAi),
            max_tokens: limit.filter(|_| dialect == Dialect::Compatible),
            reasoning_effort: spec.reasoning_effort,
            stream: streamed,
            stream_options: streamed.then_some(StreamOptions {
                include_usage: true,
            }),
        };
        serde_json::to_writer(out, &body)
    }

    fn assembler(&self) -> Box<dyn Assembler> {
        Box::new(Assembled::default())
    }

    fn read_reply(&self, json: &[u8]) -> Result<Reply, ModelError> {
        let answer: Answer<'_> = parse_answer(json)?;
        if let Some(error) = answer.error {
            return Err(ModelError::ErrorInAnswer(error.into()));
        }
        let spent = Spent {
            usage: answer.usage.map(Usage::from),
            model_version: answer.model,
        };
        let Some(choice) = answer.choices.into_iter().flatten().next() else {
            return Err(ModelError::Empty {
                finish: "no answer".into(),
                spent: spent.into(),
            });
        };
        let message = choice.message.unwrap_or(AnswerMessage {
            content: None,
            refusal: None,
        });
        if let Some(text) = message.refusal.filter(|refusal| !refusal.trim().is_empty()) {
            return Err(ModelError::Refused {
                text: one_line(&text),
            });
        }
        Ending {
            finish: choice.finish_reason,
            whole: STOP,
            message: None,
            spent,
        }
        .reply(message.content)
    }

    fn read_failure(&self, json: &[u8]) -> VendorError {
        parse_failure::<ErrorBody>(json).map_or_else(|| parse_sentence(json), VendorError::from)
    }
}

/// OpenAI has renamed things that servers which are compatible with it know by their old names only;
/// its own newer models take the new ones only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    OpenAi,
    Compatible,
}

impl Dialect {
    fn of(spec: &ModelSpec) -> Self {
        if spec.is_openais_own() {
            Self::OpenAi
        } else {
            Self::Compatible
        }
    }
}

fn body_message<'a>(message: &'a Message<'_>, dialect: Dialect) -> BodyMessage<'a> {
    BodyMessage {
        role: role_name(message.role, dialect),
        content: &message.text,
    }
}

fn role_name(role: Role, dialect: Dialect) -> &'static str {
    match (role, dialect) {
        (Role::System, Dialect::OpenAi) => "developer",
        (Role::System, Dialect::Compatible) => "system",
        // A tool's result travels as the user's words: there is no call of the vendor's own that it
        // could answer.
        (Role::User | Role::Tool, _) => "user",
        (Role::Assistant, _) => "assistant",
    }
}

/// A streamed answer: chunks whose choice has a `delta` in the place of the message.
#[derive(Default)]
struct Assembled {
    id: Option<Value>,
    model: Option<String>,
    content: String,
    refusal: Option<String>,
    finish: Option<String>,
    usage: Option<Value>,
    done: bool,
}

#[derive(Deserialize)]
struct Chunk {
    id: Option<Value>,
    model: Option<String>,
    choices: Option<Vec<ChunkChoice>>,
    usage: Option<Value>,
    error: Option<ErrorBody>,
}

#[derive(Deserialize)]
struct ChunkChoice {
    index: Option<u64>,
    delta: Option<Delta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<String>,
    refusal: Option<String>,
    /// What the model thinks, by the names that compatible servers give it; some give both, or no text.
    reasoning_content: Option<Value>,
    reasoning: Option<Value>,
}

impl Assembler for Assembled {
    fn event(&mut self, data: &[u8], listener: &dyn Listener) -> Result<(), ModelError> {
        // What comes behind the end is no part of the answer.
        self.done |= data.trim_ascii() == b"[DONE]";
        if self.done {
            return Ok(());
        }
        let chunk: Chunk = parse_answer(data)?;
        if let Some(error) = chunk.error {
            return Err(ModelError::ErrorInAnswer(error.into()));
        }
        self.id = self.id.take().or(chunk.id);
        self.model = chunk.model.or(self.model.take());
        self.usage = chunk.usage.filter(Value::is_object).or(self.usage.take());
        let first = chunk
            .choices
            .into_iter()
            .flatten()
            .find(|choice| choice.index.unwrap_or(0) == 0);
        let Some(choice) = first else {
            return Ok(());
        };
        self.finish = choice.finish_reason.or(self.finish.take());
        let Some(delta) = choice.delta else {
            return Ok(());
        };
        if let Some(text) = delta.content {
            listener.text(&text);
            self.content.push_str(&text);
        }
        let thought = delta.reasoning_content.or(delta.reasoning);
        if let Some(thought) = thought.as_ref().and_then(Value::as_str) {
            listener.thought(thought);
        }
        if let Some(refusal) = delta.refusal {
            self.refusal.get_or_insert_default().push_str(&refusal);
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.done
    }

    fn finish(self: Box<Self>) -> Option<Vec<u8>> {
        let finish = self.finish.filter(|_| self.done)?;
        let message =
            json!({"role": "assistant", "content": self.content, "refusal": self.refusal});
        let answer = json!({
            "id": self.id,
            "object": "chat.completion",
            "model": self.model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": self.usage,
        });
        Some(answer.to_string().into_bytes())
    }
}

impl From<AnswerUsage> for Usage {
    /// `completion_tokens` counts the thoughts in, [`Usage::output_tokens`] does not.
    fn from(usage: AnswerUsage) -> Self {
        let thoughts = usage
            .completion_tokens_details
            .and_then(|details| details.reasoning_tokens);
        let cached = usage
            .prompt_tokens_details
            .and_then(|details| details.cached_tokens);
        let completion = usage.completion_tokens.unwrap_or(0);
        Self {
            input_tokens: usage.prompt_tokens.unwrap_or(0),
            cached_tokens: cached.unwrap_or(0),
            thought_tokens: thoughts.unwrap_or(0),
            output_tokens: completion.saturating_sub(thoughts.unwrap_or(0)),
        }
    }
}

impl From<ErrorBody> for VendorError {
    fn from(error: ErrorBody) -> Self {
        let code = match error.code {
            Some(Value::String(code)) => Some(code),
            Some(Value::Number(code)) => Some(code.to_string()),
            _ => None,
        };
        let is = |name: &str| code.as_deref() == Some(name) || error.kind.as_deref() == Some(name);
        Self {
            quota_spent: is("insufficient_quota"),
            bad_key: is("invalid_api_key"),
            retry_delay: None,
            message: error.message,
            code: code.or(error.kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelTable;
    use crate::model::StepId;
    use serde_json::json;

    fn read(answer: &Value) -> Result<Reply, ModelError> {
        OpenAi.read_reply(answer.to_string().as_bytes())
    }

    #[expect(clippy::needless_pass_by_value, reason = "reads better at the calls")]
    fn answer(message: Value, finish: Value) -> Value {
        json!({"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": finish}]})
    }

    #[test]
    fn the_request_has_the_system_prompt_as_the_developer() {
        let messages = [
            Message {
                role: Role::System,
                text: "be brief".into(),
            },
            Message {
                role: Role::User,
                text: "hello".into(),
            },
        ];
        let table = ModelTable::built_in();
        let spec = table.named("gpt-5").unwrap();
        let request = Request {
            step: StepId::INITIAL,
            messages: messages.to_vec(),
            max_output_tokens: spec.max_output_tokens,
            once: false,
        };
        let mut body = Vec::new();
        OpenAi
            .write_request(spec, &request, Delivery::Whole, &mut body)
            .unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        let expected = json!({
            "model": "gpt-5",
            "messages": [{"role": "developer", "content": "be brief"}, {"role": "user", "content": "hello"}],
            "max_completion_tokens": 128_000,
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn a_whole_answer_is_read_with_its_usage() {
        let mut whole = answer(
            json!({"role": "assistant", "content": "a\nb"}),
            json!("stop"),
        );
        whole["model"] = "gpt-5-2025-08-07".into();
        whole["usage"] = json!({"prompt_tokens": 7, "completion_tokens": 9, "total_tokens": 16,
            "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 6}});
        let reply = read(&whole).unwrap();
        assert_eq!(*reply.text, "a\nb");
        assert_eq!(reply.model_version.as_deref(), Some("gpt-5-2025-08-07"));
        let usage = Usage {
            input_tokens: 7,
            cached_tokens: 4,
            thought_tokens: 6,
            output_tokens: 3,
        };
        assert_eq!(reply.usage, Some(usage));
    }

    #[test]
    fn compatible_servers_may_leave_out_or_null_what_is_not_needed() {
        let reply = read(&answer(
            json!({"content": "x", "refusal": null}),
            json!("stop"),
        ))
        .unwrap();
        assert_eq!((reply.usage, reply.model_version), (None, None));
        let mut nulls = answer(json!({"content": "x"}), json!("stop"));
        nulls["usage"] = json!({"prompt_tokens": 1, "prompt_tokens_details": null});
        assert_eq!(read(&nulls).unwrap().usage.unwrap().input_tokens, 1);
    }

    #[test]
    fn what_is_not_a_whole_answer_says_why() {
        for (json, expected) in [
            (
                answer(json!({"content": "x"}), json!("length")),
                "not whole: it ended with `length`",
            ),
            (
                answer(json!({"content": null}), json!("tool_calls")),
                "ended with `tool_calls`",
            ),
            (
                answer(json!({"content": "x"}), json!("content_filter")),
                "`content_filter`",
            ),
            (
                answer(json!({"content": "x"}), Value::Null),
                "no finish reason",
            ),
            (
                answer(json!({"content": null}), json!("stop")),
                "has no text",
            ),
            (answer(json!({"content": ""}), json!("stop")), "has no text"),
            (
                answer(
                    json!({"content": null, "refusal": "I can't"}),
                    json!("stop"),
                ),
                "refused to answer: I can't",
            ),
            (
                json!({"choices": []}),
                "has no text (it ended with `no answer`)",
            ),
            (
                json!({"error": {"message": "m", "code": 7}}),
                "reports an error `7`: m",
            ),
            (json!([{"error": {"message": "m"}}]), "JSON array"),
        ] {
            let error = read(&json).unwrap_err().to_string();
            assert!(error.contains(expected), "{json}: {error}");
        }
    }

    #[test]
    fn an_error_tells_a_spent_quota_from_a_rate_limit() {
        let failure = |code: Value| {
            let json = json!({"error": {"message": "m", "type": "t", "param": null, "code": code}});
            OpenAi.read_failure(json.to_string().as_bytes())
        };
        assert!(failure(json!("insufficient_quota")).quota_spent);
        assert!(!failure(json!("rate_limit_exceeded")).quota_spent);
        assert_eq!(failure(Value::Null).code.as_deref(), Some("t"));
        assert_eq!(failure(json!(401)).code.as_deref(), Some("401"));
    }
}
