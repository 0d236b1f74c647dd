//! The format of `models.json`. Pure.

use std::mem::take;
use std::sync::LazyLock;

use chrono::NaiveDate;
use regex::Regex;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::price::{LongPrompt, Price, Rates, Usd};
use crate::model::prompt::PromptOrder;
use crate::model::{
    Endpoint, FEWEST_TOKENS, ModelSpec, Place, Provider, ReasoningEffort, ReplyFormat, Thinking,
    Tier, ToolForm,
};
use crate::sys::positions::Entries;
use crate::sys::text::regex;

/// A duration as Ollama's API accepts it: the format of Go's `time.ParseDuration`.
static DURATION: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^[-+]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$"));

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct File<'a> {
    /// The models' entries, by name.
    #[serde(borrow, default)]
    pub models: Entries<'a>,
    /// The rules that select a model for each task.
    #[serde(borrow, default)]
    pub selection_rules: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rules<'a> {
    #[serde(borrow, default)]
    pub default: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub by_task_type: Option<&'a RawValue>,
}

/// A model's entry. Fields left out keep their built-in values, or are unknown.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelEntry {
    pub provider: Option<Provider>,
    #[serde(default, deserialize_with = "id")]
    id: Option<String>,
    #[serde(default, deserialize_with = "base_url")]
    base_url: Option<String>,
    api_version: Option<String>,
    /// `Some(None)`, written as `null`, is a model without a key file; `None` is a field left out.
    #[serde(default, deserialize_with = "key_file")]
    #[expect(clippy::option_option, reason = "null is not the same as left out")]
    key_file: Option<Option<String>>,
    #[serde(default, deserialize_with = "tokens")]
    context_window: Option<u64>,
    #[serde(default, deserialize_with = "tokens")]
    max_output_tokens: Option<u32>,
    reasoning_effort: Option<ReasoningEffort>,
    thinking: Option<Thinking>,
    #[serde(default, deserialize_with = "temperature")]
    temperature: Option<f64>,
    tools: Option<ToolForm>,
    service_tier: Option<Tier>,
    prompt_order: Option<PromptOrder>,
    #[serde(default, deserialize_with = "context_tokens")]
    context_tokens: Option<u64>,
    reply_format: Option<ReplyFormat>,
    /// Flags of a commit with this model.
    gate: Option<Value>,
    scratch: Option<Value>,
    strategy: Option<Value>,
    price: Option<PriceEntry>,
    fallback: Option<String>,
    #[serde(default, deserialize_with = "display_name")]
    display_name: Option<String>,
    capabilities: Option<Vec<String>>,
    recommended_for: Option<Vec<String>>,
    prompt: Option<String>,
    #[serde(default, deserialize_with = "tokens")]
    num_ctx: Option<u32>,
    #[serde(default, deserialize_with = "keep_alive")]
    keep_alive: Option<Value>,
}

impl ModelEntry {
    /// Applies the entry, from a file in `place`, to `spec`, with the prices of `today`.
    pub fn write_to(self, spec: &mut ModelSpec, place: Place, today: NaiveDate) {
        if place == Place::Home && self.base_url.is_none() && spec.base_url.is_none() {
            // In the home directory, keys are those of the user's accounts.
            spec.key_file =
                spec.key_file
                    .take()
                    .or(spec.provider.vendor().key_file.map(str::to_owned));
        }
        if self.base_url.is_some() {
            spec.base_url_from = place;
        }
        if let Some(id) = self.id {
            // A different model has a different price.
            spec.price = spec.price.filter(|_| spec.id == id);
            spec.id = id;
        }
        spec.base_url = self.base_url.or(spec.base_url.take());
        spec.api_version = self.api_version.or(spec.api_version.take());
        spec.key_file = self.key_file.unwrap_or(spec.key_file.take());
        spec.context_window = self.context_window.or(spec.context_window);
        spec.max_output_tokens = self.max_output_tokens.or(spec.max_output_tokens);
        spec.reasoning_effort = self.reasoning_effort.or(spec.reasoning_effort);
        // An entry that sets a temperature turns thinking off, unless it sets that as well.
        let thinks = spec.thinking.filter(|_| self.temperature.is_none());
        spec.thinking = self.thinking.or(thinks);
        spec.temperature = self.temperature.or(spec.temperature);
        spec.tools = self.tools.or(spec.tools);
        spec.tier = self.service_tier.unwrap_or(spec.tier);
        spec.prompt_order = self.prompt_order.unwrap_or(spec.prompt_order);
        spec.context_tokens = self.context_tokens.or(spec.context_tokens);
        spec.reply_format = self.reply_format.unwrap_or(spec.reply_format);
        for (name, value) in [
            ("gate", self.gate),
            ("scratch", self.scratch),
            ("strategy", self.strategy),
        ] {
            spec.flags
                .extend(value.map(|value| (name.to_owned(), value)));
        }
        spec.fallback = self.fallback.or(spec.fallback.take());
        spec.display_name = self.display_name.or(spec.display_name.take());
        spec.capabilities = self.capabilities.unwrap_or(take(&mut spec.capabilities));
        spec.recommended_for = self
            .recommended_for
            .unwrap_or(take(&mut spec.recommended_for));
        spec.prompt = self.prompt.or(spec.prompt.take());
        spec.num_ctx = self.num_ctx.or(spec.num_ctx);
        spec.keep_alive = self.keep_alive.or(spec.keep_alive.take());
        spec.price = match self.price {
            Some(price) => price.on(today),
            None => spec.price,
        };
    }

