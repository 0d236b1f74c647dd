//! The commands, and their properties.

use std::path::PathBuf;

use clap::Subcommand;
use clap_complete::Shell;

use super::attest::{AttestArgs, VerifyArgs};
use super::chat::args::ChatArgs;
use super::cli::agent::AgentArgs;
use super::context::ContextArgs;
use super::demo::DemoArgs;
use super::dev::args::DevArgs;
use super::diff::DiffArgs;
use super::fleet::args::FleetCommand;
use super::log::LogArgs;
use super::mcp::McpCommand;
use super::models::ModelsArgs;
use super::orchestrate::args::OrchestrateArgs;
use super::plan::args::PlanArgs;
use super::report::command::ReportArgs;
use super::rollup::RollupArgs;
use super::undo::UndoArgs;

/// A command other than the two workflows.
#[derive(Debug, Clone, Subcommand)]
// Only the arguments of the requested command are built. Structs of arguments have no doc comments, which would replace
// the descriptions below.
#[command(defer = true)]
pub enum Command {
    /// Set up a project: .gitignore, build.sh and an example query
    Init,
    /// Write the files that git tracks to agent-config/codeRollup.txt
    Rollup(RollupArgs),
    /// Show which files a query is about
    Context(ContextArgs),
    /// List the available models, and what each still lacks
    Models(ModelsArgs),
    /// List the runs, or show one step by step
    Log(LogArgs),
    /// Show what a run changed, as a unified diff
    Diff(DiffArgs),
    /// Write an HTML report of one run, or of all runs
    Report(ReportArgs),
    /// Write what is recorded of a run as an in-toto statement
    Attest(AttestArgs),
    /// Verify a statement by recreating it from the run's recorded replies
    Verify(VerifyArgs),
    /// Restore the project to its state before a run
    Undo(UndoArgs),
    /// Restore a consistent tree after a run was killed
    Recover,
    /// Run the pipeline on a sample project with recorded replies
    Demo(DemoArgs),
    /// Run an agent with tools until an independent audit passes
    Dev(DevArgs),
    /// Plan a request, and work on it step by step
    Plan(PlanArgs),
    /// Have remote agents carry out a task over MCP: implement, review and fix
    Orchestrate(OrchestrateArgs),
    /// Ask an MCP server for its tools, or call one
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Talk to an agent in a full-screen terminal
    Chat(ChatArgs),
    /// Run many tasks from a list, each in a separate clone
    #[command(subcommand)]
    Fleet(FleetCommand),
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

impl Command {
    /// Returns the flags common to all agents, if the command starts an agent that has them.
    pub fn agent(&self) -> Option<&AgentArgs> {
        match self {
            Self::Dev(DevArgs { agent, .. })
            | Self::Plan(PlanArgs { agent, .. })
            | Self::Chat(ChatArgs { agent, .. }) => Some(agent),
            _ => None,
        }
    }

    /// Returns the values that may name a run, or be the path of its folder.
    pub fn named_runs(&mut self) -> Vec<&mut PathBuf> {
        let run = match self {
            Self::Orchestrate(arguments) => {
                let others = [&mut arguments.resume, &mut arguments.publish_only];
                let runs = arguments.replay.iter_mut();
                return runs.chain(others.into_iter().flatten()).collect();
            }
            Self::Dev(DevArgs { agent, .. })
            | Self::Plan(PlanArgs { agent, .. })
            | Self::Chat(ChatArgs { agent, .. }) => &mut agent.replay,
            Self::Log(LogArgs { run, .. })
            | Self::Attest(AttestArgs { run, .. })
            | Self::Diff(DiffArgs { run, .. })
            | Self::Report(ReportArgs { run, .. })
            | Self::Undo(UndoArgs { run }) => run,
            _ => return Vec::new(),
        };
        run.iter_mut().collect()
    }

    /// Returns the paths of files, relative to the current directory.
    pub fn paths(&mut self) -> Vec<&mut PathBuf> {
        match self {
            Self::Plan(plan) => plan.plan_file.iter_mut().collect(),
            Self::Attest(attest) => {
                let files = attest.output_file.iter_mut();
                files.chain(&mut attest.sign).collect()
            }
            Self::Verify(verify) => {
                let statement = std::iter::once(&mut verify.statement);
                statement.chain(&mut verify.allowed_signers).collect()
            }
            Self::Report(report) => report.page.iter_mut().collect(),
            Self::Fleet(fleet) => fleet.paths(),
            _ => Vec::new(),
        }
    }

    /// Returns the paths that choose files of the code base, relative to the current directory.
    pub fn code_paths(&mut self) -> Vec<&mut PathBuf> {
        match self {
            Self::Rollup(rollup) => rollup.paths.iter_mut().collect(),
            Self::Context(context) => context.chosen.paths().collect(),
            _ => Vec::new(),
        }
    }

    /// Returns `true` if the command records a run.
    pub fn has_run(&self) -> bool {
        self.agent().is_some() || matches!(self, Self::Orchestrate(_) | Self::Undo(_))
    }

    /// Returns `true` if the command needs no project.
    pub fn is_without_project(&self) -> bool {
        matches!(
            self,
            Self::Demo(_)
                | Self::Dev(DevArgs {
                    command: Some(_),
                    ..
                })
                | Self::Mcp(_)
                | Self::Fleet(_)
                | Self::Completions { .. }
                | Self::Man { .. }
        )
    }

    /// Returns `true` if the command reads variables from `.env`, since it talks to servers that no project file names.
    pub fn reads_env_file(&self) -> bool {
        matches!(self, Self::Orchestrate(_) | Self::Mcp(_))
    }

    /// Returns `true` if standard output repeats what standard error shows.
    pub fn mirrors(&self) -> bool {
        matches!(self, Self::Orchestrate(arguments) if !arguments.headless)
    }
}
