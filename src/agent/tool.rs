//! Tools: how they are described to a model, what they are given, and what comes of them.
//!
//! A tool says what parameters it takes; how they stand in a reply is the protocol's concern. So one
//! implementation serves every protocol: Markdown sections, JSON objects, a vendor's own tool calls. Tools that
//! come at run time say by a JSON schema what they take. Nothing runs whose arguments do not fit the schema.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::error::AgentError;
use super::schema;
use crate::model::message::Call;
use crate::model::{Category, ToolSchema};
use crate::record::tool::{CommandEnd, Verb};

/// The most bytes of a tool's output that a model is shown.
pub const OUTPUT_LIMIT: usize = 32 << 10;

/// The kind of a parameter; most are texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterKind {
    /// A path, or a glob: one line.
    Path,
    /// Text of any length that is taken byte by byte, as a file's content is.
    Block,
    /// Words: a question, a summary.
    Text,
    /// A command for a shell. Words beside it are not: they would be run.
    Command,
    /// A range of lines, as `10-80`. It may be left out.
    Lines,
    /// The task list, a task a line. It may be left out, and Markdown replies have it in a section of its own.
    Tasks,
    /// Yes or no: a JSON boolean.
    Flag,
    /// JSON that follows this schema, of which the engine checks types, names, counts and bounds.
    Json(&'static str),
}

/// A parameter of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// The name; no other parameter of the tool has it.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: ParameterKind,
    /// The meaning, for the model: a phrase.
    pub meaning: &'static str,
    /// An example, for the model; "" for none.
    pub example: &'static str,
    /// Set if it may be left out.
    pub is_optional: bool,
    /// The default: a text, or the JSON of anything else; "" for none.
    pub default: &'static str,
}

impl Parameter {
    /// One of this name and kind; `meaning` is a phrase for the model. Ranges of lines and task lists may be left out,
    /// all else not.
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

    /// A path or a glob.
    pub const fn path(name: &'static str, meaning: &'static str) -> Self {
        Self::new(name, ParameterKind::Path, meaning)
    }

    /// A text that is taken byte by byte.
    pub const fn block(name: &'static str, meaning: &'static str) -> Self {
        Self::new(name, ParameterKind::Block, meaning)
    }

    /// Words.
    pub const fn text(name: &'static str, meaning: &'static str) -> Self {
        Self::new(name, ParameterKind::Text, meaning)
    }

    /// Adds an example.
    pub const fn example(self, example: &'static str) -> Self {
        Self { example, ..self }
    }

    /// Makes it optional.
    pub const fn optional(self) -> Self {
        Self {
            is_optional: true,
            ..self
        }
    }

    /// Makes it optional, with this default; what is no text is given as JSON.
    pub const fn or(self, default: &'static str) -> Self {
        Self {
            default,
            ..self.optional()
        }
    }

    /// The JSON schema of what it may be.
    pub fn schema(&self) -> Value {
        match self.kind {
            ParameterKind::Flag => json!({"type": "boolean"}),
            ParameterKind::Json(schema) => serde_json::from_str(schema).unwrap_or_default(),
            _ => json!({"type": "string"}),
        }
    }

    /// Adds an upper bound on its length, unless it is a file's content: for servers that hold a model to a
    /// schema, since the smallest models would not come to an end without. Grammars of llama.cpp take none of 2,000 or
    /// more.
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

    /// The default as JSON, if there is one.
    fn default_value(&self) -> Option<Value> {
        let default = Some(self.default).filter(|default| !default.is_empty())?;
        match self.kind {
            ParameterKind::Flag | ParameterKind::Json(_) => serde_json::from_str(default).ok(),
            _ => Some(default.into()),
        }
    }
}

/// The effect of a tool on the world; permissions go by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Looks and changes nothing.
    Reads,
    /// Changes files.
    Writes,
    /// Runs programs, or ends them.
    Runs,
    /// Talks to the user.
    Asks,
    /// Changes nothing but what the agent itself keeps.
    Notes,
    /// Says that the work is done.
    Ends,
    /// Lets another agent work, whose own calls are decided one by one.
    Delegates,
}

impl Effect {
    /// Reports whether doing it twice is the same as doing it once.
    pub fn may_be_repeated(self) -> bool {
        !matches!(self, Self::Writes | Self::Runs | Self::Delegates)
    }
}

