//! What a program reads on stdout: the record of a run at its end, or an event a line as it happens.
//!
//! The forms are documented by `fixtures/schema/result.schema.json` and `events.schema.json`, which
//! tests hold them against. Fields and events may be added; a changed meaning raises [`SCHEMA`].

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::SecondsFormat;
use serde_json::{Value, json};

use super::Event;
use crate::model::StepId;
use crate::record::{EditsRecord, RunRecord, Seconds};
use crate::secret::Redactor;
use crate::sys::environment::Clock;

/// The version of the events' meaning.
pub const SCHEMA: u32 = 1;

/// So many tokens of a streamed reply are told of by one event.
const TOKENS_AN_EVENT: u64 = 500;

/// Writes an event a line.
pub struct JsonLines<'r> {
    clock: &'r dyn Clock,
    redactor: &'r Redactor,
    /// The tokens that the latest event of a streamed reply told.
    told: AtomicU64,
}

impl<'r> JsonLines<'r> {
    /// Writes nothing that `redactor` knows as a key.
    #[must_use]
    pub fn new(clock: &'r dyn Clock, redactor: &'r Redactor) -> Self {
        Self {
            clock,
            redactor,
            told: AtomicU64::new(0),
        }
    }

    /// Writes what happened.
    pub fn event(&self, event: &Event) {
        if self.is_worth_telling(event) {
            let (name, fields) = fields(event);
            // What comes at the end tells that nobody can read this.
            let _ = self.line(name, fields);
        }
    }

    /// Writes how it all ended.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn result(&self, result: &Value) -> io::Result<()> {
        self.line("result", json!({ "result": result }))
    }

    /// Of a streamed reply, only so much at a time.
    fn is_worth_telling(&self, event: &Event) -> bool {
        let Event::Receiving {
            output_tokens,
            thought_tokens,
            ..
        } = event
        else {
            self.told.store(0, Ordering::Relaxed);
            return true;
        };
        let tokens = output_tokens + thought_tokens;
        let worth = tokens >= self.told.load(Ordering::Relaxed) + TOKENS_AN_EVENT;
        if worth {
            self.told.store(tokens, Ordering::Relaxed);
        }
        worth
    }

    fn line(&self, name: &str, mut fields: Value) -> io::Result<()> {
        let time = self
            .clock
            .now()
            .to_rfc3339_opts(SecondsFormat::Millis, false);
        let mut line = json!({"schema": SCHEMA, "event": name, "time": time});
        if let (Some(line), Some(fields)) = (line.as_object_mut(), fields.as_object_mut()) {
            line.append(fields);
        }
        print(self.redactor, &line.to_string())
    }
}

/// Writes one document to stdout: a run's record, or what a command was asked for.
///
/// # Errors
/// When it cannot be written.
pub fn document(redactor: &Redactor, document: &Value) -> io::Result<()> {
    print(redactor, &format!("{document:#}"))
}

/// A run's record as JSON.
#[must_use]
pub fn record(record: &RunRecord) -> Value {
    // All of its keys are strings and all of its numbers finite, so that there is always a value.
    serde_json::to_value(record).unwrap_or_default()
}

fn print(redactor: &Redactor, text: &str) -> io::Result<()> {
    super::to_stdout(&format!("{}\n", redactor.text(text)))
}

