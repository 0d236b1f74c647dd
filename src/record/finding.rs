//! A problem that a tool reports in the output of a build, or a model in a consistency report. Plain data.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

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

/// The severity of a problem, most severe first.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    ValueEnum,
    IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Severity {
    /// Something is wrong
    Error,
    /// Something may be wrong
    Warning,
    /// A suggestion or a comment.
    #[value(skip)]
    Note,
}

impl Severity {
    /// All severities, most severe first.
    pub const ALL: [Self; 3] = [Self::Error, Self::Warning, Self::Note];

    /// Returns the mark that distinguishes errors from other problems without colour.
    pub fn mark(self) -> &'static str {
        if self == Self::Error { "\u{2717}" } else { "!" }
    }
}

/// A finding of a consistency report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportFinding {
    /// The file of the code base that was sent; null if the finding has no place that was verified.
    pub file: Option<String>,
    /// The line with the quoted text, counted from 1; null if the finding is about the file, or several lines have it.
    pub line: Option<usize>,
    /// The line that the model quotes; empty if it quotes none.
    pub quote: String,
    /// The severity, as judged by the model.
    pub severity: Severity,
    /// A summary on one line.
    pub title: String,
    /// The explanation.
    pub message: String,
}
