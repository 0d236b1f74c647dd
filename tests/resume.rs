//! Runs that continue where an earlier one ended: `--resume`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Answer, Finished, ModelServer, TestProject, gemini, openai, within_a_minute};

const EDIT: [&str; 6] = [
    "^^^a\n0\n^^^end\n^^^gone\n^^^delete\n",
    "^^^a\n1\n^^^end\n",
    "^^^b\n2\n^^^end\n",
    "^^^a\n3\n^^^end\n",
    "^^^a\n4\n^^^end\n",
    "^^^ok\n^^^end\n",
];

/// A project whose build passes with the last of the edits, and counts its runs.
fn project(server: &ModelServer) -> TestProject {
    TestProject::new()
        .with(server)
        .file("gone", "")
        .build("mkdir -p target; echo built >> target/builds; cat a b; test -e ok")
}

fn builds(project: &TestProject) -> usize {
    project.read("target/builds").lines().count()
}

fn resume(project: &TestProject, run: &Finished, more: &[&str]) -> Finished {
    project.run(&[&["--resume", &run.folder], more].concat())
}

/// Returns the number of recorded steps, and the new steps.
fn attempts(run: &Finished) -> (usize, Vec<String>) {
    let result = run.result();
    let attempts = result["attempts"].as_array().unwrap();
    let recorded = attempts.iter().filter(|step| step["recorded"].is_string());
    let new = attempts.iter().filter(|step| step["recorded"].is_null());
    let name =
        |step: &serde_json::Value| format!("{} {}", step["kind"], step["number"]).replace('"', "");
    (recorded.count(), new.map(name).collect())
}

#[test]
fn a_run_whose_repairs_are_used_up_gets_three_more_and_its_replies_for_nothing() {
    let server = ModelServer::gemini(&EDIT);
    let project = project(&server);
    let run = project.run(&[]).exits(1);
    assert_eq!((server.requests().len(), builds(&project)), (4, 4));
    // The query that the run sent counts, not the current file.
    let project = project.file("agent-config/query.txt", "Something else.\n");
    let again = resume(&project, &run, &[]).exits(0);
    let again = again.says(&["4 steps recorded, which cost nothing, on disk already"]);
    assert_eq!(server.requests().len(), 6);
    assert_eq!(
        attempts(&again),
        (4, vec!["repair 4".into(), "repair 5".into()])
    );
    // The edits are on disk: only the last build is repeated.
    assert_eq!(builds(&project), 4 + 3);
    let asked = server.requests()[4].user();
    assert!(
        asked.starts_with("[build.sh output]\n3\n2\n[query]\nDo something.\n"),
        "{asked}"
    );
    let replaced = "[file replacements]\n--- FILE REPLACEMENT a ---\n3\n--- FILE REPLACEMENT b ---\n2\n--- FILE REMOVED gone ---\n";
    assert!(asked.ends_with(replaced), "{asked}");
    let result = again.result();
    let cost = |at: usize| result["attempts"][at]["cost"].as_f64().unwrap();
    assert_eq!((cost(0), cost(3)), (0.0, 0.0));
    let sum = result["cost"].as_f64().unwrap();
    assert!((sum - cost(4) - cost(5)).abs() < 1e-9 && sum > 0.0);
    assert_eq!(again.logged("repair-query-4-response.txt"), EDIT[4]);
    // All of it can be replayed from the beginning.
    project.run(&["undo"]).exits(0);
    project.run(&["undo", &run.folder]).exits(0);
    project
        .run(&["--replay", &again.folder, "--allow-stale"])
        .exits(0);
    assert_eq!(project.read("a"), "4\n");
}

