//! Errors that end an orchestration. Pure.

use std::time::Duration;

use crate::agent::AgentError;
use crate::sys::error::Error;
use crate::sys::numbers::counted;

/// Errors that end an orchestration.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum OrchestrateError {
    /// The limit on reviews is reached, and another agent would have to be started.
    #[error("the iteration limit is reached: {} came back, and the work was not signed off", counted((*.0).into(), "review"))]
    #[diagnostic(
        code("iteration-limit"),
        help("read the last review's log; run again from the last branch, or finish by hand")
    )]
    IterationLimit(u32),
    /// An agent on a branch did not finish in time.
    #[error("`{agent}` has not ended within {} on branch `{branch}`", counted(.waited.as_secs(), "second"))]
    #[diagnostic(
        code("branch-timeout"),
        help(
            "the agent may still be at work: look at the branch, or raise `MCP_POLL_TIMEOUT_SECONDS`"
        )
    )]
    BranchTimeout {
        /// The id of the branch on which the agent may still be working.
        branch: String,
        /// The agent that was started on the branch.
        agent: &'static str,
        /// The time waited.
        waited: Duration,
    },
    /// Publishing failed, or its destination is unknown; holds the reason.
    #[error("the work was not published: {0}")]
    #[diagnostic(
        code("publish-failed"),
        help("let `GITHUB_TOKEN` push, and run again from the last branch, or publish it by hand")
    )]
    PublishFailed(String),
    /// The work was not published because no review has passed it; says what is missing.
    #[error("the work was not published: {0}")]
    #[diagnostic(
        code("publish-failed"),
        help("have it fixed and reviewed first: `--resume` continues the run")
    )]
    NotReviewed(String),
    /// An earlier run may have started the agent that publishes the work, on a branch that is not known.
    #[error(
        "the work may already be published: an earlier run was starting the agent that publishes it"
    )]
    #[diagnostic(
        code("publish-failed"),
        help(
            "look at the project on the server; if nothing is published, `--publish-only` publishes the work"
        )
    )]
    MayBePublished,
}

impl From<OrchestrateError> for AgentError {
    fn from(error: OrchestrateError) -> Self {
        Self::Host(Error::from(error))
    }
}
