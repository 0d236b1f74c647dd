//! The model's context besides the request: instructions in directories, attached files, user-defined commands, and the
//! rest of a long conversation.

use serde_json::json;

use crate::support::anthropic::{Anthropic, Reply, call, last_said, said, say};
use crate::support::chat::ChatProject;
use crate::support::screen::{ESCAPE, Screen};

fn opened(chat: &ChatProject) -> Option<Screen> {
    let mut screen = Screen::open(&chat.command(&[]), 100, 30)?;
    screen.shows("Regular Mode");
    Some(screen)
}

#[test]
fn the_instructions_of_a_directory_join_when_a_file_there_is_first_read() {
    let (chat, server) = ChatProject::scripted([
        call("read_file", json!({"path": "deep/er/file.txt"})),
        call("read_file", json!({"path": "deep/er/file.txt"})),
        say("ok"),
    ]);
    let chat = chat
        .with_file("AGENTS.md", "RULES OF THE ROOT")
        .with_file("deep/er/AGENTS.md", "RULES OF THE DEEP")
        .with_file("deep/er/file.txt", "x\n");
    chat.ask("look").exits(0);
    let requests = server.messages();
    let all = |nth: usize| requests[nth].to_string();
    assert!(all(0).contains("RULES OF THE ROOT") && !all(0).contains("RULES OF THE DEEP"));
    assert_eq!(all(1).matches("RULES OF THE DEEP").count(), 1);
    assert_eq!(all(2).matches("RULES OF THE DEEP").count(), 1);
    let told = requests[1]["messages"].to_string();
    assert!(
        told.contains("RULES OF THE DEEP") && told.contains("<system-reminder>"),
        "{told}"
    );
}

#[test]
fn instructions_that_are_too_long_or_no_text_are_warned_of() {
    for content in [vec![b'x'; 70_000], vec![0xff, 0xfe, 0]] {
        let (chat, server) = ChatProject::scripted([say("ok")]);
        let chat = chat.with_file("AGENTS.md", content);
        chat.ask("hi").exits(0).says(&["AGENTS.md"]);
        assert!(server.requests("POST")[0].body.len() < 60_000);
    }
}

#[test]
fn a_file_that_is_named_goes_along_as_a_block_of_its_own() {
    let (chat, server) = ChatProject::scripted([say("Read.")]);
    let chat = chat.with_file("my notes.txt", "THE NOTES\n");
    let Some(mut screen) = opened(&chat) else {
        return;
    };
    screen
        .types("sum up @myn")
        .shows("my notes.txt")
        .types("\t")
        .shows("@\"my notes.txt\"")
        .types("please\r")
        .shows("Read.");
    let last = server.messages()[0]["messages"][0].clone();
    assert!(last["content"].as_array().unwrap().len() > 1, "{last}");
    assert!(
        said(&last).contains("THE NOTES") && said(&last).contains("please"),
        "{last}"
    );
}

#[test]
fn of_a_long_file_that_is_named_the_beginning_and_the_end_go_along() {
    let (chat, server) = ChatProject::scripted([say("Read.")]);
    let lines: String = (1..=9000).map(|nth| format!("line {nth}\n")).collect();
    chat.with_file("long.txt", lines)
        .ask("see @long.txt")
        .exits(0);
    let sent = said(&server.messages()[0]["messages"][0]);
    assert!(sent.contains("the middle is left out; read on with `offset` "));
    assert!(sent.contains("line 1\n") && sent.contains("line 9000\n"));
    assert!(!sent.contains("line 4500\n") && sent.len() < 40_000);
}

#[test]
fn files_that_are_not_attached_are_reported_in_words_for_the_user() {
    let (chat, _server) = ChatProject::scripted([say("Not read.")]);
    let chat = chat.with_file(".env", "A=b\n");
    let run = chat.ask("see @.env and @/etc/passwd").exits(0);
    run.says(&[
        "`@.env` is not attached: `.env` commonly holds credentials, and is neither read nor written\n",
        "leads out of the project, to `/etc/passwd`, which needs `--allow-outside`\n",
    ]);
}

