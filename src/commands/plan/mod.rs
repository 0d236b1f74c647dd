//! `code-commit plan`: the agent that works by a plan, whole.

pub(crate) mod args;
pub mod chat_log;
pub(crate) mod command;
pub mod criteria;
pub(crate) mod document;
pub(crate) mod ends;
pub mod file;
pub mod forms;
pub mod instructions;
pub(crate) mod keeper;
pub(crate) mod mending;
pub(crate) mod options;
pub(crate) mod place;
pub mod plan_tools;
pub mod reliability;
pub mod session;
pub mod show;
pub(crate) mod stages;
pub(crate) mod summary;
pub mod tools;
pub mod types;
