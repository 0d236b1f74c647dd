//! The build before anything is sent: `--baseline`.

use std::fs;
use std::process::Command;

use crate::support::{ModelServer, TestProject};

const EDIT: &str = "^^^a\n1\n^^^end\n";

/// A project that counts its builds in a place that git does not look at.
fn counting(server: &ModelServer, body: &str) -> TestProject {
    counted(TestProject::new().with(server), body)
}

fn counted(project: TestProject, body: &str) -> TestProject {
    project.build(&format!(
        "mkdir -p target; echo built >> target/builds; {body}"
    ))
}

fn builds(project: &TestProject) -> usize {
    project.read("target/builds").lines().count()
}

#[test]
fn a_project_that_does_not_build_costs_nothing() {
    let server = ModelServer::gemini(&[EDIT]);
    let project = counting(&server, "seq 1 100; echo no such thing >&2; exit 7");
    let run = project.run(&["--baseline"]).exits(3);
    let run = run.says(&[
        "`build.sh` fails on the project as it is: exit code: 7",
        "    100\n    no such thing\n",
        "hint: fix the project, or build.sh; all of its output is in `logs/baseline-build.txt`",
    ]);
    assert!(!run.stderr.contains("    1\n"));
    assert!(server.requests().is_empty() && project.runs().is_empty());
    let log = project.read("logs/baseline-build.txt");
    assert!(
        log.starts_with("exit code: 7 ") && log.contains("\n1\n2\n"),
        "{log}"
    );
    project
        .run(&["--dry-run", "--baseline"])
        .exits(3)
        .says(&["exit code: 7"]);
}

#[test]
fn a_project_that_builds_has_the_log_in_the_runs_folder() {
    let server = ModelServer::gemini(&[EDIT]);
    let project = counting(&server, "test -e a || echo base");
    let run = project.run(&["--baseline"]).exits(0);
    assert!(run.logged("baseline-build.txt").ends_with("base\n"));
    assert_eq!(run.result()["baseline"]["code"], 0);
    assert!(run.result()["attempts"][0]["build"]["code"] == 0);
    assert_eq!(builds(&project), 2);
    assert!(!project.path("logs/baseline-build.txt").exists());
}

#[test]
fn a_part_of_a_repository_is_built_each_time_since_the_build_may_need_the_rest() {
    let server = ModelServer::gemini(&[]);
    let above = tempfile::tempdir().unwrap();
    let mut init = Command::new("git");
    let made = init.args(["init", "-q"]).arg(above.path()).status();
    assert!(made.unwrap().success());
    let project = counted(TestProject::within(above.path(), "part").with(&server), "");
    for count in 1..3 {
        project.run(&["--dry-run", "--baseline"]).exits(0);
        assert_eq!(builds(&project), count);
    }
}

#[test]
fn a_tree_that_has_passed_is_not_built_again() {
    let server = ModelServer::gemini(&[EDIT, EDIT, EDIT, EDIT]);
    let project = counting(&server, "");
    project.run(&["--dry-run", "--baseline"]).exits(0);
    let again = project.run(&["--dry-run", "--baseline"]).exits(0);
    again.says(&["build.sh has passed on this tree before"]);
    assert_eq!(builds(&project), 1);
    // A successful run has proven its own tree.
    project.run(&["--baseline"]).exits(0);
    project.run(&["--baseline"]).exits(0);
    assert_eq!(builds(&project), 3);
    let project = project.file("new", "");
    project.run(&["--dry-run", "--baseline"]).exits(0);
    assert_eq!(builds(&project), 4);
    let project = project.mode("src/main.rs", 0o755);
    project.run(&["--dry-run", "--baseline"]).exits(0);
    assert_eq!(builds(&project), 5);
    // The build may fail in another sandbox.
    project
        .run(&["--dry-run", "--baseline", "--sandbox", "off"])
        .exits(0);
    assert_eq!(builds(&project), 6);
    // Ignored files do not count.
    let project = project.file("target/more", "");
    project.run(&["--dry-run", "--baseline"]).exits(0);
    assert_eq!(builds(&project), 6);
}

#[test]
fn no_build_remembers_a_tree_itself() {
    if !crate::support::bubblewrap_works() {
        return;
    }
    let server = ModelServer::gemini(&[]);
    let project = counting(
        &server,
        "echo forged > agent-config/passed-trees.txt; exit 1",
    );
    project.run(&["--baseline"]).exits(3);
    assert!(!project.path("agent-config/passed-trees.txt").exists());
    project.run(&["--baseline"]).exits(3);
    assert_eq!(builds(&project), 2);
}

#[test]
fn a_run_without_the_flag_leaves_no_list() {
    let server = ModelServer::gemini(&[EDIT]);
    let project = counting(&server, "");
    let run = project.run(&[]).exits(0);
    assert!(!run.files().contains(&"baseline-build.txt".to_owned()));
    assert!(!project.path("agent-config/passed-trees.txt").exists());
    assert_eq!(builds(&project), 1);
}

#[test]
fn the_gate_and_the_keys_hold_for_this_build_too() {
    let server = ModelServer::gemini(&[EDIT]);
    let project = counting(&server, "echo '*.log' > sub/.gitignore").file("sub/.gitignore", "");
    let run = project.run(&["--baseline"]).exits(3);
    run.says(&["the build changed files that no build may change: `sub/.gitignore` was changed"]);
    assert!(server.requests().is_empty());
    let key = crate::support::GEMINI_KEY;
    let project = counting(&server, &format!("echo {key}; exit 1"));
    let run = project.run(&["--baseline"]).exits(3);
    let log = project.read("logs/baseline-build.txt");
    assert!(!log.contains(key) && !run.stderr.contains(key));
}

#[test]
fn files_changed_by_the_build_are_checked_again() {
    let server = ModelServer::gemini(&[EDIT]);
    let project = counting(&server, "echo '// formatted' > src/main.rs");
    let run = project.run(&["--baseline"]).exits(3);
    run.says(&["`src/main.rs` has changed"]);
    assert!(server.requests().is_empty());
}

#[test]
fn a_project_without_a_folder_for_keys_is_built_too() {
    let server = ModelServer::gemini(&["Nothing to do.", "Nothing to do."]);
    for flags in [&["--baseline"] as &[&str], &[]] {
        let project = counting(&server, "").variable("GEMINI_API_KEY", crate::support::GEMINI_KEY);
        for arguments in [&["init", "-q"], &["add", "src"]] {
            let git = Command::new("git")
                .arg("-C")
                .arg(project.path(""))
                .args(arguments)
                .status();
            assert!(git.unwrap().success());
        }
        fs::remove_dir_all(project.path("agent-config")).unwrap();
        let arguments = [&["-m", "x"], flags].concat();
        project.run(&arguments).exits(0);
    }
}

#[test]
fn tree_changed_during_a_build_is_not_remembered_as_passed() {
    let server = ModelServer::gemini(&[]);
    let project = counting(&server, "echo >> changing");
    project.run(&["--dry-run", "--baseline"]).exits(0);
    project.run(&["--dry-run", "--baseline"]).exits(0);
    assert_eq!(builds(&project), 2);
}
