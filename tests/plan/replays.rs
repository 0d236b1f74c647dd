//! The record of a run, and its replay: nothing is sent, and the original session is left alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::sessions::whole;
use crate::support::plan::{PlanProject, calls, queries, response, said, serving, summary, tasks};
use crate::support::{Answer, Finished};

/// Returns the files of a session's folder, without the lock.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let named = entries.map(|entry| {
        let name = entry.file_name().to_str().unwrap().to_owned();
        (name, fs::read(entry.path()).unwrap())
    });
    named.collect()
}

/// Returns a document's lines, without times.
fn timeless(document: &str) -> Vec<String> {
    let lines = document.lines().filter(|line| !line.contains("edAt: "));
    lines.map(str::to_owned).collect()
}

/// Replays a run, and checks that nothing is sent, that the original session is unchanged, and that the plan comes out
/// the same.
#[track_caller]
fn replays(plan: &PlanProject, run: &Finished) -> Finished {
    let session = plan.sessions().pop().unwrap();
    let before = files(&session);
    let replayed = plan.run(&["--replay", &run.folder]).exits(run.code);
    assert_eq!(files(&session), before);
    let document = plan.sessions().pop().unwrap().join("plan_doc.md");
    assert_ne!(document, session.join("plan_doc.md"));
    let (was, is) = (run.result(), replayed.result());
    assert_eq!(was["plan"]["steps"], is["plan"]["steps"]);
    assert_eq!(was["plan"]["status"], is["plan"]["status"]);
    replayed
}

#[test]
fn a_run_is_recorded_and_replayed() {
    let (plan, server) = PlanProject::scripted(&whole());
    let run = plan.work("Make a.txt").exits(0);
    let result = run.result();
    assert_eq!(result["workflow"], "plan");
    assert_eq!(result["exit"], json!({"code": 0, "name": "done"}));
    let kinds: Vec<&str> = result["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|attempt| attempt["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["plan", "step", "step", "step", "summary"]);
    assert_eq!(result["agent"]["session"], plan.session()["id"]);
    assert_eq!(result["plan"]["status"], "completed");
    assert_eq!(
        result["plan"]["steps"],
        json!([
            {"step": 1, "description": "Write a.txt", "tool": "write_file", "status": "done"},
            {"step": 2, "description": "Look at it", "tool": "analyze", "status": "done"},
        ])
    );
    for file in [
        "0001-plan.txt",
        "0002-step.txt",
        "0005-summary.txt",
        "plan_doc.md",
    ] {
        assert!(run.files().contains(&file.to_owned()), "{file}");
    }
    let steps = run.logged("steps.jsonl");
    assert!(
        steps
            .lines()
            .all(|line| serde_json::from_str::<Value>(line).is_ok())
    );
    assert!(steps.contains("\"kind\":\"summary\""), "{steps}");
    assert!(run.folder.ends_with("-plan"), "{}", run.folder);

    assert!(
        plan.project
            .run(&["log"])
            .exits(0)
            .stdout
            .contains("Make a.txt")
    );
    assert!(
        plan.project
            .run(&["diff"])
            .exits(0)
            .stdout
            .contains("+++ b/a.txt")
    );
    plan.project.run(&["report"]).exits(0);
    let document = plan.document();
    plan.project.run(&["undo"]).exits(0);
    assert!(!plan.project.path("a.txt").exists());
    assert_eq!(plan.document(), document);

    let asked = server.requests().len();
    replays(&plan, &run);
    assert_eq!(plan.project.read("a.txt"), "a\n");
    assert_eq!(timeless(&plan.document())[..20], timeless(&document)[..20]);
    assert_eq!(
        server.requests().len(),
        asked,
        "not even the models are asked for"
    );
    // A replay cannot be resumed.
    plan.run(&["--resume", "-p", ""]).exits(2);
}

