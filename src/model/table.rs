//! The table of models: the specification's two, and what `agent-config/models.json` adds to them or
//! changes of them. Pure.
//!
//! Guarantees that every entry can be asked: its names are plain, its numbers make sense, and its base
//! URL is one that a key may travel to. A mistake in the file is told with its line and column.

mod form;
mod insertion;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use chrono::NaiveDate;
use regex::Regex;
use serde_json::value::RawValue;

use self::form::{File, ModelEntry, Rules, is_name};
use super::{Endpoint, ModelSpec, Origin, Provider, Purpose, ToolForm, catalogue, served};
use crate::model::price::{LongPrompt, Price, Usd};
use crate::sys::positions::{Misplaced, Positions};
use crate::sys::text::regex;

/// Every model that is known, the default first, and which of them is asked for what.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelTable {
    models: Vec<ModelSpec>,
    /// The model to ask where the command line names none.
    default: Option<String>,
    /// The same, by what it is called for.
    by_purpose: BTreeMap<Purpose, String>,
}

/// A key file, whatever else stands there.
static KEY_FILE: LazyLock<Regex> =
    LazyLock::new(|| regex(r#""keyFile"\s*:\s*"(?:agent-config/)?([^"/]+)""#));

/// What is wrong in `models.json`, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct TableProblem(#[from] pub Misplaced);

/// The specification's models, the default first. Limits and prices: `reference/llm-apis.md`, after the
/// vendors' published descriptions.
fn built_in() -> [ModelSpec; 2] {
    let price = |input, cached_input, output, long_prompt| Price {
        input: usd(input),
        cached_input: usd(cached_input),
        // These vendors do not bill it.
        cache_write: usd(input),
        output: usd(output),
        long_prompt,
    };
    let long_prompt = LongPrompt {
        above: 200_000,
        input: usd(2.5),
        cached_input: usd(0.25),
        cache_write: usd(2.5),
        output: usd(15.0),
    };
    let gemini = ModelSpec {
        key_file: Some("gemini-key.txt".to_owned()),
        context_window: Some(1_048_576),
        max_output_tokens: Some(65_536),
        price: Some(price(1.25, 0.125, 10.0, Some(long_prompt))),
        ..ModelSpec::new("gemini-2.5-pro", Provider::Gemini)
    };
    let gpt = ModelSpec {
        key_file: Some("openai-key.txt".to_owned()),
        context_window: Some(272_000),
        max_output_tokens: Some(128_000),
        price: Some(price(1.25, 0.125, 10.0, None)),
        ..ModelSpec::new("gpt-5", Provider::OpenAi)
    };
    [gemini, gpt]
}

/// Whether the model takes the word of effort that its entry has.
fn check_effort(spec: &ModelSpec) -> Result<(), String> {
    let taken = catalogue::known(&spec.id).and_then(|known| known.efforts.as_deref());
    let (Some(effort), Some(taken)) = (spec.reasoning_effort, taken) else {
        return Ok(());
    };
    if taken.contains(&effort) {
        return Ok(());
    }
    let words: Vec<&str> = taken.iter().map(|word| word.word()).collect();
    Err(format!(
        "`{}` does not take the `reasoningEffort` `{}`, but {}",
        spec.id,
        effort.word(),
        words.join(", ")
    ))
}

fn usd(dollars: f64) -> Usd {
    Usd::try_from(dollars).unwrap_or_default()
}

impl ModelTable {
    /// The specification's models alone.
    #[must_use]
    pub fn built_in() -> Self {
        Self {
            models: built_in().into(),
            default: None,
            by_purpose: BTreeMap::new(),
        }
    }

    /// The specification's models with what `json`, the content of `models.json`, adds and changes, at the prices of
    /// `today`.
    ///
    /// # Errors
    /// When there is a mistake in it.
    pub fn parse(json: &str, today: NaiveDate) -> Result<Self, TableProblem> {
        let json = json.strip_prefix('\u{feff}').unwrap_or(json);
        let at = Positions(json);
        let file: File<'_> = at.object(json)?;
        let mut table = Self::built_in();
        for (name, entry) in &file.models.0 {
            let read: ModelEntry = at.object(entry.get())?;
            table
                .add(name, read, today)
                .map_err(|reason| at.problem(entry.get(), reason))?;
        }
        // A fallback may stand below the entry that names it.
        for (name, entry) in &file.models.0 {
            table
                .check_fallback(name)
                .map_err(|reason| at.problem(entry.get(), reason))?;
        }
        if let Some(rules) = file.selection_rules {
            let read: Rules<'_> = at.object(rules.get())?;
            table.default = table.rule(&at, read.default)?;
            for (purpose, rule) in read.by_task_type.rules() {
                let model = table.rule(&at, rule)?;
                table.by_purpose.extend(model.map(|model| (purpose, model)));
            }
        }
        Ok(table)
    }

    /// The text `json` of a table with the `entry` of a model at its end.
    ///
    /// # Errors
    /// When either is no JSON.
    pub fn with_entry(json: &str, name: &str, entry: &str) -> serde_json::Result<String> {
        insertion::with_entry(json, name, entry)
    }

    /// All models, the specification's first.
    #[must_use]
    pub fn models(&self) -> &[ModelSpec] {
        &self.models
    }

    /// The model of that name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&ModelSpec> {
        self.models.iter().find(|spec| spec.name == name)
    }

    /// What the successor of a model is called, by its vendor's name, where it is here.
    #[must_use]
    pub fn successor(&self, id: &str) -> Option<&str> {
        let successor = catalogue::successor(id)?;
        let found = self.models.iter().find(|spec| spec.id == successor)?;
        Some(&found.name)
    }

    /// The price of `today` of a model by its vendor's name, or a version of it, where that is known.
    #[must_use]
    pub fn price_of(&self, provider: Provider, id: &str, today: NaiveDate) -> Option<Price> {
        let is_it = |spec: &&ModelSpec| {
            spec.provider == provider && !spec.has_own_price() && served::is_same(&spec.id, id)
        };
        if let Some(spec) = self.models.iter().find(is_it) {
            return spec.price;
        }
        let entry = catalogue::matching(id)?.entry.as_ref()?;
        let entry: ModelEntry = serde_json::from_str(entry.get()).ok()?;
        entry.price(today)
    }

    /// The model to ask for `purpose` where the command line names none.
    #[must_use]
    pub fn chosen(&self, purpose: &Purpose) -> &ModelSpec {
        let rule = |purpose| self.by_purpose.get(purpose);
        let by_purpose = match rule(purpose) {
            // What is good enough for the change is good enough for its repair.
            None if *purpose == Purpose::REPAIR => rule(&Purpose::INITIAL),
            rule => rule,
        };
        let name = by_purpose.or(self.default.as_ref());
        let named = name.and_then(|name| self.named(name));
        named.unwrap_or(&self.models[0])
    }

    /// The key files of all models, each once.
    #[must_use]
    pub fn key_files(&self) -> Vec<&str> {
        let files = self.models.iter();
        let mut files: Vec<&str> = files.filter_map(|spec| spec.key_file.as_deref()).collect();
        files.sort_unstable();
        files.dedup();
        files
    }

    /// Whatever looks like the name of a key file in `json`, which may be no table at all.
    pub fn named_key_files(json: &str) -> impl Iterator<Item = &str> {
        let names = KEY_FILE.captures_iter(json).map(|found| found.extract());
        names.map(|(_, [name])| name).filter(|name| is_name(name))
    }

    /// The names of all models, for messages.
    #[must_use]
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.models.iter().map(|spec| spec.name.as_str()).collect();
        names.join(", ")
    }

    fn add(&mut self, name: &str, entry: ModelEntry, today: NaiveDate) -> Result<(), String> {
        if !is_name(name) {
            return Err(format!(
                "a model's name is made of letters, digits and `.:/_-`, which `{}` is not",
                name.escape_debug()
            ));
        }
        let known = self.models.iter().position(|spec| spec.name == name);
        let at = known.unwrap_or(self.models.len());
        if known.is_none() {
            let provider = entry.provider.ok_or_else(|| {
                format!(
                    "`{name}` has no `provider`: `gemini` or `openai` (and all that is compatible)"
                )
            })?;
            self.models.push(ModelSpec::new(name, provider));
        }
        let spec = &mut self.models[at];
        if entry
            .provider
            .is_some_and(|provider| provider != spec.provider)
        {
            return Err(format!(
                "`{name}` is built in with another provider: choose another name"
            ));
        }
        if entry.tools == Some(ToolForm::Native) && spec.provider == Provider::Gemini {
            return Err("`\"tools\": \"native\"` is for the provider `openai`: `markdown` and `json` work with both".to_owned());
        }
        spec.origin = known.map_or(Origin::Added, |_| Origin::Overridden);
        entry.write_to(spec, today);
        if let (Some(url), Some(_)) = (&spec.base_url, &spec.key_file) {
            let checked = Endpoint::parse("baseUrl", url, true);
            checked.map_err(|problem| problem.to_string())?;
        }
        check_effort(spec)
    }

    /// Whether the fallback of that model can be one.
    fn check_fallback(&self, name: &str) -> Result<(), String> {
        let Some(fallback) = self.named(name).and_then(|spec| spec.fallback.as_deref()) else {
            return Ok(());
        };
        let shown = fallback.escape_debug();
        match self.named(fallback) {
            _ if fallback == name => Err(format!("`{name}` cannot be its own `fallback`")),
            None => Err(format!(
                "there is no model `{shown}` for the `fallback` of `{name}`: known are {}",
                self.names()
            )),
            Some(spec) if spec.fallback.is_some() => Err(format!(
                "`{shown}`, the `fallback` of `{name}`, has a `fallback` itself: there is one at the most"
            )),
            Some(_) => Ok(()),
        }
    }

    fn rule(
        &self,
        at: &Positions<'_>,
        rule: Option<&RawValue>,
    ) -> Result<Option<String>, Misplaced> {
        let Some(rule) = rule else {
            return Ok(None);
        };
        let name: String = at.parse(rule.get())?;
        if self.named(&name).is_some() {
            return Ok(Some(name));
        }
        let reason = format!(
            "there is no model `{}`: known are {}",
            name.escape_debug(),
            self.names()
        );
        Err(at.problem(rule.get(), reason))
    }
}
