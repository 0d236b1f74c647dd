//! `show_diff`: shows the changes made by the run so far.

use crate::agent::tool::{Arguments, Effect, Tool, ToolError, ToolOutput, ToolSpec};
use crate::record::tool::Verb;

/// The description of `show_diff`.
pub static SHOW_DIFF: ToolSpec = ToolSpec::new(
    "show_diff",
    "Show what was changed in the project's files so far, as a unified diff. Use this to check your work before you \
     say that it is done, or when the changes are to be reviewed.",
    &[],
    Effect::Reads,
)
.doing(Verb::Use);

/// Shows the unified diff of the changes that a run has made; empty if there are none.
pub struct ShowDiff<'a>(pub Box<dyn Fn() -> String + 'a>);

impl Tool for ShowDiff<'_> {
    fn run(&self, _arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let diff = (self.0)();
        Ok(ToolOutput::text(if diff.trim().is_empty() {
            "nothing was changed so far".to_owned()
        } else {
            diff
        }))
    }
}
