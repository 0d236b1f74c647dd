//! The orchestrator over remote agents: what it is configured with.

pub mod config;
