//! The full screen, controlled by keys alone.

use std::time::Duration;

use serde_json::json;

use crate::support::agent::Endless;
use crate::support::anthropic::{
    Anthropic, KEY, PREVIEW, Reply, call, last_said, nothing, results, said, say, silence, thinking,
};
use crate::support::chat::ChatProject;
use crate::support::screen::{CTRL_C, CTRL_D, CTRL_G, CTRL_J, DOWN, ESCAPE, SHIFT_TAB, Screen, UP};
use crate::support::within_a_minute;

/// A chat on a screen of this size; `None` if no terminal can be created.
fn opened(chat: &ChatProject, columns: u16, rows: u16) -> Option<Screen> {
    let mut screen = Screen::open(&chat.command(&[]), columns, rows)?;
    screen.shows("Mode");
    Some(screen)
}

/// A chat with scripted replies, on a screen of 100 columns.
fn scripted(script: impl IntoIterator<Item = Reply>) -> Option<(Screen, ChatProject, Anthropic)> {
    let (chat, server) = ChatProject::scripted(script);
    let screen = opened(&chat, 120, 30)?;
    Some((screen, chat, server))
}

#[test]
fn the_status_bar_has_the_specifications_words() {
    let Some((mut screen, _chat, _server)) = scripted([say("Hello **there**.")]) else {
        return;
    };
    screen
        .shows("Regular Mode | claude-sonnet-5-5")
        .shows("Context: 0/1000.0k (0%)")
        .shows("shift+tab: cycle mode | esc×2: stop | /help: commands");
    screen
        .types("hi\r")
        .shows("Hello there.")
        .hides("Context: 0/");
    screen
        .types(SHIFT_TAB)
        .shows("Auto-Pilot Mode")
        .types(SHIFT_TAB)
        .shows("Planning Mode")
        .types(SHIFT_TAB)
        .shows("Regular Mode");
    let (shown, code) = {
        screen.types(CTRL_D);
        screen.ends()
    };
    assert_eq!(code, 0);
    assert!(
        shown.contains("code-commit chat --session") && shown.contains("there"),
        "{shown}"
    );
}

#[test]
fn narrow_and_wide_screens_show_the_mode_and_the_context() {
    let (chat, _server) = ChatProject::scripted([]);
    for (columns, rows) in [(40, 10), (60, 20), (120, 30), (300, 100)] {
        let Some(mut screen) = opened(&chat, columns, rows) else {
            return;
        };
        screen.shows("Regular Mode").shows("0/1000.0k (0%)");
        let is_wide = columns >= 120;
        assert_eq!(
            screen.contents().contains("esc×2"),
            is_wide,
            "{}",
            screen.contents()
        );
        screen
            .resize(80, 24)
            .shows("claude-sonnet-5-5")
            .types(CTRL_D);
        assert_eq!(screen.ends().1, 0);
    }
}

#[test]
fn without_a_screen_the_way_out_is_named() {
    let (chat, server) = ChatProject::scripted([]);
    chat.run(&[]).exits(3).says(&["-p"]);
    chat.run(&["a request"]).exits(3).says(&["-p"]);
    let mut command = chat.command(&[]);
    command.env("TERM", "dumb");
    let Some(screen) = Screen::open(&command, 80, 24) else {
        return;
    };
    let (shown, code) = screen.ends();
    assert!(code == 3 && shown.contains("-p"), "{shown}");
    assert!(server.requests("").is_empty());
}

#[test]
fn the_first_frame_waits_for_no_answer_of_the_terminal() {
    let (chat, _server) = ChatProject::scripted([]);
    let Some(screen) = opened(&chat, 80, 24) else {
        return;
    };
    let written = String::from_utf8_lossy(&screen.bytes);
    // Queries for the cursor's position, the terminal's attributes, the keyboard protocol and the colours.
    for query in [
        "\x1b[6n",
        "\x1b[c",
        "\x1b[0c",
        "\x1b[?u",
        "\x1b]10;?",
        "\x1b]11;?",
    ] {
        assert!(!written.contains(query), "{written:?}");
    }
}

