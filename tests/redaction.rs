//! Keys, which never leave the process, whatever the output.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::support::{Answer, Finished, GEMINI_KEY, ModelServer, OPENAI_KEY, TestProject};

const FROM_ENVIRONMENT: &str = "environment-key-0123456789-Xx";

/// Checks that no file of the run and no output contains a key.
#[track_caller]
fn shows_no_key(run: &Finished) {
    let mut texts: Vec<(String, String)> = run
        .files()
        .into_iter()
        .map(|file| (file.clone(), run.logged(&file)))
        .collect();
    texts.push(("stdout".into(), run.stdout.clone()));
    texts.push(("stderr".into(), run.stderr.clone()));
    for (name, text) in texts {
        for key in [GEMINI_KEY, OPENAI_KEY, FROM_ENVIRONMENT] {
            for form in [
                key.to_owned(),
                STANDARD.encode(key),
                hex(key),
                key.replace('/', "%2F").replace('+', "%2B"),
            ] {
                assert!(!text.contains(&form), "{name} shows `{form}`");
            }
        }
    }
}

fn hex(key: &str) -> String {
    key.bytes().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_build_that_prints_the_keys_is_censored_in_log_and_prompt() {
    let server = ModelServer::gemini(&["^^^fail\n^^^end", "^^^fail\n^^^delete\n"]);
    let build = format!(
        "cat agent-config/*-key.txt; printf {}; sleep 0; echo {}; base64 -w0 < agent-config/gemini-key.txt; echo {FROM_ENVIRONMENT}; test ! -e fail",
        &GEMINI_KEY[..9],
        &GEMINI_KEY[9..],
    );
    let project = TestProject::new()
        .with(&server)
        .variable("OPENAI_API_KEY", FROM_ENVIRONMENT)
        .build(&build);
    let run = project.run(&["--sandbox", "off"]).exits(0);
    shows_no_key(&run);
    let log = run.logged("initial-build.txt");
    for shown in ["[REDACTED]Zz", "[REDACTED]Yy", "[REDACTED]Xx"] {
        assert!(log.contains(shown), "{log}");
    }
    let query = server.requests()[1].user();
    assert!(
        query.contains("[REDACTED]Zz")
            && !query.contains(GEMINI_KEY)
            && !query.contains(OPENAI_KEY)
    );
}

#[test]
fn a_server_that_echoes_the_key_is_censored() {
    let body = json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": format!("bad key {GEMINI_KEY} and {}", hex(OPENAI_KEY))}});
    let server = ModelServer::start([Answer::error(400, &body)]);
    let run = TestProject::new()
        .with(&server)
        .run(&[])
        .exits(4)
        .says(&["bad key [REDACTED]Zz and [REDACTED]Yy"]);
    shows_no_key(&run);
    assert!(
        run.logged("initial-query-response.json")
            .contains("[REDACTED]Zz")
    );
    assert!(
        run.result()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("[REDACTED]Zz")
    );
}

#[test]
fn a_reply_that_shows_the_key_is_censored_in_the_log() {
    let server = ModelServer::gemini(&[&format!(
        "The key is {GEMINI_KEY}, in base64 {}.",
        STANDARD.encode(format!("x{OPENAI_KEY}y"))
    )]);
    let run = TestProject::new().with(&server).run(&[]).exits(0);
    shows_no_key(&run);
    assert!(
        run.logged("initial-query-response.txt")
            .contains("[REDACTED]Zz")
    );
}

#[test]
fn a_path_that_holds_the_key_is_censored_in_errors() {
    let server = ModelServer::gemini(&[&format!("^^^../{GEMINI_KEY}\n^^^end\n")]);
    let run = TestProject::new().with(&server).run(&[]).exits(5);
    shows_no_key(&run);
}

#[test]
fn possible_credentials_are_not_sent() {
    let token = format!("ghp_{}", "a0".repeat(18));
    let server = ModelServer::gemini(&["Nothing to do."; 2]);
    let project = TestProject::new()
        .with(&server)
        .file("a", "\n")
        .file("src/b.rs", format!("fn b() {{}}\nlet t = \"{token}\";\n"))
        .file("agent-config/query.txt", format!("Use {GEMINI_KEY}.\n"))
        .file(
            "agent-config/codeRollup.txt",
            format!("--- a ---\n\n--- src/b.rs ---\nfn b() {{}}\nlet t = \"{token}\";\n"),
        );
    for flags in [&[][..], &["--cc"]] {
        let refused = project.run(flags).exits(3).says(&[
            "what looks like credentials would be sent:",
            "`agent-config/query.txt`, line 1: an API key of this project",
            "`agent-config/codeRollup.txt`, line 5 (`src/b.rs`, line 2): a GitHub token",
            "hint: remove them, or pass `--allow-secrets`",
        ]);
        assert!(!refused.stderr.contains("ghp_") && !refused.stderr.contains(GEMINI_KEY));
    }
    assert!(server.requests().is_empty() && project.runs().is_empty());
    let run = project.run(&["--allow-secrets"]).exits(0).says(&[
        "warning: what looks like credentials is sent, as allowed:",
        "(`src/b.rs`, line 2): a GitHub token",
    ]);
    shows_no_key(&run);
    let sent = server.requests()[0].user();
    assert!(sent.contains(&token) && sent.contains("Use [REDACTED]Zz."));
}

#[test]
fn keys_in_the_inputs_do_not_travel_even_where_secrets_may() {
    let server = ModelServer::gemini(&["Nothing to do."]);
    let project = TestProject::new().with(&server).file(
        "agent-config/codeRollup.txt",
        format!("key = {OPENAI_KEY}\n"),
    );
    let run = project
        .run(&["--allow-secrets"])
        .exits(0)
        .says(&["warning: an API key stands in the query or the code base"]);
    shows_no_key(&run);
    assert!(server.requests()[0].user().contains("key = [REDACTED]Yy"));
}

#[test]
fn the_report_is_censored() {
    let server = ModelServer::gemini(&[&format!("Found {GEMINI_KEY}.")]);
    let project = TestProject::new().with(&server);
    let run = project.run(&["--cc"]).exits(0);
    shows_no_key(&run);
    assert_eq!(
        project.read("agent-config/consistency-report.txt"),
        "Found [REDACTED]Zz."
    );
}

#[test]
fn keys_in_a_reply_do_not_travel_back_with_the_repair() {
    let reply = format!("^^^src/{GEMINI_KEY}.txt\nkey = {OPENAI_KEY}\n^^^end\n");
    let server = ModelServer::gemini(&[&reply, "^^^ok\n^^^end\n"]);
    let run = TestProject::new()
        .with(&server)
        .build("test -e ok")
        .run(&[])
        .exits(0);
    shows_no_key(&run);
    let repair = server.requests()[1].user();
    assert!(
        repair.contains("--- FILE REPLACEMENT src/[REDACTED]Zz.txt ---\nkey = [REDACTED]Yy\n"),
        "{repair}"
    );
    assert!(run.logged("repair-query-1.txt").ends_with(&repair));
}

#[test]
fn a_key_on_the_command_line_is_censored() {
    let project = TestProject::new().variable("GEMINI_API_KEY", FROM_ENVIRONMENT);
    let run = project.run(&["--timeout", FROM_ENVIRONMENT]).exits(2);
    assert!(
        !run.stderr.contains(FROM_ENVIRONMENT) && run.stderr.contains("[REDACTED]Xx"),
        "{}",
        run.stderr
    );
}

#[test]
fn placeholders_in_the_environment_are_not_keys() {
    let server = ModelServer::gemini(&["Nothing to do."]);
    let project = TestProject::new()
        .with(&server)
        .variable("OPENAI_API_KEY", "none");
    project
        .file("agent-config/codeRollup.txt", "x.is_none()\n")
        .run(&[])
        .exits(0);
    assert!(server.requests()[0].user().contains("x.is_none()"));
}

/// Replies that copy the mark for a secret do not replace the secret by it.
#[test]
fn a_mark_for_a_secret_is_not_written_in_its_place() {
    let copied = "^^^src/main.rs\nlet key = \"[REDACTED]Zz\";\nlet other = 1;\n^^^end\n";
    let moved = "^^^src/new.rs\nlet key = \"[REDACTED]Zz\";\n^^^end\n";
    let named = "^^^src/[REDACTED]Zz.rs\n^^^end\n";
    // As a build's output is shown.
    let shown = "^^^src/main.rs\n[REDACTED: a GitHub token]\n^^^end\n";
    let server = ModelServer::gemini(&[copied, moved, named, shown]);
    let token = format!("ghp_{}", "a0".repeat(18));
    let main = format!("let key = \"{GEMINI_KEY}\";\nlet token = \"{token}\";\n");
    let project = TestProject::new()
        .with(&server)
        .file("src/main.rs", &main)
        .file(
            "agent-config/codeRollup.txt",
            format!("--- src/main.rs ---\n{main}"),
        );
    let (key, token) = ("[REDACTED]Zz", "[REDACTED: a GitHub token]");
    for (path, mark) in [
        ("src/main.rs", key),
        ("src/new.rs", key),
        ("src/[REDACTED]Zz.rs", key),
        ("src/main.rs", token),
    ] {
        let run = project.run(&["--allow-secrets"]).exits(5);
        run.says(&[&format!(
            "line 1: `{path}`: `{mark}` stands for a secret in prompts and logs"
        )]);
    }
    assert_eq!(project.read("src/main.rs"), main);
    assert_eq!(fs::read_dir(project.path("src")).unwrap().count(), 1);
}

/// A project may have marks in its sources: those of other secrets, and those that were there before.
#[test]
fn marks_that_stand_for_no_secret_are_written() {
    let reply =
        "^^^src/main.rs\n// [REDACTED]Zz\nnew()\n^^^end\n^^^test.rs\n[REDACTED]ey\n^^^end\n";
    let server = ModelServer::gemini(&[reply]);
    let project = TestProject::new()
        .with(&server)
        .file("src/main.rs", "// [REDACTED]Zz\nold()\n")
        .file(
            "agent-config/codeRollup.txt",
            "--- src/main.rs ---\n// [REDACTED]Zz\nold()\n",
        );
    let run = project.run(&[]).exits(0);
    assert!(run.result()["attempts"][0]["redacted"].is_null());
    project.run(&["undo"]).exits(0);
    // Its record may be replayed, too.
    project.run(&["--replay", &run.folder]).exits(0);
    assert_eq!(project.read("test.rs"), "[REDACTED]ey\n");
}

/// An edit in the log may not find what was redacted in it.
#[test]
fn attest_says_that_an_edits_record_lacks_a_secret() {
    const SECRET: &str = "dev-pass-1234-word";
    let reply = format!(
        "^^^src/main.rs\n^^^find\nconnect(\"{SECRET}\")\n^^^put\nconnect()\n^^^end\n^^^done 1\n"
    );
    let server = ModelServer::gemini(&[&reply]);
    let main = format!("connect(\"{SECRET}\")\n");
    let project = TestProject::new()
        .with(&server)
        .variable("DB_PASSWORD", SECRET)
        .file("src/main.rs", &main)
        .file(
            "agent-config/codeRollup.txt",
            format!("--- src/main.rs ---\n{main}"),
        );
    let run = project
        .run(&["--allow-secrets", "--reply-format", "edits"])
        .exits(0);
    assert_eq!(run.result()["attempts"][0]["redacted"], true);
    project
        .run(&["attest"])
        .exits(1)
        .says(&["initial-query-response.txt` lacks a secret that was redacted"]);
}

/// The log of a reply lacks the secrets in it, so it is not applied from there; and nothing can be proven of it.
#[test]
fn a_reply_whose_record_lacks_a_secret_is_not_applied_again() {
    const SECRET: &str = "dev-pass-1234-word";
    let reply = format!("^^^src/main.rs\nconnect(\"{SECRET}\")\n^^^end\n");
    let fixed = "^^^src/main.rs\nfixed()\n^^^end\n";
    let server = ModelServer::gemini(&[&reply, &reply, &reply, &reply, &reply, fixed]);
    let project = TestProject::new().with(&server);
    let known = project.clone().variable("DB_PASSWORD", SECRET);
    let run = known.run(&[]).exits(0);
    assert!(known.read("src/main.rs").contains(SECRET));
    assert_eq!(run.result()["attempts"][0]["redacted"], true);
    known
        .run(&["attest"])
        .exits(1)
        .says(&["initial-query-response.txt` lacks a secret that was redacted"]);
    known.run(&["undo"]).exits(0);
    let refused = ["`src/main.rs`: `[REDACTED]` stands for a secret in prompts and logs"];
    known
        .run(&["--replay", &run.folder])
        .exits(5)
        .says(&refused);

    let known = known.build("grep fixed src/main.rs");
    let run = known.run(&["--on-failure", "revert"]).exits(1);
    // Where the secret is not known, either.
    let unknown = TestProject::within(&known.path("."), ".")
        .with(&server)
        .build("grep fixed src/main.rs");
    for flag in ["--resume", "--replay"] {
        unknown.run(&[flag, &run.folder]).exits(5).says(&refused);
        assert_eq!(unknown.read("src/main.rs"), "fn main() {}\n");
    }
    unknown
        .run(&["--resume", &run.folder, "--reask", "1"])
        .exits(0);
    assert_eq!(unknown.read("src/main.rs"), "fixed()\n");
}
