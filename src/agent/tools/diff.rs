//! The tool `show_diff`: what the run has changed so far.

use crate::agent::tool::{Arguments, Effect, Tool, ToolError, ToolOutput, ToolSpec};
use crate::record::tool::Verb;

/// The tool, as the model knows it.
pub static SHOW_DIFF: ToolSpec = ToolSpec::new(
    "show_diff",
    "Show what was changed in the project's files so far, as a unified diff. Use this to check your work before you \
     say that it is done, or when the changes are to be reviewed.",
    &[],
    Effect::Reads,
)
.doing(Verb::Use);

/// Knows what a run has changed.
pub trait ChangesSoFar {
    /// The unified diff of it; "" where nothing was changed.
    ///
    /// # Errors
    /// When it cannot be told.
    fn diff(&self) -> Result<String, ToolError>;
}

/// Shows the diff.
#[derive(Clone, Copy)]
pub struct ShowDiff<'a>(pub &'a dyn ChangesSoFar);

impl Tool for ShowDiff<'_> {
    fn run(&self, _arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let diff = self.0.diff()?;
        Ok(ToolOutput::said(if diff.trim().is_empty() {
            "nothing was changed so far".to_owned()
        } else {
            diff
        }))
    }
}
