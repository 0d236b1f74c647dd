//! Many tasks from a list: manifests, single tasks, and all of them.

mod apart;
mod engines;
mod manifest;
mod publish;
mod report;
mod run;
mod slurm;
mod task;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Finished, GEMINI_KEY, ModelServer, TestProject, ends, within_a_minute};

/// The maximum time that a test waits for a request to the server.
pub const MINUTE: Duration = Duration::from_mins(1);
/// A reply that passes the build of a test's repository.
pub const GOOD: &str = "^^^answer\n42\n^^^end\n";
/// A reply that fails it.
pub const BAD: &str = "^^^answer\n0\n^^^end\n";

/// A directory with repositories and a manifest, in which a fleet is run.
pub struct Fleet {
    pub project: TestProject,
}

impl Fleet {
    pub fn new(server: &ModelServer) -> Self {
        let project = TestProject::new()
            .with(server)
            .variable("GEMINI_API_KEY", GEMINI_KEY)
            .without("agent-config/gemini-key.txt");
        let fleet = Self { project };
        fleet.repository("web", "grep -q 42 answer");
        fleet
    }

    /// Creates a repository with this build.
    pub fn repository(&self, name: &str, build: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("code"), format!("the code of {name}\n")).unwrap();
        crate::support::write_program(&path.join("build.sh"), format!("#!/bin/sh\n{build}\n"));
        git(&path, &["init", "--quiet", "--initial-branch=main"]);
        git(&path, &["add", "--all"]);
        git(&path, &["commit", "--quiet", "-m", "first"]);
        path
    }

    /// Writes the manifest, one task per line.
    pub fn tasks(&self, tasks: &[Value]) {
        let lines: String = tasks.iter().map(|task| format!("{task}\n")).collect();
        fs::write(self.path("tasks.jsonl"), lines).unwrap();
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.project.path(path)
    }

    pub fn run(&self, arguments: &[&str]) -> Finished {
        self.project.run(&[&["fleet"], arguments].concat())
    }

    /// Runs the task on a line.
    pub fn task(&self, index: &str) -> Finished {
        self.run(&["task", "tasks.jsonl", index, "--out", "out"])
    }

    /// Returns the result of a task.
    pub fn result(&self, id: &str) -> Value {
        let path = format!("out/{id}/result.json");
        serde_json::from_str(&self.project.read(&path)).unwrap()
    }

    pub fn has(&self, path: &str) -> bool {
        self.path(path).symlink_metadata().is_ok()
    }
}

/// Returns the processes started by the threads of a process.
pub fn children(process: u32) -> Vec<String> {
    let threads = format!("/proc/{process}/task");
    let mut found = String::new();
    assert!(within_a_minute(|| {
        let threads = fs::read_dir(&threads).unwrap();
        let paths = threads.map(|thread| thread.unwrap().path().join("children"));
        found = paths.flat_map(fs::read_to_string).collect();
        !found.is_empty()
    }));
    found.split_whitespace().map(str::to_owned).collect()
}

/// Kills a fleet that is running tasks, and returns its child processes, which continue to run.
pub fn killed(mut started: Child) -> Vec<String> {
    let tasks = children(started.id());
    let runs = tasks
        .iter()
        .flat_map(|task| children(task.parse().unwrap()));
    let left = [tasks.clone(), runs.collect()].concat();
    started.kill().unwrap();
    started.wait().unwrap();
    left
}

pub fn kill_all(processes: &[String]) {
    for process in processes {
        Command::new("kill").args(["-9", process]).status().unwrap();
        assert!(ends(process));
    }
}

/// A change to the repository `web`, whose build requires a 42.
pub fn change(id: &str) -> Value {
    json!({"id": id, "repository": "web", "query": "Write the answer."})
}

/// Adds fields to a task.
pub fn with(mut task: Value, more: &Value) -> Value {
    let fields = more.as_object().unwrap().clone();
    task.as_object_mut().unwrap().extend(fields);
    task
}

pub fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.com"])
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}
