//! Ends of a plan's steps: their errors, and the part that the session keeps. Pure.

use super::session::{StepsEnd, WorkEnd};
use super::types::PlanTask;
use crate::agent::AgentError;
use crate::agent::protocol::Fault;

/// Returns `true` if the step has failed, so that the work is summed up. Otherwise it can be resumed as it is.
pub fn are_over(error: &AgentError) -> bool {
    matches!(
        error,
        AgentError::StepFailed { .. }
            | AgentError::GateFailed { .. }
            | AgentError::Rejected { .. }
            | AgentError::NotUnderstood { .. }
    )
}

/// The end of the steps, for the session.
pub fn end_of(executed: &Result<(), AgentError>) -> StepsEnd {
    let (end, why) = match executed {
        Ok(()) => (WorkEnd::Done, String::new()),
        Err(AgentError::Rejected { question }) => (WorkEnd::Stopped, question.clone()),
        Err(AgentError::StepFailed { reason, .. }) => (WorkEnd::Failed, reason.clone()),
        Err(error) => (WorkEnd::Failed, error.to_string()),
    };
    StepsEnd { end, why }
}

/// The error of a step that has failed for this reason.
pub fn step_failed(task: &PlanTask, reason: String) -> AgentError {
    AgentError::StepFailed {
        step: task.step,
        reason,
    }
}

/// The error of a reply that is not of its stage's form.
pub fn not_understood(problem: String) -> AgentError {
    AgentError::NotUnderstood {
        tries: 1,
        fault: Fault::of_all(problem),
    }
}
