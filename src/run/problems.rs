//! Reasons that a run cannot start from the project's current state, or from where another one ended. Plain data.

use crate::model::catalogue;
use crate::project::LOGS;
use crate::record::run_files::BASELINE;
use crate::sys::numbers::grouped;

/// Errors from the baseline build.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum BaselineProblem {
    /// The build fails.
    #[error("`build.sh` fails on the project as it is: {status}{end}")]
    #[diagnostic(
        code("/baseline"),
        help("fix the project, or build.sh; all of its output is in `{LOGS}/{BASELINE}`")
    )]
    Fails { status: String, end: String },
    /// The build changes the files that it is judged by.
    #[error("on the project as it is, {0}")]
    #[diagnostic(
        code("/baseline"),
        help(
            "restore them, and let build.sh leave them alone; its output is in `{LOGS}/{BASELINE}`"
        )
    )]
    ChangesGate(String),
}

/// Errors from resuming a run.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ResumeProblem {
    /// The run asked for something else.
    #[error("`{0}` is not a run that asked for {1}")]
    #[diagnostic(code("/usage"), help("`code-commit log` lists the runs"))]
    OtherWorkflow(String, &'static str),
    /// The inputs that the run sent differ from the current ones.
    #[error("the query, the code base or the prompt is not what `{0}` sent")]
    #[diagnostic(
        code("/stale"),
        help("put them back as they were then, or start a new run without `--resume`")
    )]
    OtherInputs(String),
    /// The run was successful.
    #[error("there is nothing to resume: `{0}` ended as done")]
    #[diagnostic(code("/usage"), help("`code-commit log` lists the runs"))]
    Done(String),
    /// The run has made several attempts.
    #[error("`{0}` has made several attempts at once, which cannot be gone on with")]
    #[diagnostic(
        code("/usage"),
        help("`--replay {0}` makes it again, without cost; or start a new run")
    )]
    Attempts(String),
    /// The query sent by the run is not recorded.
    #[error("`{0}` does not hold the query that it sent")]
    #[diagnostic(help("start a new run"))]
    NoQuery(String),
    /// The files are neither as they were before the run nor as it left them.
    #[error("the files are neither as they were before `{folder}` nor as it left them: {}", .files.join(", "))]
    #[diagnostic(
        code("/stale"),
        help(
            "put these files back as they were then, or all of them by `code-commit undo {folder}`; `--allow-stale` resumes on the files as they are; or start a new run"
        )
    )]
    OtherTree { folder: String, files: Vec<String> },
}

/// A prompt does not fit the model's context window.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error(
    "the next prompt does not fit the context window of `{model}`: about {} tokens, and the window has {}",
    grouped(*.prompt_tokens),
    grouped(*.window)
)]
#[diagnostic(
    code("build-failed/window"),
    help(
        "leave files out of the rollup, let build.sh print less, or name a model with a larger window for repairs (one of Ollama's is loaded with its entry's `numCtx`)"
    )
)]
pub struct DoesNotFit {
    /// The model to be asked for the repair.
    pub model: String,
    /// The prompt's size, in tokens.
    pub prompt_tokens: u64,
    /// The context window, in tokens.
    pub window: u64,
}

/// The requested model is not in the table.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("there is no model `{name}`; known: {known}")]
#[diagnostic(code("usage"), help("`code-commit models{}", ways_to(name)))]
pub struct UnknownModel {
    /// The requested name.
    pub name: String,
    /// The names of the known models.
    pub known: String,
}

/// The rest of the hint on how to add the model.
fn ways_to(name: &str) -> String {
    match catalogue::known(name) {
        Some(known) if known.entry.is_some() => format!(" --add {name}` adds it"),
        _ => "` shows them; `agent-config/models.json` adds others".to_owned(),
    }
}
