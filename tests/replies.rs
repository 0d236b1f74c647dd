//! Replies that must not be applied, and what the path policy says end to end.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};

use crate::support::{ModelServer, TestProject};

/// A reply that is rejected leaves the tree as it was, whatever else it holds.
#[track_caller]
fn rejected(prepare: impl FnOnce(TestProject) -> TestProject, reply: &str, expected: &[&str]) {
    let server = ModelServer::gemini(&[reply]);
    let project = prepare(TestProject::new().with(&server).build("touch built"));
    let before = project.tree();
    let run = project
        .run(&[])
        .exits(5)
        .says(expected)
        .says(&["hint: nothing of the reply was applied"]);
    assert_eq!(project.tree(), before, "{reply}");
    assert_eq!(run.logged("initial-query-response.txt"), reply);
    assert_eq!(run.result()["exit"]["code"], 5);
    assert_eq!(
        run.result()["attempts"][0]["edits"],
        serde_json::Value::Null
    );
}

#[test]
fn one_bad_path_rejects_the_whole_reply() {
    for (path, rule) in [
        (".gitignore", "this file is protected"),
        ("sub/.gitignore", "this file is protected"),
        ("Cargo.lock", "this file is protected"),
        ("build.sh", "this file is protected"),
        ("codeRollup.sh", "this file is protected"),
        ("LLMInstructions.md", "this file is protected"),
        ("UserSpecification.md", "this file is protected"),
        (".git/hooks/pre-commit", "`.git` may not be changed"),
        ("agent-config/query.txt", "this directory is protected"),
        ("logs/x", "this directory is protected"),
        ("target/x", "this directory is protected"),
        ("BUILD.SH", "this file is protected"),
        ("secret.env", "git ignores this path"),
        ("../escape", "may not have `.` or `..` in it"),
        ("./src/main.rs", "may not have `.` or `..` in it"),
        ("src//main.rs", "may not have `//` in it, or end with `/`"),
        ("src/", "may not have `//` in it, or end with `/`"),
        ("/etc/passwd", "must be relative to the project's root"),
        ("src/main.rs ", "may not end with a dot or a space"),
        ("src/\u{1b}[31m", "may not have control characters"),
        ("Src/main.rs", "in letter case only"),
        ("src", "is not a regular file"),
        ("src/main.rs/x", "is not a directory"),
    ] {
        let reply = format!("^^^good\nx\n^^^end\n^^^{path}\nx\n^^^end\n");
        let ignore = |p: TestProject| p.file(".gitignore", "/agent-config\n/logs\n*.env\n");
        let shown = format!("`{}`", path.escape_debug());
        rejected(
            ignore,
            &reply,
            &["rejected for 1 fault", "line 4", &shown, rule],
        );
        if path != "src" {
            rejected(
                ignore,
                &format!("^^^good\nx\n^^^end\n^^^{path}\n^^^delete\n"),
                &[&shown, rule],
            );
        }
    }
}

#[test]
fn all_faults_are_listed_at_once() {
    let reply = "^^^build.sh\nx\n^^^end\n^^^../x\n^^^delete\n^^^open\n";
    rejected(
        |p| p,
        reply,
        &[
            "rejected for 3 faults",
            "line 1: `build.sh`",
            "line 4: `../x`",
            "line 6: the block of `open` has no `^^^end`",
        ],
    );
}

#[test]
fn malformed_replies_are_rejected_whole() {
    for (reply, expected) in [
        (
            "^^^good\nx\n^^^end\n^^^\nx\n^^^end\n",
            "`^^^` without a path",
        ),
        ("^^^good\nx\n^^^end\n^^^end\n", "`^^^end` outside a block"),
        (
            "^^^good\nx\n^^^other\ny\n^^^end\n",
            "inside the block of `good`",
        ),
        (
            "^^^good\nx\n^^^end\n^^^a\n1\n^^^end\n^^^a/b\n2\n^^^end\n",
            "`a` is to be a file",
        ),
        ("^^^good\r\nx\n^^^end\n", "`good\\r`"),
    ] {
        rejected(|p| p, reply, &[expected]);
    }
}

#[test]
fn links_and_special_files_are_not_written_through() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("file"), "mine").unwrap();
    let link = |name: &'static str, target: &'static str| {
        let outside = outside.path().to_owned();
        move |project: TestProject| {
            symlink(outside.join(target), project.path(name)).unwrap();
            project
        }
    };
    rejected(
        link("dir", "."),
        "^^^dir/file\nx\n^^^end\n",
        &["may not lead to or through a symbolic link"],
    );
    rejected(
        link("file", "file"),
        "^^^file\nx\n^^^end\n",
        &["may not lead to or through a symbolic link"],
    );
    rejected(
        link("file", "missing"),
        "^^^file\n^^^delete\n",
        &["may not lead to or through a symbolic link"],
    );
    rejected(
        |p| p.file("nested/.git/HEAD", ""),
        "^^^nested/x\nx\n^^^end\n",
        &["lies in another git repository"],
    );
    assert_eq!(
        fs::read_to_string(outside.path().join("file")).unwrap(),
        "mine"
    );
}

