//! Sessions: their content, their access rights, and the resumption of interrupted ones.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::plan::{
    MODEL, PlanProject, last_told, queries, query, response, said, serving, summary_with_updates,
    tasks, tasks_with_criteria, write,
};
use crate::support::screen::{CTRL_D, Screen};
use crate::support::{Answer, Finished, TestProject};

/// Replies for a whole request: a list, two steps and a log entry.
pub fn whole() -> Vec<String> {
    vec![
        tasks_with_criteria(
            &[("Write a.txt", "write_file"), ("Look at it", "analyze")],
            &["a.txt is there"],
        ),
        write("a.txt", "a\n"),
        response("It is written."),
        response("It is good."),
        summary_with_updates("✓ a.txt is there", &["a.txt is there"]),
    ]
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_session_is_a_folder_for_its_user_alone() {
    let (plan, _server) = PlanProject::scripted(&whole());
    plan.work("Make a.txt").exits(0);
    let folder = plan.sessions().pop().unwrap();
    let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
    let (time, zone) = name.split_at("2026-01-07T10:23:21.000".len());
    assert!(chrono::NaiveDateTime::parse_from_str(time, "%Y-%m-%dT%H:%M:%S%.3f").is_ok());
    assert!(!zone.is_empty() && !zone.contains('/'), "{name}");
    for directory in [plan.home(""), plan.home("sessions"), folder.clone()] {
        assert_eq!(mode(&directory), 0o700, "{}", directory.display());
    }
    for file in ["plan_doc.md", "chat_history.log", "session.json"] {
        assert_eq!(mode(&folder.join(file)), 0o600, "{file}");
    }
    let session = plan.session();
    let first: Vec<&String> = session.as_object().unwrap().keys().collect();
    assert_eq!(first[..4], ["id", "startedAt", "model", "status"]);
    assert_eq!(session["id"], name.as_str());
    assert_eq!(session["model"], MODEL);
    assert_eq!(session["status"], "completed");
    assert!(session["startedAt"].as_u64().unwrap() > 1_700_000_000_000);
    let models = fs::read_to_string(plan.home("config/models.json")).unwrap();
    assert!(models.contains("qwen2.5-coder:32b"), "{models}");

    let listed = plan.run(&["sessions", "list"]).exits(0).stdout;
    assert!(
        listed.contains(&name) && listed.contains("Make a.txt"),
        "{listed}"
    );
    let listed = plan.run(&["sessions", "list", "--json"]).exits(0).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["sessions"][0]["status"], "completed");
    assert_eq!(listed["sessions"][0]["id"], name.as_str());
}

#[test]
fn a_request_may_come_by_a_pipe_and_the_home_be_elsewhere() {
    let (plan, _server) = PlanProject::scripted(&whole());
    let data = tempfile::tempdir().unwrap();
    let plan = plan
        .with_variable("OLLAMA_AGENT_HOME", "")
        .with_variable("XDG_DATA_HOME", data.path().to_str().unwrap());
    plan.typed(&["-p", "-"], "Make a.txt\n").exits(0);
    assert!(plan.sessions().is_empty());
    let listed = plan.run(&["sessions", "list"]).exits(0).stdout;
    assert!(listed.contains("Make a.txt"), "{listed}");
    let sessions = fs::read_dir(data.path().join("ollama-agent/sessions")).unwrap();
    assert_eq!(sessions.count(), 1);
    assert!(data.path().join("ollama-agent/config/models.json").exists());
}

