//! An agent that has two specialists implement, review and fix on branches, until a review is clean.
//!
//! | part | what it is for |
//! |---|---|
//! | [`branches`], [`pantheon`] | where specialists work: a trait, and a server that is one such place |
//! | [`lineage`], [`polling`] | which branch the work goes on from, and how often one is asked for |
//! | [`config`] | what it is set to |
//!
//! Guarantees that the work is one line of branches, each the clone of the last one that succeeded.

pub mod branches;
pub mod config;
pub mod lineage;
pub mod pantheon;
pub mod polling;
#[cfg(test)]
mod scripted;
pub mod specialists;
