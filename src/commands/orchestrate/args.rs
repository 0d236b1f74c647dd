//! The command line of `orchestrate`, and of the binary `dev-agent`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use uuid::Uuid;

use crate::commands::cli::values::{SELDOM, parse_dollars, parse_duration, parse_text};
use crate::model::price::Usd;
use crate::run::context::ModelChoice;

/// The description of the binary `dev-agent`.
pub(crate) const ORCHESTRATE_ABOUT: &str = include_str!("about.txt").trim_ascii_end();

const ORCHESTRATE_AFTER_HELP: &str = include_str!("after_help.txt").trim_ascii_end();

#[derive(Debug, Clone, Default, Args)]
#[command(help_template = include_str!("short_help.txt").trim_ascii_end(), after_help = ORCHESTRATE_AFTER_HELP, max_term_width = 80)]
pub struct OrchestrateArgs {
    /// Branch on the MCP server to start from
    #[arg(long, value_name = "UUID", required_unless_present_any = ["replay", "resume", "publish_only"])]
    pub parent_branch_id: Option<Uuid>,

    /// Task to carry out; `-` reads it from standard input [default: ask for it]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = parse_text)]
    pub task: Option<String>,

    /// Project on the MCP server [default: $PROJECT_NAME]
    #[arg(long, value_name = "NAME")]
    pub project_name: Option<String>,

    /// Ask nothing, except for a missing task, and print only the report to standard output
    #[arg(long)]
    pub headless: bool,

    /// Use plain lines of text instead of a full screen
    #[arg(long)]
    pub plain: bool,

    /// Do not push the work to GitHub
    #[arg(long)]
    pub no_publish: bool,

    /// Continue an earlier run from its last successful branch; an agent that is still at work is
    /// waited for first
    #[arg(long, value_name = "RUN", allow_negative_numbers = true, conflicts_with_all = ["parent_branch_id", "task", "project_name", "replay", "publish_only"])]
    pub resume: Option<PathBuf>,

    /// Only publish the work of an earlier run that has passed a review
    #[arg(long, value_name = "RUN", allow_negative_numbers = true, conflicts_with_all = ["parent_branch_id", "task", "project_name", "no_publish", "replay"])]
    pub publish_only: Option<PathBuf>,

    /// Model to ask, listed by `code-commit models` or installed in Ollama [default:
    /// $AZURE_OPENAI_DEPLOYMENT]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

    /// Make no call that could raise the cost of the run above this many US dollars; the remote agents'
    /// own cost is not known
    #[arg(long, value_name = "USD", allow_hyphen_values = true, value_parser = parse_dollars)]
    pub max_cost: Option<Usd>,

    /// Time limit of a model call or an MCP call, retries included, such as 90s, 30m or 1h
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_duration, default_value = "10m", help_heading = SELDOM)]
    pub timeout: Duration,

    /// Take the replies and the server's answers from an earlier run's folder
    #[arg(long, value_name = "RUN", allow_negative_numbers = true, conflicts_with_all = ["parent_branch_id", "task", "project_name", "no_publish", "max_cost"], help_heading = SELDOM)]
    pub replay: Option<PathBuf>,
}

impl OrchestrateArgs {
    /// Returns the model to ask, and the limit on its cost.
    pub fn choice(&self) -> ModelChoice {
        ModelChoice {
            max_cost: self.max_cost,
            ..ModelChoice::streamed(self.model.as_deref(), self.timeout)
        }
    }
}
