//! The parallel attempts of a commit, and the choice of one. Plain data.

use serde::{Deserialize, Serialize};

use super::gate::GateChange;
use super::seconds::Seconds;
use super::step::{BuildRecord, Step};
use crate::model::price::Usd;

/// The error of an attempt that was stopped by `--first-pass`.
pub const ENDED: &str = "ended, since another one has passed";

/// The choice of an attempt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChoiceRecord {
    /// The attempts, in the order of their numbers.
    pub attempts: Vec<AttemptRecord>,
    /// The step whose state was taken; null if none was.
    pub taken: Option<String>,
    /// The reason; null if `taken` is.
    pub why: Option<String>,
}

impl ChoiceRecord {
    /// Forgets the choice, which has not reached the project.
    pub fn forget(&mut self) {
        (self.taken, self.why) = (None, None);
    }
}

/// An attempt and its proof.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// The step that made the attempt.
    pub step: String,
    /// The model that was asked.
    pub model: String,
    /// True if its build has passed.
    pub passed: bool,
    /// The attempt's effect on the gate; null if it was not built.
    pub gate: Option<GateChange>,
    /// The number of lines added and removed; null if it was not built.
    pub lines: Option<u64>,
    /// The number of findings in the build's output; null if it was not built.
    pub findings: Option<usize>,
    /// The cost of its calls; null if it is unknown.
    pub cost: Option<Usd>,
    /// The time from the first request to the end of the build.
    pub seconds: Seconds,
    /// The reason that it was not built; null if it was.
    pub error: Option<String>,
}

impl From<&Step> for AttemptRecord {
    /// Fills in the data that the step records.
    fn from(step: &Step) -> Self {
        let build = step.build.as_ref();
        let building = build.map(|build| build.seconds.0).unwrap_or_default();
        Self {
            step: step.id().to_string(),
            model: step.model.clone().unwrap_or_default(),
            passed: build.is_some_and(BuildRecord::passed),
            findings: build.map(|_| step.findings.len()),
            cost: step.cost,
            seconds: Seconds(step.seconds.0 + building),
            ..Self::default()
        }
    }
}
