//! The one place that starts git: to list a project's files, and to put the demo's into an index.
//!
//! Guarantees that git works on the repository of the directory that it is started in.

use std::path::Path;
use std::process::{Command, Stdio};

/// Set in hooks and in `rebase --exec`: they would make git work on another repository.
const VARIABLES: [&str; 5] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
];

/// A git command in `directory`, without anything to read.
#[must_use]
pub fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut git = Command::new("git");
    git.args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null());
    for variable in VARIABLES {
        git.env_remove(variable);
    }
    git
}
