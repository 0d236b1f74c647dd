//! What this program and its part beside a command say to each other. Pure.
//!
//! One order goes in; lines come back. Guarantees that what is told is understood, and that an order
//! of any content up to [`LONGEST_ORDER`] arrives as it was given.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How many bytes an order has at the most, as it is sent.
pub const LONGEST_ORDER: usize = 1 << 20;

/// What is to be started, and what becomes of what it leaves running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The program and its arguments. A program without a slash is looked up in `PATH`.
    pub words: Vec<String>,
    /// What becomes of processes that are still there when the program has ended.
    pub leftovers: Leftovers,
}

/// What becomes of processes that a command leaves running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Leftovers {
    /// They stay until the line is closed.
    Stay,
    /// They have a moment, and are ended then.
    End,
}

/// How a command has ended, by the word of who started it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// It could not be started: the system's error number; 0 where there is none.
    NotStarted(i32),
    /// Whoever could tell is gone; in a sandbox, the command is gone with it.
    Lost,
}

/// What comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// All is set up: the order may be given.
    Ready,
    /// How the command has ended, and how long after its start.
    Ended(Ended, Duration),
    /// The command has ended, and so many of its processes have not: they are being ended.
    LeftBehind(u64),
}

impl Word {
    /// The line that says it, without a line end.
    #[must_use]
    pub fn to_line(self) -> String {
        match self {
            Self::Ready => "ready".to_owned(),
            Self::LeftBehind(count) => format!("left-behind {count}"),
            Self::Ended(ended, after) => {
                let (word, number) = match ended {
                    Ended::Exited(code) => ("exited", code),
                    Ended::Signaled(signal) => ("signaled", signal),
                    Ended::NotStarted(number) => ("not-started", number),
                    Ended::Lost => ("lost", 0),
                };
                format!("{word} {number} {}", after.as_millis())
            }
        }
    }

    /// Reads such a line.
    #[must_use]
    pub fn from_line(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["ready"] => Some(Self::Ready),
            ["left-behind", count] => Some(Self::LeftBehind(count.parse().ok()?)),
            [word, number, after] => {
                let number = number.parse().ok()?;
                let ended = match *word {
                    "exited" => Ended::Exited(number),
                    "signaled" => Ended::Signaled(number),
                    "not-started" => Ended::NotStarted(number),
                    "lost" => Ended::Lost,
                    _ => return None,
                };
                Some(Self::Ended(
                    ended,
                    Duration::from_millis(after.parse().ok()?),
                ))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_understood() {
        let after = Duration::from_millis(1234);
        for word in [
            Word::Ready,
            Word::LeftBehind(3),
            Word::Ended(Ended::Exited(0), Duration::ZERO),
            Word::Ended(Ended::Exited(139), after),
            Word::Ended(Ended::Signaled(11), after),
            Word::Ended(Ended::NotStarted(2), after),
            Word::Ended(Ended::Lost, after),
        ] {
            assert_eq!(Word::from_line(&word.to_line()), Some(word));
        }
    }

    #[test]
    fn nothing_else_is() {
        for line in [
            "",
            "exited",
            "exited 0",
            "exited x 1",
            "gone 0 1",
            "ready x",
        ] {
            assert_eq!(Word::from_line(line), None, "{line}");
        }
    }
}
