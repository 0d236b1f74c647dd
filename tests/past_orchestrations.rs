//! Output about past orchestrations, from recorded folders: the list, the story, the page.

use std::fs;

use serde_json::{Value, json};

use crate::machine::{fits, schema};
use crate::past::in_order;
use crate::support::{ModelServer, TestProject};

const NAME: &str = "2026-11-21-20-15-03-orchestrate";

fn branch(id: &str, parent: &str, agent: &str, verdict: Option<&str>) -> Value {
    let mut branch =
        json!({"id": id, "parent": parent, "agent": agent, "status": "succeed", "seconds": 12.5});
    if let Some(verdict) = verdict {
        branch["verdict"] = verdict.into();
    }
    branch
}

fn branches() -> Vec<Value> {
    vec![
        branch("b-1", "start", "claude_code", None),
        branch("b-2", "b-1", "codex", Some("clean")),
        branch("b-3", "b-2", "claude_code", None),
    ]
}

fn agent() -> Value {
    json!({
        "session": null, "request": "Mend <it>.", "interactive": false, "answers": [],
        "limits": {"max_context_tokens": null, "max_retries": 3, "max_retries_automated": 3, "max_loops": 1000},
        "orchestration": {
            "model": "my-deployment", "provider": "openai", "parent_branch_id": "start", "project_name": "proj",
            "workspace_dir": "/home/pan/workspace", "publishes": true,
            "polling": {"initial": 2.0, "max": 30.0, "timeout": 10800.0, "factor": 2.0},
        },
    })
}

/// A step that calls a tool, or ends with text.
fn step(kind: &str, number: u8, tool: Option<(&str, Value, &str)>) -> Value {
    let asks = kind == "step";
    let mut step = json!({
        "kind": kind, "number": number, "model": asks.then_some("my-deployment"), "prompt": [], "seconds": 1.0,
        "finish": asks.then_some("stop"), "usage": null, "cost": 0.0, "edits": null, "build": null,
    });
    match tool {
        Some((name, input, result)) => {
            step["tools"] = json!([{"name": name, "failed": false, "input": input, "result": result, "seconds": 12.5}]);
        }
        None => step["answer"] = "It is mended.".into(),
    }
    step
}

fn run_agent(agent: &str, branch: &str) -> (&'static str, Value, String) {
    (
        "execute_agent",
        json!({"agent": agent, "prompt": "Mend <it>."}),
        format!("branch {branch}: succeed\nI have done it on {branch}."),
    )
}

