//! HTTP+SSE.

use serde_json::json;

use super::interrupt;
use super::server::{McpServer, Reply, event};
use crate::support::TestProject;

fn answer(text: &str) -> Reply {
    Reply::Bytes(event(text).into_bytes())
}

/// Closes the stream of answers.
fn closed() -> Reply {
    Reply::Bytes(Vec::new())
}

#[test]
fn answers_come_on_the_stream() {
    let noise = ": hi\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\n\ndata: {\"id\":99,\"result\":{}}\n\n";
    for text in [
        event("far"),
        format!("{noise}{}{}", event("far"), event("again")),
    ] {
        let has_ping = text.contains("ping");
        let server = McpServer::older([Reply::Bytes(text.into_bytes())]);
        let project = TestProject::new().variable("MCP_BEARER_TOKEN", "tok-12345678");
        let run = project.run(&["mcp", "call", &server.url(), "say"]).exits(0);
        assert_eq!((&*run.stdout, &*run.stderr), ("far\n", ""));
        let mut methods = server.methods();
        let replies = methods.iter().filter(|method| *method == "reply").count();
        assert_eq!(replies, usize::from(has_ping));
        methods.retain(|method| method != "reply");
        // The first request attempts streamable HTTP.
        assert_eq!(
            methods,
            [
                "initialize",
                "GET",
                "initialize",
                "notifications/initialized",
                "tools/call"
            ]
        );
        for request in server.requests() {
            assert_eq!(request.header("authorization"), Some("Bearer tok-12345678"));
        }
        assert!(
            server.requests()[4]
                .line
                .starts_with("POST /messages?session=1 ")
        );
    }
}

#[test]
fn an_answer_may_come_to_the_post_or_before_its_end() {
    let error = json!({"jsonrpc": "2.0", "id": "$ID", "error": {"code": -32602, "message": "no"}});
    let page = Reply::status(200, "content-type: text/html\r\n", "<h1>Log in</h1>");
    let (held, _told) = Reply::silence();
    let Reply::Hang(_, sender) = held else {
        unreachable!("it is silence")
    };
    for (reply, code, said) in [
        (Reply::text("far"), 0, ""),
        (Reply::Hang(event("far").into_bytes(), sender), 0, ""),
        (Reply::json(&error), 4, "the MCP server says: no (-32602)"),
        (page, 4, "no JSON: `<h1>Log in</h1>`"),
    ] {
        let server = McpServer::older([reply]);
        let run = TestProject::new().run(&["mcp", "call", &server.url(), "say"]);
        let run = run.exits(code).says(&[said]);
        assert_eq!(run.stdout, if code == 0 { "far\n" } else { "" });
    }
}

#[test]
fn rejected_token_is_reported_when_both_transports_fail() {
    let denied = Reply::status(401, "", "who?");
    let server = McpServer::shaking([Reply::status(405, "", "")], [denied]);
    let run = TestProject::new()
        .run(&["mcp", "tools", &server.url()])
        .exits(4);
    run.says(&["answers 401: who?\nhint: set `MCP_BEARER_TOKEN`"]);
}

#[test]
fn an_endpoint_of_another_origin_gets_nothing() {
    let elsewhere = McpServer::streamable([]);
    let said = format!("event: endpoint\ndata: {}\n\n", elsewhere.url());
    let server = McpServer::shaking([Reply::status(405, "", "")], [Reply::events(&said)]);
    let run = TestProject::new()
        .run(&["mcp", "call", &server.url(), "say"])
        .exits(4);
    run.says(&["the endpoint that it names is no URL of the same origin"]);
    assert!(elsewhere.methods().is_empty());
}

#[test]
fn only_some_refusals_lead_to_the_older_transport() {
    for (status, is_tried) in [
        (400, true),
        (404, true),
        (405, true),
        (406, true),
        (401, false),
        (403, false),
        (415, false),
    ] {
        let server = McpServer::shaking(
            [Reply::status(status, "", "what?")],
            [Reply::status(404, "", "")],
        );
        let run = TestProject::new()
            .run(&["mcp", "tools", &server.url()])
            .exits(4);
        run.says(&[&format!("answers {status}: what?")]);
        assert_eq!(
            server.methods().contains(&"GET".to_owned()),
            is_tried,
            "{status}"
        );
    }
}

#[test]
fn a_stream_that_ends_takes_calls_along_that_may_have_begun() {
    let project = TestProject::new();
    let server = McpServer::older([closed(), answer("far")]);
    let run = project.run(&["mcp", "call", &server.url(), "say"]).exits(4);
    run.says(&["the stream of answers has ended; the call may have begun"]);

    let list = json!({"jsonrpc": "2.0", "id": "$ID", "result": {"tools": [{"name": "a"}]}});
    let list = format!("data: {}\n\n", list.to_string().replace("\"$ID\"", "$ID"));
    let server = McpServer::older([closed(), Reply::Bytes(list.into_bytes())]);
    let run = project.run(&["mcp", "tools", &server.url()]).exits(0);
    assert_eq!(run.stdout, "a\n");
    run.says(&["try 2 in"]);
    let last = server.requests().pop().unwrap();
    assert!(
        last.line.starts_with("POST /messages?session=2 "),
        "{}",
        last.line
    );
}

#[test]
fn a_session_that_is_gone_is_begun_again() {
    let server = McpServer::older([Reply::status(404, "", "no session"), answer("far")]);
    let run = TestProject::new()
        .run(&["mcp", "call", &server.url(), "say"])
        .exits(0);
    assert_eq!(run.stdout, "far\n");
    let posted: Vec<String> = server
        .requests()
        .iter()
        .filter(|request| request.method() == "tools/call")
        .map(|request| request.line.clone())
        .collect();
    assert!(
        posted[0].contains("session=1") && posted[1].contains("session=2"),
        "{posted:?}"
    );
}

#[test]
fn faults_of_a_post_are_those_of_the_call() {
    let now = "retry-after-ms: 1\r\n";
    for (replies, code, said) in [
        (vec![Reply::status(503, now, ""), answer("far")], 0, "try 2"),
        (
            vec![Reply::status(502, now, "")],
            4,
            "the call may have begun",
        ),
        (
            vec![Reply::status(413, "", "too long")],
            4,
            "answers 413: too long",
        ),
    ] {
        let server = McpServer::older(replies);
        let run = TestProject::new().run(&["mcp", "call", &server.url(), "say"]);
        run.exits(code).says(&[said]);
    }
    let mut long = b"data: ".to_vec();
    long.resize(17 << 20, b'x');
    let server = McpServer::older([Reply::Bytes(long)]);
    let run = TestProject::new().run(&["mcp", "call", &server.url(), "say"]);
    run.exits(4).says(&["has more than 16 MB"]);
}

#[test]
fn a_signal_takes_the_call_back() {
    let (silence, told) = Reply::hanging("");
    let server = McpServer::older([silence]);
    let project = TestProject::new();
    let child = project.start(&["mcp", "call", &server.url(), "say"]);
    told.recv().unwrap();
    interrupt(&project, child);
    assert_eq!(
        server.methods()[4..],
        ["tools/call", "notifications/cancelled"]
    );
}
