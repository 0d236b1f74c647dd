//! The orchestrator over MCP.

mod config;
mod workflow;
