//! Why a run cannot start from the project as it is, or from where another one ended. Plain data.

use crate::project::LOGS;
use crate::record::run_files::BASELINE;

/// Why a project is no base for a change.
#[derive(Debug, thiserror::Error)]
pub enum BaselineProblem {
    /// The build fails.
    #[error("`build.sh` fails on the project as it is: {status}{end}")]
    Fails {
        /// How it ended.
        status: String,
        /// The last lines of what it printed, each on a line of its own.
        end: String,
    },
    /// The build changes what it is judged by.
    #[error("on the project as it is, {0}")]
    ChangesGate(String),
}

impl BaselineProblem {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        let what = match self {
            Self::Fails { .. } => "mend the project, or build.sh",
            Self::ChangesGate(_) => "put them back, and let build.sh leave them as they are",
        };
        format!("{what}; all of its output is in `{LOGS}/{BASELINE}`")
    }
}

/// Why a run cannot be resumed.
#[derive(Debug, thiserror::Error)]
pub enum ResumeProblem {
    /// It is none that asks for a change.
    #[error("`{0}` is no run that asked for a change")]
    OtherWorkflow(String),
    /// It ended well.
    #[error("there is nothing to resume: `{0}` ended as done")]
    Done(String),
    /// What it sent is not recorded.
    #[error("`{0}` does not hold the query that it sent")]
    NoQuery(String),
    /// The files are neither as they were before the run nor as it left them.
    #[error("the files are neither as they were before `{folder}` nor as it left them: {}", .files.join(", "))]
    OtherTree {
        /// The run's folder.
        folder: String,
        /// Those that differ.
        files: Vec<String>,
    },
}

impl ResumeProblem {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::OtherWorkflow(_) | Self::Done(_) => "`code-commit log` lists the runs".to_owned(),
            Self::NoQuery(_) => "start a new run".to_owned(),
            Self::OtherTree { folder, .. } => format!(
                "put these files back as they were then, or all of them by `code-commit undo {folder}`; \
                 `--allow-stale` resumes on the files as they are; or start a new run"
            ),
        }
    }
}
