//! Why an agent does not get to the end of its work.

use std::io;
use std::time::Duration;

use super::mcp::McpError;
use crate::exec::process::ProcessError;
use crate::model::ModelError;
use crate::model::estimate::OverBudget;
use crate::run::problems::DoesNotFit;
use crate::sys::error::Error;
use crate::sys::exit::Exit;
use crate::sys::interrupt::Interrupted;
use crate::sys::numbers::{counted, grouped};

/// Why an agent did not get to the end of its work.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum AgentError {
    /// Its replies were not understood, or its tools failed, again and again; at last a reply.
    #[error("nothing went well {} in a row; the last reply was not understood: {fault}", counted((*.tries).into(), "time"))]
    #[diagnostic(
        code("reply-rejected"),
        help("another model may keep to the form better; the replies are in the run's folder")
    )]
    NotUnderstood {
        /// The number of failures there were, the last one included.
        tries: u32,
        /// The last fault, and its place.
        fault: Fault,
    },
    /// Its replies were not understood, or its tools failed, again and again; at last a tool.
    #[error("nothing went well {} in a row; at last `{tool}` failed: {problem}", counted((*.tries).into(), "time"))]
    #[diagnostic(
        code("tools-failed"),
        help("read the last steps in the run's folder; `--resume` goes on with the session")
    )]
    ToolsFailed {
        /// The number of failures there were, the last one included.
        tries: u32,
        /// The tool that failed last.
        tool: String,
        /// The message that the model was given.
        problem: String,
    },
    /// The audit has not passed the work, again and again.
    #[error("the audit has failed {}; the last one says: {feedback}", counted((*.audits).into(), "time"))]
    #[diagnostic(
        code("audit-failed"),
        help(
            "read the audit's findings; `--resume` with a further request goes on with the session"
        )
    )]
    AuditFailed {
        /// The number of audits there were, the last one included.
        audits: u32,
        /// The last audit's findings.
        feedback: String,
    },
    /// The model was asked as often as it may be.
    #[error("the loop limit is reached: {} to the model", counted((*.loops).into(), "call"))]
    #[diagnostic(
        code("loop-limit"),
        help(
            "`--resume` goes on with the session; `maxLoops` in the configuration sets the limit"
        )
    )]
    LoopLimit {
        /// The number of calls made, which is the limit.
        loops: u32,
    },
    /// The conversation is too long, and a summary of it is not shorter.
    #[error(
        "the conversation has {before} tokens, of {limit} that it may have, and the summary of it would \
         make it {after}"
    )]
    #[diagnostic(
        code("model-failed"),
        help(
            "the session is kept as it is: give `maxContextTokens` in the configuration a larger value, if the model takes that, or begin a new session"
        )
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
    #[diagnostic(code("model-failed"), help("{}", shorter(larger.as_deref())))]
    TooLong {
        /// The rest of the prompt, in tokens.
        tokens: u64,
        /// The number of tokens a prompt may have.
        window: u64,
        /// A model that takes more.
        larger: Option<String>,
    },
    /// The user has said no.
    #[error("User rejected: {question}")]
    #[diagnostic(
        code("stopped"),
        help("change the plan, or what is asked for; `--resume` goes on with the session")
    )]
    Rejected {
        /// The question that the user was asked.
        question: String,
    },
    /// The changes of a plan's step do not build.
    #[error("step {step} has failed: `build.sh` still fails: {status}")]
    #[diagnostic(
        code("build-failed"),
        help("see the build's log, `{log}`; `--resume` goes on with the step")
    )]
    GateFailed {
        /// The step's number.
        step: usize,
        /// The status of the last build.
        status: String,
        /// The file with its output, relative to the root.
        log: String,
    },
    /// A step of a plan has failed.
    #[error("step {step} has failed: {reason}")]
    #[diagnostic(
        code("step-failed"),
        help(
            "read the step's replies in the run's folder; edit the plan, and `--resume` goes on with it"
        )
    )]
    StepFailed {
        /// Its number.
        step: usize,
        /// Why.
        reason: String,
    },
    /// As many reviews came back as may, and another agent was to be started.
    #[error("the iteration limit is reached: {} came back, and the work was not signed off", counted((*.reviews).into(), "review"))]
    #[diagnostic(
        code("iteration-limit"),
        help(
            "read the last review's log; run again from the last branch, or finish the work by hand"
        )
    )]
    IterationLimit {
        /// The number of reviews that came back, which is the limit.
        reviews: u32,
    },
    /// An agent on a branch took too long.
    #[error("`{agent}` has not ended within {} on branch `{branch}`", counted(.waited.as_secs(), "second"))]
    #[diagnostic(
        code("branch-timeout"),
        help(
            "the agent may still be at work: look at the branch; `MCP_POLL_TIMEOUT_SECONDS` sets how long one may take"
        )
    )]
    BranchTimeout {
        /// The branch's id; the agent works on there.
        branch: String,
        /// The agent.
        agent: &'static str,
        /// The time waited.
        waited: Duration,
    },
    /// The work was to be published, and was not, or nobody knows where.
    #[error("the work was not published: {reason}")]
    #[diagnostic(
        code("publish-failed"),
        help(
            "publish the last branch by hand, or run again from it; see that `GITHUB_TOKEN` may push"
        )
    )]
    PublishFailed {
        /// Why.
        reason: String,
    },
    /// A signal came, or somebody has asked for a stop.
    #[error(transparent)]
    #[diagnostic(forward(0), help("`--resume` goes on with the session"))]
    Interrupted(#[from] Interrupted),
    /// The next call may cost more than is left.
    #[error(transparent)]
    #[diagnostic(code("over-budget"), help("{}", more_money(.0)))]
    OverBudget(OverBudget),
    /// There is no whole reply.
    #[error(transparent)]
    #[diagnostic(forward(0), help("{}", .0.hint_for_agent()))]
    Model(#[from] ModelError),
    /// An MCP server gives no result.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Mcp(McpError),
    /// A command could not be watched.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Process(#[from] ProcessError),
    /// The agent's host failed, for reasons of its own.
    #[error("{0}")]
    #[diagnostic(transparent)]
    Host(Error),
    /// The same before anything was sent.
    #[error(transparent)]
    #[diagnostic(code("not-ready"), forward(0))]
    AtOnce(Box<AgentError>),
}

/// The way out of a prompt that is too long.
fn shorter(larger: Option<&str>) -> String {
    let without = "the plan, the task or the results are too long: shorten what is asked for, or ask a model with a larger window";
    larger.map_or(without.to_owned(), |larger| {
        format!("`--model {larger}` asks one with a larger window")
    })
}

/// The way out of a call that may be too dear.
fn more_money(over: &OverBudget) -> &'static str {
    match over {
        OverBudget::Unpriced { .. } => {
            "give the model that answers an entry with a `price` in `agent-config/models.json`; `--resume` goes \
             on with the session"
        }
        OverBudget::TooLittle { .. } => {
            "give it more with `--max-cost`; `--resume` goes on with the session"
        }
    }
}

