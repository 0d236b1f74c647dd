//! The location of the project: found from a subdirectory, or given.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{Finished, ModelServer, TestProject};

fn git_init(directory: &Path) {
    let status = Command::new("git")
        .args(["init", "-q"])
        .arg(directory)
        .status();
    assert!(status.unwrap().success());
}

/// Runs the program in a subdirectory of the project.
fn run_in(project: &TestProject, directory: &str, arguments: &[&str]) -> Finished {
    let mut command = project.command(arguments);
    let output = command.current_dir(project.path(directory)).output();
    Finished::new(project, arguments, output.unwrap())
}

/// Returns the part of a tree in and below a directory.
fn below(tree: &BTreeMap<String, String>, directory: &str) -> Vec<String> {
    let inside = tree.keys().filter(|path| path.starts_with(directory));
    inside.cloned().collect()
}

#[test]
fn a_command_in_a_subdirectory_works_on_the_project_above() {
    let server = ModelServer::gemini(&["^^^a\n1\n^^^end\n"]);
    let project = TestProject::new().with(&server).file("sub/deep/x", "");
    let before = below(&project.tree(), "sub");
    let run = run_in(&project, "sub/deep", &[])
        .exits(0)
        .says(&["project: ../..\n"]);
    assert!(run.stdout.contains("\nlog: ../../logs/"), "{}", run.stdout);
    assert_eq!(project.read("a"), "1\n");
    for arguments in [
        &["--dry-run"][..],
        &["models"],
        &["log"],
        &["diff"],
        &["undo"],
    ] {
        run_in(&project, "sub/deep", arguments)
            .exits(0)
            .says(&["project: ../..\n"]);
    }
    assert!(!project.path("a").exists());
    assert_eq!(below(&project.tree(), "sub"), before);
    assert!(!project.run(&["log"]).exits(0).stderr.contains("project:"));
}

#[test]
fn files_named_in_a_subdirectory_are_those_there() {
    let server = ModelServer::gemini(&["^^^a\n1\n^^^end\n"]);
    let project = TestProject::new()
        .with(&server)
        .file("sub/deep/x.rs", "fn x() {}\n")
        .file("x.json", "precious\n");
    git_init(&project.path(""));
    let mut add = Command::new("git");
    add.args(["add", "sub"]).current_dir(project.path(""));
    assert!(add.status().unwrap().success());
    project.run(&[]).exits(0);
    run_in(&project, "sub", &["attest", "-o", "x.json"]).exits(0);
    assert_eq!(project.read("x.json"), "precious\n");
    run_in(&project, "sub", &["verify", "x.json"]).exits(0);
    project.run(&["verify", "sub/x.json"]).exits(0);
    for flag in ["--include", "--exclude"] {
        let chosen = ["context", "-m", "x", "--tokens", "9000", flag, "deep"];
        let run = run_in(&project, "sub", &chosen).exits(0);
        assert!(!run.stderr.contains("names no"), "{}", run.stderr);
    }
}

#[test]
fn without_a_folder_for_the_users_files_it_is_the_repository() {
    let directory = tempfile::tempdir().unwrap();
    let project = TestProject::within(directory.path(), "x").file("sub/x", "text\n");
    fs::remove_dir_all(project.path("agent-config")).unwrap();
    git_init(&project.path(""));
    run_in(&project, "sub", &[])
        .exits(3)
        .says(&["project: ..\n", "`agent-config/query.txt` is missing"]);
    run_in(&project, "sub", &["init"])
        .exits(0)
        .says(&["project: ..\n"]);
    assert!(project.path("agent-config/query.txt").exists());
    assert_eq!(below(&project.tree(), "sub"), ["sub", "sub/x"]);
}

#[test]
fn a_subdirectory_becomes_a_project_of_its_own_where_that_is_asked_for() {
    let project = TestProject::new().file("sub/x", "");
    let run = run_in(&project, "sub", &["init", "--root", "."]).exits(0);
    assert!(!run.stderr.contains("project:"), "{}", run.stderr);
    assert!(project.path("sub/agent-config/query.txt").exists());
    // From now on, it is found as the nearest project.
    let run = run_in(&project, "sub", &["models"]).exits(0);
    assert!(!run.stderr.contains("project:"), "{}", run.stderr);
}

