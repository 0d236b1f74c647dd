//! Past runs: their records, and what a reviewer should look at.

pub(crate) mod chain;
pub(crate) mod findings;
pub(crate) mod folders;
pub(crate) mod history;
pub(crate) mod naming;
pub(crate) mod past_step;
pub(crate) mod protobuf;
pub(crate) mod recomputation;
pub(crate) mod sarif;
pub(crate) mod spans;
pub(crate) mod statement;
pub(crate) mod story;
pub(crate) mod table;
pub(crate) mod warnings;
pub(crate) mod words;
