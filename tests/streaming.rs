//! Answers that arrive piece by piece.

use serde_json::{Value, json};

use crate::support::{Answer, ModelServer, TestProject, gemini, openai};

fn sse(events: &[Value], end: &str) -> Answer {
    let events: String = events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    Answer::new(200, &[("content-type", "text/event-stream")], events + end)
}

fn openai_events() -> Vec<Value> {
    let delta = |delta: Value, finish: Value| {
        json!({"id": "c1", "object": "chat.completion.chunk", "model": "gpt-5-test",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    };
    vec![
        delta(json!({"role": "assistant", "content": null}), Value::Null),
        delta(json!({"reasoning_content": "hm"}), Value::Null),
        delta(json!({"content": "^^^a\ncaf"}), Value::Null),
        delta(json!({"content": "\u{e9}\n^^^end\n"}), Value::Null),
        delta(json!({}), "stop".into()),
        json!({"id": "c1", "choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 50}}),
    ]
}

fn gemini_events() -> Vec<Value> {
    let part = |part: Value| json!({"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}], "modelVersion": "g-test"});
    let mut last = part(json!({"text": "\n^^^end\n"}));
    last["candidates"][0]["finishReason"] = "STOP".into();
    last["usageMetadata"] = json!({"promptTokenCount": 100, "candidatesTokenCount": 20});
    vec![
        part(json!({"text": "hm", "thought": true})),
        part(json!({"text": "^^^a\ncaf\u{e9}"})),
        last,
    ]
}

#[test]
fn a_streamed_answer_is_put_together_applied_and_logged_as_a_whole() {
    for (model, events, end, path) in [
        (
            "gpt-5",
            openai_events(),
            "data: [DONE]\n\n",
            "POST /v1/chat/completions HTTP/1.1",
        ),
        (
            "gemini-2.5-pro",
            gemini_events(),
            "",
            "POST /v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse HTTP/1.1",
        ),
    ] {
        let server = ModelServer::start([sse(&events, end)]);
        let project = TestProject::new().with(&server);
        let run = project.run(&["--stream", "--model", model]).exits(0);
        assert_eq!(project.read("a"), "caf\u{e9}\n");
        let asked = &server.requests()[0];
        assert_eq!(asked.line, path);
        if model == "gpt-5" {
            assert_eq!(asked.json()["stream"], true);
            assert_eq!(asked.json()["stream_options"]["include_usage"], true);
        }
        assert_eq!(run.result()["attempts"][0]["usage"]["input_tokens"], 100);
        let logged = run.logged("initial-query-response.json");
        assert!(!logged.contains("hm"), "thoughts are not kept: {logged}");
        // The log is replayed as if the answer had arrived whole.
        std::fs::remove_file(project.path("a")).unwrap();
        project.run(&["--replay", &run.folder]).exits(0);
        assert_eq!(project.read("a"), "caf\u{e9}\n");
    }
}

#[test]
fn an_answer_may_begin_with_a_byte_order_mark() {
    const MARK: &str = "\u{feff}";
    let reply = format!("{MARK}^^^a\ncaf\u{e9}\n^^^end\n");
    for (model, answer, streamed) in [
        ("gemini-2.5-pro", gemini(&reply), gemini_events()),
        ("gpt-5", openai(&reply), openai_events()),
    ] {
        let events: Vec<String> = streamed.iter().map(Value::to_string).collect();
        let events = events.join("\n\ndata: ");
        let stream = |events: &str| {
            let kind = ("content-type", "text/event-stream");
            Answer::new(200, &[kind], format!("{events}\n\ndata: [DONE]\n\n"))
        };
        let text = |word: &str| events.replacen(word, &format!("{MARK}{word}"), 1);
        for (answer, arguments) in [
            (Answer::new(200, &[], format!("{MARK}{answer}")), &[][..]),
            (stream(&format!("{MARK}data: {events}")), &["--stream"]),
            (stream(&format!("data: {MARK}{events}")), &["--stream"]),
            (stream(&format!("data: {}", text("^^^a"))), &["--stream"]),
        ] {
            let server = ModelServer::start([answer]);
            let project = TestProject::new()
                .with(&server)
                .file("agent-config/query.txt", format!("{MARK}Do something.\n"))
                .file("agent-config/models.json", format!("{MARK}{{}}"));
            let arguments = [&["--model", model], arguments].concat();
            let run = project.run(&arguments).exits(0);
            assert_eq!(project.read("a"), "caf\u{e9}\n", "{model}");
            assert!(!run.logged("initial-query.txt").contains(MARK));
            let again = project.run(&["--replay", &run.folder]).exits(0);
            assert!(!again.logged("initial-query-response.txt").contains(MARK));
        }
    }
}

#[test]
fn a_stream_that_is_cut_before_its_end_is_never_applied() {
    for (model, events, end_at) in [
        ("gpt-5", openai_events(), 4),
        ("gemini-2.5-pro", gemini_events(), 2),
    ] {
        for kept in 0..=end_at {
            // A server that ends its answer early, but properly, on every retry.
            let answers = (0..10).map(|_| sse(&events[..kept], ""));
            let server = ModelServer::start(answers);
            let project = TestProject::new().with(&server);
            let before = project.tree();
            let arguments = ["--stream", "--model", model, "--timeout", "2s"];
            project
                .run(&arguments)
                .exits(4)
                .says(&["the stream ended before the reply was whole"]);
            assert_eq!(project.tree(), before, "{model} {kept}");
        }
    }
}

#[test]
fn a_finish_reason_alone_or_the_last_event_alone_ends_a_stream() {
    let events = openai_events();
    for (events, end) in [(&events[..], ""), (&events[..4], "data: [DONE]\n\n")] {
        let server = ModelServer::start([sse(events, end)]);
        let project = TestProject::new().with(&server);
        project.run(&["--stream", "--model", "gpt-5"]).exits(0);
        assert_eq!(project.read("a"), "caf\u{e9}\n");
    }
}

#[test]
fn a_cut_stream_is_asked_for_again() {
    let events = openai_events();
    let server = ModelServer::start([sse(&events[..3], ""), sse(&events, "data: [DONE]\n\n")]);
    let project = TestProject::new().with(&server);
    project
        .run(&["--stream", "--model", "gpt-5"])
        .exits(0)
        .says(&["try 2 in"]);
    assert_eq!(project.read("a"), "caf\u{e9}\n");
}

#[test]
fn a_stream_that_ends_badly_says_how() {
    let mut too_long = openai_events();
    too_long[4]["choices"][0]["finish_reason"] = "length".into();
    let mut refused = openai_events();
    refused[3]["choices"][0]["delta"] = json!({"refusal": "no"});
    for (events, expected) in [
        (too_long, "it ended with `length`"),
        (refused, "refused to answer: no"),
        (
            vec![json!({"error": {"message": "overloaded", "code": 503}})],
            "reports an error `503`: overloaded",
        ),
        (vec![json!("text")], "not the JSON that was expected"),
    ] {
        let server = ModelServer::start([sse(&events, "data: [DONE]\n\n")]);
        let project = TestProject::new().with(&server);
        let before = project.tree();
        project
            .run(&["--stream", "--model", "gpt-5"])
            .exits(4)
            .says(&[expected]);
        assert_eq!(project.tree(), before);
    }
}

#[test]
fn a_server_that_does_not_stream_is_understood_all_the_same() {
    let server = ModelServer::openai(&["^^^a\nb\n^^^end\n"]);
    let project = TestProject::new().with(&server);
    project.run(&["--stream", "--model", "gpt-5"]).exits(0);
    assert_eq!(project.read("a"), "b\n");
}

#[test]
fn event_stream_reports_the_progress_of_a_reply() {
    let mut events = openai_events();
    for _ in 0..20 {
        let more = json!({"id": "c1", "choices": [{"index": 0, "delta": {"content": "word ".repeat(100) + "\n"}, "finish_reason": null}]});
        events.insert(2, more);
    }
    let server = ModelServer::start([sse(&events, "data: [DONE]\n\n")]);
    let project = TestProject::new().with(&server);
    let run = project
        .run(&["--stream", "--model", "gpt-5", "--output-format", "jsonl"])
        .exits(0);
    let lines: Vec<Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let received: Vec<u64> = lines
        .iter()
        .filter(|line| line["event"] == "receiving")
        .map(|line| line["output_tokens"].as_u64().unwrap())
        .collect();
    assert!(received.len() >= 3 && received.is_sorted(), "{received:?}");
}

#[test]
fn unknown_stream_fields_are_ignored() {
    let mut events = openai_events();
    // Both names for thoughts, a numeric ID, and a null index.
    events[1]["choices"][0]["delta"]["reasoning"] = json!({"text": "hm"});
    events[1]["id"] = json!(7);
    events[2]["choices"][0]["index"] = Value::Null;
    let text: String = events
        .iter()
        .map(|event| format!(": keep alive\r\ndata:{event}\r\n\r\ndata: \r\n\r\n"))
        .collect();
    let body = format!("\u{feff}{text}data: [DONE]\n\ndata: {{\"choices\": \"x\"}}\n\n");
    let server = ModelServer::start([Answer::new(
        200,
        &[("content-type", "text/event-stream")],
        body,
    )]);
    let project = TestProject::new().with(&server);
    project.run(&["--stream", "--model", "gpt-5"]).exits(0);
    assert_eq!(project.read("a"), "caf\u{e9}\n");
}

#[test]
fn a_stream_is_over_with_its_last_event_though_the_connection_stays() {
    let events: String = openai_events()
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    let (told, _hears) = std::sync::mpsc::channel();
    let answer = Answer::Hang(format!("{head}{events}data: [DONE]\n\n").into_bytes(), told);
    let server = ModelServer::start([answer]);
    let project = TestProject::new().with(&server);
    project
        .run(&["--stream", "--model", "gpt-5", "--timeout", "20s"])
        .exits(0);
    assert_eq!(project.read("a"), "caf\u{e9}\n");
}

#[test]
fn a_reply_is_whole_with_its_finish_reason_though_neither_the_end_nor_a_close_follows() {
    let events: String = openai_events()
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    for end in ["", ": keep alive\n\n"] {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        let (told, _hears) = std::sync::mpsc::channel();
        let answer = Answer::Hang(format!("{head}{events}{end}").into_bytes(), told);
        let server = ModelServer::start([answer]);
        let project = TestProject::new().with(&server);
        let run = project
            .run(&["--stream", "--model", "gpt-5", "--timeout", "20m"])
            .exits(0);
        assert_eq!(project.read("a"), "caf\u{e9}\n");
        assert_eq!(server.requests().len(), 1);
        assert_eq!(run.result()["attempts"][0]["usage"]["input_tokens"], 100);
    }
}

#[test]
fn an_error_in_the_place_of_a_stream_is_reported() {
    let body = json!({"error": {"message": "overloaded", "type": "server_error"}}).to_string();
    let server = ModelServer::start([Answer::new(
        200,
        &[("content-type", "text/event-stream")],
        body,
    )]);
    let project = TestProject::new().with(&server);
    project
        .run(&["--stream", "--model", "gpt-5"])
        .exits(4)
        .says(&["reports an error `server_error`: overloaded"]);
}

#[test]
fn under_a_limit_of_cost_a_call_that_broke_off_is_not_made_again() {
    let server = ModelServer::start((0..5).map(|_| sse(&openai_events()[..3], "")));
    let project = TestProject::new().with(&server);
    project
        .run(&["--stream", "--model", "gpt-5", "--max-cost", "5"])
        .exits(4)
        .says(&["the stream ended before the reply was whole"]);
    assert_eq!(server.requests().len(), 1);
}
