//! `code-commit report`: the command, and the pages about runs that it writes.

pub(crate) mod command;
pub(crate) mod page;
