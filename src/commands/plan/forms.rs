//! Reply forms of the stages without tools: the task list that results from planning, and the summary of the work.
//! Pure.
//!
//! Guarantees that a text meant for one line of the plan document is a single printable line of bounded length. The
//! model's claims are not verified here.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::types::{Criterion, LogEntry, PlanDecision, PlanTask, lines};
use crate::agent::protocol::structured::Structured;
use crate::agent::schema;
use crate::agent::tool::{ParameterKind, Toolbox};

/// The tool name of a task that needs no tool.
pub const ANALYZE: &str = "analyze";

/// The maximum number of tasks in a list.
const MOST_TASKS: u32 = 100;
/// The maximum number of tasks in a schema enforced by the server, since small models might otherwise never stop.
const MOST_TASKS_AT_ONCE: u32 = 20;
/// The maximum length of a planned call's parameter, in bytes. Longer ones are dropped; the step supplies them itself.
const LONGEST_PARAMETER: usize = 500;

/// The JSON schema of criteria given as plain texts.
pub const CRITERIA: &str =
    r#"{"type": "array", "maxItems": 20, "items": {"type": "string", "maxLength": 300}}"#;
/// The JSON schema of criteria with their state.
pub const CRITERION_UPDATES: &str = r#"{"type": "array", "maxItems": 20, "items": {"type": "object",
    "properties": {"description": {"type": "string", "maxLength": 300}, "completed": {"type": "boolean"}},
    "required": ["description"], "additionalProperties": false}}"#;
/// The JSON schema of decisions with their reasons.
pub const DECISIONS: &str = r#"{"type": "array", "maxItems": 8, "items": {"type": "object",
    "properties": {"title": {"type": "string", "maxLength": 200}, "rationale": {"type": "string", "maxLength": 300},
    "alternatives": {"type": "array", "maxItems": 8, "items": {"type": "string", "maxLength": 100}}},
    "required": ["title", "rationale"], "additionalProperties": false}}"#;

/// The result of planning.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TaskList {
    /// The tasks in order: 1 to 100.
    pub task_list: Vec<PlanTask>,
    /// The acceptance criteria, one line each.
    #[serde(default, deserialize_with = "lines")]
    pub acceptance_criteria: Vec<String>,
}

impl TaskList {
    /// Parses a reply's JSON object.
    ///
    /// # Errors
    /// Returns a description of the mistake, for the model.
    pub fn read(reply: &Value) -> Result<Self, String> {
        let task = json!({"step": {"type": "integer"}, "description": {"type": "string"}, "tool": {"type": "string"},
            "params": {"type": "object"}});
        let form = Self::form(&task, &json!({"type": "string"}), MOST_TASKS);
        let mut list: Self = schema::read(reply, &form)?;
        for task in &mut list.task_list {
            let is_short = |value: &Value| value.to_string().len() <= LONGEST_PARAMETER;
            task.params.retain(|_, value| is_short(value));
        }
        Ok(list)
    }

    /// Converts the list to a plan's tasks, numbered from 1. A tool that is not in `tools` becomes `analyze`.
    pub fn tasks(self, tools: &Toolbox<'_>) -> Vec<PlanTask> {
        let numbered = self.task_list.into_iter().zip(1..);
        let tasks = numbered.map(|(task, step)| PlanTask {
            step,
            tool: match tools.named(&task.tool) {
                Some(_) => task.tool,
                None => ANALYZE.to_owned(),
            },
            ..task
        });
        tasks.collect()
    }

