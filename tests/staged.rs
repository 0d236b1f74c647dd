//! The consistency report on staged files.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;

use crate::support::{ModelServer, TestProject};

fn git(project: &TestProject, arguments: &[&str]) -> Output {
    let mut command: Command = project.command(&[]);
    let (variables, path) = (command.get_envs(), project.path(""));
    let variables: Vec<_> = variables
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
        .collect();
    command = Command::new("git");
    command.env_clear().envs(variables).current_dir(path);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null");
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    command.args(identity).args(arguments).output().unwrap()
}

#[track_caller]
fn done(output: &Output) {
    assert!(output.status.success(), "{output:?}");
}

/// A repository with a commit, in which the staged files differ from the committed ones and from those on disk.
fn staged() -> TestProject {
    let project = TestProject::new()
        .without("agent-config/codeRollup.txt")
        .file("a.txt", "committed\n")
        .file("b.txt", "committed\n")
        .file("binary", b"\0\n");
    done(&git(&project, &["init", "--quiet"]));
    done(&git(&project, &["add", "--all"]));
    done(&git(&project, &["commit", "--quiet", "--message", "First"]));
    let project = project
        .file("a.txt", "staged\n")
        .file("new.txt", "new, without a line end");
    done(&git(&project, &["add", "a.txt", "new.txt"]));
    project
        .file("a.txt", "on disk\n")
        .file("b.txt", "on disk\n")
        .file("untracked.txt", "on disk\n")
        .without("new.txt")
}

#[test]
fn the_report_is_on_the_index_and_not_on_the_disk() {
    let found = json!({"findings": [{"file": "a.txt", "line": 0, "quote": "staged", "severity": "error",
        "title": "t", "message": "m"}, {"file": "a.txt", "line": 0, "quote": "on disk", "severity": "note",
        "title": "t", "message": "m"}]});
    let report = "# Report\n\nSee a.txt.\n";
    let server = ModelServer::gemini(&[report, &found.to_string()]);
    let project = staged().with(&server);
    let run = project
        .run(&["--cc", "--staged", "--findings", "json"])
        .exits(0);
    assert_eq!(
        server.requests()[0].user(),
        "[query]\nDo something.\n[codebase]\n--- .gitignore ---\n/agent-config\n/logs\n/target\n\
         --- a.txt ---\nstaged\n--- b.txt ---\ncommitted\n--- build.sh ---\n#!/bin/sh\necho built\n\
         --- new.txt ---\nnew, without a line end\n--- src/main.rs ---\nfn main() {}\n"
    );
    let run = run.says(&["rolled up: 6 files, about "]);
    let findings = &run.result()["findings"];
    assert_eq!(
        (&findings[0]["file"], &findings[0]["line"]),
        (&json!("a.txt"), &json!(1))
    );
    assert_eq!(findings[1]["file"], json!(null));
    // Nothing has changed in the index.
    let project = project.file("b.txt", "once more\n");
    let again = ["--cc", "--staged", "--findings", "json", "--if-changed"];
    project.run(&again).exits(0);
    assert_eq!(server.requests().len(), 2);
    done(&git(&project, &["add", "b.txt"]));
    project.run(&again).exits(4);
    assert_eq!(server.requests().len(), 3);
    for other in ["--rollup", "--allow-stale", "--require-fresh"] {
        project.run(&["--cc", "--staged", other]).exits(2);
    }
    project.run(&["--staged"]).exits(2);
}

#[test]
fn a_hook_of_git_sees_the_commit_that_is_being_made() {
    let hooks = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join(".pre-commit-hooks.yaml"),
    );
    let hooks = hooks.unwrap();
    let (_, entry) = hooks.split_once("  entry: code-commit ").unwrap();
    let entry = entry.lines().next().unwrap();
    let program = assert_cmd::cargo::cargo_bin!("code-commit");
    let wrong = json!({"findings": [{"file": "", "line": 0, "quote": "", "severity": "error", "title": "t",
        "message": "It is wrong."}]});
    let fine = json!({"findings": []});
    let server = ModelServer::gemini(&["# One", &wrong.to_string(), "# Two", &fine.to_string()]);
    let project = staged().with(&server);
    let project = project.program(
        ".git/hooks/pre-commit",
        format!("#!/bin/sh\nexec {} {entry}\n", program.display()),
    );
    let refused = git(&project, &["commit", "--message", "Second"]);
    assert!(!refused.status.success(), "{refused:?}");
    let told = String::from_utf8_lossy(&refused.stderr).into_owned()
        + &String::from_utf8_lossy(&refused.stdout);
    assert!(
        told.contains("It is wrong.") && told.contains("`--fail-on error`"),
        "{told}"
    );
    // Repeating it costs nothing.
    assert!(
        !git(&project, &["commit", "--message", "Second"])
            .status
            .success()
    );
    assert_eq!(server.requests().len(), 2);
    // This commit contains b.txt as on disk, and none of the other staged changes.
    done(&git(&project, &["commit", "--message", "Second", "b.txt"]));
    let prompt = server.requests()[2].user();
    assert!(
        prompt.contains("--- a.txt ---\ncommitted\n--- b.txt ---\non disk\n"),
        "{prompt}"
    );
    assert!(!prompt.contains("new.txt"), "{prompt}");
}

#[test]
fn unreadable_staged_content_is_refused_before_sending() {
    let server = ModelServer::start([]);
    let project = TestProject::new().with(&server);
    let arguments = ["--cc", "--staged"];
    project
        .run(&arguments)
        .exits(3)
        .says(&["what is staged cannot be read: there is no repository"]);
    let project = staged().with(&server);
    let object = git(&project, &["rev-parse", ":a.txt"]).stdout;
    let object = String::from_utf8(object).unwrap();
    let path = format!(".git/objects/{}/{}", &object[..2], object[2..].trim());
    let project = project.without(&path);
    project
        .run(&arguments)
        .exits(3)
        .says(&["git does not have `a.txt`"]);
    assert!(server.requests().is_empty() && project.runs().is_empty());
}
