//! Models behind deployments in Azure: requests, and the messages for errors.

use serde_json::{Value, json};

use crate::support::agent::{AgentProject, PASS};
use crate::support::azure::AzureApi;
use crate::support::orchestra::{AZURE_KEY, calls, says};
use crate::support::{Answer, ModelServer, TestProject, openai};

const DEPLOYMENT: &str = "/openai/deployments/gpt-4o-ours/chat/completions";
const WRITE: &str = "^^^a\nx\n^^^end\n";

/// A table whose default model is a deployment, with these additional fields.
fn table(more: &str) -> String {
    format!(
        r#"{{"models": {{"az": {{"provider": "azure", "id": "gpt-4o-ours"{more}}}}}, "selectionRules": {{"default": "az"}}}}"#
    )
}

/// A project that uses a deployment of the resource named by the variables.
fn project(server: &ModelServer, more: &str) -> TestProject {
    TestProject::new()
        .file("agent-config/models.json", table(more))
        .variable("AZURE_OPENAI_BASE_URL", &server.url())
        .variable("AZURE_OPENAI_API_KEY", AZURE_KEY)
}

#[test]
fn a_deployment_is_asked_in_azures_form_and_its_replies_are_replayed() {
    let server = ModelServer::openai(&["^^^ok\nx\n^^^end\n", "^^^ok\nyes\n^^^end\n"]);
    let project = project(&server, "").build("grep yes ok");
    let run = project.run(&["--stream", "--tier", "flex"]).exits(0);
    let asked = server.requests();
    for request in &asked {
        assert_eq!(
            request.line,
            format!("POST {DEPLOYMENT}?api-version=2024-10-21 HTTP/1.1")
        );
        assert_eq!(request.header("api-key"), Some(AZURE_KEY));
        assert_eq!(request.header("authorization"), None);
        let body = request.json();
        let fields: Vec<&String> = body.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["messages", "model", "max_completion_tokens"]);
        assert_eq!(body["model"], "gpt-4o-ours");
        assert_eq!(body["max_completion_tokens"], 4000);
        assert_eq!(body["messages"][0]["role"], "system");
        assert!(body["messages"][1]["content"].is_string());
    }
    assert_eq!(asked.len(), 2);
    // A deployment may serve a model other than its name suggests, so there is no warning.
    let result = run.result();
    assert_eq!(result["attempts"][0].get("served"), None);
    assert_eq!(result["base_urls"]["az"], server.url());
    assert!(!run.stderr.contains("` answered") && !run.stderr.contains("usual server"));
    assert!(!run.logged("initial-query.txt").contains(AZURE_KEY));
    std::fs::remove_file(project.path("ok")).unwrap();
    project.run(&["--replay", &run.folder]).exits(0);
    assert_eq!(project.read("ok"), "yes\n");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn an_entry_has_a_server_a_version_a_key_and_limits_of_its_own() {
    for (path, version, line) in [
        (
            "",
            r#", "apiVersion": "2025-04-01-preview""#,
            format!("{DEPLOYMENT}?api-version=2025-04-01-preview"),
        ),
        ("/openai/v1", "", "/openai/v1/chat/completions".to_owned()),
        (
            "/openai/v1/",
            r#", "apiVersion": "preview""#,
            "/openai/v1/chat/completions?api-version=preview".to_owned(),
        ),
    ] {
        let server = ModelServer::openai(&[WRITE]);
        let more = format!(
            r#", "baseUrl": "{}{path}", "keyFile": "ours.txt", "maxOutputTokens": 9000, "temperature": 0.5{version}"#,
            server.url()
        );
        let project = TestProject::new()
            .file("agent-config/models.json", table(&more))
            .file("agent-config/ours.txt", "ours-0123456789abcdef")
            .variable("AZURE_OPENAI_API_KEY", AZURE_KEY)
            .variable("AZURE_OPENAI_BASE_URL", "https://elsewhere.test");
        project.run(&[]).exits(0);
        let asked = &server.requests()[0];
        assert_eq!(asked.line, format!("POST {line} HTTP/1.1"));
        assert_eq!(asked.header("api-key"), Some("ours-0123456789abcdef"));
        let body = asked.json();
        assert_eq!(
            (&body["max_completion_tokens"], &body["temperature"]),
            (&json!(9000), &json!(0.5))
        );
    }
}

