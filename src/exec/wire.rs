//! The protocol between the program and a command's supervisor. Pure.
//!
//! One request goes in, after a byte that carries the pipes for the command; notices come back. Each is a line of
//! JSON. A request of any content up to [`MAX_REQUEST`] arrives as it was given.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use signal_hook::low_level::signal_name;

/// The largest request, in bytes, as it is sent.
pub(super) const MAX_REQUEST: usize = 1 << 20;

/// A command to start, and the fate of what it leaves running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SpawnRequest {
    /// The program and its arguments. A program without a slash is looked up in `PATH`.
    pub words: Vec<String>,
    pub streams: Streams,
    pub leftovers: Leftovers,
    /// The time that its processes have to end by themselves after a SIGTERM.
    pub grace: Duration,
}

/// The pipes that a command gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Streams {
    /// One for what it prints on both streams; then, if it may reach hosts, the line to their proxy. It has no input.
    Output,
    /// Its input, its output and its errors.
    Three,
}

/// The fate of processes that a command leaves running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Leftovers {
    /// They stay until the program closes the line.
    Stay,
    /// They have a moment, and are ended then.
    End,
}

/// A command's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandStatus {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// It could not be started: the system's error number, 0 where there is none.
    NotStarted(i32),
    /// Its supervisor is gone, and the command with it.
    Lost,
}

impl fmt::Display for CommandStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code: {code}"),
            Self::Signaled(signal) => {
                let name = signal_name(*signal).unwrap_or("unknown");
                write!(f, "signal: {signal} ({name})")
            }
            Self::NotStarted(_) | Self::Lost => f.write_str("ended: nobody can tell how"),
        }
    }
}

/// A supervisor's notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Notice {
    /// All is set up: the request may come.
    Ready,
    /// The command runs.
    Started,
    /// The command's end, and its duration.
    Ended(CommandStatus, Duration),
    /// The command has ended, and so many of its processes have not: they are being ended.
    LeftBehind(u64),
}

impl Notice {
    /// The line that says it, without a line end.
    pub fn to_line(self) -> String {
        serde_json::to_string(&self).unwrap_or_default()
    }

    /// Reads such a line.
    pub fn from_line(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_understood() {
        let after = Duration::from_millis(1234);
        for notice in [
            Notice::Ready,
            Notice::Started,
            Notice::LeftBehind(3),
            Notice::Ended(CommandStatus::Exited(0), Duration::ZERO),
            Notice::Ended(CommandStatus::Exited(139), after),
            Notice::Ended(CommandStatus::Signaled(11), after),
            Notice::Ended(CommandStatus::NotStarted(2), after),
            Notice::Ended(CommandStatus::Lost, after),
        ] {
            let line = notice.to_line();
            assert!(!line.contains('\n'));
            assert_eq!(Notice::from_line(&line), Some(notice));
        }
    }

    #[test]
    fn nothing_else_is() {
        for line in ["", "exited 0", "\"Gone\"", "{\"LeftBehind\":\"x\"}"] {
            assert_eq!(Notice::from_line(line), None, "{line}");
        }
    }
}
