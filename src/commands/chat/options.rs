//! What `chat` is asked to do. Plain data.

use super::super::workspace::SessionChoice;
use crate::agent::tools::place::Outside;
use crate::exec::hosts::AllowedHost;
use crate::exec::sandbox::SandboxMode;
use crate::record::mode::Mode;
use crate::run::context::ModelChoice;

/// The workflow's name.
pub(crate) const NAME: &str = "chat";
/// How an agent at the terminal is to work.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatOptions {
    /// The first request at the terminal.
    pub first: Option<String>,
    /// The only request, without a terminal.
    pub request: Option<String>,
    /// In which session.
    pub session: SessionChoice,
    /// How freely it may act at first, where that is said.
    pub mode: Option<Mode>,
    /// Which model is to be asked.
    pub choice: ModelChoice,
    /// The account that pays, where the user has chosen one in the session.
    pub account: Option<String>,
    /// The extent to which commands are sandboxed.
    pub sandbox: SandboxMode,
    /// What commands may reach, in a strict sandbox.
    pub hosts: Vec<AllowedHost>,
    /// True if it may leave the project.
    pub outside: Outside,
}

impl ChatOptions {
    /// Returns whether nobody is talked to.
    pub(crate) fn is_headless(&self) -> bool {
        self.request.is_some() || self.choice.replay.is_some()
    }
}
