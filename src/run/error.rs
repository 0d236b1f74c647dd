//! Errors from preparing, resuming and judging a run. Plain data.

use std::path::PathBuf;

use crate::exec::sandbox::SandboxProblem;
use crate::model::catalogue;
use crate::project::repository::MEND_REPOSITORY;
use crate::project::{LOGS, ProjectProblem};
use crate::record::run_files::{BASELINE, UNAPPLIED};
use crate::secret::credentials::Finding;
use crate::sys::files::PathError;
use crate::sys::numbers::grouped;
use crate::sys::text::{self, escaped, first_lines};

/// Maximum number of findings that are listed individually.
const LISTED: usize = 20;
/// Maximum number of runs named.
const NAMED: usize = 10;

/// Errors from preparing, resuming and judging a run.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum RunError {
    /// The requested sandbox is not available.
    #[error("builds and commands cannot be sandboxed strictly: {0}")]
    #[diagnostic(
        code("/sandbox"),
        help(
            "install bubblewrap (`bwrap`) and allow it to make user namespaces, or use `--sandbox auto`; `models --try` needs it"
        )
    )]
    NotSandboxed(SandboxProblem),
    /// The run would send likely credentials.
    #[error("what looks like credentials would be sent:{}", listed(.0.iter().map(Finding::to_string)))]
    #[diagnostic(
        code("/credentials-found"),
        help("remove them, or pass `--allow-secrets` (the project's own keys are never sent)")
    )]
    SecretsFound(Vec<Finding>),
    /// Files differ from the last commit, or are not in git's index.
    #[error("git sees changes in the project:{}", listed(.0.iter().map(|file| escaped(file))))]
    #[diagnostic(
        code("/not-clean"),
        help(
            "commit or stash them, or name them in `.gitignore`, since your own `core.excludesFile` does not count; `code-commit undo` takes a killed run's edits back; if `git status` has just listed none of them, run again; or leave out `--require-clean`, `--ci` and `require_clean` in `.code-commit.json`"
        )
    )]
    NotClean(Vec<String>),
    /// The index cannot be read, so it is not known whether the project is clean.
    #[error(transparent)]
    #[diagnostic(code("/not-clean"), forward(0))]
    CleanUnknown(ProjectProblem),
    /// git cannot list the staged files.
    #[error("git cannot say what is staged: {0}")]
    #[diagnostic(
        code("/not-clean"),
        help("make `git diff --cached` work in the project, or run without `--require-clean`")
    )]
    StagedUnknown(String),
    /// The baseline build fails.
    #[error("`build.sh` fails on the project as it is: {status}{end}")]
    #[diagnostic(
        code("/baseline"),
        help("fix the project, or build.sh; all of its output is in `{LOGS}/{BASELINE}`")
    )]
    BaselineFails { status: String, end: String },
    /// The baseline build changes the files that it is judged by.
    #[error("on the project as it is, {0}")]
    #[diagnostic(
        code("/baseline"),
        help(
            "restore them, and let build.sh leave them alone; its output is in `{LOGS}/{BASELINE}`"
        )
    )]
    BaselineChangesGate(String),
    /// The run to resume belongs to another workflow.
    #[error("`{0}` is not a run that asked for {1}")]
    #[diagnostic(code("/usage"), help("`code-commit log` lists the runs"))]
    OtherWorkflow(String, &'static str),
    /// The inputs that the run to resume sent differ from the current ones.
    #[error("the query, the code base or the prompt is not what `{0}` sent")]
    #[diagnostic(
        code("/stale"),
        help("put them back as they were then, or start a new run without `--resume`")
    )]
    OtherInputs(String),
    /// The run to resume was successful.
    #[error("there is nothing to resume: `{0}` ended as done")]
    #[diagnostic(code("/usage"), help("`code-commit log` lists the runs"))]
    NothingToResume(String),
    /// The run to resume has made several attempts.
    #[error("`{0}` has made several attempts at once, which cannot be resumed")]
    #[diagnostic(
        code("/usage"),
        help("`--replay {0}` makes it again, without cost; or start a new run")
    )]
    SeveralAttempts(String),
    /// The query that the run to resume sent is not recorded.
    #[error("`{0}` does not hold the query that it sent")]
    #[diagnostic(help("start a new run"))]
    NoQuery(String),
    /// The state before the run to resume is no longer known.
    #[error("the change as a whole cannot be judged: `{0}`, which was saved before it, is gone")]
    #[diagnostic(
        code("/stale"),
        help("restore it, or put the files back as they were then; then start a new run")
    )]
    Lost(String),
    /// The files are neither as they were before the run to resume nor as it left them.
    #[error("the files are neither as they were before `{folder}` nor as it left them: {}", .files.join(", "))]
    #[diagnostic(
        code("/stale"),
        help(
            "put these files back as they were then (`code-commit undo {folder}` takes back what the run itself has changed); `--allow-stale` resumes on the files as they are; or start a new run"
        )
    )]
    OtherTree { folder: String, files: Vec<String> },
    /// The requested model is not in the table.
    #[error("there is no model `{name}`; known: {known}")]
    #[diagnostic(code("usage"), help("`code-commit models{}", ways_to(name)))]
    UnknownModel { name: String, known: String },
    /// The vendor no longer serves the requested model.
    #[error("the model `{name}` is retired: `{successor}` is its successor")]
    #[diagnostic(
        code("usage"),
        help("`--model {successor}` asks it, and at a prompt `/model {successor}`")
    )]
    RetiredModel {
        /// The requested name.
        name: String,
        /// The vendor's replacement for it.
        successor: &'static str,
    },
    /// The files that git tracks cannot be determined.
    #[error("git does not list the project's files: {0}")]
    #[diagnostic(transparent)]
    NoIndex(ProjectProblem),
    /// The staged files cannot be read.
    #[error("what is staged cannot be read: {0}")]
    #[diagnostic(code("not-ready"), help("{MEND_REPOSITORY}"))]
    StagedUnreadable(String),
    /// A path given by the user leads out of the project, or git tracks nothing there.
    #[error("`{}` names no tracked file", .0.display())]
    #[diagnostic(
        code("usage"),
        help("name tracked files or their directories; `git add` adds new ones")
    )]
    NotTracked(PathBuf),
    /// A file to include is one that is left out of the code base.
    #[error("`{path}` cannot be included: it is left out of the code base ({reason})")]
    #[diagnostic(
        code("usage"),
        help(
            "leave it out of `--include`{}",
            if *reason == "with credentials" { ", or pass `--allow-secrets`" } else { "" }
        )
    )]
    NotSent { path: String, reason: &'static str },
    /// Files are named, but all files are sent.
    #[error("`--include` and `--exclude` choose from nothing without `--context`")]
    #[diagnostic(
        code("usage"),
        help("add `--context N`, or `contextTokens` to the model's entry")
    )]
    NoLimit,
    /// All files of the code base were left out.
    #[error("there is nothing to roll up; {0} left out")]
    #[diagnostic(
        code("not-ready"),
        help("`git add` text files, or name other paths; an existing rollup was left as it is")
    )]
    NothingToRollUp(String),
    /// The build passed, but the old tests fail on the new code.
    #[error(
        "the build passed, but what was tested before does not hold: with {files} as before, it fails"
    )]
    #[diagnostic(
        code("gate-weakened"),
        help("see `{log}`; if a test is to change, name it or its file in the query")
    )]
    GateWeakened { files: String, log: String },
    /// The build passed, but the new tests pass on the old code.
    #[error("the build passed, but the new tests prove nothing: they pass without the change, too")]
    #[diagnostic(
        code("not-proven"),
        help("see `{log}`; ask for tests that fail without the change")
    )]
    NotProven { log: String },
    /// Files that a run changed in a scratch tree were changed in the project in the meantime.
    #[error("nothing was applied: changed while the run went on: {}", quoted(.changed))]
    #[diagnostic(
        code("/changed-meanwhile/never"),
        help("your files are unchanged; `git apply` takes the run's `{folder}/{UNAPPLIED}`")
    )]
    ProjectChanged {
        changed: Vec<String>,
        folder: String,
    },
    /// A build has replaced a file of a reply in the scratch tree.
    #[error("nothing was applied: the build has made `{path}` something other than a text file")]
    #[diagnostic(
        code("/disk/never"),
        help(
            "have the build leave the reply's files in place; `git apply` takes what the reply made of them, `{folder}/{UNAPPLIED}`"
        )
    )]
    NoText { path: String, folder: String },
    /// No folder of a run has that name.
    #[error("there is no run at `{}`", .0.display())]
    #[diagnostic(
        code("usage"),
        help(
            "name a folder in `logs` by its path, its name or the beginning of its name; `14:05` is a run of today, `last` the last one, and `-2` the one before it"
        )
    )]
    NoSuchRun(PathBuf),
    /// The given name is a prefix of several runs'.
    #[error("`{named}` may be any of {} runs: {}", .names.len(), first(.names))]
    #[diagnostic(code("usage"), help("give more of its name"))]
    AmbiguousRun { named: String, names: Vec<String> },
    /// No run is suitable.
    #[error("no run in `logs` has {0}")]
    #[diagnostic(code("usage"), help("`code-commit log` lists the runs"))]
    NoRun(&'static str),
    /// The runs cannot be listed.
    #[error(transparent)]
    #[diagnostic(help("make it readable"))]
    RunsUnreadable(#[from] PathError),
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

/// Returns the rest of the hint on how to add the model.
fn ways_to(name: &str) -> String {
    match catalogue::known(name) {
        Some(known) if known.entry.is_some() => format!(" --add {name}` adds it"),
        _ => "` shows them, and at a prompt `/model`; `agent-config/models.json` and `~/.agent/models.json` add others"
            .to_owned(),
    }
}

/// Formats findings or files as a list, cut off after the first `LISTED`.
pub(super) fn listed(all: impl Iterator<Item = String>) -> String {
    let lines = first_lines(all, LISTED).into_iter();
    lines.map(|line| format!("\n    {line}")).collect()
}

/// Formats paths as a phrase.
pub(super) fn quoted(paths: &[String]) -> String {
    let paths = paths.iter().map(|path| format!("`{}`", escaped(path)));
    paths.collect::<Vec<_>>().join(", ")
}

/// Names the first runs, as part of a sentence.
fn first(names: &[String]) -> String {
    text::listed(names.iter().map(|name| format!("`{name}`")), NAMED)
}
