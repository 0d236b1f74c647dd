//! Progress of a session, as data.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// Progress of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionState {
    /// Under way; or its process was killed, if no process holds it.
    #[default]
    Active,
    /// The work is done, and passed the audit.
    #[serde(alias = "completed")]
    Complete,
    /// Ended with an error.
    Failed,
    /// Ended by a signal.
    Interrupted,
}

impl SessionState {
    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }

    /// The state for an onlooker: an active session that no process holds was killed.
    pub fn seen(self, is_held: impl FnOnce() -> bool) -> Self {
        match self {
            Self::Active if !is_held() => Self::Interrupted,
            state => state,
        }
    }
}

/// A compression of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compression {
    /// When the history was compressed.
    pub timestamp: DateTime<Utc>,
    /// The approximate number of tokens before.
    pub tokens_before: u64,
    /// The approximate number of tokens since.
    pub tokens_after: u64,
}
