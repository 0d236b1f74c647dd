//! The commands of a session, in the foreground and in the background.
//!
//! Starts each with its own supervisor process (see [`supervisor`](crate::exec::supervisor)), in a sandbox if there is
//! one, and stores its output in a file. Guarantees that no command outlives the session, however that ends (see
//! [`subreaper`] for a command that kills its supervisor); that a command with endless output uses little disk and
//! memory; that no key is written to disk; and that no wait exceeds its limit by more than the few seconds that a
//! command has to end.

use std::fs::File;

use std::path::Path;
use std::time::Duration;
use std::{io, thread};

use xxhash_rust::xxh3::xxh3_64;

use super::child_env::ChildEnv;
use super::descriptors::path_of;
use super::output::{CapturedOutput, CredentialKinds};
use super::runner::Running;
use super::sandbox::Sandbox;
use super::subreaper;
use super::supervised_child::SupervisedChild;
use super::supervisor::GRACE;
use super::wire::{Leftovers, SpawnRequest, Streams};
use crate::secret::Redactor;
use crate::sys::environment::Clock;
use crate::sys::excerpt::text::{FOLLOWED, tail_of};
use crate::sys::files::{Links, PathError, open};
use crate::sys::interrupt::Interrupt;
use crate::sys::text::{line_end, one_line};

pub use super::process_error::{ProcessError, ScriptProblem};
pub use super::wire::CommandStatus;

/// Shell that runs command lines.
pub const SHELL: &str = "/bin/sh";
/// Maximum number of characters of a command shown in a list.
const SHOWN: usize = 100;
/// Interval at which a follower receives output.
const TICK: Duration = Duration::from_millis(200);

/// Callback that receives the tail of a command's output.
pub type Follower<'a> = Box<dyn Fn(&str) + 'a>;

/// Settings to start commands with.
pub struct SpawnOptions<'a> {
    /// Project root, the working directory of commands.
    pub root: &'a Path,
    /// This program's executable, which runs the supervisor; without it, commands cannot be run.
    pub program: Option<&'a Path>,
    /// Environment of commands.
    pub env: ChildEnv,
    /// Clock that measures their durations.
    pub clock: &'a dyn Clock,
    /// Interrupt that ends a command in the foreground.
    pub interrupt: &'a Interrupt,
    /// Redactor for their output.
    pub redactor: &'a Redactor,
    /// Sandbox to run commands in, if any.
    pub sandbox: Option<Sandbox>,
    /// Follower of the foreground command: it receives the tail of the output at intervals and once more at the end.
    pub follower: Follower<'a>,
}

/// A command to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invocation<'i> {
    /// A line for `sh -c`. After its timeout, it continues in the background.
    Shell(&'i str),
    /// A program and its arguments, passed unchanged. After its timeout, it is ended; it is never listed.
    Words(&'i [String]),
}

impl Invocation<'_> {
    fn words(&self) -> Vec<String> {
        match self {
            Self::Shell(line) => vec![SHELL.to_owned(), "-c".to_owned(), (*line).to_owned()],
            Self::Words(words) => words.to_vec(),
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Shell(line) => (*line).to_owned(),
            Self::Words(words) => words.join(" "),
        }
    }
}

/// Outcome of running a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ran {
    /// The command has ended.
    Ended(CommandStatus),
    /// The command continues in the background, as the process of this name.
    InBackground(String),
    /// The user asked to stop the command, and it was ended.
    Stopped,
    /// The command reached its timeout and was ended.
    TimedOut,
}

/// Report on a background command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Status of the process; `None` while it is running.
    pub status: Option<CommandStatus>,
    /// The command as given.
    pub command: String,
    /// Duration, or the time so far.
    pub took: Duration,
    /// Output so far.
    pub output: String,
}

/// One-line summary of a background command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Name by which an agent refers to the process.
    pub id: String,
    /// Status of the process; `None` while it is running.
    pub status: Option<CommandStatus>,
    /// Duration, or the time so far.
    pub took: Duration,
    /// The command on one line, truncated if long.
    pub command: String,
}

/// A started command.
struct Process<'c> {
    /// The command as given, with secrets redacted.
    command: String,
    running: Running<'c>,
    output: CapturedOutput,
}

