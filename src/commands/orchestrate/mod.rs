//! The `orchestrate` command: an agent that has two specialists implement, review and fix a task on branches until a
//! review is clean.
//!
//! | module | contents |
//! |---|---|
//! | [`branches`], [`pantheon`] | the branches that specialists work on, and the server that hosts them |
//! | [`lineage`] | the branch from which the work continues |
//! | [`config`] | the configuration |
//! | [`specialists`] | running a specialist on a new branch, and waiting for it to finish |
//! | [`tools`], [`instructions`] | the tools and the instructions of the model that leads the work |
//! | [`report`], [`review`] | checking that model's final report against the last review |
//! | [`resume`] | an earlier run that another one continues |
//! | [`talk`] | the conversation with the user before there is a task, and at questions |
//! | [`publish`], [`handover`] | publishing the work, and the closing instructions for the user |
//!
//! Guarantees that the branches form a single line, each cloned from the last one that succeeded, and that work counts
//! as done only if a review has passed it.

pub(crate) mod args;
pub mod branches;
pub(crate) mod command;
pub mod config;
pub mod error;
pub mod handover;
pub mod instructions;
pub mod lineage;
pub mod pantheon;
pub(crate) mod place;
pub mod publish;
pub mod report;
mod resume;
pub mod review;
#[cfg(test)]
mod scripted;
pub mod specialists;
mod talk;
pub mod tools;
