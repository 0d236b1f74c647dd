//! Sign-in and sign-out, by slash command or on the command line, and selection of the terminal agent's key.
//!
//! Reads and writes the accounts, and asks the vendor whether a key is valid. Guarantees that a rejected key is not
//! stored, and that no message shows a key.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::error::ChatError;
use crate::commands::workspace;
use crate::model::{KeySource, ModelError, ModelSpec, Provider, VendorServer};
use crate::project::home::CHAT;
use crate::run::accounts::{self, Accounts, DEFAULT, NoAccount, check_name};
use crate::run::context::{Context, ModelChoice};
use crate::run::keys::{self, FoundKey, NoKey};
use crate::run::not_ready::NotReady;
use crate::run::outcome::{Failure, Outcome};
use crate::run::selection;
use crate::secret::{ApiKey, KeyProblem, Redactor, SHORTEST_KEY};
use crate::sys::environment::Environment;
use crate::sys::error::Error;
use crate::ui::input::{self, InputError, LineReader as _, Lines};

#[cfg(test)]
mod tests;

/// The prompt for a key.
pub const PROMPT: &str = "API key: ";

/// The key for the model of a session, and other keys to redact.
#[derive(Debug, Clone)]
pub struct ChatKey {
    found: Result<Option<FoundKey>, NoKey>,
    others: Vec<ApiKey>,
}

impl ChatKey {
    /// Returns all known keys.
    pub fn exposed(&self) -> impl Iterator<Item = &str> {
        let found = self.found().map(|found| &found.key);
        found.into_iter().chain(&self.others).map(ApiKey::expose)
    }

    /// Returns the key, if there is one.
    pub fn found(&self) -> Option<&FoundKey> {
        self.found.as_ref().ok()?.as_ref()
    }

    /// Checks that a key exists if the model needs one.
    ///
    /// # Errors
    /// Fails if the model needs a key and there is none.
    pub fn required(&self) -> Result<(), Error> {
        let missing = self.found.as_ref().err();
        missing.map_or(Ok(()), |problem| Err(problem.clone().ending()))
    }

    /// Checks that the redactor knows the key, which it does not if a command printed the key after the redactor was
    /// created.
    ///
    /// # Errors
    /// Fails if the redactor does not know it.
    pub fn known_to(self, redactor: &Redactor) -> Result<Self, Error> {
        match self.found() {
            Some(FoundKey {
                key,
                source: KeySource::Account(name),
            }) if key.expose().len() >= SHORTEST_KEY
                && redactor.text(key.expose()) == key.expose() =>
            {
                Err(NoKey::ByCommand(name.clone()).ending())
            }
            _ => Ok(self),
        }
    }
}

/// Selects the key for a model: that of the account that the user has chosen for its vendor in the session, or else the
/// one found by [`keys::find`]. Replays need no key.
///
/// # Errors
/// Fails if the accounts cannot be used, or a signal arrives. A missing key is not an error.
pub fn key(
    context: &Context<'_>,
    choice: &ModelChoice,
    chosen: &BTreeMap<Provider, String>,
    spec: &ModelSpec,
) -> Result<ChatKey, Error> {
    let accounts = opened(context)?;
    let mut others: Vec<ApiKey> = accounts.keys().cloned().collect();
    if choice.replay.is_some() {
        let found = Ok(None);
        return Ok(ChatKey { found, others });
    }
    let mut fitting = None;
    for account in chosen.values().filter_map(|name| accounts.named(name)) {
        let found = keys::of_account(context, account);
        others.extend(found.as_ref().map(|found| found.key.clone()));
        if account.provider == spec.provider && keys::takes_accounts(spec) {
            fitting = Some(found);
        }
    }
    let found = match fitting {
        Some(found) => found.map(Some),
        None => by_rule(context, &accounts, spec),
    };
    if let Err(NoKey::Interrupted(interrupted)) = found {
        return Err(interrupted.into());
    }
    Ok(ChatKey { found, others })
}

fn by_rule(
    context: &Context<'_>,
    accounts: &Accounts,
    spec: &ModelSpec,
) -> Result<Option<FoundKey>, NoKey> {
    match keys::find(context, spec) {
        Err(NoKey::ByCommand(name)) => match accounts.named(&name) {
            Some(account) => keys::of_account(context, account).map(Some),
            None => Ok(None),
        },
        Err(NoKey::Missing { .. }) if keys::takes_accounts(spec) => {
            Err(NoKey::SignedOut(spec.provider))
        }
        found => found,
    }
}

/// Executes `/login`: checks and stores a key, for the account given with `--account`, or switches to the named
/// account.
///
/// # Errors
/// Fails if the key is rejected, the account does not exist, or the accounts cannot be used.
pub fn log_in(context: &Context<'_>, argument: &str, usual: Provider) -> Result<SignIn, Error> {
    match LoginArgument::read(argument).map_err(ChatError::from)? {
        LoginArgument::Key {
            key,
            account,
            provider,
        } => {
            let provider = provider.or(provider_of(key)).unwrap_or(usual);
            log_in_with(context, key, account, provider)
        }
        LoginArgument::Account(name) => switch(&home(context)?, context.environment, name),
    }
}

