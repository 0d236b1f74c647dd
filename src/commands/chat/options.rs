//! The options of `chat`. Plain data.

use super::super::workspace::SessionChoice;
use crate::agent::tools::place::Outside;
use crate::commands::talk::slash::Slash;
use crate::exec::hosts::AllowedHost;
use crate::exec::sandbox::SandboxMode;
use crate::record::mode::Mode;
use crate::run::context::ModelChoice;

/// The command's name.
pub(crate) const NAME: &str = "chat";

/// Its slash commands.
pub(crate) const COMMANDS: &[Slash] = &[
    Slash::Clear,
    Slash::Command,
    Slash::Compact,
    Slash::Copy,
    Slash::Cost,
    Slash::Diff,
    Slash::Exit,
    Slash::Help,
    Slash::Init,
    Slash::Login,
    Slash::Logout,
    Slash::Mode,
    Slash::Model,
    Slash::Permissions,
    Slash::Resume,
    Slash::Transcript,
    Slash::Undo,
];

/// The options of the agent at the terminal.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatOptions {
    /// The first request at the terminal.
    pub first: Option<String>,
    /// The only request, without a terminal.
    pub request: Option<String>,
    /// The session to work in.
    pub session: SessionChoice,
    /// The initial permission mode, if given.
    pub mode: Option<Mode>,
    /// The choice of a model.
    pub choice: ModelChoice,
    /// The account that pays, where the user has chosen one in the session.
    pub account: Option<String>,
    /// The extent to which commands are sandboxed.
    pub sandbox: SandboxMode,
    /// The hosts that commands may reach in a strict sandbox.
    pub hosts: Vec<AllowedHost>,
    /// True if it may leave the project.
    pub outside: Outside,
}

impl ChatOptions {
    /// Returns `true` if no user takes part.
    pub(crate) fn is_headless(&self) -> bool {
        self.request.is_some() || self.choice.replay.is_some()
    }
}
