//! The demo, as a newcomer runs it.

use std::process::Command;

use crate::support::TestProject;

fn output(project: &TestProject, arguments: &[&str]) -> (i32, String, String) {
    let output = project.command(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn first_reply_breaks_the_build_and_the_repair_fixes_it() {
    let project = TestProject::new();
    let (code, stdout, stderr) = output(&project, &["demo"]);
    assert_eq!(code, 0, "{stderr}");
    // The output makes clear that nothing was paid for.
    let paid = stderr.find("The replies are recorded: no model is asked, and nothing is paid.");
    let task = stderr.find("  Make slug() tidier: several blanks");
    assert!(paid < task && task < stderr.find("answered"), "{stderr}");
    assert!(paid.is_some(), "{stderr}");
    assert!(
        stdout.starts_with("diff --git a/slug.sh b/slug.sh\n"),
        "{stdout}"
    );
    assert!(stdout.contains("\n+check hello '  Hello '"), "{stdout}");
    assert!(
        stdout.contains("\ndone: build.sh passed after 1 repair; 2 written, 0 removed\n"),
        "{stdout}"
    );
    assert!(stdout.contains("log: code-commit-demo/logs/"), "{stdout}");
    assert!(
        stdout.ends_with("see for yourself: cd code-commit-demo && git diff\n"),
        "{stdout}"
    );
    assert!(
        stderr.contains("failed  build.sh") && stderr.contains("passed  build.sh"),
        "{stderr}"
    );
    let diff = Command::new("git")
        .arg("diff")
        .current_dir(project.path("code-commit-demo"))
        .output()
        .unwrap();
    let diff = String::from_utf8(diff.stdout).unwrap();
    assert!(diff.contains("+check hello '  Hello '"), "{diff}");
}

#[test]
fn a_recorded_chat_shows_its_tools_its_questions_and_its_answer_without_a_key() {
    let home = tempfile::tempdir().unwrap();
    let project = TestProject::new().variable("HOME", home.path().to_str().unwrap());
    let (code, stdout, stderr) = output(&project, &["demo", "--chat"]);
    assert_eq!(code, 0, "{stderr}");
    let mut rest = &stderr[..];
    for told in [
        "no model is asked, and nothing is paid.",
        "  Make slug() tidier: several blanks",
        "Tool: read_file\n  slug.sh\n",
        "+check hello '  Hello '\n",
        "The agent wants to change `test.sh`. May it?",
        "The agent wants to run `./build.sh`. May it?\nResult\n  exit code: 2\n",
        "in progress: Make slug() tidier",
        "The agent wants to change `slug.sh`. May it?",
        "The agent wants to run `./build.sh`. May it?\nResult\n  exit code: 0\n",
        "  3 of 3 todos done\n",
        "log: code-commit-demo/logs/",
    ] {
        let at = rest.find(told);
        let at = at.unwrap_or_else(|| panic!("no {told:?} in order in\n{stderr}"));
        rest = &rest[at + told.len()..];
    }
    assert!(
        stdout.starts_with("`slug()` is tidier now, and `./build.sh` passes:\n"),
        "{stdout}"
    );
    assert!(
        stdout.ends_with("see for yourself: cd code-commit-demo && git diff\n"),
        "{stdout}"
    );
    let checks = project.read("code-commit-demo/test.sh");
    assert!(checks.contains("check hello '  Hello '"), "{checks}");
    // The user's home directory is not used.
    assert_eq!(home.path().read_dir().unwrap().count(), 0);
}

#[test]
fn it_takes_a_directory_of_its_own() {
    let project = TestProject::new();
    assert_eq!(output(&project, &["demo", "--quiet"]).2, "");
    let (code, stdout, _) = output(&project, &["demo"]);
    assert_eq!(code, 0);
    assert!(stdout.contains("cd code-commit-demo-2 "));
    let (code, stdout, _) = output(&project, &["demo", "some/where"]);
    assert_eq!(code, 0);
    assert!(stdout.contains("cd some/where "));
    assert!(project.path("some/where/slug.sh").exists());
}

#[test]
fn it_overwrites_nothing() {
    let project = TestProject::new();
    let before = project.tree();
    for taken in ["src", "build.sh"] {
        let (code, _, stderr) = output(&project, &["demo", taken]);
        assert_eq!(code, 2, "{stderr}");
        assert!(
            stderr.contains(&format!("`{taken}` already exists")) && stderr.contains("hint:"),
            "{stderr}"
        );
    }
    assert_eq!(project.tree(), before);
}

#[test]
fn it_leaves_other_repositories_alone() {
    let project = TestProject::new();
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .args(arguments)
            .current_dir(project.path(""))
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "--quiet"]);
    git(&["add", "src/main.rs"]);
    let repository = project.path(".git");
    let mut command = project.command(&["demo", "--quiet", "elsewhere"]);
    command
        .env("GIT_DIR", &repository)
        .env("GIT_INDEX_FILE", repository.join("index"));
    assert!(command.output().unwrap().status.success());
    assert_eq!(git(&["ls-files"]), "src/main.rs\n");
}

#[test]
fn it_does_not_ask_the_models_of_the_project_around_it() {
    let json =
        r#"{"models": {"local": {"provider": "openai"}}, "selectionRules": {"default": "local"}}"#;
    for models in [json, "not JSON"] {
        let project = TestProject::new().file("agent-config/models.json", models);
        assert_eq!(output(&project, &["demo"]).0, 0, "{models}");
    }
}
