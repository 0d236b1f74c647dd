//! The models available to the terminal agent, and the selection of one of them.
//!
//! Reads `models.json` in the agent's home, creating it if it is missing. Sends nothing.

use std::collections::BTreeMap;
use std::path::Path;

use super::error::ChatError;
use super::login::{self, ChatKey};
use crate::commands::models::HOME_FILE;
use crate::commands::talk::menu::model_menu;
use crate::model::price::Rates;
use crate::model::{CHAT_MODELS, ListedModel, ModelSpec, ModelTable, Provider, ToolForm, served};
use crate::project::home;
use crate::record::replay::Recording;
use crate::run::agent_models;
use crate::run::context::{Context, ModelChoice};
use crate::run::not_ready::NotReady;
use crate::run::selection::{self, ModelKey, Models};
use crate::sys::error::Error;
use crate::sys::numbers::grouped;
use crate::sys::text::one_line;
use crate::ui::tui::Menu;

#[cfg(test)]
mod tests;

/// The maximum length of a display name from a vendor, in characters.
const SHOWN: usize = 60;

/// Returns the table of models, and creates the user's file in the agent's home if it is missing.
///
/// # Errors
/// Fails if a file is invalid, or cannot be read or created.
pub fn table(context: &Context<'_>, home: &Path) -> Result<ModelTable, Error> {
    let table = selection::table_of(context.models)?;
    let path = home.join(HOME_FILE);
    if !path.exists() {
        let made = home::CHAT.create(&path, CHAT_MODELS.as_bytes());
        made.map_err(NotReady::of)?;
    }
    Ok(table.clone())
}

/// Returns the model of this name; without a name, the default one.
///
/// # Errors
/// Fails if the model is unknown or retired, or its entry selects non-native tool calls.
pub fn selected(
    context: &Context<'_>,
    table: &ModelTable,
    name: Option<&str>,
) -> Result<ModelSpec, Error> {
    let spec = match name {
        Some(name) => selection::named_or_installed(context, table, name)?,
        None => table.chat_default().clone(),
    };
    match spec.tools {
        None | Some(ToolForm::Native) => Ok(spec),
        Some(_) => Err(ChatError::NoNativeTools(spec.name).into()),
    }
}

/// The model of a session, before it is set up.
pub struct ChosenModel {
    /// The available models.
    pub table: ModelTable,
    /// The model to ask.
    pub spec: ModelSpec,
    /// The key for its server.
    pub key: ChatKey,
    /// The accounts that the user has chosen in the session, by vendor.
    pub accounts: BTreeMap<Provider, String>,
}

/// Selects the model named by `choice`, or else the recorded one, or else the default, together with its key, which is
/// that of one of the `accounts` if the user has chosen one of its vendor. Without a `table`, uses that of the project
/// and its user.
///
/// # Errors
/// Fails if the model does not exist, or a file cannot be used. A missing key is not an error.
pub fn choose(
    context: &Context<'_>,
    choice: &ModelChoice,
    accounts: BTreeMap<Provider, String>,
    table: Option<ModelTable>,
) -> Result<ChosenModel, Error> {
    let table = table.map_or_else(|| self::table(context, &login::home(context)?), Ok)?;
    let recording = selection::find_recording(context, choice.replay.as_deref())?;
    let recorded = recording.as_ref().and_then(Recording::first_model);
    let known = recorded.filter(|name| table.named(name).is_some());
    let spec = selected(context, &table, choice.model.as_deref().or(known))?;
    let key = login::key(context, choice, &accounts, &spec)?;
    Ok(ChosenModel {
        table,
        spec,
        key,
        accounts,
    })
}

/// Sets up access to a model with this key. Without a key, the model must not be called.
///
/// # Errors
/// Fails if the address of the model's server or another part of the setup is missing.
pub fn models<'c>(
    context: &Context<'c>,
    choice: &ModelChoice,
    spec: ModelSpec,
    key: &ChatKey,
) -> Result<Models<'c>, Error> {
    let vendor = spec.provider.vendor();
    if choice.tier.is_some() && vendor.refuses_tiers {
        return Err(ChatError::NoTiers(vendor.name).into());
    }
    let recording = selection::find_recording(context, choice.replay.as_deref())?;
    let (found, source) = selection::key_of(key.found().cloned());
    let given = ModelKey::Given(found, source);
    agent_models::one_model(context, choice, recording.as_ref(), spec, given)
}

/// Builds the menu of models in the table's order, with details from the vendor's list if it is known. The model called
/// `now` is selected.
pub fn menu(table: &ModelTable, listed: Option<&[ListedModel]>, now: &str) -> Menu {
    let title = "Choose a model: window, dollars per million tokens in/out";
    let described = |spec: &ModelSpec| description(spec, listed);
    model_menu(title, table.models(), described, now)
}

fn description(spec: &ModelSpec, listed: Option<&[ListedModel]>) -> String {
    let is_same = |model: &&ListedModel| served::is_same(&spec.id, &model.id);
    let by_vendor = listed.map(|listed| listed.iter().find(is_same));
    let name = match by_vendor {
        // A server with its own `base_url` may offer other models.
        Some(None) if spec.base_url.is_none() && spec.provider.vendor().is_listed => {
            Some("not offered for this key".to_owned())
        }
        Some(Some(model)) if !model.display_name.trim().is_empty() => {
            Some(one_line(&model.display_name, SHOWN))
        }
        _ => spec.display_name.clone(),
    };
    let window = spec.context_window.map(short);
    let price = spec.price.as_ref();
    let usual = price.map(|price| priced(&price.rates));
    let long = price.and_then(|price| price.long_prompt).map(|long| {
        let price = priced(&long.rates);
        format!("{price} above {}", short(long.above))
    });
    // The values to compare come first, since the end is cut off in narrow terminals.
    let parts = [window, usual, long, name];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Formats the prices of input and output, such as `$2/$10`.
fn priced(rates: &Rates) -> String {
    let [input, output] = [rates.input, rates.output].map(|usd| usd.to_string());
    let whole = |usd: &str| usd.trim_end_matches(".00").to_owned();
    format!("{}/{}", whole(&input), whole(&output))
}

/// Abbreviates a round number of tokens, such as `1M` or `128k`.
fn short(tokens: u64) -> String {
    match tokens {
        0 => "0".to_owned(),
        _ if tokens.is_multiple_of(1_000_000) => format!("{}M", tokens / 1_000_000),
        _ if tokens.is_multiple_of(1000) => format!("{}k", tokens / 1000),
        _ => grouped(tokens),
    }
}