#[test]
fn a_run_that_ends_at_any_call_is_resumed_there() {
    for (signal, code) in [(Signal::KILL, None), (Signal::INT, Some(130))] {
        for call in 0..whole().len() {
            let (silence, waiting) = Answer::silence();
            let answered = whole();
            let (before, after) = answered.split_at(call);
            let answers = before.iter().map(said).chain([silence]);
            let server = serving(answers.chain(after.iter().map(said)));
            let plan = PlanProject::new(&server).with_build("echo built >> agent-config/builds");
            let mut child = plan.spawn(&["-p", "Make a.txt"]);
            waiting.recv().unwrap();
            let number = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
            kill_process(number, signal).unwrap();
            let status = child.wait().unwrap();
            assert_eq!(status.code(), code, "call {call}");
            assert_eq!(status.signal(), code.is_none().then_some(9));
            let listed = plan.run(&["sessions", "list"]).stdout;
            assert!(listed.contains("interrupted"), "{listed}");
            let heard = plan.kept("chat_history.log");

            let resumed = plan.run(&["--resume", "-p", ""]).exits(0);
            // Only the unanswered call is repeated.
            assert_eq!(queries(&server), whole().len() + 1, "call {call}");
            assert_eq!(plan.project.read("a.txt"), "a\n");
            let document = plan.document();
            assert!(
                document.contains("**Status:** completed") && document.contains("- [x] a.txt"),
                "{document}"
            );
            assert_eq!(document.matches("**Tools:** write_file").count(), 1);
            assert!(plan.kept("chat_history.log").starts_with(&heard));
            assert_eq!(plan.session()["status"], "completed");
            assert_eq!(plan.sessions().len(), 1);
            let stamp = resumed.result()["agent"]["session"].clone();
            assert_eq!(stamp, plan.session()["id"]);
        }
    }
}

#[test]
fn a_tool_that_was_cut_short_is_not_used_twice_where_it_may_have_changed_something() {
    let server = serving(whole().iter().map(said));
    let plan = PlanProject::new(&server);
    plan.run(&["--plan-only", "-p", "Make a.txt"]).exits(0);
    // The state after a kill following the call.
    let path = plan.sessions().pop().unwrap().join("session.json");
    let document = plan.document().replace("1. [ ]", "1. [~]");
    fs::write(path.with_file_name("plan_doc.md"), document).unwrap();
    let mut session = plan.session();
    session["status"] = "active".into();
    session["conversation"]["history"] = json!([
        {"role": "user", "content": "Current task: Write a.txt"},
        {"role": "assistant", "content": write("a.txt", "a\n")},
    ]);
    fs::write(path, session.to_string()).unwrap();
    plan.run(&["--resume", "-p", ""]);
    let told = last_told(&server, 1);
    assert!(
        told.contains("Tool results:\n[0] ❌ Error: ") && told.contains("interrupted"),
        "{told}"
    );
}

#[test]
fn a_plan_that_was_made_is_reviewed_and_edited_before_it_is_worked_off() {
    let server = serving(
        [
            tasks(&[("One", "analyze"), ("Two", "analyze"), ("Three", "analyze")]),
            response("Two reworded."),
            response("One."),
            response("Four."),
            summary_with_updates("Done", &[]),
        ]
        .iter()
        .map(said),
    );
    let plan = PlanProject::new(&server);
    let made = plan.run(&["--plan-only", "-p", "Count"]).exits(0);
    assert!(made.stdout.contains("--resume -p \"\""), "{}", made.stdout);
    assert_eq!(queries(&server), 1);
    let path = plan.sessions().pop().unwrap().join("plan_doc.md");
    let document = plan.document();
    let (before, rest) = document.split_once("1. [ ] One").unwrap();
    let (_, after) = rest.split_once("## Execution Log").unwrap();
    // Three is deleted, Four added, Two reworded, and all are reordered, without numbers.
    let tasks = "- [ ] Two, and better\n* [ ] One\n9. Four\n   mine\n\n";
    fs::write(&path, format!("{before}{tasks}## Execution Log{after}")).unwrap();
    plan.run(&["--resume", "-p", ""]).exits(0);
    for (nth, task) in [(1, "Two, and better"), (2, "One"), (3, "Four\nmine")] {
        let told = last_told(&server, nth);
        assert!(
            told.ends_with(&format!("Current task: {task}")),
            "{nth}: {told}"
        );
    }
    let document = plan.document();
    for line in ["1. [x] Two, and better\n", "2. [x] One\n", "3. [x] Four"] {
        assert!(document.contains(line), "{line} of {document}");
    }
}

