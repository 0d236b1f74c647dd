//! Table tests of Ollama's wire format: requests as written, and streams as assembled. Pure.

use std::cell::RefCell;

use proptest::prelude::*;

use super::*;
use crate::model::Request;
use crate::model::manner::{Constraint, Manner};
use crate::model::message::{ReplyPart, Role, Thought};
use crate::model::{Form, Provider, StepId, Tier, ToolSchema};
use crate::sys::ndjson::Lines;

fn written(spec: &ModelSpec, request: &Request<'_>, constraint: Constraint) -> Value {
    let mut body = Vec::new();
    let manner = Manner {
        constraint,
        ..Delivery::Whole.into()
    };
    Ollama
        .write_request((spec, request, manner), &mut body)
        .unwrap();
    serde_json::from_slice(&body).unwrap()
}

fn request(messages: Vec<Message<'static>>, form: Form) -> Request<'static> {
    Request {
        step: StepId::INITIAL,
        messages,
        form,
        max_output_tokens: None,
        tier: Tier::Standard,
        cached_by_marks: false,
        once: false,
        deadline: None,
    }
}

fn hello() -> Vec<Message<'static>> {
    vec![
        Message::text(Role::System, "be brief"),
        Message::text(Role::User, "hello"),
    ]
}

#[test]
fn the_request_never_lets_the_server_cut_the_prompt_and_always_limits_the_answer() {
    let spec = ModelSpec::new("qwen2.5-coder:7b", Provider::Ollama);
    let body = written(
        &spec,
        &request(hello(), Form::default()),
        Constraint::Schema,
    );
    let expected = json!({
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}],
        "model": "qwen2.5-coder:7b",
        "stream": true,
        "truncate": false,
        "shift": false,
        "options": {"num_ctx": 8192, "num_predict": 2048},
    });
    assert_eq!(body, expected);
}

#[test]
fn options_of_entry_and_form_are_sent() {
    let schema = json!({"type": "object"});
    let spec = ModelSpec {
        num_ctx: Some(16_384),
        keep_alive: Some(json!("10m")),
        reasoning_effort: Some(ReasoningEffort::None),
        ..ModelSpec::new("m", Provider::Ollama)
    };
    let form = Form {
        tool_choice: crate::model::ToolChoice::Auto,
        schema: Some(schema.clone()),
        temperature: Some(0.2),
        tools: vec![ToolSchema {
            name: "read".to_owned(),
            description: "Reads.".to_owned(),
            schema: schema.clone(),
        }],
        ..Form::default()
    };
    let asked = Request {
        max_output_tokens: Some(500),
        ..request(hello(), form)
    };
    let body = written(&spec, &asked, Constraint::Schema);
    assert_eq!(body["format"], schema);
    assert_eq!(body["think"], false);
    assert_eq!(body["keep_alive"], "10m");
    let options = json!({"temperature": 0.2, "num_ctx": 16_384, "num_predict": 500});
    assert_eq!(body["options"], options);
    let tool = json!([{"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": schema}}]);
    assert_eq!(body["tools"], tool);
    // The entry's own temperature wins.
    let own = ModelSpec {
        temperature: Some(0.9),
        ..spec.clone()
    };
    assert_eq!(
        written(&own, &asked, Constraint::Json)["options"]["temperature"],
        0.9
    );
    assert_eq!(written(&spec, &asked, Constraint::Json)["format"], "json");
    assert_eq!(
        written(&spec, &asked, Constraint::Nothing).get("format"),
        None
    );
}

#[test]
fn effort_is_whether_to_think_or_one_of_three_words() {
    use ReasoningEffort::{High, Low, Max, Medium, Minimal, None, XHigh};
    for (effort, expected) in [
        (None, json!(false)),
        (Minimal, json!("low")),
        (Low, json!("low")),
        (Medium, json!("medium")),
        (High, json!("high")),
        (XHigh, json!("high")),
        (Max, json!("high")),
    ] {
        assert_eq!(think(effort), expected);
    }
}

