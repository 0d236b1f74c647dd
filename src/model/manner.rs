//! In which manner a server takes calls, as far as it was found out. Pure.
//!
//! Guarantees that what is found out is found out once: every change asks less of the server than before.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::{Delivery, Form, ModelSpec, Provider};
use crate::sys::text;

/// The manner in which a server is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manner {
    /// The form in which the answer is sent.
    pub delivery: Delivery,
    /// The degree to which it holds a reply to a schema.
    pub constraint: Constraint,
    /// True if it is told the temperature that a query asks for; that of the model's own entry is the user's word.
    pub takes_temperature: bool,
}

impl From<Delivery> for Manner {
    fn from(delivery: Delivery) -> Self {
        Self {
            delivery,
            constraint: Constraint::Schema,
            takes_temperature: true,
        }
    }
}

impl Manner {
    /// The temperature that the server is told.
    pub fn temperature(self, spec: &ModelSpec, form: &Form) -> Option<f64> {
        spec.temperature.or(self.queries_temperature(spec, form))
    }

    /// The same, where it is the query's and can be left out.
    pub fn queries_temperature(self, spec: &ModelSpec, form: &Form) -> Option<f64> {
        let refuses =
            spec.is_openais_own() || matches!(spec.provider, Provider::Azure | Provider::Anthropic);
        let is_told = self.takes_temperature && spec.temperature.is_none() && !refuses;
        form.temperature.filter(|_| is_told)
    }
}

/// The degree to which a server holds a reply to the requested schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constraint {
    /// To the schema.
    Schema,
    /// To JSON, whatever is in it: the server does not know schemas.
    Json,
    /// Not at all.
    Nothing,
}

impl Constraint {
    /// Returns the constraint to request for a reply that follows `schema`: `of_schema` makes it from the schema, and
    /// `json` stands for any JSON.
    pub fn ask<T>(
        self,
        schema: Option<&Value>,
        of_schema: impl FnOnce(&Value) -> T,
        json: T,
    ) -> Option<T> {
        match self {
            Self::Schema => schema.map(of_schema),
            Self::Json => schema.map(|_| json),
            Self::Nothing => None,
        }
    }

    /// The next one to try where a server refuses this one.
    pub fn weaker(self) -> Option<Self> {
        match self {
            Self::Schema => Some(Self::Json),
            Self::Json => Some(Self::Nothing),
            Self::Nothing => None,
        }
    }
}

/// Servers' words for rejecting schemas, or this one: those of OpenAI and its compatibles, Anthropic, Gemini,
/// llama.cpp, and Ollama, which before 0.5 took nothing but a word as `format`.
static REFUSED_SCHEMA: LazyLock<Regex> = LazyLock::new(|| {
    text::regex(
        r"(?i)response[ _]?(?:format|mime[ _]?type|schema)|json[ _]?(?:schema|object|mode)|invalid (?:format|schema)|ChatRequest\.format|\b\w*grammar|structured[ _]outputs?|output[_ ](?:config|format)|\bschemas?\b",
    )
});

/// The status of an answer that is a line of a stream.
pub const LINE: u16 = 200;

/// Returns whether an answer rejects the schema, by its status and its words.
pub fn refuses_schema(status: u16, words: &str) -> bool {
    matches!(status, LINE | 400 | 422 | 500) && REFUSED_SCHEMA.is_match(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_refused_schema_is_known_by_the_servers_words() {
        for (words, expected) in [
            ("invalid JSON schema in format", true),
            ("output_config.format: Extra inputs are not permitted", true),
            ("Schema is too complex", true),
            (
                "invalid format: \"x\"; expected \"json\" or a valid JSON Schema object",
                true,
            ),
            (
                "json: cannot unmarshal object into Go struct field ChatRequest.format of type string",
                true,
            ),
            ("This response_format type is unavailable now", true),
            (
                "Unknown name \"responseJsonSchema\" at 'generation_config'",
                true,
            ),
            ("JSON mode is not enabled for this model", true),
            ("Failed to parse grammar", true),
            ("model does not support response format `json_schema`", true),
            ("the input length exceeds the context length", false),
            ("invalid think value: \"max\"", false),
            ("unknown parameter: keep_alive", false),
        ] {
            assert_eq!(refuses_schema(400, words), expected, "{words}");
        }
        let schema = "invalid JSON schema in format";
        for (status, expected) in [(500, true), (LINE, true), (429, false)] {
            assert_eq!(refuses_schema(status, schema), expected);
        }
    }

    #[test]
    fn less_and_less_is_asked_for() {
        let schema = json!({"type": "object"});
        let mut constraint = Some(Constraint::Schema);
        let mut asked = Vec::new();
        while let Some(now) = constraint {
            asked.push(now.ask(Some(&schema), Value::clone, json!("json")));
            assert_eq!(now.ask(None, Value::clone, json!("json")), None);
            constraint = now.weaker();
        }
        assert_eq!(asked, [Some(schema), Some(json!("json")), None]);
    }
}
