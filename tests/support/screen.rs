//! The program on a full screen, with a simulated user who reads and types.
//!
//! Input goes through a terminal of the system; output is interpreted by a terminal in memory.

use std::fs;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::terminal::in_script;

pub const ESCAPE: &str = "\u{1b}";
pub const SHIFT_TAB: &str = "\u{1b}[Z";
pub const UP: &str = "\u{1b}[A";
pub const DOWN: &str = "\u{1b}[B";
pub const CTRL_C: &str = "\u{3}";
pub const CTRL_D: &str = "\u{4}";
pub const CTRL_G: &str = "\u{7}";
pub const CTRL_J: &str = "\n";

/// The maximum wait for something to appear.
const DEADLINE: Duration = Duration::from_mins(1);

/// A time longer than the pause after which typing no longer counts as typing ahead.
const REST: Duration = Duration::from_millis(1200);

/// A screen on which the program draws.
pub struct Screen {
    child: Child,
    keyboard: Option<ChildStdin>,
    drawn: Receiver<Vec<u8>>,
    terminal: vt100::Parser,
    /// All bytes that were drawn.
    pub bytes: Vec<u8>,
    /// The directory of the files with the terminal's name and the program's process ID.
    notes: TempDir,
}

impl Screen {
    /// Starts the command on a screen of this size; `None` if no terminal can be created.
    pub fn open(program: &Command, columns: u16, rows: u16) -> Option<Self> {
        let notes = tempfile::tempdir().unwrap();
        let note = |name: &str| notes.path().join(name).to_str().unwrap().to_owned();
        let first = format!("tty > {}; echo $$ > {}", note("tty"), note("pid"));
        let mut child = in_script(program, columns.into(), rows.into(), &first, "")?;
        let mut stdout = child.stdout.take().unwrap();
        let (sender, drawn) = channel();
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = stdout.read(&mut piece) {
                if sender.send(piece[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Some(Self {
            keyboard: child.stdin.take(),
            child,
            drawn,
            terminal: vt100::Parser::new(size(rows), size(columns), 1000),
            bytes: Vec::new(),
            notes,
        })
    }

    /// Returns the visible text, one line per row, as of the last wait.
    pub fn contents(&self) -> String {
        let (_, columns) = self.terminal.screen().size();
        let rows = self.terminal.screen().rows(0, columns.get());
        rows.map(|row| format!("{}\n", row.trim_end())).collect()
    }

    /// Waits until this text is visible.
    #[track_caller]
    pub fn shows(&mut self, text: &str) -> &mut Self {
        self.until(&format!("{text:?} to be seen"), |contents| {
            contents.contains(text)
        })
    }

    /// Waits until this text is no longer visible.
    #[track_caller]
    pub fn hides(&mut self, text: &str) -> &mut Self {
        self.until(&format!("{text:?} to be gone"), |contents| {
            !contents.contains(text)
        })
    }

    /// Waits until the visible text satisfies the condition.
    #[track_caller]
    pub fn until(&mut self, what: &str, is_so: impl Fn(&str) -> bool) -> &mut Self {
        let began = Instant::now();
        while !is_so(&self.contents()) {
            let left = DEADLINE.saturating_sub(began.elapsed());
            let drew = self.draws_within(left);
            assert!(
                drew,
                "waited in vain for {what} on\n{}\nwith {:?}",
                self.contents(),
                self.child.try_wait()
            );
        }
        self
    }

    /// Waits at most this long for something to be drawn; returns whether it was.
    pub fn draws_within(&mut self, time: Duration) -> bool {
        let piece = self.drawn.recv_timeout(time);
        piece.map(|piece| self.draw(piece)).is_ok()
    }

    fn draw(&mut self, piece: Vec<u8>) {
        self.terminal.process(&piece);
        self.bytes.extend(piece);
    }

    /// Reads for a while, since a key that immediately follows another one answers no question.
    pub fn rests(&mut self) -> &mut Self {
        let began = Instant::now();
        while began.elapsed() < REST {
            self.draws_within(REST.saturating_sub(began.elapsed()));
        }
        self
    }

    /// Types these keys.
    pub fn types(&mut self, keys: &str) -> &mut Self {
        let keyboard = self.keyboard.as_mut().unwrap();
        keyboard.write_all(keys.as_bytes()).unwrap();
        keyboard.flush().unwrap();
        self
    }

    /// Pastes this text as terminals do.
    pub fn pastes(&mut self, text: &str) -> &mut Self {
        self.types(&format!("\u{1b}[200~{text}\u{1b}[201~"))
    }

    /// Resizes the screen.
    pub fn resize(&mut self, columns: u16, rows: u16) -> &mut Self {
        let tty = fs::read_to_string(self.notes.path().join("tty")).unwrap();
        let (rows_text, columns_text) = (rows.to_string(), columns.to_string());
        let status = Command::new("stty")
            .args(["-F", tty.trim(), "rows", &rows_text, "cols", &columns_text])
            .status();
        assert!(status.unwrap().success());
        self.terminal.set_size(size(rows), size(columns));
        self
    }

    /// Returns the terminal's settings as shown by `stty -a`.
    pub fn modes(&self) -> String {
        let tty = fs::read_to_string(self.notes.path().join("tty")).unwrap();
        let told = Command::new("stty").args(["-a", "-F", tty.trim()]).output();
        String::from_utf8(told.unwrap().stdout).unwrap()
    }

    /// Changes a terminal setting with `stty`, as another program might.
    pub fn sets(&self, word: &str) {
        let tty = fs::read_to_string(self.notes.path().join("tty")).unwrap();
        let status = Command::new("stty").args(["-F", tty.trim(), word]).status();
        assert!(status.unwrap().success());
    }

    /// Sends the program a signal such as `TERM`.
    pub fn signal(&self, name: &str) {
        assert!(self.is_signalled(name));
    }

    /// Sends a signal to a program that may have ended; returns whether it was still running.
    pub fn is_signalled(&self, name: &str) -> bool {
        let process = fs::read_to_string(self.notes.path().join("pid")).unwrap();
        let status = Command::new("kill")
            .args(["-s", name, process.trim()])
            .status();
        status.unwrap().success()
    }

    /// Waits for the end; returns the visible text then, and the exit code.
    #[track_caller]
    pub fn ends(mut self) -> (String, i32) {
        let began = Instant::now();
        loop {
            let left = DEADLINE.saturating_sub(began.elapsed());
            match self.drawn.recv_timeout(left) {
                Ok(piece) => self.draw(piece),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end\n{}", self.contents()),
            }
        }
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        (self.contents(), code)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Closes the terminal, which sends SIGHUP to a running program. Without its program, `script` ends at once; if
        // killed itself, it leaves both behind.
        self.keyboard = None;
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        if let Ok(process) = fs::read_to_string(self.notes.path().join("pid")) {
            let kill = ["-s", "KILL", process.trim()];
            let _ = Command::new("kill")
                .args(kill)
                .stderr(Stdio::null())
                .status();
        } else {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

fn size(length: u16) -> NonZeroU16 {
    NonZeroU16::new(length).unwrap()
}
