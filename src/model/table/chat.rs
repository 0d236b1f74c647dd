//! The table of the agent at the terminal: Anthropic's models, and what its own `models.json` adds to them or changes of
//! them. Pure.
//!
//! Guarantees that all of them are Anthropic's, and call tools by the vendor's own means; and that there is a default.

use std::collections::BTreeMap;
use std::path::Path;

use chrono::NaiveDate;

use super::form::{File, ModelEntry};
use super::{ModelTable, TableProblem};
use crate::model::{
    CHAT_MODELS, ListedModel, ModelSpec, Origin, Provider, Purpose, ToolForm, served,
};
use crate::sys::positions::{self, Misplaced, Positions};

/// What a mistake in the built-in models is told of; a test sees that there is none.
const BUILT_IN: &str = "anthropic/models.json";

impl ModelTable {
    /// The table of `own`, the content of `path`, over the built-in models, at the prices of `today`.
    ///
    /// # Errors
    /// When there is a mistake in it, or a model of another vendor's.
    pub fn for_chat(path: &Path, own: &[u8], today: NaiveDate) -> Result<Self, TableProblem> {
        let mut table = Self {
            models: Vec::new(),
            default: None,
            by_task: BTreeMap::new(),
        };
        let built_in = table.merge(CHAT_MODELS, today, |_| true);
        let default = built_in.map_err(TableProblem::of(BUILT_IN))?;
        for spec in &mut table.models {
            spec.origin = Origin::BuiltIn;
        }
        let merged = positions::text(own).and_then(|own| {
            table.check_vendor(own)?;
            table.merge(own, today, |_| true)
        });
        let own_default = merged.map_err(TableProblem::of(path.display().to_string()))?;
        table.default = own_default.or(default);
        table.models.iter_mut().for_each(for_chat);
        Ok(table)
    }

    /// The one that is asked where nobody has chosen another.
    #[must_use]
    pub fn chats_default(&self) -> &ModelSpec {
        self.chosen(&Purpose::STEP)
    }

    /// Takes in what the vendor's list has and the table has not.
    pub fn add_listed(&mut self, listed: &[ListedModel]) {
        for model in listed {
            if !is_among(&self.models, model) {
                let mut spec = ModelSpec {
                    context_window: model.max_input_tokens,
                    max_output_tokens: model.max_tokens.and_then(|most| most.try_into().ok()),
                    origin: Origin::Added,
                    ..ModelSpec::new(&model.id, Provider::Anthropic)
                };
                for_chat(&mut spec);
                self.models.push(spec);
            }
        }
    }

    /// Refuses an entry of another vendor's.
    fn check_vendor(&self, json: &str) -> Result<(), Misplaced> {
        let at = Positions(json);
        for (name, entry) in at.object::<File<'_>>(json)?.models.0 {
            let read: ModelEntry = at.object(entry.get())?;
            match read.provider {
                Some(Provider::Anthropic) => {}
                None if self.named(&name).is_some() => {}
                _ => {
                    let reason = "the `provider` of a model of `chat` is `anthropic`";
                    return Err(at.problem(entry.get(), reason));
                }
            }
        }
        Ok(())
    }
}

/// Whether one of the models is the listed one, or is served by a version of it.
fn is_among(models: &[ModelSpec], listed: &ListedModel) -> bool {
    let mut ids = models.iter().map(|spec| &spec.id);
    ids.any(|id| served::is_same(id, &listed.id))
}

