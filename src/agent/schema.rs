//! Validation of JSON values against a schema, with errors that a model can act on. Pure.
//!
//! Supports the part of JSON Schema that the program's own schemas use: `type`, `properties`, `required`,
//! `additionalProperties: false`, `items`, `minItems`, `maxItems`, `minimum`, `maximum` and `enum`. Length limits of
//! strings are meant for servers that enforce the schema; the receiver must reject longer strings itself.

use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};

use crate::sys::text::one_line;

/// Maximum length of an unknown name in errors, in characters.
const SHOWN: usize = 60;
/// The minimum similarity, from 0 to 1, for suggesting one name in place of another.
const ALIKE: f64 = 0.4;

/// Returns the name among `known` that is most similar to `name`; `None` if no name is similar enough.
pub(crate) fn nearest<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let likeness = |known: &str| strsim::sorensen_dice(&known.to_lowercase(), &name.to_lowercase());
    let rated = known.map(|known| (likeness(known), known));
    let best = rated.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (best.0 >= ALIKE).then_some(best.1)
}

/// Checks that an object, called `at` in errors, has all required properties, and no unknown ones if the schema forbids
/// them.
///
/// # Errors
/// A sentence that names the missing property, or the unknown one with a suggestion if a known name is similar.
pub(crate) fn check_names(
    at: &str,
    object: &Map<String, Value>,
    schema: &Value,
) -> Result<(), String> {
    let known = &schema["properties"];
    if schema["additionalProperties"] == Value::Bool(false) {
        let mut given = object.keys();
        if let Some(unknown) = given.find(|name| known.get(name.as_str()).is_none()) {
            let names = known.as_object().into_iter().flat_map(Map::keys);
            let missing = names.filter(|name| !object.contains_key(*name));
            let meant = nearest(unknown, missing.map(String::as_str))
                .map(|meant| format!(": did you mean `{meant}`?"));
            return Err(format!(
                "{at} takes no `{}`{}",
                one_line(unknown, SHOWN),
                meant.unwrap_or_default()
            ));
        }
    }
    let mut required = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let missing = required.find(|name| !object.contains_key(*name));
    missing.map_or(Ok(()), |name| Err(format!("{at} needs `{name}`")))
}

/// Returns the type that `schema` requires if `value` has a different one; unknown types accept any value.
pub(crate) fn other_type<'s>(value: &Value, schema: &'s Value) -> Option<&'s str> {
    let expected = schema["type"].as_str()?;
    let is_of = match expected {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    };
    (!is_of).then_some(expected)
}

/// Validates and deserializes an object that follows a schema.
///
/// # Errors
/// A description of the part that does not follow the schema.
pub(crate) fn read<T: DeserializeOwned>(value: &Value, schema: &Value) -> Result<T, String> {
    check(value, schema, "")?;
    T::deserialize(value).map_err(|error| error.to_string())
}

/// Validates a value against a schema at every depth. Errors call the value `at`, which is empty for the whole reply.
///
/// # Errors
/// The first problem, and its location: `task_list[2].step`.
pub(crate) fn check(value: &Value, schema: &Value, at: &str) -> Result<(), String> {
    if let Some(expected) = other_type(value, schema) {
        return Err(format!("`{at}` must be a JSON {expected}"));
    }
    match value {
        // Properties not in the schema accept any value.
        _ if schema.is_null() => Ok(()),
        Value::Object(object) => {
            let (whole, joint) = match at {
                "" => ("the reply".to_owned(), ""),
                _ => (format!("`{at}`"), "."),
            };
            check_names(&whole, object, schema)?;
            object.iter().try_for_each(|(name, value)| {
                let at = format!("{at}{joint}{name}");
                check(value, &schema["properties"][name], &at)
            })
        }
        Value::Array(list) => {
            check_length(list.len(), schema, at)?;
            list.iter().enumerate().try_for_each(|(index, value)| {
                check(value, &schema["items"], &format!("{at}[{index}]"))
            })
        }
        Value::Number(number) => check_bounds(number, schema, at),
        Value::String(text) => check_choice(text, schema, at),
        _ => Ok(()),
    }
}

