//! Writes a page about a run, or about all of them.

use std::path::PathBuf;

use super::{Context, Failure, Outcome};

/// What is to be written about, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportOptions {
    /// The run; the last one, where none is named.
    pub run: Option<PathBuf>,
    /// All runs.
    pub all: bool,
    /// The page.
    pub output: Option<PathBuf>,
}

/// Writes the page.
///
/// # Errors
/// When there is no such run, or the page cannot be written.
pub fn report(_context: &Context<'_>, _options: &ReportOptions) -> Result<Outcome, Failure> {
    Ok(Outcome::said("stub"))
}
