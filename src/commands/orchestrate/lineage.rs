//! The branches of an orchestration, and the one from which the work continues. Pure.
//!
//! Guarantees that only the last branch that succeeded is cloned, so that the work forms a single line from the start
//! branch.

use std::time::Duration;

use super::branches::Specialist;
use crate::agent::tool::CallFailure;
use crate::record::branches::{BranchRecord, Lineage, ReviewVerdict};
use crate::record::seconds::Seconds;
use crate::sys::text::one_line;

/// The maximum length of an unknown branch's id in a message, in characters.
const SHOWN: usize = 80;

/// Tracks the branches of an orchestration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BranchTracker {
    /// The branches, in the form in which they are saved.
    pub record: Lineage,
    /// Branches that are no longer waited for, although their agents may still be working.
    left: Vec<String>,
}

impl BranchTracker {
    /// Creates a tracker for work that begins at this branch.
    pub fn new(start: &str) -> Self {
        Self {
            record: Lineage {
                start_branch_id: start.to_owned(),
                latest_branch_id: start.to_owned(),
                ..Lineage::default()
            },
            left: Vec::new(),
        }
    }

    /// Creates a tracker for work that an earlier run has begun.
    pub fn resumed(record: Lineage) -> Self {
        Self {
            record,
            left: Vec::new(),
        }
    }

    /// Returns the branch to clone next: the last one that succeeded, or the start branch.
    pub fn latest(&self) -> &str {
        &self.record.latest_branch_id
    }

    /// Returns the agent and the branch of the last run that succeeded.
    pub fn last_success(&self) -> Option<(Specialist, &str)> {
        let mut records = self.record.branches.iter();
        let record = records.find(|record| record.id == self.latest())?;
        Some((record.agent.parse().ok()?, &record.id))
    }

    /// Returns the agent that is being waited for, and the record of its branch.
    pub fn waiting(&self) -> Option<(Specialist, BranchRecord)> {
        let last = self.record.branches.last();
        let last = last.filter(|last| self.record.waiting_for.as_ref() == Some(&last.id))?;
        Some((last.agent.parse().ok()?, last.clone()))
    }

    /// Returns the agent that is being waited for, if it publishes the work, and the record of its branch.
    pub fn publishing(&self) -> Option<(Specialist, BranchRecord)> {
        self.waiting().filter(|_| self.record.publishes)
    }

    /// Checks that a branch may be cloned; a blank id stands for the only one that may be.
    ///
    /// # Errors
    /// Fails if the branch may not be cloned. The error names the one that may be.
    pub fn check_parent(&self, branch: &str) -> Result<(), CallFailure> {
        let (branch, latest) = (branch.trim(), self.latest());
        if branch.is_empty() || branch == latest {
            return Ok(());
        }
        Err(CallFailure::new(
            "wrong_parent",
            format!(
                "`{}` cannot be cloned: the work goes on from the last branch that succeeded, `{latest}`",
                one_line(branch, SHOWN)
            ),
            format!("give `parent_branch_id` as `{latest}`, or leave it out"),
        ))
    }

    /// Returns `true` if a branch belongs to this work.
    pub fn has(&self, branch: &str) -> bool {
        let mut records = self.record.branches.iter();
        self.record.start_branch_id == branch || records.any(|record| record.id == branch)
    }

    /// Records that an agent, which may be about to publish the work, is being started.
    pub fn starting(&mut self, agent: Specialist, publishes: bool) {
        self.record.starting = Some(agent.into_str().to_owned());
        self.record.publishes = publishes;
    }

    /// Records that an agent was started on a new branch and is being waited for.
    pub fn started(&mut self, id: &str, parent: &str, agent: Specialist) {
        self.left
            .extend(self.record.waiting_for.replace(id.to_owned()));
        self.record.branches.push(BranchRecord {
            id: id.to_owned(),
            parent: parent.to_owned(),
            agent: agent.into_str().to_owned(),
            status: String::new(),
            seconds: Seconds::default(),
            verdict: None,
        });
    }

    /// Records the status of the current branch, and the time spent waiting for it.
    pub fn seen(&mut self, status: &str, waited: Duration) {
        if let Some(record) = self.record.branches.last_mut() {
            status.clone_into(&mut record.status);
            record.seconds = Seconds(waited);
        }
    }

    /// Records that the current agent has succeeded or failed.
    pub fn ended(&mut self) {
        self.record.waiting_for = None;
    }

    /// Records that the last agent started has succeeded, so that the work continues from its branch. A success of the
    /// reviewer counts as a review.
    pub fn succeeded(&mut self) {
        if let Some(last) = self.record.branches.last() {
            self.record.latest_branch_id.clone_from(&last.id);
            self.record.iterations += u32::from(last.agent == Specialist::Codex.into_str());
        }
    }

