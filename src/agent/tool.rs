//! Tools: their descriptions for a model, their arguments and their results.
//!
//! A tool declares its parameters; how they are written in a reply is up to the protocol. One implementation therefore
//! serves every protocol: Markdown sections, JSON objects, a vendor's native tool calls. Tools that are only known at
//! run time declare their parameters with a JSON schema. No tool runs with arguments that do not fit its schema.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::error::AgentError;
use super::schema;
use crate::model::ToolSchema;
use crate::model::message::Call;
use crate::record::tool::{Category, CommandEnd, Verb};

/// Maximum size of a tool's output shown to a model, in bytes.
pub const OUTPUT_LIMIT: usize = 32 << 10;

/// The kind of a parameter; most are text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterKind {
    /// A path or a glob, on one line.
    Path,
    /// Text of any length that is taken byte by byte, such as a file's content.
    Block,
    /// Prose, such as a question or a summary.
    Text,
    /// A shell command. It must not be mixed with prose, which the shell would run.
    Command,
    /// A range of lines, such as `10-80`. Optional.
    Lines,
    /// The task list, one task per line. Optional; Markdown replies have a separate section for it.
    Tasks,
    /// A JSON boolean.
    Flag,
    /// JSON that follows this schema; the engine checks types, names, lengths and bounds.
    Json(&'static str),
}

/// A parameter of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// The name, unique among the tool's parameters.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: ParameterKind,
    /// The meaning, as a phrase for the model.
    pub meaning: &'static str,
    /// An example for the model; may be empty.
    pub example: &'static str,
    /// Set if the parameter is optional.
    pub is_optional: bool,
    /// The default: text, or JSON for any other kind; empty without a default.
    pub default: &'static str,
}

impl Parameter {
    /// Creates a parameter; `meaning` is a phrase for the model. Line ranges and task lists are optional, all others
    /// are required.
    pub const fn new(name: &'static str, kind: ParameterKind, meaning: &'static str) -> Self {
        Self {
            name,
            kind,
            meaning,
            example: "",
            is_optional: matches!(kind, ParameterKind::Lines | ParameterKind::Tasks),
            default: "",
        }
    }

    /// Creates a parameter for a path or a glob.
    pub const fn path(name: &'static str, meaning: &'static str) -> Self {
        Self::new(name, ParameterKind::Path, meaning)
    }

    /// Creates a parameter for text that is taken byte by byte.
    pub const fn block(name: &'static str, meaning: &'static str) -> Self {
        Self::new(name, ParameterKind::Block, meaning)
    }

    /// Creates a parameter for prose.
    pub const fn text(name: &'static str, meaning: &'static str) -> Self {
        Self::new(name, ParameterKind::Text, meaning)
    }

    /// Adds an example.
    pub const fn example(self, example: &'static str) -> Self {
        Self { example, ..self }
    }

    /// Makes the parameter optional.
    pub const fn optional(self) -> Self {
        Self {
            is_optional: true,
            ..self
        }
    }

    /// Makes the parameter optional, with this default; values other than text are given as JSON.
    pub const fn or(self, default: &'static str) -> Self {
        Self {
            default,
            ..self.optional()
        }
    }

    /// Returns the JSON schema of the parameter's value.
    pub fn schema(&self) -> Value {
        match self.kind {
            ParameterKind::Flag => json!({"type": "boolean"}),
            ParameterKind::Json(schema) => serde_json::from_str(schema).unwrap_or_default(),
            _ => json!({"type": "string"}),
        }
    }

    /// Returns the schema with an upper bound on the length, except for file contents. It is meant for servers that
    /// enforce a schema, since the smallest models would otherwise not stop. The grammars of llama.cpp do not support
    /// bounds of 2,000 or more.
    pub fn bounded_schema(&self) -> Value {
        const LONGEST_PATH: u32 = 500;
        const LONGEST_TEXT: u32 = 1000;
        let mut schema = self.schema();
        let longest = match self.kind {
            ParameterKind::Block | ParameterKind::Flag | ParameterKind::Json(_) => return schema,
            ParameterKind::Path | ParameterKind::Lines => LONGEST_PATH,
            ParameterKind::Text | ParameterKind::Command | ParameterKind::Tasks => LONGEST_TEXT,
        };
        schema["maxLength"] = longest.into();
        schema
    }

