//! The models that the agent at the terminal can ask, and the one that it asks.
//!
//! Reads `models.json` in the agent's home, and makes it where it is missing. Sends nothing.

use std::path::Path;

use super::login::ChatKey;
use crate::commands::chat::accounts::key::{KeyOrigin, VARIABLE};
use crate::commands::error::{ChatError, Error};
use crate::commands::models::HOME_FILE;
use crate::model::price::Usd;
use crate::model::{CHAT_MODELS, ListedModel, ModelSpec, ModelTable, retired, served};
use crate::record::replay::Recording;
use crate::run::context::{Context, ModelChoice};
use crate::run::keys::KeySource;
use crate::run::not_ready::NotReady;
use crate::run::selection;
use crate::run::selection::{Models, SelectedModel};
use crate::run::sending;
use crate::sys::home_file;
use crate::sys::numbers::grouped;
use crate::sys::text::one_line;
use crate::ui::tui::Menu;

#[cfg(test)]
mod tests;

/// How much of a name that a server tells is shown, in characters.
const SHOWN: usize = 60;

/// The table of models; the user's file in the agent's home is made where it is missing.
///
/// # Errors
/// When a file cannot be read or made, or there is a mistake in one.
pub fn table(context: &Context<'_>, home: &Path) -> Result<ModelTable, Error> {
    let table = context.models.as_ref();
    let table = table.map_err(|problem| NotReady::from(problem.clone()))?;
    let path = home.join(HOME_FILE);
    if !path.exists() {
        home_file::create(&path, CHAT_MODELS.as_bytes())?;
    }
    Ok(table.clone().for_chat())
}

/// The table's entry of that name; without one, the default's.
///
/// # Errors
/// When there is none of that name, or no longer.
pub fn selected(table: &ModelTable, name: Option<&str>) -> Result<ModelSpec, Error> {
    let Some(name) = name else {
        return Ok(table.chats_default().clone());
    };
    if let Some(known) = table.named(name) {
        return Ok(known.clone());
    }
    let name = name.to_owned();
    let problem = match retired(&name) {
        Some(successor) => ChatError::RetiredModel { name, successor },
        None => ChatError::UnknownModel {
            name,
            known: table.names(),
        },
    };
    Err(problem.into())
}

/// The model that `choice` names, or that was recorded, or else the default, with this key. Without a key, one that must
/// not be asked.
///
/// # Errors
/// When there is no such model, or its server has no address.
pub fn models<'c>(
    context: &Context<'c>,
    choice: &ModelChoice,
    table: &ModelTable,
    key: &ChatKey,
) -> Result<Models<'c>, Error> {
    if choice.tier.is_some() {
        return Err(ChatError::NoTiers.into());
    }
    let recording = selection::find_recording(context, choice)?;
    let recorded = recording.as_ref().and_then(Recording::first_model);
    let recorded = recorded.filter(|name| table.named(name).is_some());
    let spec = selected(table, choice.model.as_deref().or(recorded))?;
    if let Some(recording) = &recording {
        let first = SelectedModel::replayed(context, spec, recording);
        return Ok(Models::new(choice, true, first, Vec::new()));
    }
    let mut missing = NotReady::default();
    missing.extend(sending::without_price(choice, &spec));
    let found = key.found().ok();
    let own_key = found.map(|found| found.key.clone());
    let first = SelectedModel::vendors(context, choice, spec, own_key, &mut missing);
    let mut first = first
        .filter(|_| missing.problems.is_empty())
        .ok_or(missing)?;
    if found.is_some_and(|found| found.origin == KeyOrigin::Environment) {
        first.key_source = Some(KeySource::Variable(VARIABLE));
    }
    Ok(Models::new(choice, false, first, Vec::new()))
}

/// The models to choose from, in the table's order, with what the vendor's list has to say of them, if it is known; the
/// one of the name `now` is marked.
#[must_use]
pub fn menu(table: &ModelTable, listed: Option<&[ListedModel]>, now: &str) -> Menu {
    let models = table.models();
    let items = models.iter();
    let items = items.map(|spec| (spec.name.clone(), description(spec, listed)));
    Menu {
        title: "Choose a model: window, dollars per million tokens in/out".to_owned(),
        items: items.collect(),
        at: models.iter().position(|spec| spec.name == now).unwrap_or(0),
    }
}

fn description(spec: &ModelSpec, listed: Option<&[ListedModel]>) -> String {
    let by_vendor = listed.map(|listed| {
        let mut listed = listed.iter();
        listed.find(|model| served::is_same(&spec.id, &model.id))
    });
    let name = match by_vendor {
        // Its server may have others.
        Some(None) if spec.base_url.is_none() => Some("not offered for this key".to_owned()),
        Some(Some(model)) if !model.display_name.trim().is_empty() => {
            Some(one_line(&model.display_name, SHOWN))
        }
        _ => spec.display_name.clone(),
    };
    let window = spec.context_window.map(short);
    let price = spec.price.as_ref();
    let usual = price.map(|price| priced(price.input, price.output));
    let long = price.and_then(|price| price.long_prompt).map(|long| {
        let price = priced(long.input, long.output);
        format!("{price} above {}", short(long.above))
    });
    // What is compared goes first: the rest is cut where there is little room.
    let told = [window, usual, long, name];
    told.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The prices of prompt and answer: `$2/$10`.
fn priced(input: Usd, output: Usd) -> String {
    let [input, output] = [input, output].map(|usd| usd.to_string());
    let whole = |usd: &str| usd.trim_end_matches(".00").to_owned();
    format!("{}/{}", whole(&input), whole(&output))
}

/// A round number of tokens: `1M`, `128k`.
fn short(tokens: u64) -> String {
    match tokens {
        0 => "0".to_owned(),
        _ if tokens.is_multiple_of(1_000_000) => format!("{}M", tokens / 1_000_000),
        _ if tokens.is_multiple_of(1000) => format!("{}k", tokens / 1000),
        _ => grouped(tokens),
    }
}