impl Process<'_> {
    fn status(&self) -> Option<CommandStatus> {
        self.running.ending().map(|ending| ending.status)
    }

    fn report(&self) -> Report {
        Report {
            status: self.status(),
            command: self.command.clone(),
            took: self.running.took(),
            output: self.text(),
        }
    }

    /// Returns the output so far, with a note on processes left running.
    fn text(&self) -> String {
        let mut text = self.output.text();
        let left_behind = self.running.left_behind();
        if left_behind > 0 {
            text.push_str(line_end(&text));
            let (noun, verb) = match left_behind {
                1 => ("process", "was"),
                _ => ("processes", "were"),
            };
            text.push_str(&format!(
                "[{left_behind} {noun} that the command had left running {verb} ended with it]\n"
            ));
        }
        text
    }
}

/// The commands of a session. Dropping this ends all of them.
pub struct Processes<'a> {
    options: SpawnOptions<'a>,
    /// This program's executable. Held open so that it stays the same even if its path changes: it may be the project.
    program: Option<File>,
    /// Background processes with their names, in the order in which they were started.
    background: Vec<(String, Process<'a>)>,
    /// Kinds of likely credentials found in the output; `None` if they are not redacted.
    credentials: Option<CredentialKinds>,
    /// Time that commands have to exit on their own.
    grace: Duration,
}

impl<'a> Processes<'a> {
    /// Creates a session without commands.
    pub fn new(mut options: SpawnOptions<'a>) -> Self {
        options.sandbox = options.sandbox.map(Sandbox::with_new_repositories);
        Self {
            program: options
                .program
                .and_then(|path| open(path, Links::Followed).ok()),
            options,
            background: Vec::new(),
            credentials: Some(CredentialKinds::default()),
            grace: GRACE,
        }
    }

    /// Sets the time that commands have to exit on their own when asked to.
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets whether likely credentials stay in the output. Known keys are always removed.
    pub fn showing_credentials(mut self, shown: bool) -> Self {
        self.credentials = (!shown).then(CredentialKinds::default);
        self
    }

    /// Runs a command and waits up to `timeout` for its end. Stores its output in `output_file`, which must not exist
    /// yet, and returns it; if long, only its beginning and its end. The calling thread must live as long as `self`,
    /// because a sandbox ends with the thread that started it.
    ///
    /// # Errors
    /// Fails if the command cannot be started, its output cannot be stored, or a signal arrived before the start.
    pub fn run(
        &mut self,
        invocation: Invocation<'_>,
        timeout: Duration,
        output_file: &Path,
    ) -> Result<(Ran, String), ProcessError> {
        self.renew_sandbox();
        let mut process = self.start(invocation, output_file)?;
        let (running, output) = (&mut process.running, &process.output);
        let follow = || (self.options.follower)(tail_of(&output.text(), FOLLOWED));
        let waited = running.wait_ticking(timeout, self.options.interrupt, TICK, follow);
        follow();
        if let Err(error) = waited {
            running.stop();
            return match self.failed(error) {
                ProcessError::Interrupted(_) => Ok((Ran::Stopped, process.text())),
                error => Err(error),
            };
        }
        let status = process.status();
        if !process.running.is_over() {
            if let Invocation::Shell(_) = invocation {
                let output = process.text();
                return Ok((self.put_in_background(process, output_file), output));
            }
            process.running.stop();
        } else if let Some(CommandStatus::NotStarted(number)) = status {
            let source = io::Error::from_raw_os_error(number);
            return Err(not_started(&invocation.words(), source));
        }
        Ok((status.map_or(Ran::TimedOut, Ran::Ended), process.text()))
    }

    fn put_in_background(&mut self, process: Process<'a>, output_file: &Path) -> Ran {
        // The name is unique in the session, and depends only on the commands run so far, so that a replayed run
        // produces the same ones.
        let is_known = |id: &String| self.background.iter().any(|(known, _)| known == id);
        let mut ids = (0..).map(|turn| process_name(&process.command, output_file, turn));
        let id = ids.find(|id| !is_known(id)).unwrap_or_default();
        self.background.push((id.clone(), process));
        Ran::InBackground(id)
    }

