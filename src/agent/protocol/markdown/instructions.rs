//! Instructions for a model on the protocol and its tools. Pure.

use super::input::shape;
use crate::agent::tool::{Parameter, ParameterKind, ToolSpec, Toolbox};

/// The reply format, as worded in the specification.
pub const TEMPLATE: &str = "\
# Agent Response

## Thoughts
[Agent's observations and reasoning about the current state]

## Task List
[~] In-progress task
[x] Completed task
[ ] Pending task

## Tool Choice
TOOL_NAME

## Tool Input
[Tool-specific parameters - format varies by tool]
";

/// The handling of a reply that has no `# Agent Response`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PlainReplies {
    /// The reply is the agent's answer.
    Taken,
    /// The reply is a fault: the agent must use a tool in every reply.
    #[default]
    Refused,
}

/// The rules of the format, which follow the template.
const RULES: &str = "\
Rules:
- A reply has one response, and a response uses exactly one tool. You get its result, and then reply again.
- `## Tool Input` comes last. Write nothing behind it, and nothing behind a code block in it.
- A code block ends at the first line that has nothing but its fence. What is in it is taken byte by byte. Where \
it has ``` lines or a `# Agent Response` line itself, put a longer fence (````) around it.
- A command stands as it is, or alone in a code block. One with a here-document goes into a code block.
- Give the whole task list each time, or leave the section out where nothing has changed.
";

/// The additional instruction for a model that may answer in plain text.
const ANSWER: &str = "\
- When you need no more tools, reply in plain words, without `# Agent Response`.
";

/// Returns the part of the system prompt that describes the format and `tools`.
pub fn instructions(tools: &Toolbox<'_>, plain_replies: PlainReplies) -> String {
    let answer = match plain_replies {
        PlainReplies::Taken => ANSWER,
        PlainReplies::Refused => "",
    };
    let described: Vec<String> = tools.specs().map(described).collect();
    format!(
        "## Response Format\n\nReply in this form:\n\n````markdown\n{TEMPLATE}````\n\n{RULES}{answer}\n\
         ## Tools\n\n{}",
        described.join("\n")
    )
}

/// Describes a tool, its parameters and an example.
fn described(tool: &ToolSpec) -> String {
    let (name, description) = (&tool.name, &tool.description);
    let (paths, others) = shape(tool);
    let meanings: String = paths
        .iter()
        .chain(&others)
        .map(|Parameter { name, meaning, .. }| format!("- `{name}`: {meaning}\n"))
        .collect();
    let input = example(tool);
    let separators = [&meanings, &input].map(|text| if text.is_empty() { "" } else { "\n" });
    format!(
        "### {name}\n\n{description}\n{}{meanings}\n````markdown\n## Tool Choice\n{name}\n\n## Tool Input\n\
         {input}{}````\n",
        separators[0], separators[1]
    )
}

/// Returns an example of a tool's input.
fn example(tool: &ToolSpec) -> String {
    if let Some(schema) = &tool.schema {
        return format!("```json\n[an object that follows {schema}]\n```");
    }
    let (paths, others) = shape(tool);
    let quoted = paths.iter().map(|path| format!("\"{}\"", shown(path)));
    let mut parts: Vec<String> = quoted.collect();
    match others.as_slice() {
        [only] if only.kind != ParameterKind::Block => parts.push(shown(only)),
        [only] => parts.push(block("", only)),
        several => parts.extend(several.iter().map(|known| block(known.name, known))),
    }
    parts.join("\n\n")
}

fn block(label: &str, parameter: &Parameter) -> String {
    format!("```{label}\n{}\n```", shown(parameter))
}

/// Returns the parameter's example or, if it has none, its meaning in brackets, as in the template.
fn shown(parameter: &Parameter) -> String {
    match parameter.example {
        "" => format!("[{}]", parameter.meaning),
        example => example.to_owned(),
    }
}
