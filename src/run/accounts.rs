//! The user's accounts with model vendors, stored in `auth.json` in `~/.agent`.
//!
//! Reads and writes that file. Guarantees that only its owner can access it, that it is replaced atomically, and that
//! unknown fields are preserved; that mistakes in it are reported with their position; and that no error shows a key or
//! any other value.

pub mod printed;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::model::Provider;
use crate::project::home;
use crate::secret::ApiKey;
use crate::sys::atomic_file;
use crate::sys::file_lock::FileLock;
use crate::sys::files::PathError;
use crate::sys::home_file::{self, HomeFileProblem};
use crate::sys::positions::{self, Misplaced, Positions};

/// Name of the accounts file, in the agent's home.
pub const FILE: &str = home::ACCOUNTS;
/// Lock file held while the accounts file is changed.
const LOCK: &str = "auth.lock";
/// Name of the account for a key stored without a name.
pub const DEFAULT: &str = "default";
/// Default vendor, for accounts that name none.
pub const USUAL: Provider = Provider::Anthropic;
/// Version of the file format.
const VERSION: u64 = 1;
/// Maximum length of an account's name, in bytes.
const LONGEST_NAME: usize = 64;

/// Source of an account's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// The key itself, stored in the file.
    Key(ApiKey),
    /// A command that prints the key: its program and arguments.
    Command(Vec<String>),
}

/// An account with a vendor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The name the user gave it.
    pub name: String,
    /// The vendor that issued the key.
    pub provider: Provider,
    /// The source of its key.
    pub credential: Credential,
    /// Unknown fields of its entry, preserved when the file is saved.
    further: Map<String, Value>,
}

/// All accounts of a user, one of which may be active.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accounts {
    path: PathBuf,
    /// Index of the active account.
    active: usize,
    accounts: Vec<Account>,
    /// Unknown top-level fields of the file, preserved when it is saved.
    further: Map<String, Value>,
    /// A warning to the user about the file.
    pub warning: Option<String>,
}

/// Errors from choosing or naming an account.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAccount {
    /// The name is invalid; it is not shown because it may be a key.
    #[error(
        "an account's name is made of up to {LONGEST_NAME} letters, digits, `.`, `_` and `-`, and a key begins with `sk-`"
    )]
    NotAName,
    /// The vendor's name is unknown, or its models need no key.
    #[error("a provider is {}", Provider::alternatives(Provider::with_keys()))]
    NoProvider,
    /// No account in the file has that name.
    #[error("there is no account of that name; {}", listed(.known))]
    Unknown { known: Vec<String> },
}

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        return "there are none".to_owned();
    }
    format!("known: {}", names.join(", "))
}

/// Checks that a string may name an account.
///
/// # Errors
/// Fails if it is not a valid account name.
pub fn check_name(name: &str) -> Result<(), NoAccount> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_name = (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(is_plain);
    // An account named after its key would reveal the key wherever the name is shown.
    if is_name && !name.starts_with("sk-") {
        return Ok(());
    }
    Err(NoAccount::NotAName)
}

impl Accounts {
    /// Reads the accounts in this home; empty if the file does not exist. If other users can read the file, closes it
    /// to them and sets a [`warning`](Self::warning).
    ///
    /// # Errors
    /// Fails if the file cannot be read or contains a mistake.
    pub fn load(home: &Path) -> Result<Self, HomeFileProblem> {
        let path = home.join(FILE);
        let loaded = home_file::load(&path, home::WITHOUT_ACCOUNTS, parse)?;
        let warning = loaded.is_some().then(|| warning(&path)).flatten();
        Ok(Self {
            path,
            warning,
            ..loaded.unwrap_or_default()
        })
    }

    /// Locks the file in this home against changes by other processes, creating the directory if it is missing.
    ///
    /// # Errors
    /// Fails if it cannot be locked.
    pub fn lock(home: &Path) -> Result<FileLock, PathError> {
        let path = home.join(LOCK);
        let lock = atomic_file::private_directory(home).and_then(|()| FileLock::wait(&path));
        lock.map_err(PathError::of("lock", &path))
    }

    /// Writes the file.
    ///
    /// # Errors
    /// Fails if it cannot be written; the previous content then remains.
    pub fn save(&self) -> Result<(), PathError> {
        home_file::save_json(&self.path, &self.json())
    }

