//! The commands that prepare a run: `init` and `rollup`.

use std::process::Command;

use serde_json::Value;

use crate::support::{ModelServer, TestProject};

fn git(project: &TestProject, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(arguments)
        .current_dir(project.path(""))
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    assert!(git.status().unwrap().success());
}

#[test]
fn init_prepares_an_empty_project_and_a_second_time_changes_nothing() {
    let project = TestProject::new()
        .without(".gitignore")
        .without("build.sh")
        .without("agent-config/query.txt")
        .file("Cargo.toml", "[package]\n");
    let run = project.run(&["init"]).exits(0);
    assert_eq!(
        project.read(".gitignore"),
        "/agent-config\n/logs\n/target\n"
    );
    assert!(project.read("build.sh").contains("cargo test"));
    assert!(project.read("codeRollup.sh").contains("code-commit rollup"));
    assert!(
        project
            .read("agent-config/query.txt")
            .contains("what is to be done")
    );
    assert!(
        run.stdout.contains("build.sh: it was made for Cargo.toml"),
        "{}",
        run.stdout
    );
    // The successor can be selected; the default is unchanged.
    let listed = project.run(&["models"]).exits(0).stdout;
    assert!(listed.contains("\ngemini-3.8-flash "), "{listed}");
    assert!(
        run.stdout.contains("written  agent-config/models.json\n"),
        "{}",
        run.stdout
    );
    assert!(
        !run.stdout.contains("git add agent-config"),
        "{}",
        run.stdout
    );
    // The example query is never sent.
    project
        .run(&["--dry-run"])
        .exits(3)
        .says(&["is still the example"]);
    let before = project.tree();
    let again = project.run(&["init"]).exits(0).stdout;
    assert_eq!(again.matches("left as it is").count(), 4, "{again}");
    assert!(!again.contains("models.json\n"), "{again}");
    assert_eq!(project.tree(), before);
}

#[test]
fn init_still_wants_the_commands_of_its_own_placeholder_the_second_time() {
    let project = TestProject::new().without("build.sh");
    for _ in 0..2 {
        let run = project.run(&["init"]).exits(0);
        let next = "write the commands that build and test the project into build.sh";
        assert!(run.stdout.contains(next), "{}", run.stdout);
    }
}

#[test]
fn init_leaves_what_exists_and_adds_the_missing_lines_alone() {
    let project = TestProject::new()
        .file(".gitignore", "target")
        .file("codeRollup.sh", "mine");
    let before = project.tree();
    project.run(&["init"]).exits(0);
    assert_eq!(project.read(".gitignore"), "target\n/agent-config\n/logs\n");
    for (path, content) in before.iter().filter(|(path, _)| *path != ".gitignore") {
        assert_eq!(project.tree().get(path), Some(content), "{path}");
    }
}

#[test]
fn a_build_of_nothing_known_does_not_pass() {
    let project = TestProject::new().without("build.sh");
    let run = project.run(&["init"]).exits(0);
    let step = ". write the commands that build and test the project into build.sh, which fails until then\n";
    assert!(run.stdout.contains(step), "{}", run.stdout);
    let build = Command::new(project.path("build.sh")).output().unwrap();
    assert!(!build.status.success());
    // No call is made for it.
    for arguments in [&[][..], &["--dry-run"]] {
        project.run(arguments).exits(3).says(&[
            "`build.sh` is still the one that `code-commit init` wrote",
            "hint: write the commands that build and test the project into `build.sh`",
        ]);
    }
    project.build("true").run(&["--dry-run"]).exits(0);
}

/// A directory that contains only these files.
fn bare(files: &[(&str, &str)]) -> TestProject {
    let project = TestProject::new()
        .without(".gitignore")
        .without("build.sh")
        .without("agent-config/query.txt")
        .without("agent-config/codeRollup.txt")
        .without("src/main.rs");
    files.iter().fold(project, |project, (path, content)| {
        project.file(path, content)
    })
}

#[test]
fn hint_about_init_comes_first_in_an_unprepared_project() {
    let run = bare(&[]).run(&[]).exits(3);
    let hint = run.stderr.split("hint: ").nth(1).unwrap();
    assert!(
        hint.starts_with("run `code-commit init`, "),
        "{}",
        run.stderr
    );
    // In a prepared project, the user has to add missing files.
    let run = TestProject::new()
        .without("agent-config/query.txt")
        .run(&[])
        .exits(3);
    assert!(!run.stderr.contains("code-commit init"), "{}", run.stderr);
}

#[test]
fn init_ignores_what_builds_of_the_project_leave_and_git_does_not_ignore_or_track_yet() {
    let project = bare(&[
        ("Cargo.toml", "["),
        ("package.json", "{}"),
        ("tool.py", ""),
        ("dist/kept.js", ""),
        (".gitignore", "node_modules/\n__pycache__/\n*.egg-info\n"),
    ]);
    git(&project, &["init", "-q"]);
    git(&project, &["add", "dist"]);
    project.run(&["init"]).exits(0);
    let added = "/agent-config\n/logs\n.pytest_cache\n.venv\n/target\n";
    assert_eq!(
        project.read(".gitignore"),
        format!("node_modules/\n__pycache__/\n*.egg-info\n{added}")
    );
}