#[test]
fn commands_of_ones_own_are_texts_with_arguments_files_and_output() {
    let (chat, server) = ChatProject::scripted([say("Done."), say("Again.")]);
    let chat = chat
        .with_file("notes.txt", "THE NOTES\n")
        .with_file(
            ".agent/commands/git/review.md",
            "---\ndescription: Reviews a thing\nargument-hint: WHAT\n---\nReview $1 of ($ARGUMENTS) by @notes.txt.\n",
        )
        .with_file(".agent/commands/run.md", "It says: !`echo \"got $ARGUMENTS\"`\n")
        .with_file(".agent/commands/broken.md", "---\ndescription: [\n---\nx\n")
        .with_file(
            ".agent/permissions.json",
            r#"{"version": 1, "permissions": [{"tool": "execute_command", "action": "always"}]}"#,
        )
        .trusting(&[".agent/permissions.json", ".agent/commands/run.md"]);
    let Some(mut screen) = opened(&chat) else {
        return;
    };
    screen.types("/git:review alpha \"b c\"\r").shows("Done.");
    let sent = last_said(&server, 0);
    assert!(
        sent.contains("Review alpha of (alpha \"b c\") by @notes.txt.")
            && sent.contains("THE NOTES"),
        "{sent}"
    );
    // An argument is never executed.
    screen
        .types("/run $(touch PWNED); `touch PWNED`\r")
        .shows("because it substitutes")
        .rests()
        .types("y")
        .shows("Again.");
    assert!(!chat.project.path("PWNED").exists());
    assert!(
        last_said(&server, 1).contains("It says: got $(touch PWNED)"),
        "{}",
        last_said(&server, 1)
    );
}

#[test]
fn a_command_is_answered_by_the_model_that_it_names_and_nothing_after_it() {
    let (chat, server) = ChatProject::scripted([say("Quick."), say("Usual.")]);
    let chat = chat
        .with_file(
            ".agent/commands/quick.md",
            "---\nmodel: claude-haiku-5-5\n---\nBe quick.\n",
        )
        .with_file(
            ".agent/commands/old.md",
            "---\nmodel: claude-3-opus\n---\nBe old.\n",
        );
    let Some(mut screen) = opened(&chat) else {
        return;
    };
    screen
        .types("/old\r")
        .shows("`/old` names the model `claude-3-opus`");
    screen.shows("retired");
    // A command that is added meanwhile is available as well.
    let quick = chat.project.read(".agent/commands/quick.md");
    std::fs::write(chat.project.path(".agent/commands/fast.md"), quick).unwrap();
    screen
        .types("/fast\r")
        .shows("Quick.")
        .shows("| claude-sonnet-5-5");
    screen.types("and now?\r").shows("Usual.");
    let asked = server.messages();
    let asked: Vec<_> = asked.iter().map(|request| &request["model"]).collect();
    assert_eq!(asked, ["claude-haiku-5-5", "claude-sonnet-5-5"]);
}

#[test]
fn a_command_of_the_users_own_is_shown_to_the_model() {
    let (chat, server) = ChatProject::scripted([say("Seen.")]);
    let Some(mut screen) = opened(&chat) else {
        return;
    };
    screen
        .types("!echo by $((40 + 2)) hands\r")
        .shows("by 42 hands");
    screen
        .types("!echo no $((40 + 3)) hands; exit 3\r")
        .shows("no 43 hands");
    screen.types("what was that?\r").shows("Seen.");
    let seen = screen.contents();
    assert_eq!(seen.matches("no 43 hands").count(), 1, "{seen}");
    let sent = server.messages()[0]["messages"].to_string();
    assert!(sent.contains("by 42 hands"), "{sent}");
}

