//! The `plan` command: an agent that makes a plan and executes it step by step.
//!
//! Contains everything specific to this agent: the plan and its document, the stages of a request, their instructions
//! and reply forms, sessions and the chat log. The agent loop and the tools are in [`crate::agent`].

pub(crate) mod args;
pub mod chat_log;
mod checkpoint;
pub(crate) mod command;
pub mod criteria;
pub(crate) mod document;
pub(crate) mod ends;
pub mod error;
pub mod file;
pub mod forms;
pub mod instructions;
pub(crate) mod mending;
pub(crate) mod place;
pub mod plan_tools;
mod progress;
pub mod reliability;
pub mod session;
pub mod show;
pub(crate) mod stages;
pub(crate) mod summary;
pub mod tools;
pub mod types;
pub(crate) mod updater;
