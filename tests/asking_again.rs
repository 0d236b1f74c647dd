//! Rejected replies, after which the model is asked again, and replies without edits.

use std::fs;

use crate::support::{Answer, ModelServer, TestProject, gemini};

const MALFORMED: &str = "^^^good\nx\n";
const FORBIDDEN: &str = "^^^good\nx\n^^^end\n^^^build.sh\n^^^delete\n^^^../x\n^^^delete\n";
const GOOD: &str = "^^^good\nx\n^^^end\n";
const PROSE: &str = "The flag is already there:\nsee `src/main.rs`.\n";

#[test]
fn a_rejected_reply_is_asked_for_again_with_all_its_faults() {
    let server = ModelServer::gemini(&[FORBIDDEN, GOOD]);
    let project = TestProject::new().with(&server);
    let run = project.run(&["--reask", "1"]).exits(0);
    let requests = server.requests();
    let (first, second) = (requests[0].user(), requests[1].user());
    let faults = second
        .strip_prefix(&first)
        .expect("the same prompt comes first");
    assert!(faults.starts_with("[rejected reply]\n"), "{faults}");
    for fault in [
        "rejected for 2 faults",
        "line 4: `build.sh`",
        "line 6: `../x`",
    ] {
        assert!(faults.contains(fault), "{faults}");
    }
    assert_eq!(project.read("good"), "x\n");
    let result = run.result();
    let [rejected, applied] = result["attempts"].as_array().unwrap().as_slice() else {
        panic!("{result}");
    };
    assert!(rejected["rejected"].as_str().unwrap().contains("`../x`"));
    assert!(rejected["edits"].is_null() && rejected["build"].is_null());
    assert!(rejected["cost"].as_f64().unwrap() > 0.0);
    assert_eq!(
        (&applied["kind"], &applied["reask"]),
        (&"initial".into(), &1.into())
    );
    assert_eq!(applied["edits"]["written"][0], "good");
    let query = run.logged("initial-query-reask-1.txt");
    assert!(query.ends_with(faults), "{query}");
    assert_eq!(run.logged("initial-query-response.txt"), FORBIDDEN);
    assert_eq!(run.logged("initial-query-reask-1-response.txt"), GOOD);
    assert!(run.logged("initial-build.txt").ends_with("built\n"));
    run.says(&[
        "warning: the reply is rejected for 2 faults",
        "the model is asked again",
    ]);
}

#[test]
fn a_reply_that_loses_code_is_asked_for_again() {
    let cut = "^^^long.rs\nfn a() {}\n// … остальной код без изменений\n^^^end\n^^^a.rs\n```\nx\n```\n^^^end\n";
    let server = ModelServer::gemini(&[cut, GOOD]);
    let project = TestProject::new().with(&server);
    let project = project.file("long.rs", "fn f() {}\n".repeat(100));
    project.run(&["--reask", "1"]).exits(0);
    let told = server.requests()[1].user();
    for fault in [
        "rejected for 2 faults",
        "line 3: `long.rs`: a comment on line 2",
        "line 6: `a.rs`: the text stands between code fences",
    ] {
        assert!(told.contains(fault), "{told}");
    }
    assert_eq!(project.read("long.rs").lines().count(), 100);
}

#[test]
fn it_is_asked_as_often_as_is_allowed_in_the_whole_run() {
    for (reasks, calls, code) in [("0", 1, 5), ("1", 3, 5), ("2", 4, 5), ("3", 5, 0)] {
        let server =
            ModelServer::gemini(&[MALFORMED, GOOD, FORBIDDEN, FORBIDDEN, "^^^ok\n^^^end\n"]);
        let project = TestProject::new().with(&server).build("test -e ok");
        let run = project.run(&["--reask", reasks]).exits(code);
        assert_eq!(server.requests().len(), calls, "{reasks}");
        if code == 0 {
            assert_eq!(
                run.logged("repair-query-1-reask-2-response.txt"),
                "^^^ok\n^^^end\n"
            );
            let log = project.run(&["log", &run.folder]).exits(0).stdout;
            for told in [
                "The change, again (",
                "Repair 1, again (2) (",
                "line 4: `build.sh`",
            ] {
                assert!(log.contains(told), "{told}\n{log}");
            }
            assert_eq!(log.matches("✗ build.sh").count(), 1, "{log}");
            assert_eq!(log.matches("✓ build.sh").count(), 1, "{log}");
        }
    }
}

#[test]
fn a_question_that_is_too_dear_is_not_asked_again() {
    let mut dear = gemini(FORBIDDEN);
    dear["usageMetadata"]["candidatesTokenCount"] = 15_000.into();
    let server = ModelServer::start([Answer::json(&dear)]);
    let project = TestProject::new().with(&server);
    let run = project.run(&["--reask", "3", "--max-cost", "0.2"]).exits(5);
    assert_eq!(server.requests().len(), 1);
    run.says(&[
        "the reply is rejected for 2 faults",
        "the model is not asked again",
    ]);
    assert!(!project.path("good").exists());
}

