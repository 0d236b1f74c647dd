//! `code-commit dev`: the developer agent, whose work an independent audit must pass.
//!
//! Holds the command line and the profile. The loop, the tools and the audit are [`crate::agent`]'s.

pub(crate) mod args;
pub(crate) mod command;