#[test]
fn a_command_of_the_users_own_that_is_stopped_has_not_gone_well() {
    let (chat, server) = ChatProject::scripted([say("Seen.")]);
    let Some(mut screen) = opened(&chat) else {
        return;
    };
    screen
        .types("!echo by $((40 + 2)) hands; sleep 600\r")
        .shows("by 42 hands");
    screen.types(ESCAPE).shows("(esc again").types(ESCAPE);
    screen.shows("Agent stopped by user");
    screen.types("what was that?\r").shows("Seen.");
    let sent = server.messages()[0]["messages"].to_string();
    assert!(sent.contains("by 42 hands"), "{sent}");
    assert!(sent.contains("stopped"), "{sent}");
}

#[test]
fn summary_replaces_the_conversation_unless_it_is_longer() {
    let long = "All work and no play. ".repeat(400);
    for (summary, is_shorter) in [("THE SUMMARY".to_owned(), true), (long.repeat(3), false)] {
        let server = Anthropic::start([say(long.as_str()), say(summary.as_str()), say("Goes on.")]);
        server.lets_the_past_change();
        let chat = ChatProject::new(&server);
        let Some(mut screen) = opened(&chat) else {
            return;
        };
        screen.types("one\r").shows("no play.");
        screen.types("/compact the numbers\r");
        screen.until("the summary", |_| server.messages().len() == 2);
        let asked = server.messages()[1].clone();
        assert!(asked.to_string().contains("the numbers"));
        screen
            .types("/copy\r")
            .shows("the last reply is in the clipboard");
        screen.types("two\r").shows("Goes on.");
        let sent = server.messages()[2]["messages"].to_string();
        assert_eq!(sent.contains("THE SUMMARY"), is_shorter);
        assert_eq!(sent.contains("no play"), !is_shorter);
    }
}

#[test]
fn a_proposal_for_the_instructions_is_shown_before_it_is_written() {
    let proposal = || -> [Reply; 2] {
        [
            call("list_files", json!({})),
            say("```markdown\n# AGENTS.md\n\nBuild with ./build.sh\n```"),
        ]
    };
    for (key, is_written, said, undone) in [
        ("y", true, "it was written", "1 removed"),
        ("n", false, "as it was", "nothing to undo"),
    ] {
        let (chat, server) = ChatProject::scripted(proposal());
        let Some(mut screen) = opened(&chat) else {
            return;
        };
        screen.types("/init\r").shows("y yes").rests().types(key);
        screen.shows(said);
        assert_eq!(chat.project.path("AGENTS.md").exists(), is_written);
        screen.types("/undo\r").shows(undone);
        assert!(!chat.project.path("AGENTS.md").exists());
        let tools = server.messages()[0]["tools"].to_string();
        assert!(
            !tools.contains("write_file") && tools.contains("read_file"),
            "{tools}"
        );
    }
}

#[test]
fn mode_removed_with_a_refused_request_is_reported_again() {
    let (chat, server) =
        ChatProject::scripted([say("I will not say tha").stop("refusal"), say("Very well.")]);
    let Some(mut screen) = opened(&chat) else {
        return;
    };
    screen.types("one\r").shows("refus").rests();
    screen.types("two\r").shows("Very well.");
    let sent = server.messages()[1]["messages"].to_string();
    assert!(sent.contains("The mode is Regular now"), "{sent}");
    assert!(!sent.contains("user_request>\\none"), "{sent}");
}

#[test]
fn files_saved_during_a_question_are_reported() {
    let (chat, server) = ChatProject::scripted([
        call("read_file", json!({"path": "notes.txt"})),
        call("execute_command", json!({"command": "echo x > other.txt"})),
        say("Done."),
    ]);
    let chat = chat.with_file("notes.txt", "old\n");
    let Some(mut screen) = opened(&chat) else {
        return;
    };
    screen.types("go\r").shows("because it overwrites").rests();
    std::fs::write(chat.project.path("notes.txt"), "new and longer\n").unwrap();
    screen.types("y").shows("Done.");
    let told = server.messages()[2]["messages"].to_string();
    let told = told.split_once("changed since you last saw").unwrap().1;
    assert!(told.contains("notes.txt"), "{told}");
}

