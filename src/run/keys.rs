//! The key for a model: from the project's key file, or else the variable that the vendor's SDKs read, or else the
//! user's account with that vendor.
//!
//! Reads key files, the environment and the accounts. Guarantees that a key from the environment is sent only to the
//! server that the environment or the vendor names, or, for Azure, which has no default server, the one in the user's
//! entry; and that an account's key is sent to no other vendor, and to an entry's server only if the user's own table
//! names it.

use miette::Diagnostic;

use super::accounts::printed;
use super::accounts::{Account, Accounts, Credential};
use super::context::Context;
use super::not_ready::NotReady;
use crate::model::{KeySource, ModelSpec, Place, Provider};
use crate::project::ProjectProblem;
use crate::project::home;
use crate::secret::{ApiKey, KeyProblem};
use crate::sys::error::{Error, Problem as _};
use crate::sys::interrupt::Interrupted;
use crate::sys::sha256;

/// A key and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundKey {
    /// The key itself.
    pub key: ApiKey,
    /// The source of the key.
    pub source: KeySource,
}

/// Returns a fingerprint that identifies the key without revealing it.
pub fn identity(key: &ApiKey) -> String {
    let mut digest = sha256::of(key.expose());
    digest.truncate(16);
    digest
}

/// Errors from finding a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum NoKey {
    /// Neither a key file, nor a variable, nor an account provides a key.
    #[error("{problem}{}", .is_empty.map_or_else(String::new, |name| format!(", and `{name}` is empty")))]
    #[diagnostic(code("/no-key"), help("{hint}{}", variable.map_or_else(String::new, |variable| format!(", or set `{variable}`"))))]
    Missing {
        /// The problem with the file.
        problem: String,
        /// A hint on creating the key file.
        hint: String,
        /// The variable that could provide the key instead.
        variable: Option<&'static str>,
        /// The variable that is set but empty.
        is_empty: Option<&'static str>,
    },
    /// No key, and the user could sign in to provide one.
    #[error("there is no API key for {}", .0.vendor().name)]
    #[diagnostic(code("/no-key"), help("{}", ways(usual_variable(*.0))))]
    SignedOut(Provider),
    /// The key file or the accounts file cannot be used.
    #[error("{problem}")]
    #[diagnostic(code("/no-key"), help("{hint}"))]
    Unusable { problem: String, hint: String },
    /// The variable's value is not a valid key.
    #[error("the key in the environment variable `{variable}` {problem}")]
    #[diagnostic(
        code("/no-key"),
        help("set `{variable}` to the API key alone, or unset it")
    )]
    Variable {
        /// The variable's name.
        variable: &'static str,
        /// The problem with the value.
        problem: KeyProblem,
    },
    /// The vendor has several accounts, none of them active.
    #[diagnostic(
        code("/no-key"),
        help("choose one by `/login NAME` in `code-commit {}`", home::SHARED.command)
    )]
    #[error("`auth.json` has several accounts for {}, and none of them is active: {}", .provider.vendor().name, .accounts.join(", "))]
    Ambiguous {
        /// The vendor.
        provider: Provider,
        /// The names of its accounts.
        accounts: Vec<String>,
    },
    /// The account's key is printed by a command, which only the agent that owns the shared home runs.
    #[error(
        "the key of the account `{0}` is printed by a command, which `code-commit {by}` alone runs",
        by = home::SHARED.command
    )]
    #[diagnostic(
        code("/no-key"),
        help("put the key into the model's key file in `agent-config` or the vendor's variable")
    )]
    ByCommand(String),
    /// The account's command does not print a key.
    #[error("`{program}`, which should print the key of the account `{account}`, {reason}")]
    #[diagnostic(
        code("/no-key"),
        help("check that the command works by itself; or {}", ways(variable))
    )]
    Command {
        /// The account's name.
        account: String,
        /// The program that was run.
        program: String,
        /// The way in which it failed.
        reason: String,
        /// The variable that could provide the key instead.
        variable: &'static str,
    },
    /// A signal interrupted the search.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Interrupted(#[from] Interrupted),
}

impl NoKey {
    fn unusable(problem: &dyn Diagnostic) -> Self {
        Self::Unusable {
            problem: problem.to_string(),
            hint: problem.hint().unwrap_or_default(),
        }
    }

    /// Returns the error for a caller that needs the key: the project is not ready, unless a signal interrupted the
    /// search.
    pub fn ending(self) -> Error {
        match self {
            Self::Interrupted(interrupted) => interrupted.into(),
            problem => NotReady::of(problem).into(),
        }
    }
}

