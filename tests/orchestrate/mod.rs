//! The orchestrator over MCP.

mod config;
mod demo;
mod workflow;