    /// Records the verdict of a review on this branch; returns `true` if it is new.
    pub fn reviewed(&mut self, branch: &str, verdict: ReviewVerdict) -> bool {
        let mut records = self.record.branches.iter_mut();
        let reviewer = Specialist::Codex.into_str();
        let record = records.find(|record| record.id == branch && record.agent == reviewer);
        record.is_some_and(|record| record.verdict.replace(verdict) != Some(verdict))
    }

    /// Returns the branches whose agents may still be working.
    pub fn working(&self) -> impl Iterator<Item = &str> {
        let branches = self.left.iter().chain(&self.record.waiting_for);
        branches.map(|branch| &**branch)
    }
}

#[cfg(test)]
mod tests {
    use super::Specialist::{ClaudeCode, Codex};
    use super::*;

    #[test]
    fn the_work_continues_from_the_last_branch_that_succeeded() {
        let mut tracker = BranchTracker::new("b0");
        assert_eq!((tracker.latest(), tracker.last_success()), ("b0", None));
        for (id, agent, succeeds, latest, reviews) in [
            ("b1", ClaudeCode, true, "b1", 0),
            ("b2", Codex, false, "b1", 0),
            ("b3", Codex, true, "b3", 1),
            ("b4", ClaudeCode, false, "b3", 1),
        ] {
            let parent = tracker.latest().to_owned();
            tracker.started(id, &parent, agent);
            assert_eq!(tracker.record.waiting_for.as_deref(), Some(id));
            tracker.seen("running", Duration::from_secs(3));
            tracker.ended();
            if succeeds {
                tracker.succeeded();
            }
            assert_eq!(tracker.record.waiting_for, None);
            assert_eq!(
                (tracker.latest(), tracker.record.iterations),
                (latest, reviews)
            );
        }
        assert_eq!(tracker.last_success(), Some((Codex, "b3")));
        assert_eq!(
            (&*tracker.record.start_branch_id, tracker.latest()),
            ("b0", "b3")
        );
        tracker.started("b5", "b3", Codex);
        let lineage = serde_json::to_value(&tracker.record).unwrap();
        let waiting = (&lineage["waiting_for"], &lineage["latest_branch_id"]);
        assert_eq!(waiting, (&"b5".into(), &"b3".into()));
        // The agent takes too long, so the last completed work is published.
        tracker.started("b6", "b3", ClaudeCode);
        assert!(tracker.working().eq(["b5", "b6"]));
        tracker.ended();
        assert!(tracker.working().eq(["b5"]));
        assert_eq!(tracker.record.waiting_for, None);
        let last = &tracker.record.branches[3];
        assert_eq!(
            serde_json::to_value(last).unwrap(),
            serde_json::json!({"id": "b4", "parent": "b3", "agent": "claude_code", "status": "running", "seconds": 3.0})
        );
    }

    #[test]
    fn only_the_last_one_that_succeeded_may_be_cloned() {
        let mut tracker = BranchTracker::new("b0");
        for (id, succeeds) in [("b1", true), ("b2", true), ("b3", false)] {
            tracker.started(id, "", ClaudeCode);
            if succeeds {
                tracker.succeeded();
            }
        }
        for may_be in ["b2", "", " ", " b2\n"] {
            assert_eq!(tracker.check_parent(may_be), Ok(()), "{may_be}");
        }
        for not in ["b0", "b1", "b3", "B2", "main"] {
            let failure = tracker.check_parent(not).unwrap_err();
            assert_eq!(failure.code, "wrong_parent");
            let expected = format!(
                "`{not}` cannot be cloned: the work goes on from the last branch that succeeded, `b2`"
            );
            assert_eq!(failure.message, expected);
            assert_eq!(
                failure.hint,
                "give `parent_branch_id` as `b2`, or leave it out"
            );
        }
        for (branch, expected) in [("b0", true), ("b3", true), ("b4", false)] {
            assert_eq!(tracker.has(branch), expected, "{branch}");
        }
    }

    #[test]
    fn a_verdict_is_that_of_a_review() {
        let mut tracker = BranchTracker::new("b0");
        tracker.started("b1", "b0", ClaudeCode);
        tracker.started("b2", "b1", Codex);
        for (branch, verdict, is_news) in [
            ("b0", ReviewVerdict::Clean, false),
            ("b1", ReviewVerdict::Clean, false),
            ("b2", ReviewVerdict::Issues, true),
            ("b2", ReviewVerdict::Issues, false),
        ] {
            assert_eq!(tracker.reviewed(branch, verdict), is_news, "{branch}");
        }
        let verdicts = tracker.record.branches.iter().map(|record| record.verdict);
        assert!(verdicts.eq([None, Some(ReviewVerdict::Issues)]));
    }
}
