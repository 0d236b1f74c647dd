//! The terminal: input reaches its recipient, output is visible, and failures are reported.

use std::process::Command;

use serde_json::json;

use crate::support::TestProject;
use crate::support::anthropic::{KEY, say, silence};
use crate::support::chat::ChatProject;
use crate::support::screen::{CTRL_C, CTRL_D, CTRL_G, ESCAPE, Screen};
use crate::support::terminal::Terminal;
use crate::support::tmux::Tmux;
use crate::support::{BUBBLEWRAP, bubblewrap_works, within_a_minute};

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

/// A chat started by a shell in tmux, and the words of its command.
fn begun(chat: &ChatProject, columns: u16, rows: u16) -> Option<(Tmux, String)> {
    let command = chat.command(&[]);
    let tmux = Tmux::open(&command, columns, rows)?;
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words = shlex::try_join(words.map(|word| word.to_str().unwrap())).unwrap();
    tmux.types(&words).presses(&["Enter"]).shows("Regular Mode");
    Some((tmux, words))
}

/// The same after the chat has shown its greeting.
fn greeted(chat: &ChatProject) -> Option<(Tmux, String)> {
    let (tmux, words) = begun(chat, 100, 30)?;
    tmux.types("hi").presses(&["Enter"]).shows("Hello there.");
    Some((tmux, words))
}

