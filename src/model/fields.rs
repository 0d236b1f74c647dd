//! Reads the fields of a model's entry in `models.json`, each of which has values that make sense. Pure.

use std::sync::LazyLock;

use regex::Regex;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::Endpoint;
use crate::sys::text::regex;

/// Smallest accepted limit on a code base, in tokens; less is not worth sending.
pub const FEWEST_TOKENS: u64 = 1000;

/// A duration as Ollama's API accepts it: the format of Go's `time.ParseDuration`.
static DURATION: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^[-+]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$"));

/// Reads a field for which null counts as left out.
pub fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    input: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(input)?.unwrap_or_default())
}

/// Reads a vendor's name for a model, which becomes part of a URL.
pub fn id<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    let id = String::deserialize(input)?;
    if is_name(&id) {
        return Ok(id);
    }
    Err(D::Error::custom(format!(
        "an id is made of letters, digits and `.:/_-`, which `{}` is not",
        id.escape_debug()
    )))
}

/// Reads a positive number of tokens.
pub fn tokens<'de, D: Deserializer<'de>, T: TryFrom<u64>>(input: D) -> Result<Option<T>, D::Error> {
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
pub fn context_tokens<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u64>, D::Error> {
    let number = tokens(input)?;
    if number.is_none_or(|number| number >= FEWEST_TOKENS) {
        return Ok(number);
    }
    Err(D::Error::custom(format!(
        "`contextTokens` is at least {FEWEST_TOKENS}"
    )))
}

/// Reads a temperature from 0 to 2, the range that vendors accept.
pub fn temperature<'de, D: Deserializer<'de>>(input: D) -> Result<Option<f64>, D::Error> {
    let degrees = Option::deserialize(input)?;
    if degrees.is_none_or(|degrees| (0.0..=2.0).contains(&degrees)) {
        return Ok(degrees);
    }
    Err(D::Error::custom("a temperature is a number from 0 to 2"))
}

/// Reads a display name, which must be a single line.
pub fn display_name<'de, D: Deserializer<'de>>(input: D) -> Result<Option<String>, D::Error> {
    let name: Option<String> = Option::deserialize(input)?;
    let is_line = |name: &String| !name.trim().is_empty() && !name.contains(char::is_control);
    if name.as_ref().is_none_or(is_line) {
        return Ok(name);
    }
    Err(D::Error::custom("a `displayName` is one line of text"))
}

/// Reads a number of seconds or a duration; a negative value means forever.
pub fn keep_alive<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Value>, D::Error> {
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
pub fn base_url<'de, D: Deserializer<'de>>(input: D) -> Result<Option<String>, D::Error> {
    let url: Option<String> = Option::deserialize(input)?;
    if let Some(url) = &url {
        Endpoint::parse("baseUrl", url, false).map_err(D::Error::custom)?;
    }
    Ok(url)
}

/// Reads the name of a file directly in `agent-config`.
pub fn key_file<'de, D: Deserializer<'de>>(input: D) -> Result<Option<String>, D::Error> {
    let Some(file) = Option::<String>::deserialize(input)? else {
        return Ok(None);
    };
    let name = file.strip_prefix("agent-config/").unwrap_or(&file);
    // A file's name has a dot and an extension; a key does not.
    let plain = is_name(name) && !name.contains(['/', ':']) && !name.starts_with('.');
    let is_file = name.rsplit_once('.').is_some_and(|(_, end)| end.len() <= 8);
    let is_own = ["models.json", "query.txt", "codeRollup.txt"].contains(&name);
    if plain && is_file && !is_own && name.len() <= 64 {
        return Ok(Some(name.to_owned()));
    }
    // The value is not shown, since it may be the key itself.
    Err(D::Error::custom(
        "`keyFile` is the plain name of a file in `agent-config`, like `my-key.txt`",
    ))
}

/// Returns whether this is a plain name, which needs no escaping.
pub fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || ".:/_-".contains(c);
    !name.is_empty() && name.len() <= 200 && name.chars().all(plain) && !name.contains("..")
}
