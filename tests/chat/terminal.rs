//! The screens that the tests read: what is typed reaches the program, and what it draws is to be seen.

use std::process::Command;

use crate::support::TestProject;
use crate::support::anthropic::{say, silence};
use crate::support::chat::ChatProject;
use crate::support::screen::Screen;
use crate::support::tmux::Tmux;

#[test]
fn a_screen_shows_what_is_drawn_takes_keys_and_can_be_resized() {
    let project = TestProject::new().program(
        "draw.sh",
        "#!/bin/sh\nprintf '\\033[2J\\033[3;5Hthere'\nread line\nprintf \"got $line\"\nread line\nstty size\nread line\nexit 7\n",
    );
    let mut command = Command::new(project.path("draw.sh"));
    command
        .current_dir(project.path(""))
        .env("PATH", std::env::var_os("PATH").unwrap());
    let Some(mut screen) = Screen::open(&command, 40, 10) else {
        return;
    };
    screen.shows("there").types("hello\n").shows("got hello");
    let drawn = screen.contents();
    assert!(drawn.starts_with("\n\n    there"), "{drawn}");
    screen.resize(60, 20).types("\n").shows("20 60").types("\n");
    assert_eq!(screen.ends().1, 7);
}

#[test]
fn in_tmux_a_chat_is_stopped_ended_and_killed_and_the_shell_has_its_terminal_again() {
    let (reply, gate) = say("Half a sentence").hold_at_the_end();
    let (killed, at_kill) = silence();
    let (chat, _server) = ChatProject::scripted([say("Hello **there**."), reply, killed]);
    let command = chat.command(&[]);
    let Some(tmux) = Tmux::open(&command, 100, 30) else {
        return;
    };
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words = shlex::try_join(words.map(|word| word.to_str().unwrap())).unwrap();
    tmux.types(&words).presses(&["Enter"]).shows("Regular Mode");
    tmux.types("hi").presses(&["Enter"]).shows("Hello there.");
    tmux.presses(&["BTab"]).shows("Auto-Pilot Mode");
    tmux.types("go").presses(&["Enter"]);
    gate.reached();
    tmux.shows("Half a sentence");
    // Both arrive together.
    tmux.presses(&["Escape", "Escape"])
        .shows("Agent stopped by user");
    tmux.presses(&["C-d"])
        .shows("code-commit chat --session")
        .shows("prompt>");
    tmux.types("echo $((6 * 7))")
        .presses(&["Enter"])
        .shows("42");
    // What a SIGTERM ends, it gives back, too.
    tmux.types(&format!("{words} --resume; stty -a"))
        .presses(&["Enter"])
        .shows("Hello there.");
    tmux.types("and?").presses(&["Enter"]);
    at_kill.reached();
    let process = tmux.process();
    let kill = Command::new("kill").arg(process).status();
    assert!(kill.unwrap().success());
    tmux.shows(" icanon").shows(" echo ");
}

/// Keys and mice of all kinds, but for those that end it.
const KEYS: [&str; 28] = [
    "a",
    "Z",
    " ",
    "y",
    "n",
    "/",
    "/m",
    "!",
    "@",
    "\\",
    "é",
    "你",
    "👧🏽",
    "\r",
    "\n",
    "\t",
    "\x7f",
    "\x1b",
    "\x1b\x1b",
    "\x1b[A",
    "\x1b[B",
    "\x1b[D",
    "\x1b[5~",
    "\x1b[Z",
    "\x0f",
    "\x12",
    "\x15",
    "\x1b[<64;3;4M",
];

#[test]
fn whatever_keys_are_pressed_the_program_lives_and_gives_the_terminal_back() {
    let (chat, server) = ChatProject::scripted([]);
    // It is about the screen: a request needs a key, and no command runs.
    server.takes_faults();
    let chat = chat.without_key().with_file(
        ".agent/permissions.json",
        r#"{"version": 1, "permissions": [{"tool": "execute_command", "action": "never"}]}"#,
    );
    let Some(mut screen) = Screen::open(&chat.command(&[]), 80, 24) else {
        return;
    };
    screen.shows("Regular Mode");
    // Always the same ones, without an order.
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for nth in 0..600 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let at = usize::try_from(random % KEYS.len() as u64).unwrap();
        screen.types(KEYS[at]);
        match nth % 97 {
            40 => drop(screen.resize(40, 10)),
            80 => drop(screen.resize(120, 30)),
            _ => {}
        }
    }
    // Of the commands that are completed, one leaves.
    screen.is_signalled("TERM");
    let (shown, code) = screen.ends();
    assert!([0, 143].contains(&code), "{code}: {shown}");
    assert!(!shown.contains("panicked"), "{shown}");
}
