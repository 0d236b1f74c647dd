//! Tracks which request features a server accepts. Pure.
//!
//! Guarantees that discovery ends: every change asks less of the server than before.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::{Delivery, Form, ModelSpec};
use crate::sys::text;

/// The features that requests to a server use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manner {
    /// The form in which the answer is delivered.
    pub delivery: Delivery,
    /// The degree to which the server constrains a reply to a schema.
    pub constraint: Constraint,
    /// True if a query's temperature is sent. One set in the model's entry always is.
    pub takes_temperature: bool,
    /// True if consecutive messages of one side are joined, for templates that require alternating roles.
    pub alternates: bool,
}

impl From<Delivery> for Manner {
    fn from(delivery: Delivery) -> Self {
        Self {
            delivery,
            constraint: Constraint::Schema,
            takes_temperature: true,
            alternates: false,
        }
    }
}

impl Manner {
    /// Returns the temperature to send: the entry's, or else the query's.
    pub fn temperature(self, spec: &ModelSpec, form: &Form) -> Option<f64> {
        spec.temperature.or(self.queries_temperature(spec, form))
    }

    /// Returns the query's temperature, if it is sent. Unlike the entry's, it can be left out.
    pub fn queries_temperature(self, spec: &ModelSpec, form: &Form) -> Option<f64> {
        let refuses = spec.is_openais_own() || !spec.provider.vendor().takes_temperature;
        let is_sent = self.takes_temperature && spec.temperature.is_none() && !refuses;
        form.temperature.filter(|_| is_sent)
    }
}

/// The degree to which a server constrains a reply to the requested schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constraint {
    /// The reply follows the schema.
    Schema,
    /// The reply is JSON of any kind, since the server does not support schemas.
    Json,
    /// The reply is not constrained.
    Nothing,
}

impl Constraint {
    /// Returns the constraint to request for a reply that follows `schema`: `of_schema` builds it from the schema, and
    /// `json` is the one for JSON of any kind.
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

    /// Returns the next weaker constraint, to try when a server rejects this one.
    pub fn weaker(self) -> Option<Self> {
        match self {
            Self::Schema => Some(Self::Json),
            Self::Json => Some(Self::Nothing),
            Self::Nothing => None,
        }
    }
}

/// Matches the errors of servers that reject all schemas, or this one: OpenAI and compatible servers, Anthropic,
/// Gemini, llama.cpp, and Ollama, which before 0.5 accepted only a word as `format`.
static REFUSED_SCHEMA: LazyLock<Regex> = LazyLock::new(|| {
    text::regex(
        r"(?i)response[ _]?(?:format|mime[ _]?type|schema)|json[ _]?(?:schema|object|mode)|invalid (?:format|schema)|ChatRequest\.format|\b\w*grammar|structured[ _]outputs?|output[_ ](?:config|format)|\bschemas?\b",
    )
});

/// Returns whether an answer with this text rejects consecutive messages of one role, as templates such as Mistral's
/// and Gemma's do.
pub fn refuses_order(words: &str) -> bool {
    words.to_ascii_lowercase().contains("roles must alternate")
}

/// The status used for an error that arrives as a line of a stream.
pub const LINE: u16 = 200;

/// Returns whether an answer with this status and text rejects the schema.
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
