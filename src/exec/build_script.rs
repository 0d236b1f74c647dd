//! Runs the project's `build.sh`: the one place that starts it.
//!
//! Touches the script's process group and nothing else; what the script prints goes to a writer as
//! it comes. Guarantees that the run goes on when the script has ended, whoever still holds its
//! output; that its time is limited; that its process group ends with it; and that it does not see
//! the variables that it is not to see.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::fs::{Access, access};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};

use crate::exec::sandbox::words::{Ended, Leftovers, Order};
use crate::exec::sandbox::{Kept, Sandbox, SandboxProblem};
use crate::sys::environment::Clock;
use crate::sys::interrupt::{Interrupt, Interrupted, Woken, is_readable_within};

/// The script's name, below the project's root.
pub const BUILD_SCRIPT: &str = "build.sh";
/// How it is started, in the project's root.
const PROGRAM: &str = "./build.sh";

/// How long the script's processes have to end by themselves after a SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// What the script leaves running (a filter on its output, a job in the background) may go on
/// printing as long as it does not pause for longer than this,
const PAUSE: Duration = Duration::from_secs(1);
/// and for no longer than this in all.
const AFTERMATH: Duration = Duration::from_secs(10);
/// How often a script that keeps its output open is looked at.
const TICK: Duration = Duration::from_millis(20);
/// The first of those looks comes after this.
const SHORTEST_NAP: Duration = Duration::from_micros(200);
/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// Why build.sh cannot be started as it is.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptProblem {
    /// There is none.
    #[error("`build.sh` is missing")]
    Missing,
    /// It is something else than a file.
    #[error("`build.sh` is not a file")]
    NotAFile,
    /// It cannot be read.
    #[error("`build.sh` cannot be read: {0}")]
    Unreadable(String),
    /// It has no execute permission.
    #[error("`build.sh` is not executable")]
    NotExecutable,
    /// Its first line names no interpreter.
    #[error("`build.sh` does not begin with a `#!` line")]
    NoShebang,
    /// Its first line ends with a carriage return, which becomes part of the interpreter's name.
    #[error("the `#!` line of `build.sh` ends with CRLF")]
    CrlfShebang,
    /// The interpreter is not there.
    #[error("the interpreter of `build.sh`, `{0}`, is no program on this machine")]
    NoInterpreter(String),
}

impl ScriptProblem {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Missing => {
                "write a `build.sh` in the project's root that exits with 0 when the project builds \
                 and passes its tests"
            }
            Self::NotAFile => "make `build.sh` a script",
            Self::Unreadable(_) => "make it readable",
            Self::NotExecutable => "run `chmod +x build.sh`",
            Self::NoShebang => "make its first line `#!/bin/sh` or the like",
            Self::CrlfShebang => {
                "save it with LF line endings, for example by `sed -i 's/\\r$//' build.sh`"
            }
            Self::NoInterpreter(_) => "install it, or name another one in its first line",
        }
    }
}

/// Looks whether build.sh can be started, before anything depends on it. `path` is the `PATH` that
/// `env` would search.
///
/// # Errors
/// What is wrong with it.
pub fn inspect(root: &Path, path: Option<&OsStr>) -> Result<(), ScriptProblem> {
    let script = root.join(BUILD_SCRIPT);
    let metadata = match script.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(ScriptProblem::Missing);
        }
        Err(error) => return Err(ScriptProblem::Unreadable(error.to_string())),
    };
    if !metadata.is_file() {
        return Err(ScriptProblem::NotAFile);
    }
    // Not only whether anybody may: root may without any bit, and others not with any.
    if metadata.permissions().mode() & 0o111 == 0 || access(&script, Access::EXEC_OK).is_err() {
        return Err(ScriptProblem::NotExecutable);
    }
    let beginning =
        read_beginning(&script).map_err(|error| ScriptProblem::Unreadable(error.to_string()))?;
    inspect_shebang(&beginning, path)
}

fn read_beginning(script: &Path) -> io::Result<Vec<u8>> {
    let mut beginning = Vec::new();
    File::open(script)?.take(1024).read_to_end(&mut beginning)?;
    Ok(beginning)
}

