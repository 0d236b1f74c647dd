//! The examples' files for engines: compared with the program's output, checked by the engines' own validators, and run
//! where possible.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::{Fleet, GOOD, change, with};
use crate::docs::document;
use crate::examples::{command, passes, validator};
use crate::support::{ModelServer, TestProject, skipped, write_program};

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn policy(engine: &str) -> String {
    TestProject::new()
        .run(&["fleet", "policy", engine])
        .exits(0)
        .stdout
}

#[test]
fn the_engines_files_say_what_the_policy_says() {
    for (engine, file, indent) in [
        ("kubernetes", "kubernetes/job.yaml", 2),
        ("gitlab", "gitlab/gitlab-ci.yml", 2),
        ("actions", "actions/fleet.yml", 6),
        ("slurm", "slurm/task.sh", 0),
    ] {
        let lines = policy(engine);
        let lines = lines
            .lines()
            .map(|line| format!("{}{line}\n", " ".repeat(indent)));
        let policy: String = lines.collect();
        let text = document(&format!("examples/fleet/{file}"));
        assert!(text.contains(&policy), "{file} has not:\n{policy}");
    }
    let json = TestProject::new().run(&["fleet", "policy", "slurm", "--output-format", "json"]);
    let json: Value = serde_json::from_str(&json.exits(0).stdout).unwrap();
    assert_eq!(json["requeued"], json!([4, 6]));
    assert_eq!(json["final"], json!([1, 2, 3, 5, 129, 130, 143]));
}

#[test]
fn the_engines_lists_are_manifests_and_have_an_index_for_each_line() {
    let schema: Value = serde_json::from_str(&document("examples/fleet/task.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let job = document("examples/fleet/kubernetes/job.yaml");
    let tasks = job
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with('{'));
    let tasks: Vec<Value> = tasks
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(job.contains(&format!("completions: {}\n", tasks.len())));
    assert!(tasks.iter().all(|task| schema.is_valid(task)), "{tasks:?}");
    let manifest = document("examples/fleet/tasks.jsonl");
    let indices: Vec<_> = (0..manifest.lines().count())
        .map(|index| format!("'{index}'"))
        .collect();
    let pipeline = document("examples/fleet/gitlab/gitlab-ci.yml");
    assert!(pipeline.contains(&format!("- INDEX: [{}]\n", indices.join(", "))));
}

#[test]
fn a_last_line_without_an_end_is_a_task() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("tasks.jsonl"), "{}\n{}").unwrap();
    write_program(&dir.path().join("parallel"), "#!/bin/sh\nexec cat\n");
    let path = format!(
        "{}:{}",
        dir.path().display(),
        std::env::var("PATH").unwrap()
    );
    let script = source("examples/fleet/parallel/run.sh");
    let words = [script.to_str().unwrap(), "tasks.jsonl", "out"];
    let listed = command("sh", &words, dir.path()).env("PATH", path).output();
    assert_eq!(listed.unwrap().stdout, b"0\n1\n");
    let workflow = document("examples/fleet/actions/fleet.yml");
    let (_, step) = workflow
        .split_once("        id: list\n        run: |\n")
        .unwrap();
    let step = step
        .lines()
        .take_while(|line| line.starts_with("          "));
    let step: Vec<&str> = step.map(str::trim).collect();
    let mut shell = command(
        "bash",
        &["-eo", "pipefail", "-c", &step.join("\n")],
        dir.path(),
    );
    let listed = shell.env("GITHUB_OUTPUT", "outputs").status().unwrap();
    assert!(listed.success());
    let indices = fs::read_to_string(dir.path().join("outputs")).unwrap();
    assert_eq!(indices, "indices=[0,1]\n");
}

#[test]
fn gitlabs_schema_takes_the_pipeline() {
    let Some(check) = validator("bin/check-jsonschema") else {
        return;
    };
    let words = ["--builtin-schema", "vendor.gitlab-ci", "gitlab-ci.yml"];
    let place = source("examples/fleet/gitlab");
    passes(&mut command(check.to_str().unwrap(), &words, &place));
}

/// Runs the Actions step with a stand-in for the program, which exits with the codes in a file, one after another.
#[test]
fn actions_tries_again_after_the_codes_of_the_table_alone() {
    let step = policy("actions");
    let (_, script) = step.split_once("run: |\n").unwrap();
    let script: String = script
        .lines()
        .map(|line| format!("{}\n", line.trim_start()))
        .collect();
    for (codes, ends, starts) in [
        ("0", 0, 1),
        ("4 0", 0, 2),
        ("6 4 0", 0, 3),
        ("4 6 4 0", 4, 3),
        ("1 0", 1, 1),
        ("6 3 0", 3, 2),
        ("130 0", 130, 1),
    ] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("codes"), codes.replace(' ', "\n")).unwrap();
        let stand_in =
            "#!/bin/sh\necho \"$@\" >>starts\nexit \"$(sed -n \"$(wc -l <starts)p\" codes)\"\n";
        write_program(&dir.path().join("code-commit"), stand_in);
        let path = std::env::var("PATH").unwrap();
        let step = ["--noprofile", "--norc", "-eo", "pipefail", "-c", &script];
        let status = command("bash", &step, dir.path())
            .env("PATH", format!("{}:{path}", dir.path().display()))
            .envs([("MANIFEST", "a.jsonl"), ("INDEX", "7"), ("PAUSE", "0")])
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(ends), "{codes}");
        let started = fs::read_to_string(dir.path().join("starts")).unwrap();
        assert_eq!(
            started,
            "fleet task a.jsonl 7 --out results\n".repeat(starts),
            "{codes}"
        );
    }
}

#[test]
fn gnu_parallel_does_all_tasks_and_none_twice() {
    let has_it = Command::new("parallel").arg("--version").output();
    if !has_it.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains("GNU parallel")) {
        return skipped("no GNU parallel");
    }
    let server = ModelServer::gemini(&[GOOD; 7]);
    let fleet = Fleet::new(&server);
    let failing = with(change("d"), &json!({"repository": "never"}));
    fleet.repository("never", "exit 1");
    fleet.tasks(&[change("a"), change("b"), change("c"), failing]);
    let program = assert_cmd::cargo::cargo_bin!("code-commit")
        .parent()
        .unwrap()
        .display()
        .to_string();
    let mut run = Command::new(source("examples/fleet/parallel/run.sh"));
    run.args(["tasks.jsonl", "the results"])
        .current_dir(fleet.path("."))
        .env_clear();
    for (name, value) in fleet.project.command(&[]).get_envs() {
        run.env(name, value.unwrap_or_default());
    }
    let path = std::env::var("PATH").unwrap();
    run.env("PATH", format!("{program}:{path}"))
        .env("HOME", fleet.path("."));
    let output = run.output().unwrap();
    // The exit code is the number of failed tasks.
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    for (id, name) in [
        ("a", "done"),
        ("b", "done"),
        ("c", "done"),
        ("d", "build-failed"),
    ] {
        let result = fleet.project.read(&format!("the results/{id}/result.json"));
        let result: Value = serde_json::from_str(&result).unwrap();
        assert_eq!(result["exit"]["name"], name, "{id}");
    }
    assert_eq!(server.requests().len(), 7);
}
