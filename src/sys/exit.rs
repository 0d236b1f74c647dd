//! The exit status of the process: the contract's exit codes and their names. Plain data.

use super::interrupt::Signal;
use super::reason;

/// The codes after which the same command may succeed later, and after which an engine requeues a task.
pub const REQUEUED: [u8; 2] = [4, 6];

/// The exit status of the process: the contract's exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumCount)]
pub enum Exit {
    /// The command succeeded; for a run, the build or the audit passed, or the report was written.
    Done,
    /// The build still fails after the last repair.
    BuildFailed,
    /// A build changed the files that judge it.
    GateChanged,
    /// The build passed, but the change has warnings that the user denies.
    WarningsDenied,
    /// The build passed, but earlier tests no longer do.
    GateWeakened,
    /// New tests do not prove the change, or a statement about a run does not match the run's record.
    NotProven,
    /// A consistency report has findings that the user denies.
    Findings,
    /// The command line is invalid.
    Usage,
    /// The project lacks something that the command needs.
    NotReady,
    /// The model returned no complete reply.
    ModelFailed,
    /// An MCP server returned no result.
    McpFailed,
    /// The reply must not be applied.
    ReplyRejected,
    /// A local read, write or log failed.
    LocalIo,
    /// An agent's work did not pass the audit.
    AuditFailed,
    /// An agent's tools failed too often.
    ToolsFailed,
    /// An agent reached the limit of model calls.
    LoopLimit,
    /// An agent's next call might exceed the budget.
    OverBudget,
    /// Tool calls were refused because no user was present to permit them.
    NotPermitted,
    /// A step of a plan failed.
    StepFailed,
    /// The user declined something that a plan needs, or left at a question.
    Stopped,
    /// A model's replies were malformed too often.
    Unreliable,
    /// The limit of reviews was reached.
    IterationLimit,
    /// An agent on a branch ran out of time.
    BranchTimeout,
    /// The work could not be published.
    PublishFailed,
    /// A signal arrived.
    Interrupted(Signal),
}

impl Exit {
    /// All statuses but an interruption, each with its code and name, and the reason of errors that give no other; if
    /// empty, it has the same name.
    const ALL: [(Self, u8, &'static str, &'static str); <Self as strum::EnumCount>::COUNT - 1] = [
        (Self::Done, 0, "done", reason::DISK),
        // Code 1: the goal of the run was not reached.
        (Self::BuildFailed, 1, "build-failed", "build"),
        (Self::GateChanged, 1, "gate-changed", ""),
        (Self::WarningsDenied, 1, "warnings-denied", ""),
        (Self::GateWeakened, 1, "gate-weakened", ""),
        (Self::NotProven, 1, "not-proven", ""),
        (Self::Findings, 1, "findings", ""),
        (Self::AuditFailed, 1, "audit-failed", ""),
        (Self::ToolsFailed, 1, "tools-failed", ""),
        (Self::LoopLimit, 1, "loop-limit", ""),
        (Self::OverBudget, 1, "over-budget", reason::BUDGET),
        (Self::NotPermitted, 1, "not-permitted", ""),
        (Self::StepFailed, 1, "step-failed", ""),
        (Self::Stopped, 1, "stopped", ""),
        (Self::Unreliable, 1, "unreliable", ""),
        (Self::IterationLimit, 1, "iteration-limit", ""),
        (Self::BranchTimeout, 1, "branch-timeout", ""),
        (Self::PublishFailed, 1, "publish-failed", ""),
        (Self::Usage, 2, "usage", ""),
        (Self::NotReady, 3, "not-ready", "missing-input"),
        (Self::ModelFailed, 4, "model-failed", "server"),
        (Self::McpFailed, 4, "mcp-failed", ""),
        (Self::ReplyRejected, 5, "reply-rejected", "malformed"),
        (Self::LocalIo, 6, "local-io", reason::DISK),
    ];

    /// Returns all codes of failures, in ascending order.
    pub(crate) fn failures() -> Vec<u8> {
        let fixed = Self::ALL.iter().map(|(_, code, ..)| *code);
        let signals = Signal::ALL.map(|signal| Self::Interrupted(signal).code());
        let mut codes: Vec<u8> = fixed.chain(signals).filter(|code| *code != 0).collect();
        codes.sort_unstable();
        codes.dedup();
        codes
    }

    /// Returns the exit with this name in the contract, or the one for the signal with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let known = Self::ALL.iter().find(|(_, _, known, _)| *known == name);
        let signal = || Signal::ALL.into_iter().find(|signal| signal.name() == name);
        let known = known.map(|(exit, ..)| *exit);
        known.or_else(|| signal().map(Self::Interrupted))
    }

    /// Returns the code, its name in the contract, and the reason of errors that give no other.
    fn row(self) -> (u8, &'static str, &'static str) {
        match (self, Self::ALL.iter().find(|(exit, ..)| *exit == self)) {
            (Self::Interrupted(signal), _) => (128 + signal.number(), "interrupted", "interrupted"),
            (_, Some((_, code, name, ""))) => (*code, name, name),
            (_, Some((_, code, name, reason))) => (*code, name, reason),
            // Unreachable: the table contains all other statuses.
            _ => (6, "local-io", reason::DISK),
        }
    }

    /// Returns the process's exit code.
    pub fn code(self) -> u8 {
        self.row().0
    }

    /// Returns the name of the code in the contract.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Returns the reason of errors that give no other.
    pub(super) fn reason(self) -> &'static str {
        self.row().2
    }
}
