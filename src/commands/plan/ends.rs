//! Outcomes of a plan's steps: their errors, and the form in which the session saves them. Pure.

use super::error::PlanError;
use super::session::{StepsEnd, WorkEnd};
use super::types::PlanTask;
use crate::agent::AgentError;
use crate::agent::protocol::Fault;

/// Returns `true` if the error is final, so that the work is summed up. After any other error, the step can be resumed.
pub fn are_over(error: &AgentError) -> bool {
    let is_own = error.host::<PlanError>().is_some();
    is_own
        || matches!(
            error,
            AgentError::Rejected(_) | AgentError::NotUnderstood { .. }
        )
}

/// Converts the outcome of the steps for the session.
pub fn end_of(executed: &Result<(), AgentError>) -> StepsEnd {
    let (end, why) = match executed {
        Ok(()) => (WorkEnd::Done, String::new()),
        Err(AgentError::Rejected(question)) => (WorkEnd::Stopped, question.clone()),
        Err(error) => match error.host() {
            Some(PlanError::StepFailed { reason, .. }) => (WorkEnd::Failed, reason.clone()),
            _ => (WorkEnd::Failed, error.to_string()),
        },
    };
    StepsEnd { end, why }
}

/// Returns the error for a step that failed for this reason.
pub fn step_failed(task: &PlanTask, reason: String) -> AgentError {
    let step = task.step;
    PlanError::StepFailed { step, reason }.into()
}

/// Returns the error for a reply that is not in the format of its stage.
pub fn not_understood(problem: String) -> AgentError {
    AgentError::NotUnderstood {
        tries: 1,
        fault: Fault::of_all(problem),
    }
}
