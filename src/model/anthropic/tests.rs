//! Table tests of Anthropic's wire format: requests as written, and answers as read. Pure.

use std::cell::RefCell;

use super::*;
use crate::model::message::{Message, ReplyPart, Role};
use crate::model::{
    Form, Listener, ModelTable, Provider, ReasoningEffort, Request, StepId, catalogue, retired,
};

/// Returns the vendor's schema of this name.
pub(in crate::model) fn described(name: &str) -> jsonschema::Validator {
    let text = include_str!("../../../fixtures/wires/anthropic.schema.json");
    let mut schema: Value = serde_json::from_str(text).unwrap();
    schema["$ref"] = format!("#/$defs/{name}").into();
    jsonschema::validator_for(&schema).unwrap()
}

#[track_caller]
pub(in crate::model) fn fits(validator: &jsonschema::Validator, value: &Value) {
    let errors = validator.iter_errors(value);
    let faults: Vec<String> = errors.map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{faults:#?}\n{value:#}");
}

fn request(messages: &[Message<'static>], form: Form) -> Request<'static> {
    Request {
        step: StepId::INITIAL,
        messages: messages.to_vec(),
        form,
        max_output_tokens: None,
        tier: Tier::Standard,
        cached_by_marks: false,
        once: false,
        deadline: None,
    }
}

fn written(spec: &ModelSpec, request: &Request<'_>) -> String {
    let mut body = Vec::new();
    let manner = Delivery::Whole.into();
    let written = Anthropic.write_request((spec, request, manner), &mut body);
    written.unwrap();
    String::from_utf8(body).unwrap()
}

fn form() -> Form {
    let tool = |name: &str| ToolSchema {
        name: name.to_owned(),
        description: "D".to_owned(),
        schema: json!({"type": "object", "properties": {}}),
    };
    Form {
        tools: vec![tool("read_file"), tool("b")],
        temperature: Some(0.7),
        ..Form::default()
    }
}

fn conversation() -> [Message<'static>; 2] {
    [
        Message::text(Role::System, "be brief"),
        Message::text(Role::User, "hello"),
    ]
}

#[test]
fn the_request_has_what_the_entry_says_and_is_streamed() {
    let spec = ModelSpec {
        thinking: Some(Thinking::Adaptive),
        reasoning_effort: Some(ReasoningEffort::XHigh),
        max_output_tokens: Some(128_000),
        ..Provider::Anthropic.spec("claude-sonnet-5-5")
    };
    let request = request(&conversation(), form());
    let mark = json!({"type": "ephemeral"});
    let schema = json!({"type": "object", "properties": {}});
    let expected = json!({
        "model": "claude-sonnet-5-5",
        "max_tokens": 128_000,
        "stream": true,
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": "xhigh"},
        "tools": [
            {"name": "read_file", "description": "D", "input_schema": schema},
            {"name": "b", "description": "D", "input_schema": schema},
        ],
        "system": [{"type": "text", "text": "be brief", "cache_control": mark}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hello", "cache_control": mark}]}],
    });
    let body = written(&spec, &request);
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), expected);
    fits(&described("CreateMessageParams"), &expected);
    assert_eq!(
        Anthropic.headers(&spec),
        [("anthropic-version", "2026-10-21")]
    );
    let endpoint = Endpoint::parse("V", "https://api.anthropic.com/", true).unwrap();
    let url = Anthropic.url(&endpoint, &spec, Delivery::Streamed);
    assert_eq!(url, "https://api.anthropic.com/v1/messages");
}

#[test]
fn a_temperature_is_the_entrys_alone_and_takes_the_earlier_version() {
    let spec = ModelSpec {
        temperature: Some(0.5),
        ..Provider::Anthropic.spec("claude-haiku-4-5")
    };
    for (spec, temperature, version) in [
        (spec, json!(0.5), "2023-06-01"),
        (
            Provider::Anthropic.spec("claude-haiku-4-5"),
            Value::Null,
            "2026-10-21",
        ),
    ] {
        let body: Value =
            serde_json::from_str(&written(&spec, &request(&conversation(), form()))).unwrap();
        assert_eq!(body["temperature"], temperature);
        assert_eq!(Anthropic.headers(&spec), [("anthropic-version", version)]);
        assert_eq!(body["max_tokens"], 32_000);
        fits(&described("CreateMessageParams"), &body);
        for field in ["thinking", "output_config", "tool_choice", "top_p", "top_k"] {
            assert_eq!(body[field], Value::Null, "{field}");
        }
    }
}

#[test]
fn a_reply_is_held_to_its_schema_without_bounds() {
    let spec = Provider::Anthropic.spec("claude-sonnet-5-5");
    let text = json!({"type": "string", "maxLength": 9});
    let list = json!({"type": "array", "minItems": 1, "maxItems": 2, "items": text});
    let form = Form {
        schema: Some(json!({"type": "object", "properties": {"a": list}, "required": ["a"]})),
        ..Form::default()
    };
    let body: Value =
        serde_json::from_str(&written(&spec, &request(&conversation(), form))).unwrap();
    let list = json!({"type": "array", "minItems": 1, "items": {"type": "string"}});
    let schema = json!({"type": "object", "properties": {"a": list}, "required": ["a"],
        "additionalProperties": false});
    let expected = json!({"format": {"type": "json_schema", "schema": schema}});
    assert_eq!(body["output_config"], expected);
    fits(&described("CreateMessageParams"), &body);
}

#[test]
fn tools_that_may_not_be_called_are_reported_all_the_same() {
    let spec = Provider::Anthropic.spec("m");
    let none = Form {
        tool_choice: ToolChoice::None,
        ..form()
    };
    let json = written(&spec, &request(&conversation(), none));
    let body: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(body["tool_choice"], json!({"type": "none"}));
    assert_eq!(body["tools"].as_array().unwrap().len(), 2);
    fits(&described("CreateMessageParams"), &body);
    let without = Form {
        tool_choice: ToolChoice::None,
        ..Form::default()
    };
    let plain = Request {
        cached_by_marks: true,
        ..request(&conversation(), without)
    };
    let body = written(&spec, &plain);
    for field in ["tool_choice", "tools", "cache_control"] {
        assert!(!body.contains(field), "{body}");
    }
}

/// The calls that a listener received.
#[derive(Default)]
struct Heard(RefCell<Vec<String>>);

impl Heard {
    fn note(&self, kind: &str, piece: &str) {
        self.0.borrow_mut().push(format!("{kind} {piece}"));
    }
}

impl Listener for Heard {
    fn text(&self, piece: &str) {
        self.note("text", piece);
    }

    fn thought(&self, piece: &str) {
        self.note("thought", piece);
    }
}

fn events(events: &[Value]) -> String {
    let event = |event: &Value| {
        let kind = event["type"].as_str().unwrap();
        format!("event: {kind}\ndata: {event}\n\n")
    };
    events.iter().map(event).collect()
}

fn delta(index: u64, kind: &str, name: &str, piece: &str) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": {"type": kind, name: piece}})
}

/// Returns a stream with every kind of event, known or unknown.
fn stream(stop_reason: &str) -> String {
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
    events(&[
        json!({"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5-5", "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 10, "cache_read_input_tokens": 200,
                "cache_creation_input_tokens": 30, "output_tokens": 1, "service_tier": "standard"},
        }}),
        json!({"type": "ping"}),
        start(
            0,
            json!({"type": "thinking", "thinking": "", "signature": ""}),
        ),
        delta(0, "thinking_delta", "thinking", "let me "),
        delta(0, "thinking_delta", "thinking", "see"),
        delta(0, "signature_delta", "signature", "Sig=="),
        stop(0),
        start(1, json!({"type": "redacted_thinking", "data": "EnC"})),
        stop(1),
        json!({"type": "of_the_future", "index": 1, "delta": {"text": "no"}}),
        start(2, json!({"type": "text", "text": ""})),
        delta(2, "text_delta", "text", "I "),
        delta(2, "citations_delta", "citation", "[1]"),
        delta(2, "text_delta", "text", "read é\n"),
        stop(2),
        start(
            3,
            json!({"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {}}),
        ),
        delta(3, "input_json_delta", "partial_json", ""),
        delta(3, "input_json_delta", "partial_json", "{\"path\": \"a\", "),
        delta(3, "input_json_delta", "partial_json", "\"a\": 1.0}"),
        stop(3),
        start(4, json!({"type": "server_thing", "id": "srv"})),
        delta(4, "thing_delta", "text", "x"),
        stop(4),
        start(
            5,
            json!({"type": "tool_use", "id": "toolu_2", "name": "list", "input": {}}),
        ),
        stop(5),
        json!({"type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": null},
            "usage": {"output_tokens": 50, "output_tokens_details": {"thinking_tokens": 20}}}),
        json!({"type": "message_stop"}),
    ])
}

