//! Failures as seen by a supervisor: the reason, whether a retry may help, and every problem as data.

use serde_json::{Value, json};

use crate::machine::{fits, schema};
use crate::support::{Answer, Finished, ModelServer, TestProject, gemini};

const EDIT: &str = "^^^a\nb\n^^^end\n";

fn json_of(project: &TestProject, arguments: &[&str]) -> (Finished, Value) {
    let run = project.run(&[arguments, &["--output-format", "json"]].concat());
    let printed = serde_json::from_str(&run.stdout).unwrap();
    fits(&schema("result"), &printed);
    (run, printed)
}

/// Checks the reason, whether the same command may succeed later, and the status from the server.
#[track_caller]
fn ends(project: &TestProject, arguments: &[&str], told: (i32, &str, bool, Option<u16>)) -> Value {
    let (run, printed) = json_of(project, arguments);
    let (code, reason, retryable, status) = told;
    let error = &printed["error"];
    assert_eq!(printed["exit"]["code"], run.code);
    let found = (run.code, error["reason"].as_str().unwrap_or_default());
    assert_eq!(found, (code, reason), "{printed:#}");
    assert_eq!(error["retryable"], retryable, "{printed:#}");
    assert_eq!(error["http_status"], json!(status), "{printed:#}");
    printed
}

fn failing(status: u16, error: &Value) -> TestProject {
    let answer = || Answer::error(status, &json!({ "error": error }));
    TestProject::new().with(&ModelServer::start([0; 8].map(|_| answer())))
}

#[test]
fn a_call_that_fails_says_if_it_may_succeed_later() {
    let short = &["--timeout", "1s"][..];
    for (project, arguments, told) in [
        (
            failing(401, &json!({"message": "no"})),
            &[][..],
            (4, "key-rejected", false, Some(401)),
        ),
        (
            failing(429, &json!({"message": "slow"})),
            short,
            (4, "busy", true, Some(429)),
        ),
        (
            failing(
                429,
                &json!({"status": "RESOURCE_EXHAUSTED", "details": [{"violations": [{"quotaId": "RequestsPerDay"}]}]}),
            ),
            &[],
            (4, "busy", true, Some(429)),
        ),
        (
            failing(
                429,
                &json!({"status": "RESOURCE_EXHAUSTED", "message": "Your prepayment credits are depleted."}),
            ),
            &[],
            (4, "quota", false, Some(429)),
        ),
        (
            failing(402, &json!({"message": "pay"})),
            &[],
            (4, "quota", false, Some(402)),
        ),
        (
            failing(408, &json!({"message": "slow"})),
            short,
            (4, "network", true, Some(408)),
        ),
        (
            failing(413, &json!({"message": "large"})),
            &[],
            (4, "window", false, Some(413)),
        ),
        (
            failing(
                400,
                &json!({"message": "The input token count (12) exceeds what the model takes (9)."}),
            ),
            &[],
            (4, "window", false, Some(400)),
        ),
        (
            failing(503, &json!({"message": "busy"})),
            short,
            (4, "busy", true, Some(503)),
        ),
        (
            failing(404, &json!({"message": "none"})),
            &[],
            (4, "server", false, Some(404)),
        ),
        (
            TestProject::new().variable("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:1"),
            short,
            (4, "network", true, None),
        ),
        (
            TestProject::new().with(&ModelServer::start([Answer::new(200, &[], "<html>")])),
            &[],
            (4, "server", false, None),
        ),
        (cut("SAFETY"), &[], (4, "refused", false, None)),
        (cut("MAX_TOKENS"), &[], (4, "cut-short", false, None)),
    ] {
        let printed = ends(&project, arguments, told);
        let log = printed["log"].as_str().unwrap();
        assert!(
            log.starts_with("logs/") && project.path(log).is_dir(),
            "{log}"
        );
        let error = &printed["error"];
        let only = json!([{"message": error["message"], "hint": error["hint"]}]);
        assert_eq!(error["problems"], only);
    }
}

fn cut(finish: &str) -> TestProject {
    let mut answer = gemini(EDIT);
    answer["candidates"][0]["finishReason"] = finish.into();
    TestProject::new().with(&ModelServer::start([Answer::json(&answer)]))
}

