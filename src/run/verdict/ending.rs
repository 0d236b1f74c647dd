//! The cause of a failed build of the verdict, judging by the output of its tools. Pure.

use std::sync::LazyLock;

use regex::Regex;

use super::table;
use crate::exec::build_script::BuildStatus;
use crate::secret::escapes::without_escapes;

/// The outcome of one of the verdict's builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The build passed.
    Passed,
    /// A test failed.
    TestFailed,
    /// Failed for another reason, such as a lint.
    Failed,
    /// Nothing was tested, because the build failed earlier.
    NotBuilt,
}

impl Ending {
    /// Classifies the end of a build. Findings of lints in `tests`, which need not fit another state of the code, count
    /// as not built.
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
