//! Any model for any agent: each agent with a model from a vendor other than its usual one.

use serde_json::{Value, json};

use crate::support::agent::{AgentProject, PASS};
use crate::support::anthropic::Anthropic;
use crate::support::chat::ChatProject;
use crate::support::orchestra::{Branch, OrchestraProject, published, report};
use crate::support::plan::{PlanProject, calls, response, serving, summary, tasks};
use crate::support::screen::Screen;
use crate::support::{Answer, GEMINI_KEY, ModelServer, OPENAI_KEY, gemini, openai};

const CLAUDES_KEY: &str = "sk-ant-0123456789abcdef";

/// A Gemini answer with text, a tool call and a thought signature.
fn gemini_call(name: &str, input: &Value, signature: &str) -> Answer {
    let mut reply = gemini("");
    reply["candidates"][0]["content"]["parts"] = json!([
        {"text": "Hm.", "thought": true},
        {"text": "I look."},
        {"functionCall": {"name": name, "args": input}, "thoughtSignature": signature},
    ]);
    Answer::json(&reply)
}

/// The same, streamed.
fn gemini_stream(pieces: &[Value]) -> Answer {
    let last = pieces.len() - 1;
    let chunks = pieces.iter().enumerate().map(|(at, part)| {
        let mut chunk =
            json!({"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]});
        if at == last {
            chunk["candidates"][0]["finishReason"] = "STOP".into();
            chunk["usageMetadata"] = json!({"promptTokenCount": 10, "candidatesTokenCount": 5});
        }
        format!("data: {chunk}\r\n\r\n")
    });
    let body: String = chunks.collect();
    Answer::new(200, &[("content-type", "text/event-stream")], body)
}

/// A Claude answer with these blocks.
fn claude(content: &Value) -> Answer {
    let calls = content.to_string().contains("tool_use");
    Answer::json(&json!({
        "type": "message", "role": "assistant", "model": "claude-sonnet-5-5", "content": content,
        "stop_reason": if calls { "tool_use" } else { "end_turn" },
        "usage": {"input_tokens": 100, "output_tokens": 50},
    }))
}

fn claude_says(text: &str) -> Answer {
    claude(&json!([{"type": "text", "text": text}]))
}

/// A chat whose models are at `server` and nowhere else.
fn chat(variable: &str, server: &ModelServer) -> ChatProject {
    let nobody = Anthropic::start([]);
    ChatProject::new(&nobody)
        .without_key()
        .with_variable(variable, &server.url())
        .with_file("notes.txt", "alpha\n")
}

#[test]
fn chat_calls_tools_at_gemini_and_sends_signatures_back_in_place() {
    let server = ModelServer::start([
        gemini_stream(&[
            json!({"text": "Hm.", "thought": true}),
            json!({"text": "I "}),
            json!({"text": "look."}),
            json!({"functionCall": {"name": "read_file", "args": {"path": "notes.txt"}}, "thoughtSignature": "c2ln"}),
            json!({"functionCall": {"name": "read_file", "args": {"path": "none.txt"}}}),
        ]),
        gemini_stream(&[json!({"text": "It says alpha."})]),
        Answer::json(&gemini("Still alpha.")),
    ]);
    let chat = chat("GOOGLE_GEMINI_BASE_URL", &server);
    let ask = ["--model", "gemini-2.5-pro", "-p", "What do the notes say?"];
    let run = chat.run(&ask).exits(0);
    assert_eq!(run.stdout, "It says alpha.\n");
    assert_eq!(run.result()["model"], "gemini-2.5-pro");
    let requests = server.requests();
    assert_eq!(requests[0].header("x-goog-api-key"), Some(GEMINI_KEY));
    assert!(requests[0].line.contains(":streamGenerateContent?alt=sse"));
    let first = requests[0].json();
    let declared = &first["tools"][0]["functionDeclarations"];
    let names = declared
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["name"]);
    assert!(names.clone().any(|name| name == "read_file"), "{declared}");
    assert!(declared[0]["parametersJsonSchema"]["type"] == "object");
    let second = requests[1].json();
    let [.., asked, results] = second["contents"].as_array().unwrap().as_slice() else {
        panic!("{second:#}");
    };
    assert_eq!(
        *asked,
        json!({"role": "model", "parts": [
            {"text": "I look."},
            {"functionCall": {"name": "read_file", "args": {"path": "notes.txt"}}, "thoughtSignature": "c2ln"},
            {"functionCall": {"name": "read_file", "args": {"path": "none.txt"}}},
        ]})
    );
    assert_eq!(results["role"], "user");
    let [found, missing] = results["parts"].as_array().unwrap().as_slice() else {
        panic!("{results:#}");
    };
    let told = &found["functionResponse"];
    assert_eq!(told["name"], "read_file");
    assert!(
        told["response"]["output"].to_string().contains("alpha"),
        "{told}"
    );
    assert!(
        missing["functionResponse"]["response"]["error"].is_string(),
        "{missing}"
    );
    // The next request begins with all of it.
    let run = chat
        .run(&["--resume", "--model", "gemini-2.5-pro", "-p", "And now?"])
        .exits(0);
    assert_eq!(run.stdout, "Still alpha.\n");
    assert!(
        server.requests()[2].json()["contents"]
            .to_string()
            .contains("c2ln")
    );
    // Signatures from Gemini are not sent to another model.
    let server = ModelServer::start([Answer::json(&openai("Hello."))]);
    let chat = chat.with_variable("OPENAI_BASE_URL", &format!("{}/v1", server.url()));
    chat.run(&["--resume", "--model", "gpt-5", "-p", "And you?"])
        .exits(0);
    let request = &server.requests()[0];
    assert_eq!(
        request.header("authorization"),
        Some(&*format!("Bearer {OPENAI_KEY}"))
    );
    let sent = request.json().to_string();
    assert!(sent.contains("I look.") && !sent.contains("c2ln"), "{sent}");
}

#[test]
fn chat_talks_with_a_compatible_server_of_the_homes_table() {
    let call = |arguments: &str| {
        let mut reply = openai("");
        let function = json!({"name": "read_file", "arguments": arguments});
        reply["choices"][0]["message"]["tool_calls"] =
            json!([{"id": "c1", "type": "function", "function": function}]);
        reply["choices"][0]["finish_reason"] = "tool_calls".into();
        Answer::json(&reply)
    };
    let server = ModelServer::start([
        call(r#"{"path": "notes.txt"}"#),
        Answer::json(&openai("It says alpha.")),
        Answer::json(&openai("A dot.")),
    ]);
    let url = format!("{}/v1", server.url());
    let table = json!({"models": {"local": {"provider": "openai", "id": "qwen3", "baseUrl": url, "contextWindow": 32768}},
        "selectionRules": {"default": "local"}});
    let chat = chat("OPENAI_BASE_URL", &server)
        .with_setting("models.json", &table.to_string())
        .with_file("dot.png", b"\x89PNG\r\n\x1a\nrest");
    let run = chat.ask("What do the notes say?").exits(0);
    assert_eq!(run.stdout, "It says alpha.\n");
    let requests = server.requests();
    assert_eq!(requests[0].header("authorization"), None);
    let second = requests[1].json();
    assert_eq!(
        (&second["model"], &second["stream"]),
        (&json!("qwen3"), &json!(true))
    );
    let [.., asked, told] = second["messages"].as_array().unwrap().as_slice() else {
        panic!("{second:#}");
    };
    assert_eq!(asked["tool_calls"][0]["id"], "c1");
    assert_eq!(
        (&told["role"], &told["tool_call_id"]),
        (&json!("tool"), &json!("c1"))
    );
    chat.ask("look at @dot.png").exits(0);
    let sent = server.requests()[2].json();
    let image = r#""image_url":{"url":"data:image/png;base64,"#;
    assert!(sent.to_string().contains(image), "{sent:#}");
}

#[test]
fn the_screen_shows_an_answer_once_whether_or_not_it_was_streamed() {
    let pieces = [json!({"text": "Said "}), json!({"text": "once."})];
    for (variable, model, answer) in [
        (
            "OPENAI_BASE_URL",
            "gpt-5",
            Answer::json(&openai("Said once.")),
        ),
        (
            "GOOGLE_GEMINI_BASE_URL",
            "gemini-2.5-pro",
            gemini_stream(&pieces),
        ),
    ] {
        let chat = chat(variable, &ModelServer::start([answer]));
        let Some(mut screen) = Screen::open(&chat.command(&["--model", model]), 120, 30) else {
            return;
        };
        screen.shows("Mode").types("hi\r").shows("Said once.");
        screen.types("/mode\r").shows("there are regular");
        let shown = screen.contents();
        assert_eq!(shown.matches("Said once.").count(), 1, "{shown}");
    }
}

#[test]
fn an_accounts_key_is_its_vendors_alone() {
    let auth = |active: &str| {
        let account = |name: &str, provider: &str, key: &str| json!({"name": name, "provider": provider, "api_key": key});
        json!({"version": 1, "active": active, "accounts": [
            account("work", "anthropic", CLAUDES_KEY),
            account("g1", "gemini", "AIza-gemini-1"),
            account("g2", "gemini", "AIza-gemini-2"),
            account("o", "openai", "sk-proj-own"),
        ]})
        .to_string()
    };
    let server = ModelServer::gemini(&["Hi.", "Hi."]);
    let without_keys = |active: &str| {
        let mut chat =
            chat("GOOGLE_GEMINI_BASE_URL", &server).with_setting("auth.json", &auth(active));
        chat.project = chat
            .project
            .without("agent-config/gemini-key.txt")
            .without("agent-config/openai-key.txt");
        chat
    };
    let ask = ["--model", "gemini-2.5-pro", "-p", "hi"];
    without_keys("g2").run(&ask).exits(0);
    let sent = server.requests();
    assert_eq!(sent[0].header("x-goog-api-key"), Some("AIza-gemini-2"));
    // None of several accounts is used unless it is active.
    let run = without_keys("work").run(&ask).exits(3);
    run.says(&["several accounts for Google", "g1, g2", "`/login NAME`"]);
    // An entry in the project that names a server must not receive the account's key.
    let own = ModelServer::openai(&["Hi."]);
    let url = format!("{}/v1", own.url());
    let entry = json!({"models": {"own": {"provider": "openai", "keyFile": "own-key.txt", "baseUrl": url}}});
    let ask = ["--model", "own", "-p", "hi"];
    let chat = without_keys("o").with_file("agent-config/models.json", entry.to_string());
    chat.run(&ask).exits(3).says(&["own-key.txt"]);
    assert!(own.requests().is_empty());
    let chat = without_keys("work").with_setting("models.json", &entry.to_string());
    chat.run(&ask).exits(0);
    let sent = own.requests();
    assert_eq!(sent[0].header("authorization"), Some("Bearer sk-proj-own"));
    // Other agents use the same accounts, but not for a vendor without one.
    let run = without_keys("o").run(&["--model", "gemini-3.8-flash", "-p", "hi"]);
    run.exits(2).says(&["there is no model `gemini-3.8-flash`"]);
}

#[test]
fn a_plan_is_made_and_worked_off_by_claude() {
    let script = [
        tasks(&[("Look", "list_files")]),
        calls(&[("list_files", json!({}))]),
        response("I have looked."),
        summary("Done"),
    ];
    let server = ModelServer::start(script.iter().map(|text| claude_says(text)));
    let plan = PlanProject::new(&serving([]))
        .with_variable("ANTHROPIC_BASE_URL", &server.url())
        .with_variable("ANTHROPIC_API_KEY", CLAUDES_KEY);
    let run = plan.run(&["-p", "Look around", "--model", "claude-sonnet-5-5"]);
    let run = run.exits(0);
    assert_eq!(run.result()["model"], "claude-sonnet-5-5");
    assert!(plan.document().contains("[x]"), "{}", plan.document());
    let requests = server.requests();
    assert_eq!(requests.len(), 4);
    for request in &requests {
        assert_eq!(request.header("x-api-key"), Some(CLAUDES_KEY));
        let body = request.json();
        assert_eq!(body["model"], "claude-sonnet-5-5");
        assert!(body["temperature"].is_null(), "{body}");
        let format = &body["output_config"]["format"];
        assert_eq!(format["type"], "json_schema", "{body}");
    }
}

#[test]
fn an_orchestration_is_led_by_gemini() {
    let finished = json!({"is_finished": true, "task": "x", "summary": "The flag is there."});
    let execute = |agent: &str| {
        gemini_call(
            "execute_agent",
            &json!({"agent": agent, "prompt": "Do it."}),
            "c2ln",
        )
    };
    let server = ModelServer::start([
        execute("claude_code"),
        execute("codex"),
        Answer::json(&gemini(&finished.to_string())),
    ]);
    let branches = [
        Branch::done("implemented"),
        Branch::review("CLEAN"),
        Branch::done(&published()),
    ];
    let orchestra = OrchestraProject::scripted([], branches)
        .with_variable("GOOGLE_GEMINI_BASE_URL", &server.url());
    let run = orchestra.run(&["--model", "gemini-2.5-pro"]).exits(0);
    let run = run.says(&[&format!("`gemini-2.5-pro` is asked at {}", server.url())]);
    assert_eq!(report(&run)["status"], "completed");
    let last = server.requests()[2].json();
    let contents = last["contents"].as_array().unwrap();
    let results: Vec<&Value> = contents
        .iter()
        .filter(|said| !said["parts"][0]["functionResponse"].is_null())
        .collect();
    assert_eq!(results.len(), 2, "{last:#}");
    assert_eq!(
        last.to_string()
            .matches("\"thoughtSignature\":\"c2ln\"")
            .count(),
        2
    );
}

#[test]
fn a_fallback_gets_no_thoughts_of_the_model_that_it_stands_in_for_nor_that_one_its_own() {
    let overloaded = || {
        let error = json!({"error": {"code": 503, "status": "UNAVAILABLE"}});
        Answer::new(503, &[("x-should-retry", "false")], error.to_string())
    };
    let read = |path: &str| json!({"path": path});
    let server = ModelServer::start([
        gemini_call("read_file", &read("notes.txt"), "c2ln"),
        overloaded(),
        claude(&json!([
            {"type": "thinking", "thinking": "Hm.", "signature": "c2lnMg=="},
            {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": read("none.txt")},
        ])),
        Answer::json(&gemini("It says alpha.")),
    ]);
    let chat = chat("GOOGLE_GEMINI_BASE_URL", &server)
        .with_variable("ANTHROPIC_BASE_URL", &server.url())
        .with_variable("ANTHROPIC_API_KEY", CLAUDES_KEY)
        .with_file(
            "agent-config/models.json",
            r#"{"models": {"gemini-2.5-pro": {"fallback": "claude-sonnet-5-5"}}}"#,
        );
    let run = chat.run(&["--model", "gemini-2.5-pro", "-p", "What do the notes say?"]);
    assert_eq!(run.exits(0).stdout, "It says alpha.\n");
    let requests = server.requests();
    let has = |request: usize, text: &str| requests[request].json().to_string().contains(text);
    assert!(has(1, "c2ln"), "the model's own thoughts");
    assert!(!has(2, "c2ln") && has(2, "tool_use") && !has(2, "redacted_thinking"));
    assert!(has(3, "c2ln") && has(3, "none.txt") && !has(3, "c2lnMg"));
}

#[test]
fn dev_works_with_claude() {
    let call = |name: &str, input: Value| {
        claude(&json!([
            {"type": "text", "text": "On we go."},
            {"type": "tool_use", "id": format!("toolu_{name}"), "name": name, "input": input},
        ]))
    };
    let server = ModelServer::start([
        call("WRITE_FILE", json!({"path": "a.txt", "content": "alpha\n"})),
        call("DONE", json!({"summary": "Written."})),
        claude_says(PASS),
    ]);
    let agent = AgentProject::at("http://127.0.0.1:1")
        .with_variable("ANTHROPIC_BASE_URL", &server.url())
        .with_variable("ANTHROPIC_API_KEY", CLAUDES_KEY);
    agent
        .run(&["-p", "Write it", "--model", "claude-sonnet-5-5"])
        .exits(0);
    assert_eq!(agent.project.read("a.txt"), "alpha\n");
    let second = server.requests()[1].json();
    let told = second["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(told["content"][0]["tool_use_id"], "toolu_WRITE_FILE");
}

#[test]
fn dev_sends_no_thoughts_with_another_key_than_that_under_which_they_were_signed() {
    let done = || {
        claude(&json!([
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "tool_use", "id": "toolu_1", "name": "DONE", "input": {"summary": "Done."}},
        ]))
    };
    let server = ModelServer::start([
        done(),
        claude_says(PASS),
        done(),
        claude_says(PASS),
        done(),
        claude_says(PASS),
    ]);
    let mut agent = AgentProject::at("http://127.0.0.1:1")
        .with_variable("ANTHROPIC_BASE_URL", &server.url())
        .with_variable("ANTHROPIC_API_KEY", CLAUDES_KEY);
    let model = ["--model", "claude-sonnet-5-5"];
    agent.run(&[&["-p", "first"], &model[..]].concat()).exits(0);
    for (key, has_thoughts) in [(CLAUDES_KEY, true), ("sk-ant-another0123456789", false)] {
        agent = agent.with_variable("ANTHROPIC_API_KEY", key);
        let asked = server.requests().len();
        agent
            .run(&[&["--resume", "-p", "again"], &model[..]].concat())
            .exits(0);
        let sent = server.requests()[asked].json().to_string();
        assert_eq!(sent.contains("c2ln"), has_thoughts, "{sent}");
    }
}
