//! `dev` on the full screen, controlled by keys alone.

use std::fs;

use crate::support::agent::{AgentProject, Endless, PASS, done, last_told, reply};
use crate::support::screen::{CTRL_C, CTRL_D, ESCAPE, Screen, UP};

/// Opens `dev` on a screen of this width; `None` if no terminal can be created.
fn opened(agent: &AgentProject, columns: u16) -> Option<Screen> {
    let mut screen = Screen::open(&agent.command(&[]), columns, 60)?;
    screen.shows("● test-model");
    Some(screen)
}

#[test]
fn the_steps_stay_in_the_transcript_at_60_and_120_columns() {
    for columns in [60, 120] {
        let edit = "\"a.txt\"\n\n```find\ntwo\n```\n\n```replace\n2\n```";
        let (agent, _server) = AgentProject::scripted(&[
            reply("FIND_AND_REPLACE_IN_FILE", edit),
            reply("COMMAND", "printf 'line %s\\n' 1 2 3 4 5 6 7"),
            reply("READ_FILE", "\"no/such\""),
            reply("DONE", "# Title\n\n- **bold**"),
            PASS.to_owned(),
        ]);
        let agent = agent.with_file("a.txt", "one\ntwo\n");
        let Some(mut screen) = opened(&agent, columns) else {
            return;
        };
        screen.types("go\r").shows("• bold").shows("log: logs/");
        for expected in [
            "> go",
            "  On we go.",
            "Task List",
            "[~] The work",
            "• Edited a.txt (+1 -1)",
            "    -two",
            "    +2",
            "• Ran printf",
            "    line 3",
            "    line 7",
            "✗ Read no/such (failed)",
            "An independent audit begins.",
            "✓ Audit passed",
            "Title",
        ] {
            screen.shows(expected);
        }
        let contents = screen.contents();
        for unwanted in ["# Agent Response", " Mode", "    line 2\n"] {
            assert!(!contents.contains(unwanted), "{unwanted}: {contents}");
        }
        let lists = contents.matches("Task List").count();
        assert_eq!(lists, 1, "{contents}");
        screen.types(CTRL_D);
        let (shown, code) = screen.ends();
        assert_eq!(code, 0, "{shown}");
        assert!(
            shown.contains("`--resume` con") && shown.contains("bold"),
            "{shown}"
        );
    }
}

#[test]
fn a_question_is_answered_in_a_line_of_its_own() {
    let (agent, server) =
        AgentProject::scripted(&[reply("ASK_USER", "Which **one**?"), done(), PASS.to_owned()]);
    let Some(mut screen) = opened(&agent, 80) else {
        return;
    };
    screen
        .types("go\r")
        .shows("? The agent asks")
        .shows("Which one?")
        .shows("Esc skips it")
        .rests()
        .types("the second\r")
        .shows("> the second")
        .shows("It is done.");
    assert!(last_told(&server, 1).contains("the second"));
}

#[test]
fn a_stop_ends_the_request_and_not_the_program() {
    let (agent, _server) = AgentProject::scripted(&[
        reply("COMMAND", "echo under way; sleep 1000"),
        done(),
        PASS.to_owned(),
    ]);
    let Some(mut screen) = opened(&agent, 80) else {
        return;
    };
    screen
        .types("go\r")
        .shows("    under way")
        .types(ESCAPE)
        .shows("(esc again to stop)")
        .types(ESCAPE)
        .shows("error: stopped")
        .shows("hint: say what to do instead")
        .hides("Ctrl-C again ends")
        .rests()
        .types("half a request")
        .shows("> half a request")
        .types(CTRL_C)
        .hides("half a request")
        .types("/exit\r");
    assert_eq!(screen.ends().1, 0);
}

#[test]
fn another_session_shows_its_own_tasks_and_its_own_context() {
    let (agent, _server) = AgentProject::scripted(&[done(), PASS.to_owned()]);
    let Some(mut screen) = opened(&agent, 120) else {
        return;
    };
    screen
        .types("go\r")
        .shows("log: logs/")
        .shows("Todos 0/2")
        .shows("Context: 100/")
        .types("/clear\r")
        .hides("Todos ")
        .shows("Context: 0/")
        .types("/resume 1\r")
        .shows("Todos 0/2")
        .shows("Context: 100/")
        .types(CTRL_D);
    assert_eq!(screen.ends().1, 0);
    let mut screen = Screen::open(&agent.command(&["--resume"]), 120, 60).unwrap();
    screen
        .shows("Todos 0/2")
        .shows("Context: 100/")
        .types(CTRL_D);
    assert_eq!(screen.ends().1, 0);
}