    /// Returns the default as JSON, if there is one.
    fn default_value(&self) -> Option<Value> {
        let default = Some(self.default).filter(|default| !default.is_empty())?;
        match self.kind {
            ParameterKind::Flag | ParameterKind::Json(_) => serde_json::from_str(default).ok(),
            _ => Some(default.into()),
        }
    }
}

/// The effect of a tool on the world, on which permissions are based.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Reads and changes nothing.
    Reads,
    /// Changes files.
    Writes,
    /// Runs programs, or terminates them.
    Runs,
    /// Talks to the user.
    Asks,
    /// Changes only the agent's own notes.
    Notes,
    /// Reports that the work is done.
    Ends,
    /// Delegates work to another agent, whose calls need their own permissions.
    Delegates,
}

impl Effect {
    /// Returns whether a call with this effect may be repeated without harm.
    pub fn may_be_repeated(self) -> bool {
        matches!(self, Self::Reads | Self::Asks | Self::Notes | Self::Ends)
    }
}

/// A tool as described to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name; for the program's own tools, letters and underscores only.
    pub name: Cow<'static, str>,
    /// The description for the model: a sentence or two.
    pub description: Cow<'static, str>,
    /// The parameters in order; empty if `schema` describes them.
    pub parameters: &'static [Parameter],
    /// The JSON schema of the input, for a tool that is only known at run time.
    pub schema: Option<Value>,
    /// The effect on the world.
    pub effect: Effect,
    /// The kind of object the tool works on.
    pub category: Category,
    /// The verb used to describe a call to a person.
    pub verb: Verb,
    /// Set if its output is shown while it runs.
    pub streams: bool,
    /// The maximum time that a call may ask the tool to wait; `None` if a call cannot specify a time.
    pub timeout: Option<Duration>,
}

impl ToolSpec {
    /// Creates a description of one of the program's own tools.
    pub const fn new(
        name: &'static str,
        description: &'static str,
        parameters: &'static [Parameter],
        effect: Effect,
    ) -> Self {
        Self {
            name: Cow::Borrowed(name),
            description: Cow::Borrowed(description),
            parameters,
            schema: None,
            effect,
            category: match effect {
                Effect::Reads => Category::File,
                Effect::Writes => Category::Edit,
                Effect::Runs => Category::Shell,
                Effect::Asks | Effect::Notes | Effect::Ends | Effect::Delegates => Category::Agent,
            },
            verb: match effect {
                Effect::Reads => Verb::Read,
                Effect::Writes => Verb::Edit,
                Effect::Runs => Verb::Run,
                Effect::Asks => Verb::Ask,
                Effect::Notes | Effect::Ends | Effect::Delegates => Verb::Use,
            },
            streams: false,
            timeout: None,
        }
    }

    /// Replaces the verb implied by the effect.
    pub const fn doing(mut self, verb: Verb) -> Self {
        self.verb = verb;
        self
    }

    /// Replaces the category implied by the effect.
    pub const fn of_category(mut self, category: Category) -> Self {
        self.category = category;
        self
    }

    /// Shows the output while the tool runs; `timeout` is the maximum time that a call may ask it to wait.
    pub const fn streaming(mut self, timeout: Duration) -> Self {
        self.streams = true;
        self.timeout = Some(timeout);
        self
    }

    /// Returns whether a call needs the user's approval, unless it was permanently approved. Reading the project needs
    /// approval; use of the agent's own notes does not.
    pub fn requires_approval(&self) -> bool {
        use Effect::{Asks, Delegates, Ends, Notes};
        !matches!(self.effect, Asks | Notes | Ends | Delegates)
    }

    /// Returns whether the tool has a parameter of this kind.
    pub fn takes(&self, kind: ParameterKind) -> bool {
        self.parameters.iter().any(|known| known.kind == kind)
    }

    /// Returns the JSON schema of the tool's input, which is an object.
    pub fn schema(&self) -> Value {
        if let Some(schema) = &self.schema {
            return schema.clone();
        }
        let property = |parameter: &Parameter| {
            let mut property = parameter.schema();
            property["description"] = parameter.meaning.into();
            (parameter.name.to_owned(), property)
        };
        let properties: Map<String, Value> = self.parameters.iter().map(property).collect();
        let needed = |parameter: &&Parameter| !parameter.is_optional;
        let required: Vec<&str> = self
            .parameters
            .iter()
            .filter(needed)
            .map(|parameter| parameter.name)
            .collect();
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    }

