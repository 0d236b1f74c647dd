//! Runs that send part of the code base, and more of it on the model's request.

use std::process::Command;

use serde_json::json;

use crate::support::{Answer, ModelServer, TestProject};

const NEED_B: &str = "^^^need\nlib/b.py\n^^^end\n";
const EDIT_B: &str = "^^^lib/b.py\ndef b():\n    return 2\n^^^end\n";

fn git(project: &TestProject, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.current_dir(project.path(".")).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    let status = command.args(identity).args(arguments).status();
    assert!(status.unwrap().success(), "{arguments:?}");
}

/// A repository without a rollup, whose file `src/a.rs` the query names.
fn project(server: &ModelServer) -> TestProject {
    let project = TestProject::new()
        .with(server)
        .without("agent-config/codeRollup.txt")
        .file("agent-config/query.txt", "Let src/a.rs use what is new.\n")
        .file("src/a.rs", "pub fn a() {}\n")
        .file("lib/b.py", "def b():\n    return 1\n")
        .file("secret.pem", "-----BEGIN NOTHING-----\n")
        .file(
            "src/token.rs",
            format!(
                "let a = \"ghp_{}\";\n",
                "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA1bC2"
            ),
        );
    git(&project, &["init", "-q"]);
    git(&project, &["add", "--all"]);
    git(&project, &["commit", "-q", "-m", "first"]);
    project
}

const LIMIT: [&str; 2] = ["--context", "4k"];

#[test]
fn a_prompt_has_the_outline_and_the_files_that_count() {
    let server = ModelServer::gemini(&["^^^src/a.rs\npub fn a2() {}\n^^^end\n"]);
    let project = project(&server);
    let run = project.run(&LIMIT).exits(0);
    let sent = server.requests()[0].user();
    let (query, code) = sent.split_once("[codebase]\n").unwrap();
    assert_eq!(query, "[query]\nLet src/a.rs use what is new.\n");
    let (outline, files) = code.split_once("--- src/a.rs ---\n").unwrap();
    assert!(outline.contains("def b"), "{outline}");
    assert!(files.starts_with("pub fn a() {}\n"), "{files}");
    assert!(!code.contains("--- lib/b.py ---"), "{code}");
    assert!(
        !code.contains("token.rs") && !code.contains("secret.pem"),
        "{code}"
    );
    let run = run.says(&["1 secret, 1 with credentials left out"]);
    assert!(run.logged("initial-query.txt").contains("^^^need\n"));
    assert_eq!(project.read("src/a.rs"), "pub fn a2() {}\n");
    assert!(run.files().contains(&"shown.json".to_owned()));
}

#[test]
fn a_model_gets_the_files_that_it_asks_for() {
    let server = ModelServer::gemini(&[NEED_B, EDIT_B]);
    let project = project(&server);
    let run = project.run(&LIMIT).exits(0);
    let requests = server.requests();
    let (first, second) = (requests[0].user(), requests[1].user());
    let added = second
        .strip_prefix(&first)
        .expect("the same prompt comes first");
    assert_eq!(
        added,
        "[needed files]\n--- lib/b.py ---\ndef b():\n    return 1\n"
    );
    assert!(run.logged("context-query-1.txt").ends_with(added));
    assert_eq!(run.logged("context-query-1-response.txt"), EDIT_B);
    assert!(run.logged("context-query-1-build.txt").ends_with("built\n"));
    let result = run.result();
    let kinds = result["attempts"].as_array().unwrap().iter();
    let kinds: Vec<_> = kinds.map(|step| (&step["kind"], &step["number"])).collect();
    assert_eq!(
        kinds,
        [
            (&json!("initial"), &json!(0)),
            (&json!("context"), &json!(1))
        ]
    );
    assert!(run.stdout.contains("at the first try"), "{}", run.stdout);
    let log = project.run(&["log", &run.folder]).exits(0).stdout;
    assert!(log.contains("The reply asks for lib/b.py."), "{log}");
    assert!(!log.contains("changed no files"), "{log}");
    assert!(!log.contains("not applied"), "{log}");
}