#[test]
fn work_that_the_user_has_stopped_waits_for_a_word_when_it_is_resumed() {
    let endless = Endless::new();
    let command = reply("COMMAND", &endless.command());
    let (agent, server) = AgentProject::scripted(&[command, done(), PASS.to_owned()]);
    let Some(mut screen) = opened(&agent, 120) else {
        return;
    };
    screen.types("Delete it all\r");
    endless.begins(&agent);
    screen
        .types(ESCAPE)
        .shows("esc again to stop")
        .types(ESCAPE)
        .shows("error: stopped")
        .types("/exit\r");
    assert_eq!(screen.ends().1, 0);
    let mut screen = Screen::open(&agent.command(&["--resume"]), 120, 60).unwrap();
    screen
        .shows("> Delete it all")
        .shows("this session was not finished: say what to do next");
    assert_eq!(server.requests().len(), 1);
    screen
        .types("only this\r")
        .shows("log: logs/")
        .types("/exit\r");
    assert_eq!(screen.ends().1, 0);
}

#[test]
fn the_status_shows_the_size_of_a_summary() {
    let long = reply("DONE", &"word ".repeat(500));
    let replies = [long, PASS.to_owned(), "He wants words.".to_owned()];
    let (agent, _server) = AgentProject::scripted(&replies);
    let Some(mut screen) = opened(&agent, 120) else {
        return;
    };
    screen
        .types("go\r")
        .shows("log: logs/")
        .shows("Context: 100/")
        .types("/compact\r")
        .shows("compacted: about")
        .shows("Context: 50/")
        .types(CTRL_D);
    assert_eq!(screen.ends().1, 0);
    let mut screen = Screen::open(&agent.command(&["--resume"]), 120, 60).unwrap();
    screen.shows("Context: 50/").types(CTRL_D);
    assert_eq!(screen.ends().1, 0);
}

#[test]
fn commands_are_completed_and_an_unknown_one_is_not_sent() {
    let (agent, server) = AgentProject::scripted(&[done(), PASS.to_owned()]);
    let Some(mut screen) = opened(&agent, 100) else {
        return;
    };
    screen
        .types("/re")
        .shows("resume another session")
        .types("\u{15}/zap-it now\r")
        .shows("there is no command `/zap-it`")
        .types("/model no-such\r")
        .shows("`no-such`")
        .types("/cost\r")
        .shows("nothing spent");
    assert!(server.requests().is_empty());
    screen.types(CTRL_D);
    assert_eq!(screen.ends().1, 0);
}

#[test]
fn history_survives_the_session_and_tab_completes_paths() {
    let (agent, server) =
        AgentProject::scripted(&[done(), PASS.to_owned(), done(), PASS.to_owned()]);
    let agent = agent
        .with_file("notes/unique-name.txt", "x")
        .with_file("notes/ignored.log", "x");
    fs::write(agent.project.path(".gitignore"), "/agent-config\n*.log\n").unwrap();
    let Some(mut screen) = opened(&agent, 80) else {
        return;
    };
    screen
        .types("look at @notes/uni")
        .shows("  notes/unique-name.txt")
        .types("\t\r")
        .shows("log: logs/")
        .types(CTRL_D);
    screen.ends();
    assert!(last_told(&server, 0).contains("look at @notes/unique-name.txt"));
    let Some(mut screen) = opened(&agent, 80) else {
        return;
    };
    screen
        .types(UP)
        .shows("> look at @notes/unique-name.txt")
        .types("\r")
        .shows("log: logs/")
        .types(CTRL_D);
    screen.ends();
    assert!(last_told(&server, 2).contains("look at @notes/unique-name.txt"));
    assert!(agent.home("history").exists());
}

#[test]
fn a_picture_is_named_and_the_help_reports_what_there_is() {
    let (agent, server) = AgentProject::scripted(&[done(), PASS.to_owned()]);
    let agent = agent.with_file("x.png", "\u{89}PNG");
    let Some(mut screen) = opened(&agent, 100) else {
        return;
    };
    screen.types("/help\r").shows("Ctrl-Z");
    let contents = screen.contents();
    for unwanted in ["Shift+Tab", "Ctrl-V", "!command", "attach"] {
        assert!(!contents.contains(unwanted), "{unwanted}: {contents}");
    }
    screen
        .types("!ls\r")
        .shows("`!` runs no command here")
        .types("what is @x.png there\r")
        .shows("It is done.");
    let told = last_told(&server, 0);
    assert!(told.contains("what is @x.png there"), "{told}");
}
