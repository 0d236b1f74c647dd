//! `chat --plain`: a line-based conversation, in a pipe and in a terminal that cannot show a screen.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::anthropic::{KEY, Reply, call, error, last_said, results, said, say, silence};
use crate::support::chat::{ChatProject, PERMISSIONS};
use crate::support::terminal::Terminal;

const PLAIN: &[&str] = &["--plain"];

fn writes(path: &str) -> Reply {
    call("write_file", json!({"path": path, "content": "one\n"}))
}

#[test]
fn requests_come_from_a_pipe_and_its_end_ends_the_talk() {
    let (chat, server) = ChatProject::scripted([say("Hello **there**."), say("Again.")]);
    let chat = chat.with_file("notes.txt", "of the notes");
    let run = chat.typed(PLAIN, "hi\n\nsee @notes.txt\n").exits(0);
    let id = chat.session()["id"].as_str().unwrap().to_owned();
    assert_eq!(
        run.stdout,
        format!("session {id}: `--resume` continues it\n")
    );
    let run = run.says(&["Hello **there**.", "Again.", "log: logs/"]);
    assert!(!run.stderr.contains("\u{1b}["), "{}", run.stderr);
    assert!(last_said(&server, 1).contains("of the notes"));
    // The next run shows the end of the conversation, and starts with the request given.
    server.then([say("More.")]);
    let run = chat.typed(&["--plain", "--resume", "go on"], "").exits(0);
    run.says(&["> see @notes.txt", "Again.", "More."]);
    assert!(said(&server.messages()[2]["messages"][0]).contains("hi"));
    let run = chat.typed(PLAIN, "").exits(0);
    assert_eq!(run.stdout, "nothing was asked for\n");
    server.assert_clean();
}

#[test]
fn the_exit_code_is_that_of_the_last_request() {
    let refused = || error(400, "invalid_request_error", "not now");
    for (replies, code) in [([say("One."), refused()], 4), ([refused(), say("Two.")], 0)] {
        let (chat, _server) = ChatProject::scripted(replies);
        let run = chat.typed(PLAIN, "one\ntwo\n").exits(code);
        let told = "the last request was not completed";
        assert_eq!(run.stderr.contains(told), code != 0, "{}", run.stderr);
        assert!(run.stdout.contains("`--resume` continues it"));
    }
}

#[test]
fn command_after_the_last_request_does_not_change_the_exit_code() {
    let key = "sk-ant-api03-of-another-account";
    for command in ["/clear", &format!("/login\n{key}"), "/cost"] {
        let refused = error(400, "invalid_request_error", "not now");
        let (chat, server) = ChatProject::scripted([refused]);
        server.takes(&[KEY, key]);
        let run = chat.typed(PLAIN, &format!("one\n{command}\n")).exits(4);
        run.says(&["the last request was not completed"]);
    }
    // A command of the user's own is a request.
    let refused = error(400, "invalid_request_error", "not now");
    let (chat, _server) = ChatProject::scripted([refused, say("Hello.")]);
    let chat = chat.with_setting("commands/greet.md", "Say hello.");
    let run = chat.typed(PLAIN, "one\n/greet\n").exits(0);
    run.says(&["Hello."]);
    // Unless it is not run.
    let refused = error(400, "invalid_request_error", "not now");
    let (chat, _server) = ChatProject::scripted([refused]);
    let chat = chat.with_setting("commands/broken.md", "Read @agent-config");
    let run = chat.typed(PLAIN, "one\n/broken\n").exits(4);
    run.says(&["`/broken` was not run: `agent-config`"]);
}

