//! Reports of a client's work: each exchange with a server, and each try that follows a failure. Pure.

use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::error::McpError;

/// Hears what happens between client and server.
pub trait McpObserver {
    /// The server was asked, and has answered or not.
    fn exchanged(&self, exchange: &Exchange<'_>);

    /// Tells that it is asked again after `wait`, and why; `next_try` counts from 1.
    fn retrying(&self, next_try: u32, wait: Duration, reason: &str);
}

/// A request, and what came of it. As JSON a line of a run's `mcp.jsonl`, which [`McpClient::replay`](super::McpClient::replay) reads.
#[derive(Debug, Serialize)]
pub struct Exchange<'e> {
    /// The request's method, as `tools/call`.
    pub method: &'e str,
    /// The parameters.
    pub params: &'e Value,
    /// The result as the server has sent it, or why there is none.
    #[serde(flatten, serialize_with = "result_or_error")]
    pub outcome: Result<&'e Value, &'e McpError>,
    /// The time it took, with all tries.
    pub seconds: f64,
    /// When it was over, by the clock that never goes back, in seconds.
    pub at: f64,
}

fn result_or_error<S: Serializer>(
    outcome: &Result<&Value, &McpError>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match outcome {
        Ok(result) => serializer.serialize_newtype_variant("Outcome", 0, "result", result),
        Err(error) => {
            serializer.serialize_newtype_variant("Outcome", 1, "error", &error.to_record())
        }
    }
}
