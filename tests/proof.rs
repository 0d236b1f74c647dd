//! Builds that prove agents' claims: `--prove`.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::support::agent::{AgentProject, PASS, done, reply, write};
use crate::support::anthropic::{call, say};
use crate::support::chat::ChatProject;
use crate::support::plan::{PlanProject, response, summary, tasks, write as plan_writes};
use crate::support::{Finished, TestProject};

/// A build that passes only if there is a file that no agent of these tests has written.
const FAILS: &str = "echo building; test -e other";

fn with_build(project: &mut TestProject, build: &str) {
    let whole = std::mem::replace(project, TestProject::new());
    *project = whole.build(build);
}

fn not_executable(project: &TestProject) {
    let mode = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(project.path("build.sh"), mode).unwrap();
}

/// Checks that a run's last step is a build with this exit code, and that its log exists.
fn is_proven(run: &Finished, code: i64) {
    let result = run.result();
    let last = result["attempts"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    assert_eq!(
        (&last["kind"], &last["model"]),
        (&json!("proof"), &Value::Null)
    );
    assert_eq!(last["build"]["code"], code);
    let log = format!("{:04}-proof-tool.txt", last["number"].as_u64().unwrap());
    assert!(run.logged(&log).starts_with(&format!("exit code: {code}")));
    let name = if code == 0 { "done" } else { "build-failed" };
    assert_eq!(result["exit"]["name"], name);
}

#[test]
fn dev_work_is_built_at_the_end() {
    for (build, code) in [("echo building", 0), (FAILS, 1)] {
        let replies = [write("new.txt", "new\n"), done(), PASS.to_owned()];
        let (mut agent, _server) = AgentProject::scripted(&replies);
        with_build(&mut agent.project, build);
        let run = agent.run(&["-p", "go", "--prove"]).exits(code);
        is_proven(&run, code.into());
        assert!(run.stdout.contains("It is done."), "{}", run.stdout);
        assert_eq!(agent.project.read("new.txt"), "new\n");
        let told = agent.project.run(&["log", &run.folder]).exits(0).stdout;
        assert!(told.contains("build.sh"), "{told}");
        assert!(!told.contains("did not come to its end"), "{told}");
    }
}

#[test]
fn work_without_a_build_is_kept_and_not_proven() {
    let replies = [write("new.txt", "new\n"), done(), PASS.to_owned()];
    let (agent, _server) = AgentProject::scripted(&replies);
    std::fs::remove_file(agent.project.path("build.sh")).unwrap();
    let run = agent.run(&["-p", "go", "--prove"]).exits(1);
    let run = run.says(&[
        "the work is done, but not proven: `build.sh` is missing",
        "hint:",
    ]);
    let error = &run.result()["error"];
    assert_eq!(error["retryable"], false, "{error}");
    assert_eq!(agent.project.read("new.txt"), "new\n");
}

#[test]
fn a_build_that_cannot_be_started_is_reported_before_a_model_is_asked() {
    let (dev, asked) = AgentProject::scripted(&[done()]);
    not_executable(&dev.project);
    let run = dev.run(&["-p", "go", "--prove"]).exits(3);
    run.says(&["`build.sh` is not executable", "`chmod +x build.sh`"]);
    assert!(asked.requests().is_empty());

    let (plan, _server) = PlanProject::scripted(&[
        tasks(&[("Look", "analyze")]),
        response("I have looked."),
        summary("It is there"),
    ]);
    not_executable(&plan.project);
    let run = plan.run(&["-p", "go"]).exits(3);
    run.says(&["`build.sh` is not executable"]);
    // No reply has been used up.
    plan.run(&["-p", "go", "--gate", "off"]).exits(0);
}

#[test]
fn a_session_whose_work_is_not_proven_has_failed_and_is_proven_when_resumed() {
    let (done, pass) = (done(), PASS.to_owned());
    let replies = [
        write("new.txt", "new\n"),
        done.clone(),
        pass.clone(),
        done,
        pass,
    ];
    let (mut agent, _server) = AgentProject::scripted(&replies);
    with_build(&mut agent.project, FAILS);
    let state = |agent: &AgentProject| {
        let list = agent.run(&["sessions", "list", "--json"]).exits(0).stdout;
        let list: Value = serde_json::from_str(&list).unwrap();
        list["sessions"][0]["state"].clone()
    };
    agent.run(&["-p", "go", "--prove"]).exits(1);
    assert_eq!(state(&agent), "failed");
    agent = agent.with_file("other", "");
    agent.run(&["--resume", "-p", "", "--prove"]).exits(0);
    assert_eq!(state(&agent), "complete");
}

#[test]
fn test_changes_by_an_agent_are_judged() {
    let test = "def test_it():\n    assert True\n";
    let replies = [write("tests/test_new.py", test), done(), PASS.to_owned()];
    let (mut agent, _server) = AgentProject::scripted(&replies);
    with_build(&mut agent.project, "echo building");
    let run = agent.run(&["-p", "go", "--prove"]).exits(0);
    is_proven(&run, 0);
    let gate = &run.result()["gate"];
    assert_eq!(gate["files"], json!(["tests/test_new.py"]));
    assert_eq!(gate["new_tests"], "not-discriminating");
    run.says(&["new tests, old code: not discriminating"]);
}

#[test]
fn test_changes_by_an_agents_commands_are_judged_or_left_open() {
    let test = "tests/test_it.py";
    let weaken = format!("sed -i s/2/1/ {test}; echo more > more.txt");
    let replies = [
        write("calc.py", "def two():\n    return 1\n"),
        reply("COMMAND", &weaken),
        done(),
        PASS.to_owned(),
    ];
    for (flags, gate, said) in [
        (
            &["--sandbox", "off"][..],
            json!({"files": [], "change": "none", "old_gate": "inconclusive",
                "new_tests": "inconclusive", "unjudged": [test]}),
            "others than the agent's own tools have changed `tests/test_it.py`",
        ),
        (
            &["--sandbox", "off", "--scratch"],
            json!({"files": [test], "change": "changed", "old_gate": "failed",
                "new_tests": "proven"}),
            "failed: what was tested before does not hold (`tests/test_it.py`)",
        ),
    ] {
        let (mut agent, _server) = AgentProject::scripted(&replies);
        agent = agent.with_file("calc.py", "def two():\n    return 2\n");
        agent = agent.with_file(
            test,
            "from calc import two\ndef test_two():\n    assert two() == 2\n",
        );
        let check = "n=$(sed -n 's/.*== //p' tests/test_it.py); grep -q \"return $n\" calc.py || { \
            echo 'FAILED tests/test_it.py::test_two - AssertionError'; exit 1; }";
        with_build(&mut agent.project, check);
        let run = agent
            .run(&[&["-p", "go", "--prove"], flags].concat())
            .exits(0);
        assert_eq!(run.result()["gate"], gate);
        run.says(&[said]);
    }
}

#[test]
fn a_build_weakened_by_a_command_in_a_scratch_tree_is_judged_by_the_one_before() {
    let replies = [
        reply(
            "COMMAND",
            "printf '#!/bin/sh\\ntrue\\n' > build.sh; chmod +x a.txt",
        ),
        done(),
        PASS.to_owned(),
    ];
    let (mut agent, _server) = AgentProject::scripted(&replies);
    with_build(&mut agent.project, FAILS);
    agent = agent.with_file("a.txt", "a\n");
    let run = agent
        .run(&["-p", "go", "--prove", "--scratch", "--sandbox", "off"])
        .exits(0);
    let gate = &run.result()["gate"];
    assert_eq!(
        (&gate["change"], &gate["old_gate"]),
        (&json!("changed"), &json!("failed"))
    );
    // A new mode alone is no change that an undo could take back.
    run.says(&["the mode of `a.txt` was not brought over: its content is as it was"]);
    let mode = std::fs::metadata(agent.project.path("a.txt"))
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o111, 0);
}

