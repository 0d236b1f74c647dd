//! An orchestration as data: its report, the branches that it came by, and what a replay of it has to know.
//!
//! The report stands in `result.json`; of a run that was killed, `lineage.json` tells how far it came.

use serde::{Deserialize, Serialize};

use super::seconds::Seconds;
use crate::model::Provider;

/// The tool that has an agent work on a new branch.
pub const EXECUTE_AGENT: &str = "execute_agent";
/// The tool that reads a file of a branch.
pub const READ_ARTIFACT: &str = "read_artifact";

/// The way an orchestration has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrchestrationStatus {
    /// A review has passed the work, and it was published, unless it was not to be.
    Completed,
    /// No review has passed the work, and there may be no more of them.
    IterationLimit,
    /// An agent was not done in the time that it had.
    Timeout,
    /// The work could not be published.
    PublishFailed,
    /// The work could not go on.
    Failed,
    /// A signal came.
    Interrupted,
}

impl OrchestrationStatus {
    /// Its word in the report.
    pub fn word(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::IterationLimit => "iteration_limit",
            Self::Timeout => "timeout",
            Self::PublishFailed => "publish_failed",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }

    /// Returns whether the task is done: work that no review has passed, or that could not be published, is not.
    pub fn is_finished(self) -> bool {
        self == Self::Completed
    }
}

/// The verdict of a review: that of the first line of its log that has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewVerdict {
    /// There is nothing that must be fixed.
    Clean,
    /// There is.
    Issues,
}

impl ReviewVerdict {
    /// Its word in the log.
    pub fn word(self) -> &'static str {
        match self {
            Self::Clean => "CLEAN",
            Self::Issues => "ISSUES",
        }
    }
}

/// A branch that an agent has worked on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BranchRecord {
    /// Its id on the server.
    pub id: String,
    /// The id of the branch that it began as.
    pub parent: String,
    /// The agent: `claude_code` or `codex`.
    pub agent: String,
    /// The status last reported by the server; "" if it has not been asked yet.
    pub status: String,
    /// The time spent waiting for it.
    pub seconds: Seconds,
    /// The verdict in its review's log; left out where it is no review, or the log has no verdict or was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<ReviewVerdict>,
}

/// The branches of a run so far: the whole of `lineage.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Lineage {
    /// The branch that the run began from.
    pub start_branch_id: String,
    /// The last one that succeeded, or the one that the run began from.
    pub latest_branch_id: String,
    /// The one that is being waited for; null where none is.
    pub waiting_for: Option<String>,
    /// The agent that is being started, on a branch whose id is not known yet; left out where none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starting: Option<String>,
    /// The number of reviews that have come back.
    pub iterations: u32,
    /// All that were made, in their order.
    pub branches: Vec<BranchRecord>,
}

/// The report of an orchestration, as it is printed in its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OrchestrationRecord {
    /// The user's request.
    pub task: String,
    /// A summary of the work, in the model's words; the program's own where it has none.
    pub summary: String,
    /// The way it has ended.
    pub status: OrchestrationStatus,
    /// True if it is done.
    pub is_finished: bool,
    /// The branch that it began from.
    pub start_branch_id: String,
    /// The last one that succeeded, the one that has published included.
    pub latest_branch_id: String,
    /// Instructions for the user: the next steps.
    pub instructions: String,
    /// The publishing agent's report; left out where nothing was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish_report: Option<String>,
    /// The branch that has published; left out where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish_pantheon_branch_id: Option<String>,
    /// The reason nothing was published; left out where that was not tried, or has succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish_error: Option<String>,
    /// The number of reviews that have come back.
    pub iterations: u32,
    /// The run's folder.
    pub log: String,
    /// All branches that were made, in their order.
    pub branches: Vec<BranchRecord>,
}

/// The settings of an orchestration. A replay keeps to the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OrchestrationSettings {
    /// The model's name: a replay's table of models may not know it.
    pub model: String,
    /// The wire format of its answers.
    pub provider: Provider,
    /// The branch that it begins from.
    pub parent_branch_id: String,
    /// The project on the server.
    pub project_name: String,
    /// The directory that the agents work in.
    pub workspace_dir: String,
    /// True if the work is published in the end.
    pub publishes: bool,
    /// The intervals and the time limit of asking for a branch.
    pub polling: Polling,
}

/// The intervals at which a branch is asked for, and the time limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Polling {
    /// The first wait.
    pub initial: Seconds,
    /// The longest wait.
    pub max: Seconds,
    /// The time an agent may take.
    pub timeout: Seconds,
    /// By how much each wait is longer than the one before; above 1.
    pub factor: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_written_as_it_is_told_and_one_of_them_is_done() {
        use OrchestrationStatus::{
            Completed, Failed, Interrupted, IterationLimit, PublishFailed, Timeout,
        };
        for status in [
            Completed,
            IterationLimit,
            Timeout,
            PublishFailed,
            Failed,
            Interrupted,
        ] {
            assert_eq!(serde_json::to_value(status).unwrap(), status.word());
            assert_eq!(status.is_finished(), status == Completed);
        }
    }
}
