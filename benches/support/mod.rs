//! Git in a clone, shared by the benchmarks.

use std::path::Path;
use std::process::Command;

/// Runs git in a clone, and returns its output; `None` if it fails.
pub fn git(clone: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    let mut git = Command::new("git");
    let output = git.args(arguments).current_dir(clone).output().unwrap();
    output.status.success().then_some(output.stdout)
}

/// Runs git in a clone, and returns its output as text.
pub fn git_text(clone: &Path, arguments: &[&str]) -> String {
    let output = git(clone, arguments).unwrap();
    String::from_utf8_lossy(&output).into_owned()
}
