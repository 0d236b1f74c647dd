//! The isolation of tasks from each other, and from files that are not theirs.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::task::answered;
use super::{Fleet, GOOD, MINUTE, change, git, with};
use crate::signals::kill;
use crate::support::{Answer, ModelServer, bubblewrap_works};

#[test]
fn foreign_files_in_place_of_a_tasks_folder_are_not_touched() {
    let server = ModelServer::gemini(&[]);
    let fleet = Fleet::new(&server);
    fs::create_dir(fleet.path("precious")).unwrap();
    fs::write(fleet.path("precious/code"), "not saved\n").unwrap();
    fs::create_dir_all(fleet.path("bare/clone")).unwrap();
    fs::write(fleet.path("file"), "mine\n").unwrap();
    let gone = json!({"id": "bare", "repository": "nowhere", "query": "x"});
    for task in [change("precious"), gone, change("file")] {
        fleet.tasks(&[change("new"), task.clone()]);
        let id = task["id"].as_str().unwrap();
        let told = format!("/{id}` already exists");
        for words in [&["task", "tasks.jsonl", "1"][..], &["run", "tasks.jsonl"]] {
            let words = [words, &["--out", "."]].concat();
            let theirs = || {
                let mut tree = fleet.project.tree();
                tree.retain(|path, _| {
                    ["precious", "bare", "file"]
                        .iter()
                        .any(|it| path.starts_with(it))
                });
                tree
            };
            let before = theirs();
            fleet.run(&words).exits(3).says(&[&told, "another `--out`"]);
            assert_eq!(theirs(), before);
        }
    }
    assert!(server.requests().is_empty());
}

#[test]
fn a_task_without_a_commit_has_an_account_that_it_keeps_once_it_has_one() {
    let server = ModelServer::gemini(&[GOOD]);
    let fleet = Fleet::new(&server);
    let later = with(change("a"), &json!({"ref": "later"}));
    fleet.tasks(std::slice::from_ref(&later));
    for _ in 0..2 {
        fleet.task("0").exits(3).says(&["cannot find the ref"]);
    }
    git(&fleet.path("web"), &["branch", "later"]);
    fleet.task("0").exits(0);
    fleet.task("0").exits(0);
    // The ledger now has this task's entry.
    fs::remove_file(fleet.path("tasks.jsonl.lock")).unwrap();
    fleet.tasks(&[with(later, &json!({"query": "Another."}))]);
    fleet
        .task("0")
        .exits(3)
        .says(&["the folder of another task"]);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn keys_of_other_tasks_do_not_reach_a_build() {
    let server = ModelServer::gemini(&[GOOD; 2]);
    let fleet = Fleet::new(&server);
    let keys = ["TEAM_A", "TEAM_B"].map(|name| (name, format!("AIzaSy{name}_0123456789-{name}-0")));
    let project = keys.iter().fold(fleet.project, |project, (name, key)| {
        project.variable(name, key)
    });
    let fleet = Fleet { project };
    fleet.repository("nosy", "env | grep '^TEAM_' > seen; grep -q 42 answer");
    let own = json!({"repository": "nosy", "env_key": "TEAM_A", "flags": {"sandbox": "off"}});
    let without = json!({"repository": "nosy", "flags": {"sandbox": "off"}});
    let other = with(change("c"), &json!({"env_key": "TEAM_B"}));
    fleet.tasks(&[with(change("a"), &own), with(change("b"), &without), other]);
    for (index, id) in [("0", "a"), ("1", "b")] {
        fleet.task(index).exits(0);
        let patch = fleet.project.read(&format!("out/{id}/change.patch"));
        assert!(!patch.contains("TEAM_"), "{id}: {patch}");
    }
    let sent = server.requests();
    let sent: Vec<_> = sent.iter().map(|it| it.header("x-goog-api-key")).collect();
    assert_eq!(sent, [Some(&*keys[0].1), Some(crate::support::GEMINI_KEY)]);
}

/// A build that reads and writes files of the fleet and of the task `a`.
const NOSY: &str = "\
{ cat ../../ledger.jsonl ../../a/result.json ../../a/clone/agent-config/lent.txt; ls ../../a ..; } > seen 2>/dev/null
rm -rf ../../a ../lock
echo forged >> ../../ledger.jsonl
mkdir -p ../../a; echo forged > ../../a/result.json
grep -q 42 answer";

#[test]
fn a_build_in_a_sandbox_sees_nothing_of_other_tasks_and_changes_nothing() {
    if !bubblewrap_works() {
        return;
    }
    let server = ModelServer::gemini(&[GOOD; 3]);
    let fleet = Fleet::new(&server);
    fleet.repository("nosy", NOSY);
    let nosy = |mode: &str| {
        let task = json!({"repository": "nosy", "flags": {"sandbox": mode}});
        with(change(mode), &task)
    };
    fleet.tasks(&[change("a"), nosy("auto"), nosy("strict")]);
    fleet.task("0").exits(0);
    fs::create_dir_all(fleet.path("out/a/clone/agent-config")).unwrap();
    fs::write(fleet.path("out/a/clone/agent-config/lent.txt"), "lent\n").unwrap();
    let before = fleet.project.read("out/a/result.json");
    for (index, id) in [("1", "auto"), ("2", "strict")] {
        fleet.task(index).exits(0);
        let patch = fleet.project.read(&format!("out/{id}/change.patch"));
        // The build's own file is a part of the change.
        let result: Value =
            serde_json::from_str(&fleet.project.read(&format!("out/{id}/result.json"))).unwrap();
        assert_eq!(result["task"]["stat"]["files"], 2);
        // `..` contains only the clone.
        assert!(
            patch.contains("+clone\n") && patch.contains("+42\n"),
            "{id}: {patch}"
        );
        for seen in ["spent", "lent", "done", "change.patch"] {
            assert!(
                !patch.contains(&format!("+{seen}")) && !patch.contains(&format!("\"{seen}\"")),
                "{id}: {patch}"
            );
        }
    }
    assert_eq!(fleet.project.read("out/a/result.json"), before);
    assert!(!fleet.project.read("out/ledger.jsonl").contains("forged"));
}

#[test]
fn a_limit_that_calls_have_used_up_that_were_cut_off_is_reported_with_the_remedy() {
    let (silence, heard) = Answer::silence();
    let server = ModelServer::start([silence, answered(GOOD)]);
    let fleet = Fleet::new(&server);
    let limited = |limit: f64| with(change("a"), &json!({"max_cost": limit}));
    fleet.tasks(&[limited(0.2)]);
    let words = ["fleet", "task", "tasks.jsonl", "0", "--out", "out"];
    let started = fleet.project.start(&words);
    heard.recv_timeout(MINUTE).unwrap();
    kill(&started, Signal::INT);
    assert_eq!(started.wait_with_output().unwrap().status.code(), Some(130));
    for _ in 0..2 {
        fleet.task("0").exits(1).says(&[
            "the `max_cost` of the task `a` is $0.20, of which $0.",
            "for calls that were cut off",
            "raise its `max_cost`",
        ]);
    }
    assert_eq!(server.requests().len(), 1);
    fleet.tasks(&[limited(1.0)]);
    fleet.task("0").exits(0);
    assert_eq!(server.requests().len(), 2);
}