    /// Returns the description to send to a vendor.
    pub fn described(&self) -> ToolSchema {
        ToolSchema {
            name: self.name.clone().into_owned(),
            description: self.description.clone().into_owned(),
            schema: self.schema(),
        }
    }

    /// Validates the input and fills in defaults. The input must be an object with all required properties, no unknown
    /// ones if the schema forbids them, and values of the right types. For tools that are only known at run time,
    /// nested values are left to the tool.
    ///
    /// # Errors
    /// A description of the problem, for the model.
    pub fn check(&self, input: &Value) -> Result<Arguments, String> {
        let Value::Object(given) = input else {
            return Err(format!(
                "{} must be given its arguments as a JSON object",
                self.name
            ));
        };
        let schema = self.schema();
        schema::check_names(&self.name, given, &schema)?;
        for (name, value) in given {
            if let Some(expected) = schema::other_type(value, &schema["properties"][name]) {
                return Err(format!(
                    "`{name}` of {} must be a JSON {expected}",
                    self.name
                ));
            }
        }
        let mut arguments = Arguments(given.clone());
        for parameter in self.parameters {
            match (given.get(parameter.name), parameter.default_value()) {
                (Some(value), _) => schema::check(value, &parameter.schema(), parameter.name)
                    .map_err(|problem| format!("{problem}, for {}", self.name))?,
                (None, Some(default)) => arguments.set(parameter.name, default),
                (None, None) => {}
            }
        }
        Ok(arguments)
    }
}

/// The arguments of a call, by parameter name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Arguments(pub(super) Map<String, Value>);

impl Arguments {
    /// Returns the text argument with this name; empty if it is missing.
    pub fn get(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the number with this name; `None` if it is missing or negative.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(Value::as_u64)
    }

    /// Returns whether the flag with this name is set.
    pub fn is_set(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Value::Bool(true))
    }

    /// Returns all arguments as one JSON object.
    pub fn to_value(&self) -> Value {
        Value::Object(self.0.clone())
    }

    /// Sets an argument.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }
}

/// A tool call requested by a reply, with validated arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The tool's description.
    pub tool: ToolSpec,
    /// The arguments, which fit the tool's schema.
    pub arguments: Arguments,
    /// Hazards of the call, one word each: `overwrites`, `deletes`.
    pub hazards: Vec<&'static str>,
}

impl ToolCall {
    /// Returns the subject of the call, which is its first argument.
    pub fn subject(&self) -> &str {
        let first = self.tool.parameters.first();
        first.map_or("", |first| self.arguments.get(first.name))
    }

    /// Returns the arguments of this kind.
    pub fn of_kind(&self, kind: ParameterKind) -> impl Iterator<Item = &str> {
        let parameters = self.tool.parameters.iter();
        let of_kind = parameters.filter(move |parameter| parameter.kind == kind);
        of_kind.map(|parameter| self.arguments.get(parameter.name))
    }
}

/// The result of a tool that ran, even if its command failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// The text for the model, of any length: the agent redacts keys and truncates long text in the middle.
    pub text: String,
    /// Set if the agent reports that it is done; the text is then its summary.
    pub is_end: bool,
    /// The exit status of the command, if the tool ran one.
    pub command: CommandEnd,
    /// Set if the call counts as failed although the tool ran; the text then says why.
    pub is_failure: bool,
    /// The output of the command alone, as it appears in the text.
    pub printed: Option<String>,
    /// The outcome for the user, in a few words: `575 lines`.
    pub brief: Option<String>,
    /// Warnings for the user, which are also part of the text.
    pub warnings: Vec<String>,
    /// The result as JSON, limited in size by the tool, for models that get results in that form; `None` for the text.
    pub data: Option<Value>,
}

impl ToolOutput {
    /// Creates an output with text only.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// Adds the outcome for the user, if there is one.
    pub fn in_brief(self, brief: impl Into<Option<String>>) -> Self {
        Self {
            brief: brief.into(),
            ..self
        }
    }
}

/// The failure of a call, as reported to the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}{hint}", if .hint.is_empty() { "" } else { "\nhint: " })]
pub struct CallFailure {
    /// The kind of failure as an identifier: `unknown_tool`, `invalid_arguments`, or one of the tool's own.
    pub code: &'static str,
    /// A sentence that states the problem and, if there is no hint, the solution.
    pub message: String,
    /// The solution; empty if the message contains it.
    pub hint: String,
}