/// An error of the system's, of which nothing more is known.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error(transparent)]
pub struct Unsaid(#[from] pub io::Error);

impl From<OverBudget> for AgentError {
    fn from(over: OverBudget) -> Self {
        let is_at_once = over.is_at_once();
        let error = Self::OverBudget(over);
        if is_at_once { error.at_once() } else { error }
    }
}

impl From<Error> for AgentError {
    /// An error of the run around the agent, told as an agent's where it has words of its own.
    fn from(error: Error) -> Self {
        if let (false, Exit::Interrupted(signal)) = (error.is::<Self>(), error.exit()) {
            return Self::Interrupted(Interrupted { signal });
        }
        error
            .downcast()
            .or_else(|error| error.downcast().map(Self::Model))
            .or_else(|error| error.downcast::<OverBudget>().map(Self::from))
            .or_else(|error| error.downcast().map(Self::too_long))
            .unwrap_or_else(Self::Host)
    }
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
    /// The agent's error in another one, however it is wrapped.
    pub fn of(error: &Error) -> Option<&Self> {
        match error.downcast_ref() {
            Some(Self::AtOnce(error)) => Some(error),
            error => error,
        }
    }

    fn too_long(
        DoesNotFit {
            prompt_tokens: tokens,
            window,
            ..
        }: DoesNotFit,
    ) -> Self {
        Self::TooLong {
            tokens,
            window,
            larger: None,
        }
    }

    /// The same before anything was sent.
    pub fn at_once(self) -> Self {
        Self::AtOnce(Box::new(self))
    }
}

/// A reply that is not of the protocol's form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", .line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct Fault {
    /// The line of the reply, from 1 on; `None` where it is no line's.
    pub line: Option<usize>,
    /// The problem.
    pub problem: String,
    /// Advice on the problem, for the model alone; may be "".
    pub remedy: &'static str,
}

impl Fault {
    /// One of a line of the reply, from 1 on.
    pub fn at(line: usize, problem: impl Into<String>) -> Self {
        Self {
            line: Some(line),
            problem: problem.into(),
            remedy: "",
        }
    }

    /// One of the reply as a whole.
    pub fn of_all(problem: impl Into<String>) -> Self {
        Self {
            line: None,
            problem: problem.into(),
            remedy: "",
        }
    }

    /// The same with what the model is to do about it.
    pub fn with_remedy(self, remedy: &'static str) -> Self {
        Self { remedy, ..self }
    }

    /// Returns the message for the model.
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
