//! The end of a step, successful or not, and the treatment of the files that it has written.

use serde_json::json;

use crate::support::plan::{
    PlanProject, calls, conversation, last_told, queries, response, summary, tasks, write,
};

const USE_TOOLS: &str = "When the user asks you to perform an action (read, write, create, etc.), you MUST use tools. \
                         Do not describe what you would do - actually do it using tool_calls.";

/// Runs a step with these replies, followed by another step.
fn first_of_two(replies: &[String]) -> Vec<String> {
    let mut all = vec![tasks(&[("Write", "write_file"), ("Think", "analyze")])];
    all.extend_from_slice(replies);
    all.push(summary("✓ Done"));
    all
}

#[test]
fn a_step_that_needs_a_tool_is_not_done_by_words() {
    let words = response("I have written it.");
    let (plan, server) = PlanProject::scripted(&[
        tasks(&[("Write", "write_file"), ("Think", "analyze")]),
        words.clone(),
        words.clone(),
        write("a.txt", "a\n"),
        words.clone(),
        words,
        summary("Done"),
    ]);
    plan.work("Write").exits(0);
    for nth in [2, 3] {
        let told = last_told(&server, nth);
        assert_eq!(told, format!("{USE_TOOLS}\n\nCurrent task: Write"));
    }
    assert!(!format!("{:?}", conversation(&server, 4)).contains("MUST use tools"));
    // A step that names no tool may end without one.
    assert_eq!(queries(&server), 7);
}

#[test]
fn the_third_time_it_has_failed_and_later_ones_stay_to_do() {
    let words = response("I have written it.");
    let (plan, server) =
        PlanProject::scripted(&first_of_two(&[words.clone(), words.clone(), words]));
    let run = plan
        .work("Write")
        .exits(1)
        .says(&["step 1 has failed: no tool has succeeded in it"]);
    assert_eq!(queries(&server), 5, "the summary is written all the same");
    let result = run.result();
    assert_eq!(result["exit"]["name"], "step-failed");
    assert_eq!(result["plan"]["steps"][0]["status"], "failed");
    assert_eq!(result["plan"]["steps"][1]["status"], "todo");
    assert_eq!(result["plan"]["status"], "failed");
    let document = plan.document();
    for line in [
        "1. [!] Write\n",
        "2. [ ] Think\n",
        "**Result:** ❌ Done\n",
        "**Status:** failed\n",
    ] {
        assert!(document.contains(line), "{line}: {document}");
    }
}

#[test]
fn a_call_that_has_failed_does_no_step() {
    let words = response("I have read it.");
    let (plan, _server) = PlanProject::scripted(&first_of_two(&[
        calls(&[("read_file", json!({"file_path": "no/such"}))]),
        words.clone(),
        words.clone(),
        words,
    ]));
    plan.work("Write").exits(1);
    assert!(plan.document().contains("**Tools:** \n") || !plan.document().contains("read_file"));
}

#[test]
fn a_step_takes_ten_calls_at_the_most() {
    let look = calls(&[("list_files", json!({}))]);
    let (plan, server) = PlanProject::scripted(&first_of_two(&vec![look; 10]));
    let run = plan
        .work("Write")
        .exits(1)
        .says(&["step 1 has failed: it was not done in 10 calls"]);
    assert_eq!(run.result()["exit"]["name"], "step-failed");
    // The plan, ten calls, and the summary.
    assert_eq!(queries(&server), 12);
    assert!(plan.document().contains("**Tools:** list_files\n"));
}

#[test]
fn a_failed_step_is_begun_again_when_the_session_is_resumed() {
    let words = response("I have written it.");
    let mut replies = first_of_two(&[words.clone(), words.clone(), words.clone()]);
    replies.extend([
        write("a.txt", "a\n"),
        words.clone(),
        words,
        summary("Written"),
    ]);
    let (plan, server) = PlanProject::scripted(&replies);
    plan.work("Write").exits(1);
    plan.run(&["--resume", "-p", ""]).exits(0);
    assert_eq!(
        last_told(&server, 5).matches("Current task: Write").count(),
        1
    );
    let document = plan.document();
    for line in ["1. [x] Write\n", "2. [x] Think\n", "status: completed\n"] {
        assert!(document.contains(line), "{line}: {document}");
    }
}

#[test]
fn a_build_that_fails_goes_back_and_the_step_continues() {
    let (plan, server) = PlanProject::scripted(&first_of_two(&[
        write("a.txt", "bad\n"),
        response("It is written."),
        write("a.txt", "good\n"),
        response("It is mended."),
        response("So it is."),
    ]));
    let plan = plan.with_file("target/builds", "").with_build(
        "echo run >> target/builds; grep good a.txt || { echo 'a.txt is bad' >&2; exit 7; }",
    );
    let run = plan.work("Write").exits(0);
    let told = last_told(&server, 3);
    let start =
        "Tool results:\n[0] ❌ Error: build.sh: exit code: 7\n<tool_result tool=\"build.sh\">\n";
    assert!(told.starts_with(start), "{told}");
    assert!(told.contains("a.txt is bad\n</tool_result>\n"), "{told}");
    assert!(told.ends_with("\n\nCurrent task: Write"), "{told}");
    // After a step that changes nothing, no build is run.
    assert_eq!(plan.project.read("target/builds"), "run\nrun\n");
    let document = plan.document();
    assert!(
        document.contains("**Tools:** write_file\n"),
        "the build is no tool: {document}"
    );
    assert!(run.logged("0003-step-tool.txt").contains("a.txt is bad\n"));
}

