//! A tool with other parameter names: those of a profile, mapped to one implementation.
//!
//! Has no effects of its own. Before it passes a call on, it checks that the call uses no feature that the profile's
//! wording has and the implementation lacks.

use crate::agent::tool::{Arguments, Tool, ToolError, ToolOutput};

/// A tool with renamed parameters.
pub struct RenamedTool<T>(
    /// The renamed parameters, as pairs of the profile's name and the tool's own. All others keep their names.
    pub &'static [(&'static str, &'static str)],
    /// Checks that the tool supports what these arguments ask for; an error tells the model why it does not.
    pub fn(&T, &Arguments) -> Result<(), String>,
    /// The implementation.
    pub T,
);

impl<T: Tool> RenamedTool<T> {
    /// Checks the arguments, and translates them.
    fn checked(&self, arguments: &Arguments) -> Result<Arguments, ToolError> {
        let Self(_, check, tool) = self;
        check(tool, arguments)?;
        Ok(self.translated(arguments))
    }

    /// Returns the arguments with the tool's own parameter names.
    fn translated(&self, arguments: &Arguments) -> Arguments {
        let own = |name: &String| {
            let mut renamed = self.0.iter();
            let own = renamed.find(|(word, _)| word == name);
            own.map_or(name.clone(), |(_, own)| (*own).to_owned())
        };
        let arguments = arguments.0.iter();
        let own = arguments.map(|(name, value)| (own(name), value.clone()));
        Arguments(own.collect())
    }
}

impl<T: Tool> Tool for RenamedTool<T> {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        self.2.run(&self.checked(arguments)?)
    }

    fn preview(&self, arguments: &Arguments) -> Result<Option<String>, ToolError> {
        self.2.preview(&self.checked(arguments)?)
    }

    fn hazards(&self, arguments: &Arguments) -> Vec<&'static str> {
        self.2.hazards(&self.translated(arguments))
    }
}
