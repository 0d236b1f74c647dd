//! The reason that a build of the verdict failed, by what tools print. Pure.

use std::sync::LazyLock;

use regex::Regex;

use super::table;
use crate::exec::build_script::BuildStatus;
use crate::secret::escapes::without_escapes;

/// The end of a build of the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It passed.
    Passed,
    /// A test failed.
    TestFailed,
    /// It failed for another reason: a lint, or one that is not known.
    Failed,
    /// It was not built, or something was missing, so that nothing was tested.
    NotBuilt,
}

impl Ending {
    /// Tells why a build ended as it did. What lints find in `tests`, which another state of the code need not fit, was
    /// not built rather than wrong.
    pub fn of(status: BuildStatus, output: &str, tests: &[&str]) -> Self {
        static KINDS: LazyLock<[Regex; 5]> =
            LazyLock::new(|| ["failed", "lints", "unbuilt", "rest", "words"].map(table::any));
        let [failed, lints, unbuilt, rest, words] = &*KINDS;
        match status {
            BuildStatus::Exited(0) => return Self::Passed,
            BuildStatus::TimedOut(_) => return Self::NotBuilt,
            _ => {}
        }
        let output = without_escapes(output);
        let has = |pattern: &Regex| output.lines().any(|line| pattern.is_match(line));
        let (lints, others): (Vec<&str>, Vec<_>) =
            output.lines().partition(|line| lints.is_match(line));
        let names_test = |line: &&str| tests.iter().any(|test| line.contains(test));
        let mut placed = lints.iter().filter(|line| line.contains(':')).peekable();
        let are_in_tests = placed.peek().is_some() && placed.all(names_test);
        if has(failed) {
            Self::TestFailed
        } else if are_in_tests || others.iter().any(|line| unbuilt.is_match(line)) {
            Self::NotBuilt
        } else if !lints.is_empty() {
            Self::Failed
        } else if has(rest) {
            Self::NotBuilt
        } else if has(words) {
            Self::TestFailed
        } else {
            Self::Failed
        }
    }
}