fn fields(event: &Event) -> (&'static str, Value) {
    match event {
        Event::Started { log } => ("started", json!({ "log": log })),
        Event::Asking {
            step,
            model,
            prompt,
            spent,
        } => {
            let tokens = prompt
                .as_ref()
                .map(|size| json!({"count": size.tokens, "exact": false}));
            let mut fields = step_fields(step);
            fields["model"] = json!(model);
            fields["prompt_tokens"] = tokens.into();
            fields["spent"] = json!(spent);
            ("asking", fields)
        }
        Event::Receiving {
            output_tokens,
            thought_tokens,
            spent,
            ..
        } => (
            "receiving",
            json!({"output_tokens": output_tokens, "thought_tokens": thought_tokens, "spent": spent}),
        ),
        Event::Retrying {
            next_try,
            wait,
            reason,
        } => (
            "retrying",
            json!({"next_try": next_try, "wait": Seconds(*wait), "reason": reason}),
        ),
        Event::Answered {
            model,
            usage,
            cost,
            took,
        } => (
            "answered",
            json!({"model": model, "usage": usage, "cost": cost, "seconds": Seconds(*took)}),
        ),
        Event::Applied(edits) => ("applied", edits_fields(edits)),
        Event::PutBack(edits) => ("put-back", edits_fields(edits)),
        Event::Uncontained { reason } => ("uncontained", json!({ "reason": reason })),
        Event::Building { spent } => ("building", json!({ "spent": spent })),
        Event::Built {
            status,
            passed,
            took,
        } => (
            "built",
            json!({"status": status, "passed": passed, "seconds": Seconds(*took)}),
        ),
        Event::Warning(text) => ("warning", json!({ "message": text })),
        Event::Reviewed { warnings, stat, .. } => (
            "reviewed",
            json!({"warnings": warnings, "files": stat.files}),
        ),
        Event::Notice(text) => ("notice", json!({ "message": text })),
        Event::Finished { summary, log } => ("finished", json!({"summary": summary, "log": log})),
        Event::Failed { error, hint, log } => (
            "failed",
            json!({"error": {"message": error, "hint": hint}, "log": log}),
        ),
        Event::Session { id, resumed } => ("session", json!({"id": id, "resumed": resumed})),
        Event::Thoughts(text) => ("thoughts", json!({ "text": text })),
        Event::Tasks(tasks) => ("tasks", json!({ "tasks": tasks })),
        Event::Tool { name, input, .. } => ("tool", json!({"name": name, "input": input})),
        Event::ToolResult {
            name,
            text,
            failed,
            took,
            ..
        } => (
            "tool-result",
            json!({"name": name, "text": text, "failed": failed, "seconds": Seconds(*took)}),
        ),
        Event::Malformed {
            fault,
            failures,
            allowed,
        } => (
            "malformed",
            json!({"fault": fault, "failures": failures, "allowed": allowed}),
        ),
        Event::Auditing => ("auditing", json!({})),
        Event::Audited { passed, text } => ("audited", json!({"passed": passed, "text": text})),
        Event::Compressed {
            tokens_before,
            tokens_after,
        } => (
            "compressed",
            json!({"tokens_before": tokens_before, "tokens_after": tokens_after}),
        ),
    }
}

fn step_fields(step: &StepId) -> Value {
    json!({"kind": step.purpose, "number": step.number})
}

fn edits_fields(edits: &EditsRecord) -> Value {
    json!({"written": edits.written, "removed": edits.removed})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Purpose;
    use crate::model::price::Usd;
    use crate::record::tasks::{Task, TaskStatus};
    use std::time::Duration;

    /// The schema, with nothing allowed that it does not describe.
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
        let task = |status| Task {
            status,
            text: "x".to_owned(),
        };
        let tasks = [
            TaskStatus::Pending,
            TaskStatus::InProgress,
            TaskStatus::Complete,
        ]
        .map(task);
        let asking = |step| Event::Asking {
            step,
            model: "m".to_owned(),
            prompt: None,
            spent: Usd::ZERO,
        };
        let steps = [
            (Purpose::STEP, 1),
            (Purpose::AUDIT, 2),
            (Purpose::COMPRESSION, 3),
        ]
        .map(|(purpose, number)| StepId::new(purpose, number));
        let schema = schema();
        for event in [
            asking(steps[0].clone()),
            asking(steps[1].clone()),
            asking(steps[2].clone()),
            Event::Session {
                id: "550e8400-e29b-41d4-a716-446655440000".to_owned(),
                resumed: true,
            },
            Event::Thoughts("x".to_owned()),
            Event::Tasks(tasks.to_vec()),
            Event::Tasks(Vec::new()),
            Event::Tool {
                name: "COMMAND".to_owned(),
                input: "ls".to_owned(),
                asks: false,
            },
            Event::ToolResult {
                name: "COMMAND".to_owned(),
                text: "a\nb".to_owned(),
                failed: false,
                is_end: false,
                took: Duration::from_millis(1500),
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
        ] {
            let (name, mut line) = fields(&event);
            line["schema"] = SCHEMA.into();
            line["event"] = name.into();
            line["time"] = "2026-01-15T10:30:00.000+01:00".into();
            assert!(schema.is_valid(&line), "{line:#}");
        }
    }
}
