//! Failed and retried calls.

use std::net::TcpListener;

use serde_json::json;

use crate::support::{Answer, Finished, ModelServer, TestProject, gemini, openai};

/// Runs against a server with these answers, and checks that nothing was applied.
#[track_caller]
fn fails(answers: Vec<Answer>, arguments: &[&str], expected: &[&str]) -> (Finished, ModelServer) {
    let server = ModelServer::start(answers);
    let project = TestProject::new().with(&server);
    let before = project.tree();
    let run =
        project
            .run(arguments)
            .exits(4)
            .says(expected)
            .says(&["error: ", "hint: ", "log: logs/"]);
    assert_eq!(project.tree(), before);
    let logged = run.logged("initial-query-response.txt");
    assert!(logged.starts_with("ERROR\n"), "{logged}");
    assert!(
        run.stderr.contains(logged.lines().nth(1).unwrap()),
        "{logged}"
    );
    assert_eq!(run.result()["exit"]["name"], "model-failed");
    assert_eq!(
        run.result()["attempts"][0]["edits"],
        serde_json::Value::Null
    );
    (run, server)
}

const GPT_5: &[&str] = &["--model", "gpt-5"];

#[test]
fn a_reply_that_is_not_whole_is_never_applied() {
    let text = "^^^a\nx\n^^^end\n";
    for finish in [
        "MAX_TOKENS",
        "SAFETY",
        "RECITATION",
        "MALFORMED_FUNCTION_CALL",
    ] {
        let mut answer = gemini(text);
        answer["candidates"][0]["finishReason"] = finish.into();
        let (run, _) = fails(vec![Answer::json(&answer)], &[], &[&format!("`{finish}`")]);
        // The call was billed all the same.
        assert_eq!(run.result()["attempts"][0]["finish"], finish);
        assert_eq!(run.result()["attempts"][0]["usage"]["output_tokens"], 20);
        assert_eq!(run.result()["model_version"], "gemini-2.5-pro-test");
        assert_eq!(
            run.logged("initial-query-response.json"),
            answer.to_string()
        );
    }
    for finish in ["length", "content_filter", "tool_calls"] {
        let mut answer = openai(text);
        answer["choices"][0]["finish_reason"] = finish.into();
        fails(
            vec![Answer::json(&answer)],
            GPT_5,
            &[&format!("`{finish}`")],
        );
    }
}

#[test]
fn every_kind_of_non_answer_has_its_own_message() {
    let mut refused = openai("x");
    refused["choices"][0]["message"] =
        json!({"role": "assistant", "content": null, "refusal": "I will not."});
    let mut no_parts = gemini("x");
    no_parts["candidates"][0]["content"] = json!({"role": "model"});
    let no_finish = json!({"candidates": [{"content": {"parts": [{"text": "x"}]}}]});
    let plain = |body: &str| Answer::new(200, &[], body);
    for (answer, arguments, expected) in [
        (
            Answer::json(&json!({"promptFeedback": {"blockReason": "SAFETY"}})),
            &[][..],
            "blocked the prompt: `SAFETY`",
        ),
        (
            Answer::json(&refused),
            GPT_5,
            "refused to answer: I will not.",
        ),
        (Answer::json(&no_parts), &[], "has no text"),
        (Answer::json(&openai("")), GPT_5, "has no text"),
        (Answer::json(&no_finish), &[], "no finish reason"),
        (Answer::json(&json!([gemini("x")])), &[], "a JSON array"),
        (
            plain("<html>gateway</html>"),
            &[],
            "begins `<html>gateway</html>`",
        ),
        (plain(""), &[], "no content at all"),
        (
            plain("{\"candidates\": [{\"content\":"),
            &[],
            "ends in the middle of its JSON",
        ),
        (
            Answer::new(200, &[], b"{\"a\": \"\xff\"}"),
            &[],
            "not valid UTF-8",
        ),
        (
            Answer::new(200, &[("content-encoding", "gzip")], "x"),
            &[],
            "compressed as `gzip`",
        ),
        (
            Answer::new(307, &[("location", "http://127.0.0.1:1/")], ""),
            &[],
            "a redirect to `http://127.0.0.1:1/`",
        ),
        (
            Answer::Raw(b"SSH-2.0-OpenSSH\r\n\r\n".to_vec()),
            &[],
            "failed",
        ),
    ] {
        fails(vec![answer], arguments, &[expected]);
    }
}

