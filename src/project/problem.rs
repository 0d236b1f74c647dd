//! Errors from reading a project. Plain data.

use std::io;
use std::path::PathBuf;

use super::repository::MEND_REPOSITORY;
use crate::secret::KeyProblem;
use crate::sys::file_lock;
use crate::sys::files::{PathError, is_too_large};

/// Errors from checking or reading a project's inputs, and from determining which paths git tracks.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ProjectProblem {
    /// `.gitignore` is missing.
    #[error("`.gitignore` is missing")]
    #[diagnostic(help(
        "run `code-commit init`, which sets the project up, or write one with the line `/agent-config`, so that keys are never committed"
    ))]
    NoGitignore,
    /// `.gitignore` does not ignore the folder with the keys.
    #[error("`.gitignore` does not ignore `/agent-config`")]
    #[diagnostic(help(
        "run `code-commit init`, which sets the project up, or add the line `/agent-config` at its end, so that keys are never committed"
    ))]
    NotIgnored,
    /// A link leads to a key that git does not ignore there.
    #[error("git does not ignore `{target}`, to which `{path}` leads")]
    #[diagnostic(help("add `/{target}` to `.gitignore`, so that keys are never committed"))]
    LinkNotIgnored { path: String, target: String },
    /// A required file is missing.
    #[error("`{0}` is missing")]
    #[diagnostic(help("{}", to_make(.0)))]
    Missing(String),
    /// A file cannot be read.
    #[error("`{path}` cannot be read: {source}")]
    #[diagnostic(help("{}", to_read(path, source)))]
    Unreadable { path: String, source: io::Error },
    /// A directory, pipe or the like is in a file's place.
    #[error("`{0}` is not a file")]
    #[diagnostic(help("make `{0}` a file"))]
    NotAFile(String),
    /// A file, link or the like is in a directory's place.
    #[error("`{0}` is not a directory: a file, a link or the like is in its place")]
    #[diagnostic(help("move `{0}` out of the way"))]
    NotADirectory(String),
    /// A file is not UTF-8.
    #[error("`{path}` is not UTF-8: see byte {offset}")]
    #[diagnostic(help("save `{path}` as UTF-8, and leave binary files out of it"))]
    NotUtf8 { path: String, offset: usize },
    /// The query is blank.
    #[error("`agent-config/query.txt` is empty")]
    #[diagnostic(help("describe the task in it"))]
    EmptyQuery,
    /// The query is still the example.
    #[error("`agent-config/query.txt` is still the example that `code-commit init` wrote")]
    #[diagnostic(help("describe the task in it"))]
    ExampleQuery,
    /// A key file does not contain a valid key.
    #[error("the key in `{path}` {problem}")]
    #[diagnostic(code("/no-key"), help("put the API key alone on one line of `{path}`"))]
    Key { path: String, problem: KeyProblem },
    /// A file that must be the user's own is tracked by git, so it may have come with the repository.
    #[error("git tracks `{tracked}`: {} may have come with the repository, and is not used", if path == tracked { "it".to_owned() } else { format!("`{path}`") })]
    #[diagnostic(
        code("/settings"),
        help("if `{path}` is yours, run `git rm --cached {tracked}`; otherwise remove it")
    )]
    Tracked { path: String, tracked: String },
    /// The index cannot be read, so it is unknown whether git tracks a file.
    #[error("whether git tracks `{path}` is not known: {problem}")]
    #[diagnostic(help("{MEND_REPOSITORY}"))]
    Index { path: String, problem: String },
    /// The project is in no repository.
    #[error("the project is in no git repository")]
    #[diagnostic(
        code("not-ready"),
        help("make the project a repository: `git init && git add --all`")
    )]
    NoRepository,
    /// A file of the repository cannot be read.
    #[error("`{}` cannot be read: {}", .0.path.display(), .0.source)]
    #[diagnostic(code("not-ready"), help("{MEND_REPOSITORY}"))]
    Repository(#[from] PathError),
    /// The index is damaged or in an unknown format.
    #[error("git's index `{}` is damaged or of an unknown kind: {cause}", .path.display())]
    #[diagnostic(code("not-ready"), help("{MEND_REPOSITORY}"))]
    DamagedIndex { path: PathBuf, cause: String },
    /// A directory that a run must write to is not writable.
    #[error("`{0}` cannot be written to")]
    #[diagnostic(
        code("/disk/never"),
        help(
            "make it writable{}",
            if matches!(&**_0, "logs" | "agent-config") { "" } else { ", or leave what is in it out of the rollup" }
        )
    )]
    NotWritable(String),
    /// Another run holds the lock on the project.
    #[error("another run holds the project{}", file_lock::holder_words(*.process))]
    #[diagnostic(code("/locked"), help("wait until it has ended, or end it"))]
    Held { process: Option<u32> },
    /// The project cannot be locked.
    #[error("cannot lock the project: {0}")]
    #[diagnostic(
        code("/disk/never"),
        help("put the project on a file system that can lock")
    )]
    Unlockable(io::Error),
}

/// Returns a hint on how to create a missing file.
fn to_make(path: &str) -> String {
    match path.rsplit('/').next() {
        Some("query.txt") => format!("describe the task in `{path}`, or pass it with `-m`"),
        Some("codeRollup.txt") => format!(
            "run `./codeRollup.sh` or `code-commit rollup`, which write `{path}`, \
             or pass `--rollup`"
        ),
        _ => format!("put the API key into `{path}`"),
    }
}

/// Returns a hint on how to make a file readable.
fn to_read(path: &str, error: &io::Error) -> String {
    match path.rsplit('/').next() {
        _ if is_too_large(error) => format!("make `{path}` smaller"),
        Some(".git" | "commondir") => MEND_REPOSITORY.to_owned(),
        _ => format!("make `{path}` readable"),
    }
}