#[test]
fn missing_or_invalid_settings_are_named_before_any_call() {
    let server = ModelServer::start([]);
    let nothing = TestProject::new().file("agent-config/models.json", table(""));
    nothing.run(&[]).exits(3).says(&[
        "`agent-config/azure-key.txt` is missing",
        "or set `AZURE_OPENAI_API_KEY`",
        "no server is named: `AZURE_OPENAI_BASE_URL` is not set",
        "hint: set `AZURE_OPENAI_BASE_URL` to something like `https://NAME.openai.azure.com`",
    ]);
    project(&server, "")
        .variable("AZURE_OPENAI_BASE_URL", "http://r.openai.azure.com")
        .run(&[])
        .exits(3)
        .says(&["`AZURE_OPENAI_BASE_URL` is `http://r.openai.azure.com`: plain http"]);
    for (more, expected) in [
        (
            r#", "apiVersion": "a&b=c""#,
            "`a&b=c` is not a version of Azure's API",
        ),
        (
            r#", "reasoningEffort": "low""#,
            "`reasoningEffort` and `serviceTier` are not for the provider `azure`",
        ),
        (
            r#", "serviceTier": "flex""#,
            "`reasoningEffort` and `serviceTier` are not for the provider `azure`",
        ),
    ] {
        project(&server, more).run(&[]).exits(3).says(&[expected]);
    }
    let slashed = table("").replace("gpt-4o-ours", "ours/gpt:4");
    project(&server, "")
        .file("agent-config/models.json", slashed)
        .run(&[])
        .exits(3)
        .says(&["`ours/gpt:4` is not the name of a deployment"]);
    assert!(server.requests().is_empty());
}

#[test]
fn a_full_deployment_is_asked_again_when_azure_says() {
    let busy =
        json!({"error": {"code": "429", "message": "Requests have exceeded the rate limit."}});
    let busy = Answer::new(
        429,
        &[
            ("content-type", "application/json"),
            ("retry-after-ms", "7"),
            ("retry-after", "60"),
        ],
        busy.to_string(),
    );
    let server = ModelServer::start([busy, says(WRITE)]);
    project(&server, "")
        .run(&[])
        .exits(0)
        .says(&["the server answered 429; try 2 in 0.0s"]);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn permanent_errors_are_reported_at_once_in_azures_words() {
    let filter = json!({"error": {"code": "content_filter", "status": 400, "param": "prompt",
        "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
        "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {
            "jailbreak": {"filtered": true, "detected": true}, "hate": {"filtered": false, "severity": "safe"}}}}});
    let key = json!({"error": {"code": "401",
        "message": "Access denied due to invalid subscription key or wrong API endpoint."}});
    let deployment = json!({"error": {"code": "DeploymentNotFound",
        "message": "The API deployment for this resource does not exist."}});
    let mut filtered = openai("");
    filtered["choices"][0]["finish_reason"] = "content_filter".into();
    filtered["choices"][0]["content_filter_results"] =
        json!({"violence": {"filtered": true, "severity": "high"}});
    for (answer, expected) in [
        (
            Answer::error(400, &filter),
            [
                "`400` `content_filter`: The response was filtered",
                "policy. (filtered: jailbreak)",
                "hint: change the wording",
            ],
        ),
        (
            Answer::error(401, &key),
            [
                "`401`: Access denied due to invalid subscription key",
                "`AZURE_OPENAI_API_KEY`",
                "`AZURE_OPENAI_BASE_URL`",
            ],
        ),
        // The gateway in front of the service sends no message.
        (
            Answer::new(401, &[], ""),
            [
                "answered `401`\n",
                "`AZURE_OPENAI_API_KEY`",
                "`AZURE_OPENAI_BASE_URL`",
            ],
        ),
        (
            Answer::error(404, &deployment),
            [
                "`404` `DeploymentNotFound`: The API deployment",
                "`AZURE_OPENAI_DEPLOYMENT`",
                "`AZURE_OPENAI_BASE_URL`",
            ],
        ),
        (
            Answer::json(&filtered),
            [
                "ended with `content_filter`",
                "filtered: violence (high)",
                "hint: the reply was not applied",
            ],
        ),
    ] {
        let server = ModelServer::start([answer, says(WRITE)]);
        let run = project(&server, "").run(&[]).exits(4).says(&expected);
        assert_eq!(server.requests().len(), 1);
        for others in [
            "retry",
            "gemini",
            "has the model been retired",
            "OPENAI_API_KEY` to",
        ] {
            assert!(!run.stderr.contains(others), "{}", run.stderr);
        }
    }
}

