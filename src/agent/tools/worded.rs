//! A tool under other words: a profile's name, description and parameter names over one implementation.
//!
//! Touches nothing of its own. What its words have and the implementation does not, it checks before it hands the call
//! on.

use crate::agent::tool::{Arguments, Tool, ToolError, ToolOutput, ToolSpec};

/// The words over a tool.
pub struct Worded<T> {
    /// The tool, as the model knows it; its effect is the implementation's.
    pub spec: &'static ToolSpec,
    /// The parameters that the tool has under another name, and that name. All others have the same.
    pub renamed: &'static [(&'static str, &'static str)],
    /// Checks that the tool can do what arguments under these words ask for; else tells why it cannot, for
    /// the model.
    pub check: fn(&T, &Arguments) -> Result<(), String>,
    /// The implementation.
    pub tool: T,
}

impl<T: Tool> Worded<T> {
    /// The words over a tool that can do whatever they ask for.
    pub fn new(
        spec: &'static ToolSpec,
        renamed: &'static [(&'static str, &'static str)],
        tool: T,
    ) -> Self {
        Self {
            spec,
            renamed,
            check: |_, _| Ok(()),
            tool,
        }
    }

    /// The arguments under the tool's own names, less what it does not take.
    fn translated(&self, arguments: &Arguments) -> Arguments {
        let mut translated = Arguments::default();
        for (name, value) in &arguments.0 {
            let mut renamed = self.renamed.iter();
            let own = renamed.find(|(word, _)| word == name);
            let own = own.map_or(name.as_str(), |(_, own)| own);
            if self
                .tool
                .spec()
                .parameters
                .iter()
                .any(|known| known.name == own)
            {
                translated.set(own, value.clone());
            }
        }
        translated
    }
}

impl<T: Tool> Tool for Worded<T> {
    fn spec(&self) -> &ToolSpec {
        self.spec
    }

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