/// A project with a run that was published.
fn recorded() -> TestProject {
    let [first, second, third] = [
        run_agent("claude_code", "b-1"),
        run_agent("codex", "b-2"),
        run_agent("claude_code", "b-3"),
    ];
    let call = |of: &(&'static str, Value, String)| (of.0, of.1.clone(), of.2.clone());
    let of = |call: &(&'static str, Value, String), kind, number| {
        step(kind, number, Some((call.0, call.1.clone(), &call.2)))
    };
    let (first, second, third) = (call(&first), call(&second), call(&third));
    let log = "VERDICT: CLEAN\nNothing.";
    let steps = [
        of(&first, "step", 1),
        of(&second, "step", 2),
        step(
            "step",
            3,
            Some((
                "read_artifact",
                json!({"branch_id": "b-2", "path": "codex_review.log"}),
                log,
            )),
        ),
        step("step", 4, None),
        of(&third, "publish", 5),
    ];
    let lines: String = steps.iter().map(|step| format!("{step}\n")).collect();
    let brief = steps.iter().map(|step| {
        let mut brief = step.clone();
        let fields = brief.as_object_mut().unwrap();
        fields.remove("answer");
        if let Some(tools) = fields.get_mut("tools") {
            *tools = json!([{"name": tools[0]["name"], "failed": false}]);
        }
        brief
    });
    let brief: Vec<Value> = brief.collect();
    let result = json!({
        "schema": 1, "version": "0.1.0", "workflow": "orchestrate", "exit": {"code": 0, "name": "done"},
        "tree": "unchanged", "model": "my-deployment", "model_version": null,
        "started": "2026-11-21T20:15:03+01:00", "seconds": 40.0, "cost": 0.0, "stat": null,
        "attempts": brief, "agent": agent(), "warnings": [], "error": null,
        "orchestration": {
            "task": "Mend <it>.", "summary": "It is mended.", "status": "completed", "is_finished": true,
            "start_branch_id": "start", "latest_branch_id": "b-3", "instructions": "Merge the branch.",
            "publish_report": "repository: r\nbranch: mend-it\ncommit: 1234567", "publish_pantheon_branch_id": "b-3",
            "iterations": 1, "log": format!("logs/{NAME}"), "branches": branches(),
        },
    });
    let file = |name: &str| format!("logs/{NAME}/{name}");
    let mut project = TestProject::new()
        .file(&file("result.json"), result.to_string())
        .file(&file("agent.json"), agent().to_string())
        .file(&file("steps.jsonl"), lines);
    for number in 1..=4 {
        project = project.file(&file(&format!("000{number}-step-response.txt")), "");
    }
    project
}

/// The same, killed while the run waited for a branch.
fn killed() -> TestProject {
    let mut branches = branches();
    branches[2]["status"] = "running".into();
    branches.truncate(3);
    let lineage = json!({
        "start_branch_id": "start", "latest_branch_id": "b-2", "waiting_for": "b-3", "iterations": 1,
        "branches": branches,
    });
    let project = recorded();
    let lines = project.read(&format!("logs/{NAME}/steps.jsonl"));
    // Publishing had begun, without a result.
    let (before, _) = lines.trim_end().rsplit_once('\n').unwrap();
    let mut begun = step("publish", 5, None);
    begun.as_object_mut().unwrap().remove("answer");
    project
        .without(&format!("logs/{NAME}/result.json"))
        .file(&format!("logs/{NAME}/lineage.json"), lineage.to_string())
        .file(
            &format!("logs/{NAME}/steps.jsonl"),
            format!("{before}\n{begun}\n{{\"kind\": \"pu"),
        )
}

#[test]
fn an_orchestration_is_listed_and_reported_as_a_story() {
    let project = recorded();
    let listed = project.run(&["log"]).exits(0).stdout;
    in_order(
        &listed,
        &[
            NAME,
            "orchestrate",
            "my-deployment",
            "completed",
            "Mend <it>.",
        ],
    );
    let story = project.run(&["log", "last"]).exits(0).stdout;
    in_order(
        &story,
        &[
            "✓ A review has passed the work\n",
            "ran my-deployment as an orchestrator.",
            "  Result  completed (exit code 0)\n",
            "  Took    40.0 s (",
            "The request\n    Mend <it>.\n",
            "It began from branch start of the project proj.",
            "The result\n    It is mended.\n",
            "  Published from branch b-3\n    repository: r\n",
            "  What to do now\n    Merge the branch.\n",
            "Branches\n  branch  from   agent        status   result    took\n",
            "  b-1     start  claude_code  succeed          12.5 s\n",
            "  b-2     b-1    codex        succeed  CLEAN   12.5 s\n",
            "  b-3     b-2    claude_code  succeed          12.5 s\n",
            "the last one that succeeded is b-3, after 1 review.",
            "✓ Step 1 (execute_agent)\n  my-deployment",
            "  ✓ execute_agent claude_code Mend <it>. (done, 12.5 s)\n      branch b-1: succeed\n      I have done it on b-1.\n",
            "  ✓ execute_agent codex Mend <it>. (done, 12.5 s)\n      branch b-2: succeed\n",
            "  ✓ read_artifact b-2 codex_review.log (done, 12.5 s)\n      VERDICT: CLEAN",
            "  Answer\n    It is mended.\n",
            "✓ Publish 5 (execute_agent)\n  ✓ execute_agent claude_code Mend <it>. (done, 12.5 s)\n      branch b-3: succeed\n",
        ],
    );
    assert!(!story.contains("no reply"), "{story}");
    let json = project.run(&["log", "--output-format", "json"]).exits(0);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    fits(&schema("result"), &json["runs"][0]["result"]);
}

#[test]
fn an_orchestration_that_only_published_tells_no_calls() {
    let project = recorded();
    let result = format!("logs/{NAME}/result.json");
    let mut record: Value = serde_json::from_str(&project.read(&result)).unwrap();
    record["attempts"].as_array_mut().unwrap().drain(..4);
    let project = project.file(&result, record.to_string());
    let story = project.run(&["log", "last"]).exits(0).stdout;
    assert!(story.contains("  Took    40.0 s\n"), "{story}");
}

#[test]
fn an_orchestration_that_was_killed_shows_where_it_was() {
    let project = killed();
    // It holds no project lock, so that the list cannot show whether it is running.
    let listed = project.run(&["log"]).exits(0).stdout;
    in_order(&listed, &[NAME, "orchestrate", "killed", "Mend <it>."]);
    let story = project.run(&["log", NAME]).exits(0).stdout;
    in_order(
        &story,
        &[
            "… Not finished: it was killed\n",
            "The request\n    Mend <it>.\n",
            "It began from branch start",
            "  b-1     start  claude_code  succeed",
            "  b-2     b-1    codex        succeed  CLEAN   12.5 s\n",
            "  b-3     b-2    claude_code  running",
            "It was waiting for branch b-3, which may go on remotely.",
            "the last one that succeeded is b-2, after 1 review.",
            "branch b-1: succeed",
            "… Publish 5 (not ended)\n  It did not come to its end.\n",
        ],
    );
    project.run(&["report", NAME]).exits(0);
    let page = project.read(&format!("logs/{NAME}/report.html"));
    in_order(
        &page,
        &[
            "Mend &lt;it&gt;.",
            "It was waiting for branch b-3",
            "not ended",
        ],
    );
}

/// A run killed during a call, after a question that the user answered, and an invalid report.
fn talked() -> TestProject {
    let idle = |number, parts: &[&str]| {
        let mut step = step("step", number, None);
        step.as_object_mut().unwrap().remove("answer");
        let parts = parts.iter().map(|part| json!({"part": part, "bytes": 9}));
        step["reply"] = parts.collect();
        step
    };
    let mut agent = agent();
    agent["interactive"] = true.into();
    agent["answers"] = json!(["The first.", null]);
    let steps = [
        idle(1, &["text"]),
        idle(2, &["text"]),
        idle(3, &["text"]),
        idle(4, &["text", "call"]),
    ];
    let lines: String = steps.iter().map(|step| format!("{step}\n")).collect();
    let file = |name: &str| format!("logs/{NAME}/{name}");
    let report = r#"{"is_finished": true, "task": "t", "summary": "All is well."}"#;
    TestProject::new()
        .file(&file("agent.json"), agent.to_string())
        .file(&file("steps.jsonl"), lines)
        .file(&file("0001-step-response.txt"), "Which one?")
        .file(&file("0002-step-response.txt"), report)
        .file(&file("0003-step-response.txt"), "And how?")
        .file(&file("0004-step-response.txt"), "I will do it.")
}

#[test]
fn words_and_calls_that_nothing_came_of_are_reported() {
    let project = talked();
    let story = project.run(&["log", NAME]).exits(0).stdout;
    in_order(
        &story,
        &[
            "  The user answered\n    The first.\n  The user answered\n    (nothing)\n",
            "… Step 1 (words)\n",
            "    Which one?\n  This reply did not end the work: it is a question, or a report that did not count.\n",
            "… Step 2 (words)\n",
            "    {\"is_finished\"",
            "… Step 3 (words)\n",
            "    And how?\n",
            "✗ Step 4 (not ended)\n",
            "    I will do it.\n  The call did not come to its end: the run ended first.\n",
        ],
    );
    assert!(!story.contains("Nothing was done"), "{story}");
    project.run(&["report", NAME]).exits(0);
    let page = project.read(&format!("logs/{NAME}/report.html"));
    in_order(
        &page,
        &[
            "Which one?",
            "did not end the work",
            "All is well.",
            "did not end the work",
            "I will do it.",
            "did not come to its end",
        ],
    );
    assert!(!page.contains("nothing done"), "{page}");
}

#[test]
fn the_page_has_its_branches_and_its_report() {
    let project = recorded();
    project.run(&["report"]).exits(0);
    let page = project.read(&format!("logs/{NAME}/report.html"));
    in_order(
        &page,
        &[
            "A review has passed the work",
            "Mend &lt;it&gt;.",
            "The result",
            "mend-it",
            "Merge the branch.",
            "Branches",
            "CLEAN",
            "Publish 5",
        ],
    );
    assert!(!page.contains("Changed</dt>") && !page.contains("There is none."));
}

#[test]
fn an_orchestration_has_changed_nothing_that_could_be_undone() {
    for project in [recorded(), killed()] {
        let undone = project.run(&["undo", NAME]).exits(0);
        assert!(
            undone.stdout.contains("changed nothing"),
            "{}",
            undone.stdout
        );
        let diff = project.run(&["diff", NAME]).exits(0);
        assert!(diff.stdout.contains("changed nothing"), "{}", diff.stdout);
        project.run(&["undo"]).exits(2);
    }
}

#[test]
fn a_run_that_holds_the_project_leaves_an_orchestration_alone() {
    let project = killed();
    // The file that was about to be moved into place.
    let staged = format!("logs/{NAME}/.staged-1");
    let project = project.file(&staged, "{}");
    let server = ModelServer::gemini(&["^^^a\nb\n^^^end\n"]);
    let project = project.with(&server);
    let run = project.run(&[]).exits(0);
    assert!(!run.stderr.contains("was killed"), "{}", run.stderr);
    assert!(fs::exists(project.path(&staged)).unwrap());
}

#[test]
fn a_run_that_is_not_an_orchestration_is_not_replayed_as_one() {
    let name = "2026-11-21-20-15-03";
    let project = TestProject::new().file(&format!("logs/{name}/0000-initial-query.txt"), "");
    let replay = format!("logs/{name}");
    let run = project
        .run(&["orchestrate", "--replay", &replay, "--headless"])
        .exits(2);
    run.says(&["is no orchestration", "name one of `orchestrate`"]);
}