#[test]
fn permanent_errors_are_not_retried() {
    let bad_key = json!({"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT",
        "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]}});
    let spent = json!([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "quota", "details": [
        {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]}]}}]);
    let no_money = json!({"error": {"message": "You exceeded your quota", "type": "insufficient_quota", "code": "insufficient_quota"}});
    for (status, body, arguments, expected) in [
        (
            400,
            &bad_key,
            &[][..],
            &[
                "answered `400` `INVALID_ARGUMENT`: API key not valid.",
                "hint: the vendor does not accept the key",
            ][..],
        ),
        (
            401,
            &json!({"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}),
            GPT_5,
            &[
                "`401`",
                "does not accept the key",
                "into `agent-config/openai-key.txt`\n",
            ],
        ),
        (
            404,
            &json!({"error": {"message": "gone", "status": "NOT_FOUND"}}),
            &[],
            &["`404`", "has the model been retired"],
        ),
        (429, &spent, &[], &["`429`", "hint: the quota is spent"]),
        (
            429,
            &no_money,
            GPT_5,
            &["`429`", "hint: the quota is spent"],
        ),
    ] {
        let (run, server) = fails(vec![Answer::error(status, body)], arguments, expected);
        assert_eq!(server.requests().len(), 1);
        assert_eq!(run.logged("initial-query-response.json"), body.to_string());
    }
}

#[test]
fn transient_errors_are_retried_as_the_server_asks() {
    let unavailable = || Answer::new(503, &[("retry-after", "0.01")], "busy");
    let retry_info = json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [{"retryDelay": "0.01s"}]}});
    let server = ModelServer::start([
        unavailable(),
        Answer::new(429, &[("retry-after-ms", "5")], "{}"),
        Answer::error(429, &retry_info),
        Answer::new(529, &[("retry-after", "0.001")], ""),
        Answer::json(&gemini("Nothing to do.")),
    ]);
    let run = TestProject::new().with(&server).run(&[]).exits(0);
    run.says(&[
        "the server answered 503; try 2 in 0.0s",
        "429; try 3",
        "429; try 4",
        "529; try 5",
    ]);
    assert_eq!(server.requests().len(), 5);
    let bodies: Vec<_> = server
        .requests()
        .iter()
        .map(|request| request.body.clone())
        .collect();
    assert!(bodies.iter().all(|body| *body == bodies[0]));
}

#[test]
fn five_tries_are_enough() {
    let answers = (0..6)
        .map(|_| {
            Answer::new(
                500,
                &[("retry-after", "0.01")],
                "{\"error\": {\"message\": \"oops\"}}",
            )
        })
        .collect();
    let (_, server) = fails(answers, &[], &["answered `500`: oops (after 5 tries)"]);
    assert_eq!(server.requests().len(), 5);
}

#[test]
fn a_broken_connection_is_tried_again() {
    let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"candidates\"".to_vec();
    let server = ModelServer::start([
        Answer::close(),
        Answer::Raw(cut),
        Answer::json(&gemini("Nothing to do.")),
    ]);
    let run = TestProject::new().with(&server).run(&[]).exits(0);
    run.says(&["the connection failed", "try 2", "try 3"]);
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let project = TestProject::new().variable(
        "GOOGLE_GEMINI_BASE_URL",
        &format!("http://127.0.0.1:{port}"),
    );
    let run = project.run(&["--timeout", "2s"]).exits(4);
    run.says(&["try 2", "hint: "]);
}

#[test]
fn a_silent_model_is_given_up_after_the_time_out() {
    let (silence, _told) = Answer::silence();
    let (run, _) = fails(
        vec![silence],
        &["--timeout", "1s"],
        &["did not finish its answer within 1s", "--timeout"],
    );
    assert!(run.result()["seconds"].as_f64().unwrap() < 20.0);
}

