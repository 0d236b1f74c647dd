//! The table of models: the built-in ones, overridden by the user's `models.json` in `~/.agent` and the project's in
//! `agent-config`. For the agent `plan`, its own file comes between these two. Pure.
//!
//! Guarantees that every entry can be used: its names are plain, its numbers make sense, and its base URL is one that a
//! key may be sent to. A mistake in a file is reported with its line and column.

mod insertion;
mod task;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use chrono::NaiveDate;
use regex::Regex;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

pub use self::task::TaskType;
use super::fields::is_name;
use super::{
    Endpoint, ListedModel, ModelSpec, Origin, Place, Provider, Purpose, catalogue, retired, served,
};
use crate::model::price::{Price, PriceEntry};
use crate::sys::positions::{self, Entries, Misplaced, Positions};
use crate::sys::text::regex;

/// The specification's models, the default first, with the limits and prices that the vendors publish.
const BUILT_IN: &str = include_str!("table/built_in.json");
/// Anthropic's models, and the default of the agent `chat`.
pub(crate) const CHAT_MODELS: &str = include_str!("anthropic/models.json");

/// The content of a `models.json`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File<'a> {
    /// The models' entries, by name.
    #[serde(borrow, default)]
    models: Entries<'a>,
    /// The rules that select a model for each task.
    #[serde(borrow, default)]
    selection_rules: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rules<'a> {
    #[serde(borrow, default)]
    default: Option<&'a RawValue>,
    #[serde(borrow, default)]
    by_task_type: Option<&'a RawValue>,
}

/// A file that defines models.
#[derive(Debug, Clone, Copy)]
pub struct TableFile<'f> {
    /// The file's location.
    pub place: Place,
    /// The file's path, as shown in messages.
    pub path: &'f str,
    /// The file's content.
    pub content: &'f [u8],
}

/// All known models, the default first, and the rules that select one for each task.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelTable {
    models: Vec<ModelSpec>,
    /// The default of each file: the project's for commits, the home directory's for `chat`, and plan's for `plan`.
    defaults: BTreeMap<Place, String>,
    by_task: BTreeMap<TaskType, String>,
    /// True if plan's own file is part of the table; its rules must then name models in it.
    is_plans: bool,
}