    /// Returns the active account; `None` if there are no accounts.
    pub fn active(&self) -> Option<&Account> {
        self.accounts.get(self.active)
    }

    /// Returns the account for a vendor's models: the active one if it belongs to that vendor, or else the vendor's
    /// only one.
    ///
    /// # Errors
    /// The names of the vendor's accounts, if there are several and none is active.
    pub fn of(&self, provider: Provider) -> Result<Option<&Account>, Vec<String>> {
        let is_its = |account: &&Account| account.provider == provider;
        if let Some(active) = self.active().filter(is_its) {
            return Ok(Some(active));
        }
        match *self.accounts.iter().filter(is_its).collect::<Vec<_>>() {
            [] => Ok(None),
            [only] => Ok(Some(only)),
            ref several => Err(several.iter().map(|account| account.name.clone()).collect()),
        }
    }

    /// Returns the account of this name.
    pub fn named(&self, name: &str) -> Option<&Account> {
        self.accounts.iter().find(|account| account.name == name)
    }

    /// Returns the names of all accounts, in file order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.accounts.iter().map(|account| &*account.name)
    }

    /// Returns the keys stored in the file.
    pub fn keys(&self) -> impl Iterator<Item = &ApiKey> {
        let keys = self.accounts.iter().map(|account| &account.credential);
        keys.filter_map(|credential| match credential {
            Credential::Key(key) => Some(key),
            Credential::Command(_) => None,
        })
    }

    /// Stores the vendor's key under this account name and makes the account active.
    ///
    /// # Errors
    /// Fails if the name is invalid.
    pub fn store(&mut self, name: &str, provider: Provider, key: ApiKey) -> Result<(), NoAccount> {
        check_name(name)?;
        let credential = Credential::Key(key);
        let known = self.names().position(|known| known == name);
        self.active = known.unwrap_or(self.accounts.len());
        match self.accounts.get_mut(self.active) {
            Some(account) => {
                account.provider = provider;
                account.credential = credential;
            }
            None => self.accounts.push(Account {
                name: name.to_owned(),
                provider,
                credential,
                further: Map::new(),
            }),
        }
        Ok(())
    }

    /// Makes the account of this name active.
    ///
    /// # Errors
    /// Fails if there is no such account.
    pub fn switch(&mut self, name: &str) -> Result<(), NoAccount> {
        check_name(name)?;
        let known = self.names().position(|known| known == name);
        let unknown = || NoAccount::Unknown {
            known: self.names().map(str::to_owned).collect(),
        };
        self.active = known.ok_or_else(unknown)?;
        Ok(())
    }

    /// Removes the active account and returns its name; the first remaining account becomes active.
    pub fn remove_active(&mut self) -> Option<String> {
        let removed =
            (self.active < self.accounts.len()).then(|| self.accounts.remove(self.active));
        self.active = 0;
        removed.map(|account| account.name)
    }

    fn json(&self) -> Value {
        let accounts: Vec<Value> = self.accounts.iter().map(Account::json).collect();
        let mut file = json!({
            "version": VERSION,
            "active": self.active().map(|account| &account.name),
            "accounts": accounts,
        });
        extend(&mut file, &self.further);
        file
    }
}

impl Account {
    fn json(&self) -> Value {
        let mut entry = match &self.credential {
            Credential::Key(key) => json!({"name": self.name, "api_key": key.expose()}),
            Credential::Command(words) => json!({"name": self.name, "api_key_command": words}),
        };
        if self.provider != USUAL {
            entry["provider"] = self.provider.vendor().word.into();
        }
        extend(&mut entry, &self.further);
        entry
    }
}

fn extend(object: &mut Value, further: &Map<String, Value>) {
    if let Value::Object(object) = object {
        object.extend(further.clone());
    }
}

/// Closes the file to other users and returns the resulting warning, if any.
fn warning(path: &Path) -> Option<String> {
    let path_shown = path.display();
    match home_file::close(path) {
        Ok(false) => None,
        Ok(true) => Some(format!(
            "others could read `{path_shown}`: it is closed to them now, and its keys may be known"
        )),
        Err(error) => Some(format!(
            "others can read `{path_shown}`, and it cannot be closed to them: {error}"
        )),
    }
}