/// Returns the assembled answer of a stream, and the listener's calls.
fn assembled(stream: &str) -> Result<(Option<Vec<u8>>, Vec<String>), ModelError> {
    let heard = Heard::default();
    let mut assembler = Anthropic.assembler();
    let mut framing = crate::sys::sse::Events::default();
    framing.read(stream.as_bytes(), |event| {
        assembler.event(&event.data, &heard)
    })?;
    Ok((assembler.finish(), heard.0.into_inner()))
}

fn read(stream: &str) -> Result<Reply, ModelError> {
    Anthropic.read_reply(&assembled(stream)?.0.expect("the stream is whole"))
}

#[test]
fn a_stream_is_put_together_in_its_order() {
    let (json, heard) = assembled(&stream("tool_use")).unwrap();
    assert_eq!(
        heard,
        ["thought let me ", "thought see", "text I ", "text read é\n"]
    );
    let reply = Anthropic.read_reply(&json.unwrap()).unwrap();
    assert_eq!((&**reply.text, reply.end), ("I read é\n", End::ToolCalls));
    let thought = Thought::Shown {
        text: "let me see".to_owned(),
        signature: "Sig==".to_owned(),
    };
    let sealed = Thought::Sealed {
        data: "EnC".to_owned(),
    };
    let parts = [
        ReplyPart::Thought(thought),
        ReplyPart::Thought(sealed),
        ReplyPart::Text("I read é\n".to_owned()),
        ReplyPart::Call("toolu_1".to_owned()),
        ReplyPart::Call("toolu_2".to_owned()),
    ];
    assert_eq!(reply.parts, parts);
    let inputs: Vec<String> = reply
        .calls
        .iter()
        .map(|call| call.input.to_string())
        .collect();
    assert_eq!(inputs, [r#"{"path":"a","a":1.0}"#, "{}"]);
    let usage = Usage {
        input_tokens: 240,
        cached_tokens: 200,
        cache_write_tokens: 30,
        thought_tokens: 20,
        output_tokens: 30,
    };
    assert_eq!(reply.spent.usage, Some(usage));
    assert_eq!(
        reply.spent.model_version.as_deref(),
        Some("claude-sonnet-5-5")
    );
    assert_eq!(reply.spent.tier, Some(Tier::Standard));
}

#[test]
fn a_stream_that_is_cut_anywhere_is_not_a_reply() {
    let stream = stream("tool_use");
    let cuts = (0..stream.len()).filter(|at| stream.is_char_boundary(*at));
    for at in cuts {
        let (json, _) = assembled(&stream[..at]).unwrap();
        assert_eq!(json, None, "cut at {at}");
    }
}

#[test]
fn call_input_is_used_if_it_is_json() {
    let call = |pieces: &[&str], given: Value| {
        let mut list = vec![json!({"type": "content_block_start", "index": 0,
                "content_block": {"type": "tool_use", "id": "1", "name": "n", "input": given}})];
        list.extend(
            pieces
                .iter()
                .map(|piece| delta(0, "input_json_delta", "partial_json", piece)),
        );
        list.push(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}}));
        list.push(json!({"type": "message_stop"}));
        read(&events(&list)).unwrap().calls.remove(0).input
    };
    for (pieces, given, expected) in [
        (&[][..], json!({}), json!({})),
        (&[""], json!({}), json!({})),
        (&[], json!({"a": 1}), json!({"a": 1})),
        (&["{\"a\"", ":2}"], json!({}), json!({"a": 2})),
        (&["{\"a\": "], json!({}), json!("{\"a\": ")),
        (&["\"a\""], json!({}), json!("\"a\"")),
        (&["[1]"], json!({}), json!([1])),
    ] {
        assert_eq!(call(pieces, given), expected, "{pieces:?}");
    }
}

