//! What a user starts: one file each, and what they share.
//!
//! A workflow strings the stages together and decides what a stage's outcome means; it does nothing
//! of a stage's work itself. Workflows never import each other, but for the demo, which writes a project
//! as `init` does, and then is the commit workflow; and for the prompt of agents, at which `/undo` and `/diff` are
//! what the commands of these names are.

mod add_model;
mod agent_run;
pub(crate) mod chat;
pub(crate) mod cli;
mod commit;
mod consistency;
mod demo;
pub(crate) mod dev;
mod diff;
pub(crate) mod dispatch;
mod dry_run;
pub mod error;
mod init;
mod keeping;
pub(crate) mod last;
mod log;
mod mcp;
pub(crate) mod mcp_server;
mod models;
pub(crate) mod orchestrate;
mod output_file;
mod place;
pub(crate) mod plan;
mod query;
pub(crate) mod redaction;
pub(crate) mod report;
mod rollup;
mod sections;
mod sessions;
mod summary;
mod talk;
mod tell;
mod undo;
mod workspace;

pub(crate) use dispatch::dispatch;
pub(crate) use models::table;
pub(crate) use place::ProjectPlace;
pub(crate) use summary::{SummaryFile, summarize};
pub(crate) use tell::tell;
