//! The one JSON object that a reply is. Pure.
//!
//! Around it may stand blanks, one `<think>…</think>` ahead of it, and one code fence. All else is refused, and so is
//! a key that is there twice, however deep: nobody can say which of the two was meant.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::Fault;
use crate::sys::fences::Fence;
use crate::sys::text::{BYTE_ORDER_MARK, one_line};

/// The longest part of a key that is shown, in characters.
const SHOWN: usize = 60;

/// The object.
///
/// # Errors
/// A fault, with its line if it has one.
pub fn read(reply: &str) -> Result<Map<String, Value>, Fault> {
    let text = bare(unfenced(without_thought(bare(reply))?));
    if text.is_empty() {
        return Err(Fault::of_all("the reply is empty: it is one JSON object"));
    }
    // Where the object begins in the reply, for the lines.
    let start = (text.as_ptr() as usize).saturating_sub(reply.as_ptr() as usize);
    let above = reply.get(..start).unwrap_or_default().matches('\n').count();
    if !text.starts_with('{') {
        let problem =
            "the reply does not begin with `{`: it is one JSON object, with no words around it";
        return Err(Fault::at(above + 1, problem));
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Strict>();
    let object = match values.next() {
        Some(Ok(Strict(Value::Object(object)))) => object,
        Some(Err(error)) => {
            let problem = format!("the reply is no JSON object: {error}");
            return Err(Fault::at(above + error.line().max(1), problem));
        }
        Some(Ok(_)) | None => return Err(Fault::of_all("the reply is no JSON object")),
    };
    let behind = text.get(values.byte_offset()..).unwrap_or_default();
    match bare(behind).chars().next() {
        None => Ok(object),
        Some('{') => Err(Fault::of_all(
            "a second JSON object stands behind the first: put all of it into one",
        )),
        Some(_) => Err(Fault::of_all(
            "words stand behind the JSON object: end the reply with its `}`",
        )),
    }
}

/// Takes the thoughts of that key out of the object; "" where there are none.
///
/// # Errors
/// When they are no text.
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

/// A key, as it stands in a sentence.
pub(crate) fn key(name: &str) -> String {
    format!("`{}`", one_line(name, SHOWN))
}

/// Less the blanks around it.
fn bare(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || BYTE_ORDER_MARK.contains(c))
}

/// The text behind the thought that it begins with.
fn without_thought(text: &str) -> Result<&str, Fault> {
    let Some(thought) = text.strip_prefix("<think>") else {
        return Ok(text);
    };
    let (_, spoken) = thought.split_once("</think>").ok_or_else(|| {
        Fault::of_all("all of the reply is thought: no `</think>` follows `<think>`")
    })?;
    Ok(bare(spoken))
}

/// The text without the one fence around all of it.
pub(crate) fn unfenced(text: &str) -> &str {
    let lines = text
        .split_once('\n')
        .and_then(|(first, rest)| Some((first, rest.rsplit_once('\n')?)));
    match lines.map(|(first, (inner, last))| (Fence::of(first), inner, Fence::of(last))) {
        Some((Some(opening), inner, Some(end))) if end.closes(&opening) => inner.trim(),
        _ => text,
    }
}

/// A value in which no key is there twice.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Self)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Strict(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let Strict(value) = map.next_value()?;
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!(
                    "the key {} is there twice",
                    self::key(&key)
                )));
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}