fn answer(content: &Value, stop_reason: &str) -> Result<Reply, ModelError> {
    let answer = json!({"type": "message", "content": content, "stop_reason": stop_reason,
        "stop_details": {"type": "refusal", "category": "cyber", "explanation": "not that"},
        "usage": {"input_tokens": 5, "output_tokens": 6}});
    Anthropic.read_reply(answer.to_string().as_bytes())
}

#[test]
fn each_end_is_what_it_means() {
    let text = json!([{"type": "text", "text": "hi"}]);
    for (stop_reason, end) in [
        ("end_turn", End::Stop),
        ("stop_sequence", End::Stop),
        ("pause_turn", End::Paused),
    ] {
        assert_eq!(answer(&text, stop_reason).unwrap().end, end);
    }
    let call = json!([{"type": "text", "text": "hi"}, {"type": "tool_use", "id": "1", "name": "n", "input": {}}]);
    assert_eq!(answer(&call, "tool_use").unwrap().end, End::ToolCalls);
    let paused = answer(&json!([]), "pause_turn").unwrap();
    assert!(paused.parts.is_empty() && paused.text.is_empty());
    for (content, stop_reason, is_again, is_refusal, is_too_long) in [
        (&call, "max_tokens", true, false, false),
        (&text, "tool_use", true, false, false),
        (&text, "refusal", false, true, false),
        (&json!([]), "refusal", false, true, false),
        (&text, "model_context_window_exceeded", false, false, true),
        (&text, "of_the_future", false, false, false),
        (&json!([]), "end_turn", true, false, false),
        (
            &json!([{"type": "text", "text": " "}]),
            "end_turn",
            true,
            false,
            false,
        ),
        (
            &json!([{"type": "thinking", "thinking": "hm", "signature": "s"}]),
            "end_turn",
            true,
            false,
            false,
        ),
        (&text, "", true, false, false),
    ] {
        let error = answer(content, stop_reason).unwrap_err();
        assert_eq!(error.is_incomplete_reply(), is_again, "{error}");
        assert_eq!(error.is_refusal(), is_refusal, "{error}");
        assert_eq!(error.is_context_exceeded(), is_too_long, "{error}");
        let has_usage = error
            .spent()
            .is_some_and(|(_, spent)| spent.usage.is_some());
        assert_eq!(has_usage, !stop_reason.is_empty(), "{error}");
    }
    let refused = answer(&text, "refusal").unwrap_err().to_string();
    assert!(
        refused.ends_with("ended with `refusal`: not that"),
        "{refused}"
    );
}

