//! Tests of the judge itself: each rule of the API is broken once, and requests that follow all rules are accepted.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::anthropic::{Anthropic, KEY, Reply, call, nothing, say, thinking, undescribed};

/// A request that breaks no rule.
fn good() -> Value {
    json!({
        "model": "claude-sonnet-5-5", "max_tokens": 1000, "stream": true,
        "system": [{"type": "text", "text": "You are.", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "read_file", "description": "Reads.", "input_schema": {"type": "object"}}],
        "thinking": {"type": "adaptive", "display": "summarized"},
        "messages": [{"role": "user", "content": [{"type": "text", "text": "go"}]}],
    })
}

/// Sends a request; returns the status and the body.
fn post(server: &Anthropic, key: &str, version: &str, body: &Value) -> (u16, String) {
    let body = body.to_string();
    let address = server.url().replace("http://", "");
    let mut stream = TcpStream::connect(&address).unwrap();
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: {address}\r\nx-api-key: {key}\r\nanthropic-version: {version}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).unwrap();
    // The connection stays open; closing the client's end ends the exchange.
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer[9..12].parse().unwrap();
    (status, answer)
}

/// Sends a request with the usual headers.
fn send(server: &Anthropic, body: &Value) -> u16 {
    post(server, KEY, "2026-10-21", body).0
}

/// The same request with these messages appended.
fn then(messages: &[Value]) -> Value {
    let mut body = good();
    body["messages"]
        .as_array_mut()
        .unwrap()
        .extend_from_slice(messages);
    body
}

fn assistant(blocks: Value) -> Value {
    Value::from_iter([("role", json!("assistant")), ("content", blocks)])
}

fn user(blocks: Value) -> Value {
    Value::from_iter([("role", json!("user")), ("content", blocks)])
}

#[test]
fn a_request_that_breaks_one_rule_is_refused_with_its_reason() {
    let used = |id: &str| json!({"type": "tool_use", "id": id, "name": "read_file", "input": {}});
    let told = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "x"});
    let text = |text: &str| json!({"type": "text", "text": text});
    let with = |pointer: &str, value: Value| {
        let mut body = good();
        body[pointer] = value;
        body
    };
    let mark = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
    for (body, reason) in [
        (with("temperature", json!(1)), "temperature"),
        (with("stream", json!(false)), "stream"),
        (with("max_tokens", json!(0)), "max_tokens"),
        (with("seed", json!(1)), "seed"),
        (
            with(
                "thinking",
                json!({"type": "enabled", "budget_tokens": 2000}),
            ),
            "thinking.type",
        ),
        (
            with("tool_choice", json!({"type": "tool", "name": "other"})),
            "tool_choice",
        ),
        (
            with(
                "tools",
                json!([{"name": "a b", "description": "x", "input_schema": {"type": "object"}}]),
            ),
            "is not a name",
        ),
        (
            with(
                "tools",
                json!([{"name": "a", "description": "x", "input_schema": {"type": "string"}}]),
            ),
            "no schema",
        ),
        (
            with("system", json!([{"type": "text", "text": ""}])),
            "must not be empty",
        ),
        (with("messages", json!([])), "no messages"),
        (
            with(
                "messages",
                json!([{"role": "user", "content": [mark, mark, mark, mark]}]),
            ),
            "at most 4",
        ),
        (
            with("messages", json!([{"role": "user", "content": ""}])),
            "must not be empty",
        ),
        (then(&[user(json!([text("again")]))]), "turn"),
        (then(&[assistant(json!([text("hi")]))]), "the last message"),
        (
            then(&[assistant(json!([used("a")])), user(json!([text("x")]))]),
            "have the results []",
        ),
        (
            then(&[
                assistant(json!([used("a")])),
                user(json!([text("x"), told("a")])),
            ]),
            "behind something else",
        ),
        (
            then(&[
                assistant(json!([used("a")])),
                user(json!([told("a"), told("a")])),
            ]),
            "have the results",
        ),
        (
            then(&[assistant(json!([text("x")])), user(json!([told("a")]))]),
            "have the results",
        ),
        (
            then(&[
                assistant(
                    json!([{"type": "thinking", "thinking": "hm", "signature": "forged"}, text("x")]),
                ),
                user(json!([text("y")])),
            ]),
            "another account or model, or changed",
        ),
    ] {
        let server = Anthropic::start([say("hi")]);
        let (status, answer) = post(&server, KEY, "2026-10-21", &body);
        assert_eq!(status, 400, "{reason}: {body}");
        assert!(
            answer.contains(reason.split(" []").next().unwrap()),
            "{answer}"
        );
        let faults = server.takes_faults();
        assert_eq!(faults.len(), 1, "{faults:?}");
    }
}

