//! Settings that come with a project, which grant nothing until its user trusts them.

use serde_json::{Value, json};

use crate::support::anthropic::{Anthropic, Reply, call, nothing, results, say};
use crate::support::chat::{ChatProject, PERMISSIONS};
use crate::support::screen::Screen;

const ALL_ALWAYS: &str = r#"{
  "version": 1,
  "permissions": [
    {"tool": "read_file", "action": "always"},
    {"tool": "write_file", "action": "always"},
    {"tool": "execute_command", "action": "always"}
  ],
  "timestamp": "2026-11-23T12:00:00Z"
}
"#;

fn calls(calls: &[(&str, Value)]) -> Reply {
    let calls = calls.iter().cloned();
    calls.fold(nothing(), |reply, (tool, input)| reply.call(tool, input))
}

fn command(command: &str) -> (&'static str, Value) {
    ("execute_command", json!({ "command": command }))
}

fn opened(chat: &ChatProject) -> Option<Screen> {
    let mut screen = Screen::open(&chat.command(&[]), 100, 30)?;
    screen.shows("Mode");
    Some(screen)
}

/// The file that a command creates as a trace.
const TRACE: &str = "trace.txt";

/// A cloned project whose request runs a script that it contains.
fn clone(script: &[Reply]) -> (ChatProject, Anthropic) {
    let (chat, server) = ChatProject::scripted(script.to_vec());
    let chat = chat.with_file("setup.sh", format!("#!/bin/sh\necho x > {TRACE}\n"));
    let status = |arguments: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(arguments).current_dir(chat.project.path(""));
        assert!(git.status().unwrap().success());
    };
    status(&["init", "-q"]);
    status(&["add", "-f", "setup.sh"]);
    (chat, server)
}

#[test]
fn permissions_granted_by_a_clone_only_ask_and_a_notice_says_so() {
    let (chat, server) = clone(&[
        calls(&[
            command("sh setup.sh"),
            ("write_file", json!({"path": "new.txt", "content": "x\n"})),
            ("read_file", json!({"path": "setup.sh"})),
        ]),
        say("ok"),
    ]);
    let chat = chat.with_file(PERMISSIONS, ALL_ALWAYS);
    let run = chat.ask("go").exits(1);
    let told: Vec<&str> = run
        .stderr
        .lines()
        .filter(|line| line.contains("is not trusted"))
        .collect();
    assert_eq!(told.len(), 1, "{}", run.stderr);
    assert!(told[0].contains("`always` counts as `ask`"), "{}", told[0]);
    let failed: Vec<bool> = results(&server, 1)
        .iter()
        .map(|(_, failed)| *failed)
        .collect();
    assert_eq!(failed, [true, true, false]);
    assert!(!chat.project.path(TRACE).exists() && !chat.project.path("new.txt").exists());
    assert!(!chat.home("trusted.json").exists());
}

#[test]
fn trusted_permissions_apply_until_a_byte_changes() {
    let asks = || [calls(&[command("sh setup.sh")]), say("ok")];
    let (chat, server) = clone(&asks());
    let chat = chat.with_file(PERMISSIONS, ALL_ALWAYS);
    let shown = ["`.agent/permissions.json`", "every command", "`write_file`"];
    chat.typed(&["trust"], "n\n").exits(0).says(&shown);
    assert!(!chat.home("trusted.json").exists());
    chat.typed(&["trust"], "y\n").exits(0).says(&shown);
    chat.ask("go").exits(0);
    assert!(chat.project.path(TRACE).exists());
    let again = chat.run(&["trust", "--yes"]).exits(0);
    assert!(
        again.stdout.contains("nothing in this folder"),
        "{}",
        again.stdout
    );

    std::fs::remove_file(chat.project.path(TRACE)).unwrap();
    let changed = ALL_ALWAYS.replace("12:00", "12:01");
    std::fs::write(chat.project.path(PERMISSIONS), changed).unwrap();
    server.then(asks());
    chat.ask("go").exits(1);
    assert!(!chat.project.path(TRACE).exists());
    chat.run(&["trust", "--yes"]).exits(0);
    server.then(asks());
    chat.ask("go").exits(0);
    assert!(chat.project.path(TRACE).exists());
}

#[test]
fn prohibitions_of_an_untrusted_clone_apply() {
    let never = r#"{"version": 1, "permissions": [{"tool": "read_file", "action": "never"}],
        "commands": [{"prefix": "touch", "action": "never"}]}"#;
    let (chat, server) = ChatProject::scripted([
        calls(&[
            ("read_file", json!({"path": "src/main.rs"})),
            command("touch x"),
            command("ls"),
        ]),
        say("ok"),
    ]);
    let chat = chat.with_file(PERMISSIONS, never);
    let run = chat.let_work("go").exits(0);
    assert!(!run.stderr.contains("not trusted"), "{}", run.stderr);
    let failed: Vec<bool> = results(&server, 1)
        .iter()
        .map(|(_, failed)| *failed)
        .collect();
    assert_eq!(failed, [true, true, false]);
}

