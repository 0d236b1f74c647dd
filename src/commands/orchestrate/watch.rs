//! Hears how the agents get on: shows it, and keeps the branches in the run's folder, so that a run that is killed
//! still tells where it was.

use std::cell::Cell;
use std::time::Duration;

use super::lineage::BranchTracker;
use super::specialists::{BranchWait, Watcher};
use crate::agent::AgentError;
use crate::commands::agent_run::AgentRun;
use crate::commands::mcp_server::ExchangeLog;
use crate::record::event::Event;
use crate::record::orchestration::Lineage;
use crate::record::run_files::LINEAGE;
use crate::run::context::Context;
use crate::sys::interrupt::Interrupted;

/// Shows an orchestration's progress, and keeps its branches.
pub struct RunWatcher<'w, 'c> {
    pub run: &'w AgentRun<'c>,
    pub context: &'w Context<'w>,
    pub exchanges: &'w ExchangeLog<'c>,
    /// True in a replay: all that is waited for has happened already.
    pub is_replay: bool,
    /// True if a branch was waited for when the lineage changed last.
    pub was_waiting: Cell<bool>,
}

impl RunWatcher<'_, '_> {
    /// Reports that the branch waited for last is done.
    fn tell_end(&self, lineage: &BranchTracker) {
        let is_waiting = lineage.waiting().is_some();
        if self.was_waiting.replace(is_waiting)
            && !is_waiting
            && let Some(branch) = lineage.records.last()
        {
            self.context.reporter.event(&Event::BranchEnded {
                agent: branch.agent.clone(),
                branch: branch.id.clone(),
                status: branch.status.clone(),
                took: branch.seconds.0,
            });
        }
    }
}

impl Watcher for RunWatcher<'_, '_> {
    fn waiting(&self, waiting: &BranchWait<'_>) {
        self.context.reporter.event(&Event::Waiting {
            agent: waiting.agent.name().to_owned(),
            branch: waiting.branch.to_owned(),
            status: waiting.status.to_owned(),
            waited: waiting.waited,
        });
    }

    fn changed(&self, lineage: &BranchTracker) -> Result<(), AgentError> {
        self.tell_end(lineage);
        self.exchanges.check()?;
        let latest = Lineage::from(lineage);
        let logged = self.run.with(|run| run.log.json(LINEAGE, &latest));
        Ok(logged.map_err(crate::sys::error::Error::from)?)
    }

    fn sleep(&self, duration: Duration) -> Result<(), Interrupted> {
        if self.is_replay {
            return self.context.interrupt.check();
        }
        self.context.interrupt.sleep(duration)
    }
}
