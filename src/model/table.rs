//! The table of models: the specification's two, and what `agent-config/models.json` adds to them or
//! changes of them; the plan agent's table has those of its own `models.json` besides, and that of the agent at the terminal
//! has none but its own. Pure.
//!
//! Guarantees that every entry can be asked: its names are plain, its numbers make sense, and its base
//! URL is one that a key may travel to. A mistake in the file is told with its line and column.

mod chat;
mod form;
mod insertion;
mod plan;
mod task;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use chrono::NaiveDate;
use regex::Regex;
use serde_json::value::RawValue;

use self::form::{File, ModelEntry, Rules, is_name};
pub use self::plan::Unselected;
pub use self::task::TaskType;
use super::{
    Endpoint, ModelSpec, Origin, Provider, Purpose, ReasoningEffort, Tier, ToolForm, anthropic,
    azure, catalogue, retired, served,
};
use crate::model::price::{LongPrompt, Price, Usd};
use crate::sys::positions::{Misplaced, Positions};
use crate::sys::text::regex;

/// Every model that is known, the default first, and which of them is asked for what.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelTable {
    models: Vec<ModelSpec>,
    /// The model to ask where the command line names none.
    default: Option<String>,
    /// The same, by task.
    by_task: BTreeMap<TaskType, String>,
}

