//! The states that a commit with `--strategy search` has seen. Plain data.

use serde::{Deserialize, Serialize};

/// The course of a search for a state that passes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchRecord {
    /// The failing states, in order.
    pub states: Vec<StateRecord>,
    /// The step whose state was kept when none passed; null if one has passed, or nothing was kept.
    pub kept: Option<String>,
    /// The reason for keeping that state; null if `kept` is.
    pub why: Option<String>,
}

/// A state of the project's files that failed its build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateRecord {
    /// The step that made it.
    pub step: String,
    /// The step whose state it was made from; null for the project as it was before the run.
    pub from: Option<String>,
    /// The number of findings in the build's output.
    pub findings: usize,
    /// The number of lines added and removed since the run began.
    pub lines: u64,
    /// True if the search does not continue from it: the state, its edits or its findings had been seen before.
    pub is_dead_end: bool,
}
