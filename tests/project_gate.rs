//! A project's own gate: files and values that no reply may change, denied warnings, and a clean work tree; on the
//! command line, in `.code-commit.json` and in `agent-config/run.json`.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{ModelServer, TestProject};

const EDIT: &str = "^^^a\nb\n^^^end\n";
const SCRIPTS: &str = "{\"scripts\": {\"test\": \"jest\"}, \"version\": \"1\"}\n";

fn git(project: &TestProject, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@b.c"])
        .args(arguments)
        .current_dir(project.path(""))
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    assert!(git.status().unwrap().success());
}

fn committed(project: TestProject) -> TestProject {
    git(&project, &["init", "-q"]);
    git(&project, &["add", "--all"]);
    git(&project, &["commit", "-qm", "a"]);
    project
}

fn gated(gate: &Value) -> TestProject {
    TestProject::new().file(".code-commit.json", gate.to_string())
}

#[test]
fn a_reply_that_touches_what_is_protected_is_rejected() {
    let replies = [
        ("Makefile", "^^^Makefile\nall:\n^^^end\n"),
        ("tests/golden", "^^^tests/golden/a.txt\nx\n^^^end\n"),
        ("*.snap", "^^^a/b.snap\n^^^delete\n^^^end\n"),
        (
            "package.json#/scripts",
            "^^^package.json\n{\"scripts\": {\"test\": \"true\"}}\n^^^end\n",
        ),
        (
            "package.json#/scripts",
            "^^^package.json\n^^^delete\n^^^end\n",
        ),
    ];
    for (pattern, reply) in replies {
        for is_given in [true, false] {
            let gate = if is_given {
                json!({})
            } else {
                json!({ "protect": [pattern] })
            };
            let project = gated(&gate)
                .file("a/b.snap", "x\n")
                .file("package.json", SCRIPTS)
                .with(&ModelServer::gemini(&[reply]));
            let before = project.read("package.json");
            let flags: &[&str] = if is_given {
                &["--protect", pattern]
            } else {
                &[]
            };
            let run = project.run(flags).exits(5);
            let error = &run.result()["error"];
            assert_eq!(error["reason"], "path", "{pattern}: {error:#}");
            assert_eq!(project.read("package.json"), before);
        }
    }
    // The rest of the file and the form of the value may change.
    let reply = "^^^package.json\n{\"version\":\"2\",\"scripts\":{\"test\":\"jest\"}}\n^^^end\n";
    let project = gated(&json!({"protect": ["package.json#/scripts"]}))
        .file("package.json", SCRIPTS)
        .with(&ModelServer::gemini(&[reply]));
    project.run(&[]).exits(0);
}

#[test]
fn the_projects_gate_is_itself_protected() {
    let reply = "^^^.code-commit.json\n{}\n^^^end\n";
    let project = TestProject::new().with(&ModelServer::gemini(&[reply]));
    assert_eq!(
        project.run(&[]).exits(5).result()["error"]["reason"],
        "path"
    );
    let project = TestProject::new()
        .with(&ModelServer::gemini(&[EDIT]))
        .build("echo '{}' > .code-commit.json");
    let run = project.run(&["--sandbox", "off"]).exits(1);
    assert_eq!(run.result()["error"]["reason"], "gate-changed");
}

#[test]
fn a_build_that_changes_what_is_protected_changes_the_gate() {
    for (protect, build) in [
        ("tests", "echo x >> tests/a.txt"),
        (
            "package.json#/scripts",
            "echo '{\"scripts\": {}}' > package.json",
        ),
    ] {
        let project = gated(&json!({ "protect": [protect] }))
            .with(&ModelServer::gemini(&[EDIT]))
            .file("tests/a.txt", "a\n")
            .file("package.json", SCRIPTS)
            .build(build);
        let run = committed(project).run(&["--allow-stale"]).exits(1);
        assert_eq!(run.result()["error"]["reason"], "gate-changed", "{protect}");
    }
}