/// A tool, as it is described to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name, in letters and underscores where the tool is the program's own.
    pub name: Cow<'static, str>,
    /// The description for the model: a sentence or two.
    pub description: Cow<'static, str>,
    /// The parameters, in order; empty where `schema` describes them.
    pub parameters: &'static [Parameter],
    /// The JSON schema of what a tool takes that came at run time.
    pub schema: Option<Value>,
    /// The effect on the world.
    pub effect: Effect,
    /// The kind of thing that it works on.
    pub category: Category,
    /// The verb by which a person is told of it.
    pub verb: Verb,
    /// Set if its output is shown while it is at work.
    pub streams: bool,
    /// The longest that a call may ask it to wait; `None`: a call does not say how long.
    pub timeout: Option<Duration>,
}

impl ToolSpec {
    /// One of the program's own.
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

    /// Sets another verb than the effect implies.
    pub const fn doing(mut self, verb: Verb) -> Self {
        self.verb = verb;
        self
    }

    /// Sets another category than the effect implies.
    pub const fn of_category(mut self, category: Category) -> Self {
        self.category = category;
        self
    }

    /// Shows its output while it is at work, for as long as a call may ask to wait.
    pub const fn streaming(mut self, timeout: Duration) -> Self {
        self.streams = true;
        self.timeout = Some(timeout);
        self
    }

    /// Reports whether its use needs the user's approval, unless given for good. What is the agent's own needs
    /// nobody's leave, and what looks into the project does.
    pub fn requires_approval(&self) -> bool {
        matches!(self.effect, Effect::Reads | Effect::Writes | Effect::Runs)
    }

    /// Reports whether it takes a parameter of this kind.
    pub fn takes(&self, kind: ParameterKind) -> bool {
        self.parameters.iter().any(|known| known.kind == kind)
    }

    /// The JSON schema of what it takes: an object.
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
        let required = self.parameters.iter().filter(needed);
        let required: Vec<&str> = required.map(|parameter| parameter.name).collect();
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    }

    /// As a vendor is told of it.
    pub fn described(&self) -> ToolSchema {
        ToolSchema {
            name: self.name.clone().into_owned(),
            description: self.description.clone().into_owned(),
            schema: self.schema(),
        }
    }

    /// The arguments, if they are what the schema says: an object with all that is required, nothing that is not
    /// known where that is excluded, and values of the types that are named. What is left out is its default. Of tools
    /// that came at run time, what lies deeper is theirs to check.
    ///
    /// # Errors
    /// The problem, for the model.
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
            let known = &schema["properties"][name];
            if let Some(expected) = schema::other_type(value, known) {
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

/// The arguments of a call, by the parameters' names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Arguments(pub(super) Map<String, Value>);

impl Arguments {
    /// The text of this name; "" where there is none.
    pub fn get(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// The number of this name; `None` if it is missing or negative.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(Value::as_u64)
    }

    /// Reports whether the flag of this name is set.
    #[must_use]
    pub fn is_set(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Value::Bool(true))
    }

    /// All of them as one JSON object.
    #[must_use]
    pub fn to_value(&self) -> Value {
        Value::Object(self.0.clone())
    }

    /// Sets an argument.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }
}

/// A tool that a reply asks for, with arguments that fit it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The tool's description.
    pub tool: ToolSpec,
    /// The arguments.
    pub arguments: Arguments,
    /// Hazards of the call, each in a word: `overwrites`, `deletes`.
    pub hazards: Vec<&'static str>,
}

impl ToolCall {
    /// The subject of the call: its first argument.
    pub fn subject(&self) -> &str {
        let first = self.tool.parameters.first();
        first.map_or("", |first| self.arguments.get(first.name))
    }

    /// The arguments of this kind.
    pub fn of_kind(&self, kind: ParameterKind) -> impl Iterator<Item = &str> {
        let parameters = self.tool.parameters.iter();
        let of_kind = parameters.filter(move |parameter| parameter.kind == kind);
        of_kind.map(|parameter| self.arguments.get(parameter.name))
    }
}

