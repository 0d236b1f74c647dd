//! The options of `plan`. Plain data.

use std::path::PathBuf;

use super::args::StepGate;
use crate::agent::tools::place::Outside;
use crate::commands::cli::replies::OnFailure;
use crate::commands::workspace::SessionChoice;
use crate::exec::hosts::AllowedHost;
use crate::run::builds::BuildOptions;
use crate::run::context::ModelChoice;

/// The options of the plan agent.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanOptions {
    /// The request. A blank one goes on with the plan; `None` asks the user at the terminal.
    pub request: Option<String>,
    /// Stops once the plan is made.
    pub plan_only: bool,
    /// The session to work in.
    pub session: SessionChoice,
    /// The document in the project, if it is to be there.
    pub plan_file: Option<PathBuf>,
    /// The choice of models, or of a recorded run.
    pub choice: ModelChoice,
    /// Allows everything without asking.
    pub yes: bool,
    /// Pulls missing models.
    pub pull: bool,
    /// The gate that a step must pass.
    pub gate: StepGate,
    /// The options of builds.
    pub build: BuildOptions,
    /// The hosts that builds and commands may reach in a strict sandbox.
    pub hosts: Vec<AllowedHost>,
    /// The fate of a failed step's changes.
    pub on_failure: OnFailure,
    /// Access to files outside the project.
    pub outside: Outside,
}
