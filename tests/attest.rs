//! Statements that attest a run, which can be reproduced from its folder.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::agent::{AgentProject, PASS, done, write};
use crate::support::{Answer, Finished, ModelServer, TestProject, gemini, skipped};

const REPLY: &str = "^^^src/main.rs\nfn main() { new() }\n^^^end\n^^^src/new.rs\nfn new() {}\n^^^end\n^^^gone\n^^^delete\n";

fn sha256(content: &str) -> String {
    use sha2::{Digest as _, Sha256};
    let digest = Sha256::digest(content);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A project in which a run has replaced, created and removed one file each.
fn attested(build: &str, replies: &[&str], arguments: &[&str]) -> (TestProject, Finished, Value) {
    let server = ModelServer::gemini(replies);
    let project = TestProject::new()
        .with(&server)
        .file("gone", "old\n")
        .build(build);
    let run = project.run(arguments).exits(0);
    let statement = state(&project);
    (project, run, statement)
}

/// Attests the last run, and returns the statement.
fn state(project: &TestProject) -> Value {
    project
        .run(&["attest", "last", "-o", "statement.json"])
        .exits(0);
    serde_json::from_str(&project.read("statement.json")).unwrap()
}

fn file<'s>(statement: &'s Value, path: &str) -> &'s Value {
    let files = statement["predicate"]["files"].as_array().unwrap();
    files.iter().find(|file| file["path"] == path).unwrap()
}

#[test]
fn a_statement_shows_the_result_and_what_it_was_made_from() {
    let (project, run, statement) = attested("echo built", &[REPLY], &[]);
    assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
    let (main, new) = ("fn main() { new() }\n", "fn new() {}\n");
    let list = format!(
        "-  gone\n{}  src/main.rs\n{}  src/new.rs\n",
        sha256(main),
        sha256(new)
    );
    let subject = [(".", &*list), ("src/main.rs", main), ("src/new.rs", new)].map(
        |(name, content)| serde_json::json!({"name": name, "digest": {"sha256": sha256(content)}}),
    );
    assert_eq!(statement["subject"], serde_json::json!(subject));
    let predicate = &statement["predicate"];
    assert_eq!(predicate["run"], format!("logs/{}", run.folder));
    assert_eq!(predicate["exit"]["name"], "done");
    let models = serde_json::json!({"asked": "gemini-2.5-pro", "served": "gemini-2.5-pro-test"});
    assert_eq!(predicate["model"], models);
    assert_eq!(predicate["attempts"][0]["model"], models);
    let is =
        |content: &str, digest: &Value| assert_eq!(digest["sha256"], sha256(content), "{content}");
    is(&project.read("build.sh"), &predicate["build.sh"]);
    is(&project.read("agent-config/query.txt"), &predicate["query"]);
    is(
        &project.read("agent-config/codeRollup.txt"),
        &predicate["codebase"],
    );
    let attempt = &predicate["attempts"][0];
    for (field, name) in [
        ("prompt", "initial-query.txt"),
        ("reply", "initial-query-response.txt"),
        ("answer", "initial-query-response.json"),
        ("build_log", "initial-build.txt"),
    ] {
        is(&run.logged(name), &attempt[field]["digest"]);
    }
    is("old\n", &file(&statement, "gone")["before"]);
    assert!(predicate["program"]["digest"]["sha256"].is_string());
    // Stdout gets the same bytes.
    let shown = project.run(&["attest"]).exits(0).stdout;
    assert_eq!(shown, project.read("statement.json"));
}

#[test]
fn a_statement_is_verified_whatever_has_become_of_the_project() {
    let (project, ..) = attested("echo built", &[REPLY], &[]);
    let verified = "3 files, made again from its reply\n";
    let run = project.run(&["verify", "statement.json"]).exits(0);
    assert!(run.stdout.ends_with(verified), "{}", run.stdout);
    let project = project.file("src/main.rs", "later\n").without("src/new.rs");
    project.run(&["verify", "statement.json"]).exits(0);
}