#[test]
fn paths_refused_by_the_policy_are_not_asked_about() {
    let hooks = json!({"path": ".git/hooks/pre-commit", "content": "x"});
    let models = json!({"path": "agent-config/models.json", "content": "{}"});
    let Some((mut screen, _chat, server)) = scripted([
        nothing()
            .call("write_file", hooks)
            .call("write_file", models),
        say("All refused."),
    ]) else {
        return;
    };
    screen.types("go\r").shows("All refused.");
    assert!(results(&server, 1).iter().all(|(_, failed)| *failed));
}

#[test]
fn a_yes_in_planning_executes_nothing() {
    let Some((mut screen, chat, server)) = scripted([
        call("write_file", json!({"path": "a.txt", "content": "a"})),
        say("Not now."),
    ]) else {
        return;
    };
    screen.types("go\r").shows("y yes");
    screen
        .types(SHIFT_TAB)
        .shows("Auto-Pilot")
        .types(SHIFT_TAB)
        .shows("Planning Mode")
        .rests()
        .types("y")
        .shows("Not now.");
    assert!(results(&server, 1)[0].1);
    assert!(!chat.project.path("a.txt").exists());
}

#[test]
fn an_idle_screen_gets_no_byte() {
    let Some((mut screen, _chat, _server)) = scripted([say("Hello.")]) else {
        return;
    };
    screen.types("hi\r").shows("Hello.");
    while screen.draws_within(Duration::from_millis(700)) {}
    let drawn = screen.bytes.len();
    assert!(!screen.draws_within(Duration::from_millis(1500)));
    assert_eq!(screen.bytes.len(), drawn);
}