/// Checks a key with its vendor and stores it.
///
/// # Errors
/// Same as for [`log_in`].
pub fn log_in_with(
    context: &Context<'_>,
    key: &str,
    account: Option<&str>,
    provider: Provider,
) -> Result<SignIn, Error> {
    let account = (account.unwrap_or(DEFAULT), provider);
    let check = |key: &ApiKey| check(context, provider, key);
    store(&home(context)?, context.environment, account, key, &check)
}

/// Recognises the vendor of a key by its prefix; `None` if unknown.
pub fn provider_of(key: &str) -> Option<Provider> {
    let key = key.trim_start();
    let mut all = Provider::ALL.into_iter();
    all.find(|provider| {
        let mut prefixes = provider.vendor().key_prefixes.iter();
        prefixes.any(|prefix| key.starts_with(prefix))
    })
}

/// Executes `/logout`: removes the active account.
///
/// # Errors
/// Fails if the accounts cannot be used.
pub fn log_out(context: &Context<'_>) -> Result<SignIn, Error> {
    sign_out(&home(context)?, context.environment)
}

/// Loads the accounts.
///
/// # Errors
/// Fails if they cannot be used.
pub fn accounts(context: &Context<'_>) -> Result<Accounts, Error> {
    load(&home(context)?)
}

/// Signs in with a key read from standard input, or typed there without echo.
///
/// # Errors
/// Same as for [`log_in`]; also fails if no key is given.
pub fn login(
    context: &Context<'_>,
    account: Option<&str>,
    provider: Option<Provider>,
    is_terminal: bool,
) -> Result<Outcome, Failure> {
    // Check everything else before the user has to type a key.
    check_name(account.unwrap_or(DEFAULT)).map_err(ChatError::from)?;
    opened(context)?;
    let interrupt = context.interrupt;
    let stdin = input::stdin(interrupt.clone()).map_err(InputError::from)?;
    let mut lines = Lines::new(stdin, is_terminal.then(|| interrupt.clone()));
    let typed = if is_terminal {
        lines.secret(PROMPT)
    } else {
        lines.line("")
    };
    if let Err(InputError::NotUtf8(_) | InputError::LineTooLong(_)) = typed {
        return Err(ChatError::from(KeyProblem::NotVisibleAscii).into());
    }
    let line = typed?.answer()?.unwrap_or_default();
    let provider = provider.or(provider_of(&line)).unwrap_or(accounts::USUAL);
    Ok(log_in_with(context, &line, account, provider)?.outcome())
}

/// Removes the active account.
///
/// # Errors
/// Fails if the accounts cannot be used.
pub fn logout(context: &Context<'_>) -> Result<Outcome, Failure> {
    opened(context)?;
    Ok(log_out(context)?.outcome())
}

/// The result of signing in or out.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SignIn {
    done: String,
    warnings: Vec<String>,
    /// The vendor whose account changes.
    pub provider: Provider,
    /// The account used from now on, if the user has signed in.
    pub account: Option<String>,
}

impl SignIn {
    /// Formats the message as Markdown.
    pub fn markdown(&self) -> String {
        let sentences =
            std::iter::once(&*self.done).chain(self.warnings.iter().map(|said| &**said));
        sentences.collect::<Vec<_>>().join("\n\n")
    }

    fn outcome(self) -> Outcome {
        Outcome {
            warnings: self.warnings,
            ..Outcome::new(self.done)
        }
    }
}

/// The argument of `/login`.
#[derive(Debug, PartialEq, Eq)]
enum LoginArgument<'a> {
    Key {
        key: &'a str,
        account: Option<&'a str>,
        provider: Option<Provider>,
    },
    Account(&'a str),
}

impl<'a> LoginArgument<'a> {
    fn read(argument: &'a str) -> Result<Self, NoAccount> {
        let mut words: Vec<&str> = argument.split_whitespace().collect();
        let mut flag = |name: &str| {
            let at = words.iter().position(|word| *word == name)?;
            (at + 1 < words.len()).then(|| words.drain(at..at + 2).next_back())?
        };
        let account = flag("--account");
        let named = |word| Provider::named(word).ok_or(NoAccount::NoProvider);
        let provider = flag("--provider").map(named).transpose()?;
        match (words.as_slice(), account) {
            (&[key], account)
                if account.is_some()
                    || provider.or(provider_of(key)).is_some()
                    || key.starts_with("sk-") =>
            {
                Ok(Self::Key {
                    key,
                    account,
                    provider,
                })
            }
            (&[name], None) | (&[], Some(name)) => Ok(Self::Account(name)),
            _ => Err(NoAccount::NotAName),
        }
    }
}

