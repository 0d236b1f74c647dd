//! The sources of the query and the code base, and the treatment of files whose current state the model has not seen.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use serde_json::Value;

use crate::support::agent::{AgentProject, done};
use crate::support::{
    Answer, BUBBLEWRAP, Finished, ModelServer, TestProject, bubblewrap_works, gemini,
};

/// A reply that replaces the only file of the rollup.
const REPLACES: &str = "^^^src/main.rs\nfn main() { reply() }\n^^^end\n";

fn git(project: &TestProject, arguments: &[&str]) {
    let output = Command::new("git")
        .args(["-C", project.path("").to_str().unwrap()])
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// A project without inputs, whose sources git tracks.
fn tracked() -> TestProject {
    let project = TestProject::new()
        .without("agent-config/query.txt")
        .without("agent-config/codeRollup.txt");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "src"]);
    project
}

/// A server that replaces `path` during the call, and then gives this reply.
fn meanwhile(project: &TestProject, path: &str, content: &'static str, reply: &str) -> Answer {
    let path = project.path(path);
    Answer::gemini_after(move || fs::write(path, content).unwrap(), reply)
}

/// The same, at a time that is later than the run's start even by the coarse times of files.
fn later(project: &TestProject, path: &str, content: &'static str, reply: &str) -> Answer {
    let path = project.path(path);
    let write = move || {
        let asked = SystemTime::now();
        while {
            fs::write(&path, content).unwrap();
            fs::metadata(&path).unwrap().modified().unwrap() <= asked
        } {}
    };
    Answer::gemini_after(write, reply)
}

