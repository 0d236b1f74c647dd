//! What a tool is: how it is described to a model, what it is given, and what comes of it.
//!
//! A tool says what parameters it takes; how they stand in a reply is the protocol's concern. So one
//! implementation serves every protocol: markdown sections, JSON objects, a vendor's own tool calls.

use crate::workflow::error::Error;

/// What kind of text a parameter is.
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
}

/// A parameter of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Its name; no other parameter of the tool has it.
    pub name: &'static str,
    /// What kind of text it is.
    pub kind: ParameterKind,
    /// What it means, for the model: a phrase.
    pub meaning: &'static str,
}

/// What a tool does to the world; permissions go by it.
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
}

impl Effect {
    /// Whether doing it twice is the same as doing it once.
    #[must_use]
    pub fn may_be_repeated(self) -> bool {
        match self {
            Self::Reads | Self::Asks | Self::Notes | Self::Ends => true,
            Self::Writes | Self::Runs => false,
        }
    }
}

/// A tool, as it is described to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolSpec {
    /// Its name, in capitals and underscores.
    pub name: &'static str,
    /// What it does, for the model: a sentence or two.
    pub summary: &'static str,
    /// What it takes, in this order.
    pub parameters: &'static [Parameter],
    /// What it does to the world.
    pub effect: Effect,
}

/// What a tool is given, by the parameters' names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments(Vec<(&'static str, String)>);

impl Arguments {
    /// The argument of this name; "" where the tool has none such: a protocol leaves none out.
    #[must_use]
    pub fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map_or("", |(_, value)| value)
    }

    /// Sets an argument.
    pub fn set(&mut self, name: &'static str, value: String) {
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, value));
    }

    /// All of them, in the order in which they were set.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }
}

/// A tool that a reply asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// Its description.
    pub tool: &'static ToolSpec,
    /// What it is given.
    pub arguments: Arguments,
    /// The input as the model wrote it, for whoever looks on.
    pub shown: String,
}

impl ToolSpec {
    /// Whether it takes a parameter of this kind.
    #[must_use]
    pub fn takes(&self, kind: ParameterKind) -> bool {
        self.parameters.iter().any(|known| known.kind == kind)
    }
}

impl ToolCall {
    /// The arguments of this kind.
    pub fn of_kind(&self, kind: ParameterKind) -> impl Iterator<Item = &str> {
        let parameters = self.tool.parameters.iter();
        let of_kind = parameters.filter(move |parameter| parameter.kind == kind);
        of_kind.map(|parameter| self.arguments.get(parameter.name))
    }
}

/// What came of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// For the model, of any length: the agent takes the keys out of it, and leaves out the middle of what is
    /// long.
    pub text: String,
    /// Whether the agent says that it is done: the text is then its summary.
    pub is_end: bool,
}

impl ToolOutput {
    /// An output that is nothing but text.
    #[must_use]
    pub fn said(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

/// Why a tool did not do what it was asked for.
#[derive(Debug)]
pub enum ToolError {
    /// The model is told, and can do better: a sentence that names what is wrong and the way out.
    Failed(String),
    /// The run is over: a signal came, or something of the program's own failed.
    Fatal(Error),
}

impl<E: Into<Error>> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::Fatal(error.into())
    }
}

/// Something that an agent can use.
pub trait Tool {
    /// Its description.
    fn spec(&self) -> &'static ToolSpec;

    /// Does it.
    ///
    /// # Errors
    /// [`ToolError::Failed`] where the model is to be told, [`ToolError::Fatal`] where the run is over.
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError>;
}

/// The tools that an agent has, in the order in which they are described.
#[derive(Default)]
pub struct Toolbox<'a>(Vec<Box<dyn Tool + 'a>>);

impl<'a> Toolbox<'a> {
    /// No tools.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with another tool.
    #[must_use]
    pub fn with(mut self, tool: impl Tool + 'a) -> Self {
        self.0.push(Box::new(tool));
        self
    }

    /// The tool of this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&(dyn Tool + 'a)> {
        let found = self.0.iter().find(|tool| tool.spec().name == name);
        found.map(|tool| &**tool)
    }

    /// The descriptions of all.
    pub fn specs(&self) -> impl Iterator<Item = &'static ToolSpec> {
        self.0.iter().map(|tool| tool.spec())
    }
}
