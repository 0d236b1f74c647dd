//! `--strategy search`: a run that never ends worse than its best state.

use serde_json::Value;

use crate::support::{Finished, ModelServer, TestProject};

/// Fails with an error for each line of `a.txt` that contains `bad`, and for each other file.
const BUILD: &str = "cat a.txt extra.txt 2>/dev/null | grep -n bad | sed 's/^\\([0-9]*\\):\\(.*\\)/a.txt:\\1: error: \\2/'; ! grep -q bad a.txt";

/// A reply whose file has these words on separate lines, each after `bad`.
fn reply(words: &str) -> String {
    let lines: String = words.chars().map(|word| format!("bad {word}\n")).collect();
    format!("^^^a.txt\n{lines}^^^end\n")
}

fn run(replies: &[&str], flags: &[&str]) -> (ModelServer, TestProject, Finished) {
    let server = ModelServer::gemini(replies);
    let project = TestProject::new().with(&server).build(BUILD);
    let finished = project.run(&[&["--strategy", "search"], flags].concat());
    (server, project, finished)
}

#[test]
fn a_run_with_1_then_9_errors_ends_with_the_1() {
    for flags in [&[][..], &["--scratch", "--on-failure", "keep"]] {
        ends_with_the_1(flags);
    }
}

fn ends_with_the_1(flags: &[&str]) {
    let nine = format!("{}^^^extra.txt\nx\n^^^end\n", reply("bcdefghij"));
    let (server, project, run) = run(&[&reply("a"), &nine, &nine, &nine], flags);
    let run = run.exits(1);
    assert_eq!(project.read("a.txt"), "bad a\n");
    assert!(!project.path("extra.txt").exists());
    let result = run.result();
    let search = &result["search"];
    assert_eq!(search["kept"], "the change");
    assert_eq!(search["why"], "the fewest findings (1; others up to 9)");
    let counts = search["states"].as_array().unwrap().iter();
    let counts: Vec<_> = counts
        .map(|state| {
            (
                state["findings"].as_u64().unwrap(),
                state["is_dead_end"] == true,
            )
        })
        .collect();
    assert_eq!(counts, [(1, true), (9, false), (9, true), (9, true)]);
    let run =
        run.says(&["kept the state of the change: it has the fewest findings (1; others up to 9)"]);
    assert!(run.stderr.contains("initial-build.txt"), "{}", run.stderr);
    assert_eq!(result["tree"], "changed");
    let asked: Vec<String> = server
        .requests()
        .iter()
        .map(crate::support::Recorded::user)
        .collect();
    // The second repair starts from the best state, and the third attempt from nothing.
    assert!(
        asked[2].contains("bad a\n") && !asked[2].contains("bad j"),
        "{}",
        asked[2]
    );
    assert!(
        !asked[3].contains("build.sh output") && asked[3].contains("tried before"),
        "{}",
        asked[3]
    );
    assert!(
        asked[3].contains("with 9 findings: a.txt:1: bad b"),
        "{}",
        asked[3]
    );
    project.run(&["undo"]).exits(0);
    assert!(!project.path("a.txt").exists());
}

#[test]
fn nothing_is_kept_of_a_run_that_is_reverted() {
    let nine = reply("bcdefghij");
    for flags in [&["--scratch"][..], &["--on-failure", "revert"]] {
        let (_, project, run) = run(&[&reply("a"), &nine, &nine, &nine], flags);
        let run = run.exits(1);
        assert!(!project.path("a.txt").exists());
        assert!(!run.stderr.contains("kept the state"), "{}", run.stderr);
        let search = &run.result()["search"];
        assert_eq!(search["states"].as_array().unwrap().len(), 4);
        assert_eq!(
            (&search["kept"], &search["why"]),
            (&Value::Null, &Value::Null)
        );
    }
}

#[test]
fn an_attempt_afresh_may_pass() {
    let good = "^^^a.txt\ngood\n^^^end\n";
    let (_, project, run) = run(&[&reply("ab"), &reply("ab"), good], &[]);
    let run = run.exits(0);
    assert_eq!(project.read("a.txt"), "good\n");
    let search = &run.result()["search"];
    assert_eq!(search["kept"], Value::Null);
    assert_eq!(search["states"].as_array().unwrap().len(), 2);
}

#[test]
fn original_files_are_restored_first() {
    let server = ModelServer::gemini(&[
        &reply("a"),
        "^^^old.txt\nnew\n^^^end\n^^^a.txt\nbad b\nbad c\n^^^end\n",
        "^^^a.txt\ngood\n^^^end\n",
    ]);
    let project = TestProject::new()
        .with(&server)
        .file("old.txt", "old\n")
        .build(BUILD);
    project.run(&["--strategy", "search"]).exits(0);
    assert_eq!(project.read("old.txt"), "old\n");
    project.run(&["undo"]).exits(0);
    assert_eq!(project.read("old.txt"), "old\n");
}

#[test]
fn the_best_state_is_kept_also_when_the_model_fails() {
    let (_, project, run) = run(&[&reply("a"), &reply("bc"), "^^^a.txt\nno end\n"], &[]);
    run.exits(5);
    assert_eq!(project.read("a.txt"), "bad a\n");
}

#[test]
fn a_search_is_not_resumed_upon_the_runs_own_edits() {
    let failing = reply("a");
    let replies = [
        &*failing,
        &failing,
        &failing,
        &failing,
        "^^^a.txt\ngood\n^^^end\n",
    ];
    let server = ModelServer::gemini(&replies);
    let project = TestProject::new().with(&server).build(BUILD);
    project.run(&[]).exits(1);
    let resume = ["--resume", "last", "--strategy", "search"];
    project.run(&resume).exits(3).says(&["undo"]);
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn the_best_state_is_kept_also_when_the_run_is_interrupted() {
    let server = ModelServer::gemini(&[&reply("a"), &reply("bc")]);
    let build = format!("if grep -q 'bad b' a.txt; then kill -INT $PPID; sleep 60; fi; {BUILD}");
    let project = TestProject::new().with(&server).build(&build);
    project
        .run(&["--strategy", "search", "--sandbox", "off"])
        .exits(130);
    assert_eq!(project.read("a.txt"), "bad a\n");
}
