//! The orchestrator over MCP.

mod config;
mod models;
mod pantheon;
mod replays;
mod workflow;
