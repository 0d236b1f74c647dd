//! The flags for handling replies.

use crate::edit::Allowances;
use crate::model::ReplyFormat;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::values::{SELDOM, parse_number};

// Flags that control how a reply is handled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct ReplyArgs {
    /// Ask again up to N times in a run if a reply is rejected, naming its faults; each time costs
    /// another call
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = parse_number::<usize>, default_value_t = 0, hide_default_value = true)]
    pub reask: usize,

    /// Resume an earlier run, named as for `log`: its recorded replies first, at no cost, then calls
    #[arg(long, value_name = "RUN", allow_negative_numbers = true, conflicts_with_all = ["replay", "message", "edit", "rollup", "context", "include", "exclude", "baseline", "dry_run"])]
    pub resume: Option<PathBuf>,

    /// Have the model write whole files (default), or edits: changed lines alone, with those to put in
    /// their place
    #[arg(long, value_name = "FORMAT", value_enum, hide_possible_values = true, help_heading = SELDOM)]
    pub reply_format: Option<ReplyFormat>,

    /// Strategy for a failing build: repair (default) the last state, or search, which returns to the
    /// best state when it gets worse, starts over at a dead end, and keeps the best
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Strategy::Repair, hide_default_value = true, hide_possible_values = true, conflicts_with = "context", help_heading = SELDOM)]
    pub strategy: Strategy,

    /// Ask for N attempts at once, at most 8; build each in a separate scratch tree, and take the
    /// best one
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = clap::value_parser!(u8).range(1..=8), default_value_t = 1, hide_default_value = true, conflicts_with_all = ["resume", "context"], help_heading = SELDOM)]
    pub attempts: u8,

    /// Of several attempts, take the first that passes, and end the others
    #[arg(long, help_heading = SELDOM)]
    pub first_pass: bool,

    /// Reject a reply without edits, with exit code 5, instead of building the project as it is
    #[arg(long, help_heading = SELDOM)]
    pub require_edits: bool,
}

/// The way in which a failing build is repaired.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Strategy {
    /// Repair the last state
    #[default]
    Repair,
    /// Repair the best state
    Search,
}

// Flags for losses that a reply may cause in the files that it replaces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub struct LossArgs {
    /// Accept a comment in place of code, like "... rest unchanged"; implies --allow-shrink
    #[arg(long, help_heading = SELDOM)]
    pub allow_elision: bool,

    /// Accept a file of more than 40 lines that loses two thirds or more of them
    #[arg(long, help_heading = SELDOM)]
    pub allow_shrink: bool,

    /// Accept a file whose text is a diff, has conflict markers or numbered lines, or is enclosed in
    /// code fences
    #[arg(long, help_heading = SELDOM)]
    pub allow_form: bool,
}

impl From<LossArgs> for Allowances {
    fn from(flags: LossArgs) -> Self {
        Self {
            elision: flags.allow_elision,
            shrink: flags.allow_shrink,
            form: flags.allow_form,
        }
    }
}

/// The handling of a failed run's edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnFailure {
    /// Keep the edits
    Keep,
    /// Revert the edits
    Revert,
}
