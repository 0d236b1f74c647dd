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
use crate::agent::tool::{Arguments, Tool as _, ToolError, ToolOutput};
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
                // Only existing criteria count: a model must not add and tick one in the same call.
                if let Some(objection) = objection(&known, &written) {
                    message += &format!("; {objection}");
                    continue;
                }
                let description = &written.description;
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
            if !self.may_check(command)? {
                self.run.warn(format!(
                    "`{command}`, by which `{}` is checked, was not run",
                    criterion.description
                ));
                continue;
            }
            let holds = self.holds(command)?;
            self.change(|plan| set_completed(plan, &criterion.description, holds))?;
        }
        Ok(())
    }

    fn may_check(&self, command: &str) -> Result<bool, AgentError> {
        let tools = self.tools();
        let call = Call {
            id: "check".to_owned(),
            name: SHELL_TOOL.to_owned(),
            input: json!({"command": command}),
            ..Call::default()
        };
        let Ok((_, call)) = tools.resolve(&call) else {
            return Ok(false);
        };
        match self.permitted(|permissions| permissions.decide(&call)) {
            Permission::Allowed => Ok(true),
            Permission::Refused(_) => Ok(false),
            Permission::Ask(question) => match self.run.asks(&question.sentence) {
                Err(AgentError::Rejected(_)) => Ok(false),
                asked => asked,
            },
        }
    }

    fn holds(&self, command: &str) -> Result<bool, AgentError> {
        let mut arguments = Arguments::default();
        arguments.set("command", command);
        match self.command().run(&arguments) {
            Ok(ToolOutput { command, .. }) => Ok(command.code() == Some(0)),
            Err(ToolError::Failed(_)) => Ok(false),
            Err(ToolError::Fatal(error)) => Err(error),
        }
    }
}