    /// Returns the protocol for requesting a list of tasks that use these tools.
    pub fn protocol(tools: &Toolbox<'_>) -> Structured<'static> {
        Structured {
            schema: Self::schema(tools),
            format: include_str!("../../../prompts/plan_task_list.txt"),
            examples: include_str!("../../../prompts/plan_task_list_example.txt"),
            counter_example: "\n❌ WRONG: {\"tasks\": [\"...\"]}\n✅ CORRECT: {\"task_list\": [{\"step\": 1, \
                              \"description\": \"...\", \"tool\": \"...\", \"params\": {...}}]}",
            check: &|reply| Self::read(reply).map(drop),
        }
    }

    /// Returns the schema for the server to enforce, with a limit on every list and text.
    fn schema(tools: &Toolbox<'_>) -> Value {
        let known = tools.specs().map(|spec| &*spec.name);
        let names: Vec<&str> = known.chain([ANALYZE]).collect();
        let parameters = tools.specs().flat_map(|spec| spec.parameters);
        // Parameters of unlimited length are left out, since they are known only once the step runs.
        let bounded = parameters
            .filter(|known| !matches!(known.kind, ParameterKind::Block | ParameterKind::Json(_)));
        let params: Map<String, Value> = bounded
            .map(|known| (known.name.to_owned(), known.bounded_schema()))
            .collect();
        let text = json!({"type": "string", "maxLength": 300});
        let task = json!({
            "step": {"type": "integer"}, "description": text, "tool": {"type": "string", "enum": names},
            "params": {"type": "object", "properties": params, "additionalProperties": false}});
        Self::form(&task, &text, MOST_TASKS_AT_ONCE)
    }

    fn form(task: &Value, criterion: &Value, most: u32) -> Value {
        json!({"type": "object", "required": ["task_list"], "additionalProperties": false, "properties": {
            "task_list": {"type": "array", "minItems": 1, "maxItems": most, "items": {
                "type": "object", "properties": task, "additionalProperties": false,
                "required": ["step", "description", "tool", "params"]}},
            "acceptance_criteria": {"type": "array", "maxItems": most, "items": criterion}}})
    }
}

/// The description of a log entry's form.
const LOG_ENTRY: &str = include_str!("../../../prompts/plan_log_entry.txt");
/// The specification's example of a log entry.
const LOG_ENTRY_EXAMPLE: &str = include_str!("../../../prompts/plan_log_entry_example.txt");

/// The result of the summary stage.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct WorkSummary {
    /// The entry for the plan's log.
    pub log_entry: LogEntry,
    /// The criteria that the model reports as met or not met.
    #[serde(default)]
    pub acceptance_criteria_updates: Vec<Criterion>,
    /// Decisions made during the work.
    #[serde(default)]
    pub decisions_made: Vec<PlanDecision>,
}

impl WorkSummary {
    /// Parses a reply's JSON object.
    ///
    /// # Errors
    /// Returns a description of the mistake, for the model.
    pub fn read(reply: &Value) -> Result<Self, String> {
        schema::read(reply, &Self::schema())
    }

    /// Checks that a reply is a summary, and not a copy of the example.
    fn check(reply: &Value) -> Result<(), String> {
        let words = |text: &str| {
            text.to_lowercase()
                .replace(|c: char| !c.is_alphanumeric(), "")
        };
        let action = words(&Self::read(reply)?.log_entry.action);
        let mut texts = [LOG_ENTRY, LOG_ENTRY_EXAMPLE]
            .iter()
            .flat_map(|shown| shown.split('"'));
        if texts.any(|text| words(text) == action) {
            return Err("`log_entry` is the example's: say what the messages show".to_owned());
        }
        Ok(())
    }

    /// Returns the protocol for requesting a summary.
    pub fn protocol() -> Structured<'static> {
        Structured {
            schema: Self::schema(),
            format: LOG_ENTRY,
            examples: LOG_ENTRY_EXAMPLE,
            counter_example: "\n❌ WRONG: {\"response\": \"...\"}\n✅ CORRECT: {\"log_entry\": {\"action\": \"...\", \
                              \"details\": \"...\", \"result\": \"...\", \"tools_used\": [...]}, \
                              \"acceptance_criteria_updates\": [...], \"decisions_made\": [...]}",
            check: &Self::check,
        }
    }

    fn schema() -> Value {
        let text = |longest: u32| json!({"type": "string", "maxLength": longest});
        let list =
            |schema| serde_json::from_str(schema).unwrap_or_else(|_| json!({"type": "array"}));
        let entry = json!({
            "type": "object", "required": ["action", "details", "result"], "additionalProperties": false,
            "properties": {"action": text(200), "details": text(1000), "result": text(500),
                "tools_used": {"type": "array", "maxItems": 20, "items": text(60)}}});
        json!({"type": "object", "required": ["log_entry"], "additionalProperties": false, "properties": {
            "log_entry": entry, "acceptance_criteria_updates": list(CRITERION_UPDATES),
            "decisions_made": list(DECISIONS)}})
    }
}

#[cfg(test)]
mod tests;