#[test]
fn sessions_that_cannot_be_resumed_are_reported_with_the_remedy() {
    let (plan, server) = PlanProject::scripted(&whole());
    for arguments in [
        &["-p", ""][..],
        &["--resume", "-p", "x"],
        &["--session", "2026-01-01T00:00:00.000UTC", "-p", "x"],
        &["--session", "../sessions", "-p", "x"],
        &["show"],
        &["show", "none"],
    ] {
        plan.run(arguments).exits(2).says(&["hint: "]);
    }
    plan.work("Make a.txt").exits(0);
    // Everything is done.
    plan.run(&["--resume", "-p", ""])
        .exits(2)
        .says(&["there is no task"]);
    assert_eq!(queries(&server), whole().len());

    let id = plan.session()["id"].as_str().unwrap().to_owned();
    let elsewhere = TestProject::new();
    let output = plan
        .command(&["--session", &id, "-p", "x"])
        .current_dir(elsewhere.path(""))
        .output();
    Finished::new(&elsewhere, &[], output.unwrap()).exits(2);
    // Without the other project's table, another model is used.
    let path = plan.sessions().pop().unwrap();
    let kept = fs::read(path.join("session.json")).unwrap();
    fs::write(path.join("session.json"), "{\n  \"id\": 1,\n").unwrap();
    plan.run(&["--session", &id, "-p", "x"])
        .exits(3)
        .says(&["session.json", "hint: "]);
    let listed = plan.run(&["sessions", "list"]).exits(0).stdout;
    assert!(listed.contains("damaged"), "{listed}");
    fs::remove_file(path.join("session.json")).unwrap();
    plan.run(&["--session", &id, "-p", "x"]).exits(3);
    fs::write(path.join("session.json"), kept).unwrap();
    assert_eq!(queries(&server), whole().len());
}

#[test]
fn a_request_that_could_not_begin_hides_no_session() {
    let (plan, server) = PlanProject::scripted(&whole());
    plan.run(&["--plan-only", "-p", "Make a.txt"]).exits(0);
    let too_long = "x".repeat((64 << 10) + 1);
    for (content, problem) in [(&b"\xff"[..], "not UTF-8"), (too_long.as_bytes(), "64 KiB")] {
        fs::write(plan.project.path("AGENTS.md"), content).unwrap();
        plan.work("Make b.txt")
            .exits(3)
            .says(&["AGENTS.md", problem, "hint: "]);
    }
    fs::remove_file(plan.project.path("AGENTS.md")).unwrap();
    assert_eq!(queries(&server), 1);
    plan.run(&["--resume", "-p", ""]).exits(0);
    assert_eq!(plan.project.read("a.txt"), "a\n");
}

