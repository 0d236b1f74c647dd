//! The commands of a session, in the foreground and in the background.
//!
//! Starts each with a keeper of its own (see [`keeper`](crate::exec::sandbox::keeper)), in a sandbox where there is
//! one, and keeps what it prints in a file. Guarantees that none outlives the session, however that ends (but
//! see [`orphans`] for one that ends its keeper); that a command that prints without
//! end costs little of disk and memory; that no key reaches the disk; and that nobody waits for longer than
//! was said, give or take the seconds that a command has to end.

mod error;
mod id;
mod output;
pub mod ring;
mod running;
mod standing;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use self::error::{NoSuchProcess, ProcessError};
use self::id::nth_id;
use self::output::Output;
use self::ring::Ring;
use self::running::{Ending, Process};
use self::standing::in_one_line;
pub use self::standing::{Listed, Report, Standing, Status};
use crate::exec::sandbox::words::{Ended, Leftovers, Order};
use crate::exec::sandbox::{Kept, Sandbox, orphans};
use crate::secret::Redactor;
use crate::sys::environment::Clock;
use crate::sys::interrupt::Interrupt;

/// What a command line is given to.
const SHELL: &str = "/bin/sh";

/// What commands are run in.
pub struct Circumstances<'a> {
    /// The project's root, which is their directory.
    pub root: &'a Path,
    /// This program's own file, for the keeper; without it there are no commands.
    pub program: Option<&'a Path>,
    /// The variables that they do not get.
    pub hidden: Vec<OsString>,
    /// The time.
    pub clock: &'a dyn Clock,
    /// Ends what runs in the foreground.
    pub interrupt: &'a Interrupt,
    /// What their output passes through.
    pub redactor: &'a Redactor,
    /// What they are shut in, if anything.
    pub sandbox: Option<Sandbox>,
}

/// What is to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invocation<'i> {
    /// By the shell: `sh -c`.
    Shell(&'i str),
    /// A program and its arguments, as they are.
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

/// What becomes of a command that does not end in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnTimeout {
    /// It goes on in the background.
    Background,
    /// It is ended, and no list shows it.
    End,
}

/// What came of running a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ran {
    /// It has ended.
    Ended {
        /// How.
        status: Status,
        /// What it has printed, both streams; bounded, see [`Ring`].
        output: String,
        /// How long it took.
        took: Duration,
    },
    /// It goes on in the background.
    InBackground {
        /// Its name there.
        id: String,
        /// What it has printed so far.
        output: String,
    },
    /// It did not end in time, and was ended.
    TimedOut {
        /// What it has printed until then.
        output: String,
    },
}

/// A command in the background.
struct Background {
    id: String,
    process: Process,
}

/// The commands of a session. When this is dropped, none is left.
pub struct Processes<'a> {
    circumstances: Circumstances<'a>,
    /// This program, open, so that it is the same whatever becomes of its path: it may be what is worked on.
    program: Option<File>,
    background: Vec<Background>,
}

impl<'a> Processes<'a> {
    /// No commands so far.
    #[must_use]
    pub fn new(circumstances: Circumstances<'a>) -> Self {
        let sandbox = circumstances.sandbox;
        let circumstances = Circumstances {
            sandbox: sandbox.map(Sandbox::with_new_repositories),
            ..circumstances
        };
        Self {
            program: circumstances.program.and_then(|path| File::open(path).ok()),
            circumstances,
            background: Vec::new(),
        }
    }

    /// Runs a command, and waits for its end, for `patience` at the most; `on_timeout` says what
    /// becomes of it then. What it prints is kept in `output_file`, which must not be there yet. To be called
    /// by a thread that lives as long as this: a sandbox ends with the thread that has started it.
    ///
    /// # Errors
    /// When it cannot be started, its output cannot be kept, or a signal came.
    pub fn run(
        &mut self,
        invocation: Invocation<'_>,
        patience: Duration,
        on_timeout: OnTimeout,
        output_file: &Path,
    ) -> Result<Ran, ProcessError> {
        self.renew_premises();
        let clock = self.circumstances.clock;
        let mut process = self.start(invocation, output_file)?;
        if let Err(error) = process.wait(patience, &self.circumstances) {
            process.stop(clock);
            return Err(error);
        }
        match (process.ending(), on_timeout) {
            (
                Some(Ending {
                    ended: Ended::NotStarted(number),
                    ..
                }),
                _,
            ) => Err(not_started(invocation, number)),
            (Some(ending), _) if process.is_over() => Ok(process.ended(ending)),
            (_, OnTimeout::Background) => Ok(self.put_in_background(process, output_file)),
            (None, OnTimeout::End) => {
                process.stop(clock);
                let output = process.text();
                Ok(Ran::TimedOut { output })
            }
            (Some(ending), OnTimeout::End) => {
                process.stop(clock);
                Ok(process.ended(ending))
            }
        }
    }

    fn put_in_background(&mut self, process: Process, output_file: &Path) -> Ran {
        let id = self.new_id(&process.command, output_file);
        let output = process.text();
        self.background.push(Background {
            id: id.clone(),
            process,
        });
        Ran::InBackground { id, output }
    }

    /// Lets the user have saved key files anew. Where a command still runs, all stays as it is: what it sees
    /// was set up with the old ones.
    fn renew_premises(&mut self) {
        for Background { process, .. } in &mut self.background {
            process.hear(self.circumstances.clock);
        }
        if let Some(sandbox) = &mut self.circumstances.sandbox
            && self.background.iter().all(|one| one.process.is_over())
        {
            sandbox.renew();
        }
    }