#[test]
fn a_wait_longer_than_the_time_out_is_not_begun() {
    let answer = Answer::new(429, &[("retry-after", "3600")], "{}");
    fails(
        vec![answer],
        &["--timeout", "60s"],
        &["the next try would be in 1h"],
    );
}

#[test]
fn an_answer_beyond_the_limit_is_not_read() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n".to_vec();
    fails(vec![Answer::Raw(head)], &[], &["larger than 256 MiB"]);
}

#[test]
fn plain_http_never_goes_through_a_proxy() {
    let server = ModelServer::gemini(&["Nothing to do."]);
    let proxy = ModelServer::start([]);
    let project = TestProject::new()
        .with(&server)
        .variable("HTTPS_PROXY", &proxy.url())
        .variable("HTTP_PROXY", &proxy.url());
    project.run(&[]).exits(0);
    assert!(proxy.requests().is_empty());
}

#[test]
fn https_goes_through_the_proxy_that_the_environment_names() {
    let proxy = ModelServer::start([Answer::new(403, &[], "")]);
    let project = TestProject::new()
        .variable("GOOGLE_GEMINI_BASE_URL", "https://api.invalid")
        .variable("HTTPS_PROXY", &proxy.url());
    project.run(&["--timeout", "5s"]).exits(4);
    assert_eq!(proxy.requests()[0].line, "CONNECT api.invalid:443 HTTP/1.1");
    assert!(proxy.requests()[0].header("x-goog-api-key").is_none());
}

#[test]
fn the_last_failure_is_reported_when_there_is_no_time_for_another_try() {
    let busy = || {
        Answer::new(
            503,
            &[],
            "{\"error\": {\"message\": \"overloaded\", \"status\": \"UNAVAILABLE\"}}",
        )
    };
    let answers = vec![busy(), busy(), busy()];
    let (run, _) = fails(
        answers,
        &["--timeout", "1s"],
        &[
            "`503` `UNAVAILABLE`: overloaded",
            "the next try would be in",
        ],
    );
    assert!(
        run.logged("initial-query-response.json")
            .contains("overloaded")
    );
}

#[test]
fn an_answer_that_comes_before_the_upload_is_over_is_read() {
    // The server answers after the head and closes the connection, while the client is still sending.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; 100];
        std::io::Read::read_exact(&mut stream, &mut head).unwrap();
        let answer = b"HTTP/1.1 413 Too Large\r\ncontent-length: 33\r\nconnection: close\r\n\r\n{\"error\": {\"message\": \"too big\"}}";
        std::io::Write::write_all(&mut stream, answer).unwrap();
    });
    let project = TestProject::new()
        .variable("GOOGLE_GEMINI_BASE_URL", &url)
        .file(
            "agent-config/models.json",
            r#"{"models": {"gemini-2.5-pro": {"contextWindow": 100000000}}}"#,
        )
        .file("agent-config/codeRollup.txt", "x\n".repeat(10_000_000));
    project
        .run(&["--timeout", "30s"])
        .exits(4)
        .says(&["answered `413`"]);
    server.join().unwrap();
}

#[test]
fn odd_figures_do_not_make_a_reply_worse() {
    let mut answer = gemini("Nothing to do.");
    answer["usageMetadata"] =
        json!({"promptTokenCount": 1.5, "candidatesTokenCount": -1, "thoughtsTokenCount": "x"});
    let server = ModelServer::start([Answer::json(&answer)]);
    let run = TestProject::new().with(&server).run(&[]).exits(0);
    assert_eq!(run.result()["attempts"][0]["usage"]["input_tokens"], 0);
}

#[test]
fn vendor_text_cannot_move_the_cursor() {
    let mut answer = gemini("x");
    answer["candidates"][0]["finishReason"] = "\u{1b}[2J\u{7}BAD".into();
    let (run, _) = fails(vec![Answer::json(&answer)], &[], &["BAD"]);
    assert!(!run.stderr.contains(['\u{1b}', '\u{7}']), "{}", run.stderr);
}