#[test]
fn a_file_must_be_read_before_it_is_written() {
    for (reply, expected) in [
        (
            EDIT_B,
            "`lib/b.py`: the prompt does not show this file in whole",
        ),
        (
            "^^^lib/b.py\n^^^delete\n",
            "`lib/b.py`: the prompt does not show this file in whole",
        ),
        // Neither listed in the outline nor sent.
        (
            "^^^secret.pem\nx\n^^^end\n",
            "`secret.pem`: the prompt does not show this file in whole",
        ),
        (
            "^^^need\nsecret.pem\n^^^end\n",
            "`secret.pem`: the code base has no such file",
        ),
        (
            "^^^need\nagent-config/gemini-key.txt\n^^^end\n",
            "the code base has no such file",
        ),
        (
            "^^^need\nsrc/a.rs\n^^^end\n",
            "`src/a.rs`: the prompt shows this file in whole already",
        ),
    ] {
        let server = ModelServer::gemini(&[reply]);
        let project = project(&server);
        let before = project.tree();
        project.run(&LIMIT).exits(5).says(&[expected]);
        assert_eq!(project.tree(), before, "{reply}");
    }
}

#[test]
fn a_refused_request_is_repeated_and_a_new_file_needs_no_request() {
    let server = ModelServer::gemini(&[
        "^^^need\nnone.rs\n^^^end\n",
        NEED_B,
        "^^^src/c.rs\nx\n^^^end\n",
    ]);
    let project = project(&server);
    let run = project.run(&["--context", "4k", "--reask", "1"]).exits(0);
    assert_eq!(project.read("src/c.rs"), "x\n");
    assert!(run.logged("initial-query-reask-1-response.txt") == NEED_B);
    // Its replay refuses the same request.
    project.run(&["undo"]).exits(0);
    project.run(&["--replay", &run.folder]).exits(0);
    assert_eq!(project.read("src/c.rs"), "x\n");
}

#[test]
fn a_repair_shows_the_places_that_the_build_names_and_may_ask_too() {
    let long: String = (1..=100).map(|at| format!("// line {at}\n")).collect();
    let first = "^^^src/a.rs\npub fn a2() {}\n^^^end\n";
    let server = ModelServer::gemini(&[first, NEED_B, EDIT_B]);
    let build = "grep -q 2 lib/b.py || { echo 'lib/long.py:50: error: no'; exit 1; }";
    let project = project(&server).file("lib/long.py", &long).build(build);
    git(&project, &["add", "--all"]);
    let run = project.run(&LIMIT).exits(0);
    let repair = run.logged("repair-query-1.txt");
    let (_, places) = repair.split_once("[places named by the build]\n").unwrap();
    assert!(
        places.starts_with("--- lib/long.py (lines 35-64 of 100) ---\n"),
        "{places}"
    );
    assert!(places.contains("50\t// line 50\n"), "{places}");
    assert_eq!(run.logged("context-query-1-response.txt"), EDIT_B);
    assert!(run.stdout.contains("after 1 repair"), "{}", run.stdout);
}

#[test]
fn a_replay_and_a_resumed_run_go_the_same_way() {
    let server = ModelServer::gemini(&[NEED_B, EDIT_B]);
    let project = project(&server).build("test -e ok");
    // The server has no answer for the repair.
    let failed = project.run(&LIMIT).exits(4).folder;
    project.run(&["undo"]).exits(0);
    let project = project.file("ok", "");
    project.run(&["--replay", &failed]).exits(0);
    assert_eq!(project.read("lib/b.py"), "def b():\n    return 2\n");
    project.run(&["undo"]).exits(0);
    let resumed = project.run(&["--resume", &failed]).exits(0);
    assert_eq!(project.read("lib/b.py"), "def b():\n    return 2\n");
    assert!(resumed.files().contains(&"shown.json".to_owned()));
}

#[test]
fn a_model_may_have_a_limit_of_its_own() {
    let server = ModelServer::gemini(&["^^^src/c.rs\nx\n^^^end\n"]);
    let models = json!({"models": {"gemini-2.5-pro": {"contextTokens": 4000}}}).to_string();
    let project = project(&server).file("agent-config/models.json", &models);
    let run = project.run(&[]).exits(0);
    assert!(
        run.logged("initial-query.txt")
            .contains("Outline of all files:\n")
    );
}

