//! Output for people during a run, and for programs. The only code that prints.
//!
//! Writes to the standard streams: progress, warnings and errors to stderr, and to stdout only the result or,
//! if requested, the conversation that led to it. Guarantees that no key is printed, and that a closed terminal
//! is not an error.

pub(crate) mod browser;
pub(crate) mod columns;
pub(crate) mod editor;
pub(crate) mod history;
pub(crate) mod input;

mod annotations;
mod blocks;
pub(crate) mod change;
mod console;
pub(crate) mod json;
pub(crate) mod lent;
pub(crate) mod links;
pub(crate) mod live;
mod markdown;
mod mirror;
mod options;
pub(crate) mod pager;
pub(crate) mod paint;
pub(crate) mod present;
mod spinner;
mod stderr;
mod stdout;
mod steps;
pub mod syntax;
pub mod tui;

pub use self::console::Output;
pub use self::options::{ConsoleOptions, OutputFormat, is_dumb};
