//! The branches that agents worked on, as data.
//!
//! The records are part of a run's report; if the run was killed, `lineage.json` shows how far it got.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::seconds::Seconds;

/// A review's verdict, taken from the first line of its log that has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "UPPERCASE", const_into_str)]
pub enum ReviewVerdict {
    /// Nothing has to be fixed.
    Clean,
    /// Something has to be fixed.
    Issues,
}

/// A branch that an agent worked on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BranchRecord {
    /// The branch's id on the server.
    pub id: String,
    /// The id of the branch that it was created from.
    pub parent: String,
    /// The agent: `claude_code` or `codex`.
    pub agent: String,
    /// The status last reported by the server; empty if it has not been polled yet.
    pub status: String,
    /// The time spent waiting for the branch.
    pub seconds: Seconds,
    /// The verdict in a review's log; left out if this is not a review, or its log has no verdict or was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<ReviewVerdict>,
}

/// The branches of a run so far, which is the content of `lineage.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Lineage {
    /// The branch that the run began from.
    pub start_branch_id: String,
    /// The last branch that succeeded, or else the one that the run began from.
    pub latest_branch_id: String,
    /// The branch that the run waits for, if any; otherwise null.
    pub waiting_for: Option<String>,
    /// The agent that is being started on a branch whose id is not known yet; left out if none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starting: Option<String>,
    /// True if the last agent that was started, or is being started, publishes the work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub publishes: bool,
    /// The number of completed reviews.
    pub iterations: u32,
    /// All branches that were created, in order.
    pub branches: Vec<BranchRecord>,
}
