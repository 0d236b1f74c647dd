//! The reasons for failures, as programs read them: the contract's closed list. Plain data.

/// A reason for a failure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reason {
    /// The reason's name in the contract.
    pub name: &'static str,
    /// True if the same command may succeed later.
    pub retryable: bool,
    /// The status that a server answered with, if that is the reason.
    pub http_status: Option<u16>,
}

/// Another command works on the same.
pub const LOCKED: &str = "locked";
/// The budget is used up.
pub const BUDGET: &str = "budget";
/// A local read or write failed.
pub const DISK: &str = "disk";

/// All reasons: of the project, the command line or the environment; of the call; of the reply; of the build; of the
/// machine; and of an agent's work.
pub(crate) const REASONS: &str = "usage missing-input no-key key-rejected settings locked stale not-clean baseline credentials-found window \
    budget sandbox \
    network busy quota server refused cut-short other-model \
    no-edits malformed path incomplete-code changed-meanwhile \
    build gate-changed warnings-denied gate-weakened not-proven findings \
    disk interrupted \
    audit-failed tools-failed loop-limit not-permitted step-failed stopped unreliable iteration-limit branch-timeout \
    publish-failed mcp-failed";
/// The reasons after which the same command may succeed later.
const PASSING: &str = "locked network busy changed-meanwhile disk interrupted";

impl Reason {
    /// Parses the part of an error's code after the exit's name: `busy`, `busy/503`, `cut-short/later` if the same
    /// command may succeed later, unlike others that fail for this reason, or `network/never` for the opposite. `None`
    /// if the reason is unknown.
    pub fn parse(code: &str) -> Option<Self> {
        let (word, detail) = code.split_once('/').unwrap_or((code, ""));
        let name = REASONS.split(' ').find(|known| *known == word)?;
        let passes = PASSING.split(' ').any(|passing| passing == name);
        Some(Self {
            name,
            retryable: detail == "later" || passes && detail != "never",
            http_status: detail.parse().ok(),
        })
    }
}
