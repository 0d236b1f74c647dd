//! Why an agent does not get to the end of its work.

use std::error::Error;
use std::time::Duration;

use super::mcp::McpError;
use crate::exec::process::ProcessError;
use crate::model::ModelError;
use crate::model::estimate::OverBudget;
use crate::sys::interrupt::Interrupted;
use crate::sys::numbers::{counted, grouped};

/// Why an agent did not get to the end of its work.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Its replies were not understood, or its tools failed, again and again; at last a reply.
    #[error("nothing went well {} in a row; the last reply was not understood: {fault}", counted((*.tries).into(), "time"))]
    NotUnderstood {
        /// How many failures there were, the last one included.
        tries: u32,
        /// What is wrong with the last one, and where.
        fault: Fault,
    },
    /// Its replies were not understood, or its tools failed, again and again; at last a tool.
    #[error("nothing went well {} in a row; at last `{tool}` failed: {problem}", counted((*.tries).into(), "time"))]
    ToolsFailed {
        /// How many failures there were, the last one included.
        tries: u32,
        /// The tool that failed last.
        tool: String,
        /// What the model was told.
        problem: String,
    },
    /// The audit has not passed the work, again and again.
    #[error("the audit has failed {}; the last one says: {feedback}", counted((*.audits).into(), "time"))]
    AuditFailed {
        /// How many audits there were, the last one included.
        audits: u32,
        /// What it says.
        feedback: String,
    },
    /// The model was asked as often as it may be.
    #[error("the loop limit is reached: {} to the model", counted((*.loops).into(), "call"))]
    LoopLimit {
        /// How many calls were made, which is how many were allowed.
        loops: u32,
    },
    /// The conversation is too long, and a summary of it is not shorter.
    #[error(
        "the conversation has {before} tokens, of {limit} that it may have, and the summary of it would \
         make it {after}"
    )]
    NotCompressed {
        /// The tokens it has, about.
        before: u64,
        /// The tokens it would have.
        after: u64,
        /// The tokens it may have.
        limit: u64,
    },
    /// A prompt is too long for the model, however much is left out of it.
    #[error(
        "the prompt has about {} tokens, and the model takes {}",
        grouped(*.tokens),
        grouped(*.window)
    )]
    TooLong {
        /// What is left of it, in tokens.
        tokens: u64,
        /// How many tokens a prompt may have.
        window: u64,
        /// A model that takes more.
        larger: Option<String>,
        /// Whether nothing was sent before.
        is_at_once: bool,
    },
    /// The user has said no.
    #[error("User rejected: {question}")]
    Rejected {
        /// What was asked.
        question: String,
    },
    /// What a step of a plan has changed does not build.
    #[error("step {step} has failed: `build.sh` still fails: {status}")]
    GateFailed {
        /// The step's number.
        step: usize,
        /// How the last build ended.
        status: String,
        /// The file with its output, relative to the root.
        log: String,
    },
    /// A step of a plan has failed.
    #[error("step {step} has failed: {reason}")]
    StepFailed {
        /// Its number.
        step: usize,
        /// Why.
        reason: String,
    },
    /// As many reviews came back as may, and another agent was to be started.
    #[error("the iteration limit is reached: {} came back, and the work was not signed off", counted((*.reviews).into(), "review"))]
    IterationLimit {
        /// How many reviews came back, which is how many may.
        reviews: u32,
    },
    /// An agent on a branch took too long.
    #[error("`{agent}` has not ended within {} on branch `{branch}`", counted(.waited.as_secs(), "second"))]
    BranchTimeout {
        /// The branch's id; the agent works on there.
        branch: String,
        /// The agent.
        agent: &'static str,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The work was to be published, and was not, or nobody knows where.
    #[error("the work was not published: {reason}")]
    PublishFailed {
        /// Why.
        reason: String,
    },
    /// A signal came, or somebody has asked for a stop.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// The next call may cost more than is left.
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    /// There is no whole reply.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// An MCP server gives no result.
    #[error(transparent)]
    Mcp(McpError),
    /// A command could not be watched.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// What surrounds the agent has failed, for reasons of its own.
    #[error(transparent)]
    Host(Box<dyn Error + Send + Sync>),
}

