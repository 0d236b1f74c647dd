//! A problem that a tool reports in the output of a build. Plain data.

use serde::{Deserialize, Serialize};

/// A distinct problem in a build's output.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Finding {
    /// The file, relative to the project's root if it is in the project; null if the tool names none.
    pub file: Option<String>,
    /// The line of the file, counted from 1.
    pub line: Option<usize>,
    /// The tool, such as `rustc`; `build.sh` if it is not known.
    pub tool: String,
    /// The message on one line, without durations, addresses and other numbers that differ from build to build.
    pub message: String,
}
