//! Ollama's own wire format, from the entry in the table to the files on disk: finding the server, the streamed lines,
//! and error messages.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::agent::{AgentProject, PASS, done};
use crate::support::anthropic::Anthropic;
use crate::support::chat::ChatProject;
use crate::support::{Answer, ModelServer, TestProject, ollama};

const WRITE: &str = "^^^a\ncaf\u{e9} \"x\"\n^^^end\n";

/// A project whose model `local` is Ollama's, with these additional fields.
fn project(more: &str) -> TestProject {
    let table = format!(
        r#"{{"models": {{"local": {{"provider": "ollama"{more}}}}}, "selectionRules": {{"default": "local"}}}}"#
    );
    TestProject::new().file("agent-config/models.json", table)
}

/// The same with this server, set by Ollama's own variable.
fn at(server: &ModelServer, more: &str) -> TestProject {
    let address = server.url().replace("http://", "");
    project(more).variable("OLLAMA_HOST", &address)
}

/// A server that has the model and gives these answers.
fn serving(answers: impl IntoIterator<Item = Answer>) -> ModelServer {
    let tags = Answer::tags(&["other:7b", "local:latest"]);
    ModelServer::start(std::iter::once(tags).chain(answers))
}

#[test]
fn a_change_comes_in_lines_and_is_applied_and_logged_as_a_whole() {
    for arguments in [&[][..], &["--stream"]] {
        let server = serving([Answer::lines(&ollama(WRITE))]);
        let project = at(&server, r#", "contextWindow": 16384, "temperature": 0.1"#);
        let run = project.run(arguments).exits(0);
        assert_eq!(project.read("a"), "caf\u{e9} \"x\"\n");
        let [tags, chat] = &server.requests()[..] else {
            panic!("two requests");
        };
        assert_eq!(tags.line, "GET /api/tags HTTP/1.1");
        assert_eq!(chat.line, "POST /api/chat HTTP/1.1");
        assert_eq!(chat.header("authorization"), None);
        let asked = chat.json();
        assert_eq!(asked["messages"][1]["role"], "user");
        for (field, expected) in [
            ("model", json!("local")),
            ("stream", json!(true)),
            ("truncate", json!(false)),
            ("shift", json!(false)),
            (
                "options",
                json!({"temperature": 0.1, "num_ctx": 16384, "num_predict": 4096}),
            ),
        ] {
            assert_eq!(asked[field], expected, "{field}");
        }
        for field in ["think", "format", "keep_alive", "tools"] {
            assert_eq!(asked.get(field), None, "{field}");
        }
        let step = &run.result()["attempts"][0];
        assert_eq!(step["finish"], "stop");
        assert_eq!(step["usage"]["input_tokens"], 100);
        assert_eq!(step["usage"]["output_tokens"], 50);
        let logged = run.logged("initial-query-response.json");
        assert!(!logged.contains("hm"), "thoughts are not kept: {logged}");
        // A replay contacts no server.
        std::fs::remove_file(project.path("a")).unwrap();
        project.run(&["--replay", &run.folder]).exits(0);
        assert_eq!(project.read("a"), "caf\u{e9} \"x\"\n");
        assert_eq!(server.requests().len(), 2);
    }
}

#[test]
fn the_server_is_looked_for_before_anything_is_sent() {
    // Nothing listens at the server's address any more.
    let gone = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    for arguments in [&[][..], &["--dry-run"], &["--consistency-check"]] {
        let run = project("")
            .variable("OLLAMA_HOST", &format!(":{gone}"))
            .run(arguments);
        run.exits(3).says(&[
            &format!("no Ollama server answers at `http://127.0.0.1:{gone}`"),
            "hint: start it with `ollama serve`",
        ]);
    }
    let agent = AgentProject::at("http://127.0.0.1:1")
        .with_variable("OLLAMA_HOST", &format!(":{gone}"))
        .with_file(
            "agent-config/models.json",
            r#"{"models": {"local": {"provider": "ollama"}}}"#,
        );
    agent
        .run(&["-p", "go", "--model", "local"])
        .exits(3)
        .says(&["no Ollama server answers at"]);
}

#[test]
fn missing_model_is_reported_with_the_installed_ones() {
    for (installed, told) in [
        (
            &["qwen2.5-coder:7b", "llama3.1:8b"][..],
            "installed are qwen2.5-coder:7b, llama3.1:8b",
        ),
        (&[], "no model is"),
        // Another tag is another model.
        (&["local:7b"], "installed are local:7b"),
    ] {
        let server = ModelServer::start([Answer::tags(installed)]);
        at(&server, "").run(&[]).exits(3).says(&[
            &format!(
                "the model `local` is not installed at `{}`: {told}",
                server.url()
            ),
            "hint: run `ollama pull local`, or use another model with `--model`",
        ]);
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn all_that_a_server_lacks_is_reported_and_it_is_asked_once() {
    let table = r#"{"models": {
        "first": {"provider": "ollama", "id": "qwen2.5-coder:7b"},
        "second": {"provider": "ollama", "id": "mistral"}},
        "selectionRules": {"byTaskType": {"commit": "first", "repair": "second"}}}"#;
    let server = ModelServer::start([Answer::tags(&["llama3.1:8b"])]);
    let address = server.url();
    TestProject::new()
        .file("agent-config/models.json", table)
        .variable("OLLAMA_HOST", &address)
        .run(&[])
        .exits(3)
        .says(&["`ollama pull qwen2.5-coder:7b`", "`ollama pull mistral`"]);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn any_server_behaviour_ends_long_before_the_time_limit() {
    let (silence, _hears) = Answer::silence();
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n";
    let not_there = "no Ollama server answers at";
    let no_ollama = "does not list its models as an Ollama server does";
    for (answer, told) in [
        (silence, not_there),
        (
            Answer::Trickle([&head[..], &[b' '; 60]].concat()),
            not_there,
        ),
        (Answer::close(), not_there),
        (
            Answer::Flood(head.to_vec(), vec![b'['; 1 << 20], 64),
            no_ollama,
        ),
        (Answer::json(&json!({"object": "list"})), no_ollama),
        (Answer::new(200, &[], "<html>"), no_ollama),
        (
            Answer::error(404, &json!({"error": "no such page"})),
            "it answers `404`: no such page",
        ),
        (
            Answer::new(302, &[("location", "http://x.test")], ""),
            no_ollama,
        ),
    ] {
        let server = ModelServer::start([answer]);
        let began = Instant::now();
        at(&server, "").run(&[]).exits(3).says(&[told]);
        // A call may take minutes; the limit leaves room for a busy machine.
        assert!(began.elapsed() < Duration::from_mins(1), "{told}");
    }
}

#[test]
fn the_entrys_own_server_wins_and_a_bad_variable_is_named() {
    let server = serving([Answer::lines(&ollama(WRITE))]);
    let own = format!(r#", "baseUrl": "{}""#, server.url());
    project(&own)
        .variable("OLLAMA_HOST", "nowhere.internal")
        .run(&[])
        .exits(0);
    for (value, told) in [
        (":99999", "`OLLAMA_HOST` is `:99999`"),
        ("ftp://x", "`OLLAMA_HOST` is `ftp://x`"),
        ("example.com", "plain http is taken for loopback hosts only"),
    ] {
        project("")
            .variable("OLLAMA_HOST", value)
            .run(&[])
            .exits(3)
            .says(&[told, "OLLAMA_HOST"]);
    }
}

#[test]
fn a_key_does_not_travel_unencrypted() {
    project(r#", "keyFile": "ollama-key.txt""#)
        .file("agent-config/ollama-key.txt", "key-0123456789\n")
        .variable("OLLAMA_HOST", "10.0.0.1")
        .run(&[])
        .exits(3)
        .says(&["plain http is taken for loopback hosts only"]);
}

#[test]
fn a_key_goes_along_where_the_entry_has_one() {
    let server = serving([Answer::lines(&ollama(WRITE))]);
    at(&server, r#", "keyFile": "ollama-key.txt""#)
        .file("agent-config/ollama-key.txt", "key-0123456789\n")
        .run(&[])
        .exits(0);
    for request in server.requests() {
        assert_eq!(
            request.header("authorization"),
            Some("Bearer key-0123456789")
        );
    }
}

#[test]
fn errors_are_reported_in_the_servers_words() {
    let mut broken = ollama(WRITE);
    broken.truncate(3);
    broken.push(json!({"error": "llama runner process has terminated"}));
    for (answer, told) in [
        (
            Answer::error(400, &json!({"error": "\"local\" does not support chat"})),
            "\"local\" does not support chat",
        ),
        (
            Answer::lines(&broken),
            "llama runner process has terminated",
        ),
        // The last line need not end with a newline.
        (
            Answer::new(
                200,
                &[("content-type", "application/x-ndjson")],
                r#"{"error": "out of memory"}"#,
            ),
            "out of memory",
        ),
    ] {
        let server = serving([answer]);
        at(&server, "").run(&[]).exits(4).says(&[told]);
        assert_eq!(server.requests().len(), 2);
    }
}

#[test]
fn a_full_queue_and_a_torn_stream_are_tried_again() {
    let mut torn = String::new();
    for line in &ollama(WRITE)[..4] {
        torn += &format!("{line}\n");
    }
    for cut in [torn.len(), torn.len() - 9] {
        let server = serving([
            Answer::error(
                503,
                &json!({"error": "server busy, please try again.  maximum pending requests exceeded"}),
            ),
            Answer::new(
                200,
                &[("content-type", "application/x-ndjson")],
                &torn[..cut],
            ),
            Answer::lines(&ollama(WRITE)),
        ]);
        let project = at(&server, "");
        project.run(&[]).exits(0);
        assert_eq!(project.read("a"), "caf\u{e9} \"x\"\n");
        assert_eq!(server.requests().len(), 4);
    }
}

#[test]
fn nothing_is_applied_of_what_is_not_whole() {
    let ended = |reason: Option<&str>| {
        let mut lines = ollama(WRITE);
        lines.last_mut().unwrap()["done_reason"] = json!(reason);
        Answer::lines(&lines)
    };
    for (reason, told) in [
        (Some("length"), "ended with `length`"),
        (Some("load"), "ended with `load`"),
        (None, "no finish reason"),
    ] {
        let server = serving([ended(reason)]);
        let project = at(&server, "");
        project.run(&[]).exits(4).says(&[told]);
        assert!(!project.path("a").exists());
    }
}

#[test]
fn lines_are_read_whatever_they_are_called_and_however_they_are_cut() {
    let lines: String = ollama(WRITE)
        .iter()
        .map(|line| format!("{line}\r\n"))
        .collect();
    let whole = json!({"model": "local", "message": {"role": "assistant", "content": WRITE, "thinking": "hm"},
        "done": true, "done_reason": "stop", "prompt_eval_count": 100, "eval_count": 50});
    let mut chunked = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for chunk in lines.as_bytes().chunks(7) {
        chunked.extend(format!("{:x}\r\n", chunk.len()).bytes());
        chunked.extend([chunk, b"\r\n"].concat());
    }
    chunked.extend(b"0\r\n\r\n");
    for answer in [
        Answer::new(200, &[("content-type", "application/json")], &lines),
        Answer::new(200, &[], lines.trim_end()),
        Answer::json(&whole),
        Answer::Raw(chunked),
    ] {
        let server = serving([answer]);
        let project = at(&server, "");
        let run = project.run(&[]).exits(0);
        assert_eq!(project.read("a"), "caf\u{e9} \"x\"\n");
        assert!(!run.logged("initial-query-response.json").contains("hm"));
    }
}

#[test]
fn a_reply_is_over_with_its_last_line_though_the_connection_stays() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\n\r\n";
    let lines: String = ollama(WRITE)
        .iter()
        .map(|line| format!("{line}\n"))
        .collect();
    let (told, _hears) = std::sync::mpsc::channel();
    let server = serving([Answer::Hang(format!("{head}{lines}").into_bytes(), told)]);
    at(&server, "").run(&["--timeout", "20m"]).exits(0);
}

#[test]
fn a_prompt_that_is_too_long_is_not_sent() {
    let server = serving([]);
    let project = at(&server, r#", "contextWindow": 4096"#).file(
        "agent-config/codeRollup.txt",
        format!("--- src/main.rs ---\n{}", "let value = 1;\n".repeat(700)),
    );
    project.run(&["--allow-stale"]).exits(3).says(&[
        "the prompt does not fit the context window of `local`",
        "of 3,072",
        "`numCtx`",
    ]);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_server_that_does_not_know_schemas_is_asked_for_json_and_then_for_nothing() {
    let old =
        "json: cannot unmarshal object into Go struct field ChatRequest.format of type string";
    let refused = |status, words: &str| Answer::error(status, &json!({"error": words}));
    let (json, nothing) = (json!("json"), Value::Null);
    for (refusals, then) in [
        (
            vec![refused(500, "invalid JSON schema in format")],
            [&json, &json],
        ),
        (
            vec![refused(400, old), refused(400, "invalid format: \"json\"")],
            [&nothing, &nothing],
        ),
        // Older servers report this in a line.
        (
            vec![Answer::lines(&[
                json!({"error": "failed to parse grammar"}),
            ])],
            [&json, &json],
        ),
        // Others report nothing at all.
        (vec![Answer::new(400, &[], "")], [&json, &json]),
        (vec![], [&json!("object"), &json!("object")]),
    ] {
        let tried = refusals.len();
        let answer = |words: &str| json!({"answer": words}).to_string();
        let replies = ["Done.", PASS].map(|words| Answer::lines(&ollama(&answer(words))));
        let server = serving(refusals.into_iter().chain(replies));
        let agent = agent(&server, "json");
        agent.run(&["-p", "go", "--model", "local"]).exits(0);
        let requests = server.requests();
        let formats: Vec<Value> = requests[1..]
            .iter()
            .map(|chat| chat.json()["format"].clone())
            .map(|format| format.get("type").unwrap_or(&format).clone())
            .collect();
        let before = [json!("object"), json.clone()];
        assert_eq!(formats[..tried], before[..tried]);
        // Determined once, for the whole run.
        assert_eq!([&formats[tried], &formats[tried + 1]], then);
        assert_eq!(formats.len(), tried + 2);
    }
}

/// An agent whose model `local` is at this server, with this form of tool calls.
fn agent(server: &ModelServer, tools: &str) -> AgentProject {
    let table = json!({"models": {"local": {"provider": "ollama", "tools": tools, "contextWindow": 32768}}});
    AgentProject::at("http://127.0.0.1:1")
        .with_variable("OLLAMA_HOST", &server.url())
        .with_file("agent-config/models.json", &table.to_string())
}

#[test]
fn an_agent_asks_a_model_without_an_entry() {
    let server = ModelServer::with_models(
        &["new:latest"],
        [
            Answer::json(&json!({"model_info": {"x.context_length": 32_768}})),
            Answer::lines(&ollama(&done())),
            Answer::lines(&ollama(PASS)),
        ],
    );
    let agent = agent(&server, "markdown");
    agent.run(&["-p", "go", "--model", "new"]).exits(0);
    let asked = server.requests().pop().unwrap().json();
    assert_eq!(
        (&asked["model"], &asked["options"]["num_ctx"]),
        (&json!("new"), &json!(32_768))
    );
    agent
        .run(&["-p", "go", "--model", "claude-3-opus"])
        .exits(2)
        .says(&["is retired: `claude-opus-5-5` is its successor"]);
}

#[test]
fn a_chat_asks_a_model_without_an_entry() {
    let shown = json!({"model_info": {"x.context_length": 32_768}});
    let answers = [Answer::json(&shown), Answer::lines(&ollama("Hello."))];
    let server = ModelServer::with_models(&["new:latest"], answers);
    let chat = ChatProject::new(&Anthropic::start([])).with_variable("OLLAMA_HOST", &server.url());
    let run = chat.run(&["-p", "hi", "--model", "new"]).exits(0);
    assert_eq!(run.stdout, "Hello.\n");
    assert_eq!(server.requests().pop().unwrap().json()["model"], "new");
}

#[test]
fn a_name_with_a_tag_is_looked_for_at_the_server_alone() {
    let asked = ["-p", "hi", "--model", "qwen3:8b"];
    let tags = || Answer::tags(&["new:latest"]);
    let server = ModelServer::start([tags(), tags()]);
    let not_installed = ["`qwen3:8b` is not installed", "`ollama pull qwen3:8b`"];
    let not_there = ["no Ollama server answers at", "`ollama serve`"];
    for (host, told) in [
        (&*server.url(), not_installed),
        ("http://127.0.0.1:1", not_there),
    ] {
        let agent = AgentProject::at("http://127.0.0.1:1").with_variable("OLLAMA_HOST", host);
        agent.run(&asked).exits(3).says(&told);
        let chat = ChatProject::new(&Anthropic::start([])).with_variable("OLLAMA_HOST", host);
        chat.run(&asked).exits(3).says(&told);
    }
}

#[test]
fn calls_of_the_vendors_own_are_read_and_their_results_go_back_by_name() {
    let call = |name: &str, arguments: Value| {
        let function = json!({"name": name, "arguments": arguments});
        let mut lines = vec![json!({"model": "local", "done": false,
            "message": {"role": "assistant", "content": "", "tool_calls": [{"function": function}]}})];
        lines.extend(ollama("").pop());
        Answer::lines(&lines)
    };
    let server = serving([
        call("WRITE_FILE", json!({"path": "a.txt", "content": "x\n"})),
        call("DONE", json!({"summary": "Written."})),
        Answer::lines(&ollama(PASS)),
    ]);
    let agent = agent(&server, "native");
    agent.run(&["-p", "Write it", "--model", "local"]).exits(0);
    assert_eq!(agent.project.read("a.txt"), "x\n");
    let requests = server.requests();
    let tools = requests[1].json()["tools"].clone();
    assert_eq!(tools[0]["type"], "function");
    let messages = requests[2].json()["messages"].clone();
    let messages = messages.as_array().unwrap();
    let [.., said, result] = &messages[..] else {
        panic!("two messages at least");
    };
    assert_eq!(
        said["tool_calls"][0]["function"]["arguments"]["path"],
        "a.txt"
    );
    assert_eq!(result["role"], "tool");
    assert_eq!(result["tool_name"], "WRITE_FILE");
}