fn check_bounds(number: &Number, schema: &Value, at: &str) -> Result<(), String> {
    let number = number.as_f64().unwrap_or_default();
    let is_beyond = |name: &str, beyond: fn(&f64, &f64) -> bool| {
        let bound = schema[name].as_f64();
        bound.is_some_and(|bound| beyond(&number, &bound))
    };
    if is_beyond("minimum", f64::lt) {
        Err(format!("`{at}` must be {} or more", schema["minimum"]))
    } else if is_beyond("maximum", f64::gt) {
        Err(format!("`{at}` must be {} or less", schema["maximum"]))
    } else {
        Ok(())
    }
}

fn check_choice(text: &str, schema: &Value, at: &str) -> Result<(), String> {
    let Some(choices) = schema["enum"].as_array() else {
        return Ok(());
    };
    if choices.iter().any(|choice| choice == text) {
        return Ok(());
    }
    let choices: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
    Err(format!(
        "`{at}` is `{}`, and must be one of {}",
        one_line(text, SHOWN),
        choices.join(", ")
    ))
}

fn check_length(length: usize, schema: &Value, at: &str) -> Result<(), String> {
    let length = length as u64;
    let (least, most) = (schema["minItems"].as_u64(), schema["maxItems"].as_u64());
    match (least, most) {
        (Some(least), _) if length < least => Err(format!("`{at}` is empty")),
        (_, Some(most)) if length > most => Err(format!(
            "`{at}` has {length} entries, and at most {most} are taken"
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_name_their_position() {
        let schema = json!({"type": "object", "required": ["list"], "additionalProperties": false, "properties": {
            "list": {"type": "array", "minItems": 1, "maxItems": 2, "items": {
                "type": "object", "required": ["title"], "additionalProperties": false,
                "properties": {"title": {"type": "string", "enum": ["a", "b"]}, "more": {"type": "object"},
                    "count": {"type": "integer", "minimum": 1, "maximum": 600}}}}}});
        for (value, expected) in [
            (json!({"list": [{"title": "a", "more": {"any": [1]}}]}), ""),
            (json!([]), "`x` must be a JSON object"),
            (json!({}), "`x` needs `list`"),
            (
                json!({"lists": []}),
                "`x` takes no `lists`: did you mean `list`?",
            ),
            (json!({"list": [], "zzz": 1}), "`x` takes no `zzz`"),
            (json!({"list": []}), "`x.list` is empty"),
            (
                json!({"list": [1, 2, 3]}),
                "`x.list` has 3 entries, and at most 2 are taken",
            ),
            (json!({"list": [1]}), "`x.list[0]` must be a JSON object"),
            (
                json!({"list": [{"title": "a"}, {"title": null}]}),
                "`x.list[1].title` must be a JSON string",
            ),
            (
                json!({"list": [{"title": "c"}]}),
                "`x.list[0].title` is `c`, and must be one of a, b",
            ),
            (json!({"list": [{"title": "a", "count": 600}]}), ""),
            (
                json!({"list": [{"title": "a", "count": 0}]}),
                "`x.list[0].count` must be 1 or more",
            ),
            (
                json!({"list": [{"title": "a", "count": 601}]}),
                "`x.list[0].count` must be 600 or less",
            ),
            (
                json!({"list": [{"title": "a", "count": 1.5}]}),
                "`x.list[0].count` must be a JSON integer",
            ),
            (
                json!({"list": [{"name": "a"}]}),
                "`x.list[0]` takes no `name`",
            ),
        ] {
            let problem = check(&value, &schema, "x").err().unwrap_or_default();
            assert_eq!(problem, expected, "{value}");
        }
    }

    #[test]
    fn the_nearest_name_is_the_one_that_was_meant() {
        let known = ["read_file", "write_file", "list_files", "shell_exec"];
        for (name, expected) in [
            ("reed_file", Some("read_file")),
            ("READ_FILE", Some("read_file")),
            ("list_directory", None),
            ("list_file", Some("list_files")),
            ("", None),
        ] {
            assert_eq!(nearest(name, known.into_iter()), expected, "{name}");
        }
        assert_eq!(
            nearest("path", ["file_path"].into_iter()),
            Some("file_path")
        );
    }
}
