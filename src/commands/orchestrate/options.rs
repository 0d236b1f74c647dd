//! What `orchestrate` is asked to do. Plain data.

use uuid::Uuid;

use super::config::ConfigFlags;
use crate::run::context::ModelChoice;
use crate::ui::input::{InputError, LineReader};

/// Makes the input when somebody is to be asked.
pub type OpenUser<'i> = &'i dyn Fn() -> Result<Box<dyn LineReader>, InputError>;

/// What the command line asks for.
#[derive(Debug, Clone)]
pub struct OrchestrateOptions {
    /// The branch to begin from; `None` in a replay alone.
    pub parent_branch: Option<Uuid>,
    /// What is to be done, not blank; `None` where the user is to be asked for it.
    pub task: Option<String>,
    /// Whether nobody is asked anything but for the task.
    pub headless: bool,
    /// Whether somebody types at standard input.
    pub stdin_is_terminal: bool,
    /// What the configuration is read with.
    pub config: ConfigFlags,
    /// Where replies come from.
    pub choice: ModelChoice,
}
