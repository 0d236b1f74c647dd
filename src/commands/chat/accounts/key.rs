//! The API key that the agent at the terminal works with, and where it comes from.
//!
//! Reads the environment and the accounts, and runs the command of an account that has one. Guarantees that such a
//! command is run without a shell, for a limited time, and that nothing of what it prints is told.

use std::io;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::{Accounts, Credential};
use crate::exec::pipes;
use crate::secret::{ApiKey, KeyProblem};
use crate::sys::environment::{Clock, Environment};
use crate::sys::interrupt::{Interrupt, Interrupted};

/// The variable whose key goes before those of the accounts.
pub const VARIABLE: &str = "ANTHROPIC_API_KEY";
/// How long a command may take: somebody may have to unlock a keychain.
const COMMAND_TIME: Duration = Duration::from_secs(60);
/// How much it may print, in bytes.
const COMMAND_OUTPUT: usize = 64 << 10;

/// Where a key comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOrigin {
    /// The environment.
    Environment,
    /// The user's account.
    Account,
}

/// The key to work with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountKey {
    /// The key itself.
    pub key: ApiKey,
    /// Where it comes from.
    pub origin: KeyOrigin,
}

impl AccountKey {
    /// What tells this key from others, and does not give it away: what a model has thought for one must not be shown to
    /// it with another.
    #[must_use]
    pub fn identity(&self) -> String {
        let digest = Sha256::digest(self.key.expose());
        let bytes = digest.iter().take(8);
        bytes.map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The ways to a key.
const WAYS: &str = "sign in with `/login`, or outside of a chat with `code-commit chat login`, or set `ANTHROPIC_API_KEY`";

/// Why there is no key to work with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum NoChatKey {
    /// Neither the environment nor the user has one.
    #[error("there is no API key for Anthropic")]
    #[diagnostic(help("{WAYS}"))]
    Missing,
    /// What the variable holds is none.
    #[error("the key in the environment variable `{VARIABLE}` {0}")]
    #[diagnostic(help("set `{VARIABLE}` to the API key alone, or unset it"))]
    Variable(KeyProblem),
    /// The account's command gives none.
    #[error("`{program}`, which is to print the key of the account `{account}`, {reason}")]
    #[diagnostic(help("see that the command works by itself; or {WAYS}"))]
    Command {
        /// The account.
        account: String,
        /// The program that was run.
        program: String,
        /// What became of it.
        reason: CommandFailure,
    },
    /// A signal came.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Interrupted(#[from] Interrupted),
}

/// What became of a command that prints no key.
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

/// The key of the environment, or else of the account that counts.
///
/// # Errors
/// When there is none.
pub fn resolve(
    accounts: &Accounts,
    environment: &Environment,
    clock: &dyn Clock,
    interrupt: &Interrupt,
) -> Result<AccountKey, NoChatKey> {
    if let Some(value) = environment.os(VARIABLE) {
        let key = ApiKey::parse(value.as_encoded_bytes()).map_err(NoChatKey::Variable)?;
        let origin = KeyOrigin::Environment;
        return Ok(AccountKey { key, origin });
    }
    let account = accounts.active().ok_or(NoChatKey::Missing)?;
    let key = match &account.credential {
        Credential::Key(key) => key.clone(),
        Credential::Command(words) => {
            let printed = printed(words, clock, interrupt);
            interrupt.check()?;
            printed.map_err(|reason| NoChatKey::Command {
                account: account.name.clone(),
                program: words.first().cloned().unwrap_or_default(),
                reason,
            })?
        }
    };
    Ok(AccountKey {
        key,
        origin: KeyOrigin::Account,
    })
}

/// The key that a command prints as its first line.
fn printed(
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
