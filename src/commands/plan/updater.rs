//! Changes to the plan that the model requests through its tools, and the ticking of criteria.
//!
//! Criteria are identified by their descriptions, and never ticked after a failure. A criterion with a command is
//! ticked only because of that command's result.

use serde_json::json;

use super::criteria::{add_open, objection, set_completed};
use super::plan_tools::{PlanUpdate, PlanUpdater};
use super::stages::Stages;
use super::tools::SHELL_TOOL;
use super::types::PlanDecision;
use crate::agent::AgentError;
use crate::agent::permissions::Permission;
use crate::agent::tool::ToolError;
use crate::model::message::Call;

impl PlanUpdater for Stages<'_, '_, '_> {
    fn update(&self, update: PlanUpdate) -> Result<String, ToolError> {
        let mut message = "Plan updated".to_owned();
        self.change(|plan| {
            if let Some(goal) = update.goal {
                plan.goal = goal;
            }
            let known = plan.acceptance_criteria.clone();
            let written = update.acceptance_criteria.iter();
            add_open(plan, written.map(|written| &written.description));
            // Claims made during a step take effect when the step is done.
            let written = update.acceptance_criteria.into_iter();
            for written in written.filter(|written| written.completed) {
                let description = &written.description;
                if !known.iter().any(|criterion| criterion.is(description)) {
                    message += &format!(
                        "; `{description}` is added, and still open: no call both adds and completes a criterion"
                    );
                    continue;
                }
                if let Some(objection) = objection(&known, &written) {
                    message += &format!("; {objection}");
                    continue;
                }
                message += &format!("; `{description}` is ticked when the step is done");
                self.claimed.borrow_mut().push(written);
            }
            plan.decisions_made
                .extend(self.decided(update.decisions_made));
            plan.decisions_rejected
                .extend(self.decided(update.decisions_rejected));
        })?;
        Ok(message)
    }
}

impl Stages<'_, '_, '_> {
    /// Stamps decisions with the current time.
    pub fn decided(&self, mut decisions: Vec<PlanDecision>) -> Vec<PlanDecision> {
        let now = self.context.clock.now().timestamp_millis();
        for decision in &mut decisions {
            decision.timestamp = now;
        }
        decisions
    }

    /// Runs the commands of the criteria that have one. A criterion is met if its command exits with code 0.
    ///
    /// # Errors
    /// Fails if a fatal error ends the run, or the plan cannot be changed.
    pub fn check_criteria(&self) -> Result<(), AgentError> {
        for criterion in self.read()?.plan().acceptance_criteria {
            let Some(command) = criterion.check() else {
                continue;
            };
            let description = &criterion.description;
            let subject = format!("`{command}`, by which `{description}` is checked,");
            let Some(checked) = self.check(command)? else {
                let note = self.refusal_note();
                self.run.warn(format!("{subject} was not run{note}"));
                continue;
            };
            if let Err(failure) = &checked {
                let folder = self.run.with(|run| run.log.name().to_owned());
                self.run.warn(format!(
                    "{subject} has failed ({failure}): its output is in `{folder}`"
                ));
            }
            self.change(|plan| set_completed(plan, description, checked.is_ok()))?;
        }
        Ok(())
    }

    /// Runs the command of a criterion, and describes its failure if it does not exit with code 0; `None` if it may not
    /// run.
    fn check(&self, command: &str) -> Result<Option<Result<(), String>>, AgentError> {
        self.lacks_consent.set(false);
        let tools = self.tools();
        let call = Call {
            id: "check".to_owned(),
            name: SHELL_TOOL.to_owned(),
            input: json!({"command": command}),
            ..Call::default()
        };
        let Ok((tool, call)) = tools.resolve(&call) else {
            return Ok(None);
        };
        let is_allowed = match self.permitted(|permissions| permissions.decide(&call)) {
            Permission::Allowed => true,
            Permission::Refused(_) => false,
            Permission::Ask(question) => match self.run.asks(&question.sentence) {
                Err(AgentError::Rejected(_)) => false,
                asked => asked?,
            },
        };
        if !is_allowed {
            return Ok(None);
        }
        match tool.run(&call.arguments) {
            Ok(output) if output.command.code() == Some(0) => Ok(Some(Ok(()))),
            Ok(output) => Ok(Some(Err(output.brief.unwrap_or_default()))),
            Err(ToolError::Failed(failure)) => Ok(Some(Err(failure.message))),
            Err(ToolError::Fatal(error)) => Err(error),
        }
    }
}
