//! The program in tmux: a terminal that answers queries, and that a shell takes back at the end.

use std::process::{Command, Output};

use tempfile::TempDir;

use super::{skipped, within_a_minute};

/// A window of tmux with a shell in it, on a server of its own.
pub struct Tmux {
    socket: TempDir,
}

impl Tmux {
    /// Opens a window of this size, whose shell has the command's directory and environment.
    pub fn open(program: &Command, columns: u16, rows: u16) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            skipped("there is no `tmux`");
            return None;
        }
        let tmux = Self {
            socket: tempfile::tempdir().unwrap(),
        };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let mut command = tmux.command(&["-f", "/dev/null", "new-session", "-d"]);
        command
            .args(["-x", &columns, "-y", &rows, "PS1='prompt> ' exec sh"])
            .current_dir(program.get_current_dir().unwrap())
            .env_clear()
            .envs([("TERM", "xterm-256color"), ("LC_ALL", "C.UTF-8")])
            .envs(
                program
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            );
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        tmux.shows("prompt>");
        Some(tmux)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command
            .arg("-S")
            .arg(self.socket.path().join("socket"))
            .args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Returns the ID of the process that the shell runs.
    pub fn process(&self) -> String {
        let shell = self.run(&["display-message", "-p", "#{pane_pid}"]).stdout;
        let shell = String::from_utf8(shell).unwrap();
        let children = format!("/proc/{0}/task/{0}/children", shell.trim());
        std::fs::read_to_string(children).unwrap().trim().to_owned()
    }

    /// Returns the visible text.
    pub fn contents(&self) -> String {
        let output = self.run(&["capture-pane", "-p"]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Waits until this text is visible.
    #[track_caller]
    pub fn shows(&self, text: &str) -> &Self {
        let shown = within_a_minute(|| self.contents().contains(text));
        assert!(shown, "no {text:?} on\n{}", self.contents());
        self
    }

    /// Types this text.
    pub fn types(&self, text: &str) -> &Self {
        self.run(&["send-keys", "-l", text]);
        self
    }

    /// Presses these keys, given by tmux's names, together.
    pub fn presses(&self, keys: &[&str]) -> &Self {
        self.run(&[&["send-keys"], keys].concat());
        self
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}