    /// Accepts key files that the user has saved since. Does nothing while a command is running, because its sandbox
    /// was set up with the old files.
    fn renew_sandbox(&mut self) {
        let mut all_over = true;
        for (_, process) in &mut self.background {
            process.running.update();
            all_over &= process.running.is_over();
        }
        if let Some(sandbox) = self.options.sandbox.as_mut().filter(|_| all_over) {
            sandbox.renew();
        }
    }

    /// Ends all background processes.
    pub fn end(&mut self) {
        // All are asked before any is waited for, so that their grace periods do not add up.
        for (_, process) in &self.background {
            process.running.ask_to_end();
        }
        for (_, process) in &mut self.background {
            process.running.end();
        }
    }

    /// Checks that no command has moved or replaced what the sandbox hides or protects.
    ///
    /// # Errors
    /// Fails if one has.
    pub fn check_sandbox(&mut self) -> Result<(), ProcessError> {
        self.renew_sandbox();
        let sandbox = self.options.sandbox.as_ref();
        Ok(sandbox.map_or(Ok(()), Sandbox::check_unmoved)?)
    }

    /// Returns the kinds of credentials removed from the output since the last call.
    pub fn new_credentials(&self) -> Vec<&'static str> {
        let credentials = self.credentials.as_ref();
        credentials.map(CredentialKinds::take).unwrap_or_default()
    }

    /// Returns the refused connections since the last call, each once, as sentences without a full stop.
    pub fn new_refusals(&self) -> Vec<String> {
        let sandbox = self.options.sandbox.as_ref();
        sandbox.map_or_else(Vec::new, Sandbox::new_refusals)
    }

    /// Reports on a background process and its output so far.
    ///
    /// # Errors
    /// Fails with a sentence that names the existing processes if none has this name.
    pub fn read(&mut self, id: &str) -> Result<Report, String> {
        let process = self.named(id)?;
        process.running.update();
        Ok(process.report())
    }

    /// Lists all background processes, even ended ones, in the order in which they were started.
    pub fn list(&mut self) -> Vec<Listed> {
        let list = self.background.iter_mut().map(|(id, process)| {
            process.running.update();
            Listed {
                id: id.clone(),
                status: process.status(),
                took: process.running.took(),
                command: one_line(&process.command, SHOWN),
            }
        });
        list.collect()
    }

    /// Ends a background process and everything that it started, and reports on it. A process that has already ended is
    /// left unchanged.
    ///
    /// # Errors
    /// Fails with a sentence that names the existing processes if none has this name.
    pub fn kill(&mut self, id: &str) -> Result<Report, String> {
        let process = self.named(id)?;
        process.running.stop();
        Ok(process.report())
    }

    fn named(&mut self, id: &str) -> Result<&mut Process<'a>, String> {
        let names = || self.background.iter().map(|(name, _)| name.as_str());
        let at = names().position(|name| name == id);
        let at = at.ok_or_else(|| unknown(id, &names().collect::<Vec<_>>()))?;
        Ok(&mut self.background[at].1)
    }

    fn start(
        &self,
        invocation: Invocation<'_>,
        output_file: &Path,
    ) -> Result<Process<'a>, ProcessError> {
        let options = &self.options;
        options.interrupt.check()?;
        let request = request(invocation, self.grace)?;
        let child = match &options.sandbox {
            Some(sandbox) => sandbox.enter(options.interrupt, &options.env, None)?,
            None => self.start_supervisor()?,
        };
        let output = CapturedOutput::create(output_file)
            .map_err(PathError::of("write", output_file))
            .map_err(ProcessError::Output)?;
        let started = Running::start(child, &request, options.clock);
        let (running, pump) = started.map_err(|source| match source.kind() {
            io::ErrorKind::InvalidInput => not_started(&request.words, source),
            _ => ProcessError::Io(source),
        })?;
        let (filled, redactor) = (output.clone(), options.redactor.clone());
        let kinds = self.credentials.clone();
        let filling = move || filled.fill(pump, &redactor, kinds.as_ref());
        let thread = thread::Builder::new().spawn(filling);
        thread.map_err(ProcessError::Io)?;
        Ok(Process {
            command: options.redactor.text(&invocation.shown()).into_owned(),
            running,
            output,
        })
    }

    fn start_supervisor(&self) -> Result<SupervisedChild, ProcessError> {
        let options = &self.options;
        let path = self
            .program
            .as_ref()
            .map(path_of)
            .filter(|path| path.exists())
            .or(options.program.map(Path::to_path_buf))
            .ok_or(ProcessError::NoSupervisor)?;
        if !subreaper::can_look() {
            return Err(ProcessError::ForeignProc);
        }
        SupervisedChild::beside(&path, options.root, &options.env, options.interrupt)
            .map_err(|error| self.failed(error))
    }

    /// Returns the I/O error, or the interruption if a signal arrived.
    fn failed(&self, error: io::Error) -> ProcessError {
        let came = self.options.interrupt.check().err();
        came.map_or(ProcessError::Io(error), ProcessError::Interrupted)
    }
}