#[test]
fn in_tmux_a_chat_is_stopped_ended_and_killed_and_the_shell_has_its_terminal_again() {
    let (reply, gate) = say("Half a sentence").hold_at_the_end();
    let (killed, at_kill) = silence();
    let (chat, _server) = ChatProject::scripted([say("Hello **there**."), reply, killed]);
    let Some((tmux, words)) = greeted(&chat) else {
        return;
    };
    tmux.presses(&["BTab"]).shows("Auto-Pilot Mode");
    tmux.types("go").presses(&["Enter"]);
    gate.reached();
    tmux.shows("Half a sentence");
    // Both keys arrive together.
    tmux.presses(&["Escape", "Escape"])
        .shows("Agent stopped by user");
    tmux.presses(&["C-d"])
        .shows("code-commit chat --session")
        .shows("prompt>");
    tmux.types("echo $((6 * 7))")
        .presses(&["Enter"])
        .shows("42");
    // After SIGTERM, the terminal is restored too.
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

#[test]
fn a_shell_has_the_terminal_while_a_chat_is_stopped() {
    let (chat, _server) = ChatProject::scripted([say("Hello **there**."), say("Again.")]);
    let Some((tmux, _)) = greeted(&chat) else {
        return;
    };
    let stop = || {
        let process = tmux.process();
        let kill = Command::new("kill").args(["-TSTP", &process]).status();
        assert!(kill.unwrap().success());
    };
    let ctrl_z = || {
        tmux.presses(&["C-z"]);
    };
    for (by, sum, is_stopped) in [
        ("6 * 7", "42", &ctrl_z as &dyn Fn()),
        ("7 * 7", "49", &stop),
    ] {
        is_stopped();
        // The terminal handles Enter and output as before.
        tmux.shows("prompt>")
            .types(&format!("stty -a; echo $(({by}))"))
            .presses(&["Enter"])
            .shows(sum)
            .shows(" icanon");
        tmux.types("fg").presses(&["Enter"]).shows("Regular Mode");
    }
    tmux.types("and?").presses(&["Enter"]).shows("Again.");
}

#[test]
fn in_a_container_of_another_session_there_is_no_shell_to_stop_for() {
    const CTRL_Z: &str = "\u{1a}";
    if !bubblewrap_works() {
        return;
    }
    let (chat, _server) = ChatProject::scripted([say("Hello there.")]);
    let inside = chat.command(&[]);
    let mut command = Command::new(BUBBLEWRAP[0]);
    command
        .args(&BUBBLEWRAP[1..])
        .arg(inside.get_program())
        .args(inside.get_args())
        .current_dir(inside.get_current_dir().unwrap())
        .envs(
            inside
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
    let Some(mut screen) = Screen::open(&command, 100, 30) else {
        return;
    };
    screen
        .shows("Regular Mode")
        .types(CTRL_Z)
        .types("hi\r")
        .shows("Hello there.");
}

#[test]
fn no_letter_stays_on_the_screen_whatever_width_the_terminal_gives_it() {
    let letters = "A தமிழ் நான் বাংলা ಕನ್ನಡ မြန်မာ हिन्दी 🇪🇸 👍🏽 ❤️ |";
    let plain: String = (1..=60).map(|nth| format!("- plain {nth}\n")).collect();
    let replies = (1..=4).map(|nth| say(format!("{nth} {letters}\n\n- x\n- {letters}")));
    let (chat, _server) = ChatProject::scripted(replies.chain([say(&plain)]));
    let Some((tmux, _)) = begun(&chat, 60, 20) else {
        return;
    };
    for last in ["1 A", "2 A", "3 A", "4 A", "plain 60"] {
        tmux.types("go").presses(&["Enter"]).shows(last);
    }
    let is_gone = || {
        let is_of_them = |c: char| matches!(c, '\u{900}'..='\u{109f}' | '\u{1f000}'..);
        !tmux.contents().contains(is_of_them)
    };
    assert!(within_a_minute(is_gone), "{}", tmux.contents());
}

#[test]
fn long_replies_open_in_the_pager_and_leave_the_shells_screen_alone() {
    let reply: String = (1..=3000).map(|nth| format!("- item {nth}\n")).collect();
    let (chat, _server) = ChatProject::scripted([say("Short."), say(&reply)]);
    let mut command = chat.command(&[]);
    command.env("PAGER", "less").env("LESS", "FRX");
    let Some(mut screen) = Screen::open(&command, 100, 40) else {
        return;
    };
    screen
        .shows("Regular Mode")
        .types("see @src/no-such.rs\r")
        .shows("nothing is attached for `@src/no-such.rs`: there is no such file")
        .shows("Short.");
    // The text is shorter than the screen, and stays.
    screen
        .types("/transcript\r")
        .shows("### Agent")
        .shows("(END)")
        .hides("system-reminder")
        .types("q")
        .shows("Regular Mode");
    screen
        .types("/permissions\r")
        .shows("These are the defaults: there is no")
        .types("all\r")
        .shows("item 3000")
        .types(CTRL_D);
    let (shown, code) = screen.ends();
    assert_eq!(code, 0);
    assert!(
        shown.contains("[2,976 lines before: `/transcript` has all]"),
        "{shown}"
    );
    assert!(shown.contains("- item 3000"), "{shown}");
}

#[test]
fn keys_pressed_in_an_editor_do_not_reach_the_program() {
    const CTRL_BACKSLASH: &str = "\u{1c}";
    let (reply, gate) = say("Done.").hold_at_the_end();
    let (chat, _server) = ChatProject::scripted([reply]);
    let mut command = chat.command(&[]);
    let editor = "trap 'touch stopped' INT; trap 'touch quit' QUIT; touch edited; \
                  until test -e stopped -a -e quit; do sleep 0.05; done; exit 0";
    command.env("EDITOR", format!("sh -c \"{editor}\""));
    let Some(mut screen) = Screen::open(&command, 100, 30) else {
        return;
    };
    screen.shows("Mode").types("go\r");
    gate.reached();
    screen.types("x").shows("> x").types(CTRL_G);
    for (keys, expected) in [
        ("", "edited"),
        (CTRL_C, "stopped"),
        (CTRL_BACKSLASH, "quit"),
    ] {
        screen.types(keys);
        let path = chat.project.path(expected);
        assert!(within_a_minute(|| path.exists()), "{expected}");
    }
    assert!(within_a_minute(|| screen.modes().contains("-icanon")));
    drop(gate);
    screen.shows("Done.");
    assert!(
        !screen.contents().contains("stopped"),
        "{}",
        screen.contents()
    );
    // From now on Ctrl-C counts again.
    screen.types(CTRL_C).hides("> x").signal("INT");
    screen.signal("QUIT");
    assert_eq!(screen.ends().1, 131);
}

#[test]
fn escape_stops_nothing_while_another_account_is_set_up() {
    let (chat, _server) = ChatProject::scripted([say("Hello.")]);
    let wait = format!("touch asked; until test -e go; do sleep 0.05; done; echo {KEY}");
    let accounts = json!({"version": 1, "active": "own", "accounts": [
        {"name": "own", "api_key": KEY},
        {"name": "slow", "api_key_command": ["sh", "-c", wait]},
    ]});
    let chat = chat
        .without_key()
        .with_setting("auth.json", &accounts.to_string());
    let Some(mut screen) = Screen::open(&chat.command(&[]), 120, 30) else {
        return;
    };
    screen.shows("Mode").types("/login slow\r");
    let asked = chat.project.path("asked");
    assert!(within_a_minute(|| asked.exists()));
    screen.types(ESCAPE).rests().types(ESCAPE).rests();
    std::fs::write(chat.project.path("go"), "").unwrap();
    screen.shows("Signed in as slow");
    screen.types("hi\r").shows("Hello.");
}

#[test]
fn a_terminal_that_fails_says_why_also_while_all_is_set_up() {
    let (chat, _server) = ChatProject::scripted([]);
    let accounts = json!({"version": 1, "active": "slow", "accounts": [
        {"name": "slow", "api_key_command": ["sleep", "600"]},
    ]});
    let chat = chat
        .without_key()
        .with_setting("auth.json", &accounts.to_string());
    // The terminal's settings can be changed, but not read.
    let Some(mut terminal) = Terminal::open(&chat.command(&[]), 100, "0>/dev/tty") else {
        return;
    };
    terminal.types("Mode", "x");
    let (shown, code) = terminal.end();
    assert!(shown.contains("Bad file descriptor"), "{shown}");
    assert_ne!(code, 130);
}

/// Keys and mouse events of all kinds, except those that end the program.
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
fn program_survives_any_keys_and_restores_the_terminal() {
    let (chat, server) = ChatProject::scripted([]);
    // Only the screen is tested: requests lack a key, and no command runs.
    server.takes_faults();
    let chat = chat.without_key().with_file(
        ".agent/permissions.json",
        r#"{"version": 1, "permissions": [{"tool": "execute_command", "action": "never"}]}"#,
    );
    let Some(mut screen) = Screen::open(&chat.command(&[]), 80, 24) else {
        return;
    };
    screen.shows("Regular Mode");
    // A pseudo-random sequence that is always the same.
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
    // One of the completed commands exits the chat.
    screen.is_signalled("TERM");
    let (shown, code) = screen.ends();
    assert!([0, 143].contains(&code), "{code}: {shown}");
    assert!(!shown.contains("panicked"), "{shown}");
}