#[test]
fn whichever_byte_of_a_statement_is_changed_is_found_out() {
    let (project, ..) = attested("echo built", &[REPLY], &[]);
    let whole = project.read("statement.json");
    let parts = [
        "sha256\": \"",
        "\"path\": \"",
        "_type\": \"",
        "logs/",
        "\"code\": ",
        "asked\": \"",
        "\n",
        "cost\": ",
        "tree\": \"",
        "version\": \"",
        "program\"",
    ];
    for part in parts {
        for (at, _) in whole.match_indices(part).step_by(3) {
            let mut bytes = whole.clone().into_bytes();
            let at = (at + part.len()).min(bytes.len() - 1);
            bytes[at] = if bytes[at] == b'7' { b'8' } else { b'7' };
            fs::write(project.path("statement.json"), bytes).unwrap();
            project.run(&["verify", "statement.json"]).exits(1);
        }
    }
    let renamed = whole.replacen("\"gate\": null", "\"late\": null", 1);
    let project = project.file("statement.json", &renamed);
    project.run(&["verify", "statement.json"]).exits(1).says(&[
        "/predicate/late: nothing is recorded, not null",
        "/predicate/gate: null is recorded, not nothing",
    ]);
    let forged = whole.replace("gemini-2.5-pro", "gpt-5");
    project
        .file("statement.json", &forged)
        .run(&["verify", "statement.json"])
        .exits(1)
        .says(&["/predicate/model/asked: \"gemini-2.5-pro\" is recorded, not \"gpt-5\""]);
}

#[test]
fn a_log_that_was_edited_or_pruned_proves_nothing() {
    for (file, content, said) in [
        (
            "initial-query-response.txt",
            Some("^^^a\nb\n^^^end\n"),
            "what the recorded replies make of `gone` is not what",
        ),
        (
            "initial-query-response.txt",
            Some("^^^a\nb\n"),
            "the run cannot have applied",
        ),
        (
            "initial-query-response.txt",
            None,
            "initial-query-response.txt` is gone",
        ),
        (
            "initial-query.txt",
            Some("x"),
            "/predicate/attempts/0/prompt/digest/sha256",
        ),
        ("initial-build.txt", None, "initial-build.txt` is gone"),
        ("replaced/1", None, "replaced/1` is gone"),
        ("replaced/2", Some("other"), "replaced/2` is gone"),
        ("result.json", None, "has no record"),
        ("changes.json", Some("{"), "changes.json"),
        ("old-gate-build.txt", Some("x"), "/predicate/log/2/digest"),
        ("new-tests-build.txt", None, "/predicate/log/3"),
    ] {
        let reply = format!("{REPLY}^^^tests/it.rs\n#[test]\nfn it() {{}}\n^^^end\n");
        let flags = ["--gate", "report"];
        let (project, run, _) = attested("echo built", &[&reply], &flags);
        let path = format!("logs/{}/{file}", run.folder);
        fs::remove_file(project.path(&path)).unwrap();
        if let Some(content) = content {
            fs::write(project.path(&path), content).unwrap();
        }
        project
            .run(&["verify", "statement.json"])
            .exits(1)
            .says(&[said]);
    }
}

#[test]
fn a_log_without_end_is_not_read() {
    let (project, run, _) = attested("true", &[REPLY], &[]);
    let log = project.path(&format!("logs/{}/initial-build.txt", run.folder));
    let log = fs::File::options().write(true).open(log);
    log.unwrap().set_len(1 << 42).unwrap();
    let said = "initial-build.txt` is gone, or cannot be read";
    project.run(&["attest"]).exits(1).says(&[said]);
}

#[test]
fn a_build_that_formats_what_a_reply_wrote_is_reported_and_verified() {
    let build = "grep -q formatted src/main.rs || echo '// formatted' >> src/main.rs";
    let (project, _, statement) = attested(build, &[REPLY], &[]);
    let main = file(&statement, "src/main.rs");
    let replied = "fn main() { new() }\n";
    assert_eq!(main["replied"]["sha256"], sha256(replied));
    assert_eq!(
        main["after"]["sha256"],
        sha256(&format!("{replied}// formatted\n"))
    );
    project
        .file("src/main.rs", "later\n")
        .run(&["verify", "statement.json"])
        .exits(0);
}

#[test]
fn edits_are_made_again_in_what_a_build_has_left() {
    let replies = [
        "^^^src/main.rs\n^^^find\nfn main() {}\n^^^put\nfn main() { one() }\n^^^end\n^^^done 1\n",
        "^^^src/main.rs\n^^^find\n// formatted\n^^^put\n// two\n^^^end\n^^^gone\n^^^delete\n^^^done 2\n",
    ];
    let build = "grep -q two src/main.rs && exit; echo '// formatted' >> src/main.rs; exit 1";
    let (project, _, statement) = attested(build, &replies, &["--reply-format", "edits"]);
    let main = file(&statement, "src/main.rs");
    assert_eq!(
        main["replied"]["sha256"],
        sha256("fn main() { one() }\n// two\n")
    );
    let run = project
        .file("src/main.rs", "later\n")
        .run(&["verify", "statement.json"])
        .exits(0);
    assert!(
        run.stdout.contains("made again from 2 replies"),
        "{}",
        run.stdout
    );
}

