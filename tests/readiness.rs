//! Requirements that are checked before anything is sent or written.

use std::os::unix::fs::symlink;

use std::process::Command;

use crate::machine::{fits, schema};
use crate::support::{Finished, ModelServer, TestProject};

/// Runs a project that is not ready, and checks that nothing was sent or written.
#[track_caller]
fn not_ready(change: impl FnOnce(TestProject) -> TestProject, arguments: &[&str]) -> Finished {
    let server = ModelServer::start([]);
    let project = change(TestProject::new().with(&server));
    let before = project.tree();
    let run = project.run(arguments).exits(3);
    assert_eq!(project.tree(), before);
    assert!(project.runs().is_empty() && !project.path("logs").exists());
    assert!(server.requests().is_empty());
    run
}

#[test]
fn a_missing_directory_is_reported_with_the_remedy() {
    let project = TestProject::new();
    let program = project.command(&[]);
    let line = "mkdir gone; cd gone; rmdir ../gone; exec \"$0\" models --output-format json";
    let output = Command::new("sh")
        .args(["-c", line])
        .arg(program.get_program())
        .current_dir(project.path(""))
        .output()
        .unwrap();
    let run = Finished::new(&project, &["models"], output).exits(6);
    let printed: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    fits(&schema("result"), &printed);
    let error = &printed["error"];
    let message = error["message"].as_str().unwrap();
    assert!(
        message.starts_with("cannot start: the current directory: "),
        "{message}"
    );
    assert_eq!(
        error["hint"],
        "go to a directory that is there and can be read"
    );
    assert_eq!(
        (&error["reason"], &error["retryable"]),
        (&"disk".into(), &false.into())
    );
    run.says(&[&format!("error: {message}\nhint: go to a directory")]);
}

#[test]
fn all_that_is_missing_is_listed_at_once_with_what_to_do() {
    let empty = |project: TestProject| {
        project
            .without(".gitignore")
            .without("agent-config/query.txt")
            .without("agent-config/codeRollup.txt")
            .without("agent-config/gemini-key.txt")
            .without("build.sh")
    };
    let run = not_ready(empty, &[]).says(&[
        "the project is not ready",
        "`.gitignore` is missing",
        "`agent-config/query.txt` is missing",
        "`agent-config/codeRollup.txt` is missing",
        "run `./codeRollup.sh`",
        "`agent-config/gemini-key.txt` is missing",
        "`build.sh` is missing",
    ]);
    // One hint covers everything that `init` creates.
    let first = "the project is not ready\n  hint: run `code-commit init`, ";
    assert!(run.stderr.contains(first), "{}", run.stderr);
    assert_eq!(run.stderr.matches("hint:").count(), 3);
    // Programs get one hint for each problem.
    let run = not_ready(empty, &["--output-format", "json"]);
    let told: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let message = told["error"]["message"].as_str().unwrap();
    assert_eq!(message.matches("hint:").count(), 5, "{message}");
}

#[test]
fn unprepared_project_gets_a_hint_about_init_before_git() {
    let bare = |project: TestProject| {
        project
            .without(".gitignore")
            .without("build.sh")
            .variable("GIT_CEILING_DIRECTORIES", "/")
    };
    let run = not_ready(bare, &["-m", "Add it.", "--rollup", "--dry-run"]).says(&[
        "git does not list the project's files",
        "`git init && git add --all`",
    ]);
    let first = "the project is not ready\n  hint: run `code-commit init`, ";
    assert!(run.stderr.contains(first), "{}", run.stderr);
}

#[test]
fn the_config_folder_must_really_be_ignored() {
    for content in [
        "",
        "# /agent-config\n",
        "/agent-configuration\n",
        "/agent-config\n!/agent-config\n",
    ] {
        not_ready(|project| project.file(".gitignore", content), &[])
            .says(&["does not ignore `/agent-config`", "add the line"]);
    }
}

#[test]
fn a_gitignore_with_crlf_works() {
    let server = ModelServer::gemini(&["nothing"]);
    TestProject::new()
        .with(&server)
        .file(".gitignore", "target\r\n/agent-config\r\n")
        .run(&[])
        .exits(0);
}

#[test]
fn an_invalid_key_is_an_error_that_does_not_show_it() {
    for (content, expected) in [
        (&b""[..], "is empty"),
        (b" \r\n ", "is empty"),
        (b"SECRETPART1\nSECRETPART2\n", "has more than one line"),
        ("SECRETSCHL\u{dc}SSEL".as_bytes(), "not ASCII"),
        (b"SECRET PART", "a blank"),
        (b"SECRET\xff\xfe", "not ASCII"),
    ] {
        let run = not_ready(
            |project| project.file("agent-config/gemini-key.txt", content),
            &[],
        )
        .says(&[expected]);
        assert!(!run.stderr.contains("SECRET"), "{}", run.stderr);
    }
}

#[test]
fn only_the_chosen_models_key_is_needed() {
    let server = ModelServer::openai(&["nothing"]);
    let project = TestProject::new()
        .with(&server)
        .without("agent-config/gemini-key.txt");
    project.run(&["--model", "gpt-5"]).exits(0);
    not_ready(
        |project| project.without("agent-config/openai-key.txt"),
        &["--model", "gpt-5"],
    )
    .says(&["openai-key.txt"]);
}