#[test]
fn a_run_that_was_resumed_with_a_model_of_another_vendor_is_replayed() {
    let first = EDIT[..4].iter().map(|text| Answer::json(&gemini(text)));
    let rest = EDIT[4..].iter().map(|text| Answer::json(&openai(text)));
    let server = ModelServer::start(first.chain(rest).collect::<Vec<_>>());
    let project = project(&server);
    let run = project.run(&[]).exits(1);
    let again = resume(&project, &run, &["--model", "gpt-5"]).exits(0);
    project.run(&["undo"]).exits(0);
    project.run(&["undo", &run.folder]).exits(0);
    let replay = ["--replay", &again.folder, "--allow-stale"];
    project.run(&replay).exits(0);
    assert_eq!(project.read("a"), "4\n");
}

#[test]
fn a_recorded_reply_loses_nothing_of_what_later_ones_have_written() {
    let repair = format!("^^^a\n{}^^^end\n", "3\n".repeat(100));
    let replies = ["^^^a\n0\n^^^end\n", &repair, EDIT[2], EDIT[2], EDIT[5]];
    let server = ModelServer::gemini(&replies);
    let project = project(&server);
    let run = project.run(&[]).exits(1);
    resume(&project, &run, &[]).exits(0);
    assert_eq!(project.read("a").lines().count(), 100);
}

#[test]
fn a_run_that_was_undone_is_applied_again_from_its_beginning() {
    let server = ModelServer::gemini(&EDIT);
    let project = project(&server);
    let run = project.run(&["--on-failure", "revert"]).exits(1);
    assert!(!project.path("a").exists());
    let again = resume(&project, &run, &[]).exits(0);
    assert_eq!(attempts(&again).0, 4);
    assert_eq!(builds(&project), 4 + 6);
    assert_eq!(again.result()["attempts"][0]["edits"]["written"][0], "a");
    assert!(!project.path("gone").exists());
}

#[test]
fn a_reply_that_met_a_changed_file_is_applied_once_that_is_settled() {
    let edit = "^^^src/main.rs\nfn main() { new() }\n^^^end\n";
    let settled: [(&str, &[&str]); 2] = [("fn main() {}\n", &[]), ("mine\n", &["--allow-stale"])];
    for (content, flags) in settled {
        let mut main = PathBuf::new();
        let place = TestProject::new();
        main.push(place.path("src/main.rs"));
        let changed = main.clone();
        let happens = move || fs::write(changed, "mine\n").unwrap();
        let server = ModelServer::start([Answer::gemini_after(happens, edit)]);
        let project = place.with(&server);
        let run = project.run(&[]).exits(5);
        let early = resume(&project, &run, &[]).exits(3);
        early.says(&["nor as it left them: `src/main.rs`", "--allow-stale"]);
        fs::write(&main, content).unwrap();
        let again = resume(&project, &run, flags).exits(0);
        assert_eq!(server.requests().len(), 1);
        assert_eq!(project.read("src/main.rs"), "fn main() { new() }\n");
        assert_eq!(again.result()["cost"], 0.0);
    }
}

#[test]
fn a_call_that_failed_is_made_again() {
    let answer = |text: &str| Answer::json(&gemini(text));
    let error = Answer::error(400, &serde_json::json!({"error": {"message": "no"}}));
    let server = ModelServer::start([answer(EDIT[0]), error, answer(EDIT[5])]);
    let project = project(&server);
    project.run(&[]).exits(4);
    // Runs are named as everywhere else.
    let again = project.run(&["--resume", "-1"]).exits(0);
    assert_eq!(attempts(&again), (1, vec!["repair 1".to_owned()]));
}

#[test]
fn a_rejected_reply_is_asked_for_again() {
    let server = ModelServer::gemini(&["^^^a\n", EDIT[5]]);
    let project = project(&server);
    let run = project.run(&[]).exits(5);
    resume(&project, &run, &[]).exits(0);
    assert!(server.requests()[1].user().contains("[rejected reply]"));
}

