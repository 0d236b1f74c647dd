//! What an agent that works by a plan is told and keeps.

pub mod chat_log;
pub mod instructions;
pub mod session;
