//! Models that break every rule: the messages sent to them, and the outcome.

use serde_json::{Value, json};

use crate::support::azure::AzureApi;
use crate::support::orchestra::{
    Branch, OrchestraProject, START, branch, calls, execute, raw_calls, report, says,
};
use crate::support::{Answer, openai};

/// Checks that every conversation has a result for each call, right after it and in order, and that the requests
/// conform to Azure's description.
#[track_caller]
fn holds(api: Option<&AzureApi>, orchestra: &OrchestraProject) {
    for request in orchestra.azure.requests() {
        if let Some(api) = api {
            api.takes(&request);
        }
        let body = request.json();
        let mut messages = body["messages"].as_array().unwrap().iter().peekable();
        while let Some(message) = messages.next() {
            assert_ne!(message["role"], "tool", "a result without a call: {body:#}");
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                let result = messages.next().unwrap();
                assert_eq!(result["role"], "tool", "{body:#}");
                assert_eq!(result["tool_call_id"], call["id"], "{body:#}");
            }
        }
    }
}

/// Returns the results of the calls in the last reply before the nth request.
fn results(orchestra: &OrchestraProject, nth: usize) -> Vec<Value> {
    let sent = orchestra.sent(nth);
    let last = sent.iter().rev().take_while(|told| told["role"] == "tool");
    let mut told: Vec<Value> = last
        .map(|told| serde_json::from_str(told["content"].as_str().unwrap()).unwrap())
        .collect();
    told.reverse();
    told
}

/// A reply with one call, whose arguments are used verbatim.
fn call(name: &str, arguments: &str) -> Answer {
    raw_calls("", &[("c".to_owned(), name, arguments.to_owned())])
}

/// A reply whose first choice has these fields.
fn choice(finish: &str, message: Value) -> Answer {
    let mut reply = openai("");
    reply["choices"][0]["finish_reason"] = finish.into();
    reply["choices"][0]["message"] = message;
    Answer::json(&reply)
}