#[test]
fn the_output_of_a_build_is_bounded() {
    let (plan, server) = PlanProject::scripted(&first_of_two(&[
        write("a.txt", "bad\n"),
        response("It is written."),
        write("a.txt", "good\n"),
        response("It is mended."),
        response("So it is."),
    ]));
    let plan = plan.with_build("grep good a.txt || { seq 1 100000; exit 1; }");
    plan.work("Write").exits(0);
    let told = last_told(&server, 3);
    assert!(told.len() < 10 << 10, "{}", told.len());
    assert!(told.contains("100000"), "the end is there: {told}");
}

#[test]
fn a_build_that_fails_to_the_end_is_the_runs_end() {
    let bad = |n: usize| [write("a.txt", &format!("bad {n}\n")), response("Written.")];
    let replies: Vec<String> = (0..5).flat_map(bad).collect();
    let (plan, _server) = PlanProject::scripted(&first_of_two(&replies));
    let plan = plan.with_build("exit 1");
    let run = plan
        .work("Write")
        .exits(1)
        .says(&["step 1 has failed: `build.sh` still fails"]);
    assert_eq!(run.result()["exit"]["name"], "build-failed");
    assert_eq!(plan.project.read("a.txt"), "bad 4\n");
    let document = plan.document();
    for line in [
        "1. [!] Write\n",
        "2. [ ] Think\n",
        "**Result:** ❌ Done\n",
        "status: failed\n",
    ] {
        assert!(document.contains(line), "{line}: {document}");
    }
}

#[test]
fn nothing_is_built_where_that_is_not_wanted_or_nothing_was_changed() {
    let steps = || {
        [
            tasks(&[
                ("Look", "list_files"),
                ("Note", "update_plan"),
                ("Write", "write_file"),
            ]),
            calls(&[("list_files", json!({}))]),
            response("Seen."),
            calls(&[
                ("update_plan", json!({"goal": "Another"})),
                ("shell_exec", json!({"command": "ls src"})),
            ]),
            response("Noted."),
            write("a.txt", "a\n"),
            response("Written."),
            summary("Done"),
        ]
    };
    for (arguments, built) in [
        (&["-p", "Go"][..], "run\n"),
        (&["-p", "Go", "--gate", "off"], ""),
    ] {
        let (plan, _server) = PlanProject::scripted(&steps());
        let plan = plan
            .with_file("target/builds", "")
            .with_build("echo run >> target/builds");
        plan.run(arguments).exits(0);
        assert_eq!(plan.project.read("target/builds"), built);
    }
    // Without a build.sh, no build proves it.
    let (mut plan, _server) = PlanProject::scripted(&steps());
    plan.project = plan.project.without("build.sh");
    plan.work("Go").exits(0);
}

#[test]
fn only_a_failed_steps_edits_are_reverted_and_only_if_asked() {
    for (reverts, left) in [
        ("keep", ["1\n", "2\n", "new\n"]),
        ("revert", ["1\n", "1\n", ""]),
    ] {
        let look = calls(&[("list_files", json!({}))]);
        let mut replies = vec![
            tasks(&[
                ("Begin", "write_file"),
                ("Go on", "write_file"),
                ("Think", "analyze"),
            ]),
            calls(&[
                (
                    "write_file",
                    json!({"file_path": "one.txt", "content": "1\n"}),
                ),
                (
                    "write_file",
                    json!({"file_path": "two.txt", "content": "1\n"}),
                ),
            ]),
            response("Begun."),
            calls(&[
                (
                    "write_file",
                    json!({"file_path": "two.txt", "content": "2\n"}),
                ),
                (
                    "write_file",
                    json!({"file_path": "deep/new.txt", "content": "old\n"}),
                ),
                (
                    "write_file",
                    json!({"file_path": "deep/new.txt", "content": "new\n"}),
                ),
            ]),
        ];
        replies.extend(vec![look; 9]);
        replies.push(summary("Half of it"));
        let (plan, _server) = PlanProject::scripted(&replies);
        let plan = plan.with_file("mine.txt", "mine\n");
        plan.run(&["-p", "Go", "--on-failure", reverts]).exits(1);
        let read =
            |path: &str| std::fs::read_to_string(plan.project.path(path)).unwrap_or_default();
        assert_eq!(
            [read("one.txt"), read("two.txt"), read("deep/new.txt")],
            left,
            "{reverts}"
        );
        assert_eq!(read("mine.txt"), "mine\n");
        assert!(plan.document().contains("2. [!] Go on\n"));
        // All of it can be undone.
        let undone = plan.project.run(&["undo"]);
        assert_eq!(undone.code, 0, "{}", undone.stderr);
        assert_eq!(
            [read("one.txt"), read("two.txt"), read("deep/new.txt")],
            ["", "", ""]
        );
    }
}