/// Parses the content of the accounts file.
///
/// # Errors
/// The first mistake in it; the error shows no value.
fn parse(content: &[u8]) -> Result<Accounts, Misplaced> {
    let json = positions::text(content)?;
    let at = Positions(json);
    let ([version, active, accounts], further) =
        at.fields(json, ["version", "active", "accounts"])?;
    let unversioned = || at.problem(json, format!("`version` is missing: it is {VERSION}"));
    let version = version.ok_or_else(unversioned)?;
    if at.parse::<Value>(version)? != VERSION {
        let reason = format!("`version` must be {VERSION}: this program knows no other");
        return Err(at.problem(version, reason));
    }
    let list = accounts.ok_or_else(|| at.problem(json, "`accounts` is missing: a list"))?;
    if !list.starts_with('[') {
        return Err(at.problem(list, "`accounts` must be a list, in `[` and `]`"));
    }
    let mut accounts: Vec<Account> = Vec::new();
    for entry in at.parse::<Vec<&RawValue>>(list)? {
        let account = account(&at, entry.get())?;
        if accounts.iter().any(|known| known.name == account.name) {
            let reason = format!("there is an account `{}` already", account.name);
            return Err(at.problem(entry.get(), reason));
        }
        accounts.push(account);
    }
    let name = field(&at, "active", active, |json| {
        serde_json::from_str(json).map_err(|_| "must be the name of an account, in quotes".into())
    });
    // Without `active`, the first account is the active one.
    let place = name?.flatten().map_or(Some(0), |name: String| {
        accounts.iter().position(|account| account.name == name)
    });
    let problem = "`active` names no account of the list";
    Ok(Accounts {
        active: place.ok_or_else(|| at.problem(active.unwrap_or(json), problem))?,
        accounts,
        further,
        ..Accounts::default()
    })
}

fn account(at: &Positions<'_>, entry: &str) -> Result<Account, Misplaced> {
    let names = ["name", "provider", "api_key", "api_key_command"];
    let ([name, provider, key, command], further) = at.fields(entry, names)?;
    let name = field(at, "name", name, name_in)?;
    let provider = field(at, "provider", provider, provider_in)?.unwrap_or(USUAL);
    let key = field(at, "api_key", key, key_in)?;
    let credential = match (key, field(at, "api_key_command", command, command_in)?) {
        (Some(key), None) => Credential::Key(key),
        (None, Some(command)) => Credential::Command(command),
        _ => {
            let reason = "an account has either an `api_key` or an `api_key_command`";
            return Err(at.problem(entry, reason));
        }
    };
    Ok(Account {
        name: name.ok_or_else(|| at.problem(entry, "an account needs a `name`"))?,
        provider,
        credential,
        further,
    })
}

/// Reads a field if it is present. Serde's own errors are not used because they would show the value.
fn field<T>(
    at: &Positions<'_>,
    name: &str,
    json: Option<&str>,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, Misplaced> {
    let wrong = |json| move |expected| at.problem(json, format!("`{name}` {expected}"));
    json.map(|json| read(json).map_err(wrong(json))).transpose()
}

fn text(json: &str) -> Result<String, String> {
    serde_json::from_str(json).map_err(|_| "must be a string, in quotes".to_owned())
}

fn name_in(json: &str) -> Result<String, String> {
    let name = text(json)?;
    let checked = check_name(&name).map_err(|problem| format!("is none: {problem}"));
    checked.map(|()| name)
}

fn provider_in(json: &str) -> Result<Provider, String> {
    let provider = serde_json::from_str(json).ok();
    Provider::with_keys()
        .find(|known| provider == Some(*known))
        .ok_or_else(|| format!("must be {}", Provider::alternatives(Provider::with_keys())))
}

fn key_in(json: &str) -> Result<ApiKey, String> {
    let key = ApiKey::parse(text(json)?.as_bytes());
    key.map_err(|problem| format!("{problem}, which no key has"))
}

fn command_in(json: &str) -> Result<Vec<String>, String> {
    let words: Vec<String> = serde_json::from_str(json).unwrap_or_default();
    let program = words.first().map_or("", String::as_str);
    if program.is_empty() || words.iter().any(|word| word.contains('\0')) {
        let reason = "must be a program and its arguments, like `[\"secret-tool\", \"lookup\", \"service\", \"claude\"]`";
        return Err(reason.to_owned());
    }
    // Relative to the current directory, it would be a file of the project.
    if program.contains('/') && !program.starts_with('/') {
        let reason = "must begin with a program's name, or its absolute path: a relative one leads into the project";
        return Err(reason.to_owned());
    }
    Ok(words)
}
