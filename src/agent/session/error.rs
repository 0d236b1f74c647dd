//! Errors from using and saving sessions. Pure.

use std::io;
use std::path::PathBuf;

use crate::project::home::AgentHome;
use crate::sys::file_lock::holder_words;

/// Errors from using and saving sessions.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum SessionError {
    /// The session does not exist.
    #[error("there is no session `{id}`")]
    #[diagnostic(code("usage"), help("`{}` lists them", home.list_command))]
    Missing {
        /// The id.
        id: String,
        /// The agent's home.
        home: &'static AgentHome,
    },
    /// A session with this id already exists.
    #[error("there is a session `{0}` already")]
    #[diagnostic(code("usage"), help("open it, or choose another id"))]
    Exists(String),
    /// The directory has no session to resume.
    #[error("there is no session to resume in `{}`", .directory.escape_debug())]
    #[diagnostic(code("usage"), help("start one without `--resume`; `{}` shows those of other directories", home.list_command))]
    NoneIn {
        /// The directory that was searched for.
        directory: String,
        /// The agent's home.
        home: &'static AgentHome,
    },
    /// The session belongs to another directory.
    #[error(
        "the session `{id}` works in `{}`, and this is `{}`",
        .directory.escape_debug(),
        .here.escape_debug()
    )]
    #[diagnostic(code("usage"), help("go to `{}`, or start a session here", directory.escape_debug()))]
    Elsewhere {
        /// The id of the session.
        id: String,
        /// The directory in which the session was started.
        directory: String,
        /// The current directory.
        here: String,
    },
    /// Another process is using the session.
    #[error("the session `{id}` is in use{}", holder_words(*.process))]
    #[diagnostic(
        code("not-ready/locked"),
        help("wait until it has ended, or end it; or start another session")
    )]
    InUse { id: String, process: Option<u32> },
    /// The session's file or folder is damaged.
    #[error("`{}` is damaged: {mistake}", .path.display())]
    #[diagnostic(code("not-ready"), help("fix it there, or remove `{}` and start anew", path.display()))]
    Damaged { path: PathBuf, mistake: String },
    /// The lock file cannot be locked.
    #[error("cannot lock `{}`: {source}", .path.display())]
    #[diagnostic(code("not-ready/disk/never"), help("set `{}` to a directory on a file system that can lock", home.variable))]
    Unlockable {
        /// The lock file.
        path: PathBuf,
        /// The agent's home.
        home: &'static AgentHome,
        /// The I/O error.
        source: io::Error,
    },
    /// A file cannot be read, written or removed.
    #[error("`{}` cannot be {what}: {source}", .path.display())]
    #[diagnostic(help("let `{}` be {what}, or set `{}` to a writable directory", path.display(), home.variable))]
    Io {
        /// `read` or `written`.
        what: &'static str,
        /// The file or the directory.
        path: PathBuf,
        /// The agent's home.
        home: &'static AgentHome,
        /// The I/O error.
        source: io::Error,
    },
}
