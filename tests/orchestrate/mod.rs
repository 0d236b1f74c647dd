//! The orchestrator over MCP.

mod config;
mod demo;
mod models;
mod pantheon;
mod replays;
mod workflow;
