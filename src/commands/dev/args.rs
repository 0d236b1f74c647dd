//! The command line of `dev`, and of the binary of that name.

use std::time::Duration;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use uuid::Uuid;

use crate::commands::cli::agent::{AgentArgs, SessionsCommand, TalkArgs};
use crate::commands::cli::build::check_allowed;
use crate::commands::cli::inputs::{OutputArgs, PlaceArgs};
use crate::commands::cli::values::{SELDOM, parse_duration};

const DEV_ABOUT: &str = "\
Run an agent in the project until an independent audit passes.

Without -p, it prompts for tasks one after another. With -p, it works on that
one task and asks no questions.";

const DEV_AFTER_HELP: &str = "\
Files in ~/.dev-agent (macOS: ~/Library/Application Support/dev-agent):
  config.json             server, model and limits; created on first use
  sessions/<uuid>.json    the conversation, saved after every step
Files in the project's root:
  logs/<time>-dev/        every query, reply and tool result of a run

Exit codes (also in the run's result.json):
  0  done             the audit passed
  1  audit-failed     the audit did not pass
     tools-failed     too many failures in a row
     loop-limit       too many model calls
     over-budget      the next call could exceed --max-cost
  2  usage            invalid command line, or no such session
  3  not-ready        invalid configuration, first call over budget, or the
                      session or project is in use by another process
  4  model-failed     no complete reply
  5  reply-rejected   the replies could not be understood
  6  local-io         a read, write or log failed
  129, 130, 143       interrupted by SIGHUP, SIGINT or SIGTERM; the session
                      can be resumed

Environment:
  DEV_AGENT_API_URL, DEV_AGENT_API_KEY, DEV_AGENT_MODEL
                                   override config.json
  DEV_AGENT_HOME, XDG_CONFIG_HOME  move config.json and the sessions
  VISUAL, EDITOR                   the editor that `dev config` opens";

/// Arguments of `dev`.
#[derive(Debug, Clone, Args)]
#[command(after_help = DEV_AFTER_HELP, max_term_width = 80, args_conflicts_with_subcommands = true)]
pub struct DevArgs {
    /// A command other than running the agent.
    #[command(subcommand)]
    pub command: Option<DevCommand>,

    /// Work on this task and ask no questions; `-` reads it from standard input. With --resume or
    /// --session, an empty TEXT continues the previous task
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: Option<String>,

    /// Resume the last session of the current directory
    #[arg(long, conflicts_with = "session")]
    pub resume: bool,

    /// Resume the session with this UUID, or create it
    #[arg(long, value_name = "UUID")]
    pub session: Option<Uuid>,

    /// Model to ask, one that `code-commit models` lists [default: from config.json]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

    /// How it asks.
    #[command(flatten)]
    pub talk: TalkArgs,

    /// Flags of every agent.
    #[command(flatten)]
    pub agent: AgentArgs,

    /// Time limit of a model call, retries included, such as 90s, 30m or 1h
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "30m", help_heading = SELDOM)]
    pub timeout: Duration,
}

impl DevArgs {
    /// Tests for a list of sessions as JSON.
    pub(crate) fn lists_json(&self) -> bool {
        use DevCommand::Sessions;
        matches!(
            self.command,
            Some(Sessions(SessionsCommand::List { json: true }))
        )
    }
}

/// A command of `dev` other than running the agent.
#[derive(Debug, Clone, Subcommand)]
pub enum DevCommand {
    /// Manage sessions
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// Open config.json in an editor
    Config,
}

/// The command line of the binary `dev`, which is that of `code-commit dev`.
#[derive(Debug, Clone, Parser)]
#[command(name = "dev", version, about = DEV_ABOUT, long_about = None)]
pub(crate) struct Dev {
    #[command(flatten)]
    pub(crate) arguments: DevArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

impl Dev {
    /// Checks the hosts and sockets that it allows.
    pub(crate) fn with_sandbox_checked(self) -> Result<Self, clap::Error> {
        let AgentArgs {
            sandbox,
            allow_host,
            allow_socket,
            ..
        } = &self.arguments.agent;
        check_allowed(*sandbox, allow_host, allow_socket, Self::command)?;
        Ok(self)
    }
}