#[test]
fn a_question_shows_the_change_and_is_answered_by_its_letters_alone() {
    let write = |content: &str| call("write_file", json!({"path": "new.txt", "content": content}));
    for (key, is_done) in [("y", true), ("a", true), ("n", false), ("d", false)] {
        let Some((mut screen, chat, server)) =
            scripted([write("first line\n"), write("again\n"), say("Well.")])
        else {
            return;
        };
        // Typing ahead, including Enter, selects nothing.
        screen.types("go\r").shows("new.txt").shows("first line");
        screen.types("\r\r").shows("y yes");
        assert!(!chat.project.path("new.txt").exists());
        screen.rests().types(key);
        if key == "d" {
            screen.shows("write_file is never used in this project from now on");
        }
        let asks_again = key == "y" || key == "n" || key == "a";
        if asks_again {
            // Even after `a`, the second write asks, since it overwrites the file.
            let overwrites = key == "y" || key == "a";
            screen
                .shows(if overwrites { "overwrites" } else { "again" })
                .rests()
                .types("n");
        }
        screen.shows("Well.");
        assert_eq!(chat.project.path("new.txt").exists(), is_done, "{key}");
        assert_eq!(!results(&server, 1)[0].1, is_done, "{key}");
        let file = std::fs::read_to_string(chat.project.path(".agent/permissions.json"));
        match key {
            "a" => assert!(
                file.unwrap()
                    .contains(r#"{ "tool": "write_file", "action": "always" }"#)
                    || chat
                        .project
                        .read(".agent/permissions.json")
                        .contains("always")
            ),
            "d" => assert!(file.unwrap().contains("never")),
            _ => assert!(file.is_err()),
        }
    }
}

#[test]
fn two_presses_stop_the_agent_also_at_a_question() {
    let write = |reply: Reply, nth: u32| {
        let input = json!({"path": format!("{nth}.txt"), "content": "x"});
        reply.call("write_file", input)
    };
    for stop in [&[ESCAPE, ESCAPE][..], &[CTRL_C]] {
        let Some((mut screen, _chat, server)) = scripted([(1..=4).fold(nothing(), write)]) else {
            return;
        };
        screen.types("go\r").shows("1.txt").rests();
        for key in stop {
            screen.types(key);
        }
        screen.shows("Agent stopped by user").hides("y yes");
        assert_eq!(server.messages().len(), 1);
    }
}

#[test]
fn no_can_say_what_instead() {
    let Some((mut screen, _chat, server)) = scripted([
        call("execute_command", json!({"command": "rm -rf build"})),
        say("Then I list."),
    ]) else {
        return;
    };
    screen
        .types("clean up\r")
        .shows("rm -rf build")
        .shows("delet")
        .rests()
        .types("e")
        .shows("Enter sends it")
        .types("/nope\r")
        .shows("there is no command `/nope` here")
        .rests()
        .types("e")
        .shows("Enter sends it")
        .types("/undo\r")
        .shows("or stop by Ctrl-C")
        .rests()
        .types("e")
        .shows("Enter sends it")
        .types("only list it")
        .shows("only list it")
        .types("\r")
        .shows("Then I list.");
    assert!(last_said(&server, 1).contains("only list it"));
}

#[test]
fn terminal_is_restored_after_a_signal() {
    for (signal, code) in [("TERM", 143), ("HUP", 129)] {
        let (reply, gate) = silence();
        let Some((mut screen, _chat, _server)) = scripted([reply]) else {
            return;
        };
        let modes = screen.modes();
        assert!(modes.contains("-icanon"), "{modes}");
        screen.types("go\r");
        gate.reached();
        screen.signal(signal);
        let (shown, ended) = screen.ends();
        assert_eq!(ended, code, "{shown}");
        // The cursor is back on the normal screen.
        assert!(shown.contains("code-commit chat --session"), "{shown}");
    }
}

#[test]
fn unconfirmed_permissions_do_not_outlive_the_question() {
    const FILE: &str = ".agent/permissions.json";
    let never = r#"{"version": 1, "permissions": [{"tool": "write_file", "action": "never"}]}"#;
    for (signal, code) in [("TERM", 143), ("HUP", 129)] {
        let (chat, _server) = ChatProject::scripted([say("Gone.")]);
        let chat = chat.with_file(FILE, never);
        let Some(mut screen) = opened(&chat, 120, 30) else {
            return;
        };
        screen.types("go\r").shows("Gone.");
        std::fs::write(chat.project.path(FILE), never.replace("never", "always")).unwrap();
        screen.types("more\r").shows("was changed on disk");
        screen.signal(signal);
        let (shown, ended) = screen.ends();
        assert_eq!(ended, code, "{shown}");
        assert_eq!(chat.project.read(FILE), never);
    }
}

#[test]
fn a_signal_ends_it_also_where_nothing_is_done_or_an_editor_has_the_terminal() {
    for (signal, code, is_edited) in [
        ("TERM", 143, false),
        ("HUP", 129, false),
        ("TERM", 143, true),
    ] {
        let (chat, _server) = ChatProject::scripted([]);
        let mut command = chat.command(&[]);
        command.env("EDITOR", "sh -c 'exec sleep 3600'");
        let Some(mut screen) = Screen::open(&command, 100, 30) else {
            return;
        };
        screen.shows("Mode");
        if is_edited {
            screen.types("x").shows("> x").types(CTRL_G);
            assert!(within_a_minute(|| screen.modes().contains(" icanon")));
        }
        screen.signal(signal);
        let (shown, ended) = screen.ends();
        assert_eq!(ended, code, "{shown}");
    }
}

#[test]
fn terminal_modes_are_set_again_after_a_stop() {
    let Some((mut screen, _chat, _server)) = scripted([]) else {
        return;
    };
    screen.sets("sane");
    assert!(screen.modes().contains(" icanon"));
    screen.signal("CONT");
    assert!(within_a_minute(|| screen.modes().contains("-icanon")));
    screen.types("x").shows("> x");
}

#[test]
fn ctrl_c_clears_then_stops_then_ends() {
    let (reply, gate) = silence();
    let Some((mut screen, _chat, _server)) = scripted([reply]) else {
        return;
    };
    screen
        .types("half a line")
        .shows("half a line")
        .types(CTRL_C)
        .hides("half a line");
    screen.types("go\r");
    gate.reached();
    // Only where nothing is being stopped any more does Ctrl-C leave.
    screen
        .types(CTRL_C)
        .shows("Agent stopped by user")
        .hides("Stopping...");
    screen.types(CTRL_C).types(CTRL_C);
    let (shown, _) = screen.ends();
    assert!(shown.contains("code-commit chat --session"), "{shown}");
}

#[test]
fn a_paste_is_one_piece_and_never_sends() {
    let Some((mut screen, _chat, server)) = scripted([say("Read.")]) else {
        return;
    };
    let lines: String = (0..300)
        .map(|nth| format!("pasted line {nth}\r\n"))
        .collect();
    screen.pastes(&lines).shows("[Pasted text #1 +300 lines]");
    assert!(server.messages().is_empty());
    screen.types(" what is it?\r").shows("Read.");
    let sent = last_said(&server, 0);
    assert!(
        sent.contains("pasted line 0\npasted line 1\n") && sent.contains("pasted line 299"),
        "{sent}"
    );
    assert!(sent.contains("what is it?") && !sent.contains('\r'));
}

#[test]
fn lines_are_begun_and_brought_back() {
    let Some((mut screen, _chat, server)) = scripted([say("One."), say("Two.")]) else {
        return;
    };
    screen
        .types("first")
        .types(CTRL_J)
        .types("second\\\rthird\r")
        .shows("One.");
    assert!(last_said(&server, 0).contains("first\nsecond\nthird"));
    screen.types(UP).shows("third").types("!\r").shows("Two.");
    assert!(last_said(&server, 1).contains("third!"));
}

#[test]
fn input_queued_while_the_agent_works_can_be_taken_back() {
    let (reply, gate) = say("Slow.").hold_at_the_end();
    let Some((mut screen, _chat, server)) = scripted([reply, say("Second.")]) else {
        return;
    };
    screen.types("one\r");
    gate.reached();
    screen.types("the next request\r").shows("waits: the next");
    assert_eq!(server.messages().len(), 1);
    screen
        .types(UP)
        .hides("waits:")
        .types(" changed\r")
        .shows("waits: the next request changed");
    drop(gate);
    screen.shows("Second.");
    assert!(last_said(&server, 1).contains("the next request changed"));
}

#[test]
fn the_first_request_of_the_command_line_is_sent_as_if_it_had_been_typed() {
    let (chat, server) = ChatProject::scripted([say("Hello.")]);
    let Some(mut screen) = Screen::open(&chat.command(&["say hello"]), 120, 30) else {
        return;
    };
    screen.shows("> say hello").shows("Hello.");
    screen.types("/cost\r").shows("this session: ").shows("$");
    assert!(screen.contents().contains("this account: "));
    assert!(chat.home("spent.json").exists());
    assert!(last_said(&server, 0).contains("say hello"));
}

#[test]
fn changes_are_reverted_one_request_after_the_other() {
    let write =
        |path: &str, content: &str| call("write_file", json!({"path": path, "content": content}));
    let Some((mut screen, chat, server)) = scripted([
        write("a.txt", "a\n"),
        say("A is there."),
        write("b.txt", "b\n"),
        say("B is there."),
        say("Both are gone."),
    ]) else {
        return;
    };
    screen.types(SHIFT_TAB).shows("Auto-Pilot");
    screen
        .types("one\r")
        .shows("A is there.")
        .types("two\r")
        .shows("B is there.");
    screen.types("/undo\r");
    assert!(within_a_minute(|| !chat.project.path("b.txt").exists()));
    assert!(chat.project.path("a.txt").exists());
    screen.types("/undo\r");
    assert!(within_a_minute(|| !chat.project.path("a.txt").exists()));
    screen.types("and now?\r").shows("Both are gone.");
    assert!(
        last_said(&server, 4).contains("b.txt"),
        "{}",
        last_said(&server, 4)
    );
}

#[test]
fn an_account_is_signed_into_on_the_screen_and_its_key_is_never_seen() {
    let (chat, server) = ChatProject::scripted([say("Hello.")]);
    let chat = chat.without_key();
    let Some(mut screen) = opened(&chat, 120, 30) else {
        return;
    };
    screen.shows("No key is set").types("hi\r").shows("error: ");
    assert!(server.requests("").is_empty());
    // The request that needed the key continues.
    screen
        .types(&format!("/login {KEY}\r"))
        .shows("Signed in as")
        .shows("Hello.");
    assert_eq!(server.messages().len(), 1);
    assert!(last_said(&server, 0).contains("hi"));
    let shown = String::from_utf8_lossy(&screen.bytes).into_owned();
    assert!(!shown.contains(KEY));
    let history = std::fs::read_to_string(chat.home("history.jsonl")).unwrap_or_default();
    assert!(
        !history.contains(KEY) && !history.contains("/login sk"),
        "{history}"
    );
    screen.types("/logout\r").shows("Signed out");
}

#[test]
fn the_first_screen_says_where_it_is_and_what_was_read() {
    for (columns, git) in [(40, ".git"), (80, "linked"), (200, ".git")] {
        let (chat, _server) = ChatProject::scripted([]);
        let head = format!("{git}/HEAD");
        let mut chat = chat
            .with_file("AGENTS.md", "Be kind.")
            .with_file(&head, "ref: refs/heads/tidy\n");
        if git != ".git" {
            // As in a linked work tree.
            chat = chat.with_file(".git", format!("gitdir: {git}\n"));
        }
        let Some(mut screen) = opened(&chat, columns, 30) else {
            return;
        };
        screen
            .shows("on branch tidy")
            .shows("Read: AGENTS.md")
            .shows("Enter sends")
            .shows("/help");
        assert!(!screen.contents().contains("No key is set"));
    }
}

#[test]
fn signing_in_again_tells_user_and_model_what_it_ends() {
    let (chat, server) = ChatProject::scripted([
        call(
            "execute_command",
            json!({"command": "sleep 1000", "timeout_seconds": 1}),
        ),
        say("It runs."),
        say("I start it again."),
    ]);
    let chat = chat.without_key();
    let Some(mut screen) = opened(&chat, 120, 30) else {
        return;
    };
    screen
        .types(&format!("/login {KEY}\r"))
        .shows("Signed in as")
        .types(SHIFT_TAB)
        .shows("Auto-Pilot")
        .types("/model\r")
        .shows(PREVIEW)
        .types(&format!("{DOWN}{DOWN}\r"))
        .shows(&format!("| {PREVIEW}"))
        .types("go\r")
        .shows("It runs.")
        .types("/login default\r")
        .shows("ended these background")
        .types("and now?\r")
        .shows("I start it again.");
    assert!(last_said(&server, 2).contains("has ended these background processes:"));
    // This also works for a model known only from the vendor's list.
    assert_eq!(server.messages()[2]["model"], PREVIEW);
}

#[test]
fn commands_are_listed_and_done() {
    let (chat, server) = ChatProject::scripted([say("Hello."), say("New.")]);
    let Some(mut screen) = opened(&chat, 120, 60) else {
        return;
    };
    for command in [
        "/clear",
        "/compact",
        "/init",
        "/model",
        "/undo",
        "/resume",
        "/permissions",
        "/cost",
    ] {
        screen.types("/help\r").shows(command);
    }
    screen.types("hi\r").shows("Hello.");
    screen
        .types("/mode planning\r")
        .shows("Planning Mode")
        .types("/mode regular\r")
        .shows("Regular Mode");
    screen
        .types("/model claude-opus-5-5\r")
        .shows("| claude-opus-5-5");
    screen
        .types("/clear\r")
        .hides("Hello.")
        .types("again\r")
        .shows("New.");
    let second = server.messages()[1].clone();
    assert_eq!(second["model"], "claude-opus-5-5");
    assert_eq!(second["messages"].as_array().unwrap().len(), 1);
    screen
        .types("/no-such-command\r")
        .shows("/no-such-command")
        .types("/exit\r");
    assert_eq!(screen.ends().1, 0);
    assert_eq!(server.messages().len(), 2);
}

#[test]
fn no_sequence_of_a_model_or_a_file_reaches_the_terminal() {
    let Some((mut screen, _chat, _server)) = scripted([
        say("\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[31mred\u{202e}")
            .call("read_file", json!({"path": "evil.txt"})),
        say("# \u{1b}]52;c;ZXZpbA==\u{7}Title\n\n`\u{9b}31m` end of it"),
    ]) else {
        return;
    };
    screen.types("go\r").shows("end of it");
    let drawn = String::from_utf8_lossy(&screen.bytes).into_owned();
    for evil in [
        "\u{1b}]0;owned",
        "\u{1b}]52;c;ZXZpbA",
        "\u{202e}",
        "\u{9b}31m",
    ] {
        assert!(!drawn.contains(evil), "{evil:?}");
    }
}

#[test]
fn no_color_disables_colours() {
    let (chat, _server) = ChatProject::scripted([say("# Title\n\n`code` and **bold**")]);
    let mut command = chat.command(&[]);
    command.env("NO_COLOR", "1");
    let Some(mut screen) = Screen::open(&command, 120, 30) else {
        return;
    };
    screen.shows("Mode").types("hi\r").shows("and bold");
    let drawn = String::from_utf8_lossy(&screen.bytes).into_owned();
    let colors =
        regex::Regex::new("\u{1b}\\[[\\d;]*(3[0-7]|38|9[0-7]|4[0-7]|48)(;[\\d;]*)?m").unwrap();
    assert!(!colors.is_match(&drawn), "{:?}", colors.find(&drawn));
}

#[test]
fn todos_stand_next_to_the_transcript_or_above_the_input() {
    let todos = json!({"todos": [
        {"content": "Read it", "status": "completed", "activeForm": "Reading it"},
        {"content": "Write it", "status": "in_progress", "activeForm": "Writing it"},
        {"content": "Test it", "status": "pending", "activeForm": "Testing it"}]});
    for columns in [120, 80] {
        let (chat, _server) =
            ChatProject::scripted([call("update_todos", todos.clone()), say("Listed.")]);
        let Some(mut screen) = opened(&chat, columns, 30) else {
            return;
        };
        screen
            .types("go\r")
            .shows("Listed.")
            .shows("Writing it")
            .shows("Test it");
    }
}

#[test]
fn two_escapes_stop_a_call_and_the_session_is_whole() {
    let reply = thinking("hm").say(format!("Half a sentence{}", " and so on".repeat(100)));
    let half = reply.length() / 2;
    let (reply, gate) = reply.hold_after(half);
    let Some((mut screen, _chat, server)) = scripted([reply, say("Here again.")]) else {
        return;
    };
    screen.types("go\r");
    gate.reached();
    screen
        .shows("Half a sentence")
        .types(ESCAPE)
        .shows("(esc again to stop)")
        // The rest of the reply is still held back.
        .types(ESCAPE)
        .shows("Agent stopped by user")
        .types("and now?\r")
        .shows("Here again.");
    // The model knows everything that the user has seen.
    let messages = &server.messages()[1]["messages"];
    assert!(
        said(&messages[1]).starts_with("Half a sentence and"),
        "{messages:#}"
    );
    assert!(said(&messages[2]).contains("stopped"), "{messages:#}");
}

#[test]
fn two_escapes_stop_the_listing_of_models_and_no_menu_opens() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", server.local_addr().unwrap());
    let (chat, _) = ChatProject::scripted([]);
    let chat = chat.with_variable("ANTHROPIC_BASE_URL", &url);
    let Some(mut screen) = opened(&chat, 120, 30) else {
        return;
    };
    screen.types("/model\r");
    // The server receives the request, and never answers.
    let _asked = server.accept().unwrap();
    screen
        .types(ESCAPE)
        .shows("(esc again to stop)")
        .types(ESCAPE)
        .shows("Agent stopped by user")
        .hides("Choose a model");
}

#[test]
fn two_escapes_stop_a_command_and_its_whole_group() {
    let endless = Endless::new();
    let Some((mut screen, chat, server)) = scripted([
        nothing()
            .call("execute_command", json!({"command": endless.command()}))
            .call("write_file", json!({"path": "behind.txt", "content": "x"})),
        say("Stopped, I see."),
    ]) else {
        return;
    };
    screen.types(SHIFT_TAB).shows("Auto-Pilot").types("go\r");
    let path = chat.project.path("started");
    assert!(within_a_minute(|| path.exists()));
    screen
        .types(ESCAPE)
        .shows("(esc again to stop)")
        .types(ESCAPE);
    screen.shows("Agent stopped by user");
    assert!(endless.ends());
    screen.types("what happened?\r").shows("Stopped, I see.");
    let results = results(&server, 1);
    assert!(
        results.len() == 2 && results.iter().all(|(_, failed)| *failed),
        "{results:?}"
    );
    assert!(
        results[0].0.contains("stopped before its end"),
        "{results:?}"
    );
    assert!(results[1].0.contains("This was not done"), "{results:?}");
    assert!(!chat.project.path("behind.txt").exists());
}