#[test]
fn a_replay_asks_again_where_the_run_did() {
    let server = ModelServer::gemini(&[MALFORMED, GOOD]);
    let project = TestProject::new().with(&server);
    let recorded = project.run(&["--reask", "1"]).exits(0);
    fs::remove_file(project.path("good")).unwrap();
    let replayed = project.run(&["--replay", &recorded.folder]).exits(0);
    assert_eq!(replayed.files(), recorded.files());
    assert_eq!(project.read("good"), "x\n");
    assert_eq!(server.requests().len(), 2);
    // And not more often.
    let project = TestProject::new().with(&ModelServer::gemini(&[MALFORMED; 2]));
    let recorded = project.run(&["--reask", "1"]).exits(5);
    project.run(&["--replay", &recorded.folder]).exits(5);
}

#[test]
fn a_reply_that_was_cut_short_is_not_asked_for_again() {
    let mut cut = gemini(GOOD);
    cut["candidates"][0]["finishReason"] = "MAX_TOKENS".into();
    let server = ModelServer::start([Answer::json(&cut)]);
    TestProject::new()
        .with(&server)
        .run(&["--reask", "1"])
        .exits(4);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_reply_without_edits_is_reported_as_what_it_is() {
    let server = ModelServer::gemini(&[PROSE]);
    let project = TestProject::new().with(&server);
    let run = project.run(&[]).exits(0);
    assert_eq!(
        run.stdout.lines().next().unwrap(),
        "nothing changed: the reply has no edits; build.sh passed"
    );
    assert_eq!(run.result()["edits"], "none");
    assert_eq!(run.result()["tree"], "unchanged");
    run.says(&[
        "The flag is already there:",
        "see `src/main.rs`.",
        "warning: the reply has no edits",
    ]);
}

#[test]
fn the_record_distinguishes_edits_that_change_nothing_from_others() {
    let server = ModelServer::gemini(&["^^^src/main.rs\nfn main() {}\n^^^end\n"]);
    let project = TestProject::new().with(&server);
    let run = project.run(&[]).exits(0);
    assert_eq!(
        run.stdout.lines().next().unwrap(),
        "nothing changed: the reply's files are as they were; build.sh passed"
    );
    let result = run.result();
    assert_eq!(result["edits"], "same");
    assert_eq!(result["tree"], "unchanged");
    let edits = serde_json::json!({"written": [], "removed": [], "unchanged": ["src/main.rs"]});
    assert_eq!(result["attempts"][0]["edits"], edits);
    run.says(&["0 written, 0 removed", "src/main.rs (unchanged)"]);
    let told = project.run(&["log", "last"]).exits(0).stdout;
    assert!(!told.contains("src/main.rs | "), "{told}");
    // A build may take the edits back.
    let server = ModelServer::gemini(&["^^^src/main.rs\nfn main() { main() }\n^^^end\n"]);
    let project = TestProject::new().with(&server);
    let main = project.read("src/main.rs");
    let project = project.file("main", main).build("cp main src/main.rs");
    let run = project.run(&[]).exits(0);
    assert_eq!(run.result()["edits"], "same");
    assert_eq!(run.result()["tree"], "unchanged");
    assert_eq!(
        run.stdout.lines().next().unwrap(),
        "nothing changed: the files are as they were before the run; build.sh passed"
    );
    let server = ModelServer::gemini(&["^^^src/main.rs\nfn main() { main() }\n^^^end\n"]);
    let run = project.with(&server).run(&["--require-edits"]).exits(5);
    run.says(&["the change is rejected: all files that a reply named are as they were"]);
    let server = ModelServer::gemini(&["^^^gone\n^^^delete\n"]);
    let run = TestProject::new().with(&server).run(&[]).exits(0);
    assert_eq!(run.result()["edits"], "same");
    run.says(&["`gone` is to be removed, but is not there"]);
    let server = ModelServer::gemini(&[GOOD]);
    let run = TestProject::new().with(&server).run(&[]).exits(0);
    assert_eq!(run.result()["edits"], "made");
}

#[test]
fn edits_can_be_required() {
    let server = ModelServer::gemini(&[PROSE]);
    let project = TestProject::new().with(&server).build("touch built");
    let run = project.run(&["--require-edits"]).exits(5);
    run.says(&[
        "error: the reply is rejected: it has no edits",
        "The flag is already there:",
        "hint:",
    ]);
    assert!(!project.path("built").exists());
    // If the model has made edits before, the build decides.
    let server = ModelServer::gemini(&[GOOD, PROSE]);
    let project = TestProject::new()
        .with(&server)
        .build("test -e tried || { touch tried; exit 1; }");
    project.run(&["--require-edits"]).exits(0);
    let server = ModelServer::gemini(&[PROSE, GOOD]);
    let project = TestProject::new().with(&server);
    project.run(&["--require-edits", "--reask", "1"]).exits(0);
    assert!(server.requests()[1].user().contains("it has no edits"));
}
