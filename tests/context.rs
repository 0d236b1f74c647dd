//! `context`: the files that are relevant to a query.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::{ModelServer, TestProject};

/// A project with two commits, the second of which changes only `src/lexer.rs`.
fn project() -> TestProject {
    let project = TestProject::new()
        .file("src/parser.rs", "fn parseReply() { find_fences() }\n")
        .file("src/lexer.rs", "fn next() {}\n")
        .file("src/other.rs", "fn other() {}\n")
        .file("docs/reply.md", "How a reply is parsed: its fences.\n")
        .file("tests/parser.rs", "fn parseReply() { find_fences() }\n")
        .file("untracked.rs", "fences fences\n");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "src", "docs", "tests"]);
    commit(&project, "Begin");
    let project = project.file("src/lexer.rs", "fn next() -> u8 {}\n");
    git(&project, &["add", "src"]);
    commit(&project, "Read numbers in hexadecimal");
    project
}

fn git(project: &TestProject, arguments: &[&str]) {
    let mut git = Command::new("git");
    let done = git.args(arguments).current_dir(project.path("")).status();
    assert!(done.unwrap().success());
}

fn commit(project: &TestProject, message: &str) {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    git(
        project,
        &[&identity[..], &["commit", "-q", "-m", message]].concat(),
    );
}

fn ranked(project: &TestProject, query: &str) -> Value {
    let arguments = ["context", "-m", query, "--output-format", "json"];
    let run = project.run(&arguments).exits(0);
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn the_files_that_a_query_is_about_come_first() {
    let project = project();
    let found = ranked(&project, "Let find_fences skip blanks");
    let files = found["files"].as_array().unwrap();
    assert_eq!(files[0]["path"], "src/parser.rs");
    assert_eq!(files[0]["why"], json!(["find", "find_fences", "fences"]));
    // With the same text, the test ranks lower.
    assert_eq!(files[1]["path"], "tests/parser.rs");
    assert_eq!(files[2]["path"], "docs/reply.md");
    let tokens = files.iter().map(|file| file["tokens"].as_u64().unwrap());
    assert_eq!(found["tokens"], tokens.sum::<u64>());
    assert!(!files.iter().any(|file| file["path"] == "untracked.rs"));
    let text = project.run(&["context", "-m", "find_fences"]).exits(0);
    let first = text.stdout.lines().nth(1).unwrap();
    assert!(
        first.ends_with("src/parser.rs    find find_fences fences"),
        "{first}"
    );
    assert!(
        text.stdout
            .contains("ranked by the query and by 2 earlier commits")
    );
}

#[test]
fn a_file_is_found_by_what_was_said_of_it_earlier() {
    let found = ranked(&project(), "hexadecimal");
    assert_eq!(found["files"][0]["path"], "src/lexer.rs");
    assert_eq!(found["files"][0]["why"], json!(["hexadecimal"]));
}

#[test]
fn nothing_is_asked_and_nothing_written() {
    let server = ModelServer::gemini(&[]);
    let project = project().with(&server);
    let before = project.tree();
    project.run(&["context", "-m", "Fences"]).exits(0);
    assert_eq!(project.tree(), before);
    assert!(server.requests().is_empty());
}

#[test]
fn without_a_message_the_query_is_that_of_a_run() {
    let project = project().file("agent-config/query.txt", "Read hexadecimal numbers.\n");
    let run = project.run(&["context"]).exits(0);
    assert!(run.stdout.lines().nth(1).unwrap().contains("src/lexer.rs"));
    let project = project.file("agent-config/query.txt", " \n");
    project
        .run(&["context"])
        .exits(3)
        .says(&["`agent-config/query.txt` is empty"]);
    project.run(&["context", "-m", " "]).exits(2);
}

#[test]
fn context_within_a_limit_shows_what_is_sent() {
    let large = "fn other() {}\n".repeat(500) + "fn find_fences() {}\n";
    let project = project().file("src/large.rs", large);
    git(&project, &["add", "src"]);
    let within = ["context", "-m", "find_fences", "--tokens", "1k"];
    let run = project.run(&[&within[..], &["--output-format", "json"]].concat());
    let sent: Value = serde_json::from_str(&run.exits(0).stdout).unwrap();
    let files = sent["files"].as_array().unwrap();
    let lines = |path: &str| {
        let file = files.iter().find(|file| file["path"] == path);
        file.map(|file| (file["shown"].clone(), file["lines"].clone()))
    };
    assert_eq!(lines("src/parser.rs"), Some((json!("whole"), Value::Null)));
    let (shown, last) = lines("src/large.rs").unwrap();
    assert_eq!(shown, "lines");
    // Files that are not sent are ranked, too.
    assert_eq!(lines("src/other.rs"), Some((json!(""), Value::Null)));
    assert_eq!(last.as_array().unwrap().last().unwrap()[1], 501);
    assert!(sent["tokens"].as_u64().unwrap() <= 1000, "{sent}");
    assert!(sent["outline"].as_u64().unwrap() > 0, "{sent}");
    let text = project.run(&within).exits(0).stdout;
    assert!(
        text.contains("outline of all files") && text.contains("whole"),
        "{text}"
    );
    assert!(text.contains("7 files ranked"), "{text}");
    project
        .run(&["context", "-m", "x", "--tokens", "few"])
        .exits(2);
}

#[test]
fn files_are_put_first_and_left_out_by_their_paths() {
    let project = project();
    let chosen = ["--include", "src/other.rs", "--exclude", "tests"];
    let run = project.run(&[&["context", "-m", "find_fences"], &chosen[..]].concat());
    let text = run.exits(0).stdout;
    assert!(
        text.lines().nth(1).unwrap().ends_with("src/other.rs"),
        "{text}"
    );
    assert!(!text.contains("tests/"), "{text}");
    project
        .run(&["context", "-m", "x", "--include", "nothing"])
        .exits(2);
}
