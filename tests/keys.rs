//! Keys from the environment if the key file is missing, and keys that are entered.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::anthropic::{Anthropic, KEY as CHAT_KEY};
use crate::support::chat::ChatProject;
use crate::support::terminal::in_terminal;
use crate::support::{Answer, Finished, GEMINI_KEY, ModelServer, TestProject};

const KEY: &str = "AQ.Environment-Key_0123456789";
const OTHER_KEY: &str = "AQ.Other-Key_9876543210-abc";

/// A project without key files.
fn without_keys(server: &ModelServer) -> TestProject {
    TestProject::new()
        .with(server)
        .without("agent-config/gemini-key.txt")
        .without("agent-config/openai-key.txt")
}

fn sent_key(server: &ModelServer) -> Option<String> {
    let asked = server.requests().pop()?;
    let header = asked.header("x-goog-api-key");
    header.or(asked.header("authorization")).map(str::to_owned)
}

#[test]
fn the_vendors_variables_hold_the_key_without_a_file() {
    for (variables, arguments, expected) in [
        (&[("GEMINI_API_KEY", KEY)][..], &[][..], KEY),
        (&[("GOOGLE_API_KEY", KEY)], &[], KEY),
        (
            &[("GEMINI_API_KEY", KEY), ("GOOGLE_API_KEY", OTHER_KEY)],
            &[],
            KEY,
        ),
        (
            &[("GEMINI_API_KEY", ""), ("GOOGLE_API_KEY", OTHER_KEY)],
            &[],
            OTHER_KEY,
        ),
        (
            &[("OPENAI_API_KEY", KEY)],
            &["--model", "gpt-5"],
            "Bearer AQ.Environment-Key_0123456789",
        ),
    ] {
        let server = ModelServer::start([]);
        let project = variables
            .iter()
            .fold(without_keys(&server), |project, (name, value)| {
                project.variable(name, value)
            });
        project.run(arguments).exits(4);
        assert_eq!(sent_key(&server).as_deref(), Some(expected));
    }
}

#[test]
fn the_file_goes_first_and_the_dry_run_says_which_is_used() {
    let server = ModelServer::start([]);
    let project = TestProject::new()
        .with(&server)
        .variable("GEMINI_API_KEY", KEY);
    let run = project.run(&["--dry-run"]).exits(0);
    assert!(
        run.stdout
            .contains("key       agent-config/gemini-key.txt\n")
    );
    project.run(&[]).exits(4);
    assert_eq!(sent_key(&server).as_deref(), Some(GEMINI_KEY));

    let project = project.without("agent-config/gemini-key.txt");
    let run = project.run(&["--dry-run"]).exits(0);
    assert!(
        run.stdout.contains("key       GEMINI_API_KEY\n"),
        "{}",
        run.stdout
    );
    let json = project
        .run(&["--dry-run", "--output-format", "json"])
        .exits(0);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["keys"]["gemini-2.5-pro"], "GEMINI_API_KEY");
    let listed = project.run(&["models"]).exits(0).stdout;
    assert!(listed.contains("\n    key: GEMINI_API_KEY\n"), "{listed}");
}

fn not_ready(project: &TestProject, expected: &[&str]) -> Finished {
    project.run(&[]).exits(3).says(expected)
}

#[test]
fn a_refused_key_of_the_environment_is_named_by_its_variable() {
    let invalid = json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "API key not valid.",
        "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]}});
    for status in [400, 401] {
        let server = ModelServer::start([Answer::error(status, &invalid)]);
        let project = without_keys(&server).variable("GOOGLE_API_KEY", KEY);
        let run = project.run(&[]).exits(4).says(&[
            "hint: the vendor does not accept the key: set `GOOGLE_API_KEY` to a valid one",
        ]);
        assert!(!run.stderr.contains("key file"), "{}", run.stderr);
    }
}

#[test]
fn missing_key_names_file_and_variable_and_shows_no_value() {
    let server = ModelServer::start([]);
    let project = without_keys(&server);
    not_ready(
        &project,
        &[
            "`agent-config/gemini-key.txt` is missing\n",
            "hint: put the API key into `agent-config/gemini-key.txt`, or set `GEMINI_API_KEY`",
        ],
    );
    let project = project.variable("GOOGLE_API_KEY", "");
    not_ready(
        &project,
        &["`agent-config/gemini-key.txt` is missing, and `GOOGLE_API_KEY` is empty"],
    );
    for (value, expected) in [
        (
            "   ",
            "the key in the environment variable `GEMINI_API_KEY` is empty",
        ),
        ("SECRET PART", "`GEMINI_API_KEY` has a blank"),
        (
            "SECRET1\nSECRET2",
            "`GEMINI_API_KEY` has more than one line",
        ),
    ] {
        let project = without_keys(&server).variable("GEMINI_API_KEY", value);
        let run = not_ready(
            &project,
            &[expected, "set `GEMINI_API_KEY` to the API key alone"],
        );
        assert!(!run.stderr.contains("SECRET"), "{}", run.stderr);
    }
    assert!(server.requests().is_empty());
}

