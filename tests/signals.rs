//! Interrupted runs.

use std::fs;
use std::io::Read as _;
use std::process::{Child, Command};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Answer, Finished, ModelServer, TestProject, ends, gemini};

pub fn kill(child: &Child, signal: Signal) {
    kill_process(
        Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(),
        signal,
    )
    .unwrap();
}

#[test]
fn signal_during_a_call_ends_it_immediately() {
    for (signal, code, name) in [
        (Signal::INT, 130, "SIGINT"),
        (Signal::TERM, 143, "SIGTERM"),
        (Signal::HUP, 129, "SIGHUP"),
    ] {
        let (silence, told) = Answer::silence();
        let server = ModelServer::start([silence]);
        let project = TestProject::new().with(&server);
        let before = project.tree();
        let child = project.start(&[]);
        told.recv().unwrap();
        let asked = Instant::now();
        kill(&child, signal);
        let run = Finished::new(&project, &[], child.wait_with_output().unwrap()).exits(code);
        assert!(asked.elapsed().as_secs() < 10);
        let run = run.says(&[&format!("interrupted by {name}")]);
        assert_eq!(
            run.result()["exit"],
            serde_json::json!({"code": code, "name": "interrupted"})
        );
        assert!(
            run.logged("initial-query-response.txt")
                .starts_with("ERROR\n")
        );
        assert_eq!(project.tree(), before);
    }
}

#[test]
fn tests_that_a_script_runs_in_its_background_send_signals_all_the_same() {
    let test = "signals::signal_during_a_call_ends_it_immediately";
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' INT QUIT HUP; exec \"$@\"", "sh"]);
    shell.arg(std::env::current_exe().unwrap());
    let output = shell.args(["--exact", test]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("1 passed"), "{said}");
}

#[test]
fn signal_during_a_wait_ends_it_immediately() {
    let server = ModelServer::start([Answer::new(503, &[("retry-after", "600")], "")]);
    let project = TestProject::new().with(&server);
    let mut child = project.start(&[]);
    let mut stderr = child.stderr.take().unwrap();
    let mut said = Vec::new();
    while !String::from_utf8_lossy(&said).contains("try 2 in 600.0s") {
        let mut byte = [0];
        assert_eq!(
            stderr.read(&mut byte).unwrap(),
            1,
            "{}",
            String::from_utf8_lossy(&said)
        );
        said.push(byte[0]);
    }
    kill(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_signal_during_a_build_ends_its_whole_group() {
    let server = ModelServer::gemini(&["^^^a\n1\n^^^end\n"]);
    // The build reports through a pipe that it has started, so that no guess is needed.
    let project = TestProject::new().with(&server).build(
        "echo >> .gitignore; trap '' TERM; sleep 600 & echo $! > child; echo $$ > parent; cat started; sleep 600",
    );
    let fifo = project.path("started");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    let child = project.start(&["--sandbox", "off"]);
    fs::OpenOptions::new().write(true).open(&fifo).unwrap();
    kill(&child, Signal::INT);
    let run = Finished::new(&project, &[], child.wait_with_output().unwrap()).exits(130);
    assert_eq!(project.read("a"), "1\n", "what was applied stays");
    assert!(
        run.logged("initial-build.txt")
            .starts_with("interrupted by SIGINT")
    );
    // Earlier changes by the build are reported.
    let told = "the build changed files that no build may change: `.gitignore` was changed";
    let run = run.says(&[told]);
    assert_eq!(run.result()["warnings"][0], told);
    assert!(run.logged("gate.diff").contains("b/.gitignore\n"));
    assert_eq!(
        run.result()["attempts"][0]["build"],
        serde_json::Value::Null
    );
    for process in ["child", "parent"] {
        let is_over = ends(project.read(process).trim());
        assert!(is_over, "{process} is still running");
    }
}

#[test]
fn one_run_at_a_time_and_a_dead_one_does_not_block() {
    let (silence, told) = Answer::silence();
    let server = ModelServer::start([silence, Answer::json(&gemini("Nothing to do."))]);
    let project = TestProject::new().with(&server);
    let mut first = project.start(&[]);
    told.recv().unwrap();
    let held = format!("another run holds the project: process {}", first.id());
    project.run(&[]).exits(3).says(&[&held, "hint:"]);
    kill(&first, Signal::KILL);
    first.wait().unwrap();
    project.run(&[]).exits(0);
}

#[test]
fn a_run_that_was_killed_while_it_applied_a_reply_is_undone_by_the_next() {
    // The state after a kill: a journal, and one of two files in place.
    let project = TestProject::new().file("a", "old\n");
    let before = project.tree();
    let metadata = fs::metadata(project.path("a")).unwrap();
    let old = serde_json::json!({
        "inode": std::os::unix::fs::MetadataExt::ino(&metadata),
        "size": metadata.len(),
        "modified": [
            std::os::unix::fs::MetadataExt::mtime(&metadata),
            std::os::unix::fs::MetadataExt::mtime_nsec(&metadata),
        ],
    });
    let new = serde_json::json!({"size": 4, "hash": xxhash_rust::xxh3::xxh3_64(b"new\n")});
    let journal = serde_json::json!({"version": 2, "folder": null, "durable": false, "stamp": [0, 0], "directories": [], "units": [
        {"target": "a", "staged": ".code-commit-1-0",
         "change": {"replace": {"old": {"fingerprint": old, "kept": null}, "new": new}}},
        {"target": "b", "staged": ".code-commit-1-1", "change": {"create": {"new": new}}},
    ]});
    fs::rename(project.path("a"), project.path(".code-commit-1-0")).unwrap();
    let project = project
        .file("a", "new\n")
        .file(".code-commit-1-1", "new\n")
        .file(
            "agent-config/.code-commit-journal-installing",
            journal.to_string(),
        );
    let run = project.run(&["recover"]).exits(0);
    assert!(
        run.stdout.contains("the tree is as it was before"),
        "{}",
        run.stdout
    );
    assert_eq!(project.tree(), before);
    let again = project.run(&["recover"]).exits(0);
    assert_eq!(again.stdout, "done: nothing to recover\n");
}
