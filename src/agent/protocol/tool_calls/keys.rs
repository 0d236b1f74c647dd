//! The keys of a JSON reply, and the schema built from them. Pure.

use serde_json::{Map, Value, json};

use crate::agent::tool::{ToolSpec, Toolbox};

/// Maximum number of calls in a reply, where the server enforces the schema.
const MOST_CALLS: u32 = 10;
/// Maximum length of a response in the schema, in characters. The grammars of llama.cpp do not support bounds of 2,000
/// or more.
const LONGEST_RESPONSE: u32 = 1900;

/// The keys of a reply.
#[derive(Debug, PartialEq, Eq)]
pub struct Keys {
    /// The list of calls.
    pub calls: &'static str,
    /// The name of a call's tool.
    pub tool: &'static str,
    /// The tool's input.
    pub input: &'static str,
    /// The final answer, in place of calls.
    pub answer: &'static str,
    /// The agent's thoughts, next to the calls or the answer; `None` if the reply has no such key.
    pub thoughts: Option<&'static str>,
    /// An example shown to the model together with a fault.
    pub counter_example: &'static str,
}

/// The keys of Claude Code.
pub static CLAUDE_CODE: Keys = Keys {
    calls: "tool_calls",
    tool: "name",
    input: "parameters",
    answer: "response",
    thoughts: None,
    counter_example: "\n❌ WRONG: {\"action\": \"read_file\", \"args\": {...}}\n\
                      ✅ CORRECT: {\"tool_calls\": [{\"name\": \"read_file\", \"parameters\": {...}}]}",
};

/// The program's own keys.
pub(super) static OWN: Keys = Keys {
    calls: "calls",
    tool: "tool",
    input: "input",
    answer: "answer",
    thoughts: Some("thoughts"),
    counter_example: "",
};

impl Keys {
    /// Returns the schema of a reply: calls of these tools, or an answer.
    pub(super) fn reply_schema(&self, tools: &Toolbox<'_>) -> Value {
        let words = json!({"type": "string", "maxLength": LONGEST_RESPONSE});
        let any: Vec<Value> = tools.specs().map(|tool| self.call_schema(tool)).collect();
        let calls = json!({"type": "array", "minItems": 1, "maxItems": MOST_CALLS, "items": {"anyOf": any}});
        if let Some(thoughts) = self.thoughts {
            // Properties are generated in this order, so that the model thinks before it makes its calls.
            return json!({"type": "object", "required": [thoughts], "properties":
                {thoughts: words, self.calls: calls, self.answer: words}});
        }
        let answer = object_schema(&json!({ self.answer: words }));
        if tools.specs().next().is_none() {
            return answer;
        }
        json!({"anyOf": [object_schema(&json!({ self.calls: calls })), answer]})
    }

    fn call_schema(&self, tool: &ToolSpec) -> Value {
        let input = tool.schema.clone().unwrap_or_else(|| {
            let own = tool.parameters.iter();
            let properties = own.map(|known| (known.name.to_owned(), known.bounded_schema()));
            let mut schema = tool.schema();
            schema["properties"] = Value::Object(properties.collect());
            schema
        });
        // Not every server supports `const`.
        object_schema(
            &json!({self.tool: {"type": "string", "enum": [tool.name]}, self.input: input}),
        )
    }
}

/// Returns the schema of an object with exactly these properties.
pub(super) fn object_schema(properties: &Value) -> Value {
    let names: Vec<&String> = properties
        .as_object()
        .into_iter()
        .flat_map(Map::keys)
        .collect();
    json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false})
}
