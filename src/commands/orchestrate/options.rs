//! The options of `orchestrate`. Plain data.

use uuid::Uuid;

use super::config::ConfigFlags;
use crate::run::context::ModelChoice;

/// The options of an orchestration.
#[derive(Debug, Clone)]
pub struct OrchestrateOptions {
    /// The branch to begin from; `None` in a replay alone.
    pub parent_branch: Option<Uuid>,
    /// The task, not blank; `None` to ask the user for it.
    pub task: Option<String>,
    /// Asks for nothing but the task.
    pub headless: bool,
    /// True if standard input is a terminal.
    pub stdin_is_terminal: bool,
    /// The flags for the configuration.
    pub config: ConfigFlags,
    /// The choice of a model, or of a recorded run.
    pub choice: ModelChoice,
}
