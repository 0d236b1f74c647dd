//! The flags for conditions that a change must meet to count as done.

use clap::{Args, ValueEnum};
use serde::Deserialize;

use crate::edit::protection::check_pattern;
use crate::run::past::warnings::check_code;

// Flags for the gate.
#[derive(Debug, Clone, Default, Args)]
pub struct GateArgs {
    /// For CI, short for --baseline --require-clean --require-edits --deny-warnings=tests --reask 1
    #[arg(long)]
    pub ci: bool,

    /// Reject a reply that touches a file that GLOB matches, as in .gitignore, or the value that
    /// FILE.json#/NAME names; may be repeated
    #[arg(long, value_name = "GLOB", value_parser = check_pattern)]
    pub protect: Vec<String>,

    /// Fail with exit code 1 if the change has warnings of these codes: test-skipped and others,
    /// `tests`, or all (default); separated by commas
    #[arg(long, value_name = "CODE", num_args = 0..=1, require_equals = true, default_missing_value = "all", value_delimiter = ',', value_parser = check_code)]
    pub deny_warnings: Vec<String>,

    /// Stop with exit code 3 if git sees changes in the project
    #[arg(long)]
    pub require_clean: bool,

    /// Build a passing change again with the old tests and lint settings, and the old code with the new
    /// tests: report the outcome, or (strict) fail with exit code 1 if the change breaks old tests, or
    /// new ones pass without it
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true)]
    pub gate: Option<GateMode>,
}

/// The effect of the gate's verdict on the run. Later variants are stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateMode {
    /// Report it
    Report,
    /// Fail if it is bad
    Strict,
}
