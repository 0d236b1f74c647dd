//! Errors that end an agent's work early.

use miette::Diagnostic;

use super::mcp::McpError;
use crate::exec::process::ProcessError;
use crate::model::ModelError;
use crate::model::estimate::OverBudget;
use crate::run::error::DoesNotFit;
use crate::sys::error::Error;
use crate::sys::exit::Exit;
use crate::sys::interrupt::Interrupted;
use crate::sys::numbers::{counted, grouped};

/// Errors that end an agent's work early.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum AgentError {
    /// Too many consecutive failures, the last of which was a reply that was not understood.
    #[error("gave up after {} in a row: the last reply was not understood: {fault}", counted((*.tries).into(), "failure"))]
    #[diagnostic(
        code("reply-rejected"),
        help("another model may keep to the format better; the replies are in the run's folder")
    )]
    NotUnderstood { tries: u32, fault: Fault },
    /// Too many consecutive failures, the last of which was a tool.
    #[error("gave up after {} in a row: `{tool}` failed last: {problem}", counted((*.tries).into(), "failure"))]
    #[diagnostic(
        code("tools-failed"),
        help("read the last steps in the run's folder; `--resume` continues the session")
    )]
    ToolsFailed {
        /// The number of failures, including the last.
        tries: u32,
        /// The tool that failed last.
        tool: String,
        /// The message given to the model.
        problem: String,
    },
    /// The work failed too many consecutive audits.
    #[error("the audit has failed {}; the last one says: {feedback}", counted((*.audits).into(), "time"))]
    #[diagnostic(
        code("audit-failed"),
        help("read the audit's findings, and continue with `--resume` and a further request")
    )]
    AuditFailed { audits: u32, feedback: String },
    /// The limit on model calls, given here, was reached.
    #[error("the loop limit is reached: {} to the model", counted((*.0).into(), "call"))]
    #[diagnostic(
        code("loop-limit"),
        help("`--resume` continues the session; the setting `maxLoops` is the limit")
    )]
    LoopLimit(u32),
    /// The conversation is too long, and summarizing it would not shorten it.
    #[error(
        "the conversation has {before} tokens, of {limit} that it may have, and the summary of it would \
         make it {after}"
    )]
    #[diagnostic(
        code("model-failed/window"),
        help(
            "ask for less at once, begin a new session, or raise the limit: `maxContextTokens` in the configuration, or the model's window if that is less"
        )
    )]
    NotCompressed { before: u64, after: u64, limit: u64 },
    /// A prompt is too long for the model even after everything optional was left out.
    #[error(
        "the prompt has about {} tokens, and the model takes {}{}",
        grouped(*.tokens),
        grouped(*.window),
        reserved(*.window, *.answer)
    )]
    #[diagnostic(code("model-failed/window"), help("{}", shorter(larger.as_deref())))]
    TooLong {
        /// The length of the remaining prompt, in tokens.
        tokens: u64,
        /// The maximum length of a prompt, in tokens.
        window: u64,
        /// The part of the model's whole window that is kept for the answer, in tokens; 0 if it is not known.
        answer: u64,
        /// A model with a larger window, if there is one.
        larger: Option<String>,
    },
    /// The user answered this question with No.
    #[error("User rejected: {0}")]
    #[diagnostic(
        code("stopped"),
        help("change the plan, or what is asked for; `--resume` continues the session")
    )]
    Rejected(String),
    /// The user has ended the work at a question.
    #[error("ended by `/exit`")]
    #[diagnostic(code("stopped"), help("`--resume` continues the session"))]
    Left,
    /// The run was interrupted by a signal or at the user's request.
    #[error(transparent)]
    #[diagnostic(forward(0), help("`--resume` continues the session"))]
    Interrupted(#[from] Interrupted),
    /// The next call may cost more than the remaining budget.
    #[error(transparent)]
    #[diagnostic(code("over-budget"), help("{}", more_money(.0)))]
    OverBudget(OverBudget),
    /// The model returned no complete reply.
    #[error(transparent)]
    #[diagnostic(forward(0), help("{}", .0.hint_with_config()))]
    Model(#[from] ModelError),
    /// An MCP server returned no result.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Mcp(McpError),
    /// A command could not be supervised.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Process(#[from] ProcessError),
    /// Any other error of the surrounding run, or of the system that the agent works for.
    #[error("{0}")]
    #[diagnostic(transparent)]
    Host(Error),
    /// The first prompt is too long.
    #[error(transparent)]
    #[diagnostic(code("not-ready/window"), forward(0))]
    AtOnce(Box<AgentError>),
    /// The first call may cost more than the budget.
    #[error(transparent)]
    #[diagnostic(code("not-ready/budget"), forward(0))]
    Unaffordable(Box<AgentError>),
}

/// Describes the part of the window that is reserved for the answer.
fn reserved(window: u64, answer: u64) -> String {
    let [whole, share] = [window + answer, answer].map(grouped);
    let message = format!(": its window has {whole}, and {share} are for the answer");
    if answer > 0 { message } else { String::new() }
}

/// Returns the hint for a prompt that is too long.
fn shorter(larger: Option<&str>) -> String {
    let without = "the plan, the task or the results are too long: shorten what is asked for, or ask a model with a larger window";
    larger.map_or(without.to_owned(), |larger| {
        format!("`--model {larger}` asks one with a larger window")
    })
}

/// Returns the hint for a call that may exceed the budget.
fn more_money(over: &OverBudget) -> String {
    match over {
        OverBudget::Unpriced { table, .. } => format!(
            "give the model that answers an entry with a `price` in `{table}`; `--resume` continues the session"
        ),
        OverBudget::TooLittle { .. } => {
            "raise `--max-cost`; `--resume` continues the session".to_owned()
        }
    }
}

impl From<OverBudget> for AgentError {
    fn from(over: OverBudget) -> Self {
        let is_at_once = over.is_at_once();
        let error = Self::OverBudget(over);
        if is_at_once {
            Self::Unaffordable(error.into())
        } else {
            error
        }
    }
}

impl From<Error> for AgentError {
    /// Converts an error of the surrounding run into the agent's own variant if there is one.
    fn from(error: Error) -> Self {
        if let (false, Exit::Interrupted(signal)) = (error.is::<Self>(), error.exit()) {
            return Self::Interrupted(Interrupted { signal });
        }
        error
            .downcast()
            .or_else(|error| error.downcast().map(Self::Model))
            .or_else(|error| error.downcast::<OverBudget>().map(Self::from))
            .or_else(|error| {
                let fits = error.downcast::<DoesNotFit>();
                fits.map(|fits| Self::too_long(fits.prompt_tokens, fits.window))
            })
            .unwrap_or_else(Self::Host)
    }
}

impl From<McpError> for AgentError {
    /// Converts an MCP error. An interruption remains one, wherever the signal was noticed.
    fn from(error: McpError) -> Self {
        match error {
            McpError::Interrupted(interrupted) => Self::Interrupted(interrupted),
            error => Self::Mcp(error),
        }
    }
}

impl AgentError {
    /// Returns whether the error means that the user has left.
    pub fn has_left(error: &Error) -> bool {
        matches!(Self::of(error), Some(Self::Left))
    }

    /// Returns whether a request that ended so before the model has replied to it must not stay in the conversation: the
    /// model would refuse it again with the next one, or it is too long.
    pub fn rules_out(&self) -> bool {
        match self {
            Self::Model(error) => error.is_refusal() || error.is_context_exceeded(),
            Self::TooLong { .. } | Self::NotCompressed { .. } => true,
            _ => false,
        }
    }

    /// Finds the agent's error within another, however it is wrapped.
    pub fn of(error: &Error) -> Option<&Self> {
        match error.downcast_ref() {
            Some(Self::AtOnce(error) | Self::Unaffordable(error)) => Some(error),
            error => error,
        }
    }

    /// Returns the hint for an error of an agent whose settings, if any, do not name the model.
    pub fn hint_without_config(error: &Error) -> Option<String> {
        match Self::of(error) {
            Some(Self::Model(error)) => Some(error.hint_for_agent()),
            _ => error.hint(),
        }
    }

    /// Returns the error of the surrounding run, if it is of type `E`.
    pub fn host<E: Diagnostic + Send + Sync + 'static>(&self) -> Option<&E> {
        match self {
            Self::Host(error) => error.downcast_ref(),
            _ => None,
        }
    }

    /// Creates the error for a prompt with this many tokens if no model with a larger window is known.
    pub fn too_long(tokens: u64, window: u64) -> Self {
        Self::TooLong {
            tokens,
            window,
            answer: 0,
            larger: None,
        }
    }

    /// Marks the error for a prompt that is too long as being about the first prompt: nothing was sent to the model.
    pub fn at_once(self) -> Self {
        Self::AtOnce(Box::new(self))
    }
}

/// An error in a reply that does not follow the protocol's format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", .line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct Fault {
    /// The line in the reply, counted from 1; `None` if the fault is not tied to a line.
    pub line: Option<usize>,
    /// The description of the mistake, for the model.
    pub problem: String,
    /// Advice for the model on how to fix it; may be empty.
    pub remedy: &'static str,
}

impl Fault {
    /// Creates a fault at a line of the reply, counted from 1.
    pub fn at(line: usize, problem: impl Into<String>) -> Self {
        Self {
            line: Some(line),
            ..Self::of_all(problem)
        }
    }

    /// Creates a fault of the reply as a whole.
    pub fn of_all(problem: impl Into<String>) -> Self {
        Self {
            line: None,
            problem: problem.into(),
            remedy: "",
        }
    }

    /// Adds advice for the model.
    pub fn with_remedy(self, remedy: &'static str) -> Self {
        Self { remedy, ..self }
    }

    /// Returns the message for the model.
    pub fn message(&self) -> String {
        let joint = match self.remedy.chars().next() {
            None => "",
            // The remedy starts on a line of its own.
            Some('\n') => ".",
            Some(_) => ": ",
        };
        format!("{self}{joint}{}", self.remedy)
    }
}