#[test]
fn the_root_can_be_named_from_anywhere() {
    let server = ModelServer::gemini(&["^^^a\n1\n^^^end\n"]);
    let project = TestProject::new().with(&server);
    let elsewhere = tempfile::tempdir().unwrap();
    let root = project.path("");
    let arguments = ["--root", root.to_str().unwrap()];
    let mut command = project.command(&arguments);
    let output = command.current_dir(elsewhere.path()).output().unwrap();
    Finished::new(&project, &arguments, output).exits(0);
    assert_eq!(project.read("a"), "1\n");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn root_that_is_not_a_directory_is_a_usage_error() {
    let project = TestProject::new();
    let before = project.tree();
    for (named, why) in [
        ("nowhere", "No such file or directory"),
        ("build.sh", "Not a directory"),
    ] {
        for arguments in [
            &["--root", named][..],
            &["init", "--root", named],
            &["dev", "--root", named],
        ] {
            project.run(arguments).exits(2).says(&[
                &format!("`{named}` is not a directory that can be entered: {why}"),
                "hint: name the project's directory",
            ]);
        }
    }
    assert_eq!(project.tree(), before);
}

#[test]
fn paths_are_named_from_where_the_user_is() {
    let server = ModelServer::gemini(&["^^^a\n1\n^^^end\n"; 2]);
    let project = TestProject::new().with(&server).file("sub/x", "text\n");
    let run = run_in(&project, "sub", &["--summary-file", "summary.md"]).exits(0);
    assert!(project.path("sub/summary.md").is_file());
    let typed = format!("../logs/{}", run.folder);
    for named in [&*run.folder, &typed] {
        run_in(&project, "sub", &["log", named]).exits(0);
    }
    run_in(
        &project,
        "sub",
        &["report", &typed, "--output", "page.html"],
    )
    .exits(0);
    assert!(project.path("sub/page.html").is_file());
    run_in(&project, "sub", &["attest", &typed]).exits(0);
    run_in(&project, "sub", &["--replay", &typed]).exits(0);
    // The run is found, and has nothing left to do.
    let resumed = run_in(&project, "sub", &["--resume", &typed]);
    assert!(!resumed.stderr.contains("no run at"), "{}", resumed.stderr);
    git_init(&project.path(""));
    let added = Command::new("git")
        .current_dir(project.path(""))
        .args(["add", "sub/x", "src"])
        .status();
    assert!(added.unwrap().success());
    let rolled_up = |path: &str| {
        run_in(&project, "sub", &["rollup", path]).exits(0);
        project.read("agent-config/codeRollup.txt")
    };
    assert_eq!(rolled_up("x"), "--- sub/x ---\ntext\n");
    assert_eq!(rolled_up("."), "--- sub/x ---\ntext\n");
    assert_eq!(rolled_up("../src"), "--- src/main.rs ---\nfn main() {}\n");
    run_in(&project, "sub", &["rollup", "../.."]).exits(2);
}

#[test]
fn the_demo_and_an_agent_stay_where_they_are_started() {
    let project = TestProject::new().file("sub/x", "");
    let run = run_in(&project, "sub", &["demo"]).exits(0);
    assert!(!run.stderr.contains("project:"), "{}", run.stderr);
    assert!(project.path("sub/code-commit-demo/slug.sh").exists());
    run_in(&project, "", &["demo", "--root", "sub", "other"]).exits(0);
    assert!(project.path("sub/other/slug.sh").exists());
}

/// Only root can give files away.
#[test]
fn directory_of_another_user_above_is_skipped() {
    let project = TestProject::new().file("sub/x", "");
    let config = project.path("agent-config");
    if std::os::unix::fs::chown(&config, Some(12345), None).is_err() {
        crate::support::skipped("files can be given away by root alone");
        return;
    }
    let run = run_in(&project, "sub", &["--dry-run"]).exits(3).says(&[
        "`..` belongs to another user and is not taken for the project; `--root ..` names it",
        "`.gitignore` is missing",
    ]);
    assert!(!run.stderr.contains("project:"), "{}", run.stderr);
    run_in(&project, "sub", &["--dry-run", "--root", ".."]).exits(0);
    project.run(&["--dry-run"]).exits(0);
}
