//! The form of `models.json`: what may stand in it. Pure.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::model::endpoint::Endpoint;
use crate::model::price::{LongPrompt, Price, Usd};
use crate::model::{ModelSpec, Provider, Purpose, ReasoningEffort};
use crate::sys::positions::Entries;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct File<'a> {
    /// The models' entries, by name.
    #[serde(borrow, default)]
    pub models: Entries<'a>,
    /// Which is asked for what.
    #[serde(borrow, default)]
    pub selection_rules: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rules<'a> {
    #[serde(borrow, default)]
    pub default: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub by_task_type: ByTask<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ByTask<'a> {
    #[serde(borrow, default)]
    pub commit: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub repair: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub consistency: Option<&'a RawValue>,
}

impl<'a> ByTask<'a> {
    /// The rules, by what the model is called for.
    pub fn rules(&self) -> [(Purpose, Option<&'a RawValue>); 3] {
        [
            (Purpose::INITIAL, self.commit),
            (Purpose::REPAIR, self.repair),
            (Purpose::REPORT, self.consistency),
        ]
    }
}

/// A model's entry. What is left out stays as it is built in, or is not known.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    pub provider: Option<Provider>,
    #[serde(default, deserialize_with = "checked")]
    id: Option<Id>,
    base_url: Option<BaseUrl>,
    #[serde(default, deserialize_with = "said")]
    key_file: Said<KeyFile>,
    context_window: Option<std::num::NonZeroU64>,
    max_output_tokens: Option<std::num::NonZeroU32>,
    reasoning_effort: Option<ReasoningEffort>,
    price: Option<PriceEntry>,
}

impl Entry {
    pub fn write_to(self, spec: &mut ModelSpec) {
        if let Some(id) = self.id {
            // Another model has another price.
            spec.price = spec.price.filter(|_| spec.id == id.0);
            spec.id = id.0;
        }
        if let Some(url) = self.base_url {
            spec.base_url = Some(url.0);
        }
        match self.key_file {
            Said::Nothing => {}
            Said::None => spec.key_file = None,
            Said::Some(file) => spec.key_file = Some(file.0),
        }
        spec.context_window = self.context_window.map(Into::into).or(spec.context_window);
        spec.max_output_tokens = self
            .max_output_tokens
            .map(Into::into)
            .or(spec.max_output_tokens);
        spec.reasoning_effort = self.reasoning_effort.or(spec.reasoning_effort);
        spec.price = self.price.map(Into::into).or(spec.price);
    }
}

fn checked<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    input: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(input).map(Some)
}

/// What an entry says of a field: `null` is a model without, as opposed to nothing said.
#[derive(Default)]
enum Said<T> {
    #[default]
    Nothing,
    None,
    Some(T),
}

fn said<'de, D: Deserializer<'de>, T: Deserialize<'de>>(input: D) -> Result<Said<T>, D::Error> {
    Ok(Option::deserialize(input)?.map_or(Said::None, Said::Some))
}

/// A vendor's name for a model. It becomes part of a URL.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Id(String);

impl TryFrom<String> for Id {
    type Error = String;

    fn try_from(id: String) -> Result<Self, String> {
        if is_name(&id) {
            Ok(Self(id))
        } else {
            Err(format!(
                "an id is made of letters, digits and `.:/_-`, which `{}` is not",
                id.escape_debug()
            ))
        }
    }
}

/// A server that a key may travel to.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct BaseUrl(String);

impl TryFrom<String> for BaseUrl {
    type Error = String;

    fn try_from(url: String) -> Result<Self, String> {
        Endpoint::parse("baseUrl", &url).map_err(|problem| problem.to_string())?;
        Ok(Self(url))
    }
}

/// A file right in `agent-config`.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct KeyFile(String);

impl TryFrom<String> for KeyFile {
    type Error = String;

    fn try_from(file: String) -> Result<Self, String> {
        let name = file.strip_prefix("agent-config/").unwrap_or(&file);
        // The value is not shown: it may be the key itself.
        // A key has no dot and an ending; a file's name does.
        let plain = is_name(name) && !name.contains(['/', ':']) && !name.starts_with('.');
        let is_file = name.rsplit_once('.').is_some_and(|(_, end)| end.len() <= 8);
        let is_own = name == "models.json" || name == "query.txt" || name == "codeRollup.txt";
        if plain && is_file && !is_own && name.len() <= 64 {
            Ok(Self(name.to_owned()))
        } else {
            Err(
                "`keyFile` is the plain name of a file in `agent-config`, like `my-key.txt`"
                    .to_owned(),
            )
        }
    }
}

pub fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || ".:/_-".contains(c);
    !name.is_empty() && name.len() <= 200 && name.chars().all(plain) && !name.contains("..")
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PriceEntry {
    input: Usd,
    output: Usd,
    cached_input: Option<Usd>,
    long_prompt: Option<LongPromptEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LongPromptEntry {
    above: u64,
    input: Usd,
    output: Usd,
    cached_input: Option<Usd>,
}

impl From<PriceEntry> for Price {
    fn from(entry: PriceEntry) -> Self {
        Self {
            input: entry.input,
            cached_input: entry.cached_input.unwrap_or(entry.input),
            output: entry.output,
            long_prompt: entry.long_prompt.map(|long| LongPrompt {
                above: long.above,
                input: long.input,
                cached_input: long.cached_input.unwrap_or(long.input),
                output: long.output,
            }),
        }
    }
}
