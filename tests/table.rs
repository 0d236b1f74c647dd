//! The table of models: other models, other servers, and the model for each task.

use crate::support::terminal::in_terminal;
use crate::support::{Answer, ModelServer, OPENAI_KEY, TestProject, openai};

/// A model behind `server` that needs no key.
fn local(server: &ModelServer) -> String {
    format!(
        r#"{{"models": {{"local": {{"provider": "openai", "id": "tiny:1b", "baseUrl": "{}/v1", "contextWindow": 100000,
            "maxOutputTokens": 500, "reasoningEffort": "low", "price": {{"input": 0, "output": 0}}}}}},
            "selectionRules": {{"default": "local"}}}}"#,
        server.url()
    )
}

#[test]
fn a_local_server_is_asked_without_a_key_in_the_words_it_knows() {
    let server = ModelServer::openai(&["^^^a\nb\n^^^end\n"]);
    let project = TestProject::new()
        .without("agent-config/gemini-key.txt")
        .file("agent-config/models.json", local(&server));
    let run = project.run(&[]).exits(0);
    let asked = &server.requests()[0];
    assert_eq!(asked.line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(asked.header("authorization"), None);
    let body = asked.json();
    assert_eq!(body["model"], "tiny:1b");
    assert_eq!(body["messages"][0]["role"], "system");
    assert_eq!(body["max_tokens"], 500);
    assert_eq!(body["reasoning_effort"], "low");
    assert!(body.get("max_completion_tokens").is_none() && body.get("stream").is_none());
    let result = run.result();
    assert_eq!(result["model"], "local");
    assert_eq!(result["attempts"][0]["model"], "local");
    assert_eq!(result["cost"].as_f64(), Some(0.0));
}

#[test]
fn a_repair_may_be_another_models_work_and_is_replayed_with_it() {
    let server = ModelServer::openai(&["^^^ok\nx\n^^^end\n", "^^^ok\nyes\n^^^end\n"]);
    let json = format!(
        r#"{{"models": {{"a": {{"provider": "openai", "baseUrl": "{0}/v1"}}, "b": {{"provider": "openai", "baseUrl": "{0}/v1"}}}},
            "selectionRules": {{"byTaskType": {{"commit": "a", "repair": "b"}}}}}}"#,
        server.url()
    );
    let project = TestProject::new()
        .file("agent-config/models.json", json)
        .build("grep yes ok");
    let run = project.run(&[]).exits(0);
    let asked: Vec<_> = server
        .requests()
        .iter()
        .map(|asked| asked.json()["model"].clone())
        .collect();
    assert_eq!(asked, ["a", "b"]);
    let attempts = &run.result()["attempts"];
    assert_eq!(
        (&attempts[0]["model"], &attempts[1]["model"]),
        (&"a".into(), &"b".into())
    );
    // Without stated prices, the cost is unknown.
    assert_eq!(run.result()["cost"], serde_json::Value::Null);
    std::fs::remove_file(project.path("ok")).unwrap();
    project.run(&["--replay", &run.folder]).exits(0);
    assert_eq!(server.requests().len(), 2);
    // `--model` names the model of all queries.
    let project = project.file("agent-config/openai-key.txt", OPENAI_KEY);
    project
        .run(&["--replay", &run.folder, "--model", "b"])
        .exits(2)
        .says(&["was made with `a`, not with `b`"]);
}

#[test]
fn the_prices_make_the_cost() {
    let server = ModelServer::openai(&["Nothing to do."]);
    let project = TestProject::new().with(&server);
    let run = project
        .run(&["--model", "gpt-5"])
        .exits(0)
        .says(&["100 tokens in (10 cached), 20 out (30 thought), $0.00061"]);
    // 90 x 1.25 + 10 x 0.125 + 50 x 10, for a million.
    assert_eq!(
        run.result()["attempts"][0]["cost"].as_f64(),
        Some(0.000_614)
    );
    assert_eq!(run.result()["cost"].as_f64(), Some(0.000_614));
}

#[test]
fn a_mistake_in_the_table_is_reported_with_its_position_and_nothing_is_sent() {
    let server = ModelServer::start([]);
    let project = TestProject::new().with(&server).file(
        "agent-config/models.json",
        "{\"models\": {\n  \"x\": {\"provder\": \"openai\"}}}",
    );
    for arguments in [
        &[][..],
        &["--model", "x"],
        &["--cc"],
        &["--dry-run"],
        &["models"],
    ] {
        project.run(arguments).exits(3).says(&[
            "`agent-config/models.json` is invalid: line 2, column 17: unknown field `provder`",
        ]);
    }
    assert!(server.requests().is_empty());
    project.run(&["undo"]).exits(2);
}

#[test]
fn models_lists_what_is_there_and_what_each_is_missing() {
    let server = ModelServer::start([]);
    let project = TestProject::new()
        .without("agent-config/openai-key.txt")
        .file("agent-config/models.json", local(&server));
    let listed = project.run(&["models"]).exits(0).stdout;
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(
        lines,
        [
            "model              provider      window   output  $/M in  $/M out",
            "gemini-2.5-pro     gemini     1,048,576   65,536   $1.25   $10.00",
            "gpt-5              openai       272,000  128,000   $1.25   $10.00",
            "    `agent-config/openai-key.txt` is missing",
            "local              openai       100,000      500      $0       $0  for commit, repair, consistency",
            "claude-fable-5-1   anthropic  1,000,000  128,000  $10.00   $50.00",
            "    `agent-config/anthropic-key.txt` is missing",
            "claude-opus-5-5    anthropic  1,000,000  128,000   $4.00   $20.00",
            "    `agent-config/anthropic-key.txt` is missing",
            "claude-sonnet-5-5  anthropic  1,000,000  128,000   $2.00   $10.00",
            "    `agent-config/anthropic-key.txt` is missing",
            "claude-haiku-5-5   anthropic  1,000,000  128,000   $0.10    $0.50",
            "    `agent-config/anthropic-key.txt` is missing",
        ]
    );
    let json: serde_json::Value = serde_json::from_str(
        &project
            .run(&["models", "--output-format", "json"])
            .exits(0)
            .stdout,
    )
    .unwrap();
    assert_eq!(json["models"][2]["name"], "local");
    assert_eq!(
        json["models"][1]["missing"][0],
        "`agent-config/openai-key.txt` is missing"
    );
}