#[test]
fn a_call_that_cannot_be_carried_out_has_an_error_as_its_result() {
    let api = AzureApi::installed();
    let foreign = format!(
        r#"{{"agent": "codex", "prompt": "x", "parent_branch_id": "{}"}}"#,
        branch(9)
    );
    let blank = r#"{"agent": "codex", "prompt": " \n"}"#;
    for (name, arguments, code) in [
        ("frobnicate", "{}", "unknown_tool"),
        ("", "{}", "unknown_tool"),
        ("execute_agent", "{\"agent\": \"co", "invalid_arguments"),
        ("execute_agent", "", "invalid_arguments"),
        ("execute_agent", "[1]", "invalid_arguments"),
        ("execute_agent", "null", "invalid_arguments"),
        ("execute_agent", r#""codex""#, "invalid_arguments"),
        ("execute_agent", r#"{"prompt": "x"}"#, "invalid_arguments"),
        (
            "execute_agent",
            r#"{"agent": "codex"}"#,
            "invalid_arguments",
        ),
        (
            "execute_agent",
            r#"{"agent": "codex", "prompt": 7}"#,
            "invalid_arguments",
        ),
        (
            "execute_agent",
            r#"{"agent": "gpt", "prompt": "x"}"#,
            "invalid_arguments",
        ),
        ("execute_agent", blank, "invalid_arguments"),
        ("execute_agent", &foreign, "wrong_parent"),
        ("read_artifact", r#"{"path": ""}"#, "invalid_arguments"),
        (
            "read_artifact",
            r#"{"path": "x", "branch_id": "other"}"#,
            "unknown_branch",
        ),
        ("read_artifact", r#"{"path": "missing"}"#, "mcp_error"),
    ] {
        let orchestra = OrchestraProject::clean_after([call(name, arguments)], []);
        let run = orchestra.run(&[]).exits(0);
        assert_eq!(report(&run)["status"], "completed");
        let told = results(&orchestra, 1);
        assert_eq!(told.len(), 1, "{name} {arguments}");
        assert_eq!(told[0]["status"], "error", "{name} {arguments}: {told:?}");
        let error = &told[0]["error"];
        assert_eq!(error["code"], code, "{name} {arguments}: {error}");
        assert!(error["message"].is_string() && error["hint"].is_string());
        if code == "wrong_parent" {
            assert!(error.to_string().contains(START), "{error}");
        }
        holds(api.as_ref(), &orchestra);
    }
}

#[test]
fn optional_arguments_cannot_override_project_and_parent_branch() {
    let api = AzureApi::installed();
    let prompt = "word ".repeat(200_000);
    for arguments in [
        json!({"agent": "codex", "prompt": "x", "project_name": "another"}),
        json!({"agent": "codex", "prompt": "x", "parent_branch_id": START}),
        json!({"agent": "codex", "prompt": "x", "parent_branch_id": ""}),
        json!({"agent": "codex", "prompt": prompt}),
    ] {
        let first = calls(&[("execute_agent", arguments.clone())]);
        let orchestra = OrchestraProject::clean_after([first], [Branch::done("done")]);
        orchestra.run(&[]).exits(0);
        let explored = &orchestra.pantheon.called("parallel_explore")[0];
        assert_eq!(explored["project_name"], "project");
        assert_eq!(explored["parent_branch_id"], START);
        assert_eq!(
            explored["shared_prompt_sequence"],
            json!([arguments["prompt"]])
        );
        assert_eq!(results(&orchestra, 1)[0]["status"], "success");
        holds(api.as_ref(), &orchestra);
    }
}

#[test]
fn calls_of_one_reply_are_carried_out_in_their_order() {
    let api = AzureApi::installed();
    let agent = |agent: &str| json!({"agent": agent, "prompt": agent}).to_string();
    for ids in [["a", "b", "c"], ["same", "same", "same"], ["", "", ""]] {
        let reply = raw_calls(
            r#"{"is_finished": true, "task": "t", "summary": "beside calls"}"#,
            &[
                (ids[0].to_owned(), "execute_agent", agent("claude_code")),
                (ids[1].to_owned(), "execute_agent", agent("gpt")),
                (ids[2].to_owned(), "execute_agent", agent("codex")),
            ],
        );
        let branches = [Branch::done("one"), Branch::done("two")];
        let orchestra = OrchestraProject::clean_after([reply], branches);
        let run = orchestra.run(&[]).exits(0);
        assert_eq!(report(&run)["summary"], "The flag is there.");
        let told = results(&orchestra, 1);
        let statuses: Vec<&Value> = told.iter().map(|told| &told["status"]).collect();
        assert_eq!(statuses, ["success", "error", "success"]);
        assert_eq!(told[0]["data"]["response"], "one");
        assert_eq!(told[2]["data"]["response"], "two");
        let explored = orchestra.pantheon.called("parallel_explore");
        assert_eq!(explored[1]["parent_branch_id"], branch(1));
        holds(api.as_ref(), &orchestra);
    }
}

#[test]
fn replies_without_a_call_or_a_report_are_asked_again() {
    let api = AzureApi::installed();
    let report_of =
        |is_finished| json!({"is_finished": is_finished, "task": "t", "summary": "s"}).to_string();
    for (name, reply) in [
        ("empty", says("")),
        ("blank", says(" \n")),
        (
            "null",
            choice("stop", json!({"role": "assistant", "content": null})),
        ),
        ("not finished", says(&report_of(false))),
        ("nothing done", says(&report_of(true))),
        ("no summary", says(r#"{"is_finished": true}"#)),
        (
            "wrong kind",
            says(r#"{"is_finished": "yes", "task": "t", "summary": "s"}"#),
        ),
        (
            "cut",
            choice("length", json!({"role": "assistant", "content": "so lo"})),
        ),
    ] {
        let orchestra = OrchestraProject::clean_after([reply], []);
        let run = orchestra.run(&[]);
        assert_eq!(run.code, 0, "{name}: {}", run.stderr);
        let sent = orchestra.sent(1);
        let last = sent.last().unwrap();
        assert_eq!(last["role"], "user", "{name}: {last}");
        holds(api.as_ref(), &orchestra);
    }
}

#[test]
fn a_report_may_stand_in_a_fence() {
    let told = json!({"is_finished": true, "task": "t", "summary": "fenced"});
    let orchestra = OrchestraProject::scripted(
        [
            execute("codex", "x"),
            says(&format!("```json\n{told:#}\n```")),
        ],
        [Branch::review("CLEAN")],
    );
    let run = orchestra.run(&["--no-publish"]).exits(0);
    assert_eq!(report(&run)["summary"], "fenced");
}

#[test]
fn error_of_the_deployment_ends_the_work_in_its_words() {
    let api = AzureApi::installed();
    let soon = |status: u16| {
        let body = json!({"error": {"code": status.to_string(), "message": "not now"}});
        Answer::new(status, &[("retry-after-ms", "1")], body.to_string())
    };
    let said = |status: u16, code: &str| {
        vec![Answer::error(
            status,
            &json!({"error": {"code": code, "message": "so says Azure"}}),
        )]
    };
    let refusal = json!({"role": "assistant", "content": null, "refusal": "I will not."});
    let mut filtered = openai("so");
    filtered["choices"][0]["finish_reason"] = "content_filter".into();
    filtered["choices"][0]["content_filter_results"] =
        json!({"violence": {"filtered": true, "severity": "high"}});
    for (name, answers, words) in [
        ("refusal", vec![choice("stop", refusal)], "I will not."),
        ("filtered reply", vec![Answer::json(&filtered)], "violence"),
        (
            "filtered prompt",
            said(400, "content_filter"),
            "so says Azure",
        ),
        ("wrong key", said(401, "401"), "so says Azure"),
        (
            "no deployment",
            said(404, "DeploymentNotFound"),
            "so says Azure",
        ),
        ("broken", (0..5).map(|_| soon(500)).collect(), "not now"),
        (
            "junk",
            (0..5)
                .map(|_| Answer::new(200, &[("retry-after-ms", "1")], "<html>"))
                .collect(),
            "",
        ),
    ] {
        let count = answers.len();
        let orchestra = OrchestraProject::scripted(answers, []);
        let run = orchestra.run(&[]);
        assert_eq!(run.code, 4, "{name}: {}", run.stderr);
        let told = report(&run);
        assert_eq!(told["status"], "failed", "{name}");
        assert_eq!(run.result()["exit"]["name"], "model-failed");
        assert!(run.stderr.contains(words), "{name}: {}", run.stderr);
        assert!(told["instructions"].as_str().unwrap().contains("dev-agent"));
        assert!(run.stderr.contains("hint: ") && !run.stderr.contains("config.json"));
        assert!(orchestra.azure.requests().len() <= count, "{name}");
        assert!(orchestra.pantheon.called("parallel_explore").is_empty());
    }
    let answers = [soon(429), soon(503), soon(500), soon(408)];
    let orchestra = OrchestraProject::clean_after(answers, []);
    let run = orchestra.run(&[]).exits(0);
    assert_eq!(run.stderr.matches("; try ").count(), 4, "{}", run.stderr);
    holds(api.as_ref(), &orchestra);
}