#[test]
fn an_error_is_what_its_type_says() {
    let error = |kind: &str, message: &str| {
        let json = json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "r"});
        Anthropic.read_failure(json.to_string().as_bytes())
    };
    for (kind, may_pass) in [
        ("overloaded_error", true),
        ("api_error", true),
        ("rate_limit_error", true),
        ("timeout_error", true),
        ("invalid_request_error", false),
        ("authentication_error", false),
        ("billing_error", false),
    ] {
        let told = error(kind, "words");
        assert_eq!(told.may_pass(), may_pass, "{kind}");
        assert_eq!(told.bad_key, kind == "authentication_error");
        assert_eq!(told.quota_spent, kind == "billing_error");
        assert_eq!(told.is_rate_limit, kind == "rate_limit_error");
        assert_eq!(
            (told.code.as_deref(), told.message.as_deref()),
            (Some(kind), Some("words"))
        );
    }
    let broke = "Your credit balance is too low to access the Anthropic API.";
    assert!(error("invalid_request_error", broke).quota_spent);
    // An error in the middle of a stream.
    let overloaded =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let stream = stream("tool_use").replacen(
        "event: ping\ndata: {\"type\":\"ping\"}\n\n",
        &events(&[overloaded]),
        1,
    );
    let error = assembled(&stream).unwrap_err();
    assert!(matches!(&error, ModelError::ErrorInAnswer(vendor) if vendor.may_pass()));
    assert!(error.is_overload());
}

