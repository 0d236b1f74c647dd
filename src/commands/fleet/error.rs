//! Errors of `fleet`.

use std::path::PathBuf;

use miette::MietteDiagnostic;

use crate::model::price::Usd;
use crate::sys::positions::Misplaced;
use crate::sys::text::{below, first_lines};

/// Errors from working on a manifest.
#[derive(Debug, Clone, thiserror::Error, miette::Diagnostic)]
pub enum FleetError {
    /// The manifest has mistakes.
    #[error("`{}` has mistakes:{}", .path.display(), below(first_lines(.mistakes.iter().map(ToString::to_string), SHOWN)))]
    #[diagnostic(
        code("not-ready/settings"),
        help("fix it; docs/fleet.md describes the fields")
    )]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// The first mistake of each line; at least one mistake.
        #[related]
        mistakes: Vec<Misplaced>,
    },
    /// The manifest contains likely credentials.
    #[error("`{}` contains credentials:{found}", .path.display())]
    #[diagnostic(
        code("not-ready/credentials-found"),
        help("take them out: `env_key` names the environment variable that holds a key")
    )]
    Secrets {
        /// The manifest.
        path: PathBuf,
        /// The lines and kinds of the credentials.
        found: String,
    },
    /// The manifest does not exist.
    #[error("there is no file `{}`", .0.display())]
    #[diagnostic(
        code("usage"),
        help("name a manifest: a file with a task on each line")
    )]
    NoManifest(PathBuf),
    /// The index is beyond the manifest's end.
    #[error("there is no task {index}: `{}` has {count}, counted from 0", .path.display())]
    #[diagnostic(code("usage"), help("name one of its lines"))]
    NoTask {
        /// The manifest.
        path: PathBuf,
        /// The task's line, counted from 0.
        index: usize,
        /// The number of lines.
        count: usize,
    },
    /// No task has a result.
    #[error("there is no result of a task in `{}`", .0.display())]
    #[diagnostic(code("usage"), help("name the directory that `--out` had"))]
    NoResults(PathBuf),
    /// Branches could not be created.
    #[error("the branches `{branch}` are not made:{}", below(.problems.clone()))]
    #[diagnostic(
        code("not-ready"),
        help("fix these, or take single changes: `git fetch DIR/ID/branch.bundle code-commit/ID`")
    )]
    Unpublished {
        /// The name of the branches.
        branch: String,
        /// The reasons, by task.
        problems: Vec<String>,
    },
    /// The lock file is for other tasks.
    #[error("`{}` is for another {what}", .lock.display())]
    #[diagnostic(
        code("not-ready/settings"),
        help(
            "put back what has changed, or give the task another id; to begin all tasks anew, remove that file and name another `--out`"
        )
    )]
    Differs {
        /// The lock file.
        lock: PathBuf,
        /// The part that differs from the locked one.
        what: String,
    },
    /// The folder belongs to another task.
    #[error("`{}` is the folder of another task `{id}`, from another manifest or another commit", .folder.display())]
    #[diagnostic(
        code("not-ready/settings"),
        help("give the task another id, or name another `--out`")
    )]
    OtherTask {
        /// The task's id.
        id: String,
        /// The folder with the task's id.
        folder: PathBuf,
    },
    /// The folder contains something that did not come from a task of this campaign.
    #[error("`{}` already exists, and is not a task's folder: the ledger beside it does not know `{id}`", .folder.display())]
    #[diagnostic(
        code("not-ready/settings"),
        help("name another `--out`, best a new directory, or give the task another id")
    )]
    Taken {
        /// The task's id.
        id: String,
        /// The folder with the task's id.
        folder: PathBuf,
    },
    /// Another process is working on the task.
    #[error("another process works on the task `{0}`")]
    #[diagnostic(code("not-ready/locked"), help("wait for it, or stop it"))]
    Held(String),
    /// The variable with the task's key is not set.
    #[error("the environment variable `{variable}`, the `env_key` of the task `{id}`, is not set")]
    #[diagnostic(code("not-ready/no-key"), help("set it to the API key"))]
    NoKey {
        /// The task's id.
        id: String,
        /// The variable's name.
        variable: String,
    },
    /// The task has its own key, but its model takes no key from a variable.
    #[error(
        "the model `{model}` takes no key from a variable, but the task `{id}` has an `env_key`"
    )]
    #[diagnostic(
        code("not-ready/settings"),
        help("leave `env_key` out: the model's `keyFile` is in `agent-config/models.json`")
    )]
    NoKeyVariable {
        /// The task's id.
        id: String,
        /// The model's name.
        model: String,
    },
    /// The model of a task is not in the table.
    #[error("there is no model `{model}`, which the task `{id}` names")]
    #[diagnostic(code("not-ready/settings"), help("`code-commit models` lists them"))]
    NoModel {
        /// The task's id.
        id: String,
        /// The model's name.
        model: String,
    },
    /// The repository has something other than a directory at a path that a run needs.
    #[error(
        "the repository of the task `{id}` has a file or a link in place of `{name}`, a directory that its run writes to"
    )]
    #[diagnostic(code("not-ready/settings"), help("remove it from the repository"))]
    NoDirectory {
        /// The task's id.
        id: String,
        /// The directory's name.
        name: &'static str,
    },
    /// A repository on this machine cannot be used.
    #[error("cannot {action} `{repository}`: {problem}")]
    #[diagnostic(
        code("not-ready/missing-input"),
        help("check that git is installed, and that the repository and the ref exist")
    )]
    Repository {
        /// The operation that failed, such as "clone".
        action: &'static str,
        /// The repository's path.
        repository: String,
        /// The reason, in git's words.
        problem: String,
    },
    /// A remote repository cannot be reached.
    #[error("cannot {action} the remote repository `{repository}`: {problem}")]
    #[diagnostic(
        code("local-io/network"),
        help("check with `git ls-remote` that it can be reached and has the ref")
    )]
    Remote {
        /// The operation that failed.
        action: &'static str,
        /// The repository's URL.
        repository: String,
        /// The reason, in git's words.
        problem: String,
    },
    /// A limit for all tasks requires a limit for each task.
    #[error("`--max-cost` needs a `max_cost` of each task, and `{0}` has none")]
    #[diagnostic(
        code("not-ready/budget"),
        help("add it: a task begins only if that much is left")
    )]
    NoLimit(String),
    /// The remaining budget does not cover the task.
    #[error(
        "the task `{id}` is not begun: it may cost {needed}, and {spent} of {limit} is spent or reserved"
    )]
    #[diagnostic(code("over-budget"), help("raise `--max-cost`, and start again"))]
    OverBudget {
        /// The task's id.
        id: String,
        /// The task's own limit, or what remains of it.
        needed: Usd,
        /// The amount that the other tasks have cost or may still cost.
        spent: Usd,
        /// The limit for all tasks.
        limit: Usd,
    },
    /// The task's `max_cost` is exhausted.
    #[error(
        "the `max_cost` of the task `{id}` is {limit}, of which {spent} is booked, {cut_off} of that for calls that were cut \
        off: the rest does not cover another call"
    )]
    #[diagnostic(
        code("over-budget"),
        help("raise its `max_cost`: a call that was cut off counts at its highest possible cost")
    )]
    UsedUp {
        /// The task's id.
        id: String,
        /// The cost of the task's calls.
        spent: Usd,
        /// The maximum cost of the task's interrupted calls.
        cut_off: Usd,
        /// The task's own limit.
        limit: Usd,
    },
    /// A build has changed the clone so that git fails in it, or must not be run there.
    #[error("the change of the task `{id}` cannot be taken from its clone: {problem}")]
    #[diagnostic(code("gate-changed"), help("see the output of its builds in `log`"))]
    Unsafe {
        /// The task's id.
        id: String,
        /// The reason.
        problem: String,
    },
    /// A process was killed by someone else.
    #[error("the run of the task `{0}` was killed")]
    #[diagnostic(
        code("local-io/disk"),
        help("start the task again: it goes on from there")
    )]
    Killed(String),
    /// Some tasks could not begin.
    #[error("{} of {count} tasks {} not ready", .problems.len(), if .problems.len() == 1 { "is" } else { "are" })]
    #[diagnostic(code("not-ready"), help("see the problem of each"))]
    NotReady {
        /// The tasks that are not ready.
        #[related]
        problems: Vec<MietteDiagnostic>,
        /// The number of all tasks.
        count: usize,
    },
    /// A dry run reports that its task is not ready.
    #[error("{0}")]
    #[diagnostic(code("not-ready"))]
    DryRun(String),
    /// Some tasks have failed.
    #[error("{failed} of {count} tasks have failed")]
    #[diagnostic(
        code("step-failed"),
        help(
            "see their `result.json` and `report.html`; the next start retries exit codes 3, 4 and 6"
        )
    )]
    Failed {
        /// The number of failed tasks.
        failed: usize,
        /// The number of all tasks.
        count: usize,
    },
    /// Too many of the first tasks have failed.
    #[error("{failed} of the first {first} tasks have failed, more than {percent} %")]
    #[diagnostic(
        code("stopped"),
        help("their folders tell why; without `--first`, all tasks are run")
    )]
    Stopped {
        /// The number of failed tasks.
        failed: usize,
        /// The number of tasks to run first.
        first: usize,
        /// The allowed share of failures, in per cent.
        percent: usize,
    },
}

/// Maximum number of mistakes shown.
const SHOWN: usize = 20;