#[test]
fn a_server_of_an_entrys_own_gets_no_key_of_the_vendors() {
    let server = ModelServer::start([]);
    let entry = |key_file: &str| {
        format!(
            r#"{{"models": {{"own": {{"provider": "openai", "baseUrl": "{}/v1"{key_file}}}}}, "selectionRules": {{"default": "own"}}}}"#,
            server.url()
        )
    };
    let project = without_keys(&server).variable("OPENAI_API_KEY", KEY).file(
        "agent-config/models.json",
        entry(r#", "keyFile": "own.txt""#),
    );
    let run = not_ready(&project, &["`agent-config/own.txt` is missing"]);
    assert!(!run.stderr.contains("OPENAI_API_KEY"), "{}", run.stderr);
    let project = project.file("agent-config/models.json", entry(""));
    project.run(&[]).exits(4);
    assert_eq!(sent_key(&server), None);
}

#[test]
fn a_key_of_the_environment_reaches_no_build_and_no_log() {
    for mode in ["auto", "off"] {
        let server = ModelServer::gemini(&[&format!("I saw {KEY}.")]);
        let project = without_keys(&server)
            .variable("GEMINI_API_KEY", KEY)
            .build("echo \"the key: ${GEMINI_API_KEY-unset}\"");
        let run = project.run(&["--sandbox", mode]).exits(0);
        let build = run.logged("initial-build.txt");
        assert!(build.contains("the key: unset"), "{build}");
        assert!(!run.logged("initial-query-response.txt").contains(KEY));
    }
}

#[test]
fn a_key_is_typed_unseen_and_the_terminal_shows_again_what_is_typed_afterwards() {
    let server = Anthropic::start([]);
    let chat = ChatProject::new(&server).without_key();
    let login = chat.command(&["login"]);
    // The user signs in at a shell, which Ctrl-C does not end.
    let mut shell = Command::new("/bin/sh");
    shell
        .args([
            "-c",
            "trap : INT; \"$0\" chat login; echo \"code $?\"; stty -a",
        ])
        .arg(login.get_program())
        .current_dir(login.get_current_dir().unwrap())
        .envs(
            login
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
    for (typed, told, code) in [
        (format!("{CHAT_KEY}\n"), "Signed in as default", "code 0"),
        ("sk-\u{3}".to_owned(), "interrupted by SIGINT", "code 130"),
        ("\n".to_owned(), "the key is empty", "code 2"),
    ] {
        let Some((shown, _)) = in_terminal(&shell, 80, &[("API key: ", &typed)]) else {
            return;
        };
        for told in [told, code, " echo "] {
            assert!(shown.contains(told), "{told}: {shown}");
        }
        let is_seen = shown.contains("sk-") || shown.contains(CHAT_KEY);
        assert!(!is_seen && !shown.contains("-echo "), "{shown}");
    }
    assert_eq!(server.requests("GET /v1/models").len(), 1);
}

#[test]
fn a_key_file_that_holds_something_else_is_reported_before_it_is_sent() {
    for (content, problem) in [
        ("\"AQ.Key_0123456789\"\n", "is in quotes"),
        (
            "GEMINI_API_KEY=AQ.Key_0123456789\n",
            "begins with a variable's name and `=`",
        ),
        ("your-api-key-here\n", "is a placeholder"),
        ("AIza-PASTE-YOURS-HERE\n", "is a placeholder"),
        ("{\"private_key\": \"0123456789\"}\n", "is a JSON object"),
    ] {
        let server = ModelServer::start([]);
        let project = TestProject::new()
            .with(&server)
            .file("agent-config/gemini-key.txt", content);
        let said = format!("the key in `agent-config/gemini-key.txt` {problem}");
        let run = project
            .run(&[])
            .exits(3)
            .says(&[&said, "alone on one line"]);
        assert!(!run.stderr.contains("0123456789"), "{}", run.stderr);
        assert!(server.requests().is_empty());
    }
    // The key of another vendor is removed from the request, in every spelling.
    let server = ModelServer::start([Answer::json(&crate::support::gemini("Nothing."))]);
    let project = TestProject::new()
        .with(&server)
        .file(
            "agent-config/openai-key.txt",
            format!("OPENAI_API_KEY='{OTHER_KEY}'\n"),
        )
        .file("agent-config/query.txt", format!("Use {OTHER_KEY} here.\n"));
    project.run(&["--allow-secrets"]).exits(0);
    assert!(!server.requests()[0].user().contains(OTHER_KEY));
}
