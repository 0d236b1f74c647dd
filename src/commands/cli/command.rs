//! The commands, and the arguments of those that have few.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::mcp::McpArgs;
use crate::commands::chat::args::ChatArgs;
use crate::commands::dev::args::DevArgs;
use crate::commands::orchestrate::args::OrchestrateArgs;
use crate::commands::plan::args::PlanArgs;

/// A command other than the two workflows.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Set up a project: .gitignore, build.sh and an example query
    Init,
    /// Write the files that git tracks to agent-config/codeRollup.txt
    Rollup(RollupArgs),
    /// List the available models, and what each still needs
    Models {
        /// Write the entry of this model, one that is known to the program but not built in, into
        /// agent-config/models.json
        #[arg(long, value_name = "NAME")]
        add: Option<String>,
    },
    /// List the runs, or show one step by step
    Log {
        /// Run to show: its folder, the beginning of its name, a time of today (14:05), last, or -2 for
        /// the one before [default: list all runs]
        #[arg(allow_negative_numbers = true)]
        run: Option<PathBuf>,

        /// List only the last N runs
        #[arg(short = 'n', long = "number", value_name = "N", conflicts_with = "run")]
        number: Option<usize>,
    },
    /// Show what a run changed, as a unified diff
    Diff {
        /// Run, as `log` takes it [default: the last run with changes]
        #[arg(allow_negative_numbers = true)]
        run: Option<PathBuf>,

        /// Show the number of changed lines per file instead
        #[arg(long)]
        stat: bool,
    },
    /// Write an HTML report of one run, or of all runs
    Report(ReportArgs),
    /// Restore the project to its state before a run
    Undo {
        /// Run, as `log` takes it [default: the last run with changes]
        #[arg(allow_negative_numbers = true)]
        run: Option<PathBuf>,
    },
    /// Restore a consistent tree after a run was killed
    Recover,
    /// Run the pipeline on a sample project with recorded replies
    Demo {
        /// New or empty directory [default: code-commit-demo]
        directory: Option<PathBuf>,

        /// Show a recorded chat with the agent of `chat` instead
        #[arg(long)]
        chat: bool,
    },
    /// Run an agent with tools until an independent audit passes
    Dev(DevArgs),
    /// Plan a request with local models, and work on it step by step
    Plan(PlanArgs),
    /// Have remote agents implement, review and fix a task over MCP
    Orchestrate(OrchestrateArgs),
    /// Ask an MCP server for its tools, or call one
    Mcp(McpArgs),
    /// Talk with an agent in a full-screen terminal
    Chat(ChatArgs),
    /// Print a shell completion script
    Completions {
        /// Shell to complete for
        shell: clap_complete::Shell,
    },
    /// Print the manual page of the program or of a command
    Man {
        /// Command to describe, such as `mcp call` [default: the whole program]
        command: Vec<String>,
    },
}

/// Arguments of `rollup`.
#[derive(Debug, Clone, Args)]
pub struct RollupArgs {
    /// Include lock files; secrets, logs and binary files are always left out
    #[arg(long)]
    pub all: bool,

    /// Include only these files and directories [default: all]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// Suggest files to leave out if the rollup has more tokens than this
    #[arg(long, value_name = "TOKENS")]
    pub budget: Option<u64>,
}

/// Arguments of `report`.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// Run, as `log` takes it [default: the last run]
    #[arg(allow_negative_numbers = true)]
    pub run: Option<PathBuf>,

    /// Report on all runs: success, repairs and cost per day
    #[arg(long, conflicts_with = "run")]
    pub all: bool,

    /// HTML file to write [default: report.html in the run's folder or in logs]
    #[arg(long = "output", value_name = "FILE")]
    pub page: Option<PathBuf>,

    /// Add a search box and buttons that copy, by a script in the page
    #[arg(long)]
    pub interactive: bool,

    /// Open the report in the browser: $BROWSER, or the system's
    #[arg(long)]
    pub open: bool,
}
