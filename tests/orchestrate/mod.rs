//! The orchestrator over MCP.

mod config;
