//! The flags for calls to models, and those common to all agents.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::build::SandboxArgs;
use super::replies::LossArgs;
use super::values::{SELDOM, parse_dollars};
use crate::agent::tools::resolved_path::Outside;
use crate::model::Tier;
use crate::model::price::Usd;
use crate::run::builds::BuildOptions;
use crate::run::scratch::ScratchMode;

// Flags for calls to models.
#[derive(Debug, Clone, Args)]
pub struct CallArgs {
    /// Make no call that could raise the cost of the run above this many US dollars
    #[arg(long, value_name = "USD", allow_hyphen_values = true, value_parser = parse_dollars)]
    pub max_cost: Option<Usd>,

    /// Service tier to request: flex (half the price but slower; standard if it has no capacity) or
    /// standard
    #[arg(long, value_name = "TIER", value_enum, hide_possible_values = true, help_heading = SELDOM)]
    pub tier: Option<Tier>,

    /// Fail with exit code 4 if a model other than the one asked answers
    #[arg(long, help_heading = SELDOM)]
    pub require_model: bool,
}

// Flags of an agent.
#[derive(Debug, Clone, Args)]
pub struct AgentArgs {
    /// Use plain lines of text instead of a full screen
    #[arg(long)]
    pub plain: bool,

    /// Flags for calls.
    #[command(flatten)]
    pub calls: CallArgs,

    /// Run build.sh when the work is done, and fail with exit code 1 if it fails
    #[arg(long)]
    pub prove: bool,

    /// Let the agent read and write files outside the project
    #[arg(long, help_heading = SELDOM)]
    pub allow_outside: bool,

    /// Flags for losses.
    #[command(flatten)]
    pub losses: LossArgs,

    /// With -p, work in a scratch tree over the project, and apply its changes to the project at the
    /// end unless the run fails; with =keep-ignored, also changes to ignored files
    #[arg(long, value_name = "WHAT", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "drop", hide_possible_values = true, requires = "prompt", help_heading = SELDOM)]
    pub scratch: Option<ScratchMode>,

    /// Take the replies from an earlier run's folder instead of a model
    #[arg(long, value_name = "RUN", allow_negative_numbers = true, conflicts_with_all = ["prompt", "resume", "session"], help_heading = SELDOM)]
    pub replay: Option<PathBuf>,

    /// Flags for the sandbox.
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

impl AgentArgs {
    /// Returns the options of the build that proves the work, if requested.
    pub fn proof(&self, timeout: Duration) -> Option<BuildOptions<'_>> {
        self.prove.then(|| self.sandbox.build(timeout))
    }

    /// Returns the access to files outside the project.
    pub fn outside(&self) -> Outside {
        if self.allow_outside {
            Outside::Allowed
        } else {
            Outside::Refused
        }
    }
}

// The commands for sessions.
#[derive(Debug, Clone, Subcommand)]
pub enum SessionsCommand {
    /// List all sessions: id, time, state, directory, prompt
    List {
        /// Print JSON; same as --output-format json
        #[arg(long, conflicts_with = "output_format")]
        json: bool,
    },
}