#[test]
fn flags_that_choose_nothing_are_refused() {
    let server = ModelServer::gemini(&[]);
    for (arguments, code, expected) in [
        (
            &["--include", "src"][..],
            2,
            "choose from nothing without `--context`",
        ),
        (&["--context", "999"], 2, "write at least 1000 tokens"),
        (
            &["--context", "4k", "--include", "none"],
            2,
            "`none` names no tracked file",
        ),
        (
            &["--context", "4k", "--include", "src/token.rs"],
            2,
            "`src/token.rs` cannot be included: it is left out of the code base (with credentials)",
        ),
        (&["--context", "4k", "--cc"], 2, "--context"),
    ] {
        project(&server)
            .run(arguments)
            .exits(code)
            .says(&[expected]);
    }
    assert!(server.requests().is_empty());
}

#[test]
fn edits_are_made_in_lines_that_were_shown_and_after_a_request_for_files() {
    let edit = |find: &str, put: &str| {
        format!("^^^lib/b.py\n^^^find\n{find}^^^put\n{put}^^^end\n^^^done 1\n")
    };
    let right = edit("    return 1\n", "    return 2\n");
    let broken = edit("    return 2\n", "    return 3\n");
    let server = ModelServer::gemini(&[&right, NEED_B, &right, &broken]);
    let project = project(&server).build("grep -q 3 lib/b.py");
    let flags = ["--reply-format", "edits", "--reask", "1"];
    let run = project.run(&[&LIMIT[..], &flags].concat()).exits(0);
    let requests = server.requests();
    assert!(
        requests[1]
            .user()
            .contains("`lib/b.py`: the file was not shown")
    );
    assert!(requests[2].user().contains("--- lib/b.py ---\ndef b():\n"));
    assert!(
        requests[3]
            .user()
            .contains("--- FILE REPLACEMENT lib/b.py ---\ndef b():\n    return 2\n")
    );
    assert_eq!(project.read("lib/b.py"), "def b():\n    return 3\n");
    project.run(&["undo"]).exits(0);
    project.run(&["--replay", &run.folder]).exits(0);
    assert_eq!(project.read("lib/b.py"), "def b():\n    return 3\n");
}