fn inspect_shebang(beginning: &[u8], path: Option<&OsStr>) -> Result<(), ScriptProblem> {
    const ELF: &[u8] = b"\x7fELF";
    if beginning.starts_with(ELF) {
        return Ok(());
    }
    let first_line = beginning
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let Some(interpreter) = first_line.strip_prefix(b"#!") else {
        return Err(ScriptProblem::NoShebang);
    };
    if interpreter.ends_with(b"\r") {
        return Err(ScriptProblem::CrlfShebang);
    }
    let interpreter = String::from_utf8_lossy(interpreter).into_owned();
    let mut words = interpreter.split_whitespace();
    let program = words.next().unwrap_or_default();
    if !is_executable(Path::new(program)) {
        return Err(ScriptProblem::NoInterpreter(program.to_owned()));
    }
    if Path::new(program).file_name() != Some(OsStr::new("env")) {
        return Ok(());
    }
    // `env` looks its first word up; with options or assignments it is left to find out itself.
    match words.next() {
        Some(name) if !name.starts_with('-') && !name.contains(['=', '/']) => {
            let mut directories = std::env::split_paths(path.unwrap_or_default());
            if directories.any(|directory| is_executable(&directory.join(name))) {
                Ok(())
            } else {
                Err(ScriptProblem::NoInterpreter(name.to_owned()))
            }
        }
        _ => Ok(()),
    }
}

fn is_executable(program: &Path) -> bool {
    program.is_file() && access(program, Access::EXEC_OK).is_ok()
}

/// How a build ended.
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
    /// Whether the build passed: its exit code is 0, whatever it printed.
    #[must_use]
    pub fn passed(self) -> bool {
        self == Self::Exited(0)
    }
}

/// A build that was run. That it failed is no error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildReport {
    /// How it ended.
    pub status: BuildStatus,
    /// How long it took.
    pub took: Duration,
    /// Whether something that it started still held its output, of which the rest is not known.
    pub left_behind: bool,
}

