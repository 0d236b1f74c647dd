//! The process for a task's run: this program, in the task's clone.
//!
//! Writes the run's inputs, including keys, into `agent-config` of the clone. Guarantees that the process receives a
//! signal once, and that its exit is awaited.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use rustix::fs::{AtFlags, CWD, unlinkat};

use super::clone::{create, write};
use super::error::FleetError;
use super::manifest::{Task, Workflow};
use super::process;
use crate::commands::cli::values::PROGRAM;
use crate::model::{ModelSpec, ModelTable, Purpose};
use crate::project::run_folder::make_directory;
use crate::project::{CONFIG, LOGS, ProjectProblem, QUERY};
use crate::run::context::{Context, TASK_FOLDER};
use crate::run::keys;
use crate::run::not_ready::NotReady;
use crate::sys::error::Error;
use crate::sys::files::{self, Links, PathError, open_directory_in};
use crate::sys::interrupt::Interrupt;

/// The vendor's variable that receives a task's own key, and the key.
type KeyVariable = (&'static str, String);

/// A process of this program.
pub struct Child {
    interrupt: Interrupt,
    command: Command,
}

impl Child {
    /// Creates a process with these arguments, the first of which is the program's name.
    ///
    /// # Errors
    /// Fails if the path of this program's executable is unknown.
    pub fn new(context: &Context<'_>, words: &[OsString]) -> Result<Self, Error> {
        let own = context.sandbox.program;
        let unknown = || io::Error::other("the program's own file is not known");
        let program = own.ok_or_else(|| PathError::of("start", PROGRAM)(unknown()))?;
        let mut command = Command::new(program);
        // Only this process may send it signals.
        command.args(words.iter().skip(1)).process_group(0);
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let interrupt = context.interrupt.clone();
        Ok(Self { interrupt, command })
    }

    /// Withholds the variables with the keys of these tasks from the process, and thus from its builds.
    pub fn without_keys(mut self, tasks: &[Task]) -> Self {
        let keys = tasks.iter().filter_map(|task| task.env_key.as_deref());
        // A task without an `env_key` uses the key in one of the vendors' variables, which builds never see.
        for key in keys.filter(|key| !keys::key_variables().any(|vendors| vendors == *key)) {
            self.command.env_remove(key);
        }
        self
    }

    /// Runs a task in its clone, with its query and key. Appends the output to files next to the clone.
    ///
    /// # Errors
    /// Fails if the process cannot be started, or a signal has arrived.
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
        let stdout = create(output, 0o600).map_err(PathError::of("write", output))?;
        let stderr = files::append(errors).map_err(PathError::of("write", errors))?;
        self.command.stdout(stdout).stderr(stderr);
        self.command.current_dir(clone);
        self.command
            .envs(clone.parent().map(|folder| (TASK_FOLDER, folder)));
        self.wait()
    }

    /// Runs the process and returns its exit status. Forwards a signal to it; the status shows whether the signal ended
    /// it.
    ///
    /// # Errors
    /// Fails if the process cannot be started.
    pub fn wait(mut self) -> Result<ExitStatus, Error> {
        self.interrupt.check()?;
        let child = self.command.spawn();
        let status = child.and_then(|child| process::wait(child, &self.interrupt, None));
        Ok(status.map_err(PathError::of("start", PROGRAM))?)
    }

    /// Redirects the standard output of the process to a file.
    pub fn printing_to(mut self, file: File) -> Self {
        self.command.stdout(file);
        self
    }
}

/// Writes a run's inputs into the clone: its query, and the models and keys from the directory in which the fleet was
/// started.
///
/// # Errors
/// Fails if something cannot be read or written.
pub fn write_inputs(context: &Context<'_>, task: &Task, clone: &Path) -> Result<(), Error> {
    for name in [CONFIG, LOGS] {
        make_directory(&clone.join(name)).map_err(|error| match error.kind() {
            io::ErrorKind::NotADirectory => {
                let id = task.id.clone();
                FleetError::NoDirectory { id, name }.into()
            }
            _ => Error::from(PathError::of("make", clone.join(name))(error)),
        })?;
    }
    let config = clone.join(CONFIG);
    if !task.text.is_empty() {
        write(&clone.join(QUERY), 0o666, task.text.as_bytes())?;
    }
    if let Some(models) = context.project.models().map_err(NotReady::of)? {
        write(&config.join("models.json"), 0o666, models.as_bytes())?;
    }
    let keyed = task.env_key.as_ref().and_then(|_| spec(context, task));
    let own = keyed.and_then(|spec| spec.key_file.as_deref());
    let table = context.models.as_ref().ok();
    for file in table.into_iter().flat_map(ModelTable::key_files) {
        if own == Some(file) {
            continue;
        }
        match context.project.key(file) {
            Ok(key) => write(&config.join(file), 0o600, key.expose().as_bytes())?,
            Err(ProjectProblem::Missing(_)) => {}
            Err(problem) => return Err(NotReady::of(problem).into()),
        }
    }
    Ok(())
}

/// Removes the keys from the clone, unless a build has replaced their directory with something else.
pub fn remove_keys(context: &Context<'_>, clone: &Path) {
    let Ok(config) = open_directory_in(CWD, &clone.join(CONFIG)) else {
        return;
    };
    for file in context.key_files() {
        // Most of these files do not exist.
        let _ = unlinkat(&config, file, AtFlags::empty());
    }
}

/// Returns the model that a task asks first, if it is in the table.
fn spec<'c>(context: &'c Context<'_>, task: &Task) -> Option<&'c ModelSpec> {
    let table = context.models.as_ref().ok()?;
    match &task.model {
        Some(model) => table.named(model),
        None => Some(table.chosen(&Purpose::INITIAL)),
    }
}

/// Returns the variable for the task's own key, and the key; `None` if the task does not name one.
///
/// # Errors
/// Fails if the key or the model does not exist, or the model takes no key from a variable.
pub fn own_key(context: &Context<'_>, task: &Task) -> Result<Option<KeyVariable>, FleetError> {
    let Some(variable) = &task.env_key else {
        return Ok(None);
    };
    let id = task.id.clone();
    let Some(spec) = spec(context, task) else {
        let model = task.model.clone().unwrap_or_default();
        return Err(FleetError::NoModel { id, model });
    };
    let Some(vendors) = keys::variables(spec).first() else {
        let model = spec.name.clone();
        return Err(FleetError::NoKeyVariable { id, model });
    };
    let no_key = || FleetError::NoKey {
        id: task.id.clone(),
        variable: variable.clone(),
    };
    let key = context.environment.get(variable).ok_or_else(no_key)?;
    Ok(Some((vendors, key.to_owned())))
}
