//! The protocol between the program and a command's supervisor. Pure.
//!
//! The program sends one request, after a byte that carries the command's pipes; the supervisor sends notices. Each is
//! one line of JSON. A request with any content of up to [`MAX_REQUEST`] bytes arrives unchanged.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use signal_hook::low_level::signal_name;

/// Maximum size of an encoded request in bytes.
pub(super) const MAX_REQUEST: usize = 1 << 20;

/// A command to start, and what happens to the processes it leaves running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SpawnRequest {
    /// Program and its arguments. A program without a slash is looked up in `PATH`.
    pub words: Vec<String>,
    pub streams: Streams,
    pub leftovers: Leftovers,
    /// Time that its processes have to end by themselves after a SIGTERM.
    pub grace: Duration,
}

/// The pipes that a command gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Streams {
    /// One pipe for both output streams and no input; then, if it may reach hosts, the line to their proxy.
    Output,
    /// Pipes for its input, output and errors.
    Three,
}

/// The fate of processes that a command leaves running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Leftovers {
    /// The processes stay until the program closes the line.
    Stay,
    /// The processes are ended after a short wait.
    End,
}

/// Status of a command that is no longer running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandStatus {
    /// The command exited with this code.
    Exited(i32),
    /// The command was killed by this signal.
    Signaled(i32),
    /// The command could not be started: `errno`, or 0 if unknown.
    NotStarted(i32),
    /// The supervisor is gone, and the command with it.
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

/// A notice from the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Notice {
    /// The supervisor is ready to receive the request.
    Ready,
    /// The command is running.
    Started,
    /// The command has ended, with its status and duration.
    Ended(CommandStatus, Duration),
    /// The command has left this many processes running; they are being ended.
    LeftBehind(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_survive_a_round_trip() {
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
            let line = serde_json::to_string(&notice).unwrap();
            assert!(!line.contains('\n'));
            assert_eq!(serde_json::from_str::<Notice>(&line).unwrap(), notice);
        }
    }

    #[test]
    fn nothing_else_is() {
        for line in ["", "exited 0", "\"Gone\"", "{\"LeftBehind\":\"x\"}"] {
            assert!(serde_json::from_str::<Notice>(line).is_err(), "{line}");
        }
    }
}
