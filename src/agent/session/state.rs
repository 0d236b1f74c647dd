//! The progress of a session, as data.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// The progress of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum SessionState {
    /// In progress; or, if no process holds the session, the process was killed.
    #[default]
    Active,
    /// The work is finished and has passed the audit.
    #[serde(alias = "completed")]
    Complete,
    /// The work ended with an error.
    Failed,
    /// The work was ended by a signal.
    Interrupted,
}

impl SessionState {
    /// Returns the state shown to an observer: an active session that no process holds was interrupted.
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
    /// The time of the compression.
    pub timestamp: DateTime<Utc>,
    /// The approximate number of tokens before.
    pub tokens_before: u64,
    /// The approximate number of tokens after.
    pub tokens_after: u64,
}
