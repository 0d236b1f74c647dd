//! Changes to the plan: those that the model asks for by its tools, and the ticks of criteria.
//!
//! A criterion is ticked by its description, never after a failure; one with a command is ticked by that alone.

use serde_json::json;

use super::stages::Stages;
use crate::agent::AgentError;
use crate::agent::permissions::Permission;
use crate::agent::tool::{Arguments, Tool as _, ToolError, ToolOutput};
use crate::commands::plan::criteria::{add_open, objection, set_completed};
use crate::commands::plan::forms::WrittenDecision;
use crate::commands::plan::plan_tools::{PlanKeeper, PlanUpdate};
use crate::commands::plan::tools::SHELL_TOOL;
use crate::commands::plan::types::{Plan, PlanDecision};
use crate::model::message::Call;

impl PlanKeeper for Stages<'_, '_, '_> {
    fn initialize(&self, goal: &str, criteria: &[String]) -> Result<String, ToolError> {
        self.change(|plan| {
            goal.clone_into(&mut plan.goal);
            add_open(plan, criteria);
        })?;
        Ok(format!(
            "Plan initialized with {} acceptance criteria",
            criteria.len()
        ))
    }

    fn update(&self, update: PlanUpdate) -> Result<String, ToolError> {
        let mut told = "Plan updated".to_owned();
        self.change(|plan| {
            if let Some(goal) = update.goal {
                plan.goal = goal;
            }
            let known = plan.acceptance_criteria.clone();
            let written = update.acceptance_criteria.iter();
            let descriptions: Vec<_> = written.map(|written| written.description.clone()).collect();
            add_open(plan, &descriptions);
            // What the step is said to have reached holds when the step is done.
            for written in update.acceptance_criteria {
                if !written.completed {
                    continue;
                }
                // What it has just brought itself, a model does not tick with the same words.
                if let Some(objection) = objection(&known, &written) {
                    told += &format!("; {objection}");
                    continue;
                }
                told += &format!(
                    "; `{}` is ticked when the step is done",
                    written.description
                );
                self.claimed.borrow_mut().push(written);
            }
            self.decide(plan, &update.decisions_made, &update.decisions_rejected);
        })?;
        Ok(told)
    }
}

impl Stages<'_, '_, '_> {
    /// Notes decisions, as of now.
    pub fn decide(&self, plan: &mut Plan, made: &[WrittenDecision], rejected: &[WrittenDecision]) {
        let timestamp = self.context.clock.now().timestamp_millis();
        let decision = |written: &WrittenDecision| PlanDecision {
            title: written.title.clone(),
            rationale: written.rationale.clone(),
            alternatives: written.alternatives.clone(),
            timestamp,
        };
        plan.decisions_made.extend(made.iter().map(decision));
        plan.decisions_rejected
            .extend(rejected.iter().map(decision));
    }

    /// Runs the commands of the criteria that have one, and ticks those whose command ends with 0.
    ///
    /// # Errors
    /// If the run is over, or the plan cannot be changed.
    pub fn check_criteria(&self) -> Result<(), AgentError> {
        let criteria = self.read()?.plan().acceptance_criteria;
        for criterion in criteria {
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
                Err(AgentError::Rejected { .. }) => Ok(false),
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
