//! Account keys that are printed by a command.
//!
//! Runs that command. Guarantees that it runs without a shell and within a time limit, and that none of its output is
//! shown.

use std::io;
use std::time::Duration;

use crate::exec::pipes;
use crate::secret::ApiKey;
use crate::sys::environment::Clock;
use crate::sys::interrupt::Interrupt;

/// Time limit for the command; long enough for the user to unlock a keychain.
const COMMAND_TIME: Duration = Duration::from_mins(1);
/// Maximum output of the command, in bytes.
const COMMAND_OUTPUT: usize = 64 << 10;

/// Runs a command and returns the key that it prints as its first line.
///
/// # Errors
/// Words to follow the command's name that say what went wrong, without any of its output.
pub fn key(words: &[String], clock: &dyn Clock, interrupt: &Interrupt) -> Result<ApiKey, String> {
    let deadline = clock.elapsed() + COMMAND_TIME;
    let left = || deadline.saturating_sub(clock.elapsed());
    let run = pipes::output(words, COMMAND_OUTPUT, interrupt, &left);
    let (output, code) = run.map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => format!("did not end within {} s", COMMAND_TIME.as_secs()),
        _ => format!("cannot be run: {error}"),
    })?;
    match code {
        Some(0) => {}
        Some(code) => return Err(format!("ended with exit code {code}")),
        None => return Err("ended with a signal".to_owned()),
    }
    let line = output.split(|byte| *byte == b'\n').next();
    ApiKey::parse(line.unwrap_or_default())
        .map_err(|problem| format!("prints a first line that {problem}"))
}

#[cfg(test)]
mod tests;