#[test]
fn a_build_that_creates_what_is_protected_changes_the_gate() {
    for (protect, build, made) in [
        ("/GNUmakefile", "touch GNUmakefile", "GNUmakefile"),
        ("/Makefile", "touch makefile", "makefile"),
        ("sub/a.mk", "mkdir sub; ln -s /nowhere sub/a.mk", "sub/a.mk"),
        (
            "golden/untracked",
            "echo x >> golden/untracked",
            "golden/untracked",
        ),
    ] {
        for flags in [&["--allow-stale"][..], &["--allow-stale", "--scratch"]] {
            let project = gated(&json!({ "protect": [protect] }))
                .with(&ModelServer::gemini(&[EDIT]))
                .build(build);
            let project = committed(project).file("golden/untracked", "");
            let run = project
                .run(flags)
                .exits(1)
                .says(&[&format!("`{made}` was ")]);
            assert_eq!(run.result()["error"]["reason"], "gate-changed", "{protect}");
        }
    }
    // Neither what is new in a protected directory, nor files that git ignores, nor the run's own.
    let project = gated(&json!({"protect": ["golden", "Makefile", "/b.log", "*.txt"]}))
        .with(&ModelServer::gemini(&[EDIT]))
        .file(".gitignore", "/agent-config\ncache\n*.log\n")
        .build(
            "mkdir -p golden/cache; touch golden/new golden/cache/a golden/Makefile b.log x.txt",
        );
    project.run(&[]).exits(0);
}

const TESTED: &str = "#[test]\nfn a() {}\n";
const SKIPPED: &str = "^^^a.rs\n#[test]\n#[ignore]\nfn a() {}\n^^^end\n";

fn skipping() -> TestProject {
    TestProject::new()
        .file("a.rs", TESTED)
        .with(&ModelServer::gemini(&[SKIPPED]))
}

#[test]
fn a_change_with_warnings_that_are_denied_does_not_count() {
    for flag in [
        "--deny-warnings",
        "--deny-warnings=tests",
        "--deny-warnings=lint-silenced,test-skipped",
    ] {
        let project = skipping();
        let run = project.run(&[flag]).exits(1);
        let result = run.result();
        assert_eq!(result["exit"]["name"], "warnings-denied");
        let message = "`a.rs` skips a test: `#[ignore]` at line 2";
        let told = json!([{"code": "test-skipped", "path": "a.rs", "line": 2, "message": message}]);
        assert_eq!(result["warning_details"], told);
        assert_eq!(
            result["error"]["problems"],
            json!([{"message": message, "hint": null}])
        );
        assert_eq!(
            (&result["tree"], &result["error"]["reason"]),
            (&json!("changed"), &json!("warnings-denied"))
        );
        assert!(project.read("a.rs").contains("ignore"));
    }
    let project = skipping();
    let run = project
        .run(&["--deny-warnings", "--on-failure", "revert"])
        .exits(1);
    assert_eq!(
        (project.read("a.rs").as_str(), &run.result()["tree"]),
        (TESTED, &json!("put-back"))
    );
    for flags in [&[][..], &["--deny-warnings=manifest-changed"]] {
        let run = skipping().run(flags).exits(0);
        assert_eq!(run.result()["warning_details"][0]["code"], "test-skipped");
    }
    TestProject::new()
        .run(&["--deny-warnings=test-skiped"])
        .exits(2)
        .says(&["test-skipped", "gate-script-changed"]);
}

#[test]
fn a_project_must_be_clean_where_that_is_asked_for() {
    let clean = committed(TestProject::new().with(&ModelServer::gemini(&[EDIT])));
    clean.run(&["--require-clean"]).exits(0);
    let run = clean
        .run(&["--require-clean", "--output-format", "json"])
        .exits(3);
    let told: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(told["error"]["reason"], "not-clean");
    run.says(&["git sees changes in the project:\n    ?? a\n"]);
    TestProject::new()
        .variable("GIT_CEILING_DIRECTORIES", "/")
        .run(&["--require-clean"])
        .exits(3)
        .says(&["the project is in no git repository"]);
}

#[test]
fn staged_changes_are_not_clean() {
    let refused = |project: &TestProject, says: &[&str]| {
        project.run(&["--require-clean"]).exits(3).says(says);
    };
    let project = committed(TestProject::new().file("gone", "")).file("new", "");
    fs::remove_file(project.path("gone")).unwrap();
    // Staged files are compared without filters and other programs from the repository's configuration.
    let project = project.file(".gitattributes", "* filter=x\n");
    git(&project, &["add", "--all"]);
    for (key, value) in [
        ("filter.x.clean", "touch ran; cat"),
        ("diff.external", "touch ran"),
        ("core.fsmonitor", "touch ran"),
    ] {
        git(&project, &["config", key, value]);
    }
    let changes =
        "git sees changes in the project:\n    A  .gitattributes\n    D  gone\n    A  new\n";
    refused(&project, &[changes]);
    assert!(!project.path("ran").exists());

    let project = TestProject::new();
    git(&project, &["init", "-q"]);
    git(&project, &["add", "--all"]);
    refused(&project, &["\n    A  src/main.rs\n"]);
    let project = committed(project).variable("PATH", "/nowhere");
    refused(
        &project,
        &[
            "git cannot say what is staged: git is not installed",
            "hint: make `git diff --cached` work",
        ],
    );
}

