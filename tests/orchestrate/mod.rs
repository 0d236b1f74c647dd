//! The orchestrator over MCP.

mod config;
mod demo;
mod interactive;
mod models;
mod pantheon;
mod replays;
mod signals;
mod workflow;
