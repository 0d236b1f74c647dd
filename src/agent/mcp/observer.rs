//! Reports on a client's traffic: each exchange with a server and each retry. Pure.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Observes the traffic between client and server.
pub trait McpObserver {
    /// Called after a request, whether it was answered or failed.
    fn exchanged(&self, exchange: &Exchange<'_>);

    /// Called before a retry, with the wait until then and the reason; `next_try` counts from 1.
    fn retrying(&self, next_try: u32, wait: Duration, reason: &str);

    /// Called when the server reports the progress of a call, in its own words.
    fn progress(&self, text: &str);
}

/// A request and its outcome: a line of a run's `mcp.jsonl`, from which
/// [`McpClient::replay`](super::McpClient::replay) answers.
#[derive(Debug, Serialize, Deserialize)]
pub struct Exchange<'e> {
    /// The request's method, such as `tools/call`.
    pub method: Cow<'e, str>,
    /// The parameters.
    #[serde(default)]
    pub params: Cow<'e, Value>,
    /// The result as sent by the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Cow<'e, Value>>,
    /// The error in place of a result; otherwise null.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub error: Value,
    /// The duration in seconds, including all tries.
    #[serde(default)]
    pub seconds: f64,
    /// The time when it ended, in seconds on the monotonic clock.
    #[serde(default)]
    pub at: f64,
}
