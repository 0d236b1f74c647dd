//! The exit status of the process: the contract's exit codes and their names. Plain data.

use super::interrupt::Signal;

/// The exit status of the process: the contract's exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The build passed, or the report was written.
    Done,
    /// The build still fails after the last repair.
    BuildFailed,
    /// A build has changed what it is judged by.
    GateChanged,
    /// The command line is wrong.
    Usage,
    /// The project lacks something.
    NotReady,
    /// There is no whole reply.
    ModelFailed,
    /// An MCP server gives no result.
    McpFailed,
    /// The reply is not to be applied.
    ReplyRejected,
    /// A local read, write or log failed.
    LocalIo,
    /// The audit has not passed an agent's work.
    AuditFailed,
    /// An agent's tools failed too often.
    ToolsFailed,
    /// An agent has asked the model as often as it may.
    LoopLimit,
    /// An agent's next call may cost more than is left.
    OverBudget,
    /// Calls of an agent's were refused, since nobody was there to ask.
    NotPermitted,
    /// A step of a plan has failed.
    StepFailed,
    /// The user has said no to what a plan needs.
    Stopped,
    /// A model's replies are not of the form often enough.
    Unreliable,
    /// As many reviews came back as may.
    IterationLimit,
    /// An agent on a branch took too long.
    BranchTimeout,
    /// The work was not published.
    PublishFailed,
    /// A signal came.
    Interrupted(Signal),
}

impl Exit {
    /// All that have but one name, with their codes.
    const ALL: [(Self, u8, &'static str); 20] = [
        (Self::Done, 0, "done"),
        // What was asked for was not reached.
        (Self::BuildFailed, 1, "build-failed"),
        (Self::GateChanged, 1, "gate-changed"),
        (Self::AuditFailed, 1, "audit-failed"),
        (Self::ToolsFailed, 1, "tools-failed"),
        (Self::LoopLimit, 1, "loop-limit"),
        (Self::OverBudget, 1, "over-budget"),
        (Self::NotPermitted, 1, "not-permitted"),
        (Self::StepFailed, 1, "step-failed"),
        (Self::Stopped, 1, "stopped"),
        (Self::Unreliable, 1, "unreliable"),
        (Self::IterationLimit, 1, "iteration-limit"),
        (Self::BranchTimeout, 1, "branch-timeout"),
        (Self::PublishFailed, 1, "publish-failed"),
        (Self::Usage, 2, "usage"),
        (Self::NotReady, 3, "not-ready"),
        (Self::ModelFailed, 4, "model-failed"),
        (Self::McpFailed, 4, "mcp-failed"),
        (Self::ReplyRejected, 5, "reply-rejected"),
        (Self::LocalIo, 6, "local-io"),
    ];

    /// The exit of this name in the contract, or of a signal's name.
    pub(super) fn named(name: &str) -> Self {
        let known = Self::ALL.iter().find(|(_, _, known)| *known == name);
        let signal = || Signal::ALL.into_iter().find(|signal| signal.name() == name);
        match known {
            Some((exit, _, _)) => *exit,
            None => signal().map_or(Self::LocalIo, Self::Interrupted),
        }
    }

    /// The code, and its name in the contract.
    fn code_and_name(self) -> (u8, &'static str) {
        match (self, Self::ALL.iter().find(|(exit, _, _)| *exit == self)) {
            (Self::Interrupted(signal), _) => (128 + signal.number(), "interrupted"),
            (_, Some((_, code, name))) => (*code, name),
            // The table has all others.
            _ => (6, "local-io"),
        }
    }

    /// The process's exit code.
    #[must_use]
    pub fn code(self) -> u8 {
        self.code_and_name().0
    }

    /// The code's name in the contract.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.code_and_name().1
    }
}