    /// How a background process stands, and what it has printed so far.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn read(&mut self, id: &str) -> Result<Report, NoSuchProcess> {
        let clock = self.circumstances.clock;
        let process = self.named(id)?;
        process.hear(clock);
        Ok(process.report(clock))
    }

    /// All background processes, in the order in which they were started; those that have ended too.
    pub fn list(&mut self) -> Vec<Listed> {
        let clock = self.circumstances.clock;
        let list = self
            .background
            .iter_mut()
            .map(|Background { id, process }| {
                process.hear(clock);
                Listed {
                    id: id.clone(),
                    standing: process.standing(),
                    took: process.took(clock),
                    command: in_one_line(&process.command),
                }
            });
        list.collect()
    }

    /// Ends a background process and all that it has started, and says how it ended. One that has ended
    /// already is left as it is.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn kill(&mut self, id: &str) -> Result<Report, NoSuchProcess> {
        let clock = self.circumstances.clock;
        let process = self.named(id)?;
        process.stop(clock);
        Ok(process.report(clock))
    }

    /// Ends all background processes. What they have printed can still be read.
    fn end_all(&mut self) {
        // All at once, so that their seconds do not add up.
        for Background { process, .. } in &self.background {
            process.ask_to_end();
        }
        for Background { process, .. } in &mut self.background {
            process.end(self.circumstances.clock);
        }
    }

    fn named(&mut self, id: &str) -> Result<&mut Process, NoSuchProcess> {
        let at = self.background.iter().position(|one| one.id == id);
        let unknown = || NoSuchProcess {
            id: id.to_owned(),
            known: self.background.iter().map(|one| one.id.clone()).collect(),
        };
        let at = at.ok_or_else(unknown)?;
        Ok(&mut self.background[at].process)
    }

    fn start(
        &self,
        invocation: Invocation<'_>,
        output_file: &Path,
    ) -> Result<Process, ProcessError> {
        let circumstances = &self.circumstances;
        circumstances.interrupt.check()?;
        let order = order(invocation)?;
        let kept = match &circumstances.sandbox {
            Some(sandbox) => sandbox.enter(circumstances.interrupt, &circumstances.hidden)?,
            None => self.keep()?,
        };
        let ring = Ring::create(output_file).map_err(|source| ProcessError::Output {
            path: output_file.to_path_buf(),
            source,
        })?;
        let (reader, writer) = io::pipe().map_err(ProcessError::Io)?;
        let started = circumstances.clock.elapsed();
        kept.start(&order, &writer)
            .map_err(|source| match source.kind() {
                io::ErrorKind::InvalidInput => ProcessError::NotStarted {
                    program: name(&order.words),
                    source,
                },
                _ => ProcessError::Io(source),
            })?;
        // Else it would never come to its end.
        drop(writer);
        let output = Output::new(ring);
        let drained = output.fill(reader, circumstances.redactor.clone());
        let shown = invocation.shown();
        Ok(Process::new(
            circumstances.redactor.text(&shown).into_owned(),
            started,
            kept,
            output,
            drained.map_err(ProcessError::Io)?,
        ))
    }

    fn keep(&self) -> Result<Kept, ProcessError> {
        let Circumstances {
            root,
            program,
            hidden,
            interrupt,
            ..
        } = &self.circumstances;
        let open = self
            .program
            .as_ref()
            .map(|file| PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())));
        let path = open
            .filter(|path| path.exists())
            .or(program.map(Path::to_path_buf));
        let Some(path) = path else {
            return Err(ProcessError::NoKeeper);
        };
        if !orphans::can_look() {
            return Err(ProcessError::ForeignProc);
        }
        Kept::outside(&path, root, hidden, interrupt).map_err(|error| match interrupt.check() {
            Err(interrupted) => interrupted.into(),
            Ok(()) => ProcessError::Io(error),
        })
    }

    /// A name that no other process of the session has. It depends on what was run alone, so that a run that
    /// is played again gives the same.
    fn new_id(&self, command: &str, output_file: &Path) -> String {
        let is_known = |id: &String| self.background.iter().any(|one| one.id == *id);
        let mut ids = (0..).map(|turn| nth_id(command, output_file, turn));
        ids.find(|id| !is_known(id)).unwrap_or_default()
    }
}

impl Drop for Processes<'_> {
    fn drop(&mut self) {
        self.end_all();
    }
}

fn order(invocation: Invocation<'_>) -> Result<Order, ProcessError> {
    let words = invocation.words();
    let reason = if words.is_empty() {
        "there is no command"
    } else if words.iter().any(|word| word.contains('\0')) {
        "a NUL byte cannot stand in a command"
    } else {
        return Ok(Order {
            words,
            leftovers: Leftovers::End,
        });
    };
    Err(ProcessError::NotStarted {
        program: name(&words),
        source: io::Error::new(io::ErrorKind::InvalidInput, reason),
    })
}

fn not_started(invocation: Invocation<'_>, number: i32) -> ProcessError {
    ProcessError::NotStarted {
        program: name(&invocation.words()),
        source: io::Error::from_raw_os_error(number),
    }
}

fn name(words: &[String]) -> String {
    words.first().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_a_command_is_told() {
        for (words, reason) in [
            (vec![], "cannot start ``: there is no command"),
            (
                vec!["a".to_owned(), "b\0".to_owned()],
                "cannot start `a`: a NUL byte cannot stand in a command",
            ),
        ] {
            let error = order(Invocation::Words(&words)).unwrap_err();
            assert_eq!(error.to_string(), reason);
        }
    }
}
