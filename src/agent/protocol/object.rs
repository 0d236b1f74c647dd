//! Parsing of a reply that is a single JSON object. Pure.
//!
//! The object may be surrounded by blanks and one code fence, and preceded by one `<think>…</think>`. Everything else
//! is rejected, and so are duplicate keys at any depth, since it would be unclear which of the two is meant.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Fault;
use crate::model::thoughts::without_thoughts;
use crate::sys::fences::enclosed;
use crate::sys::positions::{Entries, Misplaced, Positions};
use crate::sys::text::{BYTE_ORDER_MARK, one_line};

/// Maximum length of a key shown in a fault, in characters.
const SHOWN: usize = 60;

/// Parses a reply as a JSON object.
///
/// # Errors
/// A fault, with its line if it has one.
pub fn read(reply: &str) -> Result<Map<String, Value>, Fault> {
    let spoken = without_thoughts(bare(reply)).ok_or_else(|| {
        Fault::of_all("all of the reply is thought: no `</think>` follows `<think>`")
    })?;
    let text = bare(unfenced(bare(spoken)));
    if text.is_empty() {
        return Err(Fault::of_all("the reply is empty: it is one JSON object"));
    }
    // The offset of the object in the reply, to compute line numbers.
    let start = (text.as_ptr() as usize).saturating_sub(reply.as_ptr() as usize);
    let above = reply.get(..start).unwrap_or_default().matches('\n').count();
    if !text.starts_with('{') {
        let problem =
            "the reply does not begin with `{`: it is one JSON object, with no words around it";
        return Err(Fault::at(above + 1, problem));
    }
    let no_object = |line, problem: &str| {
        let problem = format!("the reply is no JSON object: {problem}");
        Fault::at(above + line, problem)
    };
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    let object = match values.next() {
        Some(Ok(object)) => object,
        Some(Err(error)) => return Err(no_object(error.line().max(1), &error.to_string())),
        None => return Err(Fault::of_all("the reply is no JSON object")),
    };
    let (whole, behind) = text.split_at(values.byte_offset());
    if let Err(twice) = check_keys(Positions(whole), whole) {
        return Err(no_object(twice.line, &format!("the key {}", twice.reason)));
    }
    match bare(behind).chars().next() {
        None => Ok(object),
        Some('{') => Err(Fault::of_all(
            "a second JSON object follows the first: put all of it into one",
        )),
        Some(_) => Err(Fault::of_all(
            "text follows the JSON object: end the reply with its `}`",
        )),
    }
}

/// Rejects duplicate keys at any depth.
fn check_keys(at: Positions<'_>, json: &str) -> Result<(), Misplaced> {
    match json.trim_start().as_bytes() {
        [b'{', ..] => {
            let mut entries = at.parse::<Entries<'_>>(json)?.0.into_iter();
            entries.try_for_each(|(_, value)| check_keys(at, value.get()))
        }
        [b'[', ..] => {
            let mut values = at.parse::<Vec<&RawValue>>(json)?.into_iter();
            values.try_for_each(|value| check_keys(at, value.get()))
        }
        _ => Ok(()),
    }
}

/// Removes the thoughts under `key` from the object; empty if there are none.
///
/// # Errors
/// Fails if the thoughts are not a string.
pub(super) fn thoughts(
    object: &mut Map<String, Value>,
    key: Option<&str>,
) -> Result<String, Fault> {
    match key.and_then(|key| object.remove(key)) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(Fault::of_all(format!(
            "`{}` must be a JSON string",
            key.unwrap_or_default()
        ))),
    }
}

/// Formats a key for use in a sentence.
pub(crate) fn key(name: &str) -> String {
    format!("`{}`", one_line(name, SHOWN))
}

/// Strips blanks and byte order marks from both ends of the text.
fn bare(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || BYTE_ORDER_MARK.contains(c))
}

/// Strips a code fence that encloses all of the text.
pub(crate) fn unfenced(text: &str) -> &str {
    enclosed(text).map_or(text, |(_, content)| content.trim())
}