#[test]
fn questions_are_answered_by_a_line() {
    let (chat, server) = ChatProject::scripted([
        writes("a.txt"),
        writes("b.txt"),
        writes("c.txt"),
        call(
            "execute_command",
            json!({"command": format!("echo {}; rm -f a.txt", "x".repeat(300))}),
        ),
        say("Enough."),
    ]);
    let typed = "go\nsure\nno: call it d.txt\nalways\nyes\n";
    let run = chat.typed(PLAIN, typed).exits(0);
    run.says(&[
        "+++ b/a.txt\n",
        "The agent wants to change `a.txt`. May it?\nyes/always/no/never, or no: WHAT INSTEAD> \n",
        // The question contains only the beginning of the text.
        &"x".repeat(300),
        "(deletes). May it?\nyes/no/never, or no: WHAT INSTEAD> \n",
        "Enough.",
    ]);
    let told: Vec<_> = (1..4)
        .map(|nth| results(&server, nth).pop().unwrap())
        .collect();
    assert!(told[0].1 && told[1].1 && !told[2].1, "{told:?}");
    assert!(told[1].0.contains("call it d.txt"), "{told:?}");
    for (path, is_there) in [("a.txt", false), ("b.txt", false), ("c.txt", true)] {
        assert_eq!(chat.project.path(path).exists(), is_there, "{path}");
    }
    let permissions = chat.project.read(PERMISSIONS);
    assert!(permissions.contains("write_file"), "{permissions}");
}

#[test]
fn a_command_typed_at_a_question_is_not_sent_and_leaving_is_recorded() {
    let (chat, server) = ChatProject::scripted([writes("a.txt")]);
    let run = chat.typed(PLAIN, "go\nno: /nope\n/undo\n/exit\n");
    let run = run.says(&[
        "there is no command `/nope` here",
        "`/undo` works between requests",
        "ended by `/exit`",
    ]);
    assert_eq!(server.messages().len(), 1);
    let agent: Value = serde_json::from_str(&run.logged("agent.json")).unwrap();
    assert_eq!(agent["answers"], json!(["/exit"]));
}

#[test]
fn nothing_moves_over_a_question() {
    let command = call("execute_command", json!({"command": "touch a.txt"}));
    let (chat, _server) = ChatProject::scripted([command, say("Enough.")]);
    let Some(mut terminal) = Terminal::open(&chat.command(PLAIN), 100, "") else {
        return;
    };
    terminal.types("chat> ", "go\r");
    terminal.types("WHAT INSTEAD> ", "");
    // Several frames of an animation would fit into this time.
    thread::sleep(Duration::from_millis(500));
    terminal.types("", "no\r");
    terminal.types("Enough.", "");
    terminal.types("chat> ", "\u{4}");
    let (shown, _) = terminal.end();
    let (_, answered) = shown.split_once("WHAT INSTEAD> ").unwrap();
    assert!(answered.starts_with("no\r\n"), "{answered:?}");
}

#[test]
fn nothing_of_what_is_allowed_is_hidden() {
    let hidden = "\u{1b}]0;'; touch by-command; : '\u{7}\u{1b}[;. /x";
    let long = "x".repeat(300);
    let (chat, _server) = ChatProject::scripted([
        call(
            "execute_command",
            json!({"command": format!("echo {long}; : '{hidden}'")}),
        ),
        call(
            "write_file",
            json!({"path": "b.sh", "content": format!("\t: '{hidden}'\n")}),
        ),
        say("As you like."),
    ]);
    let run = chat.typed(PLAIN, "go on\nno\nno\n").exits(0);
    let shown = "<U+001B>]0;'; touch by-command; : '<U+0007><U+001B>[;. /x";
    run.says(&[
        &format!("{long}; : '{shown}'"),
        &format!("+    : '{shown}'"),
    ]);
}

#[test]
fn the_commands_are_those_of_the_screen() {
    let (chat, server) = ChatProject::scripted([
        writes("a.txt"),
        say("Written. ".repeat(300)),
        say("It wrote."),
        say("- [ ] look\n"),
        say("Carried out."),
        say("Hello, Ada."),
    ]);
    let chat = chat.with_setting("commands/hello.md", "Say hello to $1.\n");
    let before = "/help\n/compact\n/copy\n/undo\n/permissions\n/nope\nwrite\ny\n";
    let after =
        "/diff\n/cost\n/model claude-haiku-5-5\n/transcript\n/undo\n/compact it\n!echo by hand\n";
    let planned = "/mode planning\nplan it\n1\n/clear\n/resume\n1\n/hello Ada\n/exit\nnever read\n";
    let run = chat
        .typed(PLAIN, &format!("{before}{after}{planned}"))
        .exits(0);
    // The command, and its output once.
    assert_eq!(run.stderr.matches("by hand").count(), 2, "{}", run.stderr);
    let run = run.says(&[
        "\n  /compact [FOCUS]",
        "\n  !COMMAND",
        "there is nothing to compact yet",
        "`/copy` needs the full screen: `chat` without `--plain`",
        "nothing to undo in this session",
        "there is no command `/nope`",
        "+++ b/a.txt",
        "tokens",
        "`claude-haiku-5-5` is asked from now on",
        "1 removed",
        "compacted: about ",
        "by hand",
        "  1  Carry it out in Regular",
        "Carried out.",
        "(new session)",
        "session> ",
        "(resumed)",
        "Hello, Ada.",
    ]);
    assert!(!run.stderr.contains("\n  /copy"), "{}", run.stderr);
    assert!(!chat.project.path("a.txt").exists());
    assert_eq!(server.left(), 0);
}