    /// Returns the entry's price as of `today`.
    pub fn price(self, today: NaiveDate) -> Option<Price> {
        self.price?.on(today)
    }
}

/// Reads a vendor's name for a model, which becomes part of a URL. It must not be `null`.
fn id<'de, D: Deserializer<'de>>(input: D) -> Result<Option<String>, D::Error> {
    let id = String::deserialize(input)?;
    if is_name(&id) {
        return Ok(Some(id));
    }
    Err(D::Error::custom(format!(
        "an id is made of letters, digits and `.:/_-`, which `{}` is not",
        id.escape_debug()
    )))
}

/// Reads a positive number of tokens.
fn tokens<'de, D: Deserializer<'de>, T: TryFrom<u64>>(input: D) -> Result<Option<T>, D::Error> {
    let Some(value) = Option::<Value>::deserialize(input)? else {
        return Ok(None);
    };
    let number = value.as_u64().filter(|number| *number > 0);
    match number.and_then(|number| T::try_from(number).ok()) {
        None => Err(D::Error::custom(format!(
            "`{value}` is not a number of tokens, a whole number from 1 on"
        ))),
        number => Ok(number),
    }
}

/// Reads a limit on the part of the code base that is sent.
fn context_tokens<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u64>, D::Error> {
    let number = tokens(input)?;
    if number.is_none_or(|number| number >= FEWEST_TOKENS) {
        return Ok(number);
    }
    Err(D::Error::custom(format!(
        "`contextTokens` is at least {FEWEST_TOKENS}"
    )))
}

/// Reads a temperature from 0 to 2, the range that vendors accept.
fn temperature<'de, D: Deserializer<'de>>(input: D) -> Result<Option<f64>, D::Error> {
    let degrees = Option::deserialize(input)?;
    if degrees.is_none_or(|degrees| (0.0..=2.0).contains(&degrees)) {
        return Ok(degrees);
    }
    Err(D::Error::custom("a temperature is a number from 0 to 2"))
}

/// Reads a display name, which must be a single line.
fn display_name<'de, D: Deserializer<'de>>(input: D) -> Result<Option<String>, D::Error> {
    let name: Option<String> = Option::deserialize(input)?;
    let is_line = |name: &String| !name.trim().is_empty() && !name.contains(char::is_control);
    if name.as_ref().is_none_or(is_line) {
        return Ok(name);
    }
    Err(D::Error::custom("a `displayName` is one line of text"))
}

/// Reads a number of seconds or a duration; a negative value means forever.
fn keep_alive<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Value>, D::Error> {
    let Some(value) = Option::<Value>::deserialize(input)? else {
        return Ok(None);
    };
    let is_duration = value.as_str().is_some_and(|text| DURATION.is_match(text));
    if value.is_number() || is_duration {
        return Ok(Some(value));
    }
    Err(D::Error::custom(format!(
        "`keepAlive` is a number of seconds or a duration like \"10m\", which `{value}` is not"
    )))
}

/// Reads a URL that is valid for calls without a key. Calls with a key are checked with the entry as a whole.
fn base_url<'de, D: Deserializer<'de>>(input: D) -> Result<Option<String>, D::Error> {
    let url: Option<String> = Option::deserialize(input)?;
    if let Some(url) = &url {
        Endpoint::parse("baseUrl", url, false).map_err(D::Error::custom)?;
    }
    Ok(url)
}

/// Reads the name of a file directly in `agent-config`.
#[expect(clippy::option_option, reason = "null is not the same as left out")]
fn key_file<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Option<String>>, D::Error> {
    let Some(file) = Option::<String>::deserialize(input)? else {
        return Ok(Some(None));
    };
    let name = file.strip_prefix("agent-config/").unwrap_or(&file);
    // A file's name has a dot and an extension; a key does not.
    let plain = is_name(name) && !name.contains(['/', ':']) && !name.starts_with('.');
    let is_file = name.rsplit_once('.').is_some_and(|(_, end)| end.len() <= 8);
    let is_own = ["models.json", "query.txt", "codeRollup.txt"].contains(&name);
    if plain && is_file && !is_own && name.len() <= 64 {
        return Ok(Some(Some(name.to_owned())));
    }
    // The value is not shown, since it may be the key itself.
    Err(D::Error::custom(
        "`keyFile` is the plain name of a file in `agent-config`, like `my-key.txt`",
    ))
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
    cache_write: Option<Usd>,
    long_prompt: Option<LongPromptEntry>,
    /// The last day on which this price applies.
    until: Option<NaiveDate>,
    /// The price after that day; unknown if left out.
    then: Option<Box<PriceEntry>>,
}

impl PriceEntry {
    fn on(self, today: NaiveDate) -> Option<Price> {
        if self.until.is_some_and(|last| last < today) {
            return self.then?.on(today);
        }
        let rates = |input, cached_input: Option<Usd>, cache_write: Option<Usd>, output| Rates {
            input,
            cached_input: cached_input.unwrap_or(input),
            cache_write: cache_write.unwrap_or(input),
            output,
        };
        Some(Price {
            rates: rates(self.input, self.cached_input, self.cache_write, self.output),
            long_prompt: self.long_prompt.map(|long| LongPrompt {
                above: long.above,
                rates: rates(long.input, long.cached_input, long.cache_write, long.output),
            }),
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LongPromptEntry {
    above: u64,
    input: Usd,
    output: Usd,
    cached_input: Option<Usd>,
    cache_write: Option<Usd>,
}
