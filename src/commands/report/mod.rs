//! `code-commit report`: the command, and the pages it writes about runs.

pub(crate) mod command;
pub(crate) mod page;