#[test]
fn a_key_is_typed_and_the_request_that_lacked_it_is_resumed() {
    let key = "sk-ant-api03-of-another-account";
    let (chat, server) = ChatProject::scripted([say("Hello.")]);
    server.takes(&[key]);
    let chat = chat.without_key();
    let run = chat.typed(PLAIN, &format!("hi\n/login\n{key}\n")).exits(0);
    let run = run.says(&[
        "No key is set: `/login` asks for one",
        "API key: ",
        "Hello.",
    ]);
    assert!(!run.stderr.contains(key), "{}", run.stderr);
}

#[test]
fn an_account_that_is_chosen_holds_for_its_vendor_until_another_one_of_it_is() {
    let key = "sk-ant-api03-of-another-account";
    let account = |name: &str, provider: &str, key: &str| json!({"name": name, "provider": provider, "api_key": key});
    let auth = json!({"version": 1, "active": null, "accounts": [
        account("work", "anthropic", key),
        account("spare", "anthropic", "sk-ant-api03-of-nobody"),
        account("gem", "gemini", "AIza-gemini-1"),
        {"name": "bad", "provider": "anthropic", "api_key_command": ["false"]},
    ]});
    for (typed, key) in [
        ("/login spare\n/login work\none\n/login gem\ntwo\n", key),
        ("/login work\n/login gem\n/logout\none\ntwo\n", key),
        // The request that lacked the key is sent with the next one.
        ("/login bad\none\n/login work\ntwo\n", key),
        // By the usual rules, the variable's.
        ("/login work\n/login spare\n/logout\none\ntwo\n", KEY),
    ] {
        let (chat, server) = ChatProject::scripted([say("One."), say("Two.")]);
        server.takes(&[key]);
        let chat = chat.with_setting("auth.json", &auth.to_string());
        let run = chat.typed(PLAIN, typed).exits(0);
        run.says(&["One.", "Two."]);
    }
}

#[test]
fn piped_chat_warns_of_untrusted_files_without_asking() {
    let (chat, _server) = ChatProject::scripted([say("Hello.")]);
    let chat = chat.with_file(
        PERMISSIONS,
        r#"{"version": 1, "permissions": [{"tool": "write_file", "action": "always"}]}"#,
    );
    let run = chat.typed(PLAIN, "hi\n").exits(0);
    run.says(&["this folder is not trusted", "Hello."]);
}

#[test]
fn a_terminal_that_can_do_nothing_is_enough_and_ctrl_c_stops_the_work_alone() {
    let (reply, gate) = silence();
    let (chat, _server) = ChatProject::scripted([writes("a.txt"), say("Written."), reply]);
    let mut command = chat.command(PLAIN);
    command.env("TERM", "dumb");
    let Some(mut terminal) = Terminal::open(&command, 60, "") else {
        return;
    };
    for (seen, keys) in [
        ("chat> ", "write\r"),
        ("May it?", ""),
        ("yes/always/no/never, or no: WHAT INSTEAD> ", "y\r"),
        ("Written.", ""),
        ("Regular Mode · claude-sonnet-5-5", ""),
        ("chat> ", "wait\r"),
    ] {
        terminal.types(seen, keys);
    }
    gate.reached();
    for (seen, keys) in [
        ("", "\u{3}"),
        ("say what to do instead", ""),
        ("chat> ", "\u{4}"),
    ] {
        terminal.types(seen, keys);
    }
    let (shown, code) = terminal.end();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("`--resume` continues it"), "{shown}");
    assert!(!shown.contains("\u{1b}["), "{shown:?}");
    assert_eq!(chat.project.read("a.txt"), "one\n");
}
