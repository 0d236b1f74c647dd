//! Table tests of Gemini's wire format: requests as written, and answers as read. Pure.

use super::*;
use crate::model::Request;
use crate::model::manner::Manner;
use crate::model::message::ReplyPart;
use crate::model::tests::written;
use crate::model::{Form, Provider, StepId, Thinking};
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
        Message::text(Role::System, "be brief"),
        Message::text(Role::User, "hello"),
        Message::text(Role::Assistant, "hi"),
    ];
    let body = written(&Gemini, "gemini-2.5-pro", &messages);
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
fn a_reply_is_held_to_a_schema_or_to_json_or_to_nothing() {
    let schema = json!({"type": "object"});
    let request = Request {
        step: StepId::INITIAL,
        messages: vec![Message::text(Role::User, "hello")],
        form: Form {
            schema: Some(schema.clone()),
            temperature: Some(0.3),
            ..Form::default()
        },
        max_output_tokens: None,
        tier: Tier::Standard,
        cached_by_marks: false,
        once: false,
        deadline: None,
    };
    let config = |constraint| {
        let manner = Manner {
            constraint,
            ..Delivery::Whole.into()
        };
        let mut body = Vec::new();
        let spec = ModelSpec::new("m", Provider::Gemini);
        let written = Gemini.write_request((&spec, &request, manner), &mut body);
        written.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        body["generationConfig"].clone()
    };
    for (constraint, expected) in [
        (
            Constraint::Schema,
            json!({"temperature": 0.3, "responseMimeType": "application/json", "responseJsonSchema": schema}),
        ),
        (
            Constraint::Json,
            json!({"temperature": 0.3, "responseMimeType": "application/json"}),
        ),
        (Constraint::Nothing, json!({"temperature": 0.3})),
    ] {
        assert_eq!(config(constraint), expected);
    }
}

