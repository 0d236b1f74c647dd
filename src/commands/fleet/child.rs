//! The process of a task's run: this program, in the task's clone.
//!
//! Writes the run's inputs, keys among them, into `agent-config` of the clone. Guarantees that a signal reaches the
//! process once, and that its end is awaited.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use rustix::event::PollFlags;
use rustix::process::{Pid, Signal as Number, kill_process};

use super::clone::write;
use super::error::FleetError;
use super::manifest::{Task, Workflow};
use crate::model::{ModelSpec, Purpose};
use crate::project::{ProjectProblem, QUERY};
use crate::run::context::Context;
use crate::run::not_ready::NotReady;
use crate::sys::atomic_file;
use crate::sys::error::Error;
use crate::sys::files::{self, Links, PathError};
use crate::sys::interrupt::{Interrupt, Interrupted, Signal};
use crate::sys::parallel::joined;

/// The environment variable with a task's own key, and the vendor's in whose place it is put.
type KeyVariable = (&'static str, String);

/// A process of this program.
pub struct Child {
    interrupt: Interrupt,
    command: Command,
}

impl Child {
    /// Creates a process with these words, which begin with the program's name.
    ///
    /// # Errors
    /// When the program's own file is not known.
    pub fn new(context: &Context<'_>, words: &[OsString]) -> Result<Self, Error> {
        let program = context.sandbox.program;
        let unknown = || io::Error::other("the program's own file is not known");
        let program = program.ok_or_else(|| PathError::of("start", "code-commit")(unknown()))?;
        let mut command = Command::new(program);
        // Only this process sends it signals.
        command.args(words.iter().skip(1)).process_group(0);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        let interrupt = context.interrupt.clone();
        Ok(Self { interrupt, command })
    }

    /// Runs a task in its clone, with its query and key; its output is appended to files beside the clone.
    ///
    /// # Errors
    /// When it cannot be started, or a signal has arrived.
    pub fn run_task(
        mut self,
        context: &Context<'_>,
        task: &Task,
        clone: &Path,
        (output, errors): (&Path, &Path),
    ) -> Result<ExitStatus, Error> {
        if matches!(task.workflow, Workflow::Dev | Workflow::Plan) {
            let path = clone.join(QUERY);
            let query = files::open(&path, Links::Refused);
            self.command
                .stdin(query.map_err(PathError::of("read", path))?);
        }
        if let Some((variable, value)) = own_key(context, task)? {
            self.command.env(variable, value);
        }
        let removed = fs::remove_file(output);
        removed.or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(PathError::of("remove", output)(error)),
        })?;
        let stdout = files::create_new(output, 0o600).map_err(PathError::of("write", output))?;
        let stderr = files::append(errors).map_err(PathError::of("write", errors))?;
        self.command.stdout(stdout).stderr(stderr);
        self.command.current_dir(clone);
        self.wait().map(|(status, _)| status)
    }

    /// Runs the process, and returns how it ended and what it printed, if that goes to a pipe.
    ///
    /// # Errors
    /// When it cannot be started. A signal is passed on to it; that it has ended by it, its status says.
    pub fn wait(mut self) -> Result<(ExitStatus, Vec<u8>), Error> {
        let fails = || PathError::of("start", "code-commit");
        self.interrupt.check()?;
        let child = self.command.spawn().map_err(fails())?;
        let waited = passing_signals(&self.interrupt, child.id(), || child.wait_with_output());
        let output = waited.map_err(fails())?;
        Ok((output.status, output.stdout))
    }

    /// Has what the process prints go to a pipe.
    pub fn piped(mut self) -> Self {
        self.command.stdout(Stdio::piped());
        self
    }
}

/// Runs `wait` on a thread of its own, and passes the first signal that arrives meanwhile on to the process.
fn passing_signals<T: Send>(
    interrupt: &Interrupt,
    process: u32,
    wait: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    let (reader, writer) = io::pipe()?;
    std::thread::scope(|scope| {
        let waiting = std::thread::Builder::new().spawn_scoped(scope, move || {
            let waited = wait();
            drop(writer);
            waited
        })?;
        // The writer's end is closed when the process has ended.
        if interrupt
            .poll(&[reader.as_fd()], PollFlags::IN, None)
            .is_err()
            && let Err(Interrupted { signal }) = interrupt.check()
        {
            let number = match signal {
                Signal::Int => Number::INT,
                Signal::Term => Number::TERM,
                Signal::Hup => Number::HUP,
            };
            let process = i32::try_from(process).ok().and_then(Pid::from_raw);
            // It may have ended meanwhile.
            let _ = process.map(|process| kill_process(process, number));
        }
        joined(waiting)
    })
}

/// Writes what a run needs into the clone: its query, and the models and keys of the directory in which the fleet was
/// started.
///
/// # Errors
/// When something cannot be read or written.
pub fn write_inputs(
    context: &Context<'_>,
    task: &Task,
    query: &str,
    clone: &Path,
) -> Result<(), Error> {
    let config = clone.join("agent-config");
    atomic_file::private_directory(&config).map_err(PathError::of("make", &config))?;
    if !query.is_empty() {
        write(&clone.join(QUERY), query.as_bytes())?;
    }
    if let Some(models) = there(context.project.models())? {
        write(&config.join("models.json"), models.as_bytes())?;
    }
    let own = task
        .env_key
        .is_some()
        .then(|| spec(context, task))
        .flatten();
    let own = own.and_then(|spec| spec.key_file.clone());
    for file in context.key_files() {
        if own.as_deref() == Some(file) {
            continue;
        }
        if let Some(key) = there(context.project.key(file))? {
            let path = config.join(file);
            atomic_file::replace_private(&path, |out| out.write_all(key.expose().as_bytes()))
                .map_err(PathError::of("write", path))?;
        }
    }
    Ok(())
}

/// Removes the keys from the clone.
pub fn remove_keys(context: &Context<'_>, clone: &Path) {
    for file in context.key_files() {
        // Most are not there.
        let _ = fs::remove_file(clone.join("agent-config").join(file));
    }
}

fn there<T>(read: Result<T, ProjectProblem>) -> Result<Option<T>, Error> {
    match read {
        Err(ProjectProblem::Missing(_)) => Ok(None),
        read => Ok(Some(read.map_err(NotReady::of)?)),
    }
}

/// The model that a task asks first, if it is in the table.
fn spec<'c>(context: &'c Context<'_>, task: &Task) -> Option<&'c ModelSpec> {
    let table = context.models.as_ref().ok()?;
    match &task.model {
        Some(model) => table.named(model),
        None => Some(table.chosen(&Purpose::INITIAL)),
    }
}

/// Returns the variable for the task's own key, with the key; `None` if the task names none.
///
/// # Errors
/// When there is no such key, or no such model.
pub fn own_key(context: &Context<'_>, task: &Task) -> Result<Option<KeyVariable>, FleetError> {
    let Some(variable) = &task.env_key else {
        return Ok(None);
    };
    let (id, variable) = (task.id.clone(), variable.clone());
    let spec = spec(context, task).ok_or_else(|| FleetError::NoModel {
        id: id.clone(),
        model: task.model.clone().unwrap_or_default(),
    })?;
    let vendors = spec.provider.vendor().key_variables.first();
    match (context.environment.get(&variable), vendors) {
        (Some(key), Some(vendors)) => Ok(Some((vendors, key.to_owned()))),
        _ => Err(FleetError::NoKey { id, variable }),
    }
}