#[test]
fn files_changed_between_two_processes_are_reported() {
    let (chat, server) = ChatProject::scripted([
        call("read_file", json!({"path": "notes.txt"}))
            .call("write_file", json!({"path": "own.txt", "content": "1\n"})),
        say("Done."),
        say("I see."),
        say("I see that, too."),
    ]);
    let chat = chat.with_file("notes.txt", "old\n");
    chat.let_work("go").exits(0);
    std::fs::write(chat.project.path("notes.txt"), "new and longer\n").unwrap();
    chat.run(&["--resume", "-p", "and now?"]).exits(0);
    let told = server.messages()[2]["messages"].to_string();
    let (_, told) = told.split_once("changed since you last saw").unwrap();
    assert!(told.contains("- notes.txt"), "{told}");
    assert!(!told.contains("- own.txt"), "{told}");
    // So are changes that the user undoes, even if the process ends before the next request.
    let Some(mut screen) = Screen::open(&chat.command(&["--resume"]), 100, 30) else {
        return;
    };
    screen.shows("Mode").types("/undo\r").shows("1 removed");
    screen.types("/exit\r");
    assert_eq!(screen.ends().1, 0);
    chat.run(&["--resume", "-p", "and now?"]).exits(0);
    let told = last_said(&server, 3);
    assert!(
        told.contains("by /undo") && told.contains("- own.txt"),
        "{told}"
    );
}

#[test]
fn the_instructions_of_a_session_that_continues_are_the_newest() {
    let (chat, server) = ChatProject::scripted([
        call("read_file", json!({"path": "deep/file.txt"})).call(
            "execute_command",
            json!({"command": "echo THE SECOND RULES > AGENTS.md"}),
        ),
        say("Done."),
        say("I see."),
    ]);
    let chat = chat
        .with_file("AGENTS.md", "THE FIRST RULES")
        .with_file("deep/AGENTS.md", "THE DEEP RULES")
        .with_file("deep/file.txt", "x\n");
    server.lets_the_past_change();
    chat.let_work("go").exits(0);
    for (path, rules) in [
        ("AGENTS.md", "THE THIRD RULES"),
        ("deep/AGENTS.md", "DEEPER"),
    ] {
        std::fs::write(chat.project.path(path), rules).unwrap();
    }
    chat.run(&["--resume", "-p", "and now?"]).exits(0);
    let request = &server.messages()[2];
    assert!(request["system"].to_string().contains("THE THIRD RULES"));
    let messages = request["messages"].to_string();
    let (before, after) = messages.split_once("read anew").unwrap();
    assert!(before.contains("THE SECOND RULES"), "{before}");
    assert!(
        after.contains("DEEPER") && !after.contains("THE DEEP RULES"),
        "{after}"
    );
}

#[test]
fn context_size_survives_a_restart() {
    let (chat, _server) = ChatProject::scripted([say("Done.")]);
    chat.ask("go").exits(0);
    // The count includes the system prompt and the tools, which an estimate of the conversation does not.
    let counted = chat.session()["contextTokens"].as_u64().unwrap();
    assert!(counted > 3000, "{counted}");
    let Some(mut screen) = Screen::open(&chat.command(&["--resume"]), 100, 30) else {
        return;
    };
    let tenths = (counted + 50) / 100;
    screen.shows(&format!("{}.{}k/", tenths / 10, tenths % 10));
}

#[test]
fn a_proposal_that_is_stopped_leaves_the_conversation_as_it_was() {
    let reply = say(format!("# AGENTS.md{}", " and so on".repeat(100)));
    let half = reply.length() / 2;
    let (reply, gate) = reply.hold_after(half);
    let (chat, server) = ChatProject::scripted([reply, say("Hello.")]);
    let Some(mut screen) = opened(&chat) else {
        return;
    };
    screen.types("/init\r");
    gate.reached();
    screen.shows("and so on").types(ESCAPE).shows("(esc again");
    screen.types(ESCAPE).shows("Agent stopped by user");
    screen.types("hi\r").shows("Hello.");
    let messages = server.messages()[1]["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 1, "{messages:#}");
}