#[test]
fn a_run_that_took_its_edits_back_is_attested_as_it_ended() {
    let broken = "^^^src/main.rs\nbroken\n^^^end\n^^^new\nx\n^^^end\n";
    let server = ModelServer::gemini(&[broken; 4]);
    let project = TestProject::new().with(&server).build("exit 1");
    project.run(&["--on-failure", "revert"]).exits(1);
    let statement = state(&project);
    assert_eq!(statement["predicate"]["tree"], "put-back");
    let main = file(&statement, "src/main.rs");
    assert_eq!(main["replied"]["sha256"], sha256("broken\n"));
    assert_eq!(main["after"], main["before"]);
    assert_eq!(statement["subject"].as_array().unwrap().len(), 2);
    project.run(&["verify", "statement.json"]).exits(0);
}

#[test]
fn a_run_in_a_scratch_tree_is_attested_as_any_other() {
    let build = "grep -q formatted src/main.rs || echo '// formatted' >> src/main.rs";
    let (project, _, statement) = attested(build, &[REPLY], &["--scratch"]);
    assert!(statement["predicate"]["scratch"]["how"].is_string());
    let main = file(&statement, "src/main.rs");
    let built = "fn main() { new() }\n// formatted\n";
    assert_eq!(main["after"]["sha256"], sha256(built));
    assert_eq!(project.read("src/main.rs"), built);
    project.run(&["verify", "statement.json"]).exits(0);
    // Changes that never reached the project are not part of the statement.
    let broken = "^^^src/main.rs\n^^^find\nfn main() {}\n^^^put\nbroken\n^^^end\n^^^done 1\n";
    let again = "^^^src/main.rs\n^^^find\nbroken\n^^^put\nfn main() {}\n^^^end\n^^^done 1\n";
    let server = ModelServer::gemini(&[broken, again, broken, again]);
    let project = TestProject::new().with(&server).build("exit 1");
    project
        .run(&["--scratch", "--reply-format", "edits"])
        .exits(1);
    let statement = state(&project);
    assert_eq!(statement["subject"].as_array().unwrap().len(), 1);
    project.run(&["verify", "statement.json"]).exits(0);
}

#[test]
fn each_call_has_the_model_that_was_served_if_its_vendor_tells() {
    let [mut first, mut second] = [(); 2].map(|()| gemini(REPLY));
    first["modelVersion"] = "gemini-2.5-pro-002".into();
    second.as_object_mut().unwrap().remove("modelVersion");
    let repair = gemini("^^^src/new.rs\nfn newer() {}\n^^^end\n");
    let server = ModelServer::start([first, second, repair].iter().map(Answer::json));
    let project = TestProject::new()
        .with(&server)
        .file("gone", "old\n")
        .build("grep -q newer src/new.rs");
    project.run(&["--attempts", "2"]).exits(0);
    let statement = state(&project);
    let attempts = statement["predicate"]["attempts"].as_array().unwrap();
    let mut served: Vec<_> = attempts
        .iter()
        .map(|attempt| attempt["model"].get("served").and_then(Value::as_str))
        .collect();
    // The order of the two requests is not defined.
    served[..2].sort_unstable();
    let told = ["gemini-2.5-pro-002", "gemini-2.5-pro-test"].map(Some);
    assert_eq!(served, [&[None][..], &told].concat());
    assert_eq!(
        statement["predicate"]["model"]["served"],
        "gemini-2.5-pro-test"
    );
    project.run(&["verify", "statement.json"]).exits(0);
}

#[test]
fn of_a_search_the_state_that_is_kept_is_attested() {
    // The number of findings equals the number of lines.
    let reply = |lines: &str| format!("^^^src/main.rs\n{lines}^^^end\n");
    let replies = ["a\n", "a\nb\nc\n", "d\ne\n", "d\ne\nf\n"].map(reply);
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    let server = ModelServer::gemini(&replies);
    let build = "i=0; while read -r word; do i=$((i + 1)); echo \"src/main.rs:$i: error: $word\"; done <src/main.rs; exit 1";
    let project = TestProject::new().with(&server).build(build);
    project.run(&["--strategy", "search"]).exits(1);
    let kept = project.read("src/main.rs");
    assert_eq!(kept, "a\n");
    let statement = state(&project);
    let main = file(&statement, "src/main.rs");
    assert_eq!(main["after"]["sha256"], sha256(&kept));
    assert_eq!(main["replied"], main["after"]);
    project.run(&["verify", "statement.json"]).exits(0);
}