#[test]
fn valid_request_is_accepted_and_its_cache_read() {
    let server = Anthropic::start([
        thinking("hm")
            .say("Let me look.")
            .call("read_file", json!({"path": "a"})),
        say("done"),
    ]);
    assert_eq!(send(&server, &good()), 200);
    let gave = json!([
        {"type": "thinking", "thinking": "hm", "signature": "EqQB000100+/signed=="},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "toolu_0001_02", "name": "read_file", "input": {"path": "a"}},
    ]);
    let result = json!([{"type": "tool_result", "tool_use_id": "toolu_0001_02", "content": "x"}]);
    assert_eq!(send(&server, &then(&[assistant(gave), user(result)])), 200);
    let [first, second] = &server.usages()[..] else {
        panic!("two were taken");
    };
    assert_eq!(first["cache_read_input_tokens"], 0);
    assert_eq!(
        first["cache_creation_input_tokens"],
        second["cache_read_input_tokens"]
    );
    assert_eq!(server.left(), 0);
}

#[test]
fn thoughts_are_bound_to_account_model_and_place_and_the_past_stays_as_it_was() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let thought =
        json!({"type": "thinking", "thinking": "hm", "signature": "EqQB000100+/signed=="});
    let back = |blocks: Value| then(&[assistant(blocks), user(json!([text("and now?")]))]);
    let whole = back(json!([thought, text("hi"), text("ho")]));
    let mut other_model = whole.clone();
    other_model["model"] = "claude-opus-5-5".into();
    let mut other_system = whole.clone();
    other_system["system"][0]["text"] = "It is 12:03.".into();
    for (key, body, reason) in [
        ("other", &whole, "another account"),
        (KEY, &other_model, "another account or model"),
        (
            KEY,
            &back(json!([text("hi"), thought, text("ho")])),
            "go back where",
        ),
        (KEY, &back(json!([text("hi"), text("ho")])), "go back where"),
        (KEY, &other_system, "the prefix has changed"),
        (KEY, &whole, ""),
    ] {
        let server = Anthropic::start([thinking("hm").say("hi").say("ho"), say("now")]);
        server.takes(&[KEY, "other"]);
        assert_eq!(send(&server, &good()), 200);
        let (status, answer) = post(&server, key, "2026-10-21", body);
        let faults = server.takes_faults();
        let expected = if reason.is_empty() { 200 } else { 400 };
        assert_eq!(status, expected, "{faults:?} {answer}");
        assert!(answer.contains(reason), "{answer}");
    }
}

#[test]
fn streams_are_cut_held_and_broken_off_where_a_test_says() {
    let answer = |reply: Reply| {
        let server = Anthropic::start([reply]);
        post(&server, KEY, "2026-10-21", &good()).1
    };
    let whole = answer(say("hello").byte_by_byte());
    assert!(whole.contains("0\r\n\r\n"), "{whole}");
    assert!(!answer(say("hello").cut_after(40)).contains("0\r\n\r\n"));
    assert!(answer(say("hello").fails("overloaded_error")).contains("overloaded_error"));
    assert!(answer(nothing().stop("refusal")).contains("refusal"));
    let (held, gate) = call("read_file", json!({"path": "a"})).hold_at_the_end();
    let server = Anthropic::start([held]);
    let waiting = std::thread::scope(|scope| {
        let client = scope.spawn(|| post(&server, KEY, "2026-10-21", &good()).1);
        gate.reached();
        drop(gate);
        client.join().unwrap()
    });
    assert!(waiting.contains("message_stop"), "{waiting}");
}

#[test]
fn the_vendors_own_description_agrees_with_the_judge() {
    let mut bad = good();
    bad["messages"][0]["content"][0]["kind"] = "x".into();
    let Some(faults) = undescribed(&[good()]) else {
        return;
    };
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(!undescribed(&[bad]).unwrap().is_empty());
}
