//! Signing in and out, by a slash command or on the command line, and the key that an agent at the terminal works with.
//!
//! Reads and writes the accounts, and asks the vendor whether a key is one. Guarantees that a key which is refused is not
//! stored, and that nothing that is said shows one.

use std::path::{Path, PathBuf};

use crate::commands::chat::accounts::key;
use crate::commands::chat::accounts::key::{AccountKey, NoChatKey, VARIABLE};
use crate::commands::chat::accounts::{Accounts, DEFAULT, NoAccount, check_name};
use crate::commands::chat::error::ChatError;
use crate::model::{AnthropicServer, ModelError, ModelSpec, Provider, Route};
use crate::project::home::{CHAT, System};
use crate::run::context::{Context, ModelChoice};
use crate::run::not_ready::NotReady;
use crate::run::outcome::{Failure, Outcome};
use crate::run::selection;
use crate::secret::{ApiKey, KeyProblem};
use crate::sys::error::Error;
use crate::sys::interrupt::{Interrupted, Signal};
use crate::ui::input::{self, InputError, LineReader as _, PlainLines, Typed, hidden};

#[cfg(test)]
mod tests;

/// What stands before a key that is typed.
const PROMPT: &str = "API key: ";

/// The key that an agent works with, if there is one, and those that are to be kept out of sight besides.
#[derive(Debug, Clone)]
pub struct ChatKey {
    found: Result<AccountKey, NoChatKey>,
    stored: Vec<ApiKey>,
}

impl ChatKey {
    /// All keys that are known.
    pub fn exposed(&self) -> impl Iterator<Item = &str> {
        let found = self.found.iter().map(|found| &found.key);
        found.chain(&self.stored).map(ApiKey::expose)
    }

    /// The key.
    ///
    /// # Errors
    /// Why there is none.
    pub fn found(&self) -> Result<&AccountKey, &NoChatKey> {
        self.found.as_ref()
    }

    /// The key, for who cannot be asked for one.
    ///
    /// # Errors
    /// When there is none: the project is not ready.
    pub fn required(&self) -> Result<&AccountKey, Error> {
        let required = self.found.as_ref();
        required.map_err(|problem| NotReady::of(problem.clone()).into())
    }
}

/// The key of the environment, or of the account that counts; none is looked for where replies are replayed.
///
/// # Errors
/// When the accounts cannot be used, or a signal came. That there is no key is no error.
pub fn key(context: &Context<'_>, choice: &ModelChoice) -> Result<ChatKey, Error> {
    let accounts = opened(context, &home(context)?)?;
    let found = if choice.replay.is_some() {
        Err(NoChatKey::Missing)
    } else {
        key::resolve(
            &accounts,
            context.environment,
            context.clock,
            context.interrupt,
        )
    };
    if let Err(NoChatKey::Interrupted(interrupted)) = found {
        return Err(interrupted.into());
    }
    Ok(ChatKey {
        found,
        stored: accounts.keys().cloned().collect(),
    })
}

/// Does what stands behind `/login`: a key is checked and stored, for the account that `--account` names there; a name is
/// switched to. Gives what is said of it, Markdown.
///
/// # Errors
/// When the key is refused, there is no such account, or the accounts cannot be used.
pub fn log_in(context: &Context<'_>, argument: &str) -> Result<String, Error> {
    let said = match LoginArgument::read(argument).map_err(ChatError::from)? {
        LoginArgument::Key { key, account } => sign_in(context, key, account)?,
        LoginArgument::Account(name) => switch(&home(context)?, is_overridden(context), name)?,
    };
    Ok(said.markdown())
}

/// Checks and stores a key that was typed unseen, likewise.
///
/// # Errors
/// Those of [`log_in`].
pub fn log_in_with(context: &Context<'_>, key: &str) -> Result<String, Error> {
    sign_in(context, key, None).map(Said::markdown)
}

/// Does what `/logout` says: removes the account that counts. Gives what is said of it, Markdown.
///
/// # Errors
/// When the accounts cannot be used.
pub fn log_out(context: &Context<'_>) -> Result<String, Error> {
    let said = sign_out(&home(context)?, is_overridden(context))?;
    Ok(said.markdown())
}

