//! The orchestrator over MCP.

mod config;
mod models;
mod workflow;
