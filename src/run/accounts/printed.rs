//! A key that an account's command prints.
//!
//! Runs that command. Guarantees that it is run without a shell, for a limited time, and that none of its output is
//! shown.

use std::io;
use std::time::Duration;

use crate::exec::pipes;
use crate::secret::{ApiKey, KeyProblem};
use crate::sys::environment::Clock;
use crate::sys::interrupt::Interrupt;

/// The maximum time of the command: somebody may have to unlock a keychain.
const COMMAND_TIME: Duration = Duration::from_secs(60);
/// The maximum output of the command, in bytes.
const COMMAND_OUTPUT: usize = 64 << 10;

/// Reasons a command yields no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandFailure {
    /// It could not be started, or not be listened to, in the system's words.
    #[error("cannot be run: {0}")]
    NotRun(String),
    /// It took too long.
    #[error("did not end within {} s", COMMAND_TIME.as_secs())]
    TimedOut,
    /// It failed.
    #[error("ended with {}", .0.map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}")))]
    Failed(Option<i32>),
    /// Its first line is no key.
    #[error("prints a first line that {0}")]
    NoKey(KeyProblem),
}

/// The key that a command prints as its first line.
///
/// # Errors
/// When it prints none.
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
