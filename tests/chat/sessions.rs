//! Resumption of sessions: with their thoughts, after a broken stream, after a kill.

use std::fs;

use serde_json::json;

use crate::support::agent::Endless;
use crate::support::anthropic::{
    Anthropic, Gate, Reply, call, last_said, nothing, results, say, silence, thinking,
};
use crate::support::chat::ChatProject;
use crate::support::screen::Screen;
use crate::support::within_a_minute;

/// A reply with everything that must be sent back.
fn rich() -> Reply {
    thinking("Let me see: 日本 \"quoted\" \\ and\nlines.")
        .sealed("c2VhbGVkIHRob3VnaHRz")
        .say("I look.")
        .call("read_file", json!({"path": "src/main.rs", "limit": 1}))
        .call("list_files", json!({}))
}

#[test]
fn a_session_continues_with_all_that_was_said_and_thought() {
    let (chat, server) = ChatProject::scripted([
        rich(),
        thinking("Now I know.").say("It is a program."),
        say("Yes."),
    ]);
    chat.ask("What is it?").exits(0);
    chat.run(&["--resume", "-p", "Sure?"]).exits(0);
    let requests = server.messages();
    let last = requests[2]["messages"].as_array().unwrap();
    assert_eq!(last.len(), 5);
    assert_eq!(
        last[1]["content"][0]["thinking"],
        "Let me see: 日本 \"quoted\" \\ and\nlines."
    );
    assert_eq!(last[3]["content"][0]["type"], "thinking");
    // Resuming by ID from another directory does the same.
    let id = chat.sessions()[0]
        .file_stem()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    server.then([say("Third.")]);
    chat.run(&["--session", &id, "-p", "Third?"]).exits(0);
    assert_eq!(
        server.messages()[3]["messages"].as_array().unwrap().len(),
        7
    );
    assert_eq!(chat.sessions().len(), 1);
}

#[test]
fn another_model_and_another_account_get_no_thoughts_that_are_not_theirs() {
    let other = "sk-ant-api03-Other_0123456789-abcdefghij";
    let (chat, server) = ChatProject::scripted([rich(), say("a"), say("b"), say("c"), say("d")]);
    server.takes(&[crate::support::anthropic::KEY, other]);
    chat.ask("one").exits(0);
    chat.run(&["--resume", "--model", "claude-opus-5-5", "-p", "two"])
        .exits(0);
    let sent = server.messages()[2]["messages"].to_string();
    assert!(
        !sent.contains("thinking") && sent.contains("I look."),
        "{sent}"
    );
    chat.run(&["--resume", "-p", "three"]).exits(0);
    let chat = chat.with_key(other);
    chat.run(&["--resume", "-p", "four"]).exits(0);
    server.assert_clean();
}

#[test]
fn a_stream_that_is_cut_anywhere_is_tried_again_and_breaks_no_session() {
    let length = rich().length();
    let places: Vec<usize> = (0..12).map(|nth| nth * length / 12 + nth).collect();
    let chats = places.iter().map(|place| {
        let (chat, server) =
            ChatProject::scripted([rich().cut_after(*place), rich(), say("done"), say("again")]);
        let child = chat.spawn(&["-p", "look"]);
        (place, chat, server, child)
    });
    // All chats run at once: each waits half a second before it retries.
    let chats: Vec<_> = chats.collect();
    for (place, chat, server, child) in chats {
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{place}: {stderr}");
        assert_eq!(output.stdout, b"done\n", "{place}");
        chat.run(&["--resume", "-p", "and?"]).exits(0);
        assert_eq!(server.left(), 0);
    }
}

#[test]
fn streams_byte_by_byte_are_read_as_whole_ones() {
    let (chat, server) =
        ChatProject::scripted([rich().byte_by_byte(), say("wörld 日本").byte_by_byte()]);
    assert_eq!(chat.ask("look").exits(0).stdout, "wörld 日本\n");
    assert_eq!(results(&server, 1).len(), 2);
}