#[test]
fn a_build_that_an_agent_has_emptied_is_judged_by_the_one_before() {
    let replies = [
        write("build.sh", "#!/bin/sh\ntrue\n"),
        done(),
        PASS.to_owned(),
    ];
    let (mut agent, _server) = AgentProject::scripted(&replies);
    with_build(&mut agent.project, FAILS);
    let run = agent.run(&["-p", "go", "--prove"]).exits(0);
    let gate = &run.result()["gate"];
    assert_eq!(gate["files"], json!(["build.sh"]));
    assert_eq!(gate["change"], "changed");
    assert_ne!(gate["old_gate"], "passed");
    assert_ne!(gate["old_gate"], "not-run");
}

#[test]
fn without_the_flag_nothing_is_built() {
    let (mut agent, _server) = AgentProject::scripted(&[done(), PASS.to_owned()]);
    with_build(&mut agent.project, "false");
    let run = agent.run(&["-p", "go"]).exits(0);
    let steps = run.result()["attempts"].as_array().unwrap().clone();
    assert!(steps.iter().all(|step| step["build"].is_null()));
}

#[test]
fn a_talk_builds_after_a_request_that_has_changed_files() {
    let replies = [
        done(),
        PASS.to_owned(),
        write("new.txt", "new\n"),
        done(),
        PASS.to_owned(),
    ];
    let (mut agent, _server) = AgentProject::scripted(&replies);
    with_build(&mut agent.project, "echo building");
    let run = agent
        .typed(&["--prove", "--plain"], "look\nwrite\n")
        .exits(0);
    let all = agent.project.runs();
    assert_eq!(all.len(), 2, "{}", run.stderr);
    let built = |nth: usize| all[nth].join("0004-proof-tool.txt").exists();
    assert!(!all[0].join("0003-proof-tool.txt").exists() && built(1));
}

#[test]
fn the_answer_of_a_chat_is_printed_even_if_the_build_fails() {
    for (build, code) in [("echo building", 0), (FAILS, 1)] {
        let (mut chat, _server) = ChatProject::scripted([
            call(
                "write_file",
                json!({"file_path": "new.txt", "content": "new\n"}),
            ),
            say("It is written."),
        ]);
        with_build(&mut chat.project, build);
        let run = chat
            .run(&["-p", "go", "--auto-pilot", "--prove"])
            .exits(code);
        assert_eq!(run.stdout, "It is written.\n");
        is_proven(&run, code.into());
    }
}

#[test]
fn the_answer_of_a_talk_is_printed_even_if_the_build_fails() {
    let (mut chat, _server) = ChatProject::scripted([
        call("write_file", json!({"path": "new.txt", "content": "new\n"})),
        say("It is written."),
    ]);
    with_build(&mut chat.project, FAILS);
    let run = chat.typed(&["--plain", "--auto-pilot", "--prove"], "go\n");
    assert!(run.stderr.contains("It is written."), "{}", run.stderr);
    run.says(&["the work is done, but `build.sh` fails"]);
}

#[test]
fn a_plan_without_its_own_gate_is_built_once_in_the_end() {
    let (mut plan, _server) = PlanProject::scripted(&[
        tasks(&[("Write it", "write_file")]),
        plan_writes("src/main.rs", "fn main() {}\n// new\n"),
        response("It is written."),
        summary("It works"),
    ]);
    with_build(&mut plan.project, FAILS);
    let run = plan.run(&["-p", "go", "--gate", "off", "--prove"]).exits(1);
    is_proven(&run, 1);
    run.says(&["the work is done, but `build.sh` fails: exit code: 1"]);
}