#[test]
fn a_run_that_was_killed_in_a_call_is_resumed_with_that_call() {
    let (silence, told) = Answer::silence();
    let server = ModelServer::start([
        Answer::json(&gemini(EDIT[0])),
        silence,
        Answer::json(&gemini(EDIT[5])),
    ]);
    let project = project(&server);
    let mut run = project.start(&[]);
    told.recv().unwrap();
    run.kill().unwrap();
    run.wait().unwrap();
    let killed = name_of(&project.runs()[0]);
    let again = project.run(&["--resume", &killed]).exits(0);
    // The run that goes on needs no word that it could.
    assert!(!again.stderr.contains("did not finish"), "{}", again.stderr);
    assert_eq!(attempts(&again), (1, vec!["repair 1".to_owned()]));
    assert_eq!(builds(&project), 3);
}

#[test]
fn a_run_that_was_killed_in_a_build_is_built_again() {
    let server = ModelServer::gemini(&[EDIT[0], EDIT[1], EDIT[5]]);
    let hangs =
        "test $(cat a) != 1 || test -e target/hung || { touch target/hung; exec sleep 600; }";
    let project = TestProject::new()
        .with(&server)
        .file("gone", "")
        .build(&format!("mkdir -p target; {hangs}; cat a; test -e ok"));
    let mut run = project.start(&[]);
    assert!(within_a_minute(|| project.path("target/hung").exists()));
    run.kill().unwrap();
    run.wait().unwrap();
    let killed = name_of(&project.runs()[0]);
    let again = project.run(&["--resume", &killed]).exits(0);
    assert_eq!(attempts(&again), (2, vec!["repair 2".to_owned()]));
    let asked = server.requests()[2].user();
    assert!(asked.starts_with("[build.sh output]\n1\n"), "{asked}");
    assert!(asked.ends_with("--- FILE REMOVED gone ---\n"), "{asked}");
}

fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn a_tree_that_is_another_is_named_with_the_remedy() {
    let server = ModelServer::gemini(&EDIT);
    let project = project(&server);
    let run = project.run(&[]).exits(1);
    let project = project.file("b", "mine\n");
    let refused = resume(&project, &run, &[]).exits(3);
    let way_out = format!("`code-commit undo logs/{}`", run.folder);
    refused.says(&["nor as it left them: `b`", &way_out, "--allow-stale"]);
    assert_eq!(server.requests().len(), 4);
    let project = project.file("b", "2\n").file("src/main.rs", "mine\n");
    resume(&project, &run, &[])
        .exits(3)
        .says(&["`src/main.rs`"]);
    resume(&project, &run, &["--allow-stale"]).exits(0);
}

#[test]
fn a_run_that_was_resumed_can_be_resumed_again() {
    let server = ModelServer::gemini(&[
        EDIT[0], EDIT[1], EDIT[2], EDIT[3], EDIT[4], EDIT[4], EDIT[4], EDIT[5],
    ]);
    let project = project(&server);
    let first = project.run(&[]).exits(1);
    let second = resume(&project, &first, &[]).exits(1);
    assert_eq!(attempts(&second).0, 4);
    let third = resume(&project, &second, &[]).exits(0);
    assert_eq!(attempts(&third), (7, vec!["repair 7".to_owned()]));
}

#[test]
fn the_models_are_the_recorded_ones_unless_another_is_named() {
    for (flags, path) in [
        (&[] as &[&str], "/v1/chat"),
        (&["--model", "gemini-2.5-pro"], "gemini-2.5-pro"),
    ] {
        let mut answers = vec![Answer::json(&crate::support::openai(EDIT[0]))];
        answers.push(Answer::error(
            400,
            &serde_json::json!({"error": {"message": "no"}}),
        ));
        answers.push(Answer::json(&match flags {
            [] => crate::support::openai(EDIT[5]),
            _ => gemini(EDIT[5]),
        }));
        let server = ModelServer::start(answers);
        let project = project(&server);
        let run = project.run(&["--model", "gpt-5"]).exits(4);
        resume(&project, &run, flags).exits(0);
        let line = &server.requests()[2].line;
        assert!(line.contains(path), "{line}");
    }
}