#[test]
fn a_project_that_is_not_ready_lists_its_problems() {
    let bare = TestProject::new()
        .without("agent-config/query.txt")
        .without("agent-config/gemini-key.txt");
    let printed = ends(&bare, &[], (3, "missing-input", false, None));
    assert_eq!(printed["log"], Value::Null);
    let problems = printed["error"]["problems"].as_array().unwrap();
    let messages: Vec<_> = problems.iter().map(|one| &one["message"]).collect();
    assert_eq!(
        messages,
        [
            "`agent-config/query.txt` is missing",
            "`agent-config/gemini-key.txt` is missing"
        ]
    );
    assert!(problems.iter().all(|one| one["hint"].is_string()));

    let rolled = "--- a ---\nold\n";
    for (project, arguments, reason) in [
        (
            TestProject::new().without("agent-config/gemini-key.txt"),
            &[][..],
            "no-key",
        ),
        (
            TestProject::new().file("agent-config/models.json", "{"),
            &[],
            "settings",
        ),
        (
            TestProject::new()
                .file("a", "new\n")
                .file("agent-config/codeRollup.txt", rolled),
            &[],
            "stale",
        ),
        (
            TestProject::new().build("exit 1"),
            &["--baseline"],
            "baseline",
        ),
        (TestProject::new(), &["--max-cost", "0.000001"], "budget"),
        (
            TestProject::new().file("agent-config/query.txt", "AKIAIOSFODNN7EXAMPLQ is it\n"),
            &[],
            "credentials-found",
        ),
    ] {
        ends(&project, arguments, (3, reason, false, None));
    }
}

#[test]
fn a_project_that_another_run_holds_may_be_free_later() {
    let (answer, asked) = Answer::silence();
    let project = TestProject::new().with(&ModelServer::start([answer]));
    let mut first = project.start(&[]);
    asked.recv().unwrap();
    let locked = ends(&project, &[], (3, "locked", true, None));
    // Of several problems, the permanent one counts.
    let project = project.without("agent-config/query.txt");
    let both = ends(&project, &[], (3, "missing-input", false, None));
    first.kill().unwrap();
    first.wait().unwrap();
    let count = |told: &Value| told["error"]["problems"].as_array().unwrap().len();
    assert_eq!((count(&locked), count(&both)), (1, 2));
}

#[test]
fn a_rejected_reply_says_which_rule_it_breaks() {
    for (reply, reason) in [
        ("^^^a\nb\n", "malformed"),
        ("^^^.git/x\ny\n^^^end\n", "path"),
        ("Nothing.", "no-edits"),
    ] {
        let project = TestProject::new().with(&ModelServer::gemini(&[reply]));
        ends(&project, &["--require-edits"], (5, reason, false, None));
    }
    let old: String = (0..50).map(|nth| format!("line {nth}\n")).collect();
    let project = TestProject::new()
        .file("a", &old)
        .file("agent-config/codeRollup.txt", format!("--- a ---\n{old}"))
        .with(&ModelServer::gemini(&[
            "^^^a\nline 0\n^^^end\n^^^../b\n^^^end\n",
        ]));
    let printed = ends(&project, &[], (5, "incomplete-code", false, None));
    assert_eq!(printed["error"]["problems"].as_array().unwrap().len(), 2);
}

#[test]
fn a_build_that_fails_is_reported_as_such() {
    let server = ModelServer::gemini(&[EDIT; 4]);
    let project = TestProject::new().with(&server).build("exit 1");
    ends(&project, &[], (1, "build", false, None));
    let changes = "echo >> .gitignore";
    let server = ModelServer::gemini(&[EDIT]);
    let project = TestProject::new().with(&server).build(changes);
    ends(
        &project,
        &["--sandbox", "off"],
        (1, "gate-changed", false, None),
    );
}

#[test]
fn a_wrong_command_line_has_its_record_too() {
    for (arguments, hint) in [
        (&["--modle", "gpt-5"][..], "see `code-commit --help`"),
        (&["dev", "--frobnicate"], "allowed are"),
        (&["--reask", "often"], "see `code-commit --help`"),
        (&["add a flag"], "ask for a change by"),
    ] {
        let (run, printed) = json_of(&TestProject::new(), arguments);
        assert_eq!((run.code, &printed["exit"]["name"]), (2, &json!("usage")));
        let error = &printed["error"];
        assert_eq!(
            (&error["reason"], &error["retryable"]),
            (&json!("usage"), &json!(false))
        );
        let message = error["message"].as_str().unwrap();
        assert!(
            !message.is_empty() && !message.contains("Usage"),
            "{message}"
        );
        assert!(run.stderr.contains(message), "{message}\n{}", run.stderr);
        assert!(error["hint"].as_str().unwrap().contains(hint), "{error:#}");
        // JSON was not requested.
        assert_eq!(TestProject::new().run(arguments).exits(2).stdout, "");
    }
    let run = TestProject::new()
        .run(&["--output-format=jsonl", "--frobnicate"])
        .exits(2);
    let line: Value = serde_json::from_str(&run.stdout).unwrap();
    fits(&schema("events"), &line);
    assert_eq!(line["result"]["error"]["reason"], "usage");
}

#[test]
fn the_runs_folder_is_named_however_it_ends() {
    for (reply, code) in [(EDIT, 0), ("^^^a\nb\n", 5)] {
        let project = TestProject::new().with(&ModelServer::gemini(&[reply]));
        let run = project.run(&["-q"]).exits(code);
        let log = format!("logs/{}", run.folder);
        assert_eq!(run.result()["log"], log);
        let said = if code == 0 { &run.stdout } else { &run.stderr };
        assert!(said.contains(&format!("log: {log}\n")), "{said}");
    }
}
