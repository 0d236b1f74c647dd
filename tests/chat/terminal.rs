//! The screens that the tests read: what is typed reaches the program, and what it draws is to be seen.

use crate::support::TestProject;
use crate::support::screen::Screen;

#[test]
fn a_screen_shows_what_is_drawn_takes_keys_and_can_be_resized() {
    let project = TestProject::new().program(
        "draw.sh",
        "#!/bin/sh\nprintf '\\033[2J\\033[3;5Hthere'\nread line\nprintf \"got $line\"\nread line\nstty size\nread line\nexit 7\n",
    );
    let mut command = std::process::Command::new(project.path("draw.sh"));
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
