//! Errors from running commands and builds. Pure.

use std::io;

use super::sandbox::SandboxProblem;
use crate::sys::files::PathError;
use crate::sys::interrupt::Interrupted;

/// Hint for when no process can be started.
const NO_PROCESS: &str = "see that the machine can start another process";
/// Hint for when a file cannot be written.
const NO_ROOM: &str = "check that the disk has room and the directory is writable";

/// Reasons why `build.sh` cannot be started.
#[derive(Debug, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum ScriptProblem {
    /// `build.sh` does not exist.
    #[error("`build.sh` is missing")]
    #[diagnostic(help(
        "run `code-commit init`, or write a `build.sh` in the project's root that exits with 0 when the project builds and passes its tests"
    ))]
    Missing,
    /// `build.sh` is not a regular file.
    #[error("`build.sh` is not a file")]
    #[diagnostic(help("make `build.sh` a script"))]
    NotAFile,
    /// `build.sh` cannot be read.
    #[error("`build.sh` cannot be read: {0}")]
    #[diagnostic(help("make it readable"))]
    Unreadable(String),
    /// `build.sh` is not executable.
    #[error("`build.sh` is not executable")]
    #[diagnostic(help("run `chmod +x build.sh`"))]
    NotExecutable,
    /// `build.sh` is still the placeholder that `code-commit init` wrote.
    #[error("`build.sh` is still the one that `code-commit init` wrote, which always fails")]
    #[diagnostic(help("write the commands that build and test the project into `build.sh`"))]
    Placeholder,
    /// The first line does not name an interpreter.
    #[error("`build.sh` does not begin with a `#!` line")]
    #[diagnostic(help("make its first line `#!/bin/sh` or the like"))]
    NoShebang,
    /// The first line ends with a carriage return, which becomes part of the interpreter's name.
    #[error("the `#!` line of `build.sh` ends with CRLF")]
    #[diagnostic(help("save it with LF line endings: `sed -i 's/\\r$//' build.sh`"))]
    CrlfShebang,
    /// The interpreter does not exist or is not executable.
    #[error("the interpreter of `build.sh`, `{0}`, is no program on this machine")]
    #[diagnostic(help("install it, or name another one in its first line"))]
    NoInterpreter(String),
}

/// Errors from running a command or a build.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ProcessError {
    /// The program could not be started.
    #[error("cannot start `{program}`: {source}")]
    #[diagnostic(help("name an existing program"))]
    NotStarted {
        /// Name of the program or the shell.
        program: String,
        /// Error from the operating system.
        source: io::Error,
    },
    /// The path of this program's executable, which would supervise the command, is unknown.
    #[error("no command can be run: the path of this program is not known")]
    #[diagnostic(help("start this program from its own file"))]
    NoSupervisor,
    /// Processes left running could not be found, because `/proc` belongs to another container.
    #[error("no command can be run: `/proc` does not show this container's processes")]
    #[diagnostic(help("mount `/proc` (`unshare --mount-proc`), or make bubblewrap work"))]
    ForeignProc,
    /// The supervisor could not be started.
    #[error("cannot run a command: {0}")]
    #[diagnostic(help("{NO_PROCESS}"))]
    Io(#[source] io::Error),
    /// The output file could not be created.
    #[error(transparent)]
    #[diagnostic(help("{NO_ROOM}"))]
    Output(PathError),
    /// `build.sh` could not be started.
    #[error("cannot start `build.sh`: {0}")]
    #[diagnostic(forward(0))]
    Script(ScriptProblem),
    /// The operating system could not start `build.sh` or report how it ended.
    #[error(transparent)]
    #[diagnostic(help("{NO_PROCESS}"))]
    Build(PathError),
    /// The output of `build.sh` could not be written to the log.
    #[error("cannot log the output of `build.sh`: {0}")]
    #[diagnostic(help("{NO_ROOM}"))]
    Log(#[source] io::Error),
    /// The sandbox could not be set up; nothing was started.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Sandbox(SandboxProblem),
    /// A signal arrived, and the command was ended.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Interrupted(#[from] Interrupted),
}

impl From<SandboxProblem> for ProcessError {
    fn from(problem: SandboxProblem) -> Self {
        match problem {
            SandboxProblem::Interrupted(interrupted) => Self::Interrupted(interrupted),
            other => Self::Sandbox(other),
        }
    }
}
