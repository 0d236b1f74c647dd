//! The options of `plan`. Plain data.

use std::path::PathBuf;

use super::args::StepGate;
use crate::agent::tools::place::Outside;
use crate::commands::cli::replies::OnFailure;
use crate::commands::workspace::SessionChoice;
use crate::exec::hosts::AllowedHost;
use crate::run::builds::BuildOptions;
use crate::run::context::ModelChoice;

/// How a plan is to be worked on.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanOptions {
    /// What is to be done. A blank request goes on with the plan; `None`: the user says it at the terminal.
    pub request: Option<String>,
    /// Whether to stop when the plan is made.
    pub plan_only: bool,
    /// In which session.
    pub session: SessionChoice,
    /// The document in the project, if it is to be there.
    pub plan_file: Option<PathBuf>,
    /// Which models are asked, and where replies come from.
    pub choice: ModelChoice,
    /// Whether all that is asked about is allowed.
    pub yes: bool,
    /// Whether missing models are pulled.
    pub pull: bool,
    /// What must pass for a step to be done.
    pub gate: StepGate,
    /// How it is built.
    pub build: BuildOptions,
    /// What builds and commands may reach, in a strict sandbox.
    pub hosts: Vec<AllowedHost>,
    /// What becomes of what a failed step has written.
    pub on_failure: OnFailure,
    /// Whether it may leave the project.
    pub outside: Outside,
}
