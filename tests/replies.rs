//! Replies that must not be applied, and the path policy's messages end to end.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};

use crate::support::{ModelServer, TestProject};

/// Checks that a rejected reply leaves the tree unchanged, whatever else it contains.
#[track_caller]
fn rejected(prepare: impl FnOnce(TestProject) -> TestProject, reply: &str, expected: &[&str]) {
    let server = ModelServer::gemini(&[reply]);
    let project = prepare(TestProject::new().with(&server).build("touch built"));
    let before = project.tree();
    let run = project
        .run(&[])
        .exits(5)
        .says(expected)
        .says(&["hint: the reply was not applied"]);
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
fn the_program_itself_is_protected_where_it_is_in_the_project() {
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
fn changes_of_line_endings_and_encoding_are_warned_about() {
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

/// Adds a file of a hundred different lines.
fn with_long_file(project: TestProject) -> TestProject {
    let lines: String = (0..100).map(|n| format!("fn f{n}() {{}}\n")).collect();
    project.file("src/long.rs", lines)
}

#[test]
fn a_reply_that_loses_code_is_rejected_and_the_hint_names_what_accepts_it() {
    for (text, fault, flags) in [
        (
            "fn a() {}\n// ... 其余代码保持不变\n",
            "line 3: `src/long.rs`: a comment on line 2 of the new text takes the place of 99 lines of code",
            "--allow-elision",
        ),
        (
            "fn a() {}\nfn f1() {} // ... resto del código\n",
            "line 3: `src/long.rs`: a comment on line 2",
            "--allow-elision",
        ),
        (
            "fn f0() {}\nfn f1() {}\n",
            "line 1: `src/long.rs` would shrink from 100 lines to 2",
            "--allow-shrink",
        ),
        (
            "```rust\nfn f0() {}\n```\n",
            "line 2: `src/long.rs`: the text stands between code fences",
            "--allow-form --allow-shrink",
        ),
        (
            "@@ -1,2 +1,1 @@\n fn f0() {}\n-fn f1() {}\n",
            "line 2: `src/long.rs`: a diff, on line 1 of the new text",
            "--allow-form --allow-shrink",
        ),
    ] {
        let reply = format!("^^^src/long.rs\n{text}^^^end\n");
        rejected(with_long_file, &reply, &[fault]);
        let server = ModelServer::gemini(&[&reply]);
        let project = with_long_file(TestProject::new().with(&server));
        let result = project.run(&[]).exits(5).result();
        let hint = result["error"]["hint"].as_str().unwrap();
        let command = hint
            .split('`')
            .find_map(|part| part.strip_prefix("code-commit "));
        let command: Vec<&str> = command.expect(hint).split(' ').collect();
        assert_eq!(command[0], "--replay", "{hint}");
        assert_eq!(command[2..].join(" "), flags);
        project.run(&command[..command.len() - 1]).exits(5);
        project.run(&command).exits(0);
        assert_eq!(project.read("src/long.rs"), text);
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_file_may_shrink_where_that_is_asked_for_or_its_lines_move() {
    let long = |n| {
        (0..n)
            .map(|n| format!("fn f{n}() {{}}\n"))
            .collect::<String>()
    };
    let moved = format!(
        "^^^src/long.rs\nmod f;\n^^^end\n^^^src/f.rs\n{}^^^end\n",
        long(60)
    );
    let cut = "^^^src/long.rs\nfn a() {}\n^^^end\n".to_owned();
    let removed = "^^^src/long.rs\n^^^delete\n".to_owned();
    for (query, reply) in [
        ("Shorten it.", moved),
        ("Shorten `long.rs`.", cut.clone()),
        ("Shorten it.", removed),
    ] {
        let server = ModelServer::gemini(&[&reply]);
        let project = with_long_file(TestProject::new().with(&server));
        project
            .file("agent-config/query.txt", query)
            .run(&[])
            .exits(0);
    }
    let server = ModelServer::gemini(&[&cut]);
    let project = with_long_file(TestProject::new().with(&server));
    project.run(&["--allow-elision"]).exits(0);
}

#[test]
fn a_comment_in_place_of_code_is_warned_of() {
    let reply = format!(
        "^^^src/a.rs\n{}// as before\n^^^end\n",
        "fn a() {}\n".repeat(9)
    );
    let server = ModelServer::gemini(&[&reply]);
    let project = TestProject::new().with(&server);
    let project = project.file(
        "src/a.rs",
        "fn a() {}\n".repeat(9) + &"fn b() {}\n".repeat(9),
    );
    project
        .run(&[])
        .exits(0)
        .says(&["warning: `src/a.rs` has a comment in place of 9 lines of code, on line 10"]);
}

#[test]
fn a_path_with_something_around_it_is_no_name_of_a_file() {
    for path in [
        "[src/app.js]",
        "`src/app.js`",
        "**src/app.js**",
        "src/app.js (new)",
        "src/app.js:",
    ] {
        let reply = format!("^^^good\nx\n^^^end\n^^^{path}\nx\n^^^end\n");
        let fault =
            format!("line 4: `{path}` is a path with something around it: write `src/app.js`");
        rejected(|project| project, &reply, &[&fault]);
    }
    let protected = "^^^[build.sh]\nx\n^^^end\n";
    rejected(
        |project| project,
        protected,
        &["`[build.sh]`: this file is protected"],
    );
    let server = ModelServer::gemini(&["^^^[odd]\nx\n^^^end\n^^^app/[slug]/page.tsx\nx\n^^^end\n"]);
    let project = TestProject::new().with(&server).file("[odd]", "a\n");
    project.run(&[]).exits(0);
    assert_eq!(project.read("[odd]"), "x\n");
    assert_eq!(project.read("app/[slug]/page.tsx"), "x\n");
}

#[test]
fn most_of_a_file_that_is_not_utf8_is_not_dropped_either() {
    let long = b"-- caf\xe9\nlocal x = 1\n".repeat(60);
    let server = ModelServer::gemini(&["^^^life.lua\nx\n^^^end\n"]);
    let project = TestProject::new().with(&server).file("life.lua", &long);
    project.run(&[]).exits(5).says(&["`life.lua`"]);
    assert_eq!(std::fs::read(project.path("life.lua")).unwrap(), long);
}

#[test]
fn a_moved_script_that_may_no_longer_be_executed_is_named() {
    let server = ModelServer::gemini(&["^^^old.sh\n^^^delete\n^^^new.sh\n#!/bin/sh\n^^^end\n"]);
    let project = TestProject::new()
        .with(&server)
        .file("old.sh", "#!/bin/sh\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(project.path("old.sh"), mode).unwrap();
    project
        .run(&[])
        .exits(0)
        .says(&["`new.sh` is `old.sh`, but not executable, as no new file is"]);
}
