//! Runs the project's `build.sh`: the one place that starts it.
//!
//! Touches the script's processes and nothing else; what the script prints goes to a writer as
//! it comes. Guarantees that the run goes on when the script has ended, even if a process still holds
//! its output; that its time is limited; that what it has started ends with it; and that it does not see
//! the variables that it is not to see.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::thread::{self, Scope};
use std::time::Duration;

use rustix::fs::{Access, access};
use rustix::process::Signal;

use super::child_env::ChildEnv;
use super::process_error::{NO_PROCESS, NO_ROOM};
use super::runner::Running;
use super::sandbox::{Sandbox, SandboxProblem};
use super::supervised_child::SupervisedChild;
use super::supervisor::GRACE;
use super::wire::{CommandStatus, Leftovers, SpawnRequest, Streams};
use crate::sys::environment::Clock;
use crate::sys::files::{self, IfThere as _, Links};
use crate::sys::interrupt::{Interrupt, Interrupted};
use crate::sys::parallel::joined;

/// The script's name, below the project's root.
pub const BUILD_SCRIPT: &str = "build.sh";
/// The command that starts it, in the project's root.
const PROGRAM: &str = "./build.sh";

/// The script that `code-commit init` writes where it does not know the kind of project. What proves nothing must not
/// pass.
pub const PLACEHOLDER: &str = "\
#!/bin/sh
# Exits with 0 only if the project builds and its tests pass.
set -eu
cd \"$(dirname \"$0\")\"
echo \"build.sh: replace this with the commands that build and test the project\" >&2
exit 1
";

/// Processes that the script leaves running (a filter on its output, a job in the background) may go on
/// printing as long as it does not pause for longer than this,
const PAUSE: Duration = Duration::from_secs(1);
/// and for no longer than this in all.
const AFTERMATH: Duration = Duration::from_secs(10);

/// Why build.sh cannot be started as it is.
#[derive(Debug, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum ScriptProblem {
    /// There is none.
    #[error("`build.sh` is missing")]
    #[diagnostic(help(
        "run `code-commit init`, or write a `build.sh` in the project's root that exits with 0 when the project builds and passes its tests"
    ))]
    Missing,
    /// It is something else than a file.
    #[error("`build.sh` is not a file")]
    #[diagnostic(help("make `build.sh` a script"))]
    NotAFile,
    /// It cannot be read.
    #[error("`build.sh` cannot be read: {0}")]
    #[diagnostic(help("make it readable"))]
    Unreadable(String),
    /// It has no execute permission.
    #[error("`build.sh` is not executable")]
    #[diagnostic(help("run `chmod +x build.sh`"))]
    NotExecutable,
    /// Nobody has written it yet.
    #[error("`build.sh` is still the one that `code-commit init` wrote, which always fails")]
    #[diagnostic(help("write the commands that build and test the project into `build.sh`"))]
    Placeholder,
    /// Its first line names no interpreter.
    #[error("`build.sh` does not begin with a `#!` line")]
    #[diagnostic(help("make its first line `#!/bin/sh` or the like"))]
    NoShebang,
    /// Its first line ends with a carriage return, which becomes part of the interpreter's name.
    #[error("the `#!` line of `build.sh` ends with CRLF")]
    #[diagnostic(help(
        "save it with LF line endings, for example by `sed -i 's/\\r$//' build.sh`"
    ))]
    CrlfShebang,
    /// The interpreter is not there.
    #[error("the interpreter of `build.sh`, `{0}`, is no program on this machine")]
    #[diagnostic(help("install it, or name another one in its first line"))]
    NoInterpreter(String),
}