#[test]
fn models_lists_what_an_entry_says_of_itself() {
    let project = TestProject::new().file(
        "agent-config/models.json",
        r#"{"models": {"llama3.1:8b": {"displayName": "Llama 3.1 8B", "provider": "ollama", "contextWindow": 128000,
            "capabilities": ["tools"], "recommendedFor": ["planning"], "prompt": "Think.", "numCtx": 16384, "keepAlive": "1h"}},
            "selectionRules": {"byTaskType": {"planning": "llama3.1:8b"}}}"#,
    );
    let listed = project.run(&["models"]).exits(0).stdout;
    let lines: Vec<&str> = listed.lines().skip(3).take(2).collect();
    assert_eq!(
        lines,
        [
            "llama3.1:8b        ollama       128,000        ?       ?        ?  for planning",
            "    Llama 3.1 8B",
        ]
    );
    let json = project.run(&["models", "--output-format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json.exits(0).stdout).unwrap();
    let model = &json["models"][2];
    for (field, expected) in [
        ("displayName", serde_json::json!("Llama 3.1 8B")),
        ("provider", "ollama".into()),
        ("capabilities", ["tools"].into()),
        ("recommendedFor", ["planning"].into()),
        ("prompt", "Think.".into()),
        ("numCtx", 16384.into()),
        ("keepAlive", "1h".into()),
        ("tasks", ["planning"].into()),
        ("missing", serde_json::json!([])),
    ] {
        assert_eq!(model[field], expected, "{field}");
    }
    // Fields that the built-in entries lack are included, too.
    assert_eq!(json["models"][0]["displayName"], serde_json::Value::Null);
}

#[test]
fn unknown_model_is_reported_with_the_known_ones() {
    let server = ModelServer::start([]);
    let project = TestProject::new().file("agent-config/models.json", local(&server));
    project
        .run(&["--model", "gpt-6"])
        .exits(2)
        .says(&["there is no model `gpt-6`; known: gemini-2.5-pro, gpt-5, local"]);
}

#[test]
fn a_key_of_any_model_is_kept_out_of_the_log() {
    let key = "local-Key-0123456789-abcdef";
    let server = ModelServer::start([Answer::json(&openai(&format!("I saw {key}.")))]);
    let json = local(&server).replace(
        "\"contextWindow\"",
        "\"keyFile\": \"local-key.txt\", \"contextWindow\"",
    );
    let project = TestProject::new()
        .file("agent-config/models.json", json)
        .file("agent-config/local-key.txt", key);
    let run = project.run(&[]).exits(0);
    let authorization = server.requests()[0]
        .header("authorization")
        .map(str::to_owned);
    assert_eq!(authorization, Some(format!("Bearer {key}")));
    assert!(!run.logged("initial-query-response.txt").contains(key));
}

#[test]
fn a_key_file_that_git_does_not_ignore_is_noticed() {
    let server = ModelServer::start([]);
    let json = local(&server).replace(
        "\"contextWindow\"",
        "\"keyFile\": \"my.txt\", \"contextWindow\"",
    );
    let project = TestProject::new()
        .file("agent-config/models.json", json)
        .file("agent-config/my.txt", "local-Key-0123456789-abcdef")
        .file(
            ".gitignore",
            "/agent-config/*\n!/agent-config/my.txt\n/logs\n",
        );
    project
        .run(&[])
        .exits(3)
        .says(&["`.gitignore` does not ignore `/agent-config`"]);
}

#[test]
fn a_table_that_is_broken_does_not_make_its_keys_known() {
    let key = "local-Key-0123456789-abcdef";
    let project = TestProject::new()
        .file(
            "agent-config/models.json",
            r#"{"models": {"x": {"keyFile": "my.txt", "oops": 1}}}"#,
        )
        .file("agent-config/my.txt", key)
        .file("agent-config/query.txt", format!("Use {key}.\n"));
    let run = project.run(&[]).exits(3).says(&["unknown field `oops`"]);
    assert!(!run.stderr.contains(key), "{}", run.stderr);
}

#[test]
fn the_list_of_models_fits_a_narrow_terminal() {
    let server = ModelServer::start([]);
    let project = TestProject::new()
        .file("agent-config/models.json", local(&server))
        .variable("NO_COLOR", "1");
    for (columns, expected) in [
        (
            60,
            "local              openai       100,000      $0       $0\r\n    for commit, repair, consistency\r\n",
        ),
        (
            120,
            "local              openai       100,000      500      $0       $0  for commit, repair, consistency\r\n",
        ),
    ] {
        let Some((shown, code)) = in_terminal(&project.command(&["models"]), columns, &[]) else {
            return;
        };
        assert_eq!(code, 0);
        assert!(shown.contains(expected), "{shown}");
        let widest = shown.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(columns), "{shown}");
    }
}
