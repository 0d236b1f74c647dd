//! Hears how the agents get on: shows it, and keeps the branches in the run's folder, so that a run that is killed still
//! tells where it was.

use std::time::Duration;

use crate::agent::AgentError;
use crate::agent::orchestrate::lineage::BranchTracker;
use crate::agent::orchestrate::specialists::{BranchWait, Watcher};
use crate::record::orchestration::Lineage;
use crate::record::run_files::LINEAGE;
use crate::sys::interrupt::Interrupted;
use crate::ui::Event;
use crate::workflow::agent_run::AgentRun;
use crate::workflow::run::context::Context;

/// Who hears it.
pub struct RunWatcher<'w> {
    /// The run.
    pub run: &'w AgentRun<'w>,
    /// Its surroundings.
    pub context: &'w Context<'w>,
    /// Whether all that is waited for has happened already.
    pub is_replay: bool,
}

impl Watcher for RunWatcher<'_> {
    fn waiting(&self, waiting: &BranchWait<'_>) {
        self.context.reporter.event(&Event::Waiting {
            agent: waiting.agent.name().to_owned(),
            branch: waiting.branch.to_owned(),
            status: waiting.status.to_owned(),
            waited: waiting.waited,
        });
    }

    fn changed(&self, lineage: &BranchTracker) -> Result<(), AgentError> {
        let range = lineage.range();
        let waiting = lineage.waiting();
        let latest = Lineage {
            start_branch_id: range.start,
            latest_branch_id: range.latest,
            waiting_for: waiting.map(|branch| branch.id.clone()),
            iterations: lineage.reviews(),
            branches: lineage.records().to_vec(),
        };
        Ok(self.run.log_json(LINEAGE, &latest)?)
    }

    fn sleep(&self, duration: Duration) -> Result<(), Interrupted> {
        let duration = if self.is_replay { Duration::ZERO } else { duration };
        self.context.interrupt.sleep(duration)
    }
}