/// Returns a request with a tool and these messages.
fn with_tool(messages: &[Message<'_>], tool_choice: ToolChoice) -> Value {
    let request = Request {
        step: StepId::INITIAL,
        messages: messages.to_vec(),
        form: Form {
            tools: vec![ToolSchema {
                name: "read file".to_owned(),
                description: "Reads.".to_owned(),
                schema: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
            }],
            tool_choice,
            ..Form::default()
        },
        max_output_tokens: None,
        tier: Tier::Standard,
        cached_by_marks: false,
        once: false,
        deadline: None,
    };
    let spec = ModelSpec {
        thinking: Some(Thinking::Adaptive),
        ..ModelSpec::new("gemini-3.8-flash", Provider::Gemini)
    };
    let mut body = Vec::new();
    let written = Gemini.write_request((&spec, &request, Delivery::Whole.into()), &mut body);
    written.unwrap();
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn tools_are_declared_by_their_schemas_and_called_by_native_parts() {
    let sealed = |data: &str| {
        Part::Thought(Thought::Sealed {
            data: data.to_owned(),
        })
    };
    let call = |id: &str, input: Value| {
        Part::Call(Call {
            id: id.to_owned(),
            name: "read_file".to_owned(),
            input,
            written: None,
        })
    };
    let result = |id: &str, is_error| {
        Part::Result(CallResult {
            id: id.to_owned(),
            text: "x".to_owned(),
            is_error,
        })
    };
    let messages = [
        Message::text(Role::User, "hello"),
        Message {
            role: Role::Assistant,
            parts: vec![
                Part::Thought(Thought::Shown {
                    text: "hmm".to_owned(),
                    signature: String::new(),
                }),
                sealed("one"),
                Part::Text("I look.".into()),
                sealed("two"),
                call("v1", json!({"path": "a"})),
                call("call-2", json!("no object")),
            ],
        },
        Message {
            role: Role::Tool,
            parts: vec![result("v1", false), result("call-2", true)],
        },
        Message {
            role: Role::Assistant,
            parts: vec![Part::Text("Done.".into()), sealed("three")],
        },
        Message {
            role: Role::User,
            parts: vec![
                Part::Image(Image {
                    media_type: "image/png".to_owned(),
                    data: "AAAA".to_owned(),
                }),
                Part::Text("and this?".into()),
            ],
        },
    ];
    let body = with_tool(&messages, ToolChoice::Auto);
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let expected = json!({
        "contents": [
            {"role": "user", "parts": [{"text": "hello"}]},
            {"role": "model", "parts": [
                {"text": "I look.", "thoughtSignature": "one"},
                {"functionCall": {"id": "v1", "name": "read_file", "args": {"path": "a"}}, "thoughtSignature": "two"},
                {"functionCall": {"name": "read_file", "args": {}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "v1", "name": "read_file", "response": {"output": "x"}}},
                {"functionResponse": {"name": "read_file", "response": {"error": "x"}}},
            ]},
            {"role": "model", "parts": [{"text": "Done."}, {"text": "", "thoughtSignature": "three"}]},
            {"role": "user", "parts": [
                {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}, {"text": "and this?"},
            ]},
        ],
        "tools": [{"functionDeclarations": [
            {"name": "read_file", "description": "Reads.", "parametersJsonSchema": schema},
        ]}],
        "generationConfig": {"thinkingConfig": {"includeThoughts": true}},
    });
    assert_eq!(body, expected);
    let body = with_tool(&messages, ToolChoice::None);
    assert_eq!(body["toolConfig"]["functionCallingConfig"]["mode"], "NONE");
}

#[test]
fn another_models_call_is_marked_as_such_since_later_versions_reject_it_otherwise() {
    let call = |id: &str| {
        Part::Call(Call {
            id: id.to_owned(),
            name: "look".to_owned(),
            ..Call::default()
        })
    };
    let message = Message {
        role: Role::Assistant,
        parts: vec![call("a"), call("b")],
    };
    for (id, expected) in [
        ("gemini-3.8-flash", [Some(UNSIGNED), None]),
        ("gemini-2.5-pro", [None; 2]),
    ] {
        let spec = ModelSpec::new(id, Provider::Gemini);
        let content = content(&spec, &message, &mut CallsById::default());
        let signatures = content.parts.iter().map(|part| part.thought_signature);
        assert!(signatures.eq(expected), "{id}");
    }
}

#[test]
fn calls_keep_their_place_and_their_signatures() {
    let parts = json!([
        {"text": "hmm", "thought": true},
        {"text": "I look."},
        {"functionCall": {"name": "read", "args": {"path": "a"}}, "thoughtSignature": "one"},
        {"functionCall": {"id": "v2", "name": "list"}},
    ]);
    let mut stream = Box::new(GeminiStream::default());
    let quiet = crate::model::tests::Quiet;
    for part in elements(&parts) {
        let chunk = json!({"candidates": [{"content": {"role": "model", "parts": [part]}}]});
        stream.event(chunk.to_string().as_bytes(), &quiet).unwrap();
    }
    let end =
        json!({"candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": "STOP"}]});
    stream.event(end.to_string().as_bytes(), &quiet).unwrap();
    let streamed = stream.finish().unwrap();
    for answer in [answer(parts, "STOP").to_string().into_bytes(), streamed] {
        let reply = Gemini.read_reply(&answer).unwrap();
        assert_eq!((reply.end, &**reply.text), (End::ToolCalls, "I look."));
        let sealed = Thought::Sealed {
            data: "one".to_owned(),
        };
        let expected = [
            ReplyPart::Text("I look.".to_owned()),
            ReplyPart::Thought(sealed),
            ReplyPart::Call("call-1".to_owned()),
            ReplyPart::Call("v2".to_owned()),
        ];
        assert_eq!(reply.parts, expected);
        let calls = reply.calls.iter().map(|call| (&*call.name, &call.input));
        let expected = [("read", &json!({"path": "a"})), ("list", &json!({}))];
        assert!(calls.eq(expected));
    }
    let malformed = answer(json!([]), "MALFORMED_FUNCTION_CALL");
    let error = read(&malformed).unwrap_err();
    assert!(error.is_incomplete_reply(), "{error}");
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
    assert_eq!(
        reply.spent.model_version.as_deref(),
        Some("gemini-2.5-pro-002")
    );
    let usage = Usage {
        input_tokens: 5,
        cached_tokens: 1,
        cache_write_tokens: 0,
        thought_tokens: 3,
        output_tokens: 2,
    };
    assert_eq!(reply.spent.usage, Some(usage));
}

#[test]
fn incomplete_answer_is_an_error_with_its_reason() {
    let text = json!([{"text": "x"}]);
    for (json, expected) in [
        (
            answer(text.clone(), "MAX_TOKENS"),
            "incomplete: it ended with `MAX_TOKENS`",
        ),
        (
            answer(text.clone(), "SAFETY"),
            "incomplete: it ended with `SAFETY`",
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
fn invalid_json_is_an_error() {
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
fn an_error_shows_key_quota_and_delay_even_in_an_array() {
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
