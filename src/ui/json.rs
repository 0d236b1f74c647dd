//! Machine-readable output on stdout: a run's record at its end, or one event per line as it happens.
//!
//! The formats are documented by `fixtures/schema/result.schema.json` and `events.schema.json`, against which
//! tests check them. Fields and events may be added; a change of meaning raises [`SCHEMA`].

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::SecondsFormat;
use serde_json::{Value, json};

use crate::record::event::Event;
use crate::record::result::RunRecord;
use crate::secret::Redactor;
use crate::sys::environment::Clock;
use crate::sys::text::{is_deceptive, is_ignorable};

/// The version of the event format.
pub const SCHEMA: u32 = 1;

/// The number of tokens of a streamed reply between two events.
const TOKENS_AN_EVENT: u64 = 500;

/// A writer of events, one per line.
pub struct JsonLines<'r> {
    pub clock: &'r dyn Clock,
    pub redactor: &'r Redactor,
    /// The token count in the latest event of a streamed reply.
    pub reported: AtomicU64,
}

impl JsonLines<'_> {
    /// Writes an event.
    pub fn event(&self, event: &Event) {
        if self.is_due(event)
            && let Value::Object(named) = named_fields(event)
        {
            for (name, fields) in named {
                // A persistent error is reported when the result is written.
                let _ = self.line(&name, fields);
            }
        }
    }

    /// Writes the final result.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn result(&self, result: &Value) -> io::Result<()> {
        self.line("result", json!({ "result": result }))
    }

    /// Returns whether to write the event: the progress of a streamed reply is reported only every [`TOKENS_AN_EVENT`]
    /// tokens.
    fn is_due(&self, event: &Event) -> bool {
        let Event::Receiving {
            output_tokens,
            thought_tokens,
            ..
        } = event
        else {
            self.reported.store(0, Ordering::Relaxed);
            return true;
        };
        let tokens = output_tokens + thought_tokens;
        let worth = tokens >= self.reported.load(Ordering::Relaxed) + TOKENS_AN_EVENT;
        if worth {
            self.reported.store(tokens, Ordering::Relaxed);
        }
        worth
    }

    fn line(&self, name: &str, mut fields: Value) -> io::Result<()> {
        let now = self.clock.now();
        let time = now.to_rfc3339_opts(SecondsFormat::Millis, false);
        let mut line = json!({"schema": SCHEMA, "event": name, "time": time});
        if let (Some(line), Some(fields)) = (line.as_object_mut(), fields.as_object_mut()) {
            line.append(fields);
        }
        text(self.redactor, &format!("{line}\n"))
    }
}

/// Writes one document to stdout: a run's record, or the result of a command.
///
/// # Errors
/// Fails if it cannot be written.
pub fn document(redactor: &Redactor, document: &Value) -> io::Result<()> {
    text(redactor, &format!("{document:#}\n"))
}

/// Returns a run's record as JSON.
pub fn record(record: &RunRecord) -> Value {
    // The conversion succeeds, as for events.
    serde_json::to_value(record).unwrap_or_default()
}

/// Writes JSON that is text already and ends with a newline; a large one is not copied.
///
/// # Errors
/// Fails if it cannot be written.
pub fn text(redactor: &Redactor, text: &str) -> io::Result<()> {
    // Use escapes that mean the same in JSON but hide commands from a CI runner, which scans entire lines.
    let mut text = redactor.text(text);
    if text.contains(is_unseen) {
        text = text.chars().map(visible).collect::<String>().into();
    }
    for command in ["[", "vso[", "teamcity["] {
        let read = format!("##{command}");
        if text.contains(&read) {
            text = text.replace(&read, &format!("#\\u0023{command}")).into();
        }
    }
    super::stdout::written(&text)
}

/// Returns whether a terminal interprets `c` or does not show it. The newline is excepted, as the only such
/// character that JSON allows between values.
fn is_unseen(c: char) -> bool {
    c != '\n' && (is_deceptive(c) || is_ignorable(c))
}

/// Returns `c` as it appears in JSON, escaped if it is invisible.
fn visible(c: char) -> String {
    if !is_unseen(c) {
        return c.to_string();
    }
    let mut encoded = [0; 2];
    let units = c.encode_utf16(&mut encoded).iter();
    units.map(|unit| format!("\\u{unit:04x}")).collect()
}