#[test]
fn init_says_whether_the_build_that_it_has_written_passes() {
    let project = bare(&[("main.py", "print('hello')\n")]);
    git(&project, &["init", "-q"]);
    git(&project, &["add", "main.py"]);
    let run = project.run(&["init"]).exits(0);
    let script = project.read("build.sh");
    assert!(
        !script.contains("pytest") && !script.contains("unittest"),
        "{script}"
    );
    for step in [
        ". code-commit -m \"WHAT TO CHANGE\" --rollup --baseline --dry-run: ",
        ". code-commit -m \"WHAT TO CHANGE\" --rollup; agent-config/query.txt may ",
    ] {
        assert!(run.stdout.contains(step), "{}", run.stdout);
    }
    let passed = "build.sh: it was made for *.py, and passes on the project as it is\n";
    assert!(run.stdout.contains(passed), "{}", run.stdout);
    assert!(
        run.stdout
            .contains("git add .gitignore build.sh codeRollup.sh: "),
        "{}",
        run.stdout
    );

    let project = bare(&[("main.py", "print('hello'\n")]);
    let run = project.run(&["init"]).exits(0);
    assert!(
        run.stdout.contains("\nbuild.sh fails, exit code: 1:\n"),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("SyntaxError"), "{}", run.stdout);
    let failed = "fix the project or build.sh: it was made for *.py, and fails on the project as it is (exit code: 1)\n";
    assert!(run.stdout.contains(failed), "{}", run.stdout);
    // Existing files belong to the user: nothing is run.
    let again = project.run(&["init", "--output-format", "json"]).exits(0);
    let told: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(told["build"], Value::Null);
}

#[test]
fn init_builds_as_a_run_does_and_shows_what_the_build_leaves() {
    let recipe = "all:\n\t@test -z \"$$GEMINI_API_KEY\"\n\ttouch program other.o\n";
    let project = bare(&[("Makefile", recipe)]).variable("GEMINI_API_KEY", "sk-key-1234567890");
    let run = project.run(&["init"]).exits(0);
    let told = "the build has made `program`: add it to git, or to .gitignore\n";
    assert!(run.stdout.contains(told), "{}{}", run.stdout, run.stderr);
    assert!(project.read(".gitignore").contains("*.o\n"));
}

#[test]
fn init_ignores_well_known_folders_that_the_build_has_made() {
    let recipe = "all:\n\tmkdir -p target node_modules/a sub/__pycache__ sub/target\n\
        \ttouch target/a node_modules/a/b sub/__pycache__/a.pyc sub/target/a sub/gen.c program\n";
    let project = bare(&[("Makefile", recipe), ("sub/a.c", "")]);
    let ignored = "/agent-config\n/logs\n";
    let project = project.file(".gitignore", format!("{ignored}*.o\n"));
    git(&project, &["init", "-q"]);
    git(&project, &["add", "--all"]);
    let run = project.run(&["init"]).exits(0);
    for told in [
        "  lines added  .gitignore\n",
        "the build has made `program`, `sub/gen.c`, `sub/target`: add it to git, or to .gitignore\n",
        "git add .gitignore build.sh",
    ] {
        assert!(run.stdout.contains(told), "{told}\n{}", run.stdout);
    }
    assert_eq!(
        project.read(".gitignore"),
        format!("{ignored}*.o\n/target\n__pycache__\nnode_modules\n")
    );
}

#[test]
fn rollup_takes_tracked_files_and_leaves_out_sensitive_ones() {
    let project = TestProject::new()
        .file("b.txt", "no line end")
        .file("empty", "")
        .file("Cargo.lock", "lock\n")
        .file("binary", b"a\0b")
        .file("latin", b"caf\xe9\n")
        .file(".env", "SECRET=1\n")
        .file("key.pem", "x\n")
        .file("untracked", "x\n");
    git(&project, &["init", "-q"]);
    git(
        &project,
        &[
            "add",
            "-f",
            ".gitignore",
            "src",
            "b.txt",
            "empty",
            "Cargo.lock",
            "binary",
            "latin",
            ".env",
            "key.pem",
            "agent-config/query.txt",
            "build.sh",
        ],
    );
    let run = project.run(&["rollup"]).exits(0);
    let expected = "--- .gitignore ---\n/agent-config\n/logs\n/target\n--- b.txt ---\nno line end\n\
        --- build.sh ---\n#!/bin/sh\necho built\n--- empty ---\n--- src/main.rs ---\nfn main() {}\n";
    assert_eq!(project.read("agent-config/codeRollup.txt"), expected);
    assert!(run.stdout.contains("5 files, about "), "{}", run.stdout);
    assert!(
        run.stdout
            .contains("2 binary, 1 lock file, 1 protected, 2 secret left out"),
        "{}",
        run.stdout
    );
    // The rollup is fresh, and a run prints nothing about it.
    let server = ModelServer::gemini(&["Nothing."]);
    let project = project.with(&server);
    project.run(&["--require-fresh"]).exits(0);
    assert_eq!(project.run(&["rollup"]).exits(0).stdout, run.stdout);
    project
        .run(&["rollup", "--all", "Cargo.lock", "src"])
        .exits(0);
    let expected = "--- Cargo.lock ---\nlock\n--- src/main.rs ---\nfn main() {}\n";
    assert_eq!(project.read("agent-config/codeRollup.txt"), expected);
    for wrong in ["nowhere", "../x", "untracked", "/etc"] {
        project
            .run(&["rollup", wrong])
            .exits(2)
            .says(&[&format!("`{wrong}` names no tracked file")]);
    }
}

