//! The seam to servers of the Model Context Protocol.

use serde_json::Value;

use crate::sys::interrupt::Interrupted;

/// A server's tools.
pub trait McpTools {
    /// Calls a tool; what it says, as one JSON value.
    ///
    /// # Errors
    /// When the server cannot be reached, or says that the call has failed.
    fn call(&self, tool: &str, arguments: Value, repeat: Repeat) -> Result<Value, McpError>;
}

/// Whether a call may be made again where it is not known what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// It changes nothing.
    Always,
    /// Only where the server has certainly not begun.
    UnlessBegun,
}

/// Why a call of a server's tool came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// The server cannot be reached, or has not answered to the end.
    #[error("no answer from the MCP server at `{server}`: {reason}")]
    NoAnswer {
        /// The server, without its query.
        server: String,
        /// What has happened.
        reason: String,
        /// How often it was tried.
        tries: u32,
    },
    /// The tool has failed.
    #[error("{message}")]
    Tool {
        /// What it says.
        message: String,
    },
    /// A signal came.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl McpError {
    /// Whether the server is gone.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::NoAnswer { .. })
    }
}
