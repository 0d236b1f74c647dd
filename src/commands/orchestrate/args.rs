//! The command line of `orchestrate`, and of the binary `dev-agent`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser};
use uuid::Uuid;

use crate::commands::cli::agent::TalkArgs;
use crate::commands::cli::inputs::{OutputArgs, PlaceArgs};
use crate::commands::cli::values::{SELDOM, parse_dollars, parse_duration};
use crate::model::price::Usd;

const ORCHESTRATE_ABOUT: &str = "\
Have two remote agents implement, review and fix a task until a review is clean.

claude_code implements and fixes, codex reviews, each on a branch of its own on
an MCP server; claude_code then pushes the work to GitHub. A report is printed
as JSON.";

const ORCHESTRATE_AFTER_HELP: &str = "\
Files:
  .env                       variables, from the current directory or else the
                             project's root; the environment comes first
  logs/<time>-orchestrate/   every query, reply, tool call and MCP exchange of a
                             run, and its branches in lineage.json

Exit codes (also in the run's result.json):
  0  done             a review passed the work, and it was published
  1  iteration-limit  eight reviews, and the last one still found something
     branch-timeout   an agent took too long
     publish-failed   there is no full report of what was pushed
     tools-failed     too many failures in a row
     loop-limit       too many model calls
     over-budget      the next call could exceed --max-cost
  2  usage            invalid command line, or a blank task
  3  not-ready        a variable is missing or wrong, first call over budget, or
                      the server lacks a tool; no agent was started
  4  model-failed     no complete reply
     mcp-failed       the MCP server could not be reached
  5  reply-rejected   the replies could not be understood
  6  local-io         a read, write or log failed
  129, 130, 143       interrupted by SIGHUP, SIGINT or SIGTERM; nothing was
                      published, and an agent that was at work goes on remotely

Environment, or .env:
  AZURE_OPENAI_API_KEY, AZURE_OPENAI_BASE_URL, AZURE_OPENAI_DEPLOYMENT
                            the model, unless --model names another
  AZURE_OPENAI_API_VERSION  version of its API [default: 2024-10-21]
  MCP_BASE_URL              MCP server (https, or http on localhost)
                            [default: http://localhost:8000/mcp/sse]
  MCP_BEARER_TOKEN          token for the MCP server
  MCP_POLL_INITIAL_SECONDS, MCP_POLL_MAX_SECONDS, MCP_POLL_BACKOFF_FACTOR
                            first and longest wait between two looks at an
                            agent, and how much longer each wait is than the
                            one before [default: 2, 30, 2.0]
  MCP_POLL_TIMEOUT_SECONDS  how long an agent may take [default: 10800]
  PROJECT_NAME              project on the server, without --project-name
  WORKSPACE_DIR             directory of the agents
                            [default: /home/pan/workspace]
  GITHUB_TOKEN              token to push with, unless --no-publish
  GIT_AUTHOR_NAME, GIT_AUTHOR_EMAIL
                            author of the commit
  HTTPS_PROXY, NO_PROXY     proxy for https, and hosts to reach without it";

/// Arguments of `orchestrate`.
#[derive(Debug, Clone, Args)]
#[command(after_help = ORCHESTRATE_AFTER_HELP, max_term_width = 80)]
pub struct OrchestrateArgs {
    /// Branch on the MCP server to begin from
    #[arg(long, value_name = "UUID", required_unless_present = "replay")]
    pub parent_branch_id: Option<Uuid>,

    /// Have this task done; `-` reads it from standard input [default: ask for it there]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub task: Option<String>,

    /// Project on the MCP server [default: $PROJECT_NAME]
    #[arg(long, value_name = "NAME")]
    pub project_name: Option<String>,

    /// Ask nothing but the task where it is left out, and print nothing but the report to standard output
    #[arg(long)]
    pub headless: bool,

    /// How it asks.
    #[command(flatten)]
    pub talk: TalkArgs,

    /// Do not push the work to GitHub
    #[arg(long)]
    pub no_publish: bool,

    /// Model to ask, one that `code-commit models` lists [default: $AZURE_OPENAI_DEPLOYMENT]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

    /// Make no call that could take the cost of the run above this many US dollars; the remote agents'
    /// own cost is not known
    #[arg(long, value_name = "USD", value_parser = parse_dollars)]
    pub max_cost: Option<Usd>,

    /// Time limit of a model call or an MCP call, retries included, such as 90s, 30m or 1h
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10m", help_heading = SELDOM)]
    pub timeout: Duration,

    /// Take the replies and the server's answers from an earlier run's folder
    #[arg(long, value_name = "RUN", allow_negative_numbers = true, conflicts_with_all = ["parent_branch_id", "task", "project_name", "no_publish", "max_cost"], help_heading = SELDOM)]
    pub replay: Option<PathBuf>,
}

/// The command line of the binary `dev-agent`, which is that of `code-commit orchestrate`.
#[derive(Debug, Clone, Parser)]
#[command(name = "dev-agent", version, about = ORCHESTRATE_ABOUT, long_about = None)]
pub(crate) struct DevAgent {
    #[command(flatten)]
    pub(crate) arguments: OrchestrateArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}
