//! The command line of `fleet`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::policy::Engine;
use crate::commands::cli::values::{parse_count, parse_dollars, parse_number};
use crate::model::price::Usd;

const AFTER_HELP: &str = include_str!("after_help.txt").trim_ascii_end();

// A command on a manifest of tasks.
#[derive(Debug, Clone, Subcommand)]
#[command(after_help = AFTER_HELP, max_term_width = 80, mut_subcommands(|it| it.after_help(AFTER_HELP).max_term_width(80)))]
pub enum FleetCommand {
    /// Check a manifest and estimate what its tasks cost, without sending anything
    Check {
        /// File of tasks, as JSON Lines
        manifest: PathBuf,
    },
    /// Run one task of a manifest, in a separate clone
    Task {
        /// File of tasks, as JSON Lines
        manifest: PathBuf,

        /// Number of the task's line, counted from 0
        #[arg(allow_negative_numbers = true, value_parser = parse_number::<usize>)]
        index: usize,

        /// The results and their cost.
        #[command(flatten)]
        results: ResultArgs,
    },
    /// Run all tasks of a manifest, several at a time
    Run(RunArgs),
    /// Sum up the results as a table and a page
    Report {
        /// Directory of the results
        #[arg(value_name = "DIR")]
        results: PathBuf,

        /// HTML file to write [default: report.html in DIR]
        #[arg(long = "output", value_name = "FILE")]
        page: Option<PathBuf>,
    },
    /// Make a branch of each passing change in local clones, and print the next steps
    Publish {
        /// Directory of the results
        #[arg(value_name = "DIR")]
        results: PathBuf,

        /// Name of the branches
        #[arg(long, value_name = "NAME")]
        branch: String,
    },
    /// Print which exit codes an engine should retry, in the engine's own syntax
    Policy {
        /// Engine that starts tasks
        #[arg(value_enum)]
        engine: Engine,
    },
}

#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// File of tasks, as JSON Lines
    pub manifest: PathBuf,

    /// The results and their cost.
    #[command(flatten)]
    pub results: ResultArgs,

    /// Number of tasks at a time
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value = "2", value_parser = parse_count)]
    pub jobs: NonZeroUsize,

    /// Run the first N tasks before all others
    #[arg(long, value_name = "N", allow_hyphen_values = true, requires = "stop_above", value_parser = parse_count)]
    pub first: Option<NonZeroUsize>,

    /// Stop after them if more than this share of them fails
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true, requires = "first", value_parser = parse_percent)]
    pub stop_above: Option<usize>,
}

// Flags for results and their cost.
#[derive(Debug, Clone, Args)]
pub struct ResultArgs {
    /// Directory of the results, in which each task has a folder
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,

    /// Begin no task that could raise the cost of all tasks in DIR above this many US dollars
    #[arg(long, value_name = "USD", allow_hyphen_values = true, value_parser = parse_dollars)]
    pub max_cost: Option<Usd>,
}

impl FleetCommand {
    /// Returns the paths that the user gives relative to the current directory.
    pub fn paths(&mut self) -> Vec<&mut PathBuf> {
        match self {
            Self::Check { manifest } => vec![manifest],
            Self::Task {
                manifest, results, ..
            } => vec![manifest, &mut results.out],
            Self::Run(run) => vec![&mut run.manifest, &mut run.results.out],
            Self::Report { results, page } => std::iter::once(results).chain(page).collect(),
            Self::Publish { results, .. } => vec![results],
            Self::Policy { .. } => Vec::new(),
        }
    }
}

/// Parses a percentage such as `20` or `20%`.
fn parse_percent(text: &str) -> Result<usize, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
    let percent = number.filter(|percent| *percent <= 100);
    percent.ok_or_else(|| "write a share of 100, like `20%`".to_owned())
}
