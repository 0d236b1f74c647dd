//! An agent that has two specialists implement, review and fix on branches, until a review is clean.
//!
//! | part | what it is for |
//! |---|---|
//! | [`branches`], [`pantheon`] | where specialists work, and the server that has it |
//! | [`lineage`] | which branch the work goes on from |
//! | [`config`] | what it is set to |
//! | [`specialists`] | has one work on a new branch, and waits until that is done |
//! | [`tools`], [`instructions`] | what the model that leads the work has, and what it is told |
//! | [`report`], [`review`] | its final report, and whether that counts |
//! | [`publish`], [`handover`] | having the work published, and what the user is told at the end |
//!
//! Guarantees that the work is one line of branches, each the clone of the last one that succeeded, and that none
//! counts as done that no review has passed.

pub(crate) mod args;
pub mod branches;
pub(crate) mod command;
pub mod config;
pub mod handover;
pub mod instructions;
pub mod lineage;
pub(crate) mod options;
pub mod pantheon;
pub(crate) mod place;
pub mod publish;
pub mod report;
pub mod review;
#[cfg(test)]
mod scripted;
pub mod specialists;
pub mod tools;
