//! The commands.

use clap::Subcommand;
use clap_complete::Shell;

use super::attest::{AttestArgs, VerifyArgs};
use super::chat::args::ChatArgs;
use super::context::ContextArgs;
use super::demo::DemoArgs;
use super::dev::args::DevArgs;
use super::diff::DiffArgs;
use super::fleet::args::FleetArgs;
use super::log::LogArgs;
use super::mcp::McpArgs;
use super::models::ModelsArgs;
use super::orchestrate::args::OrchestrateArgs;
use super::plan::args::PlanArgs;
use super::report::command::ReportArgs;
use super::rollup::RollupArgs;
use super::undo::UndoArgs;

/// A command other than the two workflows.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Set up a project: .gitignore, build.sh and an example query
    Init,
    /// Write the files that git tracks to agent-config/codeRollup.txt
    Rollup(RollupArgs),
    /// Show which files a query is about
    Context(ContextArgs),
    /// List the available models, and what each still needs
    Models(ModelsArgs),
    /// List the runs, or show one step by step
    Log(LogArgs),
    /// Show what a run changed, as a unified diff
    Diff(DiffArgs),
    /// Write an HTML report of one run, or of all runs
    Report(ReportArgs),
    /// Write what is recorded of a run as an in-toto statement
    Attest(AttestArgs),
    /// Check a statement: make it again from the run's recorded replies
    Verify(VerifyArgs),
    /// Restore the project to its state before a run
    Undo(UndoArgs),
    /// Restore a consistent tree after a run was killed
    Recover,
    /// Run the pipeline on a sample project with recorded replies
    Demo(DemoArgs),
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
    /// Do many tasks from a list, each in a clone of its own
    Fleet(FleetArgs),
    /// Print a shell completion script
    Completions {
        /// Shell to complete for
        shell: Shell,
    },
    /// Print the manual page of the program or of a command
    Man {
        /// Command to describe, such as `mcp call` [default: the whole program]
        command: Vec<String>,
    },
}