/// Why a build could not be run, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// It could not be started.
    #[error("cannot start `build.sh`: {problem}")]
    Unfit {
        /// What is wrong with it.
        problem: ScriptProblem,
    },
    /// The system did not start it, or could not tell how it ended.
    #[error("cannot run `{}`: {source}", .path.display())]
    Io {
        /// The script.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// Its output could not be logged.
    #[error("cannot log the output of `build.sh`: {0}")]
    Log(#[source] io::Error),
    /// It could not be shut in; nothing of it was started.
    #[error(transparent)]
    Sandbox(SandboxProblem),
    /// A signal ended the run, and the build with it.
    #[error(transparent)]
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

/// The build script of a project, and the circumstances it runs in.
pub struct BuildScript<'a> {
    /// The project's root.
    pub root: &'a Path,
    /// `PATH`, for the interpreter's sake.
    pub path: Option<&'a OsStr>,
    /// How long it may run.
    pub timeout: Duration,
    /// The time.
    pub clock: &'a dyn Clock,
    /// Ends it early.
    pub interrupt: &'a Interrupt,
    /// The variables that it does not get.
    pub hidden: &'a [OsString],
    /// What it is shut in, if anything.
    pub sandbox: Option<&'a Sandbox>,
}

impl BuildScript<'_> {
    /// Runs `./build.sh` to its end, and writes what it prints, both streams in the order they
    /// come, to `output`.
    ///
    /// # Errors
    /// When it cannot be started, its output cannot be written, or a signal ends the run.
    pub fn run(&self, output: &mut dyn Write) -> Result<BuildReport, BuildError> {
        let started = self.clock.elapsed();
        let (leader, reader) = self.start()?;
        let mut running = Running {
            leader,
            reader,
            closed: false,
            output,
            chunk: vec![0; CHUNK],
        };
        let outcome = self.wait(&mut running, started);
        let left_behind = !running.closed;
        // Whatever happened, nothing of it goes on running.
        let status = running
            .end(self.clock)
            .map_err(|source| self.failed(source));
        let timed_out = outcome?;
        let status = match (timed_out, status?) {
            (Some(limit), _) => BuildStatus::TimedOut(limit),
            (None, Ended::Exited(code)) => BuildStatus::Exited(code),
            (None, Ended::Signaled(signal)) => BuildStatus::Signaled(signal),
            // Nothing but SIGKILL ends a sandbox from inside.
            (None, Ended::Lost) => BuildStatus::Signaled(Signal::KILL.as_raw()),
            (None, Ended::NotStarted(number)) => {
                return Err(self.unfit(io::Error::from_raw_os_error(number)));
            }
        };
        Ok(BuildReport {
            status,
            took: self.clock.elapsed().saturating_sub(started),
            left_behind,
        })
    }

    fn start(&self) -> Result<(Leader, PipeReader), BuildError> {
        let (reader, writer) = io::pipe().map_err(|source| self.failed(source))?;
        let leader = match self.sandbox {
            Some(sandbox) => {
                let kept = sandbox.enter(self.interrupt, self.hidden)?;
                let order = Order {
                    words: vec![PROGRAM.to_owned()],
                    // What they print belongs to the build.
                    leftovers: Leftovers::Stay,
                };
                let started = kept.start(&order, &writer);
                started.map_err(|source| self.failed(source))?;
                Leader::Contained { kept, ended: None }
            }
            None => Leader::Direct(self.spawn(writer)?),
        };
        Ok((leader, reader))
    }

    fn spawn(&self, output: PipeWriter) -> Result<Child, BuildError> {
        let stderr = output.try_clone().map_err(|source| self.failed(source))?;
        let mut command = Command::new(PROGRAM);
        command
            .current_dir(self.root)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(stderr)
            .process_group(0);
        for variable in self.hidden {
            command.env_remove(variable);
        }
        // The command holds the pipe's other end: it must be gone before the output is read.
        command.spawn().map_err(|source| self.unfit(source))
    }

    /// Why the script cannot be started, as far as that can be told.
    fn unfit(&self, source: io::Error) -> BuildError {
        match inspect(self.root, self.path) {
            Err(problem) => BuildError::Unfit { problem },
            Ok(()) => self.failed(source),
        }
    }

    /// Waits for the script's end; gives the limit where that came first.
    fn wait(
        &self,
        running: &mut Running<'_>,
        started: Duration,
    ) -> Result<Option<Duration>, BuildError> {
        // A script that closes its output has commonly ended, or is about to.
        let mut nap = SHORTEST_NAP;
        loop {
            if running.has_ended().map_err(|source| self.failed(source))? {
                running.read_aftermath(self.clock)?;
                return Ok(None);
            }
            let spent = self.clock.elapsed().saturating_sub(started);
            if spent >= self.timeout {
                return Ok(Some(self.timeout));
            }
            let mut tick = TICK.min(self.timeout.saturating_sub(spent));
            if running.closed && matches!(running.leader, Leader::Direct(_)) {
                // Without its output there is nothing to wait on but time.
                tick = tick.min(nap);
                nap = nap.saturating_mul(2);
            }
            let woken = self
                .interrupt
                .poll(&running.watched(), PollFlags::IN, Some(tick));
            match woken {
                Ok(Woken::Ready) if running.has_output() => running.read_some()?,
                Ok(_) => {}
                Err(source) => {
                    self.interrupt.check()?;
                    return Err(self.failed(source));
                }
            }
        }
    }

    fn failed(&self, source: io::Error) -> BuildError {
        BuildError::Io {
            path: self.root.join(BUILD_SCRIPT),
            source,
        }
    }
}

/// The process that a script stands and falls with.
enum Leader {
    /// The script itself.
    Direct(Child),
    /// The script, as it is told of from inside a sandbox.
    Contained { kept: Kept, ended: Option<Ended> },
}

