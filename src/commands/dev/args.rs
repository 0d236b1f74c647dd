//! Command-line arguments of `dev`, as a subcommand and as a separate binary.

use std::time::Duration;

use clap::{Args, Subcommand};
use uuid::Uuid;

use crate::commands::cli::agent::{AgentArgs, SessionsCommand};
use crate::commands::cli::values::{SELDOM, parse_duration, parse_text};

/// The description of the binary `dev`.
pub(crate) const DEV_ABOUT: &str = "\
Run an agent in the project until an independent audit passes.

Without -p, it prompts for tasks one after another. With -p, it works on that
one task and asks no questions.";

const DEV_AFTER_HELP: &str = include_str!("after_help.txt").trim_ascii_end();

#[derive(Debug, Clone, Args)]
#[command(help_template = include_str!("short_help.txt").trim_ascii_end(), after_help = DEV_AFTER_HELP, max_term_width = 80, args_conflicts_with_subcommands = true)]
pub struct DevArgs {
    /// A command other than running the agent.
    #[command(subcommand)]
    pub command: Option<DevCommand>,

    /// Work on this task and ask no questions; `-` reads it from standard input. With --resume or
    /// --session, an empty TEXT continues the previous task
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true, value_parser = parse_text)]
    pub prompt: Option<String>,

    /// Resume the last session of the current directory
    #[arg(long, conflicts_with = "session")]
    pub resume: bool,

    /// Resume the session with this UUID, or create it
    #[arg(long, value_name = "UUID")]
    pub session: Option<Uuid>,

    /// Model to ask, listed by `code-commit models` or installed in Ollama [default: from config.json]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

    /// Flags of every agent.
    #[command(flatten)]
    pub agent: AgentArgs,

    /// Time limit of a model call, retries included, such as 90s, 30m or 1h
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_duration, default_value = "30m", help_heading = SELDOM)]
    pub timeout: Duration,
}

// A command of `dev` other than running the agent.
#[derive(Debug, Clone, Subcommand)]
pub enum DevCommand {
    /// Manage sessions
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// Open config.json in an editor
    Config,
}
