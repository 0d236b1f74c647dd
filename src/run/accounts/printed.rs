//! Account keys that are printed by a command.
//!
//! Runs that command. Guarantees that it runs without a shell and within a time limit, and that none of its output is
//! shown.

use std::io;
use std::time::Duration;

use crate::exec::pipes;
use crate::secret::{ApiKey, KeyProblem};
use crate::sys::environment::Clock;
use crate::sys::interrupt::Interrupt;

/// Time limit for the command; long enough for the user to unlock a keychain.
const COMMAND_TIME: Duration = Duration::from_secs(60);
/// Maximum output of the command, in bytes.
const COMMAND_OUTPUT: usize = 64 << 10;

/// Errors from running a command that should print a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandFailure {
    /// The command could not be started, or its output could not be read; holds the system's message.
    #[error("cannot be run: {0}")]
    NotRun(String),
    /// The command exceeded the time limit.
    #[error("did not end within {} s", COMMAND_TIME.as_secs())]
    TimedOut,
    /// The command exited with this code, or was killed by a signal (`None`).
    #[error("ended with {}", .0.map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}")))]
    Failed(Option<i32>),
    /// The first line of the output is not a key.
    #[error("prints a first line that {0}")]
    NoKey(KeyProblem),
}

/// Runs a command and returns the key that it prints as its first line.
///
/// # Errors
/// Fails if it fails or prints no key.
pub fn key(
    words: &[String],
    clock: &dyn Clock,
    interrupt: &Interrupt,
) -> Result<ApiKey, CommandFailure> {
    let deadline = clock.elapsed() + COMMAND_TIME;
    let left = || deadline.saturating_sub(clock.elapsed());
    let run = pipes::output(words, COMMAND_OUTPUT, interrupt, &left);
    let (output, code) = run.map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => CommandFailure::TimedOut,
        _ => CommandFailure::NotRun(error.to_string()),
    })?;
    if code != Some(0) {
        return Err(CommandFailure::Failed(code));
    }
    let line = output.split(|byte| *byte == b'\n').next();
    ApiKey::parse(line.unwrap_or_default()).map_err(CommandFailure::NoKey)
}

#[cfg(test)]
mod tests;
