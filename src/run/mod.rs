//! Shared parts of commands that run something: readiness, selection of a model, builds, gate, tree, proof, and past
//! runs.

pub mod accounts;
pub(crate) mod active;
pub mod baseline;
pub mod builds;
pub mod closing;
pub mod code_base;
pub mod context;
pub mod env_file;
pub mod gate;
pub mod keys;
pub mod not_ready;
pub mod outcome;
pub mod passed_trees;
pub(crate) mod past;
pub mod problems;
pub mod proof;
pub mod ready;
pub mod recovery;
pub mod resumption;
pub mod selection;
pub mod sending;
pub mod served;
pub mod shown;
pub mod tiers;
pub mod tree;
