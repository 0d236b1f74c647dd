//! Reports on a client's traffic: each exchange with a server and each retry. Pure.

use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::error::McpError;

/// Observes the traffic between client and server.
pub trait McpObserver {
    /// Called after a request, whether it was answered or failed.
    fn exchanged(&self, exchange: &Exchange<'_>);

    /// Called before a retry, with the wait until then and the reason; `next_try` counts from 1.
    fn retrying(&self, next_try: u32, wait: Duration, reason: &str);

    /// Called when the server reports the progress of a call, in its own words.
    fn progress(&self, text: &str);
}

/// A request and its outcome. Serialized as a line of a run's `mcp.jsonl`, which
/// [`McpClient::replay`](super::McpClient::replay) reads.
#[derive(Debug, Serialize)]
pub struct Exchange<'e> {
    /// The request's method, such as `tools/call`.
    pub method: &'e str,
    /// The parameters.
    pub params: &'e Value,
    /// The result as sent by the server, or the error.
    #[serde(flatten, serialize_with = "result_or_error")]
    pub outcome: Result<&'e Value, &'e McpError>,
    /// The duration in seconds, including all tries.
    pub seconds: f64,
    /// The time when it ended, in seconds on the monotonic clock.
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
