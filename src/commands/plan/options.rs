//! The options of `plan`. Plain data.

use std::path::PathBuf;

use super::args::StepGate;
use crate::agent::tools::place::Outside;
use crate::commands::cli::replies::OnFailure;
use crate::commands::workspace::SessionChoice;
use crate::edit::Allowances;
use crate::exec::hosts::AllowedHost;
use crate::run::builds::BuildOptions;
use crate::run::context::ModelChoice;

/// The options of the plan agent.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanOptions {
    /// The request. A blank one continues the existing plan; `None` asks the user at the terminal.
    pub request: Option<String>,
    /// Stops once the plan has been made.
    pub plan_only: bool,
    /// The session to work in.
    pub session: SessionChoice,
    /// The path of the plan document in the project; `None` keeps it in the session's folder.
    pub plan_file: Option<PathBuf>,
    /// The models to use, or the recorded run to replay.
    pub choice: ModelChoice,
    /// Allows everything without asking.
    pub yes: bool,
    /// Pulls models that Ollama does not have.
    pub pull: bool,
    /// The gate that a step must pass.
    pub gate: StepGate,
    /// Build options.
    pub build: BuildOptions,
    /// The hosts that builds and commands may reach in a strict sandbox.
    pub hosts: Vec<AllowedHost>,
    /// The policy for a failed step's changes: keep or revert.
    pub on_failure: OnFailure,
    /// Access to files outside the project.
    pub outside: Outside,
    /// Content that the agent may drop from the files it replaces.
    pub allowances: Allowances,
}
