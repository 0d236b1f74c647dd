//! Descriptions of the tools for a model. Pure.

use serde_json::{Map, Value, json};

use super::keys::Keys;
use crate::agent::tool::{Parameter, ParameterKind, ToolSpec, Toolbox};

/// Describes all tools, each with an example of a call.
pub(super) fn described(tools: &Toolbox<'_>, keys: &Keys) -> String {
    joined(tools, |tool| {
        format!("{}\n\n{}", outline(tool), example(tool, keys))
    })
}

/// Describes all tools without examples, for replies that call none.
pub(crate) fn outlines(tools: &Toolbox<'_>) -> String {
    joined(tools, outline)
}

fn joined(tools: &Toolbox<'_>, described: impl Fn(&ToolSpec) -> String) -> String {
    let described: Vec<String> = tools.specs().map(described).collect();
    described.join("\n\n---\n\n")
}

/// Outlines a tool: its use and its input.
fn outline(tool: &ToolSpec) -> String {
    let parameters: Vec<String> = match &tool.schema {
        Some(schema) => vec![format!("  - an object that follows {schema}")],
        None if tool.parameters.is_empty() => vec!["  (none)".to_owned()],
        None => tool.parameters.iter().map(parameter).collect(),
    };
    let (name, description) = (&tool.name, &tool.description);
    format!(
        "### {name}\n{description}\n\n**Parameters:**\n{}",
        parameters.join("\n")
    )
}

fn parameter(parameter: &Parameter) -> String {
    let Parameter { name, meaning, .. } = parameter;
    let schema = parameter.schema();
    let kind = schema["type"].as_str().unwrap_or_default();
    let need = if parameter.is_optional {
        "optional"
    } else {
        "required"
    };
    let default = match parameter.default {
        "" => String::new(),
        default => format!(" [default: {default}]"),
    };
    format!("  - {name}: {kind} ({need}){default} - {meaning}")
}

/// Returns an example call with the required arguments only.
fn example(tool: &ToolSpec, keys: &Keys) -> String {
    let needed = tool.parameters.iter().filter(|known| !known.is_optional);
    let given: Map<String, Value> = needed
        .map(|known| (known.name.to_owned(), example_value(known)))
        .collect();
    let call = json!({keys.calls: [{keys.tool: tool.name, keys.input: given}]});
    format!("**Example:**\n```json\n{call:#}\n```")
}

/// Returns the parameter's own example or, if it has none, a made-up value like those in the specification.
fn example_value(parameter: &Parameter) -> Value {
    match (parameter.kind, parameter.example) {
        (ParameterKind::Flag, _) => true.into(),
        (ParameterKind::Json(_), example) => {
            serde_json::from_str(example).unwrap_or_else(|_| json!([]))
        }
        (ParameterKind::Path, "") => "/path/to/file.ext".into(),
        (_, "") => format!("example_{}", parameter.name).into(),
        (_, example) => example.into(),
    }
}