#[test]
fn run_that_cannot_be_resumed_is_an_error_with_a_reason() {
    let server = ModelServer::gemini(&[EDIT[5], "A report."]);
    let project = project(&server);
    let done = project.run(&[]).exits(0);
    resume(&project, &done, &[])
        .exits(3)
        .says(&["there is nothing to resume"]);
    let report = project.run(&["--cc"]).exits(0);
    resume(&project, &report, &[])
        .exits(3)
        .says(&["is not a run that asked for a change"]);
    project
        .run(&["--resume", "nowhere"])
        .exits(2)
        .says(&["there is no run at `nowhere`"]);
    project.run(&["--resume", &done.folder, "-m", "x"]).exits(2);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn edits_reverted_by_a_resumed_run_are_reapplied_without_a_call() {
    for undo in [false, true] {
        let server = ModelServer::gemini(&[
            EDIT[0],
            EDIT[1],
            EDIT[2],
            EDIT[3],
            "^^^helper\nx\n^^^end\n",
            EDIT[4],
            EDIT[4],
            EDIT[5],
        ]);
        let project = project(&server);
        let first = project.run(&[]).exits(1);
        let way = if undo { "keep" } else { "revert" };
        let second = resume(&project, &first, &["--on-failure", way]).exits(1);
        if undo {
            project.run(&["undo", &second.folder]).exits(0);
        }
        assert!(!project.path("helper").exists());
        let third = resume(&project, &second, &[]).exits(0);
        assert_eq!(attempts(&third), (7, vec!["repair 7".to_owned()]));
        assert_eq!(project.read("helper"), "x\n");
    }
}

#[test]
fn call_that_failed_after_the_last_repair_is_repeated() {
    let answer = |text: &str| Answer::json(&gemini(text));
    let error = Answer::error(400, &serde_json::json!({"error": {"message": "no"}}));
    let failing = EDIT[..4].iter().map(|text| answer(text));
    let server = ModelServer::start(failing.chain([error, answer(EDIT[5])]));
    let project = project(&server);
    let first = project.run(&[]).exits(1);
    let second = resume(&project, &first, &[]).exits(4);
    let third = resume(&project, &second, &[]).exits(0);
    assert_eq!(attempts(&third), (4, vec!["repair 4".to_owned()]));
}

const TESTS: &str = "from calc import add\ndef test_add():\n    assert add(1, 2) == 3\ndef test_more():\n    assert add(2, 2) == 4\n";
const RUN_TESTS: &str = "PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=. python3 -c 'import test_calc; [test() for name, test in vars(test_calc).items() if name.startswith(\"test_\")]'";
/// A reply whose code is correct only for the remaining part of the test.
const FAKED: &str = "^^^calc.py\ndef add(a, b):\n    return 3\n^^^end\n";

/// A reply with this result of the code, which also weakens the test.
fn weakening(result: &str) -> String {
    let less = TESTS.replace("def test_more():\n    assert add(2, 2) == 4\n", "");
    format!(
        "^^^calc.py\ndef add(a, b):\n    return {result}\n^^^end\n^^^test_calc.py\n{less}^^^end\n"
    )
}

fn calculator(server: &ModelServer, build: &str) -> TestProject {
    TestProject::new()
        .with(server)
        .file("calc.py", "def add(a, b):\n    return a + b\n")
        .file("test_calc.py", TESTS)
        .build(build)
}

/// Checks that a run is judged by the whole change to both files, and that undoing the runs restores them.
fn is_judged_as_a_whole(project: &TestProject, last: &Finished, runs: &[&str]) {
    let result = last.result();
    assert_eq!(result["gate"]["files"], serde_json::json!(["test_calc.py"]));
    assert_eq!(result["gate"]["old_gate"], "failed");
    assert_eq!(result["warning_details"][0]["code"], "tests-fewer");
    assert_eq!(
        (&result["tree"], &result["edits"]),
        (&"changed".into(), &"made".into())
    );
    let stat = serde_json::json!({"files": 2, "added": 1, "removed": 3});
    assert_eq!(result["stat"], stat);
    let shown = project.run(&["diff", &last.folder, "--stat"]).exits(0);
    assert!(shown.stdout.contains("2 files changed"), "{}", shown.stdout);
    project
        .run(&["attest", &last.folder, "-o", "s.json"])
        .exits(0);
    let statement: serde_json::Value = serde_json::from_str(&project.read("s.json")).unwrap();
    let subject = statement["subject"].as_array().unwrap();
    let names: Vec<_> = subject
        .iter()
        .map(|file| file["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, [".", "calc.py", "test_calc.py"]);
    project.run(&["verify", "s.json"]).exits(0);
    fs::remove_file(project.path("s.json")).unwrap();
    for run in runs {
        project.run(&["undo", run]).exits(0);
    }
    assert_eq!(
        project.read("calc.py"),
        "def add(a, b):\n    return a + b\n"
    );
    assert_eq!(project.read("test_calc.py"), TESTS);
}

#[test]
fn a_resumed_run_is_judged_by_the_change_of_the_whole_chain() {
    let wrong = weakening("5");
    for (flag, name) in [
        ("--gate=strict", "gate-weakened"),
        ("--deny-warnings", "warnings-denied"),
    ] {
        let other = "^^^calc.py\ndef add(a, b):\n    return 6\n^^^end\n";
        let replies = [&*wrong, &wrong, &wrong, &wrong, other, other, other, FAKED];
        let project = calculator(&ModelServer::gemini(&replies), RUN_TESTS);
        let first = project.run(&[flag]).exits(1);
        let second = resume(&project, &first, &[flag]).exits(1);
        assert_eq!(second.result()["exit"]["name"], "build-failed");
        let third = resume(&project, &second, &[flag]).exits(1);
        assert_eq!(third.result()["exit"]["name"], name);
        if name == "gate-weakened" {
            let runs = [&*third.folder, &second.folder, &first.folder];
            is_judged_as_a_whole(&project, &third, &runs);
        }
    }
}

#[test]
fn a_run_that_was_killed_in_a_build_is_judged_as_a_whole_once_it_is_resumed() {
    let server = ModelServer::gemini(&[&weakening("3")]);
    let hangs = "mkdir -p target; test -e target/hung || { touch target/hung; exec sleep 600; }";
    let project = calculator(&server, &format!("{hangs}; {RUN_TESTS}"));
    // A run that found the edits on disk is killed, too.
    for _ in 0..2 {
        let _ = fs::remove_file(project.path("target/hung"));
        let latest = project.runs().last().map(|run| name_of(run));
        let flags: Vec<&str> = latest
            .iter()
            .flat_map(|run| ["--resume", run.as_str()])
            .collect();
        let mut run = project.start(&flags);
        assert!(within_a_minute(|| project.path("target/hung").exists()));
        run.kill().unwrap();
        run.wait().unwrap();
    }
    let killed = project.runs().last().map(|run| name_of(run)).unwrap();
    let last = project
        .run(&["--resume", &killed, "--gate", "strict"])
        .exits(1);
    assert_eq!(last.result()["exit"]["name"], "gate-weakened");
    is_judged_as_a_whole(&project, &last, &[&name_of(&project.runs()[0])]);
}

#[test]
fn a_change_whose_earlier_state_is_gone_is_not_judged_as_if_it_were_known() {
    let server = ModelServer::gemini(&[&*weakening("5"); 7]);
    let project = calculator(&server, RUN_TESTS);
    let first = project.run(&[]).exits(1);
    fs::remove_dir_all(project.path(&format!("logs/{}/replaced", first.folder))).unwrap();
    for flag in ["--gate=strict", "--deny-warnings"] {
        let refused = resume(&project, &first, &[flag]).exits(3);
        refused.says(&["the change as a whole cannot be judged: `"]);
    }
    resume(&project, &first, &[]).exits(1).says(&["is gone"]);
}
