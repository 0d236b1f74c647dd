//! Errors that end a plan's step. Pure.

use crate::agent::AgentError;
use crate::sys::error::Error;

/// Errors that end a plan's step.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum PlanError {
    /// The build fails after a step.
    #[error("step {step} has failed: `build.sh` still fails: {status}")]
    #[diagnostic(
        code("build-failed"),
        help("see the build's log, `{log}`; `--resume` continues the step")
    )]
    GateFailed {
        /// The step's number.
        step: usize,
        /// The status of the last build.
        status: String,
        /// The file with the build output, relative to the root.
        log: String,
    },
    /// A step has failed.
    #[error("step {step} has failed: {reason}")]
    #[diagnostic(
        code("step-failed"),
        help("read the step's replies in the run's folder, edit the plan, and `--resume`")
    )]
    StepFailed { step: usize, reason: String },
}

impl From<PlanError> for AgentError {
    fn from(error: PlanError) -> Self {
        Self::Host(Error::from(error))
    }
}