/// Looks whether build.sh can be started, before anything depends on it. `path` is the `PATH` that
/// `env` would search.
///
/// # Errors
/// When it cannot be started, with the reason.
pub fn inspect(root: &Path, path: Option<&OsStr>) -> Result<(), ScriptProblem> {
    let script = root.join(BUILD_SCRIPT);
    let unreadable = |error: io::Error| ScriptProblem::Unreadable(error.to_string());
    let metadata = script.metadata().if_there().map_err(unreadable)?;
    let metadata = metadata.ok_or(ScriptProblem::Missing)?;
    if !metadata.is_file() {
        return Err(ScriptProblem::NotAFile);
    }
    // Not only whether anybody may: root may without any bit, and others not with any.
    if metadata.permissions().mode() & 0o111 == 0 || !is_executable(&script) {
        return Err(ScriptProblem::NotExecutable);
    }
    let beginning = files::beginning(&script, Links::Followed, 1024).map_err(unreadable)?;
    if beginning == PLACEHOLDER.as_bytes() {
        return Err(ScriptProblem::Placeholder);
    }
    if beginning.starts_with(b"\x7fELF") {
        return Ok(());
    }
    inspect_shebang(&String::from_utf8_lossy(&beginning), path)
}

fn inspect_shebang(beginning: &str, path: Option<&OsStr>) -> Result<(), ScriptProblem> {
    let first_line = beginning.split('\n').next().unwrap_or_default();
    let interpreter = first_line.strip_prefix("#!");
    let interpreter = interpreter.ok_or(ScriptProblem::NoShebang)?;
    if interpreter.ends_with('\r') {
        return Err(ScriptProblem::CrlfShebang);
    }
    let mut words = interpreter.split_whitespace();
    let program = words.next().unwrap_or_default();
    let is_env = Path::new(program).file_name() == Some(OsStr::new("env"));
    // `env` looks its first word up; with options or assignments it is left to find out itself.
    let is_looked_up = |name: &&str| is_env && !name.starts_with('-') && !name.contains(['=', '/']);
    let is_found = |name: &str| {
        let mut directories = std::env::split_paths(path.unwrap_or_default());
        directories.any(|directory| is_executable(&directory.join(name)))
    };
    match words.next().filter(is_looked_up) {
        _ if !is_executable(Path::new(program)) => {
            Err(ScriptProblem::NoInterpreter(program.to_owned()))
        }
        Some(name) if !is_found(name) => Err(ScriptProblem::NoInterpreter(name.to_owned())),
        _ => Ok(()),
    }
}

fn is_executable(program: &Path) -> bool {
    program.is_file() && access(program, Access::EXEC_OK).is_ok()
}

/// The end of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildStatus {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// By this program, when its time was over.
    TimedOut(Duration),
}

impl BuildStatus {
    /// Returns whether the build passed: its exit code is 0, whatever it printed.
    pub fn passed(self) -> bool {
        self == Self::Exited(0)
    }
}

/// A build that was run. That it failed is no error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildReport {
    /// Its end.
    pub status: BuildStatus,
    /// Its duration.
    pub took: Duration,
    /// True if a process that it started still held its output, the rest of which is not known.
    pub left_behind: bool,
}

/// Why a build could not be run, or not to its end.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum BuildError {
    /// It could not be started.
    #[error("cannot start `build.sh`: {problem}")]
    #[diagnostic(forward(problem))]
    Unfit { problem: ScriptProblem },
    /// The system did not start it, or could not tell how it ended.
    #[error("cannot run `{}`: {source}", .path.display())]
    #[diagnostic(help("{NO_PROCESS}"))]
    Io { path: PathBuf, source: io::Error },
    /// Its output could not be logged.
    #[error("cannot log the output of `build.sh`: {0}")]
    #[diagnostic(help("{NO_ROOM}"))]
    Log(#[source] io::Error),
    /// It could not be sandboxed; nothing of it was started.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Sandbox(SandboxProblem),
    /// A signal ended the run, and the build with it.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Interrupted(#[from] Interrupted),
}

impl From<SandboxProblem> for BuildError {
    fn from(problem: SandboxProblem) -> Self {
        match problem {
            SandboxProblem::Interrupted(interrupted) => Self::Interrupted(interrupted),
            other => Self::Sandbox(other),
        }
    }
}