impl From<McpError> for AgentError {
    /// A signal is one wherever it was heard.
    fn from(error: McpError) -> Self {
        match error {
            McpError::Interrupted(interrupted) => Self::Interrupted(interrupted),
            error => Self::Mcp(error),
        }
    }
}

impl AgentError {
    /// What the user can do about it; `None` where what has failed says so itself.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NotUnderstood { .. } => {
                "another model may keep to the form better; the replies are in the run's folder"
            }
            Self::ToolsFailed { .. } => {
                "read the last steps in the run's folder; `--resume` goes on with the session"
            }
            Self::AuditFailed { .. } => {
                "read the audit's findings; `--resume` with a further request goes on with the session"
            }
            Self::LoopLimit { .. } => {
                "`--resume` goes on with the session; `maxLoops` in the configuration sets the limit"
            }
            Self::OverBudget(OverBudget::Unpriced { .. }) => {
                "give the model that answers an entry with a `price` in `agent-config/models.json`; `--resume` goes \
                 on with the session"
            }
            Self::OverBudget(OverBudget::TooLittle { .. }) => {
                "give it more with `--max-cost`; `--resume` goes on with the session"
            }
            Self::Interrupted(_) => "`--resume` goes on with the session",
            Self::NotCompressed { .. } => {
                "the session is kept as it is: give `maxContextTokens` in the configuration a larger \
                 value, if the model takes that, or begin a new session"
            }
            Self::TooLong { larger: None, .. } => {
                "the plan, the task or the results are too long: shorten what is asked for, or ask a model with a larger window"
            }
            Self::TooLong {
                larger: Some(larger),
                ..
            } => return Some(format!("`--model {larger}` asks one with a larger window")),
            Self::Rejected { .. } => {
                "change the plan, or what is asked for; `--resume` goes on with the session"
            }
            Self::GateFailed { log, .. } => {
                return Some(format!(
                    "see the build's log, `{log}`; `--resume` goes on with the step"
                ));
            }
            Self::StepFailed { .. } => {
                "read the step's replies in the run's folder; edit the plan, and `--resume` goes on with it"
            }
            Self::IterationLimit { .. } => {
                "read the last review's log; run again from the last branch, or finish the work by hand"
            }
            Self::BranchTimeout { .. } => {
                "the agent may still be at work: look at the branch; `MCP_POLL_TIMEOUT_SECONDS` sets how long one may take"
            }
            Self::PublishFailed { .. } => {
                "publish the last branch by hand, or run again from it; see that `GITHUB_TOKEN` may push"
            }
            Self::Mcp(error) => error.hint(),
            Self::Model(_) | Self::Process(_) | Self::Host(_) => return None,
        };
        Some(hint.to_owned())
    }
}

/// A reply that is not of the protocol's form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", .line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct Fault {
    /// The line of the reply, from 1 on; `None` where it is no line's.
    pub line: Option<usize>,
    /// What is wrong there.
    pub problem: String,
    /// What to do about it, for the model alone; may be "".
    pub remedy: &'static str,
}

impl Fault {
    /// One of a line of the reply, from 1 on.
    #[must_use]
    pub fn at(line: usize, problem: impl Into<String>) -> Self {
        Self {
            line: Some(line),
            problem: problem.into(),
            remedy: "",
        }
    }

    /// One of the reply as a whole.
    #[must_use]
    pub fn of_all(problem: impl Into<String>) -> Self {
        Self {
            line: None,
            problem: problem.into(),
            remedy: "",
        }
    }

    /// The same with what the model is to do about it.
    #[must_use]
    pub fn with_remedy(self, remedy: &'static str) -> Self {
        Self { remedy, ..self }
    }

    /// What the model is told of it.
    #[must_use]
    pub fn told(&self) -> String {
        let joint = match self.remedy.chars().next() {
            None => "",
            // It has lines of its own.
            Some('\n') => ".",
            Some(_) => ": ",
        };
        format!("{self}{joint}{}", self.remedy)
    }
}
