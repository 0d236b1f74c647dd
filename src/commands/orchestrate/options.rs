//! The options of `orchestrate`. Plain data.

use uuid::Uuid;

use super::config::ConfigFlags;
use crate::run::context::ModelChoice;

/// The options of an orchestration.
#[derive(Debug, Clone)]
pub struct OrchestrateOptions {
    /// The branch to start from; `None` only in a replay.
    pub parent_branch: Option<Uuid>,
    /// The task, not blank; `None` asks the user for it.
    pub task: Option<String>,
    /// Asks the user for nothing but the task.
    pub headless: bool,
    /// True if standard input is a terminal.
    pub stdin_is_terminal: bool,
    /// The command-line flags that affect the configuration.
    pub config: ConfigFlags,
    /// The model to use, or the recorded run to replay.
    pub choice: ModelChoice,
}
