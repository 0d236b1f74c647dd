//! What an agent that works by a plan is told, uses and keeps.

pub mod chat_log;
pub mod instructions;
pub mod session;
pub mod stages;
pub mod tools;
