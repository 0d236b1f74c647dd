//! Servers compatible with OpenAI's, each with its own deviations.

use serde_json::{Value, json};

use crate::support::agent::{AgentProject, PASS};
use crate::support::chat::ChatProject;
use crate::support::{Answer, ModelServer, TestProject};

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let chunk = json!({"model": "local", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    format!("data: {chunk}\n\n")
}

/// A stream of this text with this finish reason and end.
fn stream(text: &str, finish: Option<&str>, end: &str) -> Answer {
    let words = chunk(&json!({"content": text}), None);
    let finish = finish.map(|finish| chunk(&json!({}), Some(finish)));
    let body = format!("{words}{}{end}", finish.unwrap_or_default());
    Answer::new(200, &[("content-type", "text/event-stream")], body)
}

const DONE: &str = "data: [DONE]\n\n";
const WRITE: &str = "^^^a\nx\n^^^end\n";

/// A project whose model `local` is at `url`.
fn project(url: &str, more: &str) -> TestProject {
    let table = format!(
        r#"{{"models": {{"local": {{"provider": "openai", "baseUrl": "{url}/v1"{more}}}}}, "selectionRules": {{"default": "local"}}}}"#
    );
    TestProject::new().file("agent-config/models.json", table)
}

#[test]
fn a_server_that_refuses_to_tell_the_usage_is_not_asked_for_it_again() {
    let mistral = json!({"object": "error", "message": {"detail": [
        {"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]}});
    let other = json!({"error": {"message": "Unrecognized request argument: stream_options"}});
    let nothing = json!({"detail": "bad request"});
    for refusal in [
        Answer::error(422, &mistral),
        Answer::error(400, &other),
        Answer::error(400, &nothing),
    ] {
        let server = ModelServer::start([
            refusal,
            stream(WRITE, Some("stop"), DONE),
            stream("^^^ok\n\n^^^end\n", Some("stop"), DONE),
        ]);
        let project = project(&server.url(), "").build("test -e ok");
        let run = project.run(&["--stream"]).exits(0);
        let asked = server.requests().into_iter();
        let asked: Vec<Value> = asked.map(|request| request.json()).collect();
        assert_eq!(asked[0]["stream_options"]["include_usage"], true);
        for later in &asked[1..] {
            assert_eq!(later.get("stream_options"), None);
            assert_eq!(later["stream"], true);
        }
        assert_eq!(asked.len(), 3);
        assert_eq!(run.result()["attempts"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn a_server_that_does_not_know_schemas_is_asked_for_json_and_then_for_nothing() {
    let refused = |words: &str| Answer::error(400, &json!({"error": {"message": words}}));
    let unavailable = || refused("This response_format type is unavailable now");
    let as_json = json!({"type": "json_object"});
    for (refusals, then) in [
        (vec![unavailable()], as_json.clone()),
        (vec![unavailable(), unavailable()], Value::Null),
    ] {
        let tried = refusals.len();
        let answer = |words: &str| json!({"answer": words}).to_string();
        let replies = ["Done.", PASS].map(|words| stream(&answer(words), Some("stop"), DONE));
        let server = ModelServer::start(refusals.into_iter().chain(replies));
        let agent = AgentProject::new(&server).with_file(
            "agent-config/models.json",
            r#"{"models": {"test-model": {"provider": "openai", "tools": "json"}}}"#,
        );
        agent.work("go").exits(0);
        let asked = server.requests().into_iter();
        let asked: Vec<Value> = asked
            .map(|request| request.json()["response_format"].clone())
            .collect();
        assert_eq!(asked[0]["type"], "json_schema");
        assert_eq!(asked[0]["json_schema"]["strict"], false);
        assert_eq!(asked[0]["json_schema"]["schema"]["type"], "object");
        assert_eq!(asked[tried..], [then.clone(), then]);
    }
}

#[test]
fn another_fault_of_the_request_is_not_sent_again() {
    let server = ModelServer::start([]);
    project(&server.url(), "").run(&["--stream"]).exits(4);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn an_error_in_an_answer_with_a_success_status_is_retried_as_its_status_would_be() {
    let event = |error: &Value| {
        let body = format!("data: {}\n\n", json!({"error": error}));
        Answer::new(200, &[("content-type", "Text/Event-Stream")], body)
    };
    let whole = |error: &Value| Answer::new(200, &[], json!({"error": error}).to_string());
    let bad_gateway = json!({"code": 502, "message": "Provider returned error"});
    let failed = json!({"type": "server_error", "message": "The server had an error"});
    for (first, arguments) in [
        (event(&bad_gateway), &["--stream"][..]),
        (event(&failed), &["--stream"]),
        (whole(&bad_gateway), &["--stream"]),
        (whole(&failed), &[]),
    ] {
        let server = ModelServer::start([first, stream(WRITE, Some("stop"), DONE)]);
        let project = project(&server.url(), "").build("exit 0");
        project.run(arguments).exits(0);
        assert_eq!(server.requests().len(), 2);
    }
    for (error, reason) in [
        (
            json!({"code": 402, "message": "Insufficient credits"}),
            "quota",
        ),
        (json!({"code": 401, "message": "No auth"}), "server"),
    ] {
        let server = ModelServer::start([event(&error)]);
        let project = project(&server.url(), "").build("exit 0");
        let run = project.run(&["--stream"]).exits(4);
        assert_eq!(run.result()["error"]["reason"], reason, "{error}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn roles_alternate_where_the_servers_template_wants_them_to() {
    let refusal = json!({"error": {"code": 500, "message": "Jinja Exception: After the optional system message, \
        conversation roles must alternate user and assistant roles except for tool calls and results."}});
    let server = ModelServer::start([
        Answer::error(500, &refusal),
        stream("Hello.", Some("stop"), DONE),
    ]);
    let table = json!({"models": {"local": {"provider": "openai", "baseUrl": format!("{}/v1", server.url())}}});
    let (chat, _anthropic) = ChatProject::scripted([]);
    let chat = chat.with_file("agent-config/models.json", table.to_string());
    let printed = chat
        .run(&["-p", "Ask the walrus", "--model", "local"])
        .exits(0);
    assert!(printed.stdout.contains("Hello."), "{}", printed.stdout);
    let roles = |nth: usize| -> Vec<String> {
        let body = server.requests()[nth].json();
        let messages = body["messages"].as_array().unwrap().iter();
        let roles = messages.map(|message| message["role"].as_str().unwrap().to_owned());
        roles.collect()
    };
    assert!(roles(0).len() > 2 && roles(0)[1..].iter().all(|role| role == "user"));
    assert_eq!(roles(1), ["system", "user"]);
    let turn = server.requests()[1].json()["messages"][1].to_string();
    assert!(turn.contains("Ask the walrus"), "{turn}");
}

#[test]
fn a_call_that_breaks_off_in_the_middle_is_told_if_it_costs_something() {
    for (price, is_told) in [
        (r#", "price": {"input": 1, "output": 10}"#, true),
        (r#", "price": {"input": 0, "output": 0}"#, false),
        ("", false),
    ] {
        let server =
            ModelServer::start([stream(WRITE, None, ""), stream(WRITE, Some("stop"), DONE)]);
        let project = project(&server.url(), price).build("exit 0");
        let run = project.run(&["--stream"]).exits(0);
        let told = "1 call to `local` broke off midway";
        assert_eq!(run.result()["warnings"].to_string().contains(told), is_told);
        assert_eq!(server.requests().len(), 2);
    }
}

#[test]
fn a_stream_is_whole_with_either_end_and_cut_without() {
    for (finish, end) in [
        (Some("stop"), ""),
        (None, DONE),
        (Some("eos"), DONE),
        (Some("eos_token"), ""),
        (Some("stop_sequence"), DONE),
        (Some("end_turn"), DONE),
        (Some("STOP"), ""),
        (Some("completed"), ""),
    ] {
        let server = ModelServer::start([stream(WRITE, finish, end)]);
        let project = project(&server.url(), "");
        let run = project.run(&["--stream"]).exits(0);
        assert_eq!(project.read("a"), "x\n");
        let told = &run.result()["attempts"][0]["finish"];
        assert_eq!(told, finish.unwrap_or("[DONE]"));
        std::fs::remove_file(project.path("a")).unwrap();
        project.run(&["--replay", &run.folder]).exits(0);
        assert_eq!(project.read("a"), "x\n");
    }
    for (finish, end) in [
        (None, ""),
        (Some("length"), DONE),
        (Some("content_filter"), ""),
    ] {
        let server = ModelServer::start((0..9).map(|_| stream(WRITE, finish, end)));
        let project = project(&server.url(), "");
        project.run(&["--stream", "--timeout", "1s"]).exits(4);
        assert!(!project.path("a").exists());
    }
}

#[test]
fn without_a_key_plain_http_may_go_to_a_private_address_with_a_warning() {
    for url in [
        "http://10.0.0.1:8080",
        "http://host.docker.internal:11434",
        "http://gpu",
    ] {
        let warning =
            format!("`local` is asked at {url}/v1 by plain http: the code travels unencrypted");
        let run = project(url, "").run(&["--dry-run"]).exits(0);
        assert_eq!(run.stderr.matches(&warning).count(), 1, "{}", run.stderr);
        project(url, r#", "keyFile": "openai-key.txt""#)
            .run(&["--dry-run"])
            .exits(3)
            .says(&["plain http is taken for loopback hosts only\n"]);
    }
    for url in [
        "http://8.8.8.8",
        "http://example.com",
        "http://169.254.169.254",
    ] {
        project(url, "")
            .run(&["--dry-run"])
            .exits(3)
            .says(&["plain http is taken for loopback hosts only, and for private addresses"]);
    }
}

#[test]
fn an_agents_own_server_on_a_private_network_gets_no_key() {
    let agent = AgentProject::at("http://10.0.0.1:8080")
        .with_variable("DEV_AGENT_API_KEY", "key-0123456789");
    agent.work("go").exits(3).says(&[
        "`apiUrl` is `http://10.0.0.1:8080/v1`: plain http is taken for loopback hosts only\n",
        "hint: the key travels in a header",
    ]);
}
