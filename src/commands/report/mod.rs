//! `code-commit report`: the page of a run.

pub(crate) mod command;
pub(crate) mod page;