/// Matches a key file in text that may not be valid JSON.
static KEY_FILE: LazyLock<Regex> =
    LazyLock::new(|| regex(r#""keyFile"\s*:\s*"(?:agent-config/)?([^"/]+)""#));

/// A mistake in a `models.json`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{file}` is invalid: {mistake}")]
pub struct TableProblem {
    /// The path of the file, as shown in messages.
    pub file: String,
    /// The mistake and its position.
    pub mistake: Misplaced,
}

/// The error if neither a rule nor a default selects a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no model is selected for `{}`; known: {known}", .task.word())]
pub struct Unselected {
    /// The task without a model.
    pub task: TaskType,
    /// The names of all known models.
    pub known: String,
}

/// Checks that the fields of an entry are compatible with each other and with its provider.
fn check(spec: &ModelSpec) -> Result<(), String> {
    spec.provider.check(spec)?;
    if let (Some(url), Some(_)) = (&spec.base_url, &spec.key_file) {
        Endpoint::parse("baseUrl", url, true).map_err(|problem| problem.to_string())?;
    }
    let taken = catalogue::known(&spec.id).and_then(|known| known.efforts.as_deref());
    match (spec.reasoning_effort, taken) {
        (Some(effort), Some(taken)) if !taken.contains(&effort) => {
            let words: Vec<String> = taken.iter().map(|effort| effort.word()).collect();
            Err(format!(
                "`{}` does not take the `reasoningEffort` `{}`, but {}",
                spec.id,
                effort.word(),
                words.join(", ")
            ))
        }
        _ => Ok(()),
    }
}

/// Overrides the fields of `spec` that an entry in `place` sets, at the prices of `today`.
fn overridden(
    spec: ModelSpec,
    entry: &Map<String, Value>,
    place: Place,
    today: NaiveDate,
) -> serde_json::Result<ModelSpec> {
    let mut fields: Map<String, Value> = serde_json::from_value(json!(spec))?;
    fields.retain(|field, _| !matches!(&**field, "name" | "origin"));
    fields.extend(entry.clone());
    let new: ModelSpec = serde_json::from_value(fields.into())?;
    let sets = |field: &str| entry.contains_key(field);
    // In the home directory, keys are those of the user's accounts.
    let accounts = new
        .provider
        .vendor()
        .key_file
        .filter(|_| place == Place::Home && new.base_url.is_none() && !sets("keyFile"));
    Ok(ModelSpec {
        key_file: new.key_file.or(accounts.map(str::to_owned)),
        // An entry that sets a temperature turns thinking off, unless it sets that as well.
        thinking: new
            .thinking
            .filter(|_| sets("thinking") || !sets("temperature")),
        price: match entry.get("price") {
            Some(price) => PriceEntry::deserialize(price)?.on(today),
            // A different model has a different price.
            None => new.price.filter(|_| new.id == spec.id),
        },
        base_url_from: if sets("baseUrl") {
            place
        } else {
            spec.base_url_from
        },
        name: spec.name,
        origin: spec.origin,
        file: spec.file,
        ..new
    })
}

impl ModelSpec {
    /// Returns the path of the file that its entry must be in to take effect, as shown in messages.
    pub fn table(&self) -> &str {
        self.file.as_deref().unwrap_or(ModelTable::FILE)
    }
}

impl ModelTable {
    /// The path of the project's table, relative to the project's root.
    pub const FILE: &str = "agent-config/models.json";

    /// The initial content of plan's own table, from `spec/plan-prompts.md`, 5.1.
    pub const PLAN_DEFAULTS: &str = include_str!("../../prompts/plan_models.json");

    /// Creates the table of only the built-in models.
    pub fn built_in() -> Self {
        let mut table = Self::default();
        for (place, json) in [(Place::BuiltIn, BUILT_IN), (Place::Home, CHAT_MODELS)] {
            // A test checks that they contain no mistakes.
            let _ = table.merge(place, json, NaiveDate::MIN);
        }
        for spec in &mut table.models {
            spec.origin = Origin::BuiltIn;
        }
        table
    }

    /// Reads the built-in models, changed and extended by `files` in increasing order of precedence, at the prices of
    /// `today`.
    ///
    /// # Errors
    /// Fails if a file contains a mistake.
    pub fn read<'f>(
        files: impl IntoIterator<Item = TableFile<'f>>,
        today: NaiveDate,
    ) -> Result<Self, TableProblem> {
        let mut table = Self::built_in();
        for file in files {
            table.is_plans |= file.place == Place::Plan;
            let known = table.models.clone();
            let merged =
                positions::text(file.content).and_then(|json| table.merge(file.place, json, today));
            merged.map_err(|mistake| TableProblem {
                file: file.path.to_owned(),
                mistake,
            })?;
            for spec in &mut table.models {
                if !known.contains(spec) {
                    spec.file = Some(file.path.to_owned());
                }
            }
        }
        // The specification's models and the user's own come first.
        table
            .models
            .sort_by_key(|spec| spec.provider.vendor().is_listed && spec.origin == Origin::BuiltIn);
        Ok(table)
    }

    /// Reads the built-in models, changed and extended by `json`, the content of the project's `models.json`.
    ///
    /// # Errors
    /// Fails if `json` contains a mistake.
    pub fn parse(json: &str, today: NaiveDate) -> Result<Self, TableProblem> {
        let project = TableFile {
            place: Place::Project,
            path: Self::FILE,
            content: json.as_bytes(),
        };
        Self::read([project], today)
    }

    /// Merges the content of a file into the table; its entries and rules override earlier ones.
    fn merge(&mut self, place: Place, json: &str, today: NaiveDate) -> Result<(), Misplaced> {
        let at = Positions(json);
        let file: File<'_> = at.object(json)?;
        for (name, entry) in &file.models.0 {
            // Mistakes in fields have places of their own; which fields are set is known from the object.
            at.object::<ModelSpec>(entry.get())?;
            let fields = at.object(entry.get())?;
            self.add(place, name, fields, today)
                .map_err(|reason| at.problem(entry.get(), reason))?;
        }
        // A fallback may be defined after the entry that names it.
        for (name, entry) in &file.models.0 {
            self.check_fallbacks(name)
                .map_err(|reason| at.problem(entry.get(), reason))?;
        }
        let Some(rules) = file.selection_rules else {
            return Ok(());
        };
        let read: Rules<'_> = at.object(rules.get())?;
        if let Some(rule) = read.default {
            self.defaults
                .insert(place, self.rule(&at, rule.get(), true)?);
        }
        let by_task = read.by_task_type.map_or("{}", RawValue::get);
        let (rules, unknown) = at.fields(by_task, TaskType::ALL.map(|(word, _)| word))?;
        if let Some(name) = unknown.keys().next() {
            let words = TaskType::ALL
                .map(|(word, _)| format!("`{word}`"))
                .join(", ");
            let problem = format!("unknown field `{name}`, expected one of {words}");
            return Err(at.problem(by_task, problem));
        }
        for ((_, task), rule) in TaskType::ALL.into_iter().zip(rules) {
            // Rules for the agent `plan` may name models that only its own table has.
            let is_here = self.is_plans || task.workflows_purpose().is_some();
            if let Some(rule) = rule {
                self.by_task.insert(task, self.rule(&at, rule, is_here)?);
            }
        }
        Ok(())
    }

    /// Returns `json`, the text of a table, with the `entry` of a model at its end; `None` if it has one of this name.
    ///
    /// # Errors
    /// Fails if either text is not valid JSON.
    pub fn with_entry(json: &str, name: &str, entry: &str) -> serde_json::Result<Option<String>> {
        insertion::with_entry(json, name, entry)
    }

    /// Returns all models, the specification's first.
    pub fn models(&self) -> &[ModelSpec] {
        &self.models
    }

    /// Returns the model with this name.
    pub fn named(&self, name: &str) -> Option<&ModelSpec> {
        self.models.iter().find(|spec| spec.name == name)
    }

    /// Returns the name in this table of the successor to the model that the vendor calls `id`; `None` if it is not
    /// there.
    pub fn successor(&self, id: &str) -> Option<&str> {
        let successor = catalogue::successor(id)?;
        let found = self.models.iter().find(|spec| spec.id == successor)?;
        Some(&found.name)
    }

    /// Returns the entry for the model `id` or the model it is a version of; skips entries with a price of their own.
    pub fn entry_of(&self, provider: Provider, id: &str) -> Option<&ModelSpec> {
        let is_it = |spec: &&ModelSpec| {
            spec.provider == provider && !spec.has_own_price() && served::is_same(&spec.id, id)
        };
        self.models.iter().find(is_it)
    }

    /// Returns the price, as of `today`, of the vendor's model `id`, or of the model it is a version of.
    pub fn price_of(&self, provider: Provider, id: &str, today: NaiveDate) -> Option<Price> {
        if let Some(spec) = self.entry_of(provider, id) {
            return spec.price;
        }
        let json = catalogue::matching(id)?.entry.as_ref()?.get();
        let entry: Value = serde_json::from_str(json).ok()?;
        PriceEntry::deserialize(&entry["price"]).ok()?.on(today)
    }

    /// Returns the model for `purpose`, unless the command line names one.
    pub fn chosen(&self, purpose: &Purpose) -> &ModelSpec {
        let rule = |task| self.by_task.get(&task);
        let by_task = match TaskType::of_workflow(purpose) {
            // A model that is good enough for the change is good enough for its repair.
            Some(TaskType::Repair) => rule(TaskType::Repair).or(rule(TaskType::Commit)),
            task => task.and_then(rule),
        };
        self.or_first(by_task.or(self.defaults.get(&Place::Project)))
    }

    /// Returns the model that the agent `chat` uses unless another is chosen.
    pub fn chat_default(&self) -> &ModelSpec {
        self.or_first(self.defaults.get(&Place::Home))
    }

    /// Returns the model with this name, or else the first one.
    fn or_first(&self, name: Option<&String>) -> &ModelSpec {
        name.and_then(|name| self.named(name))
            .unwrap_or(&self.models[0])
    }

    /// Returns the model selected for a task of the agent `plan`.
    ///
    /// # Errors
    /// Fails if the task has no rule, and plan's own table no default.
    pub fn for_task(&self, task: TaskType) -> Result<&ModelSpec, Unselected> {
        let name = self.by_task.get(&task).or(self.defaults.get(&Place::Plan));
        name.and_then(|name| self.named(name))
            .ok_or_else(|| Unselected {
                task,
                known: self.names(),
            })
    }

    /// Adds the models of the provider's list, except those that are in the table or a version of one that is.
    pub fn add_listed(&mut self, provider: Provider, listed: &[ListedModel]) {
        for model in listed {
            let mut ids = self.models.iter().map(|spec| &spec.id);
            if !ids.any(|id| served::is_same(id, &model.id)) {
                let known = provider.spec(&model.id);
                self.models.push(ModelSpec {
                    context_window: model.max_input_tokens,
                    max_output_tokens: model.max_tokens.and_then(|most| most.try_into().ok()),
                    origin: Origin::Added,
                    ..known
                });
            }
        }
    }

    /// Returns the tasks that the model with this name is selected for. The plan agent's tasks count only if they have
    /// a rule.
    pub fn tasks(&self, name: &str) -> impl Iterator<Item = TaskType> {
        let all = TaskType::ALL.into_iter().map(|(_, task)| task);
        all.filter(move |task| match task.workflows_purpose() {
            Some(purpose) => self.chosen(&purpose).name == name,
            None => self.by_task.get(task).is_some_and(|rule| rule == name),
        })
    }

    /// Returns the key files of the models, without duplicates.
    pub fn key_files(&self) -> BTreeSet<&str> {
        let files = self.models.iter().flat_map(|spec| &spec.key_file);
        files.map(String::as_str).collect()
    }

    /// Returns all files that may hold a key, without duplicates: the default ones of all vendors, and those of the models
    /// if there is a table.
    pub fn all_key_files(table: Option<&Self>) -> Vec<&str> {
        let vendors = Provider::ALL.map(|provider| provider.vendor().key_file);
        let mut files = table.map_or_else(BTreeSet::new, Self::key_files);
        files.extend(vendors.into_iter().flatten());
        files.into_iter().collect()
    }

    /// Finds names that look like key files in `json`, which may not be a valid table.
    pub fn named_key_files(json: &str) -> impl Iterator<Item = &str> {
        let names = KEY_FILE.captures_iter(json).map(|found| found.extract());
        names.map(|(_, [name])| name).filter(|name| is_name(name))
    }

    /// Returns the names of all models, separated by commas, for messages.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.models.iter().map(|spec| spec.name.as_str()).collect();
        names.join(", ")
    }

    fn add(
        &mut self,
        place: Place,
        name: &str,
        mut entry: Map<String, Value>,
        today: NaiveDate,
    ) -> Result<(), String> {
        if !is_name(name) {
            return Err(format!(
                "a model's name is made of letters, digits and `.:/_-`, which `{}` is not",
                name.escape_debug()
            ));
        }
        // A field that is null is left out, but a model may have no key file.
        entry.retain(|field, value| field == "keyFile" || !value.is_null());
        let provider = entry.get("provider").and_then(Value::as_str);
        let provider = provider.and_then(Provider::named);
        let known = self.models.iter().position(|spec| spec.name == name);
        // For models that are not built in, a later entry replaces the earlier one as a whole.
        let built_in = known.filter(|at| self.models[*at].origin != Origin::Added);
        let base = match (built_in.map(|at| &self.models[at]), provider) {
            (Some(spec), provider) => {
                if provider.is_some_and(|provider| provider != spec.provider) {
                    return Err(format!(
                        "`{name}` is built in with another provider: choose another name"
                    ));
                }
                spec.clone()
            }
            (None, None) => {
                return Err(format!(
                    "`{name}` has no `provider`: {} (`openai` for every compatible server)",
                    Provider::alternatives(Provider::ALL)
                ));
            }
            (None, Some(provider)) => ModelSpec {
                origin: Origin::Added,
                ..provider.spec(name)
            },
        };
        let mut spec = overridden(base, &entry, place, today).map_err(|error| error.to_string())?;
        check(&spec)?;
        match known {
            Some(at) if spec == self.models[at] => {}
            Some(at) => {
                if built_in.is_some() {
                    spec.origin = Origin::Overridden;
                }
                self.models[at] = spec;
            }
            None => self.models.push(spec),
        }
        Ok(())
    }

    /// Checks the fallback of the model with this name, and the models that fall back on it.
    fn check_fallbacks(&self, name: &str) -> Result<(), String> {
        let is_concerned =
            |spec: &&ModelSpec| spec.name == name || spec.fallback.as_deref() == Some(name);
        let mut concerned = self.models.iter().filter(is_concerned);
        concerned.try_for_each(|spec| self.check_fallback(spec))
    }

    fn check_fallback(&self, spec: &ModelSpec) -> Result<(), String> {
        let (name, Some(fallback)) = (&spec.name, spec.fallback.as_deref()) else {
            return Ok(());
        };
        let shown = fallback.escape_debug();
        match self.named(fallback) {
            _ if fallback == name => Err(format!("`{name}` cannot be its own `fallback`")),
            None => Err(format!(
                "there is no model `{shown}` for the `fallback` of `{name}`; known: {}",
                self.names()
            )),
            Some(spec) if spec.fallback.is_some() => Err(format!(
                "`{shown}`, the `fallback` of `{name}`, has a `fallback` itself: there is one at the most"
            )),
            Some(_) => Ok(()),
        }
    }

    /// Reads the name of a model in a rule; the model must be in the table if `is_here`.
    fn rule(&self, at: &Positions<'_>, rule: &str, is_here: bool) -> Result<String, Misplaced> {
        let name: String = at.parse(rule)?;
        if !is_here || self.named(&name).is_some() {
            return Ok(name);
        }
        let shown = name.escape_debug();
        let reason = match retired(&name) {
            Some(successor) => {
                format!("the model `{shown}` is retired: `{successor}` is its successor")
            }
            None => format!("there is no model `{shown}`; known: {}", self.names()),
        };
        Err(at.problem(rule, reason))
    }
}