#[test]
fn malformed_events_are_errors_not_panics() {
    for event in [
        json!({"type": "message_start", "message": 5}),
        json!({"type": "message_start", "message": {"usage": "much", "content": 3}}),
        json!({"type": "content_block_start", "index": -1, "content_block": []}),
        json!({"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", "text": "x"}}),
        json!({"type": "content_block_delta", "delta": 5}),
        json!({"type": "message_delta", "delta": [], "usage": 3}),
        json!({"type": "message_delta", "delta": {"content": 9}}),
        json!({"kind": 1, "type": "x"}),
    ] {
        let stream = events(&[event.clone(), json!({"type": "message_stop"})]);
        let (json, _) = assembled(&stream).unwrap();
        let reply = Anthropic.read_reply(&json.unwrap());
        assert!(reply.is_err(), "{event}");
    }
}

#[test]
fn the_chats_models_are_those_of_the_catalogue() {
    let today = "2026-11-23".parse().unwrap();
    let built_in = ModelTable::built_in();
    let mut names = Vec::new();
    for spec in built_in.models() {
        let Some(entry) = catalogue::known(&spec.id).and_then(|known| known.entry.as_ref()) else {
            continue;
        };
        let json = ModelTable::with_entry("{}", &spec.name, entry.get())
            .unwrap()
            .unwrap();
        let table = ModelTable::parse(&json, today).unwrap();
        assert_eq!(table.named(&spec.name), Some(spec));
        names.push(&*spec.name);
    }
    let expected = [
        "claude-fable-5-1",
        "claude-opus-5-5",
        "claude-sonnet-5-5",
        "claude-haiku-5-5",
    ];
    assert_eq!(names, expected);
    let haiku = built_in.named("claude-haiku-5-5").unwrap();
    assert_eq!(haiku.thinking, Some(Thinking::Adaptive));
    let price = haiku.price.unwrap();
    let cost = |tokens| price.of(Usage::plain(tokens, 1_000_000)).dollars();
    assert!((cost(100_000) - 0.51).abs() < 1e-9 && (cost(100_001) - 2.550_000_5).abs() < 1e-9);
}

#[test]
fn retired_models_have_successors() {
    for (name, successor) in [
        ("claude-3-opus", Some("claude-opus-5-5")),
        ("claude-3-opus-20240229", Some("claude-opus-5-5")),
        ("claude-3-5-haiku-latest", Some("claude-haiku-5-5")),
        ("claude-3-7-sonnet", Some("claude-sonnet-5-5")),
        ("claude-2.1", Some("claude-sonnet-5-5")),
        ("claude-instant-1.2", Some("claude-sonnet-5-5")),
        ("claude-opus-5-5", None),
        ("claude-sonnet-4-5", None),
        ("gpt-5", None),
    ] {
        assert_eq!(retired(name), successor, "{name}");
    }
    assert_eq!(
        catalogue::successor("claude-3-opus"),
        Some("claude-opus-5-5")
    );
}