/// The output of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// For the model, of any length: the agent takes the keys out of it, and leaves out the middle of what is
    /// long.
    pub text: String,
    /// Set if the agent says that it is done: the text is then its summary.
    pub is_end: bool,
    /// The end of the command that was run.
    pub command: CommandEnd,
    /// The outcome for a person, in a few words: `575 lines`.
    pub brief: Option<String>,
    /// The warnings for the user, which stand in the text, too.
    pub warnings: Vec<String>,
    /// The result as JSON, for a model that is told results so, bounded by the tool; `None` for the text.
    pub data: Option<Value>,
}

impl ToolOutput {
    /// An output that is nothing but text.
    pub fn said(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

/// The failure of a call, for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFailure {
    /// The kind of failure, in a word: `unknown_tool`, `invalid_arguments`, or one of the tool's own.
    pub code: &'static str,
    /// A sentence that names what is wrong; and the way out, where there is no hint.
    pub message: String,
    /// The way out; "" where the message says it.
    pub hint: String,
}

impl CallFailure {
    /// There is no such tool.
    pub const UNKNOWN_TOOL: &'static str = "unknown_tool";
    /// The arguments are not what the tool takes.
    pub const INVALID_ARGUMENTS: &'static str = "invalid_arguments";
    /// The call was not carried out, or not to its end.
    pub const NOT_DONE: &'static str = "not_done";
    /// The call may not be carried out.
    pub const NOT_ALLOWED: &'static str = "not_allowed";
    /// The tool has failed, and has no word for how.
    pub const TOOL_FAILED: &'static str = "tool_failed";

    /// One of this kind.
    pub fn new(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: hint.into(),
        }
    }
}

impl fmt::Display for CallFailure {
    /// As it is told in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &*self.hint {
            "" => Ok(()),
            hint => write!(f, "\nhint: {hint}"),
        }
    }
}

impl From<String> for CallFailure {
    fn from(message: String) -> Self {
        Self::new(Self::TOOL_FAILED, message, "")
    }
}

/// The reason why a tool has failed.
#[derive(Debug)]
pub enum ToolError {
    /// The model is told, and can do better.
    Failed(CallFailure),
    /// The run is over: a signal came, or something of the program's own failed.
    Fatal(AgentError),
}

impl ToolError {
    /// The model is told.
    pub fn failed(failure: impl Into<CallFailure>) -> Self {
        Self::Failed(failure.into())
    }
}

impl<E: Into<AgentError>> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::Fatal(error.into())
    }
}

/// Something that an agent can use. What a model is told of it, its [`ToolSpec`], stands beside it in a [`Toolbox`].
pub trait Tool {
    /// Does what the tool is for, with arguments that fit its parameters.
    ///
    /// # Errors
    /// [`ToolError::Failed`] where the model is to be told, [`ToolError::Fatal`] where the run is over.
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError>;

    /// A preview for a user who is asked about it; `None` where the arguments say it all.
    ///
    /// # Errors
    /// Why it would fail, where that can be told: nobody is asked then.
    fn preview(&self, _arguments: &Arguments) -> Result<Option<String>, ToolError> {
        Ok(None)
    }

    /// Hazards of a call, each in a word, as far as a glance at the disk tells.
    fn hazards(&self, _arguments: &Arguments) -> Vec<&'static str> {
        Vec::new()
    }
}

/// The tools that an agent has, each as the model knows it, in the order in which they are described.
#[derive(Default)]
pub struct Toolbox<'a>(Vec<(&'a ToolSpec, Box<dyn Tool + 'a>)>);

impl<'a> Toolbox<'a> {
    /// A toolbox with no tools in it yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool, as the model knows it.
    pub fn with(mut self, spec: &'a ToolSpec, tool: impl Tool + 'a) -> Self {
        self.0.push((spec, Box::new(tool)));
        self
    }

    /// The description of the tool of this name.
    pub fn named(&self, name: &str) -> Option<&'a ToolSpec> {
        let mut tools = self.0.iter();
        tools.find_map(|(spec, _)| (spec.name == name).then_some(*spec))
    }

    /// The descriptions of all.
    pub fn specs(&self) -> impl Iterator<Item = &'a ToolSpec> {
        self.0.iter().map(|(spec, _)| *spec)
    }

    /// Says that there is no tool of this name, and which there are.
    pub(super) fn unknown(&self, name: &str) -> String {
        let names: Vec<&str> = self.specs().map(|spec| &*spec.name).collect();
        format!("there is no tool `{name}`: there are {}", names.join(", "))
    }

    /// The tool that a reply calls, and the call with arguments that fit it.
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