#[test]
fn a_pipe_among_gits_files_is_not_waited_for() {
    let project = TestProject::new()
        .with(&ModelServer::gemini(&[EDIT, EDIT]))
        .build("test -e .git/shallow || mkfifo .git/shallow");
    let project = committed(project).file("a", "");
    git(&project, &["add", "a"]);
    for _ in 0..2 {
        project.run(&["--rollup", "--sandbox", "off"]).exits(0);
    }
    let told = "git cannot say what is staged: cannot read `";
    project.run(&["--require-clean"]).exits(3).says(&[told]);
}

#[test]
fn only_what_is_staged_below_the_project_counts() {
    let directory = tempfile::tempdir().unwrap();
    let project = TestProject::within(directory.path(), "project");
    let project = project.with(&ModelServer::gemini(&[EDIT]));
    let outer = TestProject::within(directory.path(), "project/..");
    let outer = committed(outer).file("other", "");
    git(&outer, &["add", "other"]);
    project.run(&["--require-clean"]).exits(0);
}

#[test]
fn files_left_by_a_baseline_build_do_not_count_as_user_changes() {
    let server = ModelServer::gemini(&[EDIT]);
    let project = TestProject::new().with(&server).build("touch made");
    let project = committed(project);
    project.run(&["--require-clean", "--baseline"]).exits(0);
}

#[test]
fn edits_are_required_of_the_first_reply_alone() {
    for require in [json!({"require_edits": true}), json!({})] {
        let server = ModelServer::gemini(&["Nothing.", "Nothing."]);
        let project = gated(&require).with(&server);
        let flags: &[&str] = if require == json!({}) {
            &["--ci"]
        } else {
            &["--reask", "1"]
        };
        let project = committed(project);
        let run = project.run(flags).exits(5);
        assert_eq!(run.result()["error"]["reason"], "no-edits");
        assert_eq!(server.requests().len(), 2);
        assert!(!run.files().contains(&"initial-build.txt".to_owned()));
    }
    let replies = [EDIT, "I am at a loss.", EDIT, EDIT];
    let project = TestProject::new()
        .with(&ModelServer::gemini(&replies))
        .build("exit 1");
    let run = project.run(&["--require-edits"]).exits(1);
    assert!(run.files().contains(&"repair-query-1-build.txt".to_owned()));
}

