//! The program in a terminal, and somebody who types.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use bstr::ByteSlice as _;

use super::skipped;

/// Runs the command in a terminal of so many columns. Of each pair, the second is typed when the first is seen: what is
/// typed before the prompt is there would be lost. All that was shown, until it ends, and the exit code; `None` where no
/// terminal can be made.
pub fn in_terminal(
    program: &Command,
    columns: usize,
    typed: &[(&str, &str)],
) -> Option<(String, i32)> {
    if Command::new("script").arg("--version").output().is_err() {
        skipped("there is no `script`");
        return None;
    }
    let words = std::iter::once(program.get_program()).chain(program.get_args());
    let words = shlex::try_join(words.map(|word| word.to_str().unwrap())).unwrap();
    let run = format!("stty cols {columns} rows 50; exec {words}");
    // A prompt that never comes is a failure, not a wait.
    let mut command = Command::new("timeout");
    command
        .args(["60", "script", "--quiet", "--return", "--command", &run])
        .arg("/dev/null")
        .current_dir(program.get_current_dir().unwrap())
        .env_clear()
        .envs([("TERM", "xterm-256color"), ("SHELL", "/bin/sh")])
        .envs(
            program
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut keyboard = child.stdin.take().unwrap();
    let mut screen = child.stdout.take().unwrap();
    let (mut shown, mut seen) = (Vec::new(), 0);
    let mut read = |shown: &mut Vec<u8>| {
        let mut piece = [0; 4096];
        let length = screen.read(&mut piece).unwrap();
        shown.extend(&piece[..length]);
        length > 0
    };
    for (awaited, keys) in typed {
        seen += loop {
            if let Some(at) = shown[seen..].find(awaited) {
                break at + awaited.len();
            }
            assert!(read(&mut shown), "no {awaited:?} in {}", shown.as_bstr());
        };
        keyboard.write_all(keys.as_bytes()).unwrap();
    }
    while read(&mut shown) {}
    let code = child.wait().unwrap().code().unwrap_or(-1);
    Some((String::from_utf8_lossy(&shown).into_owned(), code))
}
