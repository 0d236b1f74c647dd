//! The program in a terminal, with a simulated user who types.

use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use bstr::ByteSlice as _;

use super::skipped;

/// Runs the command in a terminal of this width. Types the second of each pair once the first is visible, since input
/// before the prompt would be lost. Returns all output and the exit code; `None` if no terminal can be created.
pub fn in_terminal(
    program: &Command,
    columns: usize,
    typed: &[(&str, &str)],
) -> Option<(String, i32)> {
    let mut terminal = Terminal::open(program, columns, "")?;
    for (awaited, keys) in typed {
        terminal.types(awaited, keys);
    }
    Some(terminal.end())
}

/// A terminal in which the program runs.
pub struct Terminal {
    child: Child,
    keyboard: ChildStdin,
    screen: ChildStdout,
    shown: Vec<u8>,
    /// The length of the output that was already awaited.
    seen: usize,
}

/// Starts a shell in a terminal of this size, which runs `first` and then becomes the command, with `behind` appended
/// as shell code; `None` if no terminal can be created.
pub fn in_script(
    program: &Command,
    columns: usize,
    rows: usize,
    first: &str,
    behind: &str,
) -> Option<Child> {
    if Command::new("script").arg("--version").output().is_err() {
        skipped("there is no `script`");
        return None;
    }
    let words = std::iter::once(program.get_program()).chain(program.get_args());
    let words = shlex::try_join(words.map(|word| word.to_str().unwrap())).unwrap();
    let run = format!("stty cols {columns} rows {rows}; {first}; exec {words} {behind}");
    // If a prompt never comes, the test fails instead of waiting.
    let child = Command::new("timeout")
        .args(["240", "script", "--quiet", "--return", "--command", &run])
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
        .stdout(Stdio::piped())
        .spawn();
    Some(child.unwrap())
}

impl Terminal {
    /// Starts a shell that becomes the command, with `behind` appended as shell code.
    pub fn open(program: &Command, columns: usize, behind: &str) -> Option<Self> {
        let mut child = in_script(program, columns, 50, ":", behind)?;
        Some(Self {
            keyboard: child.stdin.take().unwrap(),
            screen: child.stdout.take().unwrap(),
            child,
            shown: Vec::new(),
            seen: 0,
        })
    }

    /// Types `keys` once `awaited` appears in the output since the last call.
    pub fn types(&mut self, awaited: &str, keys: &str) {
        self.seen += loop {
            if let Some(at) = self.shown[self.seen..].find(awaited) {
                break at + awaited.len();
            }
            let more = self.read();
            assert!(more, "no {awaited:?} in {}", self.shown.as_bstr());
        };
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Returns all output until the program ends, and the exit code.
    pub fn end(mut self) -> (String, i32) {
        while self.read() {}
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        (String::from_utf8_lossy(&self.shown).into_owned(), code)
    }

    fn read(&mut self) -> bool {
        let mut piece = [0; 4096];
        let length = self.screen.read(&mut piece).unwrap();
        self.shown.extend(&piece[..length]);
        length > 0
    }
}