/// Returns the ways to provide a key that an account may hold.
fn ways(variable: &str) -> String {
    format!(
        "sign in with `/login`, or outside of a chat with `code-commit {} login`, or set `{variable}`",
        home::SHARED.command
    )
}

/// Returns the variable that usually holds a vendor's key.
fn usual_variable(provider: Provider) -> &'static str {
    let variables = provider.vendor().key_variables;
    variables.first().copied().unwrap_or_default()
}

/// Returns the key for a model, with its source; `None` if the model needs none.
///
/// # Errors
/// Fails if the model needs a key and none is found.
pub fn find(context: &Context<'_>, spec: &ModelSpec) -> Result<Option<FoundKey>, NoKey> {
    let Some(file) = &spec.key_file else {
        return Ok(None);
    };
    let problem = match context.project.key(file) {
        Ok(key) => {
            let source = KeySource::File(file.clone());
            return Ok(Some(FoundKey { key, source }));
        }
        Err(problem @ ProjectProblem::Missing(_)) => problem,
        Err(problem) => {
            return Err(NoKey::unusable(&problem));
        }
    };
    let variables = variables(spec);
    let mut set = variables.iter().copied();
    if let Some((variable, value)) =
        set.find_map(|name| Some((name, context.environment.os(name)?)))
    {
        let key = ApiKey::parse(value.as_encoded_bytes())
            .map_err(|problem| NoKey::Variable { variable, problem })?;
        let source = KeySource::Variable(variable);
        return Ok(Some(FoundKey { key, source }));
    }
    if let Some(account) = account(context, spec)? {
        if let Credential::Command(_) = account.credential {
            return Err(NoKey::ByCommand(account.name));
        }
        return of_account(context, &account).map(Some);
    }
    let mut empty = variables.iter().copied();
    Err(NoKey::Missing {
        problem: problem.to_string(),
        hint: problem.hint().unwrap_or_default(),
        variable: variables.first().copied(),
        is_empty: empty.find(|name| context.environment.is_empty(name)),
    })
}

/// Returns whether an account's key may go to the model's server.
pub fn takes_accounts(spec: &ModelSpec) -> bool {
    spec.key_file.is_some() && (spec.base_url.is_none() || spec.base_url_from == Place::Home)
}

/// Returns the user's account for the model, if any.
fn account(context: &Context<'_>, spec: &ModelSpec) -> Result<Option<Account>, NoKey> {
    let home = home::SHARED.directory(context.environment);
    let Some(home) = home.ok().filter(|_| takes_accounts(spec)) else {
        return Ok(None);
    };
    let accounts = Accounts::load(&home).map_err(|problem| NoKey::unusable(&problem))?;
    let account = accounts
        .of(spec.provider)
        .map_err(|accounts| NoKey::Ambiguous {
            provider: spec.provider,
            accounts,
        })?;
    Ok(account.cloned())
}

/// Returns the key of an account; runs the account's command if it has one.
///
/// # Errors
/// Fails if the command prints no key, or a signal interrupts it.
pub fn of_account(context: &Context<'_>, account: &Account) -> Result<FoundKey, NoKey> {
    let key = match &account.credential {
        Credential::Key(key) => key.clone(),
        Credential::Command(words) => {
            let key = printed::key(words, context.clock, context.interrupt);
            context.interrupt.check()?;
            key.map_err(|reason| NoKey::Command {
                account: account.name.clone(),
                program: words.first().cloned().unwrap_or_default(),
                reason,
                variable: usual_variable(account.provider),
            })?
        }
    };
    Ok(FoundKey {
        key,
        source: KeySource::Account(account.name.clone()),
    })
}

/// Returns the variables that commonly hold API keys: the vendors' and the agents'. They are hidden from builds, and
/// their values are redacted.
pub fn key_variables() -> impl Iterator<Item = &'static str> {
    let vendors = Provider::ALL
        .into_iter()
        .flat_map(|provider| provider.vendor().key_variables);
    let agents = home::ALL.into_iter().filter_map(|home| home.key_variable);
    vendors.copied().chain(agents)
}

/// Returns the variables that may hold the key: the vendor's. Empty if the entry names a server other than the vendor's
/// usual one, which needs a key of its own.
pub fn variables(spec: &ModelSpec) -> &'static [&'static str] {
    if spec.base_url.is_some() && spec.provider.vendor().url.is_some() {
        return &[];
    }
    spec.provider.vendor().key_variables
}