impl Leader {
    /// Whether the script has ended. It stays a zombie, so that its group's number is not given
    /// away before the group has been ended.
    fn has_ended(&mut self) -> io::Result<bool> {
        match self {
            Self::Direct(child) => {
                let Some(pid) = pid(child) else {
                    return Ok(true);
                };
                let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
                Ok(waitid(WaitId::Pid(pid), options)?.is_some())
            }
            Self::Contained { kept, ended } => {
                if ended.is_none() {
                    *ended = kept.ended()?;
                }
                Ok(ended.is_some())
            }
        }
    }

    /// Asks the script, and what it has started, to end by themselves.
    fn ask_to_end(&mut self) -> io::Result<()> {
        let ended = self.has_ended()?;
        match self {
            Self::Direct(child) => {
                if let Some(pid) = pid(child) {
                    // Fails where nobody is left, which is as good.
                    let _ = kill_process_group(pid, Signal::TERM);
                    if !ended {
                        // It may have left the group.
                        let _ = kill_process(pid, Signal::TERM);
                    }
                }
            }
            Self::Contained { kept, .. } => kept.ask_to_end(),
        }
        Ok(())
    }

    /// Ends all of it, and tells how the script itself has ended.
    fn end(&mut self) -> io::Result<Ended> {
        match self {
            Self::Direct(child) => {
                if let Some(pid) = pid(child) {
                    let _ = kill_process_group(pid, Signal::KILL);
                }
                // Does nothing where the script has ended by itself.
                child.kill()?;
                let status = child.wait()?;
                Ok(match (status.code(), status.signal()) {
                    (Some(code), _) => Ended::Exited(code),
                    (None, signal) => Ended::Signaled(signal.unwrap_or(0)),
                })
            }
            Self::Contained { kept, ended } => {
                kept.end();
                Ok(ended.take().unwrap_or(Ended::Lost))
            }
        }
    }
}

fn pid(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

/// A script that has been started.
struct Running<'o> {
    leader: Leader,
    reader: PipeReader,
    /// Whether the output has come to its end.
    closed: bool,
    output: &'o mut dyn Write,
    chunk: Vec<u8>,
}

impl Running<'_> {
    fn has_ended(&mut self) -> io::Result<bool> {
        self.leader.has_ended()
    }

    /// What tells that something happens.
    fn watched(&self) -> Vec<BorrowedFd<'_>> {
        let output = (!self.closed).then(|| self.reader.as_fd());
        let line = match &self.leader {
            Leader::Direct(_) => None,
            Leader::Contained { kept, .. } => Some(kept.as_fd()),
        };
        output.into_iter().chain(line).collect()
    }

    fn has_output(&self) -> bool {
        !self.closed && is_readable_within(self.reader.as_fd(), Duration::ZERO)
    }

    fn read_some(&mut self) -> Result<(), BuildError> {
        match self.reader.read(&mut self.chunk) {
            Ok(0) => self.closed = true,
            Ok(amount) => self
                .output
                .write_all(&self.chunk[..amount])
                .map_err(BuildError::Log)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // An output that cannot be read has ended as far as we are concerned.
            Err(_) => self.closed = true,
        }
        Ok(())
    }

    /// Reads what the script's filters and background jobs still have to say.
    fn read_aftermath(&mut self, clock: &dyn Clock) -> Result<(), BuildError> {
        let deadline = clock.elapsed() + AFTERMATH;
        while !self.closed
            && clock.elapsed() < deadline
            && is_readable_within(self.reader.as_fd(), PAUSE)
        {
            self.read_some()?;
        }
        Ok(())
    }

    /// Ends the script's process group, and tells how the script itself ended. What it prints on
    /// its way out is logged too.
    fn end(&mut self, clock: &dyn Clock) -> io::Result<Ended> {
        let ended = self.has_ended()?;
        self.leader.ask_to_end()?;
        let deadline = clock.elapsed() + if ended { Duration::ZERO } else { GRACE };
        while clock.elapsed() < deadline && !(self.closed && self.has_ended()?) {
            if self.closed {
                std::thread::sleep(TICK);
            } else if is_readable_within(self.reader.as_fd(), TICK) && self.read_some().is_err() {
                // The log cannot be written, which is reported where it matters.
                self.closed = true;
            }
        }
        self.leader.end()
    }
}
