//! The ground: what the operating system gives, and texts and numbers that every room needs.
//!
//! Knows nothing of projects, models or runs.

pub mod atomic_file;
pub mod environment;
pub mod excerpt;
pub(crate) mod fences;
pub mod file_lock;
pub(crate) mod files;
pub mod git;
pub mod interrupt;
pub(crate) mod numbers;
pub(crate) mod parallel;
pub mod positions;
pub(crate) mod sse;
pub(crate) mod text;
pub(crate) mod transport;