/// Returns the event as `{"name": {"field": …}}`.
fn named_fields(event: &Event) -> Value {
    match event {
        Event::Asking {
            step,
            model,
            prompt,
            spent,
        } => {
            let count = prompt.as_ref().map(|size| size.tokens);
            let tokens = count.map(|count| json!({"count": count, "exact": false}));
            let (kind, number) = (&step.purpose, step.number);
            let mut fields = json!({
                "kind": kind, "number": number, "model": model, "prompt_tokens": tokens, "spent": spent,
            });
            if step.reask > 0 {
                fields["reask"] = step.reask.into();
            }
            json!({ "asking": fields })
        }
        Event::Failed { error, hint, log } => {
            json!({"failed": {"error": {"message": error, "hint": hint}, "log": log}})
        }
        Event::Warning(text) => json!({"warning": {"message": text}}),
        Event::Notice(text) => json!({"notice": {"message": text}}),
        Event::Thoughts(text) => json!({"thoughts": {"text": text}}),
        Event::Tasks(tasks) => json!({"tasks": {"tasks": tasks}}),
        Event::Todos(todos) => json!({"todos": {"todos": todos}}),
        Event::Auditing => json!({"auditing": {}}),
        // All keys are strings and all numbers are finite, so the conversion succeeds.
        event => serde_json::to_value(event).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::price::Usd;
    use crate::model::{Purpose, StepId};
    use crate::record::tasks::{Task, TaskStatus};
    use crate::record::todos::Todo;
    use crate::record::tool::{ToolEnd, Verb};

    /// Returns the schema, modified to reject anything that it does not describe.
    fn schema() -> jsonschema::Validator {
        let text = include_str!("../../fixtures/schema/events.schema.json");
        let mut schema: Value = serde_json::from_str(text).unwrap();
        for event in schema["oneOf"].as_array_mut().unwrap() {
            event["additionalProperties"] = false.into();
        }
        jsonschema::validator_for(&schema).unwrap()
    }

    #[test]
    fn the_events_of_an_agent_are_as_the_schema_says() {
        use TaskStatus::{Complete, InProgress, Pending};
        let task = |status| Task {
            status,
            text: "x".to_owned(),
        };
        let tasks = [Pending, InProgress, Complete].map(task);
        let asking = |purpose, number| Event::Asking {
            step: StepId::new(purpose, number),
            model: "m".to_owned(),
            prompt: None,
            spent: Usd::ZERO,
        };
        let schema = schema();
        for event in [
            asking(Purpose::STEP, 1),
            asking(Purpose::AUDIT, 2),
            asking(Purpose::COMPRESSION, 3),
            Event::Session {
                id: "550e8400-e29b-41d4-a716-446655440000".to_owned(),
                resumed: true,
            },
            Event::Thoughts("x".to_owned()),
            Event::Tasks(tasks.to_vec()),
            Event::Tasks(Vec::new()),
            Event::Todos(vec![Todo::default()]),
            Event::Tool {
                category: None,
                subject: String::new(),
                name: "COMMAND".to_owned(),
                input: "ls".to_owned(),
                arguments: json!({"command": "ls"}),
                verb: Verb::Run,
                asks: false,
            },
            Event::ToolResult {
                name: "COMMAND".to_owned(),
                end: ToolEnd {
                    text: "a\nb".to_owned(),
                    took: Duration::from_millis(1500),
                    ..ToolEnd::default()
                },
                is_end: false,
            },
            Event::Malformed {
                fault: "line 4: no tool".to_owned(),
                failures: 2,
                allowed: 3,
            },
            Event::Notice("x".to_owned()),
            Event::Finished {
                summary: "x".to_owned(),
                log: Some("logs/x".to_owned()),
            },
            Event::Failed {
                error: "x".to_owned(),
                hint: None,
                log: None,
            },
            Event::Auditing,
            Event::Audited {
                passed: false,
                text: "x".to_owned(),
            },
            Event::Compressed {
                tokens_before: 128_000,
                tokens_after: 8500,
            },
            Event::Connected {
                server: "http://localhost:8000/mcp".to_owned(),
                protocol: "2025-11-25".to_owned(),
            },
            Event::Waiting {
                agent: "codex".to_owned(),
                branch: "1f2e3d4c".to_owned(),
                status: "running".to_owned(),
                waited: Duration::from_millis(1500),
                is_review: true,
                review: 3,
                reviews: 8,
                publishes: false,
                total: Duration::from_secs(3_700),
            },
            Event::BranchEnded {
                agent: "codex".to_owned(),
                branch: "1f2e3d4c".to_owned(),
                status: "succeed".to_owned(),
                took: Duration::from_millis(1500),
            },
        ] {
            let named = named_fields(&event);
            let (name, fields) = named.as_object().unwrap().iter().next().unwrap();
            let mut line = fields.clone();
            line["schema"] = SCHEMA.into();
            line["event"] = name.as_str().into();
            line["time"] = "2026-01-15T10:30:00.000+01:00".into();
            assert!(schema.is_valid(&line), "{line:#}");
        }
    }
}
