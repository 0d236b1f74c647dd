//! The environment of builds, commands and servers: this program's own, with some variables left out and some added.
//!
//! Pure but for the command that it is applied to. Guarantees that git, whichever command starts it, runs nothing that
//! a clone has brought.

use std::ffi::OsString;
use std::process::Command;

use crate::sys::environment::Environment;
use crate::sys::git;

/// The differences between a command's environment and this program's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChildEnv {
    hidden: Vec<OsString>,
    added: Vec<(String, String)>,
}

impl ChildEnv {
    /// The environment of a command without the variables in `hidden`; `environment` is this program's.
    #[must_use]
    pub fn new(environment: &Environment, hidden: Vec<OsString>) -> Self {
        Self {
            hidden,
            added: git::safe_variables(environment),
        }
    }

    /// Has the command started in it.
    pub fn apply(&self, command: &mut Command) {
        for variable in &self.hidden {
            command.env_remove(variable);
        }
        command.envs(self.added.iter().map(|(name, value)| (name, value)));
    }
}