/// A key file, whatever else stands there.
static KEY_FILE: LazyLock<Regex> =
    LazyLock::new(|| regex(r#""keyFile"\s*:\s*"(?:agent-config/)?([^"/]+)""#));

/// What is wrong in a `models.json`, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{file}` is invalid: {mistake}")]
pub struct TableProblem {
    /// The path of the file, as it is shown.
    pub file: String,
    /// What is wrong in it.
    pub mistake: Misplaced,
}

impl TableProblem {
    /// A mistake in that file.
    fn of(file: impl Into<String>) -> impl FnOnce(Misplaced) -> Self {
        let file = file.into();
        |mistake| Self { file, mistake }
    }
}

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

/// Whether an entry of Azure's has what such a one may have, and any other nothing that is Azure's alone.
fn check_azures(spec: &ModelSpec) -> Result<(), String> {
    if spec.provider != Provider::Azure {
        let is_azures = spec.api_version.is_some();
        let refused = || Err("`apiVersion` is for the provider `azure`".to_owned());
        return if is_azures { refused() } else { Ok(()) };
    }
    if spec.reasoning_effort.is_some() || spec.tier != Tier::Standard {
        return Err(
            "`reasoningEffort` and `serviceTier` are not for the provider `azure`".to_owned(),
        );
    }
    azure::check(spec).map_err(|problem| problem.to_string())
}

/// Whether an entry of Anthropic's has what such a one may have, and any other nothing that is Anthropic's alone.
fn check_anthropics(spec: &ModelSpec) -> Result<(), String> {
    if spec.provider != Provider::Anthropic {
        let refused = || Err("`thinking` is for the provider `anthropic`".to_owned());
        return spec.thinking.map_or(Ok(()), |_| refused());
    }
    if spec.tier != Tier::Standard {
        return Err("`serviceTier` is not for the provider `anthropic`".to_owned());
    }
    match spec.reasoning_effort {
        Some(effort @ (ReasoningEffort::None | ReasoningEffort::Minimal)) => Err(format!(
            "the provider `anthropic` does not take the `reasoningEffort` `{}`, but low, medium, high, xhigh, max",
            effort.word()
        )),
        _ => Ok(()),
    }
}

fn usd(dollars: f64) -> Usd {
    Usd::try_from(dollars).unwrap_or_default()
}

impl ModelTable {
    /// The project's table, by its path from the root.
    pub const FILE: &str = "agent-config/models.json";

    /// The specification's models alone.
    #[must_use]
    pub fn built_in() -> Self {
        Self {
            models: built_in().into(),
            default: None,
            by_task: BTreeMap::new(),
        }
    }

    /// The specification's models with what `json`, the content of the project's `models.json`, adds and changes, at
    /// the prices of `today`.
    ///
    /// # Errors
    /// When there is a mistake in it.
    pub fn parse(json: &str, today: NaiveDate) -> Result<Self, TableProblem> {
        let mut table = Self::built_in();
        // What the plan agent is to ask may stand in its own table.
        let is_here = |task: TaskType| task.workflows_purpose().is_some();
        let default = table.merge(json, today, is_here);
        table.default = default.map_err(TableProblem::of(Self::FILE))?;
        Ok(table)
    }

    /// Takes in the content of a table: its entries and its rules by task, which win over those that are here. Rules
    /// must name models that are here, as far as `is_here` says so of their task. Gives the file's default.
    fn merge(
        &mut self,
        json: &str,
        today: NaiveDate,
        is_here: impl Fn(TaskType) -> bool,
    ) -> Result<Option<String>, Misplaced> {
        let json = json.strip_prefix('\u{feff}').unwrap_or(json);
        let at = Positions(json);
        let file: File<'_> = at.object(json)?;
        for (name, entry) in &file.models.0 {
            let read: ModelEntry = at.object(entry.get())?;
            self.add(name, read, today)
                .map_err(|reason| at.problem(entry.get(), reason))?;
        }
        // A fallback may stand below the entry that names it.
        for (name, entry) in &file.models.0 {
            self.check_fallbacks(name)
                .map_err(|reason| at.problem(entry.get(), reason))?;
        }
        let Some(rules) = file.selection_rules else {
            return Ok(None);
        };
        let read: Rules<'_> = at.object(rules.get())?;
        let default = read.default.map(|rule| self.rule(&at, rule, true));
        let default = default.transpose()?;
        for (task, rule) in read.by_task_type.rules() {
            let model = self.rule(&at, rule, is_here(task))?;
            self.by_task.insert(task, model);
        }
        Ok(default)
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
        let rule = |task| self.by_task.get(&task);
        let by_task = match TaskType::of_workflow(purpose) {
            // What is good enough for the change is good enough for its repair.
            Some(TaskType::Repair) => rule(TaskType::Repair).or(rule(TaskType::Commit)),
            task => task.and_then(rule),
        };
        let name = by_task.or(self.default.as_ref());
        let named = name.and_then(|name| self.named(name));
        named.unwrap_or(&self.models[0])
    }

    /// The tasks that the model of that name is selected for; of those of the plan agent, the ones that have a rule.
    pub fn tasks(&self, name: &str) -> impl Iterator<Item = TaskType> {
        TaskType::ALL
            .into_iter()
            .filter(move |task| match task.workflows_purpose() {
                Some(purpose) => self.chosen(&purpose).name == name,
                None => self.by_task.get(task).is_some_and(|rule| rule == name),
            })
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
        let spec = self.entry(name, entry.provider)?;
        if entry
            .provider
            .is_some_and(|provider| provider != spec.provider)
        {
            return Err(format!(
                "`{name}` is built in with another provider: choose another name"
            ));
        }
        if entry.tools == Some(ToolForm::Native) && spec.provider == Provider::Gemini {
            return Err("`\"tools\": \"native\"` is for the providers `openai`, `azure`, `anthropic` and `ollama`: `markdown` and `json` work with all".to_owned());
        }
        entry.write_to(spec, today);
        let is_ollamas = spec.num_ctx.is_some() || spec.keep_alive.is_some();
        if is_ollamas && spec.provider != Provider::Ollama {
            return Err("`numCtx` and `keepAlive` are for the provider `ollama`".to_owned());
        }
        check_azures(spec)?;
        check_anthropics(spec)?;
        if let (Some(url), Some(_)) = (&spec.base_url, &spec.key_file) {
            let checked = Endpoint::parse("baseUrl", url, true);
            checked.map_err(|problem| problem.to_string())?;
        }
        check_effort(spec)
    }

    /// The model of that name, to be written to: the built-in one as it is, any other anew, in the place of one from
    /// another file.
    fn entry(&mut self, name: &str, provider: Option<Provider>) -> Result<&mut ModelSpec, String> {
        let known = self.models.iter().position(|spec| spec.name == name);
        let at = known.unwrap_or(self.models.len());
        if known.is_some_and(|at| self.models[at].origin != Origin::Added) {
            self.models[at].origin = Origin::Overridden;
        } else {
            let provider = provider.ok_or_else(|| {
                format!(
                    "`{name}` has no `provider`: `gemini`, `ollama`, `azure`, `anthropic`, or `openai` (and all that is compatible)"
                )
            })?;
            let new = match provider {
                Provider::Azure => azure::entry(name),
                Provider::Anthropic => anthropic::entry(name),
                provider => ModelSpec::new(name, provider),
            };
            let new = ModelSpec {
                origin: Origin::Added,
                ..new
            };
            match known {
                Some(at) => self.models[at] = new,
                None => self.models.push(new),
            }
        }
        Ok(&mut self.models[at])
    }

    /// Whether the fallback of that model can be one, and the model that of others.
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
                "there is no model `{shown}` for the `fallback` of `{name}`: known are {}",
                self.names()
            )),
            Some(spec) if spec.fallback.is_some() => Err(format!(
                "`{shown}`, the `fallback` of `{name}`, has a `fallback` itself: there is one at the most"
            )),
            Some(_) => Ok(()),
        }
    }

    /// The model that a rule names; one that `is_here`, where that is so.
    fn rule(
        &self,
        at: &Positions<'_>,
        rule: &RawValue,
        is_here: bool,
    ) -> Result<String, Misplaced> {
        let name: String = at.parse(rule.get())?;
        if !is_here || self.named(&name).is_some() {
            return Ok(name);
        }
        let shown = name.escape_debug();
        let reason = match retired(&name) {
            Some(successor) => {
                format!("the model `{shown}` is retired: `{successor}` is its successor")
            }
            None => format!("there is no model `{shown}`: known are {}", self.names()),
        };
        Err(at.problem(rule.get(), reason))
    }
}
