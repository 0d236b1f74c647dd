//! A tool under other words: a profile's parameter names over one implementation.
//!
//! Touches nothing of its own. What its words have and the implementation does not, it checks before it hands the call
//! on.

use crate::agent::tool::{Arguments, Tool, ToolError, ToolOutput};

/// The words over a tool.
pub struct Worded<T> {
    /// The parameters that the tool has under another name, and that name. All others have the same.
    pub renamed: &'static [(&'static str, &'static str)],
    /// Checks that the tool can do what arguments under these words ask for; else tells why it cannot, for
    /// the model.
    pub check: fn(&T, &Arguments) -> Result<(), String>,
    /// The implementation.
    pub tool: T,
}

impl<T: Tool> Worded<T> {
    /// The arguments under the tool's own names.
    fn translated(&self, arguments: &Arguments) -> Arguments {
        let own = |name: &String| {
            let mut renamed = self.renamed.iter();
            let own = renamed.find(|(word, _)| word == name);
            own.map_or(name.clone(), |(_, own)| (*own).to_owned())
        };
        let arguments = arguments.0.iter();
        Arguments(
            arguments
                .map(|(name, value)| (own(name), value.clone()))
                .collect(),
        )
    }
}

impl<T: Tool> Tool for Worded<T> {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        (self.check)(&self.tool, arguments).map_err(ToolError::failed)?;
        self.tool.run(&self.translated(arguments))
    }

    fn preview(&self, arguments: &Arguments) -> Result<Option<String>, ToolError> {
        (self.check)(&self.tool, arguments).map_err(ToolError::failed)?;
        self.tool.preview(&self.translated(arguments))
    }

    fn hazards(&self, arguments: &Arguments) -> Vec<&'static str> {
        self.tool.hazards(&self.translated(arguments))
    }
}
