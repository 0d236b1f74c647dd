//! The branches that specialists work on, each cloned from another one. Plain data.

use strum::{EnumString, IntoStaticStr, VariantArray};

/// An agent that works on a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Specialist {
    /// Implements and fixes the task, and publishes the work.
    ClaudeCode,
    /// Reviews the work.
    Codex,
}

/// The state of the agent on a branch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BranchState {
    /// The status in the server's own words, for display.
    pub status: String,
    /// The progress.
    pub progress: BranchProgress,
    /// The agent's response, neither shortened nor redacted; empty if there is none.
    pub output: String,
}

/// The progress of the agent on a branch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BranchProgress {
    /// Working, or about to start.
    #[default]
    Running,
    /// Done.
    Succeeded,
    /// Given up, or crashed.
    Failed,
}

/// The file name of the work log in the workspace.
pub const WORKLOG: &str = "worklog.md";
/// The file name of the last review's log in the workspace.
pub const REVIEW_LOG: &str = "codex_review.log";

/// Returns the path of a file on a branch. A relative path starts at `workspace`, which has no trailing slash.
pub fn in_workspace(workspace: &str, path: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    let mut path = path;
    while let Some(rest) = path.strip_prefix("./") {
        path = rest;
    }
    format!("{workspace}/{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_lie_in_the_workspace() {
        for (path, expected) in [
            (REVIEW_LOG, "/w/codex_review.log"),
            ("./a/./b", "/w/a/./b"),
            ("././a", "/w/a"),
            ("/w/worklog.md", "/w/worklog.md"),
            ("/etc/hosts", "/etc/hosts"),
        ] {
            assert_eq!(in_workspace("/w", path), expected);
        }
    }
}