#[test]
fn an_agents_files_are_those_that_it_has_recorded() {
    let replies = [
        write("new.txt", "from the agent\n"),
        done(),
        PASS.to_owned(),
    ];
    let (agent, _server) = AgentProject::scripted(&replies);
    agent.run(&["-p", "go"]).exits(0);
    let project = agent.project.file("new.txt", "later\n");
    project
        .run(&["attest", "last", "-o", "statement.json"])
        .exits(0);
    let statement: Value = serde_json::from_str(&project.read("statement.json")).unwrap();
    assert_eq!(
        file(&statement, "new.txt")["after"]["sha256"],
        sha256("from the agent\n")
    );
    let run = project.run(&["verify", "statement.json"]).exits(0);
    assert!(
        run.stdout.contains("no reply is applied again"),
        "{}",
        run.stdout
    );
    // A statement may replace an earlier one, and nothing else.
    let attest = |path| project.run(&["attest", "last", "-o", path]);
    attest("statement.json").exits(0);
    let said = ["cannot write `new.txt`: there is a file that is neither"];
    attest("new.txt").exits(6).says(&said);
    assert_eq!(project.read("new.txt"), "later\n");
}

#[test]
fn anything_but_a_run_or_a_statement_is_refused() {
    let (project, ..) = attested("echo built", &[REPLY], &[]);
    project.run(&["undo"]).exits(0);
    project
        .run(&["attest", "last"])
        .exits(1)
        .says(&["asked no model", "name a run that did"]);
    project.run(&["attest", "nope"]).exits(2);
    project.run(&["verify", "nope"]).exits(2);
    let directory = project.run(&["verify", "src"]).exits(2);
    directory.says(&["there is no file `src`"]);
    for content in ["{", "{}", "[]", "{\"_type\": 1}"] {
        fs::write(project.path("other.json"), content).unwrap();
        project
            .run(&["verify", "other.json"])
            .exits(1)
            .says(&["`other.json` is not a code-commit statement"]);
    }
    project.run(&["attest", "last", "--sign", "key"]).exits(2);
}

/// Creates an SSH key without a passphrase; `None` if ssh-keygen is missing.
fn key(project: &TestProject, name: &str) -> Option<String> {
    let mut keygen = Command::new("ssh-keygen");
    keygen
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"])
        .arg(project.path(name));
    if !keygen.status().is_ok_and(|status| status.success()) {
        skipped("there is no ssh-keygen");
        return None;
    }
    Some(format!(
        "{name}@example.com {}",
        project.read(&format!("{name}.pub"))
    ))
}

#[test]
fn a_signature_holds_for_its_statement_and_its_signer_alone() {
    let (project, ..) = attested("echo built", &[REPLY], &[]);
    let (Some(mine), Some(other)) = (key(&project, "mine"), key(&project, "other")) else {
        return;
    };
    let project = project.file("signers", &mine).file("others", &other);
    project
        .run(&["attest", "last", "-o", "s.json", "--sign", "nothing"])
        .exits(3)
        .says(&["the statement is not signed: "]);
    assert!(!project.path("s.json").exists());
    let sign = ["attest", "last", "-o", "s.json", "--sign", "mine"];
    // A second signature replaces the first.
    for _ in 0..2 {
        let run = project.run(&sign).exits(0);
        assert!(
            run.stdout.ends_with(" in s.json, s.json.sig\n"),
            "{}",
            run.stdout
        );
    }
    let verify = |signers| project.run(&["verify", "s.json", "--allowed-signers", signers]);
    let run = verify("signers").exits(0);
    assert!(
        run.stdout.contains("; signed by mine@example.com"),
        "{}",
        run.stdout
    );
    verify("others")
        .exits(1)
        .says(&["the signature is invalid"]);
    project
        .run(&["verify", "s.json"])
        .exits(0)
        .says(&["the signature is not checked"]);
    let signature = project.read("s.json.sig").replacen("\nU", "\nV", 1);
    fs::write(project.path("s.json.sig"), signature).unwrap();
    verify("signers").exits(1);
    fs::remove_file(project.path("s.json.sig")).unwrap();
    verify("signers")
        .exits(1)
        .says(&["the signature is invalid"]);
}
