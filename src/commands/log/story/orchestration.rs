//! The parts of a run's log specific to an orchestration: its branches, publishing and end.

use serde_json::Value;

use super::Story;
use crate::record::orchestration::{OrchestrationRecord, OrchestrationSettings, ReviewVerdict};
use crate::record::step::Action;
use crate::run::past::history::PastRun;
use crate::sys::numbers::counted;

impl Story {
    /// Adds the branch and the project that the run started from.
    pub(super) fn started_from(&mut self, settings: &OrchestrationSettings) {
        let (branch, project) = (&settings.parent_branch_id, &settings.project_name);
        self.line(format!(
            "It began from branch {branch} of the project {project}."
        ));
    }

    /// Adds an agent's work, with its branch.
    pub(super) fn execution(&mut self, action: &Action) {
        self.line(format!("  {} {}:", action.tool, argument(action, "agent")));
        let result = action.result.as_deref().unwrap_or_default();
        if action.failed {
            self.end_of(result);
        } else {
            self.beginning_of(result, "    ");
        }
    }

    /// Adds a file that was read; the first line of a review's log is the verdict.
    pub(super) fn artifact(&mut self, action: &Action) {
        let path = argument(action, "path");
        let first = super::first_of(action.result.as_deref().unwrap_or_default());
        self.line(format!("  {} {path}: {first}", action.tool));
    }

    /// Adds the branches created and, for a run without a record, the point it had reached.
    pub(super) fn branches(&mut self, run: &PastRun) {
        let Some(lineage) = run.lineage() else {
            return;
        };
        self.line("\nThe branches:");
        for branch in &lineage.branches {
            let status = match &*branch.status {
                "" => "not heard of",
                status => status,
            };
            let (id, parent, agent) = (&branch.id, &branch.parent, &branch.agent);
            let verdict = branch.verdict.map(ReviewVerdict::word);
            let verdict = verdict.map(|word| format!(", VERDICT: {word}"));
            let (seconds, verdict) = (branch.seconds, verdict.unwrap_or_default());
            self.line(format!(
                "  {id} from {parent}: {agent}, {status}, {seconds}s{verdict}"
            ));
        }
        if run.record.is_some() {
            return;
        }
        if let Some(agent) = &lineage.starting {
            self.line(format!(
                "{agent} was being started, on a branch that is not known."
            ));
        }
        if let Some(waiting) = &lineage.waiting_for {
            self.line(format!(
                "It was waiting for branch {waiting}, which may go on remotely."
            ));
        }
        self.line(format!(
            "It began from branch {}; the last one that succeeded is {}, after {}.",
            lineage.start_branch_id,
            lineage.latest_branch_id,
            counted(lineage.iterations.into(), "review")
        ));
    }

    /// Adds the final report and the next steps.
    pub(super) fn report(&mut self, report: &OrchestrationRecord) {
        let (status, latest) = (report.status.word(), &report.latest_branch_id);
        let reviews = counted(report.iterations.into(), "review");
        self.line(format!(
            "\n{status}, after {reviews}; the latest branch is {latest}."
        ));
        self.beginning_of(&report.summary, "  ");
        let published = report.publish_pantheon_branch_id.as_ref();
        if let (Some(branch), Some(words)) = (published, &report.publish_report) {
            self.line(format!("It was published from branch {branch}:"));
            self.beginning_of(words, "    ");
        }
        self.lines("It was not published: ", report.publish_error.as_deref());
        self.line("What to do now:");
        self.beginning_of(&report.instructions, "    ");
    }
}

/// Returns a text argument of a tool; empty if it is missing.
fn argument<'a>(action: &'a Action, name: &str) -> &'a str {
    let given = action.input.as_ref().and_then(|input| input.get(name));
    given.and_then(Value::as_str).unwrap_or_default()
}
