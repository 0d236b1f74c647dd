//! How commands stand: what is told of those that run, and of those that have ended. Pure.

use std::time::Duration;

use signal_hook::low_level::signal_name;

/// How many characters of a command are shown in a list.
const SHOWN: usize = 100;

/// How a command has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// Its keeper is gone, and the command with it.
    Lost,
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code: {code}"),
            Self::Signaled(signal) => {
                let name = signal_name(*signal).unwrap_or("unknown");
                write!(f, "signal: {signal} ({name})")
            }
            Self::Lost => f.write_str("ended: nobody can tell how"),
        }
    }
}

/// Whether a command still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It does.
    Running,
    /// It does not.
    Ended(Status),
}

/// A command that was put in the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Whether it still runs.
    pub standing: Standing,
    /// The command, as it was given.
    pub command: String,
    /// How long it took, or has taken so far.
    pub took: Duration,
    /// What it has printed so far.
    pub output: String,
}

/// The same in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub id: String,
    /// Whether it still runs.
    pub standing: Standing,
    /// How long it took, or has taken so far.
    pub took: Duration,
    /// The command in one line, cut where it is long.
    pub command: String,
}

/// A command for a list.
pub(super) fn in_one_line(command: &str) -> String {
    let line = command.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_shows_a_command_in_one_line() {
        for (command, shown) in [
            ("ls", "ls".to_owned()),
            (
                "for i in 1 2\n  do x\ndone",
                "for i in 1 2 do x done".to_owned(),
            ),
            (&"é".repeat(101), format!("{}…", "é".repeat(100))),
        ] {
            assert_eq!(in_one_line(command), shown);
        }
    }
}
