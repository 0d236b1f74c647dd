//! `code-commit dev`: the agent that works through tools, whole.

pub(crate) mod args;
pub(crate) mod command;
pub(crate) mod sessions;
