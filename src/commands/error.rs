//! Errors of commands that no lower module defines.

#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;

use crate::edit::Rejection;
use crate::edit::error::REJECTED;
use crate::exec::process::ScriptProblem;
use crate::record::result::WarningRecord;
use crate::run::past::warnings::is_denied;
use crate::sys::text::below;

/// Errors from running a command.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub(crate) enum CommandError {
    /// The command line is invalid.
    #[error("{message}")]
    #[diagnostic(code("usage"), help("{hint}"))]
    CommandLine {
        /// The description of the mistake.
        message: String,
        /// The correct form.
        hint: String,
    },
    /// The program cannot start.
    #[error("{message}")]
    #[diagnostic(code("local-io/disk/never"), help("{hint}"))]
    CannotStart {
        /// The description of the problem.
        message: String,
        /// The remedy.
        hint: String,
    },
    /// The model to add is not in the catalogue.
    #[error("the catalogue has no model `{name}`: it has {known}")]
    #[diagnostic(
        code("usage"),
        help("write its entry into `agent-config/models.json`: docs/models.md describes the form")
    )]
    NotInCatalogue {
        /// The requested name.
        name: String,
        /// The names in the catalogue.
        known: String,
    },
    /// The model to add is already in the table.
    #[error("there is a model `{0}` already")]
    #[diagnostic(code("usage"), help("`code-commit models` shows it"))]
    ModelIsThere(String),
    /// The directory for the demo is not empty.
    #[error("`{}` already exists and is not empty", .0.display())]
    #[diagnostic(code("usage"), help("name another directory: `code-commit demo DIR`"))]
    DemoNotEmpty(PathBuf),
    /// The reply breaks the grammar or the policy, or loses code.
    #[error("{rejection}")]
    #[diagnostic(
        code("reply-rejected"),
        help("{REJECTED}{}", accepting(rejection, run)),
        forward(rejection)
    )]
    Rejected {
        /// The violations found.
        rejection: Rejection,
        /// The run's folder, relative to the root.
        run: String,
    },
    /// The reply contains no edits although some are required.
    #[error(
        "the reply is rejected: it has no edits, and `--require-edits`, or `require_edits` in `.code-commit.json`, wants some"
    )]
    #[diagnostic(
        code("reply-rejected/no-edits"),
        help("read the model's reply in the run's folder, and say in the query what to change")
    )]
    NoEdits,
    /// Repairs or builds have taken back all edits although some are required.
    #[error(
        "the change is rejected: all files that a reply named are as they were before the run, and `--require-edits`, or `require_edits` in `.code-commit.json`, wants edits"
    )]
    #[diagnostic(
        code("reply-rejected/no-edits"),
        help("read the model's replies in the run's folder, and say in the query what to change")
    )]
    NothingChanged,
    /// The change has warnings that the user denies.
    #[error(
        "the build passed, but the change has warnings that `--deny-warnings` denies:{}",
        below(warnings.iter().map(ToString::to_string))
    )]
    #[diagnostic(
        code("warnings-denied"),
        help("if the change is right, run without `--deny-warnings`, or name fewer codes")
    )]
    WarningsDenied {
        /// The warnings; at least one.
        #[related]
        warnings: Vec<DeniedWarning>,
    },
    /// The report has findings that the user denies.
    #[error("the report has {counts}, and `--fail-on {limit}` was given")]
    #[diagnostic(
        code("findings"),
        help("look at them in the report; if they are wrong, run without `--fail-on`")
    )]
    Findings {
        /// The numbers of findings, in words.
        counts: String,
        /// The lowest severity that makes the run fail.
        limit: &'static str,
    },
    /// The reply does not contain the report's findings.
    #[error("the reply does not have the report's findings: {0}")]
    #[diagnostic(
        code("reply-rejected"),
        help(
            "the report itself is written; `--cc --findings` with `--resume last` asks for its findings once more"
        )
    )]
    NoFindings(String),
    /// A file that the user has named for output cannot be written.
    #[error("the {what} cannot be written to `{}`: {why}", .path.display())]
    #[diagnostic(code("usage"), help("name another file; nothing was done"))]
    OutputFile {
        /// The output, as a noun.
        what: &'static str,
        /// The path as given.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The given project directory does not exist.
    #[error("`{}` is not a directory that can be entered: {source}", .path.display())]
    #[diagnostic(code("usage"), help("name the project's directory: `--root DIR`"))]
    NoRoot {
        /// The path as given.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The command does not exist.
    #[error("there is no command `{0}`")]
    #[diagnostic(code("usage"), help("`code-commit --help` lists them"))]
    NoSuchCommand(String),
    /// The build still fails after the last repair.
    #[error("`build.sh` still fails after {repairs} repairs: {status}")]
    #[diagnostic(
        code("build-failed"),
        help("see the build's log, `{log}`; {}", if *can_go_on { MORE_REPAIRS } else { ANEW })
    )]
    BuildFailed {
        /// The number of repairs attempted.
        repairs: u16,
        /// The exit status of the last build, in words.
        status: String,
        /// The log of the build's output, relative to the root.
        log: String,
        /// `true` if the run can be resumed.
        can_go_on: bool,
    },
    /// A search was requested, but only part of the code base is sent.
    #[error(
        "`--strategy search` and several attempts need the whole code base, and the model's entry has `contextTokens`"
    )]
    #[diagnostic(code("usage"), help("name a model without it by `--model`"))]
    SearchInPart,
    /// A search was requested, but edits of the resumed run are on disk.
    #[error("`--strategy search` needs the original files, but the run's edits are on disk")]
    #[diagnostic(code("not-ready/stale"), help("run `code-commit undo` first"))]
    SearchOnEdits,
    /// Flags for several attempts conflict with others.
    #[error("{0}")]
    #[diagnostic(code("usage"), help("see `code-commit --help`"))]
    Attempts(&'static str),
    /// An agent's work is done, but its build fails.
    #[error("the work is done, but `build.sh` fails: {status}")]
    #[diagnostic(
        code("build-failed"),
        help("see the build's log, `{log}`, and ask for it to be fixed")
    )]
    Unproven {
        /// The exit status of the build, in words.
        status: String,
        /// The log of the build's output, relative to the root.
        log: String,
    },
    /// An agent's work is done, but `build.sh` cannot prove it.
    #[error("the work is done, but not proven: {0}")]
    #[diagnostic(code("build-failed"), forward(0))]
    NoProof(ScriptProblem),
    /// Too few of a model's replies are in the required format.
    #[error("{percent} % of the replies have the required form; at least {at_least} % must")]
    #[diagnostic(
        code("unreliable"),
        help("another model may keep to the format better")
    )]
    Unreliable {
        /// The percentage of replies in the required format.
        percent: u8,
        /// The required percentage.
        at_least: u8,
    },
    /// No request was given, and there is no earlier one to resume.
    #[error("there is no task")]
    #[diagnostic(
        code("usage"),
        help("give a task with `-p`, or resume an unfinished session (`--resume`, `--session`)")
    )]
    NothingAsked,
    /// The request is a command of a conversation; the rest of it, which may contain a key, is not shown.
    #[error("`{0}` is a command for a conversation, not a request to send")]
    #[diagnostic(code("usage"), help("{}", outside(.0)))]
    PromptCommand(String),
    /// The request looks like a command, but no command has this name.
    #[error("there is no command `/{0}`")]
    #[diagnostic(
        code("usage"),
        help(
            "begin the request with a word, without a slash; in a conversation, `/help` lists the commands"
        )
    )]
    NoSlashCommand(String),
    /// The run's agents have no worktree with the project's files.
    #[error("this run may not change the project's files")]
    NoWorktree,
    /// A tool's arguments are not a JSON object.
    #[error("a tool's arguments must be a JSON object: {0}")]
    #[diagnostic(code("usage"), help("write them like `'{{\"name\": \"value\"}}'`"))]
    ToolArguments(String),
}