#[test]
fn a_bad_repair_leaves_the_earlier_edits() {
    let server = ModelServer::gemini(&[
        "^^^a\n1\n^^^end\n",
        "^^^a\n2\n^^^end\n^^^build.sh\n^^^delete\n",
    ]);
    let project = TestProject::new().with(&server).build("exit 1");
    let run = project.run(&[]).exits(5);
    assert_eq!(project.read("a"), "1\n");
    assert_eq!(
        run.result()["attempts"][1]["build"],
        serde_json::Value::Null
    );
}

#[test]
fn the_program_itself_is_protected_where_it_lies_in_the_project() {
    let server = ModelServer::gemini(&["^^^bin/tool\nx\n^^^end\n"]);
    let project = TestProject::new().with(&server);
    fs::create_dir(project.path("bin")).unwrap();
    let program = fs::read(assert_cmd::cargo::cargo_bin!("code-commit")).unwrap();
    let project = project.program("bin/tool", program);
    let command = project.command(&[]);
    let output = std::process::Command::new(project.path("bin/tool"))
        .current_dir(project.path(""))
        .env_clear()
        .envs(command.get_envs().filter_map(|(k, v)| Some((k, v?))))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("the running program may not be changed")
    );
}

#[test]
fn modes_are_kept_and_new_files_are_plain() {
    let server = ModelServer::gemini(&["^^^run.sh\nnew\n^^^end\n^^^secret\nnew\n^^^end\n"]);
    let project = TestProject::new()
        .with(&server)
        .file("run.sh", "old")
        .mode("run.sh", 0o755);
    let project = project.file("secret", "old").mode("secret", 0o600);
    project.run(&[]).exits(0);
    let mode = |path| fs::metadata(project.path(path)).unwrap().mode() & 0o7777;
    assert_eq!((mode("run.sh"), mode("secret")), (0o755, 0o600));
    assert_eq!(project.read("run.sh"), "new\n");
}

#[test]
fn warnings_are_shown_and_recorded() {
    let server = ModelServer::gemini(&[
        "^^^a\n1\n^^^end\n^^^a\n2\n^^^end\n^^^gone\n^^^delete\n^^^build.rs\n^^^end\n",
    ]);
    let run = TestProject::new().with(&server).run(&[]).exits(0);
    let warnings = run.result()["warnings"].as_array().unwrap().len();
    assert_eq!(warnings, 3);
    run.says(&[
        "more than one block for `a`",
        "`gone` is to be removed, but is not there",
        "`build.rs` runs code",
    ]);
}

#[test]
fn nothing_is_left_behind_in_the_project() {
    let server = ModelServer::gemini(&["^^^a\n1\n^^^end\n^^^src/main.rs\n2\n^^^end\n"]);
    let project = TestProject::new().with(&server);
    let before = project.tree();
    project.run(&[]).exits(0);
    let mut after = project.tree();
    assert!(after.remove("a").is_some());
    assert_eq!(
        after.keys().collect::<Vec<_>>(),
        before.keys().collect::<Vec<_>>()
    );
}

#[test]
fn what_changes_throughout_a_file_is_warned_about() {
    let server =
        ModelServer::gemini(&["^^^crlf\na\nb\n^^^end\n^^^bin\ntext\n^^^end\n^^^open\nx\n^^^end\n"]);
    let project = TestProject::new()
        .with(&server)
        .file("crlf", "a\r\nb\r\n")
        .file("bin", b"\xff\xfe");
    let project = project.file("open", "x");
    project.run(&[]).exits(0).says(&[
        "warning: `crlf` had CRLF line endings and now has LF throughout",
        "warning: `bin` was not UTF-8 text and is replaced as a whole",
        "warning: `open` now has a newline at its end",
    ]);
}

#[test]
fn a_file_is_not_replaced_by_a_piece_of_itself() {
    let reply = "^^^src/long.rs\nfn a() {}\n// ... rest of the code unchanged\n^^^end\n";
    let long = |project: TestProject| project.file("src/long.rs", "fn f() {}\n".repeat(100));
    rejected(
        long,
        reply,
        &["line 3: `src/long.rs` would shrink to less than a third"],
    );
    let server = ModelServer::gemini(&[reply]);
    long(TestProject::new().with(&server))
        .run(&["--allow-elision"])
        .exits(0);
}