#[test]
fn a_session_is_used_by_one_process_at_a_time() {
    let (silence, waiting) = Answer::silence();
    let server = serving([silence]);
    let plan = PlanProject::new(&server);
    let mut child = plan.spawn(&["-p", "Make a.txt"]);
    waiting.recv().unwrap();
    let id = plan.session()["id"].as_str().unwrap().to_owned();
    for arguments in [&["--resume", "-p", ""][..], &["--session", &id, "-p", "x"]] {
        plan.run(arguments).exits(3).says(&["process", "hint: "]);
    }
    // Viewing needs no lock.
    plan.run(&["show"]).exits(0);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_file_that_a_session_lacks_is_made_again_only_where_it_is_not_there() {
    let mut answers = whole();
    answers.extend(whole());
    let (plan, _server) = PlanProject::scripted(&answers);
    plan.work("Make a.txt").exits(0);
    let folder = plan.sessions().pop().unwrap();
    for file in ["plan_doc.md", "chat_history.log"] {
        fs::remove_file(folder.join(file)).unwrap();
    }
    plan.run(&["--resume", "-p", "Once more"]).exits(0);
    let document = plan.document();
    assert!(document.contains("# Plan: Once more\n"), "{document}");
    assert!(plan.kept("chat_history.log").contains("USER: Once more"));
}

#[test]
fn the_commands_of_a_talk_are_those_of_all_agents() {
    let mut answers = whole();
    answers.extend(whole());
    let (plan, server) = PlanProject::scripted(&answers);
    let typed = [
        ("/help, Ctrl-D quits", ""),
        ("plan> ", "/compact\r"),
        ("there is nothing to compact yet", ""),
        ("plan> ", "/help\r"),
        ("/resume [NUMBER]", ""),
        ("plan> ", "/undo\r"),
        ("nothing to undo in this session", ""),
        ("plan> ", "Make a.txt\r"),
        ("(yes/no/edit): ", "yes\r"),
        ("plan> ", "/diff\r"),
        ("+++ b/a.txt", ""),
        ("plan> ", "/undo\r"),
        ("plan> ", "/cost\r"),
        ("this session: ", ""),
        ("plan> ", "/model no-such\r"),
        ("`no-such`", ""),
        ("plan> ", "/clear\r"),
        ("(new session)", ""),
        ("plan> ", "/resume 7\r"),
        ("there is no session `7`", ""),
        ("plan> ", "/resume 1\r"),
        ("(resumed)", ""),
        ("plan> ", "/exit\r"),
    ];
    let Some((shown, code)) = plan.in_terminal("", &typed) else {
        return;
    };
    assert_eq!(code, 0, "{shown}");
    assert!(!plan.project.path("a.txt").exists());
    assert_eq!(plan.sessions().len(), 2);
    assert_eq!(queries(&server), whole().len());
}

#[test]
fn another_session_shows_its_own_work_steps_and_usage() {
    let (plan, _server) = PlanProject::scripted(&whole());
    let Some(mut screen) = Screen::open(&plan.command(&[]), 120, 60) else {
        return;
    };
    let summary = "Result: ✓ a.txt is there";
    screen
        .shows("What would you like to build?")
        .types("Make a.txt\r")
        .shows("(yes/no/edit)")
        .rests()
        .types("yes\r")
        .shows("plan's log has it")
        .shows("Todos 2/2")
        .shows("· 750 tokens ·")
        .shows("Context: 100/")
        .types("/clear\r")
        .shows("(new session)")
        .hides("Todos ")
        .shows("Context: 0/")
        .types("/resume 1\r")
        .shows("Todos 2/2")
        .shows("Context: 100/")
        .until("the last request and its summary", |contents| {
            let (_, since) = contents.split_once("(resumed)").unwrap_or_default();
            since.contains("> Make a.txt") && since.contains(summary)
        })
        .types("/cost\r")
        .shows(
            "this session: 750 tokens, $0 and 5 calls at an unknown price; since it was opened: 0s",
        )
        .types(CTRL_D);
    assert_eq!(screen.ends().1, 0);
}

#[test]
fn messages_of_steps_are_replaced_by_a_summary() {
    let long = "word ".repeat(2000);
    let made = |path: &str| {
        [
            tasks(&[("Write it", "write_file")]),
            write(path, &long),
            response("It is written."),
            summary_with_updates("✓ it is there", &[]),
        ]
    };
    let summary = ["The user wants words.".to_owned()];
    let answers = [&made("a.txt")[..], &summary, &made("b.txt")].concat();
    let (plan, server) = PlanProject::scripted(&answers);
    let typed = "Make a.txt\nyes\n/compact the words\nMake b.txt\nyes\n";
    let run = plan.typed(&[], typed).exits(0);
    run.says(&["compacted: about ", "plan's log has it"]);
    let told = |nth| query(&server, nth)["messages"].to_string();
    let asked = told(4);
    assert!(asked.contains("keep this above all:"), "{asked}");
    assert!(
        asked.contains("the words") && asked.contains("a.txt"),
        "{asked}"
    );
    let step = told(6);
    assert!(step.contains("The user wants words."), "{step}");
    assert!(!step.contains(&long), "{step}");
    assert!(plan.document().contains("Did the work"));
}

#[test]
fn a_session_in_which_nothing_was_asked_for_is_not_offered() {
    let (plan, _server) = PlanProject::scripted(&[""; 0]);
    for typed in ["", "/resume\n/clear\n/resume\n/exit\n"] {
        let run = plan.typed(&[], typed).exits(0);
        assert_eq!(run.stdout, "nothing was asked for\n");
        assert!(!run.stderr.contains("Resume a session"), "{}", run.stderr);
    }
}

#[test]
fn a_new_session_does_not_change_the_exit_code() {
    let refused = Answer::error(400, &json!({"error": "not now"}));
    let whole = whole().into_iter().map(said);
    let server = serving(std::iter::once(refused).chain(whole));
    let plan = PlanProject::new(&server);
    let run = plan.typed(&[], "Look around\n/clear\n").exits(4);
    let run = run.says(&["the last request was not completed"]);
    assert_eq!(run.stdout, "nothing was asked for\n");
    let run = plan.typed(&[], "/clear\nWrite a.txt\n/clear\n").exits(0);
    assert!(!run.stderr.contains("not completed"), "{}", run.stderr);
}

#[test]
fn a_request_that_is_under_way_is_not_compacted() {
    let refused = Answer::error(400, &json!({"error": "not now"}));
    let server = serving([said(tasks(&[("Look", "analyze")])), refused]);
    let plan = PlanProject::new(&server);
    let run = plan.typed(&[], "Look around\n/compact\n").exits(4);
    let run = run.says(&[
        "the request is not done",
        "`--resume` finishes it",
        "the last request was not completed",
    ]);
    assert!(run.stdout.contains("`--resume` continues it"));
    assert_eq!(queries(&server), 2);
}

#[test]
fn a_question_that_is_interrupted_is_asked_again_when_the_session_is_resumed() {
    let (plan, server) = PlanProject::scripted(&[
        tasks(&[("Look", "analyze")]),
        response("Looked."),
        summary_with_updates("Looked", &[]),
        summary_with_updates("Looked again", &[]),
    ]);
    let typed = [
        ("plan> ", "Look\r"),
        ("(yes/no/edit): ", "\u{3}"),
        ("stopped", "\u{3}"),
    ];
    let Some((shown, code)) = plan.in_terminal("", &typed) else {
        return;
    };
    assert_eq!(code, 130, "{shown}");
    assert_eq!(plan.session()["status"], "interrupted");
    assert!(plan.document().contains("[No actions taken yet]"));
    plan.run(&["--resume", "-p", ""]).exits(0);
    assert_eq!(queries(&server), 4);
    let document = plan.document();
    assert!(
        document.contains("**Result:** ✓ Looked again"),
        "{document}"
    );
    assert_eq!(document.matches("**Result:**").count(), 1, "{document}");
}

#[test]
fn a_request_whose_scratch_tree_is_discarded_leaves_the_session_as_before_it() {
    let list = tasks_with_criteria(
        &[("Write a.txt", "write_file"), ("Look at it", "analyze")],
        &["a.txt is there"],
    );
    let summed = summary_with_updates("✓ a.txt is there", &["a.txt is there"]);
    let steps = [write("a.txt", "a\n"), response("It is written.")];
    let rest = [&steps[..], &[response("It is good."), summed]].concat();
    for is_in_project in [false, true] {
        for signal in [Some(Signal::KILL), Some(Signal::INT), None] {
            let (silence, waiting) = Answer::silence();
            let refused = Answer::error(400, &json!({"error": "no"}));
            let cut = signal.map_or(refused, |_| silence);
            // A document in the project is discarded with the tree, so that the plan is made again.
            let again = is_in_project.then(|| said(&list));
            let answers = [&list].into_iter().chain(&steps).map(said).chain([cut]);
            let server = serving(answers.chain(again).chain(rest.iter().map(said)));
            let plan = PlanProject::new(&server);
            let mut arguments = vec!["--scratch", "-p", "Make a.txt"];
            if is_in_project {
                arguments.extend(["--plan-file", "PLAN.md"]);
            }
            if let Some(signal) = signal {
                let mut child = plan.spawn(&arguments);
                waiting.recv().unwrap();
                let number = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
                kill_process(number, signal).unwrap();
                child.wait().unwrap();
            } else {
                let run = plan.run(&arguments).exits(4);
                run.says(&["what was done in the scratch tree was not applied"]);
            }
            assert!(!plan.project.path("a.txt").exists());
            let resumed = plan.run(&["--resume", "-p", ""]).exits(0);
            assert_eq!(plan.project.read("a.txt"), "a\n");
            let told = last_told(&server, 4 + usize::from(is_in_project));
            assert_eq!(told, "Current task: Write a.txt");
            if signal == Some(Signal::KILL) {
                resumed.says(&["what was done in the scratch tree was not applied"]);
            }
            assert_eq!(plan.session()["status"], "completed");
            assert!(plan.session()["checkpoint"].is_null());
        }
    }
}

#[test]
fn a_request_that_is_refused_since_another_run_holds_the_project_leaves_no_session() {
    let (silence, waiting) = Answer::silence();
    let server = serving([silence].into_iter().chain(whole().iter().map(said)));
    let plan = PlanProject::new(&server);
    let mut child = plan.spawn(&["-p", "Make a.txt"]);
    waiting.recv().unwrap();
    let first = plan.session()["id"].clone();
    plan.work("Make b.txt").exits(3).says(&["another run"]);
    let typed = plan.typed(&[], "Make b.txt\n").exits(3);
    typed.says(&["another run"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(plan.sessions().len(), 1);
    let resumed = plan.run(&["--resume", "-p", ""]).exits(0);
    assert_eq!(resumed.result()["agent"]["session"], first);
}
