//! Runs the project's `build.sh`; nothing else starts it.
//!
//! Touches only the script's processes, and streams their output to a writer. Guarantees that the run continues once
//! the script has ended, even if a process still holds its output; that its running time is limited; that everything
//! it started ends with it; and that hidden variables are removed from its environment.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::thread::{self, Scope};
use std::time::Duration;

use rustix::process::Signal;

use super::child_env::ChildEnv;
use super::process_error::{ProcessError, ScriptProblem};
use super::runner::Running;
use super::sandbox::Sandbox;
use super::scratch::Scratch;
use super::supervised_child::SupervisedChild;
use super::supervisor::GRACE;
use super::wire::{CommandStatus, Leftovers, SpawnRequest, Streams};
use crate::sys::environment::Clock;
use crate::sys::files::{self, IfThere as _, Links, PathError};
use crate::sys::interrupt::Interrupt;
use crate::sys::parallel::joined;
use crate::sys::programs::is_executable;

/// Name of the script in the project's root.
pub const BUILD_SCRIPT: &str = "build.sh";
/// Command that starts the script from the project's root.
const PROGRAM: &str = "./build.sh";

/// Script that `code-commit init` writes for unknown kinds of project. It fails: a check that tests nothing must
/// not pass.
pub const PLACEHOLDER: &str = "\
#!/bin/sh
# Exits with 0 only if the project builds and its tests pass.
set -eu
cd \"$(dirname \"$0\")\"
echo \"build.sh: replace this with the commands that build and test the project\" >&2
exit 1
";

/// Longest pause in the output of processes that outlive the script (an output filter, a background job) before the
/// rest of it is abandoned.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest time to keep reading such output after the script has ended.
const AFTERMATH: Duration = Duration::from_secs(10);

/// Checks that `build.sh` can be started, before anything depends on it. `path` is the `PATH` that `env` would
/// search.
///
/// # Errors
/// Returns the reason if the script cannot be started.
pub fn inspect(root: &Path, path: Option<&OsStr>) -> Result<(), ScriptProblem> {
    let script = root.join(BUILD_SCRIPT);
    let unreadable = |error: io::Error| ScriptProblem::Unreadable(error.to_string());
    let found = script.metadata().if_there().map_err(unreadable)?;
    let metadata = found.ok_or(ScriptProblem::Missing)?;
    if !metadata.is_file() {
        return Err(ScriptProblem::NotAFile);
    }
    // The mode bits alone are not enough: root needs only one of them, and for others the set bits may not apply.
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
    let shebang = first_line.strip_prefix("#!");
    let interpreter = shebang.ok_or(ScriptProblem::NoShebang)?;
    if interpreter.ends_with('\r') {
        return Err(ScriptProblem::CrlfShebang);
    }
    let mut words = interpreter.split_whitespace();
    let program = words.next().unwrap_or_default();
    let is_env = Path::new(program).file_name() == Some(OsStr::new("env"));
    // `env` searches for its first word; its options and assignments are not interpreted here.
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

/// Outcome of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildStatus {
    /// The script exited with this code.
    Exited(i32),
    /// The script was killed by this signal.
    Signaled(i32),
    /// The script was stopped when this time limit expired.
    TimedOut(Duration),
}

impl BuildStatus {
    /// Returns whether the build passed, that is, exited with 0, whatever it printed.
    pub fn passed(self) -> bool {
        self == Self::Exited(0)
    }

    /// Returns whether the build ran to its end and could start all of its programs: shells exit with 126 or 127 if a
    /// program cannot be started.
    pub fn is_complete(self) -> bool {
        matches!(self, Self::Exited(code) if !(126..=127).contains(&code))
    }
}

/// Report of a completed build. A failed build is not an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildReport {
    /// Outcome of the build.
    pub status: BuildStatus,
    /// Duration of the build.
    pub took: Duration,
    /// True if a process that the build started still held its output, so the output may be incomplete.
    pub left_behind: bool,
}