/// The names of the accounts, and the place of the one that counts.
///
/// # Errors
/// When the accounts cannot be used.
pub fn accounts(context: &Context<'_>) -> Result<(Vec<String>, usize), Error> {
    let accounts = load(&home(context)?)?;
    let active = accounts.active().map(|account| &account.name);
    let place = accounts
        .names()
        .position(|name| Some(name) == active.map(|name| &**name));
    let names = accounts.names().map(str::to_owned).collect();
    Ok((names, place.unwrap_or_default()))
}

/// Signs in with the key that standard input has, or that somebody types there unseen.
///
/// # Errors
/// Those of [`log_in`], or when there is no key.
pub fn login(
    context: &Context<'_>,
    account: Option<&str>,
    is_terminal: bool,
) -> Result<Outcome, Failure> {
    // Nobody is to type a key for nothing.
    check_name(account.unwrap_or(DEFAULT))
        .map_err(ChatError::from)
        .map_err(Error::from)?;
    opened(context, &home(context)?)?;
    let typed = if is_terminal {
        hidden::line(PROMPT, context.interrupt)
    } else {
        let stdin = input::stdin(context.interrupt.clone()).map_err(InputError::from)?;
        PlainLines::new(stdin).line("")
    };
    if let Err(InputError::NotUtf8 { .. } | InputError::LineTooLong { .. }) = typed {
        let problem = KeyProblem::NotVisibleAscii;
        return Err(Error::from(ChatError::from(problem)).into());
    }
    let line = match typed.map_err(Error::from)? {
        Typed::Line(line) => line,
        Typed::End => String::new(),
        Typed::Interrupted => {
            let signal = Signal::Int;
            return Err(Error::from(Interrupted { signal }).into());
        }
    };
    Ok(sign_in(context, &line, account)?.outcome())
}

/// Removes the account that counts.
///
/// # Errors
/// When the accounts cannot be used.
pub fn logout(context: &Context<'_>) -> Result<Outcome, Failure> {
    let home = home(context)?;
    opened(context, &home)?;
    Ok(sign_out(&home, is_overridden(context))?.outcome())
}

/// What is said of something that was done.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    done: String,
    warnings: Vec<String>,
}

impl Said {
    fn markdown(self) -> String {
        let sentences = std::iter::once(self.done).chain(self.warnings);
        sentences.collect::<Vec<_>>().join("\n\n")
    }

    fn outcome(self) -> Outcome {
        Outcome {
            warnings: self.warnings,
            ..Outcome::said(self.done)
        }
    }
}

/// What stands behind `/login`.
#[derive(Debug, PartialEq, Eq)]
enum LoginArgument<'a> {
    Key {
        key: &'a str,
        account: Option<&'a str>,
    },
    Account(&'a str),
}

impl<'a> LoginArgument<'a> {
    fn read(argument: &'a str) -> Result<Self, NoAccount> {
        let mut words: Vec<&str> = argument.split_whitespace().collect();
        let flag = words.iter().position(|word| *word == "--account");
        let account = match flag {
            Some(at) if at + 1 < words.len() => words.drain(at..at + 2).next_back(),
            _ => None,
        };
        match (words.as_slice(), account) {
            (&[key], account) if account.is_some() || key.starts_with("sk-") => {
                Ok(Self::Key { key, account })
            }
            (&[name], None) | (&[], Some(name)) => Ok(Self::Account(name)),
            _ => Err(NoAccount::NotAName),
        }
    }
}

/// What the vendor says of a key.
enum KeyCheck {
    Taken,
    Refused(String),
    /// It could not be asked.
    Unknown(String),
}

fn sign_in(context: &Context<'_>, key: &str, account: Option<&str>) -> Result<Said, Error> {
    let account = account.unwrap_or(DEFAULT);
    let home = home(context)?;
    store(&home, is_overridden(context), account, key, &|key| {
        check(context, key)
    })
}

