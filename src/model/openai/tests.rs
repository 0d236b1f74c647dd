//! Table tests of OpenAI's wire format: requests as written, and answers as read. Pure.

use super::*;
use crate::model::Request;
use crate::model::message::{ReplyPart, Text};
use crate::model::tests::written;
use crate::model::{Form, Provider, StepId, Tier};
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
        Message::text(Role::System, "be brief"),
        Message::text(Role::User, "hello"),
    ];
    let body = written(&OpenAi, "gpt-5", &messages);
    let expected = json!({
        "model": "gpt-5",
        "messages": [{"role": "developer", "content": "be brief"}, {"role": "user", "content": "hello"}],
        "max_completion_tokens": 128_000,
    });
    assert_eq!(body, expected);
}

/// Returns the body of a commit workflow's request to the model with this id.
fn asked(id: &str, messages: &[Message<'static>]) -> String {
    let spec = ModelSpec::new(id, Provider::OpenAi);
    let request = Request {
        step: StepId::INITIAL,
        messages: messages.to_vec(),
        form: Form::default(),
        max_output_tokens: None,
        tier: Tier::Standard,
        cached_by_marks: true,
        once: false,
        deadline: None,
    };
    let mut body = Vec::new();
    let written = OpenAi.write_request((&spec, &request, Delivery::Whole.into()), &mut body);
    written.unwrap();
    String::from_utf8(body).unwrap()
}

#[test]
fn cache_marks_are_sent_only_to_models_that_accept_them() {
    let mut shared = Text::from("shared");
    shared.is_marked = true;
    let first = Message::text(Role::User, shared);
    let mut repair = first.clone();
    repair.parts.push(Part::Text("new".into()));
    let marked = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"shared","prompt_cache_breakpoint":{"mode":"explicit"}}"#;
    let off = r#""prompt_cache_options":{"mode":"explicit"}"#;
    let sol =
        |message: &Message<'static>| asked("gpt-6.1-sol-2026-11-01", std::slice::from_ref(message));
    assert!(sol(&first).starts_with(&format!("{marked}]}}],")));
    assert!(sol(&repair).starts_with(&format!(r#"{marked},{{"type":"text","text":"new"}}]}}],"#)));
    assert!(sol(&first).contains(off) && sol(&repair).contains(off));
    assert!(asked("gpt-5.6-terra", std::slice::from_ref(&first)).contains(off));
    // Without a mark, nothing is cached.
    let plain = Message::text(Role::User, "all");
    assert!(
        sol(&plain).contains(r#"{"role":"user","content":"all"}"#) && sol(&plain).contains(off)
    );
    for id in ["gpt-5", "some-local-model"] {
        assert!(!asked(id, std::slice::from_ref(&plain)).contains("cache"));
        let asked = asked(id, std::slice::from_ref(&repair));
        let parts = r#"[{"type":"text","text":"shared"},{"type":"text","text":"new"}]"#;
        assert!(asked.contains(parts) && !asked.contains("cache"), "{asked}");
    }
}

#[test]
fn a_whole_answer_is_read_with_its_usage() {
    let mut whole = answer(
        json!({"role": "assistant", "content": "a\nb"}),
        json!("stop"),
    );
    whole["model"] = "gpt-5-2025-08-07".into();
    whole["usage"] = json!({"prompt_tokens": 7, "completion_tokens": 9, "total_tokens": 16,
        "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2}, "completion_tokens_details": {"reasoning_tokens": 6}});
    let reply = read(&whole).unwrap();
    assert_eq!(*reply.text, "a\nb");
    assert_eq!(
        reply.spent.model_version.as_deref(),
        Some("gpt-5-2025-08-07")
    );
    let usage = Usage {
        input_tokens: 7,
        cached_tokens: 4,
        cache_write_tokens: 2,
        thought_tokens: 6,
        output_tokens: 3,
    };
    assert_eq!(reply.spent.usage, Some(usage));
}

#[test]
fn compatible_servers_may_leave_out_or_null_what_is_not_needed() {
    let reply = read(&answer(
        json!({"content": "x", "refusal": null}),
        json!("stop"),
    ))
    .unwrap();
    assert_eq!((reply.spent.usage, reply.spent.model_version), (None, None));
    let mut nulls = answer(json!({"content": "x"}), json!("stop"));
    nulls["usage"] = json!({"prompt_tokens": 1, "prompt_tokens_details": null});
    assert_eq!(read(&nulls).unwrap().spent.usage.unwrap().input_tokens, 1);
}

#[test]
fn thinking_apart_from_the_answers_tokens_is_known_by_the_total() {
    let mut apart = answer(json!({"content": "x"}), json!("stop"));
    apart["usage"] = json!({"prompt_tokens": 7, "completion_tokens": 9, "total_tokens": 22,
        "completion_tokens_details": {"reasoning_tokens": 6}});
    let usage = read(&apart).unwrap().spent.usage.unwrap();
    assert_eq!((usage.output_tokens, usage.thought_tokens), (9, 6));
}

#[test]
fn the_text_among_the_parts_of_a_list_is_the_answer() {
    let content = json!([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
        {"type": "text", "text": "one "}, {"type": "text", "text": "two"}]);
    let whole = answer(json!({"content": content}), json!("stop"));
    assert_eq!(*read(&whole).unwrap().text, "one two");
    let mut stream = ChatStream::default();
    let chunk = json!({"choices": [{"delta": {"content": content}, "finish_reason": "stop"}]});
    stream.event(chunk.to_string().as_bytes(), &()).unwrap();
    assert_eq!(stream.content, "one two");
}

#[test]
fn thinking_before_calls_is_sent_back_in_its_field() {
    let call =
        json!([{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}]);
    for name in ["reasoning_content", "reasoning"] {
        let whole = answer(
            json!({"reasoning_content": "", "content": "so", (name): "hm, so", "tool_calls": call}),
            "tool_calls".into(),
        );
        let mut stream = ChatStream::default();
        for delta in [
            json!({(name): "hm,", "content": null}),
            json!({(name): " so"}),
            json!({"content": "so", "tool_calls": call}),
        ] {
            let chunk = json!({"choices": [{"delta": delta, "finish_reason": "tool_calls"}]});
            stream.event(chunk.to_string().as_bytes(), &()).unwrap();
        }
        let streamed = serde_json::from_slice(&Box::new(stream).finish().unwrap()).unwrap();
        for answer in [whole, streamed] {
            let mut reply = read(&answer).unwrap();
            let [
                ReplyPart::Thought(thought),
                ReplyPart::Text(text),
                ReplyPart::Call(_),
            ] = &reply.parts[..]
            else {
                panic!("{reply:?}");
            };
            let said = Message {
                role: Role::Assistant,
                parts: vec![
                    Part::Thought(thought.clone()),
                    Part::Text(text.clone().into()),
                    Part::Call(reply.calls.remove(0)),
                ],
            };
            let body = written(&OpenAi, "gpt-5", &[said]);
            let expected =
                json!({"role": "assistant", "content": "so", (name): "hm, so", "tool_calls": call});
            assert_eq!(body["messages"][0], expected);
        }
        let text = json!({"content": "so", (name): "hm"});
        assert_eq!(read(&answer(text, "stop".into())).unwrap().parts, []);
    }
}

#[test]
fn the_pieces_of_a_call_belong_together_whatever_their_ids() {
    let piece = |index: Value, id: Value, name: Value, arguments: &str| json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}});
    let null = || Value::Null;
    for pieces in [
        // An id for each piece; one that comes late; no index; two calls in turns, and with one index.
        vec![
            piece(0.into(), "1".into(), "f".into(), ""),
            piece(0.into(), "2".into(), null(), "{\"a\""),
            piece(0.into(), "3".into(), null(), ":1}"),
        ],
        vec![
            piece(0.into(), null(), "f".into(), "{\"a\""),
            piece(0.into(), "1".into(), null(), ":1}"),
        ],
        vec![
            piece(null(), "1".into(), "f".into(), "{\"a\""),
            piece(null(), null(), null(), ":1}"),
        ],
    ] {
        let mut stream = ChatStream::default();
        for piece in &pieces {
            stream.call(piece);
        }
        let calls = stream
            .calls
            .iter()
            .map(|call| (&*call.name, &*call.arguments));
        assert_eq!(
            calls.collect::<Vec<_>>(),
            [("f", "{\"a\":1}")],
            "{pieces:?}"
        );
    }
    let mut stream = ChatStream::default();
    for piece in [
        piece(0.into(), "1".into(), "f".into(), "{"),
        piece(0.into(), "2".into(), "g".into(), "["),
        piece(0.into(), null(), null(), "]"),
    ] {
        stream.call(&piece);
    }
    let calls = stream
        .calls
        .iter()
        .map(|call| (&*call.name, &*call.arguments));
    assert_eq!(calls.collect::<Vec<_>>(), [("f", "{"), ("g", "[]")]);
}

#[test]
fn a_refusal_has_its_usage() {
    let refused = json!({"content": null, "refusal": "I can't"});
    for (finish, expected) in [(json!("stop"), "stop"), (json!(null), "refusal")] {
        let mut refused = answer(refused.clone(), finish);
        refused["model"] = json!("gpt-5-2025-08-07");
        refused["usage"] = json!({"prompt_tokens": 7, "completion_tokens": 2});
        let error = read(&refused).unwrap_err();
        let (finish, spent) = error.spent().unwrap();
        let usage = spent.usage.unwrap();
        assert_eq!((usage.input_tokens, usage.output_tokens), (7, 2));
        assert_eq!(spent.model_version.as_deref(), Some("gpt-5-2025-08-07"));
        assert_eq!(finish, expected);
    }
}

#[test]
fn incomplete_answer_is_an_error_with_its_reason() {
    for (json, expected) in [
        (
            answer(json!({"content": "x"}), json!("length")),
            "incomplete: it ended with `length`",
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
fn an_error_distinguishes_a_spent_quota_from_a_rate_limit() {
    let failure = |code: Value| {
        let json = json!({"error": {"message": "m", "type": "t", "param": null, "code": code}});
        OpenAi.read_failure(json.to_string().as_bytes())
    };
    assert!(failure(json!("insufficient_quota")).quota_spent);
    assert!(!failure(json!("rate_limit_exceeded")).quota_spent);
    assert_eq!(failure(Value::Null).code.as_deref(), Some("t"));
    assert_eq!(failure(json!(401)).code.as_deref(), Some("401"));
    // An error from a server in front of Anthropic's.
    assert!(failure(json!("overloaded_error")).may_pass());
    assert!(!failure(json!("invalid_request_error")).may_pass());
}
