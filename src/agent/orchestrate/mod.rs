//! The orchestrator over remote agents: what it is configured with.

#[cfg_attr(not(test), expect(dead_code, reason = "used by workflow/orchestrate"))]
pub mod config;