/// Stores a key, unless `check` refuses it.
fn store(
    home: &Path,
    is_overridden: bool,
    account: &str,
    key: &str,
    check: &dyn Fn(&ApiKey) -> Result<KeyCheck, Error>,
) -> Result<Said, Error> {
    let key = ApiKey::parse(key.as_bytes()).map_err(ChatError::from)?;
    check_name(account).map_err(ChatError::from)?;
    load(home)?;
    let unknown = match check(&key)? {
        KeyCheck::Taken => None,
        KeyCheck::Refused(reason) => return Err(ChatError::KeyRefused { reason }.into()),
        KeyCheck::Unknown(reason) => Some(format!(
            "the key is stored, but could not be checked: {reason}"
        )),
    };
    change(home, |accounts| {
        Ok(accounts.store(account, key).map_err(ChatError::from)?)
    })?;
    Ok(signed_in(account, unknown, is_overridden))
}

fn switch(home: &Path, is_overridden: bool, name: &str) -> Result<Said, Error> {
    change(home, |accounts| {
        Ok(accounts.switch(name).map_err(ChatError::from)?)
    })?;
    Ok(signed_in(name, None, is_overridden))
}

fn signed_in(account: &str, unknown: Option<String>, is_overridden: bool) -> Said {
    let overridden = is_overridden.then(|| format!("`{VARIABLE}` is set, and goes before it"));
    Said {
        done: format!("Signed in as {account}"),
        warnings: unknown.into_iter().chain(overridden).collect(),
    }
}

fn sign_out(home: &Path, is_overridden: bool) -> Result<Said, Error> {
    let done = change(home, |accounts| {
        let removed = accounts.remove_active();
        Ok(match (removed, accounts.active()) {
            (None, _) => "Nobody is signed in".to_owned(),
            (Some(_), None) => "Signed out".to_owned(),
            (Some(_), Some(next)) => {
                format!("Signed out: the account `{}` is active now", next.name)
            }
        })
    })?;
    let overridden =
        is_overridden.then(|| format!("`{VARIABLE}` is set, and its key still counts"));
    Ok(Said {
        done,
        warnings: overridden.into_iter().collect(),
    })
}

/// Changes the accounts while no other process does.
fn change<T>(
    home: &Path,
    change: impl FnOnce(&mut Accounts) -> Result<T, Error>,
) -> Result<T, Error> {
    let lock = Accounts::lock(home)?;
    let loaded = load(home)?;
    let mut accounts = loaded.clone();
    let changed = change(&mut accounts)?;
    if accounts != loaded {
        accounts.save()?;
    }
    // One that stays is locked by nobody.
    let _ = lock.remove();
    Ok(changed)
}

/// Where the agent keeps what is its user's.
///
/// # Errors
/// When no variable says so.
pub fn home(context: &Context<'_>) -> Result<PathBuf, Error> {
    let home = CHAT.directory(context.environment, System::current());
    Ok(home.map_err(NotReady::of)?)
}

/// The accounts, where nobody has seen them yet: that others could read them is told.
fn opened(context: &Context<'_>, home: &Path) -> Result<Accounts, Error> {
    let accounts = load(home)?;
    if let Some(warning) = &accounts.warning {
        context.warn(warning.clone());
    }
    Ok(accounts)
}

fn load(home: &Path) -> Result<Accounts, Error> {
    Ok(Accounts::load(home).map_err(NotReady::of)?)
}

/// Whether no account's key counts.
fn is_overridden(context: &Context<'_>) -> bool {
    context.environment.os(VARIABLE).is_some()
}

/// Asks the vendor for its models, which it tells whoever has a key.
fn check(context: &Context<'_>, key: &ApiKey) -> Result<KeyCheck, Error> {
    match server(context, key)?.models() {
        Ok(_) => Ok(KeyCheck::Taken),
        Err(ModelError::Interrupted(interrupted)) => Err(interrupted.into()),
        Err(problem) if problem.refuses_key() => Ok(KeyCheck::Refused(problem.to_string())),
        Err(problem) => Ok(KeyCheck::Unknown(problem.to_string())),
    }
}

/// The vendor's server, or the one that the environment names.
///
/// # Errors
/// When its address is none.
pub fn server(context: &Context<'_>, key: &ApiKey) -> Result<AnthropicServer, Error> {
    let vendors = ModelSpec::new("", Provider::Anthropic);
    let route = selection::route(context, &vendors, true).map_err(NotReady::of)?;
    let route = Route {
        key: Some(key.clone()),
        ..route
    };
    Ok(AnthropicServer::new(route, context.interrupt))
}
