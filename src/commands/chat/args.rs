//! Command-line arguments of `chat`.

use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use uuid::Uuid;

use crate::commands::cli::agent::{AgentArgs, SessionsCommand};
use crate::commands::cli::values::{SELDOM, parse_duration, parse_text};
use crate::model::Provider;
use crate::record::mode::Mode;

const CHAT_AFTER_HELP: &str = include_str!("after_help.txt").trim_ascii_end();

#[derive(Debug, Clone, Args)]
#[command(help_template = include_str!("short_help.txt").trim_ascii_end(), after_help = CHAT_AFTER_HELP, max_term_width = 80, args_conflicts_with_subcommands = true)]
pub struct ChatArgs {
    /// A command other than talking.
    #[command(subcommand)]
    pub command: Option<ChatCommand>,

    /// First request
    #[arg(value_name = "PROMPT", conflicts_with_all = ["prompt", "replay"])]
    pub first: Option<String>,

    /// Answer this one request without a terminal, and print only the answer to standard output; `-`
    /// reads the request from standard input
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true, value_parser = parse_text)]
    pub prompt: Option<String>,

    /// Resume the last session of the current directory
    #[arg(long, conflicts_with = "session")]
    pub resume: bool,

    /// Resume the session with this UUID, or create it
    #[arg(long, value_name = "UUID")]
    pub session: Option<Uuid>,

    /// How freely to act: regular asks first, auto-pilot never asks, planning only talks [default:
    /// regular, or with --replay that of the run]
    #[arg(long, value_name = "MODE", value_enum, hide_possible_values = true)]
    pub mode: Option<Mode>,

    /// Same as --mode auto-pilot
    #[arg(long, conflicts_with = "mode")]
    pub auto_pilot: bool,

    /// Model to ask, from any vendor; `code-commit models` lists them [default: set in
    /// ~/.agent/models.json]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

    /// Send what looks like credentials, except your own keys
    #[arg(long)]
    pub allow_secrets: bool,

    /// Flags of every agent.
    #[command(flatten)]
    pub agent: AgentArgs,

    /// Time limit of a model call, retries included, such as 90s, 30m or 1h
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_duration, default_value = "30m", help_heading = SELDOM)]
    pub timeout: Duration,
}

/// Returns the parser for the names of vendors that need a key.
fn vendors_with_keys() -> PossibleValuesParser {
    Provider::with_keys()
        .map(|provider| provider.vendor().word)
        .into()
}

impl ChatArgs {
    /// Returns the mode selected by the flags, if any.
    pub fn first_mode(&self) -> Option<Mode> {
        self.auto_pilot.then_some(Mode::AutoPilot).or(self.mode)
    }
}

// A command of `chat` other than talking.
#[derive(Debug, Clone, Subcommand)]
pub enum ChatCommand {
    /// Sign in: check a key and store it; it is typed without echo, or read from standard input
    Login {
        /// Name of the account [default: default]
        #[arg(long, value_name = "NAME")]
        account: Option<String>,

        /// Vendor of the key [default: recognized by how the key begins, else anthropic]
        #[arg(long, value_name = "NAME", value_parser = vendors_with_keys())]
        provider: Option<String>,

        /// A key, say, which is refused: clap would show it
        #[arg(hide = true)]
        given: Vec<String>,
    },
    /// Remove the active account
    Logout,
    /// Manage sessions
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// Open settings.json in an editor
    Config,
    /// Show what this folder's files would allow, and trust them as they are now
    Trust {
        /// Trust them without being asked
        #[arg(long)]
        yes: bool,
    },
}
