//! The flags that all agents have.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::replies::LossArgs;
use super::values::{SELDOM, parse_absolute, parse_dollars, parse_variable};
use crate::exec::hosts::AllowedHost;
use crate::exec::sandbox::SandboxMode;
use crate::model::Tier;
use crate::model::price::Usd;

/// The flag of agents that ask what is to be done.
#[derive(Debug, Clone, Args)]
pub struct TalkArgs {
    /// Ask and answer by lines instead of on a full screen
    #[arg(long)]
    pub plain: bool,
}

/// Flags of an agent.
#[derive(Debug, Clone, Args)]
pub struct AgentArgs {
    /// Make no call that could take the cost of the run above this many US dollars
    #[arg(long, value_name = "USD", value_parser = parse_dollars)]
    pub max_cost: Option<Usd>,

    /// Service tier to ask for: flex (half the price, but slower, and standard if there is no room) or
    /// standard
    #[arg(long, value_name = "TIER", value_enum, hide_possible_values = true)]
    pub tier: Option<Tier>,

    /// Fail with exit code 4 if another model answers than the one that was asked
    #[arg(long)]
    pub require_model: bool,

    /// Let the agent read and write files outside the project
    #[arg(long)]
    pub allow_outside: bool,

    /// What changes may lose.
    #[command(flatten)]
    pub losses: LossArgs,

    /// Take the replies from an earlier run's folder instead of a model
    #[arg(long, value_name = "RUN", conflicts_with_all = ["prompt", "resume", "session"], help_heading = SELDOM)]
    pub replay: Option<PathBuf>,

    /// Sandbox commands with bubblewrap: auto hides keys and other processes if possible; strict also
    /// blocks the network and the rest of the disk, or refuses to run; off does not sandbox
    #[arg(long, value_name = "HOW", value_enum, default_value_t = SandboxMode::Auto, hide_possible_values = true, help_heading = SELDOM)]
    pub sandbox: SandboxMode,

    /// Let commands in a strict sandbox reach this host, NAME or NAME:PORT, through a proxy; may be
    /// repeated
    #[arg(long, value_name = "NAME", help_heading = SELDOM)]
    pub allow_host: Vec<AllowedHost>,

    /// Let commands use this socket of a service, such as /run/docker.sock, which is hidden from them
    /// otherwise; may be repeated
    #[arg(long, value_name = "PATH", value_parser = parse_absolute, help_heading = SELDOM)]
    pub allow_socket: Vec<PathBuf>,

    /// Pass this environment variable on to commands in a sandbox, though its name says that it holds a
    /// secret (*_TOKEN, *_KEY, ...); may be repeated
    #[arg(long, value_name = "NAME", value_parser = parse_variable, help_heading = SELDOM)]
    pub pass_env: Vec<String>,
}

/// The commands for sessions.
#[derive(Debug, Clone, Subcommand)]
pub enum SessionsCommand {
    /// List all sessions: id, time, state, directory, prompt
    List {
        /// Print JSON; same as --output-format json
        #[arg(long, conflicts_with = "output_format")]
        json: bool,
    },
}