fn warnings(run: &Finished) -> Vec<String> {
    let result = run.result();
    let warnings = result["warnings"].as_array().unwrap().iter();
    warnings
        .map(|warning| warning.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_stale_rollup_is_not_sent_and_every_file_is_named() {
    let server = ModelServer::start([]);
    let files: Vec<String> = (0..20).map(|n| format!("gone{n}.rs")).collect();
    let rollup: String = files
        .iter()
        .map(|file| format!("--- {file} ---\n"))
        .collect();
    let project = TestProject::new()
        .with(&server)
        .file("src/main.rs", "fn main() { edited() }\n")
        .file(
            "agent-config/codeRollup.txt",
            format!("--- src/main.rs ---\nfn main() {{}}\n{rollup}"),
        );
    for arguments in [&[][..], &["--cc"], &["--dry-run"], &["--require-fresh"]] {
        let run = project.run(arguments).exits(3).says(&[
            "the code base in `agent-config/codeRollup.txt` differs from the files on disk",
            "`src/main.rs` has changed",
            "`--rollup`",
            "`code-commit rollup`",
        ]);
        for file in &files {
            let named = format!("`{file}` is not there");
            assert!(run.stderr.contains(&named), "{named}: {}", run.stderr);
        }
    }
    assert!(server.requests().is_empty() && project.runs().is_empty());
}

#[test]
fn files_replaced_under_allow_stale_are_named() {
    let server = ModelServer::gemini(&[REPLACES]);
    let project = TestProject::new()
        .with(&server)
        .file("src/main.rs", "fn main() { edited() }\n");
    let run = project.run(&["--allow-stale"]).exits(0).says(&[
        "`src/main.rs` has changed; it is sent as it is",
        "`src/main.rs` is replaced, though the model was not shown it as it is",
    ]);
    assert_eq!(warnings(&run).len(), 2);
    assert_eq!(project.read("src/main.rs"), "fn main() { reply() }\n");
}

#[test]
fn newline_added_by_a_rollup_is_not_a_difference() {
    for (content, rollup) in [
        ("a", "--- src/main.rs ---\na"),
        ("a", "--- src/main.rs ---\na\n"),
        ("a\n", "--- src/main.rs ---\na\n\n"),
        ("a\n", "--- ./src/main.rs ---\na\n"),
        ("a\r\n", "\u{feff}--- src/main.rs ---\na\r\n"),
        ("--- x ---\n", "--- src/main.rs ---\n--- x ---\n"),
        ("", "--- src/main.rs ---\n"),
    ] {
        let server = ModelServer::gemini(&[REPLACES]);
        let project = TestProject::new()
            .with(&server)
            .file("src/main.rs", content)
            .file("agent-config/codeRollup.txt", rollup);
        let run = project.run(&["--require-fresh"]).exits(0);
        let told = warnings(&run);
        let untold = |warning: &String| !warning.contains("shown");
        assert!(told.iter().all(untold), "{rollup:?} {told:?}");
    }
}

#[test]
fn a_file_that_changes_while_the_model_is_at_work_is_not_replaced() {
    for (change, fate) in [
        ("fn main() { edited() }\n", "has changed"),
        ("", "was emptied"),
    ] {
        let project = TestProject::new();
        let server = ModelServer::start([meanwhile(&project, "src/main.rs", change, REPLACES)]);
        let project = project.with(&server);
        let run = project.run(&[]).exits(5).says(&[
            "the reply was not applied: changed while the model was at work: `src/main.rs`",
            "`code-commit --resume RUN`",
            "`--allow-stale`",
        ]);
        assert_eq!(project.read("src/main.rs"), change, "{fate}");
        assert_eq!(run.result()["exit"]["name"], "reply-rejected");
        assert_eq!(run.result()["attempts"][0]["edits"], Value::Null);
        assert_eq!(run.logged("initial-query-response.txt"), REPLACES);
        assert!(!run.files().contains(&"initial-build.txt".to_owned()));
    }
}

#[test]
fn a_file_that_was_or_will_be_removed_is_compared_too() {
    let project = TestProject::new();
    let path = project.path("src/main.rs");
    let removes = move || fs::remove_file(path).unwrap();
    let server = ModelServer::start([Answer::gemini_after(removes, REPLACES)]);
    let project = project.with(&server);
    project.run(&[]).exits(5).says(&["`src/main.rs`"]);
    assert!(!project.path("src/main.rs").exists());

    let project = TestProject::new();
    let reply = "^^^src/main.rs\n^^^delete\n";
    let server = ModelServer::start([meanwhile(&project, "src/main.rs", "edited\n", reply)]);
    let project = project.with(&server);
    project.run(&[]).exits(5).says(&["`src/main.rs`"]);
    assert_eq!(project.read("src/main.rs"), "edited\n");
}

/// A file that the model was not shown is not compared; the time of its last write shows that it has changed.
#[test]
fn unshown_file_changed_in_the_meantime_is_not_replaced() {
    let reply = "^^^c.py\nthe model's\n^^^end\n";
    let foreign = ("agent-config/codeRollup.txt", "<file>x = 1</file>\n");
    let partial = (
        "agent-config/codeRollup.txt",
        "--- src/main.rs ---\nfn main() {}\n",
    );
    for (rollup, before, arguments) in [
        (foreign, Some("x = 1\n"), &[][..]),
        (foreign, None, &[]),
        (partial, Some("x = 1\n"), &[]),
        (partial, None, &["--rollup", "-m", "Add c.py."]),
    ] {
        let project = tracked().file("agent-config/query.txt", "Do something.\n");
        let project = project.file(rollup.0, rollup.1);
        let project = match before {
            Some(before) => project.file("c.py", before),
            None => project,
        };
        let server = ModelServer::start([
            later(&project, "c.py", "the user's\n", reply),
            later(&project, "c.py", "the user's again\n", reply),
        ]);
        let project = project.with(&server);
        project
            .run(arguments)
            .exits(5)
            .says(&["changed while the model was at work: `c.py`"]);
        assert_eq!(project.read("c.py"), "the user's\n");
        let allowed = [arguments, &["--allow-stale"]].concat();
        project
            .run(&allowed)
            .exits(0)
            .says(&["`c.py` is replaced, though the model was not shown it"]);
        assert_eq!(project.read("c.py"), "the model's\n");
    }
}

#[test]
fn unshown_file_made_by_a_build_is_not_a_concurrent_change() {
    let repairs = "^^^made.py\nthe model's\n^^^end\n^^^ok\n^^^end\n";
    let server = ModelServer::gemini(&["^^^a\n1\n^^^end\n", repairs]);
    let project = TestProject::new()
        .with(&server)
        .build("test -e ok && exit; echo x > made.py; exit 1");
    let run = project.run(&[]).exits(0);
    assert_eq!(
        warnings(&run),
        ["`made.py` is replaced, though the model was not shown it"]
    );
}

#[test]
fn a_file_that_the_reply_leaves_alone_may_change() {
    let project = TestProject::new();
    let edit = meanwhile(
        &project,
        "src/main.rs",
        "edited\n",
        "^^^new.rs\nx\n^^^end\n",
    );
    let server = ModelServer::start([edit]);
    let run = project.with(&server).run(&[]).exits(0);
    assert!(warnings(&run).is_empty(), "{:?}", warnings(&run));
}

#[test]
fn concurrent_changes_are_replaced_and_named_if_allowed() {
    let project = TestProject::new();
    let server = ModelServer::start([meanwhile(&project, "src/main.rs", "edited\n", REPLACES)]);
    let project = project.with(&server);
    project
        .run(&["--allow-stale"])
        .exits(0)
        .says(&["`src/main.rs` is replaced, though the model was not shown it as it is"]);
    assert_eq!(project.read("src/main.rs"), "fn main() { reply() }\n");
    project.run(&["undo"]).exits(0);
    assert_eq!(project.read("src/main.rs"), "edited\n");
}

#[test]
fn a_file_that_the_model_was_not_shown_is_named_when_it_is_replaced() {
    let reply = "^^^mine.rs\nyours\n^^^end\n^^^gone.rs\n^^^delete\n^^^new.rs\nx\n^^^end\n";
    let server = ModelServer::gemini(&[reply]);
    let project = TestProject::new()
        .with(&server)
        .file("mine.rs", "mine\n")
        .file("gone.rs", "x\n");
    let run = project.run(&[]).exits(0);
    assert_eq!(
        warnings(&run)[..2],
        [
            "`mine.rs` is replaced, though the model was not shown it",
            "`gone.rs` is removed, though the model was not shown it",
        ]
    );
    assert!(
        !run.stderr.contains("`new.rs` is replaced"),
        "{}",
        run.stderr
    );
}

/// A repair may replace files that the run has written, and the build's changes to them.
#[test]
fn a_repair_replaces_what_the_run_has_made() {
    let repairs = "^^^src/main.rs\nfn main() { repaired() }\n^^^end\n^^^ok\n^^^end\n";
    let server = ModelServer::gemini(&[REPLACES, repairs]);
    let project = TestProject::new()
        .with(&server)
        .build("test -e ok && exit; echo '// formatted' >> src/main.rs; exit 1");
    let run = project.run(&[]).exits(0);
    assert!(warnings(&run).is_empty(), "{:?}", warnings(&run));
}

#[test]
fn file_changed_by_a_build_is_named_when_a_repair_replaces_it() {
    let repairs = format!("{REPLACES}^^^ok\n^^^end\n");
    let server = ModelServer::gemini(&["^^^a\n1\n^^^end\n", &repairs]);
    let project = TestProject::new()
        .with(&server)
        .build("test -e ok && exit; echo '// formatted' >> src/main.rs; exit 1");
    let run = project.run(&[]).exits(0);
    assert_eq!(
        warnings(&run),
        ["`src/main.rs` is replaced, though the model was not shown it as it is"]
    );
}

#[test]
fn a_file_of_the_run_that_changes_during_a_repair_is_not_replaced() {
    let project = TestProject::new().build("exit 1");
    let repair = "^^^src/main.rs\nfn main() { repaired() }\n^^^end\n";
    let server = ModelServer::start([
        Answer::json(&gemini(REPLACES)),
        meanwhile(&project, "src/main.rs", "edited\n", repair),
    ]);
    let project = project.with(&server);
    let run = project.run(&[]).exits(5).says(&["`src/main.rs`"]);
    assert_eq!(project.read("src/main.rs"), "edited\n");
    assert_eq!(run.logged("repair-query-1-response.txt"), repair);
}

#[test]
fn a_rollup_of_another_form_is_used_as_it_is_and_the_run_says_so() {
    let rollup = "<file path=\"src/main.rs\">\n--- PASS ---\nfn main() {}\n</file>\n";
    let server = ModelServer::gemini(&[REPLACES]);
    let project = TestProject::new()
        .with(&server)
        .file("agent-config/codeRollup.txt", rollup);
    project
        .run(&["--require-fresh"])
        .exits(3)
        .says(&["`agent-config/codeRollup.txt` has no file after"]);
    let run = project
        .run(&[])
        .exits(0)
        .says(&["it is sent as it is, and was not compared with the disk"]);
    assert_eq!(warnings(&run).len(), 1);
}

#[test]
fn a_replay_into_a_tree_that_has_changed_continues_and_names_what_it_replaces() {
    let server = ModelServer::gemini(&[REPLACES]);
    let project = TestProject::new().with(&server);
    let recorded = project.run(&[]).exits(0).folder;
    let project = project.file("src/main.rs", "edited\n");
    let run = project.run(&["--replay", &recorded]).exits(0);
    assert_eq!(
        warnings(&run),
        ["`src/main.rs` is replaced, though the model was not shown it as it is"]
    );
}

#[test]
fn a_replay_of_a_run_with_a_message_needs_no_file_either() {
    let server = ModelServer::gemini(&["^^^src/main.rs\nfn main() {}\n// ... as before\n^^^end\n"]);
    let long = "fn a() {}\n".repeat(50);
    let project = tracked().file("src/main.rs", long).with(&server);
    let run = project.run(&["-m", "Tidy up."]).exits(5);
    assert!(run.stderr.contains("--allow-elision"), "{}", run.stderr);
    let run = project.runs()[0].clone();
    let replay = [
        "--replay",
        run.to_str().unwrap(),
        "--allow-elision",
        "--allow-shrink",
    ];
    project.run(&replay).exits(0);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_message_and_a_rollup_need_no_file() {
    let server = ModelServer::gemini(&[REPLACES]);
    let project = tracked().with(&server);
    let before = project.tree();
    let run = project
        .run(&["-m", "Add a --verbose flag", "--rollup"])
        .exits(0)
        .says(&["rolled up: 1 file, about "]);
    let sent = "[query]\nAdd a --verbose flag\n[codebase]\n--- src/main.rs ---\nfn main() {}\n";
    assert_eq!(server.requests()[0].user(), sent);
    assert!(run.logged("initial-query.txt").ends_with(sent));
    let mut after = project.tree();
    let main = before["src/main.rs"].clone();
    after.insert("src/main.rs".into(), main);
    assert_eq!(after, before);
}

#[test]
fn the_message_comes_from_standard_input_too() {
    let server = ModelServer::gemini(&["Nothing."]);
    let project = tracked().with(&server);
    let mut child = project
        .command(&["--message", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"- Add a flag.\n- Test it.\n").unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    let sent = server.requests()[0].user();
    assert!(
        sent.starts_with("[query]\n- Add a flag.\n- Test it.\n[codebase]\n--- "),
        "{sent}"
    );
}

#[test]
fn a_flag_in_place_of_a_forgotten_text_is_refused() {
    let server = ModelServer::gemini(&[]);
    let project = TestProject::new().with(&server);
    for line in [
        "-m --dry-run",
        "-m --max-cost=0",
        "--message --sandbox=strict",
        "-m -q",
        "context -m --full",
        "dev -p --resume",
        "plan -p --plan-only",
        "chat -p --resume",
        "orchestrate --parent-branch-id 0b5ee3b5-5ba2-4b61-9f3c-3dcdba3b5a12 --task --no-publish",
    ] {
        let words: Vec<_> = line.split(' ').collect();
        let said = ["the text is missing", "looks like a flag"];
        project.run(&words).exits(2).says(&said);
    }
    assert!(server.requests().is_empty());
}

#[test]
fn a_message_goes_before_the_query_file_and_the_rollup_file_stays_where_it_is_there() {
    let server = ModelServer::gemini(&["Nothing.", "A report.", "Nothing."]);
    let project = TestProject::new().with(&server);
    project.run(&["-m", "-x is a flag"]).exits(0);
    project.run(&["--cc", "-m", "Look at it"]).exits(0);
    let sent = server.requests();
    let code_base = "[codebase]\n--- src/main.rs ---\nfn main() {}\n";
    assert_eq!(
        sent[0].user(),
        format!("[query]\n-x is a flag\n{code_base}")
    );
    assert_eq!(sent[1].user(), format!("[query]\nLook at it\n{code_base}"));
    // A stale rollup is not renewed without a request.
    let project = project.file("src/main.rs", "edited\n");
    project.run(&["-m", "x"]).exits(3).says(&["has changed"]);
    git(&project, &["init", "-q"]);
    git(&project, &["add", "src"]);
    project.run(&["--rollup"]).exits(0);
    assert!(
        server.requests()[2]
            .user()
            .ends_with("--- src/main.rs ---\nedited\n")
    );
    assert_eq!(
        project.read("agent-config/codeRollup.txt"),
        "--- src/main.rs ---\nfn main() {}\n"
    );
}

#[test]
fn a_report_is_asked_for_with_the_message_as_its_query() {
    let server = ModelServer::gemini(&["A report."]);
    let project = tracked().with(&server);
    let run = project.run(&["--cc", "-m", "Look at the names."]).exits(0);
    let sent = server.requests()[0].json().to_string();
    assert!(sent.contains("[query]\\nLook at the names."), "{sent}");
    assert!(run.files().iter().any(|file| file.ends_with("query.txt")));
}

#[test]
fn a_dry_run_takes_the_same_inputs() {
    let server = ModelServer::start([]);
    let project = tracked().with(&server);
    let run = project.run(&["--dry-run", "-m", "x"]).exits(0);
    assert!(run.stdout.contains("src/main.rs"), "{}", run.stdout);
    assert!(project.runs().is_empty() && server.requests().is_empty());
}

#[test]
fn credential_in_a_message_is_reported_by_its_flag() {
    let server = ModelServer::start([]);
    let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let project = tracked()
        .with(&server)
        .file("src/main.rs", format!("fn main() {{}}\n// {token}\n"));
    project
        .run(&["-m", &format!("use {token}")])
        .exits(3)
        .says(&[
            "`--message`, line 1: a GitHub token",
            "`--rollup`, line 3 (`src/main.rs`, line 2): a GitHub token",
        ]);
}

#[test]
fn a_blank_message_is_a_usage_error() {
    let server = ModelServer::start([]);
    let project = TestProject::new().with(&server);
    let before = project.tree();
    for arguments in [
        &["-m", ""][..],
        &["-m", " \n"],
        &["-m", "-"],
        &["-m", "x", "--edit"],
        &["-m"],
        &["--allow-stale", "--require-fresh"],
        &["rollup", "-m", "x"],
    ] {
        project.run(arguments).exits(2).says(&["hint: "]);
    }
    project
        .run(&["--max-cost", "-1"])
        .exits(2)
        .says(&["invalid value '-1' for '--max-cost <USD>': write it like `0.50`"]);
    assert_eq!(project.tree(), before);
    assert!(project.runs().is_empty() && server.requests().is_empty());
}

#[test]
fn the_editor_gives_the_query_and_loses_nothing_when_no_run_begins() {
    let server = ModelServer::gemini(&["Nothing."]);
    let writes = "sh -c 'echo Add a flag. >> \"$1\"' sh";
    let project = tracked().with(&server).variable("VISUAL", writes);
    project.run(&["--edit", "--dry-run"]).exits(0);
    assert_eq!(
        project.read("agent-config/edited-query.txt"),
        "Add a flag.\n"
    );
    project.run(&["--edit"]).exits(0);
    let sent = server.requests()[0].user();
    assert!(
        sent.starts_with("[query]\nAdd a flag.\nAdd a flag.\n[codebase]\n"),
        "{sent}"
    );
    assert!(!project.path("agent-config/edited-query.txt").exists());
}

#[test]
fn an_editor_that_fails_or_leaves_nothing_starts_no_run() {
    let server = ModelServer::start([]);
    for (editor, code, said) in [
        ("true", 2, "the prompt is blank"),
        ("false", 3, "the editor `false` failed"),
        ("", 3, "neither `VISUAL` nor `EDITOR` is set"),
    ] {
        let project = TestProject::new().with(&server).variable("EDITOR", editor);
        project.run(&["--edit"]).exits(code).says(&[said, "hint: "]);
        assert!(project.runs().is_empty());
    }
    assert!(server.requests().is_empty());
}

#[test]
fn request_without_a_flag_gets_a_hint_about_the_flag() {
    let server = ModelServer::start([]);
    let project = TestProject::new().with(&server);
    let before = project.tree();
    for (arguments, said) in [
        (
            &["Add a flag"][..],
            "hint: ask for a change by `code-commit -m \"Add a flag\" --rollup`\n",
        ),
        (
            &["--model", "gpt-5", "Add a flag"],
            "`code-commit -m \"Add a flag\" --rollup`\n",
        ),
        (
            &["Add", "log", "flags", "--stream"],
            "`code-commit -m \"Add log flags\" --rollup`;\n  allowed are ",
        ),
        (
            &["Print \"$x\""],
            "`code-commit -m 'Print \"$x\"' --rollup`\n",
        ),
        (
            &["comit"],
            "`code-commit -m \"comit\" --rollup`;\n  allowed are ",
        ),
        (&["logg"], "did you mean `log`?"),
    ] {
        let run = project.run(arguments).exits(2).says(&[said]);
        assert_eq!(run.stderr.matches("hint: ").count(), 1, "{}", run.stderr);
    }
    let other = project.run(&["models", "Add a flag"]).exits(2);
    assert!(!other.stderr.contains("--rollup"), "{}", other.stderr);
    assert_eq!(project.tree(), before);
}

/// A read-only mount keeps root out, too.
#[test]
fn unwritable_directories_are_reported_before_a_paid_call() {
    if !bubblewrap_works() {
        return;
    }
    let server = ModelServer::gemini(&["A report."]);
    for (closed, arguments, code) in [
        ("src", &[][..], 3),
        ("src", &["--dry-run"], 3),
        ("src", &["--cc"], 0),
        ("logs", &[], 3),
        ("agent-config", &["--cc"], 3),
        ("", &[], 3),
    ] {
        let project = TestProject::new().with(&server);
        let project = project.file("a", "x\n").file(
            "agent-config/codeRollup.txt",
            "--- a ---\nx\n--- src/main.rs ---\nfn main() {}\n",
        );
        if !closed.is_empty() {
            fs::create_dir(project.path("logs")).unwrap();
        }
        let closed_path = project.path(closed);
        let inner = project.command(arguments);
        let mut command = Command::new(BUBBLEWRAP[0]);
        command
            .args(&BUBBLEWRAP[1..])
            .arg("--ro-bind")
            .args([&closed_path, &closed_path])
            .arg(inner.get_program())
            .args(arguments)
            .current_dir(project.path(""))
            .env("GOOGLE_GEMINI_BASE_URL", server.url());
        let run = Finished::new(&project, arguments, command.output().unwrap()).exits(code);
        if code == 3 {
            let root = project.path("").to_string_lossy().into_owned();
            let named = if closed.is_empty() {
                root.trim_end_matches('/')
            } else {
                closed
            };
            let told = format!("`{named}` cannot be written to");
            let run = run.says(&[&told, "hint: make it writable"]);
            assert_eq!(run.stderr.matches(&told).count(), 1, "{}", run.stderr);
            if closed.is_empty() {
                assert!(!run.stderr.contains(&root), "{}", run.stderr);
            }
            assert!(project.runs().is_empty());
        }
    }
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn an_agent_that_cannot_log_asks_no_model() {
    if !bubblewrap_works() {
        return;
    }
    let (agent, server) = AgentProject::scripted(&[done()]);
    let logs = agent.project.path("logs");
    fs::create_dir(&logs).unwrap();
    let arguments = ["dev", "-p", "x"];
    let inner = agent.project.command(&arguments);
    let mut command = Command::new(BUBBLEWRAP[0]);
    command
        .args(&BUBBLEWRAP[1..])
        .arg("--ro-bind")
        .args([&logs, &logs]);
    command.arg(inner.get_program()).args(arguments);
    command.current_dir(agent.project.path(""));
    for (name, value) in inner.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let run = Finished::new(&agent.project, &arguments, command.output().unwrap());
    run.exits(3).says(&["`logs` cannot be written to"]);
    assert!(server.requests().is_empty());
}

#[test]
fn the_next_command_mentions_a_run_that_was_killed() {
    let (silence, asked) = Answer::silence();
    let server = ModelServer::start([silence, Answer::json(&gemini("Nothing."))]);
    let project = TestProject::new().with(&server);
    let mut run = project.start(&[]);
    asked.recv().unwrap();
    run.kill().unwrap();
    run.wait().unwrap();
    let killed = project.runs().pop().unwrap();
    let killed = killed.file_name().unwrap().to_str().unwrap().to_owned();
    let said = format!(
        "warning: the last run did not finish (it was killed, or the disk was full): `code-commit log {killed}` shows how far it came"
    );
    for arguments in [&["--dry-run"][..], &["recover"], &[]] {
        project.run(arguments).exits(0).says(&[&said]);
    }
    let run = project.run(&["--dry-run"]).exits(0);
    assert!(!run.stderr.contains("killed"), "{}", run.stderr);
}

/// What a build, or the user, has made of the run's own files meanwhile is what the model has to know.
#[test]
fn a_repair_shows_what_has_become_of_the_files_of_the_run() {
    let replies = [REPLACES, "^^^b\nx\n^^^end\n", "^^^ok\n^^^end\n"];
    let server = ModelServer::gemini(&replies);
    let project = TestProject::new().with(&server).build(
        "test -e ok && exit; test -e b && rm b || echo '// formatted' >> src/main.rs; exit 1",
    );
    project.run(&[]).exits(0);
    let formatted = format!("{}// formatted\n", "fn main() { reply() }\n");
    for request in &server.requests()[1..] {
        let asked = request.user();
        let shown = format!("--- FILE REPLACEMENT src/main.rs ---\n{formatted}");
        assert!(asked.contains(&shown), "{asked}");
    }
    let asked = server.requests()[2].user();
    assert!(asked.contains("--- FILE REMOVED b ---\n"), "{asked}");
}

/// Such a path is not free, as that of a removed file is.
#[test]
fn a_repair_says_that_something_else_is_in_the_place_of_a_file() {
    for make in ["ln -s real.rs src/main.rs", "mkdir src/main.rs"] {
        let build = format!("test -e ok && exit; mv src/main.rs src/real.rs; {make}; exit 1");
        let server = ModelServer::gemini(&[REPLACES, "^^^ok\n^^^end\n"]);
        let project = TestProject::new().with(&server).build(&build);
        project.run(&[]).exits(0);
        let asked = server.requests()[1].user();
        let shown = "--- FILE REPLACEMENT src/main.rs ---\n[No regular file any more: a link";
        assert!(asked.contains(shown), "{asked}");
    }
}

#[test]
fn a_credential_that_a_build_puts_into_a_file_of_the_run_is_not_sent() {
    let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let build = format!("test -e ok && exit; echo {token} >> src/main.rs; exit 1");
    for (flag, is_sent) in [("--quiet", false), ("--allow-secrets", true)] {
        let server = ModelServer::gemini(&[REPLACES, "^^^ok\n^^^end\n"]);
        let project = TestProject::new().with(&server).build(&build);
        let run = project.run(&[flag]).exits(0);
        assert!(
            run.stdout.contains("2 written, 0 removed"),
            "{}",
            run.stdout
        );
        let asked = server.requests()[1].user();
        assert_eq!(asked.contains(token), is_sent, "{asked}");
        assert!(asked.contains("fn main() { reply() }\n"), "{asked}");
    }
}
