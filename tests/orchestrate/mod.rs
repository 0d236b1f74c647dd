//! The orchestrator over MCP.

mod config;
mod demo;
mod interactive;
mod models;
mod output;
mod pantheon;
mod replays;
mod resume;
mod secrets;
mod signals;
mod workflow;