/// A warning that the user denies.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("{0}")]
pub(crate) struct DeniedWarning(pub String);

impl CommandError {
    /// Returns the error for a change with these warnings, if the user denies some of them with these codes.
    pub fn denied(found: &[WarningRecord], codes: &[String]) -> Option<Self> {
        let denied = found.iter().filter(|found| is_denied(codes, &found.code));
        let warning = |found: &WarningRecord| DeniedWarning(found.message.clone());
        let warnings: Vec<_> = denied.map(warning).collect();
        (!warnings.is_empty()).then_some(Self::WarningsDenied { warnings })
    }
}

/// Returns another way to do what this command of a conversation does.
fn outside(command: &str) -> &'static str {
    match command {
        "/login" => "`code-commit chat login` signs in, and reads the key from standard input",
        "/logout" => "`code-commit chat logout` signs out",
        "!" => "run it in your shell, or ask the agent to",
        _ => {
            "start the agent without a request, on the screen or with `--plain`, and type it there"
        }
    }
}

/// The hint after the last repair.
const MORE_REPAIRS: &str = "`code-commit --resume last` asks for more repairs";
const ANEW: &str = "run again for other attempts: those of one run are not resumed";

/// Returns the hint about flags that would accept the reply unchanged; empty if flags alone are not enough.
fn accepting(rejection: &Rejection, run: &str) -> String {
    let accepting = rejection.flags().map(|flags| {
        format!(
            "; if it is right as it is, `code-commit --replay {run} {flags}`, with the other flags of this command, \
             accepts it without a call"
        )
    });
    accepting.unwrap_or_default()
}
