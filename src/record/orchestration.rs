//! An orchestration as data: its report, which is part of `result.json`, and the settings that a replay needs.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::branches::{BranchRecord, Lineage};
use super::seconds::Seconds;
use crate::model::Provider;

/// The tool that starts an agent on a new branch.
pub const EXECUTE_AGENT: &str = "execute_agent";
/// The tool that reads a file from a branch.
pub const READ_ARTIFACT: &str = "read_artifact";

/// The outcome of an orchestration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum OrchestrationStatus {
    /// A review passed the work, and it was published if that was requested.
    Completed,
    /// No review passed the work, and the maximum number of reviews was reached.
    IterationLimit,
    /// An agent did not finish in the time allowed.
    Timeout,
    /// The work could not be published.
    PublishFailed,
    /// The work could not continue.
    Failed,
    /// A signal interrupted the run, or the user left it.
    Interrupted,
}

impl OrchestrationStatus {
    /// Returns whether the task is done. Work that no review passed, or that could not be published, is not.
    pub fn is_finished(self) -> bool {
        self == Self::Completed
    }
}

/// The report of an orchestration, as printed at its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OrchestrationRecord {
    /// The user's request.
    pub task: String,
    /// A summary of the work, in the model's words or, if there are none, the program's.
    pub summary: String,
    /// The outcome.
    pub status: OrchestrationStatus,
    /// True if the task is done.
    pub is_finished: bool,
    /// The branch that the run began from.
    pub start_branch_id: String,
    /// The last branch that succeeded, which may be the one that published.
    pub latest_branch_id: String,
    /// Instructions for the user on the next steps.
    pub instructions: String,
    /// The publishing agent's report; left out if nothing was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish_report: Option<String>,
    /// The branch that published the work; left out if nothing was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish_pantheon_branch_id: Option<String>,
    /// The reason that publishing failed; left out if it was not attempted, or succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish_error: Option<String>,
    /// The number of completed reviews.
    pub iterations: u32,
    /// The run's folder.
    pub log: String,
    /// All branches that were created, in order.
    pub branches: Vec<BranchRecord>,
}

impl OrchestrationRecord {
    /// Returns the branches at the end.
    pub fn lineage(&self) -> Lineage {
        Lineage {
            start_branch_id: self.start_branch_id.clone(),
            latest_branch_id: self.latest_branch_id.clone(),
            iterations: self.iterations,
            branches: self.branches.clone(),
            ..Lineage::default()
        }
    }
}

/// The settings of an orchestration, which a replay reuses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OrchestrationSettings {
    /// The model's name, since a replay's table of models may lack it.
    pub model: String,
    /// True if `--model` named the model, rather than the environment's variables.
    #[serde(default)]
    pub names_model: bool,
    /// The provider, which determines the wire format of the recorded answers.
    pub provider: Provider,
    /// The branch that the run begins from.
    pub parent_branch_id: String,
    /// The project on the server.
    pub project_name: String,
    /// The directory that the agents work in.
    pub workspace_dir: String,
    /// True if the work is published at the end.
    pub publishes: bool,
    /// The intervals and the time limit for polling a branch.
    pub polling: Polling,
    /// True if a branch's state is asked for before it is cloned; older versions did not.
    #[serde(default)]
    pub asks_parents: bool,
    /// The earlier run that this one continues; left out if it continues none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<BegunWork>,
}

/// The work of an earlier run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BegunWork {
    /// The branches so far.
    pub lineage: Lineage,
    /// True if the work is only published.
    pub publish_only: bool,
}

/// The intervals at which a branch is polled, and the time limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Polling {
    /// The first interval.
    pub initial: Seconds,
    /// The longest interval.
    pub max: Seconds,
    /// The time limit for an agent.
    pub timeout: Seconds,
    /// The factor by which the interval grows each time; above 1.
    pub factor: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_saved_by_its_name() {
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
            assert_eq!(serde_json::to_value(status).unwrap(), status.into_str());
            assert_eq!(status.is_finished(), status == Completed);
        }
    }
}
