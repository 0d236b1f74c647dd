//! The user's accounts at the vendors: `auth.json` in `~/.agent`.
//!
//! Touches that file. Guarantees that it is its owner's alone, is replaced in one step, and keeps fields that are not
//! known; that a mistake in it is told with its place; and that no error shows a key, nor any other value.

mod form;
pub mod printed;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::model::Provider;
use crate::project::home;
use crate::project::home::System;
use crate::secret::ApiKey;
use crate::sys::atomic_file;
use crate::sys::environment::Environment;
use crate::sys::file_lock::FileLock;
use crate::sys::files::PathError;
use crate::sys::home_file::{self, HomeFileProblem};

/// The file, in the agent's home.
pub const FILE: &str = home::ACCOUNTS;
/// Locked while the file is changed.
const LOCK: &str = "auth.lock";
/// The account of a key that came without a name.
pub const DEFAULT: &str = "default";
/// The vendor of accounts that name none.
pub const USUAL: Provider = Provider::Anthropic;
/// The version of the file's form.
const VERSION: u64 = 1;
/// The maximum length of an account's name, in bytes.
const LONGEST_NAME: usize = 64;
/// The consequence of removing the accounts' file, for hints.
const WITHOUT: &str = "`code-commit chat login` then signs in anew";

/// The source of an account's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// It is this one.
    Key(ApiKey),
    /// The command of these words prints it.
    Command(Vec<String>),
}

/// An account at the vendor's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The name the user gave it.
    pub name: String,
    /// The vendor that the key is of.
    pub provider: Provider,
    /// The source of its key.
    pub credential: Credential,
    /// The other fields of its entry.
    further: Map<String, Value>,
}

/// All accounts of a user, and which of them counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accounts {
    path: PathBuf,
    /// The place of the active one.
    active: usize,
    accounts: Vec<Account>,
    /// The other fields of the file.
    further: Map<String, Value>,
    /// A warning to the user about the file.
    pub warning: Option<String>,
}

/// There is no account of a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAccount {
    /// The name is none; it is not shown, since it may be a key.
    #[error(
        "an account's name is made of up to {LONGEST_NAME} letters, digits, `.`, `_` and `-`, and a key begins with `sk-`"
    )]
    NotAName,
    /// No vendor has that name.
    #[error("a provider is `anthropic`, `gemini`, `openai` or `azure`")]
    NoProvider,
    /// It is not in the file.
    #[error("there is no account of that name: {}", listed(.known))]
    Unknown {
        /// Those that are.
        known: Vec<String>,
    },
}

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        return "there is none at all".to_owned();
    }
    format!("known are {}", names.join(", "))
}

/// The name of an account.
///
/// # Errors
/// When it is none.
pub fn check_name(name: &str) -> Result<(), NoAccount> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_name = (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(is_plain);
    // Somebody who names an account after its key would have it shown.
    if is_name && !name.starts_with("sk-") {
        return Ok(());
    }
    Err(NoAccount::NotAName)
}

impl Accounts {
    /// The accounts in this home; none where the file is missing. What others may read of it is closed to them, which
    /// is a [`warning`](Self::warning).
    ///
    /// # Errors
    /// When the file cannot be read, or there is a mistake in it.
    pub fn load(home: &Path) -> Result<Self, HomeFileProblem> {
        let path = home.join(FILE);
        let loaded = home_file::load(&path, WITHOUT, form::parse)?;
        let warning = loaded.is_some().then(|| warning(&path)).flatten();
        Ok(Self {
            path,
            warning,
            ..loaded.unwrap_or_default()
        })
    }

    /// Keeps other processes from changing the file in this home, which is made where it is missing.
    ///
    /// # Errors
    /// When it cannot be locked.
    pub fn lock(home: &Path) -> Result<FileLock, PathError> {
        let path = home.join(LOCK);
        let lock = atomic_file::private_directory(home).and_then(|()| FileLock::wait(&path));
        lock.map_err(PathError::of("lock", &path))
    }

    /// Writes the file.
    ///
    /// # Errors
    /// When it cannot be written; what was there is then still there.
    pub fn save(&self) -> Result<(), PathError> {
        let mut content = serde_json::to_string_pretty(&self.json()).unwrap_or_default();
        content.push('\n');
        home_file::save(&self.path, content.as_bytes())
    }

    /// The one that counts; `None` where there is none at all.
    #[must_use]
    pub fn active(&self) -> Option<&Account> {
        self.accounts.get(self.active)
    }

    /// The account for a vendor's models: the active one if it is of that vendor, or else the vendor's only one.
    ///
    /// # Errors
    /// With the names of the vendor's accounts, where there are several and none is active.
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

    /// The account of this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Account> {
        self.accounts.iter().find(|account| account.name == name)
    }

    /// The names of all of them, in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.accounts.iter().map(|account| &*account.name)
    }

    /// The keys that stand in the file.
    pub fn keys(&self) -> impl Iterator<Item = &ApiKey> {
        let keys = self.accounts.iter().map(|account| &account.credential);
        keys.filter_map(|credential| match credential {
            Credential::Key(key) => Some(key),
            Credential::Command(_) => None,
        })
    }

    /// Gives the account of this name the vendor's key, and makes it the one that counts.
    ///
    /// # Errors
    /// When the name is none.
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

    /// Makes the account of this name the one that counts.
    ///
    /// # Errors
    /// When there is none.
    pub fn switch(&mut self, name: &str) -> Result<(), NoAccount> {
        check_name(name)?;
        let known = self.names().position(|known| known == name);
        let unknown = || NoAccount::Unknown {
            known: self.names().map(str::to_owned).collect(),
        };
        self.active = known.ok_or_else(unknown)?;
        Ok(())
    }

    /// Removes the one that counts, and gives its name; the first that is left counts then.
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

/// Closes the file to others.
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

/// The keys in the user's file, as far as it can be read: they are redacted whatever else is wrong with it.
#[must_use]
pub fn keys_in_file(environment: &Environment) -> Vec<String> {
    let home = home::SHARED.directory(environment, System::current());
    let Ok(path) = home.map(|home| home.join(FILE)) else {
        return Vec::new();
    };
    let content = home_file::read(&path).ok().flatten();
    form::all_keys(&String::from_utf8_lossy(&content.unwrap_or_default()))
}
