//! Streamable HTTP.

use serde_json::json;

use super::interrupt;
use super::server::{McpServer, Reply, event, result};
use crate::support::TestProject;

const PING: &str = r#"data: {"jsonrpc":"2.0","id":"p","method":"ping"}"#;
const OTHER: &str = r#"data: {"jsonrpc":"2.0","id":3,"method":"sampling/createMessage"}"#;
const NOTIFICATION: &str = r#"data: {"jsonrpc":"2.0","method":"notifications/message"}"#;
const FOREIGN: &str = r#"data: {"jsonrpc":"2.0","id":77,"result":{"content":[]}}"#;

/// An answer whose data has several lines.
fn lines() -> String {
    let answer = serde_json::to_string_pretty(&result("far")).unwrap();
    let answer = answer.replace("\"$ID\"", "$ID");
    let lines: String = answer
        .lines()
        .map(|line| format!("data: {line}\n"))
        .collect();
    format!("{lines}\n")
}

#[test]
fn every_form_of_an_answer_is_one() {
    let noise = format!(
        ": hi\n\n{PING}\n\ndata:\n\n{OTHER}\n\n{NOTIFICATION}\n\n{FOREIGN}\n\ndata: {{cut\n\n"
    );
    for (reply, expected) in [
        (Reply::text("far"), "far\n"),
        (Reply::events(&event("far")), "far\n"),
        (
            Reply::events(&format!("{noise}{}{}", event("far"), event("again"))),
            "far\n",
        ),
        (Reply::events(&lines()), "far\n"),
        (
            Reply::json(&json!([{"jsonrpc": "2.0", "method": "notifications/x"}, result("far")])),
            "far\n",
        ),
        (
            Reply::json(
                &json!({"jsonrpc": "2.0", "id": "$ID", "result": {"structuredContent": {"a": 1}, "content": []}}),
            ),
            "{\n  \"a\": 1\n}\n",
        ),
    ] {
        let is_noisy =
            matches!(&reply, Reply::Bytes(bytes) if bytes.windows(4).any(|part| part == b"ping"));
        let server = McpServer::streamable([reply]);
        let project = TestProject::new().variable("MCP_BEARER_TOKEN", "tok-12345678");
        let url = format!("{}?key=s3cret", server.url());
        let run = project
            .run(&["mcp", "call", &url, "say", r#"{"to": "you"}"#])
            .exits(0);
        assert_eq!((&*run.stdout, &*run.stderr), (expected, ""));
        let mut expected = vec!["initialize", "notifications/initialized", "tools/call"];
        expected.extend(is_noisy.then_some(["reply"; 2]).into_iter().flatten());
        expected.push("DELETE");
        assert_eq!(server.methods(), expected);
        let requests = server.requests();
        for (index, request) in requests.iter().enumerate() {
            assert!(request.line.contains(" /mcp?key=s3cret "), "{request:?}");
            assert_eq!(request.header("authorization"), Some("Bearer tok-12345678"));
            let later = (index > 0).then_some(("s1", "2025-06-18"));
            assert_eq!(request.header("mcp-session-id"), later.map(|(id, _)| id));
            assert_eq!(
                request.header("mcp-protocol-version"),
                later.map(|(_, version)| version)
            );
            if request.line.starts_with("POST") {
                assert_eq!(
                    request.header("accept"),
                    Some("application/json, text/event-stream")
                );
            }
        }
        assert_eq!(
            requests[0].json()["params"]["protocolVersion"],
            "2025-11-25"
        );
        let (params, id) = (&requests[2].json()["params"], &requests[2].json()["id"]);
        let expected =
            json!({"name": "say", "arguments": {"to": "you"}, "_meta": {"progressToken": id}});
        assert_eq!(*params, expected);
        if is_noisy {
            let said = [&requests[3], &requests[4]].map(super::server::Got::json);
            assert_eq!(said[0], json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
            assert_eq!(said[1]["error"]["code"], -32601);
        }
    }
}

#[test]
fn requests_on_a_sessions_own_stream_are_answered() {
    let answer = |text| match Reply::text(text) {
        Reply::Bytes(bytes) => Reply::WhenReplied(bytes),
        _ => unreachable!("a text is bytes"),
    };
    let server = McpServer::streamable([answer("far")]).with_stream(&format!("{PING}\n\n"));
    let project = TestProject::new().variable("MCP_BEARER_TOKEN", "tok-12345678");
    let run = project.run(&["mcp", "call", &server.url(), "say"]).exits(0);
    assert_eq!((&*run.stdout, &*run.stderr), ("far\n", ""));
    assert_eq!(
        server.methods()[..3],
        ["initialize", "notifications/initialized", "GET"]
    );
    let requests = server.requests();
    let reply = requests.iter().find(|got| got.method() == "reply").unwrap();
    assert_eq!(
        reply.json(),
        json!({"jsonrpc": "2.0", "id": "p", "result": {}})
    );
    for got in [&requests[2], reply] {
        assert_eq!(got.header("mcp-session-id"), Some("s1"));
        assert_eq!(got.header("mcp-protocol-version"), Some("2025-06-18"));
        assert_eq!(got.header("authorization"), Some("Bearer tok-12345678"));
    }
    assert_eq!(requests[2].header("accept"), Some("text/event-stream"));
}

#[test]
fn progress_is_asked_for_and_shown() {
    let progress = |token: &str, said: &str| {
        format!(
            "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{token},\"progress\":3,\"total\":10,\"message\":\"{said}\"}}}}\n\n"
        )
    };
    let events = progress("99", "foreign") + &progress("$ID", "indexing") + &event("far");
    for server in [
        McpServer::streamable([Reply::events(&events)]),
        McpServer::older([Reply::Bytes(events.clone().into())]),
    ] {
        let run = TestProject::new().run(&["mcp", "call", &server.url(), "say"]);
        let run = run.exits(0).says(&["progress: 3 of 10: indexing"]);
        assert_eq!(run.stdout, "far\n");
        assert!(!run.stderr.contains("foreign"), "{}", run.stderr);
    }
}

#[test]
fn a_result_keeps_its_parts_as_json() {
    let image = json!({"type": "image", "data": "aa", "mimeType": "image/png"});
    let link = json!({"type": "resource_link", "uri": "file:///a", "name": "a"});
    let text = json!({"type": "text", "text": "seen"});
    let content = json!([image, link, text]);
    let result = json!({"content": content, "structuredContent": {"a": 1}});
    let message = json!({"jsonrpc": "2.0", "id": "$ID", "result": result});
    let server = McpServer::streamable([Reply::json(&message)]);
    let asked = [
        "mcp",
        "call",
        &server.url(),
        "say",
        "--output-format",
        "json",
    ];
    let run = TestProject::new().run(&asked).exits(0);
    let json: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(json["result"], json!({"a": 1}));
    assert_eq!(json["content"], content);
    assert_eq!(json["structuredContent"], json!({"a": 1}));
}

#[test]
fn the_status_that_a_server_answers_with_is_data() {
    for (status, command, reason, is_retryable) in [
        (403, "tools", "mcp-failed", false),
        (503, "tools", "busy", true),
        // The call may have begun.
        (500, "call", "mcp-failed", false),
    ] {
        let denied = || Reply::status(status, "", "no");
        let server = McpServer::streamable([0; 8].map(|_| denied()));
        let url = server.url();
        let mut asked = vec!["mcp", command, &url];
        asked.extend((command == "call").then_some("say"));
        asked.extend(["--timeout", "1s", "--output-format", "json"]);
        let run = TestProject::new().run(&asked).exits(4);
        let error = &serde_json::from_str::<serde_json::Value>(&run.stdout).unwrap()["error"];
        assert_eq!(error["http_status"], status, "{error:#}");
        let told = (&error["reason"], &error["retryable"]);
        assert_eq!(told, (&json!(reason), &json!(is_retryable)), "{error:#}");
    }
}

#[test]
fn own_headers_are_sent_and_not_shown() {
    let denied = Reply::status(401, "", "no such key: s3cret-longer");
    let server = McpServer::streamable([denied]);
    let headers = [
        "--header",
        "X-Api-Key: s3cret-longer",
        "--header",
        "Authorization: Basic dXNlcjpwYXNz",
    ];
    let url = server.url();
    let project = TestProject::new().variable("MCP_BEARER_TOKEN", "tok-12345678");
    let run = project.run(&[&["mcp", "call", &url, "say"][..], &headers].concat());
    let run = run.exits(4).says(&["answers 401: no such key: [REDACTED"]);
    assert!(!run.stderr.contains("s3cret"), "{}", run.stderr);
    for got in server.requests() {
        assert_eq!(got.header("x-api-key"), Some("s3cret-longer"));
        let sent = got
            .headers
            .iter()
            .filter(|(name, _)| name == "authorization");
        let sent: Vec<&str> = sent.map(|(_, value)| value.as_str()).collect();
        assert_eq!(sent, ["Basic dXNlcjpwYXNz"]);
    }
    let asked = ["mcp", "tools", &url, "--header", "no colon"];
    project
        .run(&asked)
        .exits(2)
        .says(&["is not like `X-Api-Key: value`"]);
}

/// Makes a call whose first reply is this, and whose next reply is valid; checks the exit code, the message, and the
/// number of calls.
#[track_caller]
fn replied(reply: Reply, code: i32, said: &str, calls: usize) {
    let server = McpServer::streamable([reply, Reply::text("far")]);
    let project = TestProject::new();
    let run = project.run(&["mcp", "call", &server.url(), "say"]);
    run.exits(code).says(&[said]);
    let methods = server.methods();
    let called = methods.iter().filter(|method| *method == "tools/call");
    assert_eq!(called.count(), calls, "{said}");
    assert_eq!(methods.last().unwrap(), "DELETE", "{said}");
}

#[test]
fn a_call_is_done_again_only_where_it_was_not_begun() {
    let status = |status, body| Reply::status(status, "retry-after-ms: 10\r\n", body);
    let doubt = "the call may have begun";
    let cut = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{";
    replied(status(503, ""), 0, "answers 503; try 2 in 0.0", 2);
    replied(status(429, "slow"), 0, "answers 429: slow; try 2", 2);
    let page = "<html><title>Bad Gateway</title>";
    let said = format!("answers 502: {page}; {doubt}");
    replied(status(502, page), 4, &said, 1);
    let said = format!("answers 500: oh; {doubt}");
    replied(status(500, r#"{"detail": "oh"}"#), 4, &said, 1);
    let gzip = Reply::status(200, "content-encoding: gzip\r\n", "");
    let said = format!("which was not asked for; {doubt}");
    replied(gzip, 4, &said, 1);
    replied(Reply::Bytes(Vec::new()), 4, doubt, 1);
    replied(Reply::Bytes(cut.into()), 4, doubt, 1);
    let said = format!("the stream ended before the answer; {doubt}");
    replied(Reply::events(": hi\n\n"), 4, &said, 1);
}

#[test]
fn an_answer_that_is_not_a_result_is_reported_in_its_words() {
    let page = Reply::status(200, "content-type: text/html\r\n", "<h1>Log in</h1>");
    replied(page, 4, "no JSON: `<h1>Log in</h1>`", 1);
    let other = json!({"jsonrpc": "2.0", "id": 99, "result": {}});
    replied(Reply::json(&other), 4, "to another request", 1);
    let there = "location: http://u:pw@127.0.0.1:1/?key=k\r\n";
    let elsewhere = Reply::status(307, there, "");
    replied(elsewhere, 4, "redirects to `http://127.0.0.1:1/`", 1);
    let denied = Reply::status(401, "", r#"{"error_description": "expired"}"#);
    let said = "answers 401: expired\nhint: set `MCP_BEARER_TOKEN`";
    replied(denied, 4, said, 1);
    let error = json!({"code": -32602, "message": "no branch"});
    let error = json!({"jsonrpc": "2.0", "id": "$ID", "error": error});
    replied(Reply::json(&error), 4, "no branch (-32602)", 1);
    let mut failed = result("it broke");
    failed["result"]["isError"] = true.into();
    replied(Reply::json(&failed), 4, "error: it broke\n", 1);
}

#[test]
fn a_list_of_tools_is_limited_over_all_its_pages() {
    let long = || "x".repeat(9 << 20);
    for result in [
        json!({"tools": [{"name": "a", "description": long()}], "nextCursor": "2"}),
        json!({"tools": [], "nextCursor": long()}),
        json!({"tools": [], "nextCursor": "2", "other": long()}),
    ] {
        // The handshake has the first ID.
        let page = |id: u32| Reply::json(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
        let server = McpServer::streamable((2..5).map(page));
        let run = TestProject::new().run(&["mcp", "tools", &server.url()]);
        run.exits(4).says(&["more than 16 MB"]);
        let asked = server.requests();
        let pages = asked.iter().filter(|it| it.method() == "tools/list");
        assert_eq!(pages.count(), 2);
    }
}

#[test]
fn read_only_requests_are_retried_five_times() {
    let now = "retry-after-ms: 1\r\n";
    let list = json!({"jsonrpc": "2.0", "id": "$ID", "result": {"tools": [
        {"name": "a", "description": "Does a.", "inputSchema": {"properties": {"x": {"type": "string"}}, "required": ["x"]}}],
        "nextCursor": "2"}});
    let rest = json!({"jsonrpc": "2.0", "id": "$ID", "result": {"tools": [{"name": "b"}]}});
    let server = McpServer::streamable([
        Reply::status(502, now, ""),
        Reply::status(500, now, ""),
        Reply::json(&list),
        Reply::status(504, now, ""),
        Reply::json(&rest),
    ]);
    let project = TestProject::new();
    let run = project.run(&["mcp", "tools", &server.url()]).exits(0);
    assert_eq!(run.stdout, "a  Does a.\n    x: string\nb\n");
    let asked = server.requests();
    let last = asked
        .iter()
        .rfind(|request| request.method() == "tools/list");
    assert_eq!(last.unwrap().json()["params"], json!({"cursor": "2"}));

    let server = McpServer::streamable((0..9).map(|_| Reply::status(503, now, "busy")));
    let run = project.run(&["mcp", "tools", &server.url()]).exits(4);
    let said = "answers 503 (after 5 tries): busy\nhint: try again later";
    run.says(&["try 5 in", said]);
}

#[test]
fn a_session_that_is_gone_is_begun_again_once() {
    let gone = || Reply::status(404, "", "");
    for (replies, code) in [
        (vec![gone(), Reply::text("far")], 0),
        (
            vec![
                Reply::status(400, "", r#"{"error": {"message": "No valid session ID"}}"#),
                Reply::text("far"),
            ],
            0,
        ),
        (
            vec![
                Reply::status(400, "", "Bad Request: Server not initialized"),
                Reply::text("far"),
            ],
            0,
        ),
        (vec![gone(), gone(), Reply::text("far")], 4),
        (vec![Reply::status(400, "", "bad"), Reply::text("far")], 4),
    ] {
        let server = McpServer::streamable(replies);
        let run = TestProject::new().run(&["mcp", "call", &server.url(), "say"]);
        let run = run.exits(code);
        let requests = server.requests();
        let calls = requests
            .iter()
            .filter(|request| request.method() == "tools/call");
        let sessions: Vec<_> = calls
            .map(|call| call.header("mcp-session-id").unwrap())
            .collect();
        let is_renewed = !run.stderr.contains("answers 400");
        assert_eq!(
            sessions,
            if is_renewed {
                vec!["s1", "s2"]
            } else {
                vec!["s1"]
            }
        );
    }
}

#[test]
fn a_stream_that_ends_is_resumed_where_it_gave_ids() {
    let server = McpServer::streamable([
        Reply::events("id: 1\nretry: 5\ndata:\n\nid: 2\ndata: cut"),
        Reply::status(503, "retry-after-ms: 1\r\n", ""),
        Reply::events(&format!("id: 3\n{NOTIFICATION}\n\n")),
        Reply::events(""),
        Reply::events(&event("far")),
    ]);
    let project = TestProject::new();
    let run = project.run(&["mcp", "call", &server.url(), "say"]).exits(0);
    assert_eq!(run.stdout, "far\n");
    let requests = server.requests();
    let ids: Vec<_> = requests
        .iter()
        .map(|request| request.header("last-event-id"))
        .collect();
    let resumed = [Some("1"), Some("1"), Some("3"), Some("3")];
    assert_eq!(ids[3..7], resumed);
    assert!(
        requests[3..7]
            .iter()
            .all(|request| request.line.starts_with("GET /mcp ")
                && request.header("accept") == Some("text/event-stream")
                && request.header("mcp-session-id") == Some("s1"))
    );
    assert_eq!(
        server
            .methods()
            .iter()
            .filter(|method| *method == "tools/call")
            .count(),
        1
    );

    // A server that forgets the session all the same: the call had begun.
    let server = McpServer::streamable([
        Reply::events("id: 1\nretry: 5\ndata:\n\n"),
        Reply::status(405, "", ""),
    ]);
    let run = project.run(&["mcp", "call", &server.url(), "say"]).exits(4);
    run.says(&["the call may have begun"]);
}

#[test]
fn more_than_16_mb_is_not_read() {
    let announced =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 16777217\r\n\r\n{";
    let mut endless = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n".to_vec();
    endless.resize(endless.len() + (16 << 20) + 1, b' ');
    let mut long = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: ".to_vec();
    long.resize(long.len() + (17 << 20), b'x');
    for reply in [announced.into(), endless, long] {
        let server = McpServer::streamable([Reply::Bytes(reply)]);
        let project = TestProject::new();
        let run = project.run(&["mcp", "call", &server.url(), "say"]).exits(4);
        run.says(&["has more than 16 MB; the call may have begun"]);
    }
}

#[test]
fn a_signal_takes_the_call_back_and_ends_the_session() {
    let (silence, at_silence) = Reply::silence();
    let (stream, at_stream) = Reply::hanging(": hi\n\n");
    // More than the connection buffers: the client is still sending.
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 16000000\r\n\r\n";
    let mut half = head.as_bytes().to_vec();
    half.resize(14_000_000, b' ');
    let (sender, at_half) = std::sync::mpsc::channel();
    let half = Reply::Hang(half, sender);
    for (reply, told) in [(silence, at_silence), (stream, at_stream), (half, at_half)] {
        let server = McpServer::streamable([reply]);
        let project = TestProject::new();
        let child = project.start(&["mcp", "call", &server.url(), "say"]);
        told.recv().unwrap();
        interrupt(&project, child);
        let requests = server.requests();
        assert_eq!(
            server.methods()[2..],
            ["tools/call", "notifications/cancelled", "DELETE"]
        );
        assert_eq!(
            requests[3].json()["params"]["requestId"],
            requests[2].json()["id"]
        );
        assert_eq!(requests[4].header("mcp-session-id"), Some("s1"));
    }
}

#[test]
fn a_signal_ends_a_wait_for_the_handshake_and_between_tries() {
    let (silence, told) = Reply::silence();
    let server = McpServer::shaking([silence], []);
    let project = TestProject::new();
    let child = project.start(&["mcp", "tools", &server.url()]);
    told.recv().unwrap();
    interrupt(&project, child);
    assert_eq!(server.methods(), ["initialize"]);

    let server = McpServer::streamable([Reply::status(503, "retry-after: 200\r\n", "")]);
    let mut child = project.start(&["mcp", "tools", &server.url()]);
    let mut said = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    assert!(line.contains("try 2 in 200"), "{line}");
    let asked = std::time::Instant::now();
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(asked.elapsed().as_secs() < 10);
    // A wait longer than the remaining time does not take place.
    let run = project.run(&[
        "mcp",
        "tools",
        &McpServer::streamable([Reply::status(503, "retry-after: 9\r\n", "")]).url(),
        "--timeout",
        "5s",
    ]);
    let said = "answers 503; the next try is 9 s away, beyond the time limit\nhint: ";
    run.exits(4).says(&[said, "`--timeout`"]);
}

#[test]
fn versions_are_agreed_on() {
    let named = |version: &str| {
        let result = json!({"protocolVersion": version, "capabilities": {}});
        Reply::json(&json!({"jsonrpc": "2.0", "id": 1, "result": result}))
    };
    let project = TestProject::new();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let server = McpServer::shaking([named(version)], [Reply::text("far")]);
        project.run(&["mcp", "call", &server.url(), "say"]).exits(0);
        let requests = server.requests();
        assert_eq!(requests[2].header("mcp-protocol-version"), Some(version));
        // There is no session to end.
        assert_eq!(requests[2].header("mcp-session-id"), None);
        assert_eq!(server.methods().len(), 3);
    }
    let server = McpServer::shaking([named("2031-01-01")], []);
    let run = project.run(&["mcp", "call", &server.url(), "say"]).exits(4);
    run.says(&["speaks \"2031-01-01\", which this client does not\nhint: use a version"]);
    let data = json!({"supported": ["2031-01-01"]});
    let error = json!({"code": -32022, "message": "no", "data": data});
    let refused = Reply::json(&json!({"jsonrpc": "2.0", "id": 1, "error": error}));
    let server = McpServer::shaking([refused], []);
    let run = project.run(&["mcp", "call", &server.url(), "say"]).exits(4);
    run.says(&["speaks [\"2031-01-01\"], which this client does not"]);
    let server = McpServer::shaking([named("2026-07-28")], [Reply::text("far")]);
    project.run(&["mcp", "call", &server.url(), "say"]).exits(0);
    assert_eq!(server.methods(), ["initialize", "tools/call"]);
}

#[test]
fn a_session_that_was_begun_is_ended_whatever_came_of_it() {
    let hello = json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2031-01-01"}});
    let hello = Reply::status(200, "mcp-session-id: x\r\n", &hello.to_string());
    let server = McpServer::shaking([hello], []);
    let project = TestProject::new();
    project.run(&["mcp", "call", &server.url(), "say"]).exits(4);
    assert_eq!(server.methods(), ["initialize", "DELETE"]);
    assert_eq!(server.requests()[1].header("mcp-session-id"), Some("x"));

    // The answer to a notification does not matter, unless the session is gone.
    for (status, begun) in [(400, 1), (500, 1), (404, 2)] {
        let server = McpServer::streamable([Reply::text("far")]);
        let server = server.with_initialized(Reply::status(status, "", "what?"));
        let run = project.run(&["mcp", "call", &server.url(), "say"]).exits(0);
        assert_eq!((&*run.stdout, &*run.stderr), ("far\n", ""), "{status}");
        let methods = server.methods();
        let shaken = methods.iter().filter(|method| *method == "initialize");
        assert_eq!(shaken.count(), begun, "{status}");
        assert_eq!(methods.last().unwrap(), "DELETE");
    }
}

#[test]
fn a_redirect_that_adds_a_slash_is_followed_once() {
    let moved = || Reply::status(307, "location: /mcp/?key=s3cret\r\n", "");
    let server = McpServer::shaking([moved()], [Reply::text("far")]);
    let project = TestProject::new();
    let url = format!("{}?key=s3cret", server.url());
    let run = project.run(&["mcp", "call", &url, "say"]).exits(0);
    assert_eq!((&*run.stdout, &*run.stderr), ("far\n", ""));
    let requests = server.requests();
    assert!(requests[0].line.contains(" /mcp?key=s3cret "));
    assert_eq!(requests.len(), 5);
    for request in &requests[1..] {
        let line = &request.line;
        assert!(line.contains(" /mcp/?key=s3cret "), "{line}");
    }
    let server = McpServer::shaking([moved(), moved()], []);
    let run = project.run(&["mcp", "call", &server.url(), "say"]).exits(4);
    run.says(&["it redirects to `/mcp/` with status 307"]);
}

#[test]
fn a_stalled_stream_is_not_resumed_forever() {
    let project = TestProject::new();
    let ended = |retry| {
        let stream = format!("id: 1\nretry: {retry}\ndata:\n\n");
        McpServer::answering(false, move |_| Some(Reply::events(&stream)))
    };
    let taken_up = |server: &McpServer| {
        let requests = server.requests();
        let ids = requests
            .iter()
            .filter(|got| got.header("last-event-id").is_some());
        ids.count()
    };
    let server = ended(1);
    let run = project.run(&["mcp", "call", &server.url(), "say"]).exits(4);
    run.says(&["try 2 in", "try 5 in", "(after 5 tries)", "may have begun"]);
    assert_eq!(taken_up(&server), 5);
    // A wait of zero is ignored.
    let server = ended(0);
    let asked = ["mcp", "call", &server.url(), "say", "--timeout", "1s"];
    project.run(&asked).exits(4);
    assert!(taken_up(&server) < 4);
    let server = ended(100_000);
    let asked = ["mcp", "call", &server.url(), "say", "--timeout", "9s"];
    let run = project.run(&asked).exits(4);
    run.says(&["the next try is 100 s away, beyond the time limit"]);
    assert_eq!(taken_up(&server), 0);
}

#[test]
fn a_server_that_refuses_the_handshake_is_spoken_to_without() {
    let data = json!({"supported": ["2026-07-28"]});
    let refusal = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32022, "message": "no", "data": data}});
    for status in [200, 400] {
        let json = "content-type: application/json\r\n";
        let refused = Reply::status(status, json, &refusal.to_string());
        let server = McpServer::shaking([refused], [Reply::text("far")]);
        let project = TestProject::new();
        let run = project
            .run(&["mcp", "call", &server.url(), "g\u{e9}n", r#"{"a": 1}"#])
            .exits(0);
        assert_eq!(run.stdout, "far\n");
        assert_eq!(server.methods(), ["initialize", "tools/call"]);
        let call = &server.requests()[1];
        assert_eq!(call.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(call.header("mcp-method"), Some("tools/call"));
        assert_eq!(call.header("mcp-name"), Some("=?base64?Z8Opbg==?="));
        assert_eq!(call.header("mcp-session-id"), None);
        let meta = &call.json()["params"]["_meta"];
        assert_eq!(
            meta["io.modelcontextprotocol/protocolVersion"],
            "2026-07-28"
        );
        assert_eq!(
            meta["io.modelcontextprotocol/clientCapabilities"],
            json!({})
        );
    }
}