/// The build script of a project, and how it is run.
pub struct BuildScript<'a> {
    /// The project's root.
    pub root: &'a Path,
    /// `PATH`, for the interpreter's sake.
    pub path: Option<&'a OsStr>,
    /// The time that it may run.
    pub timeout: Duration,
    /// Tells how long it takes.
    pub clock: &'a dyn Clock,
    /// Ends it early.
    pub interrupt: &'a Interrupt,
    /// The variables that it does not get.
    pub env: &'a ChildEnv,
    /// Its sandbox, if any.
    pub sandbox: Option<&'a Sandbox>,
}

impl BuildScript<'_> {
    /// Runs `./build.sh` to its end, and writes what it prints, both streams in the order they
    /// come, to `output`.
    ///
    /// # Errors
    /// When it cannot be started, its output cannot be written, or a signal ends the run.
    pub fn run(&self, output: &mut (dyn Write + Send)) -> Result<BuildReport, BuildError> {
        let started = self.clock.elapsed();
        let (status, left_behind) = thread::scope(|scope| {
            let child = self.start_supervisor(scope)?;
            self.supervised(scope, child, output)
        })?;
        let status = match status {
            None => BuildStatus::TimedOut(self.timeout),
            Some(CommandStatus::Exited(code)) => BuildStatus::Exited(code),
            Some(CommandStatus::Signaled(signal)) => BuildStatus::Signaled(signal),
            // Nothing but SIGKILL ends a sandbox from inside.
            Some(CommandStatus::Lost) => BuildStatus::Signaled(Signal::KILL.as_raw()),
            Some(CommandStatus::NotStarted(number)) => {
                return Err(self.unfit(io::Error::from_raw_os_error(number)));
            }
        };
        Ok(BuildReport {
            status,
            took: self.clock.elapsed().saturating_sub(started),
            left_behind,
        })
    }

    /// Without a sandbox, a thread does: `$PPID` is this program.
    fn start_supervisor<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
    ) -> Result<SupervisedChild, BuildError> {
        if let Some(sandbox) = self.sandbox {
            return Ok(sandbox.enter(self.interrupt, self.env)?);
        }
        SupervisedChild::on_thread(scope, self.clock, self.root, self.env, self.interrupt)
            .map_err(|source| self.failed(source))
    }

    /// Runs the script; gives how it has ended, unless it ran out of time, and whether its output is still held.
    fn supervised<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        child: SupervisedChild,
        output: &'scope mut (dyn Write + Send),
    ) -> Result<(Option<CommandStatus>, bool), BuildError> {
        let request = SpawnRequest {
            grace: GRACE,
            words: vec![PROGRAM.to_owned()],
            // What they print belongs to the build.
            streams: Streams::Output,
            leftovers: Leftovers::Stay,
        };
        let started = Running::start(child, &request, self.clock);
        let (mut running, mut pump) = started.map_err(|source| self.failed(source))?;
        // Where the log cannot be written, nobody reads on: the script's next word ends it.
        let logging = thread::Builder::new()
            .spawn_scoped(scope, move || pump.run(|chunk, _| output.write_all(chunk)))
            .map_err(|source| self.failed(source))?;
        let waited = running.wait(self.timeout, self.interrupt);
        let status = running.ending().map(|ending| ending.status);
        let mut is_closed = false;
        if waited.is_ok() && status.is_some() {
            is_closed = running.drain(PAUSE, AFTERMATH);
        } else {
            running.stop();
        }
        // However it ended, nothing of it goes on running, and nobody waits for more of its output.
        drop(running);
        let logged = joined(logging);
        waited.map_err(|source| self.failed(source))?;
        logged.map_err(BuildError::Log)?;
        Ok((status, !is_closed))
    }

    /// Why the script cannot be started, as far as that can be told.
    fn unfit(&self, source: io::Error) -> BuildError {
        match inspect(self.root, self.path) {
            Err(problem) => BuildError::Unfit { problem },
            Ok(()) => self.failed(source),
        }
    }

    /// The system's error, unless a signal came.
    fn failed(&self, source: io::Error) -> BuildError {
        let path = self.root.join(BUILD_SCRIPT);
        let came = self.interrupt.check().err();
        came.map_or(BuildError::Io { path, source }, BuildError::Interrupted)
    }
}
