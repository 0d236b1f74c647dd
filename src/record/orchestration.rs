//! What an orchestration is as data: how it ended, and the branches that its agents worked on.

use serde::{Deserialize, Serialize};

use super::Seconds;

/// How an orchestration ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrchestrationStatus {
    /// A review has passed the work, and it is published, unless that was left out.
    Completed,
    /// As many reviews came back as may.
    IterationLimit,
    /// An agent took too long.
    Timeout,
    /// The work was to be published, and was not.
    PublishFailed,
    /// Something else went wrong.
    Failed,
    /// A signal came.
    Interrupted,
}

/// A branch on which an agent worked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BranchRecord {
    /// Its id.
    pub id: String,
    /// The branch that it began as.
    pub parent: String,
    /// The agent, by its name.
    pub agent: String,
    /// What the server has called its state last; "" before it was asked.
    pub status: String,
    /// How long it was waited for.
    pub seconds: Seconds,
}
