//! Inserts an entry into the text of `models.json`, leaving the rest of the text as it is. Pure.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(borrow, default)]
    models: Option<&'a RawValue>,
}

/// Returns `json`, the text of a valid table, with an entry called `name` at the end of its models; `None` if it has
/// one already.
///
/// # Errors
/// Fails if either text is not valid JSON.
pub fn with_entry(json: &str, name: &str, entry: &str) -> serde_json::Result<Option<String>> {
    let whole: Whole<'_> = serde_json::from_str(json)?;
    let entry: Value = serde_json::from_str(entry)?;
    let pretty = serde_json::to_string_pretty(&entry)?.replace('\n', "\n    ");
    let added = format!("\n    \"{name}\": {pretty}\n  ");
    // The entry, or a new object with it, goes in at this offset.
    let (at, added) = if let Some(models) = whole.models {
        if serde_json::from_str::<Value>(models.get())?
            .get(name)
            .is_some()
        {
            return Ok(None);
        }
        let begin = (models.get().as_ptr() as usize).saturating_sub(json.as_ptr() as usize);
        (begin + models.get().len() - 1, added)
    } else {
        let models = format!("\n  \"models\": {{{added}}}\n");
        (json.rfind('}').unwrap_or(0), models)
    };
    let (before, after) = (json[..at].trim_end(), &json[at..]);
    let comma = if before.ends_with('{') { "" } else { "," };
    Ok(Some(format!("{before}{comma}{added}{after}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_put_behind_the_others_and_the_rest_stays_as_it_is() {
        let new = "\"new\": {\n      \"price\": {\n        \"input\": 0.75\n      }\n    }\n  }";
        for (json, expected) in [
            ("{}\n", format!("{{\n  \"models\": {{\n    {new}\n}}\n")),
            (
                "{\"models\": {}, \"selectionRules\": {}}",
                format!("{{\"models\": {{\n    {new}, \"selectionRules\": {{}}}}"),
            ),
            (
                "{\n  \"models\": {\n    \"a\": {\"provider\":  \"openai\"}\n  }\n}\n",
                format!(
                    "{{\n  \"models\": {{\n    \"a\": {{\"provider\":  \"openai\"}},\n    {new}\n}}\n"
                ),
            ),
            (
                "{\"selectionRules\": {\"default\": \"gpt-5\"}}",
                format!(
                    "{{\"selectionRules\": {{\"default\": \"gpt-5\"}},\n  \"models\": {{\n    {new}\n}}"
                ),
            ),
        ] {
            let entry = r#"{"price": {"input": 0.75}}"#;
            let with = with_entry(json, "new", entry).unwrap().unwrap();
            assert_eq!(with, expected);
            assert_eq!(with_entry(&with, "new", entry).unwrap(), None, "{with}");
        }
    }
}