/// The build script of a project and the settings to run it with.
pub struct BuildScript<'a> {
    /// Project root.
    pub root: &'a Path,
    /// `PATH`, used to find the interpreter.
    pub path: Option<&'a OsStr>,
    /// Time limit for the script.
    pub timeout: Duration,
    /// Clock that measures the build's duration.
    pub clock: &'a dyn Clock,
    /// Interrupt that ends the build early.
    pub interrupt: &'a Interrupt,
    /// Environment of the script.
    pub env: &'a ChildEnv,
    /// Sandbox to run the script in, if any.
    pub sandbox: Option<&'a Sandbox>,
    /// Tree to run the script in instead of the project, if any.
    pub scratch: Option<&'a Scratch>,
}

impl BuildScript<'_> {
    /// Runs `./build.sh` to completion and writes both of its output streams, interleaved as they arrive, to `output`.
    ///
    /// # Errors
    /// Fails if the script cannot be started, its output cannot be written, or a signal ends the run.
    pub fn run(&self, output: &mut (dyn Write + Send)) -> Result<BuildReport, ProcessError> {
        let started = self.clock.elapsed();
        let (ended, left_behind) =
            thread::scope(|scope| self.supervised(scope, self.start_supervisor(scope)?, output))?;
        let status = match ended {
            None => BuildStatus::TimedOut(self.timeout),
            Some(CommandStatus::Exited(code)) => BuildStatus::Exited(code),
            Some(CommandStatus::Signaled(signal)) => BuildStatus::Signaled(signal),
            // Only SIGKILL ends a sandbox from inside.
            Some(CommandStatus::Lost) => BuildStatus::Signaled(Signal::KILL.as_raw()),
            Some(CommandStatus::NotStarted(number)) => {
                // The inspection may determine the cause more precisely.
                return Err(match inspect(self.root, self.path) {
                    Err(problem) => ProcessError::Script(problem),
                    Ok(()) => self.failed(io::Error::from_raw_os_error(number)),
                });
            }
        };
        Ok(BuildReport {
            status,
            took: self.clock.elapsed().saturating_sub(started),
            left_behind,
        })
    }

    /// Starts the supervisor: inside the sandbox if there is one; in a scratch tree, as a process next to the script;
    /// else on a thread, so that `$PPID` is this program.
    fn start_supervisor<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
    ) -> Result<SupervisedChild, ProcessError> {
        if let Some(sandbox) = self.sandbox {
            return Ok(sandbox.enter(self.interrupt, self.env, self.scratch)?);
        }
        let child = if let Some(scratch) = self.scratch {
            scratch.supervisor(self.env, self.interrupt)
        } else {
            SupervisedChild::on_thread(scope, self.clock, self.root, self.env, self.interrupt)
        };
        child.map_err(|source| self.failed(source))
    }

    /// Runs the script. Returns its status, `None` after a timeout, and whether a process still holds its output.
    fn supervised<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        child: SupervisedChild,
        output: &'scope mut (dyn Write + Send),
    ) -> Result<(Option<CommandStatus>, bool), ProcessError> {
        let request = SpawnRequest {
            grace: GRACE,
            words: vec![PROGRAM.to_owned()],
            // The output of leftover processes belongs to the build.
            streams: Streams::Output,
            leftovers: Leftovers::Stay,
        };
        let (mut running, mut pump) =
            Running::start(child, &request, self.clock).map_err(|source| self.failed(source))?;
        // If the log cannot be written, the reader stops, and the script's next write ends the script.
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
        // However the build ended, none of its processes may keep running, and no more output is awaited.
        drop(running);
        let logged = joined(logging);
        waited.map_err(|source| self.failed(source))?;
        logged.map_err(ProcessError::Log)?;
        Ok((status, !is_closed))
    }

    /// Returns the I/O error, or the interruption if a signal arrived.
    fn failed(&self, source: io::Error) -> ProcessError {
        match self.interrupt.check() {
            Ok(()) => {
                ProcessError::Build(PathError::of("run", self.root.join(BUILD_SCRIPT))(source))
            }
            Err(interrupted) => interrupted.into(),
        }
    }
}
