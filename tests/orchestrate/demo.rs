//! The recorded run shown in the documents.

use std::fs;

use serde_json::Value;

use crate::support::TestProject;
use crate::support::orchestra::report;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const COMMAND: &str = "code-commit orchestrate --replay fixtures/orchestrate-demo";

#[test]
fn the_recorded_run_needs_neither_a_key_nor_a_server() {
    for page in ["README.md", "docs/orchestrate.md"] {
        let page = fs::read_to_string(format!("{ROOT}/{page}")).unwrap();
        assert!(page.contains(COMMAND));
    }
    let mut project = TestProject::new();
    for entry in fs::read_dir(format!("{ROOT}/fixtures/orchestrate-demo")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        project = project.file(
            &format!("fixtures/orchestrate-demo/{name}"),
            fs::read(path).unwrap(),
        );
    }
    let arguments: Vec<&str> = COMMAND.split(' ').skip(1).collect();
    let run = project
        .run(&[&arguments[..], &["--headless"]].concat())
        .exits(0);
    let again = report(&run);
    let recorded: Value =
        serde_json::from_str(&project.read("fixtures/orchestrate-demo/result.json")).unwrap();
    let recorded = &recorded["orchestration"];
    for field in [
        "task",
        "summary",
        "status",
        "instructions",
        "publish_report",
        "iterations",
    ] {
        assert_eq!(again[field], recorded[field], "{field}");
    }
    let agents = |report: &Value| -> Vec<Value> {
        let branches = report["branches"].as_array().unwrap().iter();
        branches.map(|branch| branch["agent"].clone()).collect()
    };
    assert_eq!(
        agents(&again),
        [
            "claude_code",
            "codex",
            "claude_code",
            "codex",
            "claude_code"
        ]
    );
    assert_eq!(agents(&again), agents(recorded));
    let run = project.run(&arguments).exits(0);
    assert!(
        run.stdout.starts_with("tool> execute_agent "),
        "{}",
        run.stdout
    );
    assert!(run.stdout.ends_with("}\n"));
}
