//! The form of `auth.json`. Pure.
//!
//! Guarantees that what is told of a mistake shows no value.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Account, Accounts, Credential, USUAL, VERSION, check_name};
use crate::model::Provider;
use crate::secret::ApiKey;
use crate::sys::positions::{self, Entries, Misplaced, Positions};
use crate::sys::text::regex;

/// A key, whatever else stands there.
static KEY: LazyLock<Regex> = LazyLock::new(|| regex(r#""api_key"\s*:\s*"([^"]+)""#));

/// Whatever looks like a key in `json`, which may be no such file at all.
pub fn all_keys(json: &str) -> Vec<String> {
    let keys = KEY.captures_iter(json).map(|found| found.extract());
    keys.map(|(_, [key])| key.to_owned()).collect()
}

/// The accounts that the content of a file stands for.
///
/// # Errors
/// The first mistake in it.
pub fn parse(content: &[u8]) -> Result<Accounts, Misplaced> {
    let json = positions::text(content)?;
    let at = Positions(json);
    let entries: Entries<'_> = at.object(json)?;
    let (mut version, mut active, mut accounts) = (None, None, None);
    let mut further = Map::new();
    for (name, value) in entries.0 {
        match &*name {
            "version" => version = Some(value),
            "active" => active = Some(value),
            "accounts" => accounts = Some(value),
            _ => {
                further.insert(name, at.parse(value.get())?);
            }
        }
    }
    let unversioned = || at.problem(json, format!("`version` is missing: it is {VERSION}"));
    let version = version.ok_or_else(unversioned)?;
    if at.parse::<Value>(version.get())? != VERSION {
        let reason = format!("`version` must be {VERSION}: this program knows no other");
        return Err(at.problem(version.get(), reason));
    }
    let accounts = accounts.ok_or_else(|| at.problem(json, "`accounts` is missing: a list"))?;
    let accounts = accounts_of(&at, accounts)?;
    let active = match active {
        Some(name) => place_of(&at, name, &accounts)?,
        None => 0,
    };
    Ok(Accounts {
        active,
        accounts,
        further,
        ..Accounts::default()
    })
}

/// The place of the account that counts; without a name, the first does.
fn place_of(at: &Positions<'_>, name: &RawValue, accounts: &[Account]) -> Result<usize, Misplaced> {
    let active: Option<String> = serde_json::from_str(name.get()).map_err(|_| {
        at.problem(
            name.get(),
            "`active` must be the name of an account, in quotes",
        )
    })?;
    let Some(active) = active else {
        return Ok(0);
    };
    let mut accounts = accounts.iter();
    let place = accounts.position(|account| account.name == active);
    place.ok_or_else(|| at.problem(name.get(), "`active` names no account of the list"))
}

fn accounts_of(at: &Positions<'_>, list: &RawValue) -> Result<Vec<Account>, Misplaced> {
    if !list.get().starts_with('[') {
        return Err(at.problem(list.get(), "`accounts` must be a list, in `[` and `]`"));
    }
    let entries: Vec<&RawValue> = at.parse(list.get())?;
    let mut names = BTreeSet::new();
    let account = |entry: &&RawValue| {
        let account = account(at, entry)?;
        if !names.insert(account.name.clone()) {
            let reason = format!("there is an account `{}` already", account.name);
            return Err(at.problem(entry.get(), reason));
        }
        Ok(account)
    };
    entries.iter().map(account).collect()
}

fn account(at: &Positions<'_>, entry: &RawValue) -> Result<Account, Misplaced> {
    let fields: Entries<'_> = at.object(entry.get())?;
    let (mut name, mut provider, mut key, mut command) = (None, USUAL, None, None);
    let mut further = Map::new();
    for (field, value) in fields.0 {
        let wrong = |expected| at.problem(value.get(), format!("`{field}` {expected}"));
        match &*field {
            "name" => name = Some(name_in(value.get()).map_err(wrong)?),
            "provider" => provider = provider_in(value.get()).map_err(wrong)?,
            "api_key" => key = Some(key_in(value.get()).map_err(wrong)?),
            "api_key_command" => command = Some(command_in(value.get()).map_err(wrong)?),
            _ => {
                further.insert(field, at.parse(value.get())?);
            }
        }
    }
    let incomplete = |reason: &str| at.problem(entry.get(), reason);
    let credential = match (key, command) {
        (Some(key), None) => Credential::Key(key),
        (None, Some(command)) => Credential::Command(command),
        _ => {
            let reason = "an account has either an `api_key` or an `api_key_command`";
            return Err(incomplete(reason));
        }
    };
    Ok(Account {
        name: name.ok_or_else(|| incomplete("an account needs a `name`"))?,
        provider,
        credential,
        further,
    })
}

// None of these by serde's errors: those would show the value.

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
    let provider = provider.filter(|provider: &Provider| provider.vendor().key_file.is_some());
    provider.ok_or_else(|| "must be `anthropic`, `gemini`, `openai` or `azure`".to_owned())
}

fn key_in(json: &str) -> Result<ApiKey, String> {
    let key = ApiKey::parse(text(json)?.as_bytes());
    key.map_err(|problem| format!("{problem}, which no key has"))
}

fn command_in(json: &str) -> Result<Vec<String>, String> {
    let words: Option<Vec<String>> = serde_json::from_str(json).ok();
    let is_command = |words: &Vec<String>| {
        let is_named = words.first().is_some_and(|program| !program.is_empty());
        is_named && !words.iter().any(|word| word.contains('\0'))
    };
    let words = words.filter(is_command).ok_or_else(|| {
        "must be a program and its arguments, like `[\"secret-tool\", \"lookup\", \"service\", \"claude\"]`".to_owned()
    })?;
    // From the current directory it would be a file of the project.
    let program = words.first().map_or("", String::as_str);
    if program.contains('/') && !program.starts_with('/') {
        let reason = "must begin with a program's name, or its absolute path: a relative one leads into the project";
        return Err(reason.to_owned());
    }
    Ok(words)
}
