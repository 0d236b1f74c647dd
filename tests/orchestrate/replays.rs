//! Replays of runs, without any server.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::orchestra::{
    Branch, OrchestraProject, calls, execute, finished, published, read_log, report,
};
use crate::support::{Finished, TestProject};

/// Returns a run's report without the parts that differ from run to run.
fn comparable(run: &Finished) -> Value {
    let mut report = report(run);
    let log = report.as_object_mut().unwrap().remove("log").unwrap();
    let instructions = report["instructions"].as_str().unwrap();
    report["instructions"] = instructions.replace(log.as_str().unwrap(), "LOG").into();
    for branch in report["branches"].as_array_mut().unwrap() {
        branch.as_object_mut().unwrap().remove("seconds");
    }
    report
}

/// Runs that end in each way, with their arguments and exit codes.
fn every_way() -> Vec<(&'static str, OrchestraProject, &'static [&'static str], i32)> {
    let rounds = || (0..8).flat_map(|_| [execute("claude_code", "x"), execute("codex", "y")]);
    let reviews = || (0..8).flat_map(|_| [Branch::done("x"), Branch::review("ISSUES")]);
    let limit = OrchestraProject::scripted(
        rounds().chain([execute("claude_code", "again")]),
        reviews().chain([Branch::done(&published())]),
    );
    let timeout = OrchestraProject::scripted(
        [execute("claude_code", "x"), execute("codex", "y")],
        [
            Branch::done("x"),
            Branch::endless(),
            Branch::done(&published()),
        ],
    )
    .with_variable("MCP_POLL_TIMEOUT_SECONDS", "0.1");
    let done = || {
        [
            execute("claude_code", "x"),
            execute("codex", "y"),
            finished("done"),
        ]
    };
    let unpublished = OrchestraProject::scripted(
        done(),
        [
            Branch::done("x"),
            Branch::review("CLEAN"),
            Branch::failed("no rights"),
        ],
    );
    let issues = OrchestraProject::clean_after(
        [
            execute("claude_code", "x"),
            execute("codex", "y"),
            read_log(),
            finished("too early"),
            calls(&[("read_artifact", json!({"path": "missing"}))]),
            execute("gpt", "x"),
        ],
        [Branch::done("x"), Branch::review("ISSUES")],
    );
    let failed = OrchestraProject::scripted((0..10).map(|_| execute("gpt", "x")), []);
    let unwell = OrchestraProject::clean();
    for nth in 4..9 {
        let answer = crate::support::Answer::new(500, &[("retry-after-ms", "1")], "gone");
        unwell.pantheon.answers("get_branch", nth, answer);
    }
    vec![
        ("completed", OrchestraProject::clean(), &[], 0),
        ("completed", OrchestraProject::clean(), &["--no-publish"], 0),
        ("completed", issues, &[], 0),
        ("iteration_limit", limit, &[], 1),
        ("timeout", timeout, &[], 1),
        ("publish_failed", unpublished, &[], 1),
        ("failed", failed, &[], 1),
        ("failed", unwell, &[], 4),
    ]
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.path().is_file() {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

#[test]
fn a_run_of_any_end_is_replayed_with_the_same_report_anywhere() {
    for (status, orchestra, arguments, code) in every_way() {
        let run = orchestra.run(arguments).exits(code);
        assert_eq!(report(&run)["status"], status);
        // Replays work without variables, in another directory, and without a server.
        let elsewhere = TestProject::new();
        let name = format!("logs/{}", run.folder);
        copy(&orchestra.project.path(&name), &elsewhere.path(&name));
        let asked = orchestra.azure.requests().len();
        let called = orchestra.pantheon.messages().len();
        for project in [&elsewhere, &orchestra.project] {
            let again = project.run(&["orchestrate", "--headless", "--replay", &run.folder]);
            let again = again.exits(code);
            assert_eq!(comparable(&again), comparable(&run), "{status}");
            assert_ne!(again.folder, run.folder);
            // The replay itself can be replayed.
            let once_more = project.run(&["orchestrate", "--headless", "--replay", &again.folder]);
            assert_eq!(
                comparable(&once_more.exits(code)),
                comparable(&run),
                "{status}"
            );
        }
        assert_eq!(orchestra.azure.requests().len(), asked);
        assert_eq!(orchestra.pantheon.messages().len(), called);
    }
}

#[test]
fn a_record_that_was_changed_is_an_error_that_names_it() {
    let orchestra = OrchestraProject::clean();
    let run = orchestra.run(&[]).exits(0);
    let path = orchestra
        .project
        .path(&format!("logs/{}/mcp.jsonl", run.folder));
    let record = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = record.lines().collect();
    let without = |left_out: usize| {
        let kept = lines.iter().enumerate().filter(|(at, _)| *at != left_out);
        kept.map(|(_, line)| format!("{line}\n"))
            .collect::<String>()
    };
    let is_start =
        |line: &&str| line.contains(r#""name":"parallel_explore""#) && line.contains("tools/call");
    let explored = lines.iter().position(is_start).unwrap();
    for changed in [
        String::new(),
        record.replacen('{', "[", 1),
        without(0),
        without(explored),
        without(lines.len() - 1),
    ] {
        fs::write(&path, &changed).unwrap();
        let again = orchestra
            .project
            .run(&["orchestrate", "--headless", "--replay", &run.folder]);
        let again = again.exits(4);
        again.says(&["record"]);
    }
}
