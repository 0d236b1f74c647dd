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
#[derive(Debug)]
pub struct Exchange<'e> {
    /// The request's method, as `tools/call`.
    pub method: &'e str,
    /// The parameters.
    pub params: &'e Value,
    /// The result as the server has sent it, or why there is none.
    pub outcome: Result<&'e Value, &'e McpError>,
    /// The time it took, with all tries.
    pub seconds: f64,
    /// When it was over, by the clock that never goes back, in seconds.
    pub at: f64,
}

impl Serialize for Exchange<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "lowercase")]
        enum Outcome<'e> {
            Result(&'e Value),
            Error(Value),
        }
        #[derive(Serialize)]
        struct Line<'e> {
            method: &'e str,
            params: &'e Value,
            #[serde(flatten)]
            outcome: Outcome<'e>,
            seconds: f64,
            at: f64,
        }
        let outcome = match self.outcome {
            Ok(result) => Outcome::Result(result),
            Err(error) => Outcome::Error(error.to_record()),
        };
        Line {
            method: self.method,
            params: self.params,
            outcome,
            seconds: self.seconds,
            at: self.at,
        }
        .serialize(serializer)
    }
}