impl CallFailure {
    /// The tool does not exist.
    pub const UNKNOWN_TOOL: &'static str = "unknown_tool";
    /// The arguments do not fit the tool's parameters.
    pub const INVALID_ARGUMENTS: &'static str = "invalid_arguments";
    /// The call was not carried out, or not completed.
    pub const NOT_DONE: &'static str = "not_done";
    /// The call is not permitted.
    pub const NOT_ALLOWED: &'static str = "not_allowed";
    /// The tool failed without a more specific code.
    pub const TOOL_FAILED: &'static str = "tool_failed";

    /// Creates a failure of this kind.
    pub fn new(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: hint.into(),
        }
    }
}

impl From<CallFailure> for String {
    fn from(failure: CallFailure) -> Self {
        failure.to_string()
    }
}

impl From<String> for CallFailure {
    fn from(message: String) -> Self {
        Self::new(Self::TOOL_FAILED, message, "")
    }
}

/// Errors from using a tool.
#[derive(Debug)]
pub enum ToolError {
    /// The call failed; the model is informed and can react.
    Failed(CallFailure),
    /// The run must end, because of a signal or an internal failure.
    Fatal(AgentError),
}

impl From<String> for ToolError {
    /// Creates a failure from a sentence for the model.
    fn from(sentence: String) -> Self {
        Self::Failed(sentence.into())
    }
}

impl<E: Into<AgentError>> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::Fatal(error.into())
    }
}

/// A tool that an agent can use. Its description for the model, a `ToolSpec`, is stored next to it in a `Toolbox`.
pub trait Tool {
    /// Runs the tool with arguments that fit its parameters.
    ///
    /// # Errors
    /// [`ToolError::Failed`] for a failure to report to the model, [`ToolError::Fatal`] if the run must end.
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError>;

    /// Returns a preview for the user who is asked to approve the call; `None` if the arguments are informative enough.
    ///
    /// # Errors
    /// The failure that the call would have, if that is known in advance; the user is then not asked.
    fn preview(&self, _arguments: &Arguments) -> Result<Option<String>, ToolError> {
        Ok(None)
    }

    /// Returns the hazards of a call, one word each, as determined by a quick look at the disk.
    fn hazards(&self, _arguments: &Arguments) -> Vec<&'static str> {
        Vec::new()
    }
}

/// The tools of an agent with their descriptions, in the order in which the model sees them.
#[derive(Default)]
pub struct Toolbox<'a>(Vec<(&'a ToolSpec, Box<dyn Tool + 'a>)>);

impl<'a> Toolbox<'a> {
    /// Adds a tool with its description.
    pub fn with(mut self, spec: &'a ToolSpec, tool: impl Tool + 'a) -> Self {
        self.0.push((spec, Box::new(tool)));
        self
    }

    /// Returns the description of the tool with this name.
    pub fn named(&self, name: &str) -> Option<&'a ToolSpec> {
        let mut tools = self.0.iter();
        tools.find_map(|(spec, _)| (spec.name == name).then_some(*spec))
    }

    /// Returns the descriptions of all tools.
    pub fn specs(&self) -> impl Iterator<Item = &'a ToolSpec> {
        self.0.iter().map(|(spec, _)| *spec)
    }

    /// Formats the message for a call of an unknown tool, listing the existing ones.
    pub(super) fn unknown(&self, name: &str) -> String {
        let names: Vec<&str> = self.specs().map(|spec| &*spec.name).collect();
        format!("there is no tool `{name}`: there are {}", names.join(", "))
    }

    /// Finds the tool for a call, and validates the call's arguments.
    ///
    /// # Errors
    /// The problem with the call, for the model.
    pub fn resolve(&self, call: &Call) -> Result<(&(dyn Tool + 'a), ToolCall), CallFailure> {
        let mut tools = self.0.iter();
        let Some((spec, tool)) = tools.find(|(spec, _)| spec.name == call.name) else {
            let message = self.unknown(&call.name);
            let hint = "call one of these";
            return Err(CallFailure::new(CallFailure::UNKNOWN_TOOL, message, hint));
        };
        let invalid = |problem| CallFailure::new(CallFailure::INVALID_ARGUMENTS, problem, "");
        let arguments = spec.check(&call.input).map_err(invalid)?;
        let call = ToolCall {
            tool: (*spec).clone(),
            hazards: tool.hazards(&arguments),
            arguments,
        };
        Ok((&**tool, call))
    }
}

#[cfg(test)]
mod tests;
