//! The part of a run's story that is an orchestration's own: its branches, its publishing, and its end.

use serde_json::Value;

use super::Story;
use crate::record::orchestration::{OrchestrationRecord, OrchestrationSettings, ReviewVerdict};
use crate::record::step::Action;
use crate::run::past::history::{PastRun, PastStep};
use crate::sys::numbers::counted;

impl Story {
    /// Adds the branch and the project that it began from.
    pub(crate) fn started_from(&mut self, settings: &OrchestrationSettings) {
        self.line(&format!(
            "It began from branch {} of the project {}.",
            settings.parent_branch_id, settings.project_name
        ));
    }

    /// A step that no model was asked for.
    pub(crate) fn own_step(&mut self, past: &PastStep) {
        let actions = &past.step.actions;
        for action in actions {
            self.action(action);
        }
        if actions.is_empty() {
            self.line("  It did not come to its end.");
        }
    }

    /// An agent's work, which names its branch.
    pub(crate) fn execution(&mut self, action: &Action) {
        self.line(&format!("  {} {}:", action.tool, argument(action, "agent")));
        let result = action.result.as_deref().unwrap_or_default();
        if action.failed {
            self.end_of(result);
        } else {
            self.beginning_of(result, "    ");
        }
    }

    /// A file that was read: of a review's log, the first line is the verdict.
    pub(crate) fn artifact(&mut self, action: &Action) {
        let path = argument(action, "path");
        let result = action.result.as_deref().unwrap_or_default();
        let first = super::first_of(result);
        self.line(&format!("  {} {path}: {first}", action.tool));
    }

    /// The branches that were made; and where a run was that has no record.
    pub(crate) fn branches(&mut self, run: &PastRun) {
        let Some(lineage) = run.lineage() else {
            return;
        };
        self.line("\nThe branches:");
        for branch in &lineage.branches {
            let status = match &*branch.status {
                "" => "not heard of",
                status => status,
            };
            let verdict = branch.verdict.map(ReviewVerdict::word);
            let verdict = verdict.map(|word| format!(", VERDICT: {word}"));
            self.line(&format!(
                "  {} from {}: {}, {status}, {:.1}s{}",
                branch.id,
                branch.parent,
                branch.agent,
                branch.seconds.0.as_secs_f64(),
                verdict.unwrap_or_default()
            ));
        }
        if run.record.is_some() {
            return;
        }
        if let Some(agent) = &lineage.starting {
            self.line(&format!(
                "{agent} was being started, on a branch that is not known."
            ));
        }
        if let Some(waiting) = &lineage.waiting_for {
            self.line(&format!(
                "It was waiting for branch {waiting}, which may go on remotely."
            ));
        }
        self.line(&format!(
            "It began from branch {}; the last one that succeeded is {}, after {}.",
            lineage.start_branch_id,
            lineage.latest_branch_id,
            counted(lineage.iterations.into(), "review")
        ));
    }

    /// Adds the final report and the next steps.
    pub(crate) fn report(&mut self, report: &OrchestrationRecord) {
        self.line(&format!(
            "\n{}, after {}; the latest branch is {}.",
            report.status.word(),
            counted(report.iterations.into(), "review"),
            report.latest_branch_id
        ));
        self.beginning_of(&report.summary, "  ");
        let published = report.publish_pantheon_branch_id.as_ref();
        if let (Some(branch), Some(words)) = (published, &report.publish_report) {
            self.line(&format!("It was published from branch {branch}:"));
            self.beginning_of(words, "    ");
        }
        if let Some(error) = &report.publish_error {
            self.line(&format!("It was not published: {error}"));
        }
        self.line("What to do now:");
        self.beginning_of(&report.instructions, "    ");
    }
}

/// A text that a tool was given.
fn argument<'a>(action: &'a Action, name: &str) -> &'a str {
    let given = action.input.as_ref().and_then(|input| input.get(name));
    given.and_then(Value::as_str).unwrap_or_default()
}