#[test]
fn calls_have_objects_as_arguments_and_results_the_names_of_their_tools() {
    let call = |id: &str, name: &str, input: Value| {
        Part::Call(Call {
            id: id.to_owned(),
            name: name.to_owned(),
            input,
            ..Call::default()
        })
    };
    let result = |id: &str, text: &str| {
        Part::Result(CallResult {
            id: id.to_owned(),
            text: text.to_owned(),
            is_error: false,
        })
    };
    let said = |role, parts| Message { role, parts };
    let messages = vec![
        said(
            Role::Assistant,
            vec![
                Part::Thought(Thought::Unsigned(UnsignedThought::Thinking(
                    "hm".to_owned(),
                ))),
                Part::Text("first".into()),
                call("call-1", "read", json!({"path": "a"})),
                call("call-2", "list", json!("no object")),
            ],
        ),
        said(
            Role::Tool,
            vec![result("call-1", "A"), result("call-2", "B")],
        ),
        // Ids start over with every reply.
        said(Role::Assistant, vec![call("call-1", "write", json!({}))]),
        said(Role::Tool, vec![result("call-1", "C"), result("gone", "D")]),
    ];
    let body = written(
        &ModelSpec::new("m", Provider::Ollama),
        &request(messages, Form::default()),
        Constraint::Schema,
    );
    let expected = json!([
        {"role": "assistant", "content": "first", "thinking": "hm", "tool_calls": [
            {"function": {"name": "read", "arguments": {"path": "a"}}},
            {"function": {"name": "list", "arguments": {}}},
        ]},
        {"role": "tool", "content": "A", "tool_name": "read"},
        {"role": "tool", "content": "B", "tool_name": "list"},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "write", "arguments": {}}}]},
        {"role": "tool", "content": "C", "tool_name": "write"},
        {"role": "tool", "content": "D"},
    ]);
    assert_eq!(body["messages"], expected);
}

/// Records the listener's events.
#[derive(Default)]
struct Notes {
    text: RefCell<String>,
    thoughts: RefCell<String>,
}

impl Listener for Notes {
    fn text(&self, piece: &str) {
        self.text.borrow_mut().push_str(piece);
    }

    fn thought(&self, piece: &str) {
        self.thoughts.borrow_mut().push_str(piece);
    }
}

/// Assembles a stream that arrives in these pieces.
fn assembled(pieces: &[&[u8]], notes: &Notes) -> Result<Option<Vec<u8>>, ModelError> {
    let mut assembler = Ollama.assembler();
    let mut lines = Lines::default();
    for piece in pieces {
        lines.read(piece, |line| assembler.event(line, notes))?;
    }
    lines.end(|line| assembler.event(line, notes))?;
    Ok(assembler.finish())
}

fn read(lines: &[Value]) -> Result<Reply, ModelError> {
    let stream: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let answer = assembled(&[stream.as_bytes()], &Notes::default())?;
    Ollama.read_reply(&answer.ok_or(ModelError::Unfinished)?)
}

fn piece(content: &str) -> Value {
    json!({"model": "m", "message": {"role": "assistant", "content": content}, "done": false})
}

fn done(reason: &str) -> Value {
    json!({"model": "m:latest", "message": {"role": "assistant", "content": ""}, "done": true,
        "done_reason": reason, "prompt_eval_count": 26, "eval_count": 298})
}

#[test]
fn a_reply_is_put_together_and_its_thoughts_are_reported_and_not_kept() {
    let thought = |text: &str| json!({"message": {"role": "assistant", "content": "", "thinking": text}, "done": false});
    let lines = [
        thought("Let me "),
        thought("see."),
        piece("a\n"),
        piece("\u{e9}\"b"),
        done("stop"),
    ];
    let stream: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let notes = Notes::default();
    let answer = assembled(&[stream.as_bytes()], &notes).unwrap().unwrap();
    assert_eq!(*notes.thoughts.borrow(), "Let me see.");
    assert_eq!(*notes.text.borrow(), "a\n\u{e9}\"b");
    assert!(
        !String::from_utf8(answer.clone())
            .unwrap()
            .contains("Let me")
    );
    let reply = Ollama.read_reply(&answer).unwrap();
    assert_eq!(*reply.text, "a\n\u{e9}\"b");
    assert_eq!(reply.finish, "stop");
    assert_eq!(reply.spent.usage, Some(Usage::plain(26, 298)));
    assert_eq!(reply.spent.model_version.as_deref(), Some("m:latest"));
    // An answer that arrives in one piece is read the same way.
    let mut whole = done("stop");
    whole["message"]["content"] = "a\n\u{e9}\"b".into();
    assert_eq!(read(&[whole.clone()]).unwrap(), reply);
    assert_eq!(
        Ollama.read_reply(whole.to_string().as_bytes()).unwrap(),
        reply
    );
}