#[test]
fn a_dry_run_shows_what_would_be_sent() {
    let server = ModelServer::gemini(&[]);
    let project = project(&server);
    let run = project.run(&["--context", "4k", "--dry-run"]).exits(0);
    let lines: Vec<&str> = run.stdout.lines().collect();
    let outline = lines
        .iter()
        .position(|line| line.ends_with("outline of all files"));
    assert!(
        lines[outline.unwrap() + 1].contains("src/a.rs"),
        "{lines:?}"
    );
    let arguments = ["--context", "4k", "--dry-run", "--output-format", "json"];
    let json = project.run(&arguments).exits(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let first = &json["context"]["files"][0];
    assert_eq!(
        (&first["path"], &first["lines"]),
        (&json!("src/a.rs"), &json!(null))
    );
    // The instructions for partial code bases are sent, too.
    let whole = project
        .run(&[
            "--rollup",
            "--allow-secrets",
            "--dry-run",
            "--output-format",
            "json",
        ])
        .exits(0);
    let whole: serde_json::Value = serde_json::from_str(&whole.stdout).unwrap();
    let system = |json: &serde_json::Value| json["prompt"]["parts"][0]["tokens"].as_u64().unwrap();
    assert!(system(&json) > system(&whole) + 200, "{json} {whole}");
    assert!(server.requests().is_empty());
}

#[test]
fn a_resumed_or_replayed_run_keeps_to_what_was_shown_and_left_out() {
    let server = ModelServer::gemini(&[EDIT_B]);
    let project = project(&server).build("test -e ok");
    let flags = [
        "--context",
        "4k",
        "--include",
        "lib/b.py",
        "--exclude",
        "src/main.rs",
    ];
    let failed = project.run(&flags).exits(4).folder;
    project.run(&["undo"]).exits(0);
    git(&project, &["commit", "-q", "--allow-empty", "-m", "main"]);
    let project = project.file("ok", "");
    project.run(&["--replay", &failed]).exits(0);
    project.run(&["undo"]).exits(0);
    // Excluded files stay excluded.
    let need = "^^^need\nsrc/main.rs\n^^^end\n";
    let project = project.without("ok").file("other", "");
    let server = ModelServer::gemini(&[need]);
    let project = project.with(&server);
    let resumed = project.run(&["--resume", &failed]).exits(5);
    resumed.says(&["`src/main.rs`: the code base has no such file"]);
}

#[test]
fn a_resumed_run_does_not_build_upon_excerpts_that_have_changed() {
    let long: String = (1..=900)
        .map(|at| format!("value_{at} = use(new, {at})\n"))
        .collect();
    let server = ModelServer::gemini(&[]);
    let project = project(&server).file("lib/long.py", &long);
    git(&project, &["add", "--all"]);
    let failed = project.run(&LIMIT).exits(4).folder;
    let shown = std::fs::read_to_string(project.path(&format!("logs/{failed}/shown.json")));
    assert!(shown.unwrap().contains("lib/long.py"));
    let project = project.file("lib/long.py", "changed\n");
    project
        .run(&["--resume", &failed])
        .exits(3)
        .says(&["`lib/long.py`"]);
}

#[test]
fn two_requests_in_a_reply_are_a_fault() {
    let server = ModelServer::gemini(&["^^^need\nsrc/x.rs\n^^^end\n^^^need\nlib/b.py\n^^^end\n"]);
    project(&server)
        .run(&LIMIT)
        .exits(5)
        .says(&["a request for files stands alone"]);
}

#[test]
fn a_file_that_the_run_has_changed_is_needed_as_it_is_now() {
    let filler: String = (1..=900)
        .map(|at| format!("value_{at} = use(new, {at})\n"))
        .collect();
    let long = format!("first = 1\n{filler}");
    let edit = |find: &str, put: &str| {
        format!("^^^lib/long.py\n^^^find\n{find}\n^^^put\n{put}\n^^^end\n^^^done 1\n")
    };
    let first = edit("value_1 = use(new, 1)", "value_1 = wrong");
    let second = edit("value_1 = wrong", "value_1 = right");
    let need = "^^^need\nlib/long.py\n^^^end\n";
    let server = ModelServer::gemini(&[&first, need, &second]);
    let project = project(&server)
        .file("lib/long.py", &long)
        .build("! grep -q wrong lib/long.py");
    git(&project, &["add", "--all"]);
    let message = "Let first follow value_1.";
    let flags = ["-m", message, "--context", "4k", "--reply-format", "edits"];
    let run = project.run(&flags).exits(0);
    let query = run.logged("context-query-1.txt");
    let (_, needed) = query.split_once("[needed files]\n").unwrap();
    assert!(needed.contains("value_1 = wrong\n"), "{needed}");
    assert!(project.read("lib/long.py").contains("value_1 = right\n"));
}

#[test]
fn a_repair_is_about_files_as_the_build_has_left_them() {
    let lines = |from: &str| -> String {
        let line = |at| match at {
            450 => from.to_owned(),
            _ => format!("    filler = {at}\n"),
        };
        (1..=900).map(line).collect()
    };
    let edit = |path: &str, find: &str, put: &str| {
        format!("^^^{path}\n^^^find\n{find}\n^^^put\n{put}\n^^^end\n^^^done 1\n")
    };
    let first = edit("src/a.rs", "pub fn a() {}", "pub fn a2() {}");
    let stale = edit("lib/long.py", "use_of_a( )", "use_of_a2()");
    let unseen = edit("lib/long.py", "    filler = 9", "x");
    let right = edit("lib/long.py", "use_of_a()", "use_of_a2()");
    let build = "sed -i 's/( )/()/; 1i# new' lib/long.py; grep -q a2 lib/long.py";
    for (format, replies) in [
        ("edits", vec![&*first, &stale, &unseen, &right]),
        (
            "whole",
            vec![
                "^^^src/a.rs\npub fn a2() {}\n^^^end\n",
                "^^^need\nlib/long.py\n^^^end\n",
                "^^^lib/long.py\nuse_of_a2()\n^^^end\n",
            ],
        ),
    ] {
        let server = ModelServer::gemini(&replies);
        let project = project(&server)
            .file("lib/long.py", lines("use_of_a( )\n"))
            .build(build);
        git(&project, &["add", "--all"]);
        let query = "Let src/a.rs be a2, and what has use_of_a, too.";
        let flags = ["-m", query, "--context", "4k", "--reask", "2"];
        let run =
            project.run(&[&flags[..], &["--reply-format", format, "--allow-shrink"]].concat());
        let run = run.exits(0);
        let requests = server.requests();
        assert!(requests[0].user().contains("\tuse_of_a( )\n"));
        let repair = requests[1].user();
        let (_, regions) = repair
            .split_once("--- CHANGED REGIONS lib/long.py ---\n")
            .unwrap();
        assert!(
            regions.starts_with("[lines ") && regions.contains("\nuse_of_a()\n"),
            "{regions}"
        );
        assert!(!regions.contains("filler = 9\n"), "{regions}");
        if format == "edits" {
            let faults = [2, 3].map(|at| requests[at].user());
            assert!(faults[0].contains(
                "there is no line `use_of_a( )` in the file as it was sent; the nearest is line 451"
            ));
            assert!(
                faults[1]
                    .contains("from line 10 of the file on, are not among those that were shown")
            );
            let now = project.read("lib/long.py");
            assert!(now.starts_with("# new\n# new\n    filler = 1\n"), "{now}");
        } else {
            let asked = requests[2].user();
            let (_, needed) = asked
                .split_once("[needed files]\n--- lib/long.py ---\n")
                .unwrap();
            assert!(needed.starts_with("# new\n    filler = 1\n"), "{needed}");
        }
        assert!(!run.stderr.contains("was not shown"), "{}", run.stderr);
    }
}

#[test]
fn a_file_that_changes_while_the_model_is_at_work_is_reported_as_such() {
    let server = ModelServer::gemini(&[]);
    let project = project(&server);
    let edit = "^^^src/a.rs\n^^^find\npub fn a() {}\n^^^put\npub fn a2() {}\n^^^end\n^^^done 1\n";
    let path = project.path("src/a.rs");
    let write = move || std::fs::write(&path, "pub fn a() {}\n// new\n").unwrap();
    let server = ModelServer::start([Answer::gemini_after(write, edit)]);
    let project = project.with(&server);
    let flags = ["--context", "4k", "--reply-format", "edits"];
    project
        .run(&flags)
        .exits(5)
        .says(&["changed while the model was at work: `src/a.rs`"]);
}

#[test]
fn files_that_do_not_fit_are_a_fault_of_the_request() {
    let server = ModelServer::gemini(&["^^^need\nbig.txt\nlib/b.py\n^^^end\n", NEED_B, EDIT_B]);
    let models = json!({"models": {"gemini-2.5-pro": {"contextWindow": 8000}}}).to_string();
    let project = project(&server)
        .file("agent-config/models.json", &models)
        .file("big.txt", "one more line of many words\n".repeat(3000));
    git(&project, &["add", "big.txt"]);
    let run = project
        .run(&[&LIMIT[..], &["--reask", "1"]].concat())
        .exits(0);
    let again = server.requests()[1].user();
    let fault = again.split_once("[rejected reply]\n").unwrap().1;
    assert!(
        fault.contains("the files do not fit in the window, which has room for ")
            && fault.contains("`big.txt` has "),
        "{fault}"
    );
    assert_eq!(project.read("lib/b.py"), "def b():\n    return 2\n");
    project.run(&["undo"]).exits(0);
    project.run(&["--replay", &run.folder]).exits(0);
}

#[test]
fn possible_credentials_are_sent_and_reported_if_allowed() {
    let server = ModelServer::gemini(&["^^^src/c.rs\nx\n^^^end\n"]);
    let project = project(&server);
    let flags = [
        "--context",
        "4k",
        "--include",
        "src/token.rs",
        "--allow-secrets",
    ];
    project
        .run(&flags)
        .exits(0)
        .says(&["what looks like credentials is sent, as allowed"]);
    assert!(server.requests()[0].user().contains("ghp_"));
}