#[test]
fn an_outline_has_the_paths_and_the_public_names_of_what_is_rolled_up() {
    let body = "    // Some lines.\n".repeat(40);
    let project = TestProject::new()
        .file(
            "src/lib.rs",
            format!("pub fn run(\n    count: u64,\n) {{\n{body}}}\nfn hidden() {{}}\n"),
        )
        .file("docs/a.md", "# A\n")
        .file(".env", "SECRET=1\n");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "-f", "src", "docs", ".env"]);
    let run = project.run(&["rollup", "--outline"]).exits(0);
    let outline = "docs/\n a.md\nsrc/\n lib.rs\n  pub fn run(count: u64)\n main.rs\n";
    assert_eq!(project.read("agent-config/codeOutline.txt"), outline);
    let says = "agent-config/codeOutline.txt has about ";
    assert!(run.stdout.contains(says), "{}", run.stdout);
    project
        .run(&["rollup", "--outline", "--budget", "14", "src"])
        .exits(0);
    let outline = "and 2 more files in 1 folder\n";
    assert_eq!(project.read("agent-config/codeOutline.txt"), outline);
    let run = project
        .run(&["rollup", "--outline", "--output-format", "json"])
        .exits(0);
    let data: Value = serde_json::from_str(&run.stdout).unwrap();
    assert!(
        data["tokens"].as_u64() < data["of_tokens"].as_u64(),
        "{data}"
    );
}

#[test]
fn rollup_over_the_budget_suggests_files_to_leave_out() {
    let project = TestProject::new()
        .file("big.txt", "word ".repeat(1000))
        .file("medium.txt", "word ".repeat(300))
        .file("small.txt", "word\n");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "big.txt", "medium.txt", "small.txt"]);
    let out = |budget: &str| {
        let run = project
            .run(&["rollup", "--budget", budget, "--output-format", "json"])
            .exits(0);
        let json: Value = serde_json::from_str(&run.stdout).unwrap();
        json["over_budget"].clone()
    };
    assert_eq!(out("5000"), Value::Null);
    assert_eq!(out("1200"), serde_json::json!(["medium.txt"]));
    assert_eq!(out("500"), serde_json::json!(["big.txt"]));
    assert_eq!(out("100"), serde_json::json!(["big.txt", "medium.txt"]));
    let text = project.run(&["rollup", "--budget", "500"]).exits(0).stdout;
    assert!(
        text.contains("over the budget of 500; to meet it, leave out:"),
        "{text}"
    );
}

#[test]
fn without_a_repository_nothing_is_rolled_up() {
    let project = TestProject::new().variable("GIT_CEILING_DIRECTORIES", "/");
    let before = project.tree();
    project
        .run(&["rollup"])
        .exits(3)
        .says(&["git does not list the project's files", "git init"]);
    let project = project.variable("PATH", "");
    project
        .run(&["rollup"])
        .exits(3)
        .says(&["git does not list"]);
    assert_eq!(project.tree(), before);
}

#[test]
fn no_link_leads_out_of_the_project() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("in.txt"), "secret\n").unwrap();
    let project = TestProject::new().file("real/in.txt", "mine\n");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "real", "src"]);
    std::fs::remove_dir_all(project.path("real")).unwrap();
    std::os::unix::fs::symlink(outside.path(), project.path("real")).unwrap();
    project.run(&["rollup"]).exits(0);
    assert!(
        !project
            .read("agent-config/codeRollup.txt")
            .contains("secret")
    );
    let project = project.without(".gitignore");
    std::os::unix::fs::symlink(outside.path().join("gi"), project.path(".gitignore")).unwrap();
    project
        .run(&["init"])
        .exits(6)
        .says(&["it is a symbolic link"]);
    assert!(!outside.path().join("gi").exists());
}

#[test]
fn a_rollup_of_nothing_leaves_the_old_one() {
    let project = TestProject::new().file("binary", b"a\0b");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "binary"]);
    let before = project.read("agent-config/codeRollup.txt");
    project
        .run(&["rollup"])
        .exits(3)
        .says(&["there is nothing to roll up; 1 binary left out"]);
    assert_eq!(project.read("agent-config/codeRollup.txt"), before);
}
