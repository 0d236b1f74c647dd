//! The environment of builds, commands and servers: this program's own, with some variables hidden and some added.
//!
//! Pure except for [`apply`](ChildEnv::apply), which modifies a command. Guarantees that git, whichever command starts
//! it, runs nothing that came with a clone.

use std::ffi::OsString;
use std::process::Command;

use crate::sys::environment::Environment;
use crate::sys::git;

/// Differences between a command's environment and this program's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChildEnv {
    hidden: Vec<OsString>,
    added: Vec<(String, String)>,
}

impl ChildEnv {
    /// Creates the environment of a command without the variables in `hidden`; `environment` is this program's.
    pub fn new(environment: &Environment, hidden: Vec<OsString>) -> Self {
        Self {
            hidden,
            added: git::safe_variables(environment),
        }
    }

    /// Applies the differences to a command that is about to be started.
    pub fn apply(&self, command: &mut Command) {
        for variable in &self.hidden {
            command.env_remove(variable);
        }
        command.envs(self.added.iter().map(|(name, value)| (name, value)));
    }
}
