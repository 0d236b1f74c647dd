//! The record of a run: what `result.json` holds, as the contract lays it down.
//!
//! Plain data that every stage may fill in and nothing here acts on. Fields may be added; a changed
//! meaning raises [`SCHEMA`].

use std::time::Duration;

use chrono::{DateTime, FixedOffset, SecondsFormat};
use serde::{Serialize, Serializer};

/// The version of the record's meaning.
pub const SCHEMA: u32 = 1;

/// Which query of a run something belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attempt {
    /// A commit's first query.
    Initial,
    /// A commit's n-th repair, from 1 on.
    Repair(u8),
    /// The one query of a consistency report.
    Report,
}

impl Attempt {
    /// The name in `result.json`.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Repair(_) => "repair",
            Self::Report => "report",
        }
    }

    /// The number of the repair; 0 for what is none.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Repair(number) => number,
            Self::Initial | Self::Report => 0,
        }
    }
}

/// How many tokens a call took. What a vendor does not tell counts as 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// The prompt's tokens, cached ones included.
    pub input_tokens: u64,
    /// Those of the prompt's tokens that came from the vendor's cache.
    pub cached_tokens: u64,
    /// Tokens that the model thought with; billed like output.
    pub thought_tokens: u64,
    /// The answer's tokens, without the thoughts.
    pub output_tokens: u64,
}

/// Which files a reply changed; paths relative to the project's root, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct EditsRecord {
    /// Written or created.
    pub written: Vec<String>,
    /// Removed.
    pub removed: Vec<String>,
}

/// How build.sh ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BuildRecord {
    /// Its exit code; null where a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether it was ended because its time was over.
    pub timed_out: bool,
    /// How long it ran.
    pub seconds: Seconds,
    /// How far it was shut in.
    pub sandbox: SandboxRecord,
}

/// How far a build was shut in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxRecord {
    /// Not at all.
    Off,
    /// Away from keys and other processes.
    Auto,
    /// Away from the network and the rest of the disk too.
    Strict,
}

/// One query and what came of it. What did not happen is null.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AttemptRecord {
    /// `initial`, `repair` or `report`.
    pub kind: &'static str,
    /// The number of the repair, 1 to 3; else 0.
    pub number: u8,
    /// How long the model took, retries included.
    pub seconds: Seconds,
    /// The vendor's finish reason.
    pub finish: Option<String>,
    /// Tokens.
    pub usage: Option<Usage>,
    /// Files changed.
    pub edits: Option<EditsRecord>,
    /// The build that followed.
    pub build: Option<BuildRecord>,
}

impl AttemptRecord {
    /// An attempt of which nothing is known yet.
    #[must_use]
    pub fn new(attempt: Attempt) -> Self {
        Self {
            kind: attempt.kind(),
            number: attempt.number(),
            seconds: Seconds::default(),
            finish: None,
            usage: None,
            edits: None,
            build: None,
        }
    }
}

/// A section of the consistency report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SectionRecord {
    /// The title that the prompt asks for.
    pub title: &'static str,
    /// The heading's line, counted from 1; null where the section is missing.
    pub first_line: Option<usize>,
    /// The section's last line.
    pub last_line: Option<usize>,
}

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ExitRecord {
    /// The exit code.
    pub code: u8,
    /// Its name in the contract.
    pub name: &'static str,
}

/// What a run has made of the project's files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TreeState {
    /// They are as they were.
    #[default]
    Unchanged,
    /// At least one reply was applied.
    Changed,
    /// What was applied was taken back.
    PutBack,
}

/// A hint, with what has become of the project's files behind it, where that is news.
#[must_use]
pub fn hint(hint: Option<String>, tree: TreeState) -> Option<String> {
    let tree = match tree {
        TreeState::Unchanged => return hint,
        TreeState::Changed => {
            "what was applied is still there: see `git diff`; `code-commit undo` takes it back"
        }
        TreeState::PutBack => "the project is as it was before the run",
    };
    Some(hint.map_or(tree.to_owned(), |hint| format!("{hint}; {tree}")))
}

/// An error, as it was printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorRecord {
    /// The sentence.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// The whole of `result.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunRecord {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The program's version.
    pub version: &'static str,
    /// `commit`, `consistency` or `undo`.
    pub workflow: &'static str,
    /// How the run ended.
    pub exit: ExitRecord,
    /// What has become of the project's files.
    pub tree: TreeState,
    /// The model that was asked for.
    pub model: Option<String>,
    /// The version that answered, by the vendor's word.
    pub model_version: Option<String>,
    /// When the run began.
    #[serde(serialize_with = "local_time")]
    pub started: DateTime<FixedOffset>,
    /// How long it took.
    pub seconds: Seconds,
    /// The queries in their order.
    pub attempts: Vec<AttemptRecord>,
    /// The report's sections; only in a consistency report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sections: Option<Vec<SectionRecord>>,
    /// What the supervisor should look at.
    pub warnings: Vec<String>,
    /// Why the run failed.
    pub error: Option<ErrorRecord>,
}

/// A duration that is written as seconds, to the millisecond.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Seconds(pub Duration);

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64((self.0.as_secs_f64() * 1000.0).round() / 1000.0)
    }
}

fn local_time<S: Serializer>(at: &DateTime<FixedOffset>, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(&at.to_rfc3339_opts(SecondsFormat::Secs, false))
}