/// Kills the chat once `is_there` holds; the session can be resumed, and says what happened to the call.
fn killed(chat: &ChatProject, arguments: &[&str], is_there: impl FnOnce()) {
    let mut child = chat.spawn(arguments);
    is_there();
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn call_interrupted_by_a_kill_is_reported_and_not_repeated() {
    let endless = Endless::new();
    let (chat, server) = ChatProject::scripted([
        nothing()
            .call("write_file", json!({"path": "first.txt", "content": "1\n"}))
            .call("execute_command", json!({"command": endless.command()}))
            .call("write_file", json!({"path": "third.txt", "content": "3\n"})),
        say("I see."),
    ]);
    killed(&chat, &["--auto-pilot", "-p", "go"], || {
        let path = chat.project.path("started");
        assert!(within_a_minute(|| path.exists()));
    });
    assert!(endless.ends());
    fs::remove_file(chat.project.path("started")).unwrap();
    chat.run(&["--auto-pilot", "--resume", "-p", "go on"])
        .exits(0);
    let results = results(&server, 1);
    assert_eq!(results.len(), 3);
    assert!(!results[0].1);
    for (text, failed) in &results[1..] {
        assert!(
            *failed && (text.contains("interrupt") || text.contains("not carried out")),
            "{text}"
        );
    }
    assert!(!chat.project.path("started").exists() && !chat.project.path("third.txt").exists());
    assert!(last_said(&server, 1).contains("go on"));
    // Changes by an interrupted request can be undone like any others.
    let Some(mut screen) = Screen::open(&chat.command(&["--resume"]), 100, 30) else {
        return;
    };
    screen.shows("Mode").types("/undo\r").shows("1 removed");
    assert!(!chat.project.path("first.txt").exists());
    // They cost what any others do.
    let total = chat.project.run(&["log", "--total"]).exits(0).stdout;
    let (_, dollars) = total.trim_end().rsplit_once(", ").unwrap();
    assert_ne!(dollars, "$0");
    screen.types("/cost\r").shows(&format!(", {dollars}"));
}

#[test]
fn file_in_place_of_a_directory_is_reported_before_a_session_is_created() {
    for name in ["logs", "agent-config"] {
        let (chat, _server) = ChatProject::scripted([]);
        let _ = fs::remove_dir_all(chat.project.path(name));
        let chat = chat.with_file(name, "");
        let run = chat.run(&["-p", "go"]).exits(3);
        run.says(&[&format!("`{name}` is not a directory")]);
        assert!(chat.sessions().is_empty());
    }
}

#[test]
fn a_kill_while_the_model_speaks_loses_nothing_that_was_there_before() {
    for held in [
        |reply: Reply| -> (Reply, Gate) { reply.hold_at_the_end() },
        |_: Reply| silence(),
    ] {
        let (reply, gate) = held(rich());
        let (chat, server) = ChatProject::scripted([say("First."), reply, say("Third.")]);
        chat.ask("one").exits(0);
        killed(&chat, &["--resume", "-p", "two"], || gate.reached());
        chat.run(&["--resume", "-p", "three"]).exits(0);
        let last = last_said(&server, 2);
        assert!(last.contains("two") && last.contains("three"), "{last}");
    }
}

#[test]
fn a_signal_ends_a_request_and_the_session_continues() {
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let (reply, gate) = silence();
        let (chat, _server) = ChatProject::scripted([reply, say("Here.")]);
        let child = chat.spawn(&["-p", "one"]);
        gate.reached();
        let kill = std::process::Command::new("kill")
            .args(["-s", signal, &child.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(code),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        chat.run(&["--resume", "-p", "two"]).exits(0);
    }
}

#[test]
fn sessions_are_private_listed_and_held_by_one_process() {
    use std::os::unix::fs::PermissionsExt as _;
    let (reply, gate) = silence();
    let (chat, _server) = ChatProject::scripted([say("one"), reply]);
    chat.ask("THE FIRST REQUEST").exits(0);
    let path = chat.sessions().remove(0);
    let id = path.file_stem().unwrap().to_str().unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let home = chat.home("").metadata().unwrap();
    assert_eq!(home.permissions().mode() & 0o777, 0o700);
    let listed = chat.run(&["sessions", "list"]).exits(0).stdout;
    assert!(
        listed.contains(id) && listed.contains("THE FIRST REQUEST"),
        "{listed}"
    );
    let listed = chat.run(&["sessions", "list", "--json"]).exits(0).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    assert!(listed.to_string().contains(id));
    let mut child = chat.spawn(&["--resume", "-p", "two"]);
    gate.reached();
    chat.run(&["--session", id, "-p", "three"])
        .exits(3)
        .says(&["session"]);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn damaged_session_file_is_reported_and_left_unchanged() {
    let (chat, _server) = ChatProject::scripted([say("one")]);
    chat.ask("one").exits(0);
    let path = chat.sessions().remove(0);
    let id = path.file_stem().unwrap().to_str().unwrap().to_owned();
    fs::write(&path, "{\"broken\": ").unwrap();
    chat.run(&["--session", &id, "-p", "two"])
        .exits(3)
        .says(&[&id]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"broken\": ");
}

#[test]
fn an_old_conversation_is_cut_to_fit_and_its_pairs_stay_whole() {
    // A window of a few thousand tokens, from an entry of the user's own.
    let models = json!({"models": {"claude-sonnet-5-5": {"provider": "anthropic", "contextWindow": 12000, "maxOutputTokens": 1000, "thinking": "adaptive"}},
        "selectionRules": {"default": "claude-sonnet-5-5"}});
    let read = || call("read_file", json!({"path": "long.txt"}));
    let script = (0..30).map(|_| read()).chain([say("done")]);
    let server = Anthropic::start(script);
    server.lets_the_past_change();
    let chat = ChatProject::new(&server)
        .with_file("long.txt", "All work and no play. ".repeat(150))
        .with_setting("models.json", &models.to_string());
    chat.ask("THE FIRST REQUEST").exits(0);
    let requests = server.messages();
    let cut = requests.iter().find(|request| {
        request["messages"]
            .to_string()
            .contains("Older messages removed to save space")
    });
    let cut = cut.unwrap_or_else(|| panic!("nothing was cut in {} requests", requests.len()));
    let messages = cut["messages"].as_array().unwrap();
    assert!(messages[0].to_string().contains("THE FIRST REQUEST"));
    assert!(messages.len() <= 24, "{}", messages.len());
    // The file keeps everything.
    let kept = chat.session().to_string();
    assert!(
        kept.matches("All work and no play").count() >= 30 * 100,
        "{}",
        kept.len()
    );
}

#[test]
fn leftovers_of_a_killed_process_are_removed_but_no_session() {
    let (chat, _server) = ChatProject::scripted([say("ok"), say("again")]);
    chat.ask("hi").exits(0);
    let session = chat.sessions().pop().unwrap();
    let left = [
        chat.home("sessions/.staged-x"),
        session.with_file_name("11111111-2222-4333-8444-555555555555.lock"),
    ];
    for path in left.iter().chain([&session]) {
        let file = std::fs::File::options()
            .create(true)
            .append(true)
            .open(path);
        let long_ago = std::time::SystemTime::UNIX_EPOCH;
        file.unwrap().set_modified(long_ago).unwrap();
    }
    chat.ask("hi again").exits(0);
    assert!(left.iter().all(|path| !path.exists()), "{left:?}");
    assert!(session.exists());
}
