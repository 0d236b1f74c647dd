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

/// All reasons, and whether the same command may succeed later.
pub(crate) const REASONS: [(&str, bool); 44] = [
    // The project, the command line or the environment.
    ("usage", false),
    ("missing-input", false),
    ("no-key", false),
    ("key-rejected", false),
    ("settings", false),
    ("locked", true),
    ("stale", false),
    ("not-clean", false),
    ("baseline", false),
    ("credentials-found", false),
    ("window", false),
    ("budget", false),
    ("sandbox", false),
    // The call.
    ("network", true),
    ("busy", true),
    ("quota", false),
    ("server", false),
    ("refused", false),
    ("cut-short", false),
    ("other-model", false),
    // The reply.
    ("no-edits", false),
    ("malformed", false),
    ("path", false),
    ("incomplete-code", false),
    ("changed-meanwhile", true),
    // The build.
    ("build", false),
    ("gate-changed", false),
    ("warnings-denied", false),
    ("gate-weakened", false),
    ("not-proven", false),
    ("findings", false),
    // The machine.
    ("disk", true),
    ("interrupted", true),
    // An agent's work.
    ("audit-failed", false),
    ("tools-failed", false),
    ("loop-limit", false),
    ("not-permitted", false),
    ("step-failed", false),
    ("stopped", false),
    ("unreliable", false),
    ("iteration-limit", false),
    ("branch-timeout", false),
    ("publish-failed", false),
    ("mcp-failed", false),
];

impl Reason {
    /// Returns the reason that the rest of an error's code gives behind the exit's name: `busy`, `busy/503`, or
    /// `cut-short/later` where the same command may succeed later although others of the reason may not, and
    /// `network/never` for the opposite. `None` if it gives none.
    pub fn parse(code: &str) -> Option<Self> {
        let (name, detail) = code.split_once('/').unwrap_or((code, ""));
        let (name, retryable) = REASONS.into_iter().find(|(known, _)| *known == name)?;
        Some(Self {
            name,
            retryable: detail == "later" || retryable && detail != "never",
            http_status: detail.parse().ok(),
        })
    }
}
