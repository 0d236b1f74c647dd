//! The command line: clap's types, and nothing that acts.

pub(crate) mod agent;
pub(crate) mod build;
pub(crate) mod command;
pub mod command_line;
pub(crate) mod inputs;
pub(crate) mod mcp;
pub(crate) mod replies;
pub(crate) mod values;
