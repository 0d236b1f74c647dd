//! The table of models: the specification's two, and what `agent-config/models.json` adds to them or
//! changes of them. Pure.
//!
//! Guarantees that every entry can be asked: its names are plain, its numbers make sense, and its base
//! URL is one that a key may travel to. A mistake in the file is told with its line and column.

mod form;

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use self::form::{Entry, File, Rules, is_name};
use super::{ModelSpec, Origin, Provider, Purpose};
use crate::model::price::{LongPrompt, Price, Usd};
use crate::sys::positions::{Misplaced, Positions};

/// Every model that is known, the default first, and which of them is asked for what.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelTable {
    models: Vec<ModelSpec>,
    rules: SelectionRules,
}

/// Which model is asked where the command line names none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct SelectionRules {
    default: Option<String>,
    by_purpose: BTreeMap<Purpose, String>,
}

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
        output: usd(output),
        long_prompt,
    };
    let long_prompt = LongPrompt {
        above: 200_000,
        input: usd(2.5),
        cached_input: usd(0.25),
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

fn usd(dollars: f64) -> Usd {
    Usd::try_from(dollars).unwrap_or_default()
}

impl ModelTable {
    /// The specification's models alone.
    #[must_use]
    pub fn built_in() -> Self {
        Self {
            models: built_in().into(),
            rules: SelectionRules::default(),
        }
    }

    /// The specification's models with what `json`, the content of `models.json`, adds and changes.
    ///
    /// # Errors
    /// When there is a mistake in it.
    pub fn parse(json: &str) -> Result<Self, TableProblem> {
        let json = json.strip_prefix('\u{feff}').unwrap_or(json);
        let at = Positions(json);
        let file: File<'_> = at.object(json)?;
        let mut table = Self::built_in();
        for (name, entry) in file.models.0 {
            let read: Entry = at.object(entry.get())?;
            table
                .add(&name, read)
                .map_err(|reason| at.problem(entry.get(), reason))?;
        }
        if let Some(rules) = file.selection_rules {
            let read: Rules<'_> = at.object(rules.get())?;
            let by_task = read.by_task_type;
            let named = |rule: Option<&RawValue>| table.rule(&at, rule);
            let mut by_purpose = BTreeMap::new();
            for (purpose, rule) in by_task.rules() {
                by_purpose.extend(named(rule)?.map(|model| (purpose, model)));
            }
            table.rules = SelectionRules {
                default: named(read.default)?,
                by_purpose,
            };
        }
        Ok(table)
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

    /// The model to ask for `purpose` where the command line names none.
    #[must_use]
    pub fn chosen(&self, purpose: &Purpose) -> &ModelSpec {
        let rules = &self.rules;
        let rule = |purpose| rules.by_purpose.get(purpose);
        let by_purpose = match rule(purpose) {
            // What is good enough for the change is good enough for its repair.
            None if *purpose == Purpose::REPAIR => rule(&Purpose::INITIAL),
            rule => rule,
        };
        let named = by_purpose.or(rules.default.as_ref());
        named
            .and_then(|name| self.named(name))
            .unwrap_or(&self.models[0])
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
        let behind = json.split("\"keyFile\"").skip(1);
        let values = behind.filter_map(|rest| rest.trim_start().strip_prefix(':'));
        let strings =
            values.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
        strings.filter_map(|file| {
            let name = file.strip_prefix("agent-config/").unwrap_or(file);
            is_name(name)
                .then_some(name)
                .filter(|name| !name.contains('/'))
        })
    }

    /// The names of all models, for messages.
    #[must_use]
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.models.iter().map(|spec| spec.name.as_str()).collect();
        names.join(", ")
    }

    fn add(&mut self, name: &str, entry: Entry) -> Result<(), String> {
        if !is_name(name) {
            return Err(format!(
                "a model's name is made of letters, digits and `.:/_-`, which `{}` is not",
                name.escape_debug()
            ));
        }
        if let Some(known) = self.models.iter_mut().find(|spec| spec.name == name) {
            if entry
                .provider
                .is_some_and(|provider| provider != known.provider)
            {
                return Err(format!(
                    "`{name}` is built in with another provider: choose another name"
                ));
            }
            known.origin = Origin::Overridden;
            entry.write_to(known);
            return Ok(());
        }
        let provider = entry.provider.ok_or_else(|| {
            format!("`{name}` has no `provider`: `gemini` or `openai` (and all that is compatible)")
        })?;
        let mut spec = ModelSpec::new(name, provider);
        spec.origin = Origin::Added;
        entry.write_to(&mut spec);
        self.models.push(spec);
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(json: &str) -> String {
        ModelTable::parse(json).unwrap_err().to_string()
    }

    #[test]
    fn without_rules_the_first_built_in_model_is_asked() {
        let table = ModelTable::parse("{}").unwrap();
        assert_eq!(table, ModelTable::built_in());
        for purpose in [Purpose::INITIAL, Purpose::REPAIR, Purpose::REPORT] {
            assert_eq!(table.chosen(&purpose).name, "gemini-2.5-pro");
        }
        assert_eq!(table.key_files(), ["gemini-key.txt", "openai-key.txt"]);
    }

    #[test]
    fn an_entry_adds_a_model_or_overrides_what_it_names_of_one() {
        let table = ModelTable::parse(
            r#"{"models": {
                "local": {"provider": "openai", "id": "qwen:7b", "baseUrl": "http://127.0.0.1:8080/v1",
                    "contextWindow": 8192, "maxOutputTokens": 2048, "reasoningEffort": "low", "price": {"input": 0, "output": 0}},
                "gpt-5": {"id": "gpt-5.5", "keyFile": "agent-config/other.txt", "price": {"input": 2, "output": 8}}
            }}"#,
        )
        .unwrap();
        let local = table.named("local").unwrap();
        assert_eq!(
            (local.id.as_str(), local.key_file.as_deref()),
            ("qwen:7b", None)
        );
        assert_eq!(local.context_window, Some(8192));
        assert_eq!(local.origin, Origin::Added);
        let gpt = table.named("gpt-5").unwrap();
        assert_eq!(
            (gpt.id.as_str(), gpt.key_file.as_deref()),
            ("gpt-5.5", Some("other.txt"))
        );
        assert_eq!(gpt.context_window, Some(272_000));
        assert!((gpt.price.unwrap().output.dollars() - 8.0).abs() < 1e-9);
        assert_eq!(gpt.origin, Origin::Overridden);
    }

    #[test]
    fn rules_say_who_is_asked_for_what() {
        let rules = |rules: &str| {
            let json = format!(
                r#"{{"models": {{"a": {{"provider": "openai"}}, "b": {{"provider": "openai"}}}}, "selectionRules": {rules}}}"#
            );
            let table = ModelTable::parse(&json).unwrap();
            [Purpose::INITIAL, Purpose::REPAIR, Purpose::REPORT]
                .map(|purpose| table.chosen(&purpose).name.clone())
        };
        let standard = "gemini-2.5-pro";
        for (json, expected) in [
            ("{}", [standard; 3]),
            (r#"{"default": "a"}"#, ["a"; 3]),
            (r#"{"byTaskType": {"commit": "a"}}"#, ["a", "a", standard]),
            (
                r#"{"default": "a", "byTaskType": {"repair": "b"}}"#,
                ["a", "b", "a"],
            ),
            (
                r#"{"default": "a", "byTaskType": {"consistency": "b"}}"#,
                ["a", "a", "b"],
            ),
        ] {
            assert_eq!(rules(json), expected, "{json}");
        }
    }

    #[test]
    fn a_mistake_is_told_with_its_place() {
        for (json, expected) in [
            ("", "line 1, column 1: EOF"),
            (
                "{\n  \"models\": [\n}",
                "line 2, column 12: invalid type: sequence",
            ),
            (
                "{\"modles\": {}}",
                "line 1, column 9: unknown field `modles`",
            ),
            (
                "{\"models\": {\n  \"x\": {\"provider\": \"openai\",\n    \"windw\": 1}}}",
                "line 3, column 11: unknown field `windw`",
            ),
            (
                "{\"models\": {\n  \"x\": {}}}",
                "line 2, column 8: `x` has no `provider`",
            ),
            (
                "{\"models\": {\"x\": {\"provider\": \"anthropic\"}}}",
                "unknown variant `anthropic`",
            ),
            (
                "{\"models\": {\"x\": {\"provider\": \"openai\", \"contextWindow\": 0}}}",
                "expected a nonzero u64",
            ),
            (
                "{\"models\": {\"x\": {\"provider\": \"openai\", \"price\": {\"input\": -1, \"output\": 1}}}}",
                "an amount of dollars is a number from 0",
            ),
            (
                "{\"models\": {\"x\": {\"provider\": \"openai\", \"baseUrl\": \"http://10.0.0.1/v1\"}}}",
                "plain http is taken for loopback hosts only",
            ),
            (
                "{\"models\": {\"x\": {\"provider\": \"openai\", \"baseUrl\": \"nowhere\"}}}",
                "not a plain URL",
            ),
            (
                "{\"models\": {\"x\": {\"provider\": \"openai\", \"id\": \"a?b\"}}}",
                "which `a?b` is not",
            ),
            (
                "{\"models\": {\"x\": {\"provider\": \"openai\", \"keyFile\": \"../key\"}}}",
                "plain name of a file in `agent-config`",
            ),
            (
                "{\"models\": {\"x\": {\"provider\": \"openai\"}, \"x\": {\"provider\": \"openai\"}}}",
                "`x` is there twice",
            ),
            (
                "{\"models\": {\"gpt-5\": {\"provider\": \"gemini\"}}}",
                "built in with another provider",
            ),
            (
                "{\"models\": {\" \": {\"provider\": \"gemini\"}}}",
                "a model's name is made of",
            ),
            (
                "{\"selectionRules\": {\n\"default\": \"gpt-6\"}}",
                "line 2, column 12: there is no model `gpt-6`: known are gemini-2.5-pro, gpt-5",
            ),
            (
                "{\"selectionRules\": {\n\"byTaskType\": {\"repair\": 5}}}",
                "line 2, column 26: invalid type: integer",
            ),
            (
                "{\"selectionRules\": {\"byTaskType\": {\"fix\": \"gpt-5\"}}}",
                "unknown field `fix`",
            ),
        ] {
            let problem = problem(json);
            assert!(problem.contains(expected), "{json}\n{problem}");
        }
    }

    #[test]
    fn a_key_in_the_place_of_its_file_is_not_shown() {
        for key in [
            "sk-proj-0123456789",
            "gsk_0123456789abcdef0123456789abcdef",
            "AIza0123456789",
        ] {
            let json =
                format!(r#"{{"models": {{"x": {{"provider": "openai", "keyFile": "{key}"}}}}}}"#);
            assert!(!problem(&json).contains(key));
        }
    }
}