fn for_chat(spec: &mut ModelSpec) {
    // The key is the account's.
    spec.key_file = None;
    spec.tools = ToolForm::Native;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::price::Usd;
    use crate::model::usage::Usage;

    fn table(own: &str) -> Result<ModelTable, TableProblem> {
        let today = "2026-11-23".parse().unwrap();
        ModelTable::for_chat(
            Path::new("/home/x/.agent/models.json"),
            own.as_bytes(),
            today,
        )
    }

    const FOUR: &str = "claude-fable-5-1, claude-opus-5-5, claude-sonnet-5-5, claude-haiku-5-5";

    #[test]
    fn a_temperature_takes_the_place_of_thinking() {
        for (entry, thinks) in [
            ("{}", true),
            (r#"{"temperature": 0.5}"#, false),
            (r#"{"temperature": 1, "thinking": "adaptive"}"#, true),
        ] {
            let own = format!(r#"{{"models": {{"claude-opus-5-5": {entry}}}}}"#);
            let table = table(&own).unwrap();
            let spec = table.named("claude-opus-5-5").unwrap();
            assert_eq!(spec.thinking.is_some(), thinks, "{entry}");
        }
    }

    #[test]
    fn the_vendors_four_are_built_in_with_their_windows_and_prices() {
        let table = table(CHAT_MODELS).unwrap();
        assert_eq!(table.names(), FOUR);
        assert_eq!(table.chats_default().name, "claude-sonnet-5-5");
        for (name, million_in, million_out) in [
            ("claude-fable-5-1", 10.0, 50.0),
            ("claude-opus-5-5", 4.0, 20.0),
            ("claude-sonnet-5-5", 2.0, 10.0),
            ("claude-haiku-5-5", 0.5, 2.5),
        ] {
            let spec = table.named(name).unwrap();
            assert_eq!(spec.provider, Provider::Anthropic);
            assert_eq!(spec.context_window, Some(1_000_000));
            assert_eq!(spec.max_output_tokens, Some(128_000));
            assert_eq!((spec.tools, &spec.key_file), (ToolForm::Native, &None));
            let price = spec.price.unwrap();
            let million = 1_000_000;
            let all = price.of(Usage::plain(million, million));
            assert_eq!(
                all,
                Usd::try_from(million_in + million_out).unwrap(),
                "{name}"
            );
        }
    }

    #[test]
    fn an_own_file_changes_adds_and_chooses() {
        assert_eq!(table("{}").unwrap().names(), FOUR);
        let own = r#"{"models": {
            "claude-sonnet-5-5": {"maxOutputTokens": 9},
            "mine": {"provider": "anthropic", "id": "claude-x", "baseUrl": "https://proxy.test"}
        }, "selectionRules": {"default": "mine"}}"#;
        let table = table(own).unwrap();
        assert_eq!(table.names(), format!("{FOUR}, mine"));
        assert_eq!(table.chats_default().name, "mine");
        let sonnet = table.named("claude-sonnet-5-5").unwrap();
        assert_eq!(sonnet.max_output_tokens, Some(9));
        assert_eq!(sonnet.context_window, Some(1_000_000));
        let mine = table.named("mine").unwrap();
        assert_eq!((&*mine.id, mine.tools), ("claude-x", ToolForm::Native));
        assert_eq!(mine.key_file, None);
    }

    #[test]
    fn a_mistake_is_told_with_the_file_and_its_place() {
        for (own, expected) in [
            ("", "line 1, column 1: EOF while parsing a value"),
            ("[]", "line 1, column 1: an object is expected here"),
            (
                "{\n\"models\": {\"a\": {\"provider\": \"openai\"}}}",
                "line 2, column 17: the `provider` of a model of `chat` is `anthropic`",
            ),
            (
                "{\"models\": {\"gpt-5\": {}}}",
                "line 1, column 22: the `provider` of a model",
            ),
            (
                "{\"models\": {\"a\": {\"provider\": \"antropic\"}}}",
                "line 1, column ",
            ),
            (
                "{\"selectionRules\": {\"default\": \"gpt-5\"}}",
                "line 1, column 32: there is no model `gpt-5`: known are claude-",
            ),
            (
                "{\"selectionRules\": {\"default\": \"claude-3-opus\"}}",
                "line 1, column 32: the model `claude-3-opus` is retired: `claude-opus-5-5` is its successor",
            ),
            (
                "{\"models\": {\"claude-opus-5-5\": {\"contextWindow\": \"1M\"}}}",
                "line 1, column ",
            ),
        ] {
            let problem = table(own).unwrap_err().to_string();
            let expected = format!("`/home/x/.agent/models.json` is invalid: {expected}");
            assert!(problem.starts_with(&expected), "{problem}");
        }
    }

    #[test]
    fn what_the_vendor_lists_besides_is_added_once() {
        let listed = |id: &str, window| ListedModel {
            id: id.to_owned(),
            display_name: String::new(),
            created_at: String::new(),
            max_input_tokens: window,
            max_tokens: Some(64_000),
        };
        let mut table = table("{}").unwrap();
        let list = [
            listed("claude-sonnet-5-5-20260901", None),
            listed("claude-haiku-5-5", None),
            listed("claude-next", Some(2_000_000)),
        ];
        for _ in 0..2 {
            table.add_listed(&list);
        }
        assert_eq!(table.names(), format!("{FOUR}, claude-next"));
        let next = table.named("claude-next").unwrap();
        assert_eq!(next.context_window, Some(2_000_000));
        assert_eq!(next.max_output_tokens, Some(64_000));
        assert_eq!((next.tools, next.price), (ToolForm::Native, None));
    }
}