/// Runs an agent whose model is a deployment with this form of tool calls.
fn worked(tools: &str, replies: Vec<Answer>) -> ModelServer {
    let server = ModelServer::start(replies);
    let more = format!(r#", "tools": "{tools}""#);
    let agent = AgentProject::at(&server.url())
        .with_file("agent-config/models.json", &table(&more))
        .with_variable("AZURE_OPENAI_BASE_URL", &server.url())
        .with_variable("AZURE_OPENAI_API_KEY", AZURE_KEY);
    agent.run(&["--model", "az", "-p", "Do it"]).exits(0);
    server
}

fn native() -> ModelServer {
    let mut broken = openai("");
    let call = |id: &str, arguments: &str| {
        json!({"id": id, "type": "function",
            "function": {"name": "WRITE_FILE", "arguments": arguments}})
    };
    broken["choices"][0]["message"] = json!({"role": "assistant", "content": null, "tool_calls": [
        call("w1", r#"{"path":"a.txt","content":"x\n"}"#), call("w2", r#"{"path": "#), call("w3", r#""b.txt""#)]});
    broken["choices"][0]["finish_reason"] = "tool_calls".into();
    worked(
        "native",
        vec![
            Answer::json(&broken),
            calls(&[
                ("READ_FILE", json!({"path": "a.txt"})),
                ("NO_SUCH_TOOL", json!({})),
                ("READ_FILE", json!({"path": "none.txt"})),
            ]),
            calls(&[("DONE", json!({"summary": "Written."}))]),
            says(PASS),
        ],
    )
}

#[test]
fn every_call_of_a_reply_goes_back_with_one_result_of_its_own_in_their_order() {
    let server = native();
    let requests = server.requests();
    let mut conversation = requests[0].json()["messages"].clone();
    for (later, ids) in requests[1..3]
        .iter()
        .zip([["w1", "w2", "w3"], ["call_0", "call_1", "call_2"]])
    {
        let body = later.json();
        let messages = body["messages"].as_array().unwrap();
        let before = conversation.as_array().unwrap().len();
        let (asked, results) = (&messages[before], &messages[before + 1..]);
        assert_eq!(asked["role"], "assistant");
        let told = |result: &Value| result["tool_call_id"].as_str().unwrap().to_owned();
        let sent: Vec<&str> = asked["tool_calls"]
            .as_array()
            .unwrap()
            .iter()
            .map(|call| call["id"].as_str().unwrap())
            .collect();
        assert_eq!(sent, ids);
        let results = results
            .iter()
            .take_while(|message| message["role"] == "tool");
        assert_eq!(results.map(told).collect::<Vec<_>>(), ids);
        conversation = body["messages"].clone();
    }
    let written = &requests[1].json()["messages"];
    let mut asked = written.as_array().unwrap().iter();
    let asked = asked.rfind(|message| message.get("tool_calls").is_some());
    let arguments = |nth: usize| asked.unwrap()["tool_calls"][nth]["function"]["arguments"].clone();
    assert_eq!(
        [arguments(0), arguments(1), arguments(2)],
        [
            r#"{"path":"a.txt","content":"x\n"}"#,
            r#"{"path": "#,
            r#""b.txt""#
        ]
    );
}

#[test]
fn azures_own_description_takes_every_request() {
    let Some(api) = AzureApi::installed() else {
        return;
    };
    let answer = |words: &str| says(&json!({"answer": words}).to_string());
    let commit = ModelServer::openai(&["^^^ok\nx\n^^^end\n", "^^^ok\nyes\n^^^end\n"]);
    project(&commit, r#", "temperature": 1, "promptOrder": "cached""#)
        .build("grep yes ok")
        .run(&["--stream", "--tier", "flex"])
        .exits(0);
    let json = worked("json", vec![answer("Done."), answer(PASS)]);
    assert_eq!(
        json.requests()[0].json()["response_format"]["type"],
        "json_schema"
    );
    let mut count = 0;
    for server in [commit, json, native()] {
        for request in server.requests() {
            api.takes(&request);
            count += 1;
        }
    }
    assert!(count >= 8, "{count}");
    let message = |role: &str| json!({"role": role, "content": "x"});
    for (body, is_taken) in [
        (json!({"messages": [message("system")]}), true),
        (json!({"messages": [message("developer")]}), false),
        (
            json!({"messages": [message("system")], "stream_options": {}}),
            false,
        ),
        (json!({"messages": [message("tool")]}), false),
    ] {
        assert_eq!(api.faults(&body).is_empty(), is_taken, "{body}");
    }
}
