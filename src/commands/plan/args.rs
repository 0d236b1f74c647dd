//! The command line of `plan`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::commands::cli::agent::{AgentArgs, SessionsCommand};
use crate::commands::cli::replies::OnFailure;
use crate::commands::cli::values::{SELDOM, parse_duration, parse_text};

const PLAN_AFTER_HELP: &str = include_str!("after_help.txt").trim_ascii_end();

#[derive(Debug, Clone, Args)]
#[command(help_template = include_str!("short_help.txt").trim_ascii_end(), after_help = PLAN_AFTER_HELP, max_term_width = 80, args_conflicts_with_subcommands = true)]
pub struct PlanArgs {
    /// A command other than working on a plan.
    #[command(subcommand)]
    pub command: Option<PlanCommand>,

    /// Work on this request and ask no questions; `-` reads it from standard input. With --resume or
    /// --session, an empty TEXT continues the plan
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true, value_parser = parse_text)]
    pub prompt: Option<String>,

    /// Stop once the plan is made, so that you can review and edit it
    #[arg(long)]
    pub plan_only: bool,

    /// Resume the last session of the current directory
    #[arg(long, conflicts_with = "session")]
    pub resume: bool,

    /// Resume the session with this name
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,

    /// Keep the plan in this project file instead of in the session's folder
    #[arg(long, value_name = "PATH")]
    pub plan_file: Option<PathBuf>,

    /// Model to ask in all stages, listed by `code-commit models` or installed in Ollama [default: by
    /// models.json]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

    /// Allow every command and every change to dependencies without asking
    #[arg(long)]
    pub yes: bool,

    /// Pull models that Ollama does not have
    #[arg(long)]
    pub pull: bool,

    /// What must pass before a step that changed files is done: build (default) or off
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = StepGate::Build, hide_default_value = true, hide_possible_values = true)]
    pub gate: StepGate,

    /// What to do with the changes of a step that fails: keep (default) or revert
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnFailure::Keep, hide_default_value = true, hide_possible_values = true)]
    pub on_failure: OnFailure,

    /// Flags of every agent.
    #[command(flatten)]
    pub agent: AgentArgs,

    /// Time limit of a model call, retries included, such as 90s, 30m or 1h
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_duration, default_value = "5m", help_heading = SELDOM)]
    pub timeout: Duration,

    /// Time limit of build.sh
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_duration, default_value = "30m", help_heading = SELDOM)]
    pub build_timeout: Duration,
}

/// The check that must pass before a step that changed files is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StepGate {
    /// `build.sh`, where there is one
    Build,
    /// Nothing
    Off,
}

// A command of `plan` other than working.
#[derive(Debug, Clone, Subcommand)]
pub enum PlanCommand {
    /// Show a session's plan
    Show {
        /// Session [default: the last one of the current directory]
        session: Option<String>,

        /// Show the plan in this file instead
        #[arg(long, value_name = "PATH", conflicts_with = "session")]
        plan_file: Option<PathBuf>,

        /// Print JSON; same as --output-format json
        #[arg(long, conflicts_with = "output_format")]
        json: bool,
    },
    /// Manage sessions
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// Ask a model repeatedly, and count how many replies have the right form
    Reliability(ReliabilityArgs),
}

#[derive(Debug, Clone, Args)]
pub struct ReliabilityArgs {
    /// Number of calls
    #[arg(short = 'n', long = "number", value_name = "N", allow_hyphen_values = true, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..))]
    pub number: u16,

    /// Fail with exit code 1 below this percentage
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true, default_value_t = 95, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub at_least: u8,

    /// Model to ask [default: by models.json, the one for steps]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

    /// Time limit of a model call, retries included
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_duration, default_value = "5m")]
    pub timeout: Duration,
}
