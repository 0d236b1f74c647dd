//! The model's permissions: by the file, by the mode, and unconditional refusals.

use serde_json::{Value, json};

use crate::support::anthropic::{Anthropic, Reply, nothing, results, say};
use crate::support::chat::{ChatProject, PERMISSIONS};

const ALL_ALWAYS: &str = r#"{
  "version": 1,
  "permissions": [
    {"tool": "read_file", "action": "always"},
    {"tool": "write_file", "action": "always"},
    {"tool": "edit_file", "action": "always"},
    {"tool": "execute_command", "action": "always"},
    {"tool": "delete_file", "action": "always"}
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

#[test]
fn headless_regular_refuses_calls_that_need_consent_and_lists_them() {
    let (chat, server) = ChatProject::scripted([
        calls(&[
            ("write_file", json!({"path": "new.txt", "content": "x\n"})),
            ("read_file", json!({"path": "src/main.rs"})),
            command("ls"),
        ]),
        say("I could not."),
    ]);
    let run = chat
        .ask("go")
        .exits(1)
        .says(&["write_file", "new.txt", "execute_command", "ls"]);
    assert_eq!(run.stdout, "I could not.\n");
    assert_eq!(
        run.result()["exit"],
        json!({"code": 1, "name": "not-permitted"})
    );
    assert!(!chat.project.path("new.txt").exists());
    let failed: Vec<bool> = results(&server, 1)
        .iter()
        .map(|(_, failed)| *failed)
        .collect();
    assert_eq!(failed, [true, false, true]);
    assert!(!chat.project.path(".agent/permissions.json").exists());
}

#[test]
fn permanent_permissions_do_not_cover_destructive_calls() {
    for (tool, input, is_done) in [
        (
            "write_file",
            json!({"path": "new.txt", "content": "x\n"}),
            true,
        ),
        (
            "edit_file",
            json!({"path": "old.txt", "old_string": "old", "new_string": "new"}),
            true,
        ),
        (
            "write_file",
            json!({"path": "old.txt", "content": "x\n"}),
            false,
        ),
        ("delete_file", json!({"path": "old.txt"}), false),
        (
            "execute_command",
            json!({"command": "ls -la | head -3"}),
            true,
        ),
        ("execute_command", json!({"command": "rm old.txt"}), false),
        (
            "execute_command",
            json!({"command": "git commit -m x"}),
            false,
        ),
        (
            "execute_command",
            json!({"command": "echo x > old.txt"}),
            false,
        ),
        (
            "execute_command",
            json!({"command": "sh -c 'rm old.txt'"}),
            false,
        ),
        (
            "execute_command",
            json!({"command": "echo $(rm old.txt)"}),
            false,
        ),
        (
            "execute_command",
            json!({"command": "ls | xargs rm"}),
            false,
        ),
        (
            "execute_command",
            json!({"command": "find . -name old.txt -delete"}),
            false,
        ),
        ("execute_command", json!({"command": "r''m old.txt"}), false),
        (
            "execute_command",
            json!({"command": "/bin/rm old.txt"}),
            false,
        ),
        (
            "execute_command",
            json!({"command": "true; rm old.txt"}),
            false,
        ),
        (
            "execute_command",
            json!({"command": "env rm old.txt"}),
            false,
        ),
        (
            "execute_command",
            json!({"command": "python3 -c 'import os'"}),
            false,
        ),
        ("execute_command", json!({"command": "ls 'unclosed"}), false),
        // Anything that the file does not list requires confirmation.
        (
            "replace_in_files",
            json!({"pattern": "old", "replacement": "new"}),
            false,
        ),
    ] {
        let (chat, server) = ChatProject::scripted([calls(&[(tool, input.clone())]), say("ok")]);
        let chat = chat
            .with_file("old.txt", "old\n")
            .with_permissions(ALL_ALWAYS);
        let run = chat.ask("go").exits(i32::from(!is_done));
        let failed = results(&server, 1)[0].1;
        assert_eq!(!failed, is_done, "{tool} {input}: {}", run.stderr);
        if !is_done {
            assert_eq!(chat.project.read("old.txt"), "old\n");
        }
    }
}

#[test]
fn never_holds_in_auto_pilot_too() {
    let never = r#"{"version": 1, "permissions": [{"tool": "write_file", "action": "never"}, {"tool": "execute_command", "action": "never"}]}"#;
    let (chat, server) = ChatProject::scripted([
        calls(&[
            ("write_file", json!({"path": "new.txt", "content": "x\n"})),
            command("touch other.txt"),
            ("delete_file", json!({"path": "old.txt"})),
        ]),
        say("ok"),
    ]);
    let chat = chat
        .with_file("old.txt", "old\n")
        .with_file(".agent/permissions.json", never);
    chat.let_work("go");
    let failed: Vec<bool> = results(&server, 1)
        .iter()
        .map(|(_, failed)| *failed)
        .collect();
    assert_eq!(failed, [true, true, false]);
    assert!(!chat.project.path("new.txt").exists() && !chat.project.path("other.txt").exists());
    assert!(!chat.project.path("old.txt").exists());
}

#[test]
fn planning_executes_nothing_and_keeps_the_tools_described() {
    let (chat, server) = ChatProject::scripted([
        calls(&[
            ("read_file", json!({"path": "src/main.rs"})),
            ("write_file", json!({"path": "new.txt", "content": "x\n"})),
            command("touch other.txt"),
            ("update_todos", json!({"todos": []})),
        ]),
        say("- [ ] First\n- [ ] Second\n"),
        say("Regular again."),
    ]);
    let run = chat.run(&["--mode", "planning", "-p", "plan it"]);
    assert!(run.code == 0 || run.code == 1, "{}", run.stderr);
    assert_eq!(run.stdout, "- [ ] First\n- [ ] Second\n");
    for request in server.messages() {
        assert_eq!(request["tool_choice"], json!({"type": "none"}));
        assert!(request["tools"].to_string().contains("write_file"));
    }
    assert!(results(&server, 1).iter().all(|(_, failed)| *failed));
    assert!(!chat.project.path("new.txt").exists() && !chat.project.path("other.txt").exists());
    // The mode is not part of the cached prefix, so that the cache stays valid.
    chat.run(&["--resume", "-p", "go on"]).exits(0);
    let requests = server.messages();
    assert_ne!(requests[2]["tool_choice"], json!({"type": "none"}));
    assert_eq!(requests[0]["tools"], requests[2]["tools"]);
}

#[test]
fn own_files_are_closed_in_every_mode() {
    let server = Anthropic::start([
        calls(&[
            (
                "write_file",
                json!({"path": ".agent/permissions.json", "content": ALL_ALWAYS}),
            ),
            (
                "write_file",
                json!({"path": "./.agent//permissions.json", "content": ALL_ALWAYS}),
            ),
            (
                "write_file",
                json!({"path": ".agent/commands/evil.md", "content": "x"}),
            ),
            (
                "write_file",
                json!({"path": ".git/hooks/pre-commit", "content": "x"}),
            ),
            (
                "write_file",
                json!({"path": "../outside.txt", "content": "x"}),
            ),
            (
                "write_file",
                json!({"path": "link/outside.txt", "content": "x"}),
            ),
            ("delete_file", json!({"path": ".agent/permissions.json"})),
            (
                "replace_in_files",
                json!({"pattern": "ask", "replacement": "always", "path": ".agent"}),
            ),
        ]),
        say("ok"),
    ]);
    let chat = ChatProject::new(&server);
    let ask = ALL_ALWAYS.replace("always", "ask");
    let chat = chat.with_file(".agent/permissions.json", &ask);
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), chat.project.path("link")).unwrap();
    chat.let_work("go");
    let results = results(&server, 1);
    for (nth, (text, failed)) in results[..7].iter().enumerate() {
        assert!(failed, "{nth}: {text}");
    }
    assert_eq!(chat.project.read(".agent/permissions.json"), ask);
    assert!(!chat.project.path(".agent/commands/evil.md").exists());
    assert!(!chat.project.path("../outside.txt").exists());
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn the_agents_home_is_closed_wherever_it_is() {
    let (chat, server) = ChatProject::scripted([]);
    let home = chat.project.path("home");
    let chat = chat
        .with_file("home/auth.json", r#"{"version": 1, "accounts": []}"#)
        .with_variable("AGENT_HOME", home.to_str().unwrap());
    server.then([
        calls(&[
            ("read_file", json!({"path": "home/auth.json"})),
            ("read_file", json!({"path": home.join("auth.json")})),
            (
                "write_file",
                json!({"path": "home/settings.json", "content": "{}"}),
            ),
            ("delete_file", json!({"path": "home/auth.json"})),
        ]),
        say("ok"),
    ]);
    chat.run(&["--auto-pilot", "--allow-outside", "-p", "go"]);
    let results = results(&server, 1);
    assert!(results.iter().all(|(_, failed)| *failed), "{results:#?}");
    assert!(home.join("auth.json").exists() && !home.join("settings.json").exists());
}

#[test]
fn a_command_that_changes_the_permissions_changes_nothing() {
    let (chat, server) = ChatProject::scripted([
        calls(&[command(
            "sed -i 's/never/always/' .agent/permissions.json || true",
        )]),
        calls(&[("write_file", json!({"path": "new.txt", "content": "x\n"}))]),
        say("ok"),
    ]);
    let never = r#"{"version": 1, "permissions": [{"tool": "write_file", "action": "never"}]}"#;
    let chat = chat.with_file(".agent/permissions.json", never);
    chat.let_work("go");
    assert!(results(&server, 2)[0].1);
    assert!(!chat.project.path("new.txt").exists());
}

#[test]
fn commands_in_a_sandbox_reach_neither_the_home_nor_what_is_allowed() {
    let script = "ls -A \"$AGENT_HOME\"; echo x >> .agent/commands/ok.md; echo x >> .agent/permissions.json; true";
    let (chat, server) = ChatProject::scripted([calls(&[command(script)]), say("ok")]);
    let always = r#"{"version": 1, "permissions": []}"#;
    let chat = chat
        .with_file(".agent/commands/ok.md", "Do it.\n")
        .with_file(".agent/permissions.json", always)
        .with_setting("settings.json", "{}");
    let run = chat.let_work("go");
    if run.stderr.contains("no sandbox") {
        return;
    }
    let (text, _) = &results(&server, 1)[0];
    assert!(!text.contains("settings.json"), "{text}");
    assert_eq!(chat.project.read(".agent/commands/ok.md"), "Do it.\n");
    assert_eq!(chat.project.read(".agent/permissions.json"), always);
}

#[test]
fn commands_in_ones_own_commands_are_decided_as_the_agents_are() {
    let ask = ALL_ALWAYS.replace("always", "ask");
    let never = ALL_ALWAYS.replace("always", "never");
    for (mode, permissions, command, told) in [
        ("regular", ALL_ALWAYS, "echo x", None),
        ("auto-pilot", &*ask, "rm old.txt", None),
        (
            "regular",
            ALL_ALWAYS,
            "rm old.txt",
            Some("execute_command `rm old.txt` (deletes)"),
        ),
        ("regular", &ask, "echo x", Some("nobody was there to allow")),
        (
            "auto-pilot",
            &never,
            "echo x",
            Some("`echo x` is forbidden"),
        ),
        (
            "planning",
            ALL_ALWAYS,
            "echo x",
            Some("`echo x` is forbidden"),
        ),
    ] {
        let (chat, server) = ChatProject::scripted([say("ok")]);
        let chat = chat
            .with_file("old.txt", "old\n")
            .with_file(".agent/commands/run.md", format!("It says !`{command}`"))
            .with_file(PERMISSIONS, permissions)
            .trusting(&[PERMISSIONS, ".agent/commands/run.md"]);
        let run = chat.run(&["--mode", mode, "-p", "/run"]);
        let run = run.exits(i32::from(told.is_some()));
        run.says(&[told.unwrap_or_default()]);
        assert_eq!(server.messages().is_empty(), told.is_some());
    }
}

#[test]
fn a_command_in_a_sandbox_cannot_make_what_is_allowed() {
    let makes = format!("mkdir -p .agent; echo '{ALL_ALWAYS}' > .agent/permissions.json; true");
    let moves = format!("mv .agent .old; {makes}");
    for (sandbox, script) in [("auto", &makes), ("auto", &moves), ("strict", &moves)] {
        let (chat, _server) = ChatProject::scripted([calls(&[command(script)]), say("ok")]);
        let run = chat.run(&["--sandbox", sandbox, "--auto-pilot", "-p", "go"]);
        if run.stderr.contains("no sandbox") || run.code == 3 {
            return;
        }
        let left = chat.project.path(".agent").read_dir().unwrap();
        assert_eq!(left.count(), 0, "{sandbox}: {script}");
        assert!(!chat.project.path(".old").exists());
    }
}

#[test]
fn rules_by_prefix_allow_what_they_name_and_nothing_that_is_asked_about_always() {
    let rules = r#"{"version": 1, "permissions": [{"tool": "execute_command", "action": "ask"}],
        "commands": [{"prefix": "@looking", "action": "always"}, {"prefix": "mkdir", "action": "always"},
        {"prefix": "mkdir no", "action": "never"}, {"prefix": "rm", "action": "always"}]}"#;
    for (asked, is_done) in [
        ("ls -la | head -3", true),
        ("mkdir a && ls", true),
        ("timeout 5 mkdir a", true),
        ("mkdir no", false),
        ("mkdir a; touch b", false),
        ("rm old.txt", false),
        ("mkdir $(ls)", false),
        ("ls > out", false),
        ("uniq o*", false),
    ] {
        let (chat, server) = ChatProject::scripted([calls(&[command(asked)]), say("ok")]);
        let chat = chat.with_file("old.txt", "old\n").with_permissions(rules);
        chat.ask("go");
        assert_eq!(!results(&server, 1)[0].1, is_done, "{asked}");
        assert!(chat.project.path("old.txt").exists());
    }
}
