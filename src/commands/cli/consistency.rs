//! The flags for the findings of a consistency report.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::values::SELDOM;
use crate::record::finding::Severity;
use crate::record::run_files::{FINDINGS_JSON, FINDINGS_SARIF};

// Flags for a consistency report.
#[derive(Debug, Clone, Default, Args)]
pub struct ConsistencyArgs {
    /// With --cc, print the report's findings as sarif or json, which takes a second call; each has
    /// the place of the line that it quotes, or none
    #[arg(
        long,
        value_name = "FORMAT",
        value_enum,
        hide_possible_values = true,
        requires = "consistency_check"
    )]
    pub findings: Option<FindingsFormat>,

    /// Write the findings to PATH, and do not print them
    #[arg(long, value_name = "PATH", requires = "findings", conflicts_with = "dry_run", help_heading = SELDOM)]
    pub findings_file: Option<PathBuf>,

    /// Fail with exit code 1 if a finding is an error, or a warning or an error
    #[arg(long, value_name = "SEVERITY", value_enum, hide_possible_values = true, requires = "findings", help_heading = SELDOM)]
    pub fail_on: Option<Severity>,

    /// With --cc, reuse the last report if query, code base, prompts and model are
    /// unchanged
    #[arg(long, requires = "consistency_check", conflicts_with_all = ["replay", "resume", "dry_run"], help_heading = SELDOM)]
    pub if_changed: bool,
}

/// The format of a report's findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FindingsFormat {
    /// SARIF 2.1.0
    Sarif,
    /// A list of objects
    Json,
}

impl FindingsFormat {
    /// Returns the name of the findings' file in the run's folder.
    pub fn file(self) -> &'static str {
        match self {
            Self::Sarif => FINDINGS_SARIF,
            Self::Json => FINDINGS_JSON,
        }
    }
}