#[test]
fn each_fault_of_the_build_script_has_its_own_message() {
    type Change = fn(TestProject) -> TestProject;
    let faults: [(Change, &str); 9] = [
        (
            |p| p.mode("build.sh", 0o644),
            "`build.sh` is not executable",
        ),
        (
            |p| p.file("build.sh", "echo hi\n"),
            "does not begin with a `#!` line",
        ),
        (
            |p| p.file("build.sh", ""),
            "does not begin with a `#!` line",
        ),
        (
            |p| p.file("build.sh", "#!/bin/sh\r\necho hi\r\n"),
            "ends with CRLF",
        ),
        (
            |p| p.file("build.sh", "#!/no/such/shell\n"),
            "`/no/such/shell`, is no program on this machine",
        ),
        (
            |p| p.file("build.sh", "#!/usr/bin/env no-such-shell\n"),
            "`no-such-shell`, is no program on this machine",
        ),
        (
            |p| p.file("build.sh", "#!/tmp\n"),
            "`/tmp`, is no program on this machine",
        ),
        (
            |p| p.without("build.sh").file("build.sh/x", ""),
            "`build.sh` is not a file",
        ),
        (
            |p| {
                let p = p.without("build.sh");
                symlink("nowhere", p.path("build.sh")).unwrap();
                p
            },
            "`build.sh` is missing",
        ),
    ];
    for (fault, expected) in faults {
        not_ready(fault, &[]).says(&[expected, "hint:"]);
    }
}

#[test]
fn inputs_that_are_no_text_are_named() {
    not_ready(|p| p.file("agent-config/codeRollup.txt", b"ab\xffcd"), &[])
        .says(&["`agent-config/codeRollup.txt` is not UTF-8: see byte 2"]);
    not_ready(|p| p.file("agent-config/query.txt", " \n\t\n"), &[])
        .says(&["`agent-config/query.txt` is empty"]);
    not_ready(
        |p| {
            p.without("agent-config/query.txt")
                .file("agent-config/query.txt/x", "")
        },
        &[],
    )
    .says(&["`agent-config/query.txt` is not a file"]);
}

#[test]
fn a_base_url_that_would_send_the_key_in_clear_is_refused() {
    for url in [
        "http://example.com",
        "http://192.168.0.1:8080",
        "nonsense",
        "https://user:pw@example.com",
    ] {
        not_ready(
            |project| project.variable("GOOGLE_GEMINI_BASE_URL", url),
            &[],
        )
        .says(&["GOOGLE_GEMINI_BASE_URL", "hint:"]);
    }
    let secure = |project: TestProject| {
        project
            .variable("GOOGLE_GEMINI_BASE_URL", "https://api.invalid")
            .variable("HTTPS_PROXY", "gopher://x")
    };
    not_ready(secure, &[]).says(&["HTTPS_PROXY", "hint:"]);
}

#[test]
fn an_empty_code_base_is_a_code_base() {
    let server = ModelServer::gemini(&["nothing"]);
    TestProject::new()
        .with(&server)
        .file("agent-config/codeRollup.txt", "")
        .run(&[])
        .exits(0);
}

#[test]
fn an_ignore_file_that_takes_the_key_back_is_noticed() {
    let takes_back = |project: TestProject| {
        project
            .file(".gitignore", "/agent-config/*\n")
            .file("agent-config/.gitignore", "!gemini-key.txt\n")
    };
    not_ready(takes_back, &[]).says(&["does not ignore `/agent-config`"]);
}

#[test]
fn a_key_to_which_a_link_leads_must_be_ignored_there() {
    let by_link = |project: TestProject| {
        std::fs::rename(project.path("agent-config"), project.path("cfg")).unwrap();
        symlink("cfg", project.path("agent-config")).unwrap();
        project
    };
    not_ready(by_link, &[]).says(&[
        "git does not ignore `cfg/gemini-key.txt`, to which `agent-config/gemini-key.txt` leads",
        "add `/cfg/gemini-key.txt` to `.gitignore`",
    ]);
}

#[test]
fn a_config_path_that_is_not_a_folder_counts_as_missing() {
    let file = |project: TestProject| {
        std::fs::remove_dir_all(project.path("agent-config")).unwrap();
        project.file("agent-config", "")
    };
    let run = not_ready(file, &[]);
    assert_eq!(
        run.stderr.matches("is missing").count(),
        3,
        "{}",
        run.stderr
    );
}

#[test]
fn odd_file_in_place_of_a_directory_or_file_is_reported_before_a_call() {
    let makes: [(&str, &[&str], &str); 4] = [
        ("touch logs", &[], "`logs` is not a directory"),
        (
            "ln -s src logs",
            &["--dry-run"],
            "`logs` is not a directory",
        ),
        ("mkfifo logs", &["--cc"], "`logs` is not a directory"),
        (
            "mkdir agent-config/consistency-report.txt",
            &["--cc"],
            "`agent-config/consistency-report.txt` is not a file",
        ),
    ];
    for (make, arguments, said) in makes {
        let server = ModelServer::start([]);
        let project = TestProject::new().with(&server);
        let made = Command::new("sh")
            .args(["-c", make])
            .current_dir(project.path(""))
            .status();
        assert!(made.unwrap().success());
        project.run(arguments).exits(3).says(&[said]);
        assert!(server.requests().is_empty());
    }
    let server = ModelServer::start([]);
    let project = TestProject::new().with(&server);
    let refused = project.run(&["--summary-file", "src"]).exits(2);
    refused.says(&["the summary cannot be written to `src`: it is a directory"]);
}