impl Drop for Processes<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

fn request(invocation: Invocation<'_>, grace: Duration) -> Result<SpawnRequest, ProcessError> {
    let words = invocation.words();
    let reason = if words.is_empty() {
        "there is no command"
    } else if words.iter().any(|word| word.contains('\0')) {
        "a NUL byte cannot stand in a command"
    } else {
        return Ok(SpawnRequest {
            words,
            streams: Streams::Output,
            leftovers: Leftovers::End,
            grace,
        });
    };
    let source = io::Error::new(io::ErrorKind::InvalidInput, reason);
    Err(not_started(&words, source))
}

fn not_started(words: &[String], source: io::Error) -> ProcessError {
    let program = words.first().cloned().unwrap_or_default();
    ProcessError::NotStarted { program, source }
}

/// Derives the name of a command whose output is in this file. The file's directory contains the time and is
/// ignored. Each `turn` gives a different name.
fn process_name(command: &str, output_file: &Path, turn: u64) -> String {
    let file = output_file.file_name().unwrap_or_default();
    let words = [
        command.as_bytes(),
        file.as_encoded_bytes(),
        &turn.to_be_bytes(),
    ];
    format!("proc_{:06x}", xxh3_64(&words.join(&0)) >> 40)
}

/// Returns the error sentence for a name that no background process has.
fn unknown(id: &str, names: &[&str]) -> String {
    let others = match names {
        [] => "none is running; those of an interrupted session have ended with it".to_owned(),
        names => format!("known: {}", names.join(", ")),
    };
    format!("there is no background process `{id}`; {others}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_command_is_reported() {
        for (words, reason) in [
            (vec![], "cannot start ``: there is no command"),
            (
                vec!["a".to_owned(), "b\0".to_owned()],
                "cannot start `a`: a NUL byte cannot stand in a command",
            ),
        ] {
            let error = request(Invocation::Words(&words), GRACE).unwrap_err();
            assert_eq!(error.to_string(), reason);
        }
    }

    #[test]
    fn ids_are_of_one_form_and_depend_on_what_is_run_alone() {
        let id = |command, file, turn| process_name(command, Path::new(file), turn);
        let known = "proc_ae5313";
        assert_eq!(id("npm start", "logs/1/0001-step-output.txt", 0), known);
        assert_eq!(id("npm start", "logs/2/0001-step-output.txt", 0), known);
        for other in [
            id("npm test", "logs/1/0001-step-output.txt", 0),
            id("npm start", "logs/1/0002-step-output.txt", 0),
            id("npm start", "logs/1/0001-step-output.txt", 1),
        ] {
            assert_ne!(other, known);
        }
        for turn in 0..1000 {
            let id = id("x", "y", turn);
            let digits = id.strip_prefix("proc_").unwrap();
            assert_eq!(digits.len(), 6);
            assert!(
                digits.bytes().all(|digit| digit.is_ascii_hexdigit()),
                "{id}"
            );
        }
    }

    #[test]
    fn a_process_that_is_not_there_is_reported_with_those_that_are() {
        assert_eq!(
            unknown("proc_x", &["proc_a", "proc_b"]),
            "there is no background process `proc_x`; known: proc_a, proc_b"
        );
        assert_eq!(
            unknown("proc_x", &[]),
            "there is no background process `proc_x`; none is running; those of an interrupted session have ended with it"
        );
    }
}
