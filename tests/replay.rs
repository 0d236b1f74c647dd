//! Runs that take their replies from an earlier run.

use std::fs;

use serde_json::Value;

use crate::support::{Answer, Finished, ModelServer, TestProject};

/// A project in the state it had before any run.
fn fresh() -> TestProject {
    TestProject::new().build("echo building; test -e ok")
}

/// The same project without keys, with the recorded run.
fn offline(recorded: &Finished, project: TestProject) -> TestProject {
    let project = project
        .without("agent-config/gemini-key.txt")
        .without("agent-config/openai-key.txt");
    let folder = project.path("recorded");
    fs::create_dir(&folder).unwrap();
    for file in recorded.files() {
        fs::write(folder.join(&file), recorded.bytes(&file)).unwrap();
    }
    project
}

fn without_times(mut result: Value) -> Value {
    result["started"] = Value::Null;
    result["log"] = Value::Null;
    result["seconds"] = Value::Null;
    for attempt in result["attempts"].as_array_mut().unwrap() {
        attempt["seconds"] = Value::Null;
        if attempt["build"].is_object() {
            attempt["build"]["seconds"] = Value::Null;
        }
    }
    result
}

/// Returns the steps without times.
#[track_caller]
fn steps(run: &Finished) -> Vec<serde_json::Value> {
    let lines = run.logged("steps.jsonl");
    let steps = lines.lines().map(|line| {
        let mut step: serde_json::Value = serde_json::from_str(line).unwrap();
        step["seconds"] = 0.into();
        step["at"] = 0.into();
        if step["build"].is_object() {
            step["build"]["seconds"] = 0.into();
        }
        step
    });
    steps.collect()
}

fn logs_the_same(replayed: &Finished, recorded: &Finished) {
    assert_eq!(replayed.files(), recorded.files());
    for file in &recorded.files() {
        match file.as_str() {
            "result.json" => {}
            "steps.jsonl" => assert_eq!(steps(replayed), steps(recorded)),
            file => assert_eq!(replayed.logged(file), recorded.logged(file), "{file}"),
        }
    }
    assert_eq!(
        without_times(replayed.result()),
        without_times(recorded.result())
    );
    assert_eq!(replayed.code, recorded.code);
}

#[test]
fn a_replay_needs_no_key_and_logs_what_the_run_logged() {
    for (server, model) in [
        (
            ModelServer::gemini(&["^^^a\n1\n^^^end\n", "^^^ok\n^^^end\n"]),
            "gemini-2.5-pro",
        ),
        (
            ModelServer::openai(&["^^^a\n1\n^^^end\n", "^^^ok\n^^^end\n"]),
            "gpt-5",
        ),
    ] {
        let project = fresh().with(&server);
        let recorded = project.run(&["--model", model]).exits(0);
        // The recorded model is used, without being named.
        let again = offline(&recorded, fresh());
        let replayed = again.run(&["--replay", "recorded"]).exits(0);
        logs_the_same(&replayed, &recorded);
        assert_eq!(again.read("a"), "1\n");
    }
}

#[test]
fn a_run_is_found_by_its_name_below_logs() {
    let server = ModelServer::gemini(&["^^^ok\n^^^end\n"]);
    let project = fresh().with(&server);
    let recorded = project.run(&[]).exits(0);
    let name = recorded.folder;
    let path = format!("logs/{name}");
    for run in [&name, &path] {
        project.run(&["--replay", run]).exits(0);
    }
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_recorded_failure_fails_again() {
    let server = ModelServer::start([Answer::new(
        400,
        &[],
        "{\"error\": {\"message\": \"too long\"}}",
    )]);
    let project = fresh().with(&server);
    let recorded = project.run(&[]).exits(4);
    let replayed = offline(&recorded, fresh())
        .run(&["--replay", "recorded"])
        .exits(4);
    logs_the_same(&replayed, &recorded);
    replayed.says(&["answered `400`: too long"]);
}

#[test]
fn a_run_that_goes_further_than_the_recording_says_so() {
    let server = ModelServer::gemini(&["^^^ok\n^^^end\n"]);
    let project = fresh().with(&server);
    let recorded = project.run(&[]).exits(0);
    let again = offline(&recorded, fresh().build("exit 1"));
    again
        .run(&["--replay", "recorded"])
        .exits(4)
        .says(&["the recorded run has no `repair-query-1-response.json`"]);
}

#[test]
fn another_model_than_the_recorded_one_is_a_usage_error() {
    let server = ModelServer::gemini(&["^^^ok\n^^^end\n"]);
    let project = fresh().with(&server);
    let recorded = project.run(&[]).exits(0);
    let again = offline(&recorded, fresh());
    again
        .run(&["--replay", "recorded", "--model", "gpt-5"])
        .exits(2)
        .says(&["was made with `gemini-2.5-pro`, not with `gpt-5`", "hint:"]);
}

#[test]
fn a_report_is_replayed_too() {
    let server = ModelServer::gemini(&["A report."]);
    let project = fresh().with(&server);
    let recorded = project.run(&["--cc"]).exits(0);
    let again = offline(&recorded, fresh());
    logs_the_same(
        &again.run(&["--cc", "--replay", "recorded"]).exits(0),
        &recorded,
    );
    assert_eq!(
        again.read("agent-config/consistency-report.txt"),
        "A report."
    );
}

#[test]
fn a_recorded_error_counts_whatever_its_answer_says() {
    // An error status with a body that looks like a reply.
    let body = crate::support::gemini("^^^a\n1\n^^^end\n");
    let server = ModelServer::start([Answer::error(400, &body)]);
    let recorded = fresh().with(&server).run(&[]).exits(4);
    let again = offline(&recorded, fresh());
    logs_the_same(&again.run(&["--replay", "recorded"]).exits(4), &recorded);
    assert!(!again.path("a").exists());
}

#[test]
fn a_reply_that_begins_like_an_error_is_a_reply() {
    let server = ModelServer::gemini(&["ERROR\nis what I found.\n^^^ok\n^^^end\n"]);
    let recorded = fresh().with(&server).run(&[]).exits(0);
    logs_the_same(
        &offline(&recorded, fresh())
            .run(&["--replay", "recorded"])
            .exits(0),
        &recorded,
    );
}

#[test]
fn a_replay_takes_the_recorded_query() {
    let server = ModelServer::gemini(&["^^^ok\n^^^end\n"]);
    let first = fresh()
        .file("agent-config/query.txt", "Make it ok.\n")
        .with(&server);
    let recorded = first.run(&[]).exits(0);
    let project = offline(&recorded, fresh().without("agent-config/query.txt"));
    let run = project.run(&["--replay", "recorded"]).exits(0);
    assert!(run.logged("initial-query.txt").contains("Make it ok."));
    // Input on the command line takes precedence.
    let project = offline(&recorded, fresh());
    let run = project
        .run(&["--replay", "recorded", "-m", "Another."])
        .exits(0);
    assert!(run.logged("initial-query.txt").contains("Another."));
}