/// Stores a key unless `check` rejects it; warns if it could not be checked.
fn store(
    home: &Path,
    environment: &Environment,
    (account, provider): (&str, Provider),
    key: &str,
    check: &dyn Fn(&ApiKey) -> Result<Option<String>, Error>,
) -> Result<SignIn, Error> {
    let key = ApiKey::parse(key.as_bytes()).map_err(ChatError::from)?;
    check_name(account).map_err(ChatError::from)?;
    load(home)?;
    let warning =
        check(&key)?.map(|reason| format!("the key is stored, but could not be checked: {reason}"));
    change(home, |accounts| {
        let stored = accounts.store(account, provider, key);
        Ok(stored.map_err(ChatError::from)?)
    })?;
    Ok(signed_in(account, provider, warning, environment))
}

fn switch(home: &Path, environment: &Environment, name: &str) -> Result<SignIn, Error> {
    let provider = change(home, |accounts| {
        accounts.switch(name).map_err(ChatError::from)?;
        Ok(active_provider(accounts))
    })?;
    Ok(signed_in(name, provider, None, environment))
}

fn signed_in(
    account: &str,
    provider: Provider,
    warning: Option<String>,
    environment: &Environment,
) -> SignIn {
    let overridden = overriding(environment, provider)
        .map(|variable| format!("`{variable}` is set, and goes before it in new sessions"));
    SignIn {
        done: match provider {
            accounts::USUAL => format!("Signed in as {account}"),
            other => format!(
                "Signed in as {account}, for the models of {}",
                other.vendor().name
            ),
        },
        warnings: warning.into_iter().chain(overridden).collect(),
        provider,
        account: Some(account.to_owned()),
    }
}

fn sign_out(home: &Path, environment: &Environment) -> Result<SignIn, Error> {
    let (done, provider) = change(home, |accounts| {
        let provider = active_provider(accounts);
        let done = match (accounts.remove_active(), accounts.active()) {
            (None, _) => "Nobody is signed in".to_owned(),
            (Some(_), None) => "Signed out".to_owned(),
            (Some(_), Some(next)) => {
                format!("Signed out: the account `{}` is active now", next.name)
            }
        };
        Ok((done, provider))
    })?;
    let overridden = overriding(environment, provider)
        .map(|variable| format!("`{variable}` is set, and its key still counts"));
    Ok(SignIn {
        done,
        warnings: overridden.into_iter().collect(),
        provider,
        account: None,
    })
}

/// Returns the vendor of the active account, or else the usual one.
fn active_provider(accounts: &Accounts) -> Provider {
    let active = accounts.active();
    active.map_or(accounts::USUAL, |account| account.provider)
}

/// Returns the variable whose key takes precedence over an account's.
fn overriding(environment: &Environment, provider: Provider) -> Option<&'static str> {
    let mut variables = provider.vendor().key_variables.iter().copied();
    variables.find(|variable| environment.os(variable).is_some())
}

/// Changes the accounts while holding their lock.
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
    // A leftover lock file locks nothing.
    let _ = lock.remove();
    Ok(changed)
}

/// Returns the agent's home directory.
///
/// # Errors
/// Fails if the environment does not determine it.
pub fn home(context: &Context<'_>) -> Result<PathBuf, Error> {
    workspace::home(context, &CHAT)
}

/// Loads the accounts for the first time, and warns if other users can read them.
fn opened(context: &Context<'_>) -> Result<Accounts, Error> {
    let accounts = accounts(context)?;
    if let Some(warning) = &accounts.warning {
        context.warn(warning.clone());
    }
    Ok(accounts)
}

fn load(home: &Path) -> Result<Accounts, Error> {
    Ok(Accounts::load(home).map_err(NotReady::of)?)
}

/// Checks a key by asking the vendor for its models. Returns the reason if the check is not possible.
fn check(context: &Context<'_>, provider: Provider, key: &ApiKey) -> Result<Option<String>, Error> {
    // Such a server has its own address, which an account does not contain.
    let vendor = provider.vendor();
    if vendor.url.is_none() {
        return Ok(Some(format!(
            "{}'s servers are its users' own",
            vendor.name
        )));
    }
    match server(context, provider, key)?.check_key() {
        Ok(()) => Ok(None),
        Err(ModelError::Interrupted(interrupted)) => Err(interrupted.into()),
        Err(problem) if problem.refuses_key() => {
            Err(ChatError::KeyRefused(problem.to_string()).into())
        }
        Err(problem) => Ok(Some(problem.to_string())),
    }
}

/// Returns the vendor's server, or the one given by the environment.
///
/// # Errors
/// Fails if its address is invalid.
pub fn server(
    context: &Context<'_>,
    provider: Provider,
    key: &ApiKey,
) -> Result<VendorServer, Error> {
    let vendors = ModelSpec::new("", provider);
    let mut route = selection::route(context, &vendors, true).map_err(NotReady::of)?;
    route.key = Some(key.clone());
    Ok(VendorServer::new(provider, route, context.interrupt))
}
