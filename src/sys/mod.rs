//! The lowest layer: operating system services, and the text and number functions that all other modules use.
//!
//! Knows nothing of projects, models or runs.

pub(crate) mod atomic_file;
pub mod core_dump;
pub mod counter;
pub(crate) mod defaults;
pub mod diff;
pub(crate) mod dotenv;
pub mod environment;
pub(crate) mod error;
pub(crate) mod excerpt;
pub mod exit;
pub(crate) mod fences;
pub(crate) mod file_lock;
pub(crate) mod files;
pub(crate) mod git;
pub(crate) mod home_file;
pub(crate) mod http;
pub(crate) mod identity;
pub mod interrupt;
pub(crate) mod ndjson;
pub(crate) mod numbers;
pub mod open_files;
pub(crate) mod parallel;
pub(crate) mod positions;
pub(crate) mod programs;
pub(crate) mod reason;
pub(crate) mod sha256;
pub(crate) mod sse;
pub(crate) mod text;