#[test]
fn calls_come_in_any_line_and_get_ids() {
    let call = |name: &str, arguments: Value| {
        json!({"message": {"role": "assistant", "content": "", "tool_calls": [
            {"function": {"name": name, "arguments": arguments}}]}, "done": false})
    };
    let thinking = json!({"message": {"role": "assistant", "content": "", "thinking": "hm"}});
    let reply = read(&[
        thinking,
        call("read", json!({"path": "a"})),
        call("list", json!({})),
        done("stop"),
    ])
    .unwrap();
    assert_eq!(reply.end, End::ToolCalls);
    let thought = Thought::Unsigned(UnsignedThought::Thinking("hm".to_owned()));
    assert_eq!(reply.parts[0], ReplyPart::Thought(thought));
    let plain = read(&[call("read", json!({})), done("stop")]).unwrap();
    assert_eq!(plain.parts, [], "without thinking");
    let calls: Vec<_> = reply
        .calls
        .iter()
        .map(|call| (&*call.id, &*call.name, call.input.clone()))
        .collect();
    let expected = [
        ("call-1", "read", json!({"path": "a"})),
        ("call-2", "list", json!({})),
    ];
    assert_eq!(calls, expected);
}

#[test]
fn incomplete_answer_is_an_error_with_its_reason() {
    let without = |field: &str| {
        let mut last = done("stop");
        last.as_object_mut().unwrap().remove(field);
        last
    };
    for (lines, expected) in [
        (vec![piece("x")], "no finish reason"),
        (vec![piece("x"), without("done")], "no finish reason"),
        (vec![piece("x"), without("done_reason")], "no finish reason"),
        (vec![piece("x"), done("length")], "ended with `length`"),
        (vec![piece("x"), done("load")], "ended with `load`"),
        (vec![done("stop")], "has no text"),
        (
            vec![piece("x"), json!({"error": "an error was encountered"})],
            "reports an error: an error was encountered",
        ),
        (vec![json!(["x"])], "JSON array"),
        (vec![json!({"message": {"content": 7}})], "is not the JSON"),
    ] {
        let error = read(&lines).unwrap_err().to_string();
        assert!(error.contains(expected), "{lines:?}: {error}");
    }
    let cut = read(&[piece("x"), done("length")]).unwrap_err();
    assert!(
        cut.is_incomplete_reply(),
        "a longer answer may be asked for"
    );
    assert!(
        Ollama
            .read_reply(piece("x").to_string().as_bytes())
            .is_err()
    );
}

#[test]
fn an_error_is_a_mere_sentence_or_what_a_runner_says() {
    let failure = Ollama.read_failure(br#"{"error": "model 'x' not found"}"#);
    assert_eq!(failure.message.as_deref(), Some("model 'x' not found"));
    let runners = json!({"error": {"code": 400, "type": "exceed_context_size_error",
        "message": "the request exceeds the available context size"}});
    for sentence in [runners.to_string(), runners["error"].to_string()] {
        let failure = Ollama.read_failure(json!({"error": sentence}).to_string().as_bytes());
        let words = "the request exceeds the available context size";
        assert_eq!(failure.message.as_deref(), Some(words));
    }
}

#[test]
fn lines_after_the_end_are_ignored() {
    let reply = read(&[
        piece("x"),
        done("stop"),
        piece("y"),
        json!({"error": "late"}),
    ]);
    assert_eq!(*reply.unwrap().text, "x");
}

proptest! {
    #[test]
    fn it_does_not_matter_where_a_stream_is_cut(words in proptest::collection::vec("[a\u{e9}\u{1f600}\"\\\\\n]{0,4}", 1..5), cuts in proptest::collection::vec(0usize..700, 0..6)) {
        let lines = words.iter().map(|word| piece(word)).chain([done("stop")]);
        let stream: String = lines.map(|line| format!("{line}\n")).collect();
        let bytes = stream.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.push(bytes.len());
        cuts.sort_unstable();
        let mut from = 0;
        let pieces: Vec<&[u8]> = cuts.iter().map(|&to| { let piece = &bytes[from..to]; from = to; piece }).collect();
        let notes = Notes::default();
        let answer = assembled(&pieces, &notes).unwrap().unwrap();
        prop_assert_eq!(notes.text.take(), words.concat());
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        prop_assert_eq!(&answer["message"]["content"], &json!(words.concat()));
    }

    #[test]
    fn any_line_is_read_without_panic(line in any::<Vec<u8>>()) {
        let _ = assembled(&[&line], &Notes::default());
        let _ = Ollama.read_reply(&line);
    }
}