#[test]
fn a_run_that_failed_was_resumed_or_had_questions_is_replayed() {
    let (plan, _server) = PlanProject::scripted(&[
        tasks(&[("Write", "write_file")]),
        response("I would."),
        response("I would."),
        response("I would."),
        summary("Nothing"),
        calls(&[(
            "write_file",
            json!({"file_path": "b.txt", "content": "b\n"}),
        )]),
        response("Written."),
        summary("Written"),
    ]);
    let failed = plan.work("Write b.txt").exits(1);
    assert_eq!(failed.result()["exit"]["name"], "step-failed");
    replays(&plan, &failed);
    // The replay's session cannot be resumed, so this resumes the one before.
    let resumed = plan.run(&["--resume", "-p", ""]).exits(0);
    fs::remove_file(plan.project.path("b.txt")).unwrap();
    replays(&plan, &resumed);
    assert_eq!(plan.project.read("b.txt"), "b\n");

    let (plan, _server) = PlanProject::scripted(&[
        tasks(&[("Ask", "ask_user")]),
        calls(&[("ask_user", json!({"question": "Which colour?"}))]),
        response("Green it is."),
        summary("Asked"),
    ]);
    let typed = [
        ("plan> ", "Paint it\r"),
        ("answer> ", "green\r"),
        ("(yes/no/edit): ", "edit\r"),
        ("Action: ", "Asked\r"),
        ("Details: ", "It is green\r"),
        ("plan> ", "\u{4}"),
    ];
    if plan.in_terminal("", &typed).is_none() {
        return;
    }
    let name = plan.project.runs().pop().unwrap();
    let name = name.file_name().unwrap().to_str().unwrap();
    plan.run(&["--replay", name]).exits(0);
    let document = plan.document();
    assert!(
        document.contains(" - Asked\n**Actions:** It is green\n"),
        "{document}"
    );
}

#[test]
fn a_plan_that_was_made_alone_is_replayed_alone() {
    let (plan, _server) = PlanProject::scripted(&whole());
    let made = plan.run(&["--plan-only", "-p", "Make a.txt"]).exits(0);
    replays(&plan, &made);
    assert!(!plan.project.path("a.txt").exists());
}

#[test]
fn neither_undo_nor_a_replay_touches_a_document_in_the_project() {
    let (plan, _server) = PlanProject::scripted(&whole());
    let run = plan
        .run(&["--plan-file", "plan.md", "-p", "Make a.txt"])
        .exits(0);
    let document = plan.project.read("plan.md");
    plan.project.run(&["undo"]).exits(0);
    assert_eq!(plan.project.read("plan.md"), document);
    for more in [&[][..], &["--plan-file", "plan.md"]] {
        let arguments = [&["--replay", &*run.folder], more].concat();
        plan.run(&arguments).exits(0);
        assert_eq!(plan.project.read("plan.md"), document);
    }
    plan.run(&["--replay", &run.folder, "--resume"]).exits(2);
}

#[test]
fn a_run_that_was_killed_is_replayed_as_far_as_it_got() {
    let (silence, waiting) = Answer::silence();
    let answers = whole();
    let server = serving(answers[..2].iter().map(said).chain([silence]));
    let plan = PlanProject::new(&server);
    let mut child = plan.spawn(&["-p", "Make a.txt"]);
    waiting.recv().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let name = plan.project.runs().pop().unwrap();
    let name = name.file_name().unwrap().to_str().unwrap();
    let asked = queries(&server);
    plan.run(&["--replay", name])
        .exits(4)
        .says(&["0003-step-response.json"]);
    assert_eq!(queries(&server), asked);

    // The run that resumed it can be replayed as well, including its output about earlier steps.
    let server = serving(answers[2..].iter().map(said));
    let address = server.url().replace("http://", "");
    let plan = plan.with_variable("OLLAMA_HOST", &address);
    let resumed = plan.run(&["--resume", "-p", ""]).exits(0);
    let document = fs::read_to_string(plan.sessions()[0].join("plan_doc.md")).unwrap();
    assert!(document.contains("**Tools:** write_file\n"), "{document}");
    replays(&plan, &resumed);
    assert!(plan.document().contains("**Tools:** write_file\n"));
}