#[test]
fn ci_is_short_for_what_ci_wants() {
    let project = committed(skipping());
    let run = project.run(&["--ci"]).exits(1);
    let result = run.result();
    assert_eq!(result["error"]["reason"], "warnings-denied");
    assert_eq!(result["baseline"]["code"], 0);
    project.run(&["--ci"]).exits(3).says(&["git sees changes"]);
    project.run(&["--ci", "--cc"]).exits(2);
    let server = ModelServer::gemini(&["Nothing."]);
    let project = committed(TestProject::new().with(&server));
    project.run(&["--ci", "--reask", "0"]).exits(5);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn the_projects_file_can_do_nothing_but_narrow() {
    for (gate, says) in [
        ("{\"allow_secrets\": true}", "unknown field `allow_secrets`"),
        ("{\"protect\": \"a\"}", "line 1, column 1"),
        ("{\"protect\": [\"!build\"]}", "without `!`"),
        ("{\"deny_warnings\": [\"test-skiped\"]}", "test-skipped"),
        ("{", "`.code-commit.json`, line 1"),
    ] {
        let run = TestProject::new()
            .file(".code-commit.json", gate)
            .run(&["--output-format", "json"])
            .exits(3)
            .says(&["`.code-commit.json`", says]);
        let told: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(told["error"]["reason"], "settings", "{gate}");
    }
}

#[test]
fn the_users_file_gives_flags_that_the_command_line_overrules() {
    let flags = json!({"require-edits": true, "reask": 1, "diff": true, "stream": false, "protect": ["docs", "a"]});
    let project = || TestProject::new().file("agent-config/run.json", flags.to_string());
    let server = ModelServer::gemini(&[EDIT, "^^^b\nc\n^^^end\n"]);
    let run = project().with(&server).run(&[]).exits(0);
    assert_eq!(
        server.requests().len(),
        2,
        "`a` is protected, and there is another try"
    );
    assert!(run.stdout.contains("+++ b/b"), "{}", run.stdout);
    let server = ModelServer::gemini(&[EDIT]);
    project().with(&server).run(&["--reask", "0"]).exits(5);
    // Restrictions add up.
    let server = ModelServer::gemini(&[EDIT]);
    let more = ["--reask", "0", "--protect", "x"];
    project().with(&server).run(&more).exits(5);
    // Settings that the command line excludes do not apply.
    let report = project().with(&ModelServer::gemini(&["# Report"]));
    report.run(&["--cc"]).exits(0);
    let other = project().with(&ModelServer::gemini(&["^^^b\nc\n^^^end\n"]));
    let run = other.run(&["--output-format", "json"]).exits(0);
    assert!(run.stdout.starts_with('{'), "{}", run.stdout);
    for (wrong, says) in [
        (json!({"frobnicate": true}), "'--frobnicate'"),
        (json!({"reask": "often"}), "'often'"),
        (
            json!({"root": "/"}),
            "`root` can only be given on the command line",
        ),
        (json!({"help": true}), "`help` can only"),
        (json!({"reask": {}}), "`reask` has a value"),
        (json!({"frobnicate": false}), "no flag `--frobnicate`"),
        (
            json!({"max-cost": true}),
            "a value is required for `--max-cost`",
        ),
        (
            json!({"message": true}),
            "a value is required for `--message`",
        ),
    ] {
        TestProject::new()
            .file("agent-config/run.json", wrong.to_string())
            .run(&[])
            .exits(3)
            .says(&["`agent-config/run.json`, line 1, column ", says, "hint: "]);
    }
    for (wrong, says) in [
        (
            "{\"reask\": 1,\n\"max-cost\": 1, \"max-cost\": 2}",
            "line 2, column 29: `max-cost` is there twice",
        ),
        ("{\"reask\": 1,\n \"nope\": true}", "line 2, column 10: "),
        (
            "{\"reask\": 1,\n \"max-cost\": \"x\", \"baseline\": true}",
            "line 2, column 14: invalid value 'x'",
        ),
    ] {
        let project = TestProject::new().file("agent-config/run.json", wrong);
        project.run(&[]).exits(3).says(&[says]);
    }
}

#[test]
fn a_dry_run_builds_nothing_though_the_project_wants_a_baseline() {
    let project = gated(&json!({"baseline": true})).build("touch built");
    project.run(&["--dry-run"]).exits(0);
    assert!(!project.path("built").exists());
}

#[test]
fn failed_run_can_be_resumed_under_require_clean() {
    let server = ModelServer::gemini(&[EDIT; 2]);
    let project = gated(&json!({"require_clean": true})).build("exit 1");
    let project = committed(project).with(&server);
    // The second call fails, with the first reply's edits on disk.
    let run = project.run(&[]);
    assert_ne!(run.code, 0);
    let resumed = project.run(&["--resume", "last"]);
    assert!(
        !resumed.stderr.contains("git sees changes"),
        "{}",
        resumed.stderr
    );
}

#[test]
fn a_users_file_that_git_tracks_is_refused() {
    let project = TestProject::new().file("agent-config/run.json", "{\"allow-secrets\": true}");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "-f", "agent-config/run.json"]);
    project
        .run(&[])
        .exits(3)
        .says(&["git tracks `agent-config/run.json`"]);
}

#[test]
fn init_protects_the_files_its_build_script_depends_on() {
    for (file, content, protected) in [
        (
            "package.json",
            "{\"scripts\": {\"test\": \"true\"}}",
            Some(["package.json#/scripts", "/.npmrc"]),
        ),
        ("package.json", "{}", None),
        (
            "Makefile",
            "all:\n\ttrue\n",
            Some(["/Makefile", "/GNUmakefile"]),
        ),
        ("Cargo.toml", "[package]\n", None),
    ] {
        let project = TestProject::new().without("build.sh").file(file, content);
        let run = project.run(&["init"]).exits(0);
        let gate = std::fs::read_to_string(project.path(".code-commit.json")).ok();
        let gate: Option<Value> = gate.map(|gate| serde_json::from_str(&gate).unwrap());
        assert_eq!(
            gate,
            protected.map(|paths| json!({ "protect": paths })),
            "{content}"
        );
        let is_told = run.stdout.contains("check .code-commit.json: ");
        assert_eq!(is_told, protected.is_some(), "{}", run.stdout);
    }
    let own = TestProject::new().file("Makefile", "all:\n");
    own.run(&["init"]).exits(0);
    assert!(!own.path(".code-commit.json").exists());
}
