//! `code-commit dev`: the developer agent, whose work must pass an independent audit.
//!
//! Contains the command line, the settings and the profile. The loop, the tools and the audit are in [`crate::agent`].

pub(crate) mod args;
pub(crate) mod command;
pub(crate) mod place;
pub(crate) mod settings;