#[test]
fn a_command_of_the_projects_runs_unasked_only_where_its_own_bytes_are_trusted() {
    const RUN: &str = ".agent/commands/run.md";
    for (trusted, code) in [(&[PERMISSIONS][..], 1), (&[PERMISSIONS, RUN], 0)] {
        let (chat, _server) = ChatProject::scripted([say("ok")]);
        let chat = chat
            .with_file(PERMISSIONS, ALL_ALWAYS)
            .with_file(RUN, format!("It says !`touch {TRACE}`"))
            .trusting(trusted);
        let run = chat.ask("/run").exits(code);
        assert_eq!(
            run.stderr.contains("chat trust"),
            code == 1,
            "{}",
            run.stderr
        );
        assert_eq!(chat.project.path(TRACE).exists(), code == 0);
        // Changing one's own file needs no confirmation.
        let own = chat.home("commands/mine.md");
        std::fs::create_dir_all(own.parent().unwrap()).unwrap();
        std::fs::write(own, "!`ls`").unwrap();
        chat.run(&["trust", "--yes"]).exits(0);
        let trusted = std::fs::read_to_string(chat.home("trusted.json")).unwrap();
        assert!(
            trusted.contains(RUN) && !trusted.contains("mine.md"),
            "{trusted}"
        );
    }
}

#[test]
fn only_commands_that_would_run_unasked_are_listed() {
    let (chat, _server) = ChatProject::scripted([]);
    let chat = chat
        .with_file(PERMISSIONS, ALL_ALWAYS)
        .with_file(".agent/commands/run.md", "!`echo $ARGUMENTS` !`touch x`");
    let run = chat.typed(&["trust"], "n\n").exits(0);
    let said = run.stdout + &run.stderr;
    assert!(
        said.contains("  touch x\n") && !said.contains("echo"),
        "{said}"
    );
}

#[test]
fn a_mistake_in_what_is_trusted_is_reported_with_its_position() {
    let (chat, _server) = ChatProject::scripted([]);
    let chat = chat.with_setting("trusted.json", r#"{"version": 1, "folder": {}}"#);
    chat.ask("go")
        .exits(3)
        .says(&["trusted.json", "line 1, column", "unknown field"]);
    chat.run(&["trust", "--yes"])
        .exits(3)
        .says(&["trusted.json"]);
}

#[test]
fn at_the_screen_one_question_shows_what_would_be_allowed() {
    for (key, is_trusted) in [("y", true), ("n", false)] {
        let (chat, _server) =
            ChatProject::scripted([calls(&[command("sh setup.sh")]), say("Done.")]);
        let chat = chat.with_file(PERMISSIONS, ALL_ALWAYS);
        let Some(mut screen) = opened(&chat) else {
            return;
        };
        screen
            .shows("Trust this folder?")
            .shows("would allow without asking")
            .shows("every command")
            .rests()
            .types(key);
        if is_trusted {
            screen.hides("Trust this folder?");
        } else {
            screen.shows("is asked about");
        }
        screen.types("go\r").shows("setup.sh");
        assert_eq!(chat.home("trusted.json").exists(), is_trusted);
        // The script is not tracked by git, and needs confirmation all the same.
        screen
            .shows("because it runs a file")
            .rests()
            .types("n")
            .shows("Done.");
    }
}

#[test]
fn permanent_yes_asks_for_trust_in_a_project_file_first() {
    const NARROW: &str =
        r#"{"version": 1, "permissions": [{"tool": "read_file", "action": "always"}]}"#;
    for (key, is_trusted) in [("y", true), ("n", false)] {
        let (chat, _server) = ChatProject::scripted([
            call("execute_command", json!({"command": "mkdir one"})),
            call("execute_command", json!({"command": "mkdir two"})),
            call("execute_command", json!({"command": "touch three"})),
            say("Done."),
        ]);
        let chat = chat.with_file(PERMISSIONS, NARROW);
        let Some(mut screen) = opened(&chat) else {
            return;
        };
        screen
            .types("go\r")
            .shows("`a` allows for good: commands that begin with `mkdir`")
            .rests()
            .types("a");
        screen
            .shows("Trust this folder?")
            .shows("commands that begin with `mkdir`")
            .rests()
            .types(key);
        // The answer applies in both cases, and the question is asked once.
        screen
            .shows("touch three")
            .rests()
            .types("a")
            .shows("Done.");
        assert!(chat.project.path("two").exists() && chat.project.path("three").exists());
        let file = chat.project.read(PERMISSIONS);
        assert_eq!(file == NARROW, !is_trusted, "{file}");
        assert_eq!(file.contains(r#""prefix": "mkdir""#), is_trusted);
        assert_eq!(chat.home("trusted.json").exists(), is_trusted);
        if is_trusted {
            // The program trusts files that it has written itself.
            let run = chat.run(&["trust"]).exits(0);
            assert!(
                run.stdout.contains("nothing in this folder"),
                "{}",
                run.stdout
            );
        }
    }
}

#[test]
fn permanent_yes_without_a_file_needs_no_trust() {
    let (chat, _server) = ChatProject::scripted([
        call("execute_command", json!({"command": "mkdir one"})),
        say("Done."),
    ]);
    let Some(mut screen) = opened(&chat) else {
        return;
    };
    screen
        .types("go\r")
        .shows("mkdir one")
        .rests()
        .types("a")
        .shows("Done.");
    assert!(
        chat.project
            .read(PERMISSIONS)
            .contains(r#""prefix": "mkdir""#)
    );
    let run = chat.run(&["trust"]).exits(0);
    assert!(
        run.stdout.contains("nothing in this folder"),
        "{}",
        run.stdout
    );
}

#[test]
fn a_command_that_the_program_writes_with_the_users_yes_is_trusted() {
    let (chat, _server) = ChatProject::scripted([say("Look: !`ls`")]);
    let Some(mut screen) = opened(&chat) else {
        return;
    };
    screen
        .types("/command look Looks around\r")
        .shows(".agent/commands/look.md")
        .rests()
        .types("y")
        .shows("it was written");
    let trusted = std::fs::read_to_string(chat.home("trusted.json")).unwrap();
    assert!(trusted.contains(".agent/commands/look.md"), "{trusted}");
}
