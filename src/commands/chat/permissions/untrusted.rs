//! Permissions that untrusted files of a project would grant. Pure.

use super::file::{FILE, PermissionFile};
use crate::commands::chat::commands::CommandFile;

/// Permissions that untrusted files of a project would grant.
#[derive(Debug, Default)]
pub struct Untrusted {
    /// Description of the permissions, line by line.
    pub lines: Vec<String>,
    /// Paths of the files in backticks, relative to the root.
    pub paths: Vec<String>,
    /// The command files among them.
    pub commands: Vec<CommandFile>,
}

impl Untrusted {
    /// Finds the permissions that would take effect if the files were trusted.
    pub fn find(permissions: &PermissionFile, commands: &[CommandFile]) -> Self {
        let mut found = Self::default();
        let withheld = permissions.withheld();
        if !withheld.is_empty() {
            found.add(FILE, "would allow", withheld);
        }
        let would_allow = permissions.as_trusted();
        let would_run = |command: &String| would_allow.allows_command(command);
        let untrusted = commands.iter();
        for command in untrusted.filter(|command| !permissions.trusts(command)) {
            let mut run = command.commands();
            run.retain(would_run);
            if !run.is_empty()
                && let Some((path, _)) = command.source()
            {
                found.add(path, "would run", run);
                found.commands.push(command.clone());
            }
        }
        found
    }

    /// Adds a file with what it would allow or run.
    pub fn add(&mut self, path: &str, would: &str, what: Vec<String>) {
        self.lines.push(format!("`{path}` {would} without asking:"));
        self.lines
            .extend(what.into_iter().map(|what| format!("  {what}")));
        self.paths.push(format!("`{path}`"));
    }

    /// Returns a one-line warning for headless runs; `None` if everything is trusted.
    pub fn warning(&self) -> Option<String> {
        let paths = self.paths.join(", ");
        (!paths.is_empty()).then(|| {
            format!(
                "this folder is not trusted, and `always` counts as `ask` in {paths}; `code-commit chat trust` shows what \
                 would be allowed"
            )
        })
    }
}
