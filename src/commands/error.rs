//! Errors of commands, as far as no room below has them.

#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;

use crate::edit::verify::REJECTED;
use crate::edit::{Rejection, Rule};

/// A command that cannot do what it was started for.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub(crate) enum CommandError {
    /// The model that is to be added is not in the catalogue.
    #[error("the catalogue has no model `{name}`: it has {known}")]
    #[diagnostic(
        code("usage"),
        help("write its entry into `agent-config/models.json`: docs/models.md describes the form")
    )]
    NotInCatalogue {
        /// The name that was asked for.
        name: String,
        /// The names of those that it has.
        known: String,
    },
    /// The model that is to be added is in the table.
    #[error("there is a model `{0}` already")]
    #[diagnostic(code("usage"), help("`code-commit models` shows it"))]
    ModelIsThere(String),
    /// The directory for the demo has something in it.
    #[error("`{}` already exists and is not empty", .0.display())]
    #[diagnostic(code("usage"), help("name another directory: `code-commit demo DIR`"))]
    DemoNotEmpty(PathBuf),
    /// The reply breaks the grammar or the policy, or loses code.
    #[error("{rejection}")]
    #[diagnostic(
        code("reply-rejected"),
        help("{REJECTED}{}", accepting(rejection, run))
    )]
    Rejected {
        /// All that is wrong with it.
        rejection: Rejection,
        /// The run's folder, relative to the root.
        run: String,
    },
    /// The reply changes nothing, though it is to.
    #[error("the reply is rejected: it has no edits, and `--require-edits` was given")]
    #[diagnostic(
        code("reply-rejected"),
        help(
            "see in the run's folder what the model says, and say in the query what is to change"
        )
    )]
    NoEdits,
    /// The file of the summary may not be changed.
    #[error("the summary cannot be written to `{}`: {rule}", .path.display())]
    #[diagnostic(code("usage"), help("name another file; nothing was done"))]
    ProtectedSummary {
        /// The file, as it was named.
        path: PathBuf,
        /// The rule that forbids it.
        rule: Rule,
    },
    /// The project that was named does not exist.
    #[error("`{}` is not a directory that can be entered: {source}", .path.display())]
    #[diagnostic(code("usage"), help("name the project's directory: `--root DIR`"))]
    NoRoot {
        /// The directory, as it was named.
        path: PathBuf,
        /// The system's word.
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
        help("see the build's log, `{log}`; `code-commit --resume last` asks for more repairs")
    )]
    BuildFailed {
        /// The number of repairs that were tried.
        repairs: u16,
        /// The exit status of the last build, in words.
        status: String,
        /// The file with its output, relative to the root.
        log: String,
    },
    /// Too few of a model's replies have the form.
    #[error("{percent} % of the replies are of the form, and {at_least} % are wanted")]
    #[diagnostic(code("unreliable"), help("another model may keep to the form better"))]
    Unreliable {
        /// The number of a hundred that do.
        percent: u8,
        /// The number of were to.
        at_least: u8,
    },
    /// No request was given, and there is no earlier one to resume.
    #[error("nothing is asked for")]
    #[diagnostic(
        code("usage"),
        help(
            "give a task with `-p`, or resume an unfinished session with `--resume` or `--session`"
        )
    )]
    NothingAsked,
    /// The agents of a run have none of the project's files.
    #[error("this run may not change the project's files")]
    NoWorktree,
    /// A tool's arguments are no object.
    #[error("the arguments of a tool are a JSON object: {0}")]
    #[diagnostic(code("usage"), help("write them like `'{{\"name\": \"value\"}}'`"))]
    ToolArguments(String),
}

/// The flags that accept the reply as it is, where that is all it needs.
fn accepting(rejection: &Rejection, run: &str) -> String {
    let accepting = rejection.flags().map(|flags| {
        format!("; if it is right as it is, `code-commit --replay {run} {flags}` accepts it without a call")
    });
    accepting.unwrap_or_default()
}
