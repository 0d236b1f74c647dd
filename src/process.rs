//! The commands of a session, in the foreground and in the background.
//!
//! Starts each with a keeper of its own (see [`keeper`](crate::sandbox::keeper)), in a sandbox where there is
//! one, and keeps what it prints in a file. Guarantees that none outlives the session, however that ends (but
//! see [`orphans`](crate::sandbox::orphans) for one that ends its keeper); that a command that prints without
//! end costs little of disk and memory; that no key reaches the disk; and that nobody waits for longer than
//! was said, give or take the seconds that a command has to end.

mod output;
pub mod ring;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use rustix::event::PollFlags;
use signal_hook::low_level::signal_name;
use xxhash_rust::xxh3::xxh3_64;

use self::output::{Output, line_end};
use self::ring::Ring;
use crate::environment::Clock;
use crate::interrupt::{Interrupt, Interrupted, is_readable_within};
use crate::sandbox::keeper::GRACE;
use crate::sandbox::kept::Heard;
use crate::sandbox::words::{Ended, Leftovers, Order, Word};
use crate::sandbox::{Kept, Sandbox, SandboxProblem};
use crate::secret::Redactor;

/// What a command line is given to.
const SHELL: &str = "/bin/sh";
/// How long a command may take to be gone when its grace is over.
const TEAR_DOWN: Duration = Duration::from_secs(2);
/// How long the rest of an output may take to be read when nobody is left who could write it.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How many characters of a command are shown in a list.
const SHOWN: usize = 100;
/// What an id is made of, and of how many.
const DIGITS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
const ID_LENGTH: u32 = 6;

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

/// How a command has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// Its keeper is gone, and the command with it.
    Lost,
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code: {code}"),
            Self::Signaled(signal) => {
                let name = signal_name(*signal).unwrap_or("unknown");
                write!(f, "signal: {signal} ({name})")
            }
            Self::Lost => f.write_str("ended: nobody can tell how"),
        }
    }
}

/// Whether a command still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It does.
    Running,
    /// It does not.
    Ended(Status),
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

/// A command that was put in the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Whether it still runs.
    pub standing: Standing,
    /// The command, as it was given.
    pub command: String,
    /// How long it took, or has taken so far.
    pub took: Duration,
    /// What it has printed so far.
    pub output: String,
}

/// The same in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub id: String,
    /// Whether it still runs.
    pub standing: Standing,
    /// How long it took, or has taken so far.
    pub took: Duration,
    /// The command in one line, cut where it is long.
    pub command: String,
}

/// Why a command could not be run, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It is none: the system does not start it. Another one may do.
    #[error("cannot start `{program}`: {source}")]
    NotStarted {
        /// The program's name, or the shell's.
        program: String,
        /// The system's word.
        source: io::Error,
    },
    /// Nobody can keep it.
    #[error("no command can be run: the path of this program is not known")]
    NoKeeper,
    /// The system did not start its keeper.
    #[error("cannot run a command: {0}")]
    Io(#[source] io::Error),
    /// The file for its output could not be made.
    #[error("cannot write `{}`: {source}", .path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// It could not be shut in; nothing of it was started.
    #[error(transparent)]
    Sandbox(SandboxProblem),
    /// A signal came, and the command was ended.
    #[error(transparent)]
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

/// There is no background process of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no background process `{id}`: {}", listed(.known))]
pub struct NoSuchProcess {
    /// What was asked for.
    pub id: String,
    /// Those that there are, in the order in which they were started.
    pub known: Vec<String>,
}

fn listed(ids: &[String]) -> String {
    if ids.is_empty() {
        "there is none so far".to_owned()
    } else {
        format!("known are {}", ids.join(", "))
    }
}

/// The commands of a session. When this is dropped, none is left.
pub struct Processes<'a> {
    circumstances: Circumstances<'a>,
    /// This program, open, so that it is the same whatever becomes of its path: it may be what is worked on.
    program: Option<File>,
    background: Vec<Process>,
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
        match (process.ending, on_timeout) {
            (
                Some(Ending {
                    ended: Ended::NotStarted(number),
                    ..
                }),
                _,
            ) => Err(not_started(invocation, number)),
            (Some(ending), _) if process.is_over => Ok(process.ended(ending)),
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

    fn put_in_background(&mut self, mut process: Process, output_file: &Path) -> Ran {
        let id = self.new_id(&process.command, output_file);
        id.clone_into(&mut process.id);
        let output = process.text();
        self.background.push(process);
        Ran::InBackground { id, output }
    }

    /// Lets the user have saved key files anew. Where a command still runs, all stays as it is: what it sees
    /// was set up with the old ones.
    fn renew_premises(&mut self) {
        for process in &mut self.background {
            process.hear(self.circumstances.clock);
        }
        if let Some(sandbox) = &mut self.circumstances.sandbox
            && self.background.iter().all(|process| process.is_over)
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
        let list = self.background.iter_mut().map(|process| {
            process.hear(clock);
            Listed {
                id: process.id.clone(),
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
    pub fn end_all(&mut self) {
        // All at once, so that their seconds do not add up.
        for process in &self.background {
            process.kept.ask_to_end();
        }
        for process in &mut self.background {
            process.end(self.circumstances.clock);
        }
    }

    fn named(&mut self, id: &str) -> Result<&mut Process, NoSuchProcess> {
        let at = self.background.iter().position(|process| process.id == id);
        let unknown = || NoSuchProcess {
            id: id.to_owned(),
            known: self.background.iter().map(|one| one.id.clone()).collect(),
        };
        let at = at.ok_or_else(unknown)?;
        Ok(&mut self.background[at])
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
        Ok(Process {
            id: String::new(),
            command: circumstances
                .redactor
                .text(&invocation.shown())
                .into_owned(),
            started,
            kept,
            output,
            drained: drained.map_err(ProcessError::Io)?,
            ending: None,
            left_behind: 0,
            is_over: false,
        })
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
        Kept::outside(&path, root, hidden, interrupt).map_err(|error| match interrupt.check() {
            Err(interrupted) => interrupted.into(),
            Ok(()) => ProcessError::Io(error),
        })
    }

    /// A name that no other process of the session has. It depends on what was run alone, so that a run that
    /// is played again gives the same.
    fn new_id(&self, command: &str, output_file: &Path) -> String {
        let is_known = |id: &String| self.background.iter().any(|process| process.id == *id);
        let mut ids = (0..).map(|turn| nth_id(command, output_file, turn));
        ids.find(|id| !is_known(id)).unwrap_or_default()
    }
}

impl Drop for Processes<'_> {
    fn drop(&mut self) {
        self.end_all();
    }
}

/// The name of a command whose output is in this file. The file's directory has the time in it, and does not
/// count. Each turn gives another.
fn nth_id(command: &str, output_file: &Path, turn: u64) -> String {
    let file = output_file.file_name().unwrap_or_default();
    let words = [command.as_bytes(), file.as_bytes(), &turn.to_be_bytes()];
    let mut rest = xxh3_64(&words.join(&0));
    let base = DIGITS.len() as u64;
    let digits = (0..ID_LENGTH).map(|_| {
        let digit = usize::try_from(rest % base).unwrap_or_default();
        rest /= base;
        char::from(DIGITS[digit])
    });
    format!("proc_{}", digits.collect::<String>())
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

fn in_one_line(command: &str) -> String {
    let line = command.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// How and when a command has ended.
#[derive(Debug, Clone, Copy)]
struct Ending {
    ended: Ended,
    took: Duration,
}

impl Ending {
    fn status(self) -> Status {
        match self.ended {
            Ended::Exited(code) => Status::Exited(code),
            Ended::Signaled(signal) => Status::Signaled(signal),
            Ended::NotStarted(_) | Ended::Lost => Status::Lost,
        }
    }
}

/// A command that was started.
struct Process {
    /// Its name in the background; empty before.
    id: String,
    command: String,
    started: Duration,
    kept: Kept,
    output: Output,
    /// Closed when all of the output was read.
    drained: Receiver<()>,
    ending: Option<Ending>,
    /// How many processes it has left running, which were ended.
    left_behind: u64,
    /// Whether nothing of it is left.
    is_over: bool,
}

impl Process {
    /// Takes in what its keeper has said.
    fn hear(&mut self, clock: &dyn Clock) {
        while !self.is_over {
            match self.kept.hear() {
                Ok(Heard::NotYet) => return,
                Ok(Heard::Word(Word::Ended(ended, took))) => {
                    self.ending = Some(Ending { ended, took });
                }
                Ok(Heard::Word(Word::LeftBehind(count))) => self.left_behind = count,
                Ok(Heard::Word(Word::Ready)) => {}
                // A line that cannot be read has ended as far as we are concerned.
                Ok(Heard::End) | Err(_) => self.close(clock),
            }
        }
    }

    /// Nothing more will come.
    fn close(&mut self, clock: &dyn Clock) {
        self.is_over = true;
        self.kept.end();
        let took = clock.elapsed().saturating_sub(self.started);
        self.ending.get_or_insert(Ending {
            ended: Ended::Lost,
            took,
        });
        // Who has escaped its keeper may still hold the pipe; it is not waited for.
        let _ = self.drained.recv_timeout(LAST_WORDS);
    }

    /// Waits until nothing of it is left, or it has had its time.
    fn wait(
        &mut self,
        patience: Duration,
        circumstances: &Circumstances<'_>,
    ) -> Result<(), ProcessError> {
        let Circumstances {
            clock, interrupt, ..
        } = circumstances;
        // Who has ended is not put in the background: what it has left running has its seconds.
        let last = patience.saturating_add(GRACE * 2 + TEAR_DOWN);
        loop {
            self.hear(*clock);
            let spent = clock.elapsed().saturating_sub(self.started);
            let limit = if self.ending.is_some() {
                last
            } else {
                patience
            };
            if self.is_over || spent >= limit {
                return Ok(());
            }
            let watched = [self.kept.as_fd()];
            if let Err(error) =
                interrupt.poll(&watched, PollFlags::IN, Some(limit.saturating_sub(spent)))
            {
                interrupt.check()?;
                return Err(ProcessError::Io(error));
            }
        }
    }

    /// Asks it to end, and ends it.
    fn stop(&mut self, clock: &dyn Clock) {
        self.kept.ask_to_end();
        self.end(clock);
    }

    /// Ends it, where it has been asked to end already.
    fn end(&mut self, clock: &dyn Clock) {
        let deadline = clock.elapsed() + GRACE + TEAR_DOWN;
        loop {
            self.hear(clock);
            let left = deadline.saturating_sub(clock.elapsed());
            if self.is_over || !is_readable_within(self.kept.as_fd(), left) {
                break;
            }
        }
        if !self.is_over {
            self.close(clock);
        }
    }

    fn standing(&self) -> Standing {
        match self.ending {
            Some(ending) => Standing::Ended(ending.status()),
            None => Standing::Running,
        }
    }

    fn took(&self, clock: &dyn Clock) -> Duration {
        let so_far = || clock.elapsed().saturating_sub(self.started);
        self.ending.map_or_else(so_far, |ending| ending.took)
    }

    fn ended(&self, ending: Ending) -> Ran {
        Ran::Ended {
            status: ending.status(),
            output: self.text(),
            took: ending.took,
        }
    }

    fn report(&self, clock: &dyn Clock) -> Report {
        Report {
            standing: self.standing(),
            command: self.command.clone(),
            took: self.took(clock),
            output: self.text(),
        }
    }

    fn text(&self) -> String {
        let mut text = self.output.text();
        if self.left_behind > 0 {
            text.push_str(line_end(&text));
            let (noun, verb) = match self.left_behind {
                1 => ("process", "was"),
                _ => ("processes", "were"),
            };
            text.push_str(&format!(
                "[{} {noun} that the command had left running {verb} ended with it]\n",
                self.left_behind
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_of_one_form_and_depend_on_what_is_run_alone() {
        let id = |command, file, turn| nth_id(command, Path::new(file), turn);
        let known = "proc_okr80b";
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
            assert!(digits.bytes().all(|digit| DIGITS.contains(&digit)), "{id}");
        }
    }

    #[test]
    fn a_list_shows_a_command_in_one_line() {
        for (command, shown) in [
            ("ls", "ls".to_owned()),
            (
                "for i in 1 2\n  do x\ndone",
                "for i in 1 2 do x done".to_owned(),
            ),
            (&"é".repeat(101), format!("{}…", "é".repeat(100))),
        ] {
            assert_eq!(in_one_line(command), shown);
        }
    }

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

    #[test]
    fn a_process_that_is_not_there_is_told_with_those_that_are() {
        let error = |known: &[&str]| {
            let known = known.iter().map(|id| (*id).to_owned()).collect();
            let id = "proc_x".to_owned();
            NoSuchProcess { id, known }.to_string()
        };
        assert_eq!(
            error(&["proc_a", "proc_b"]),
            "there is no background process `proc_x`: known are proc_a, proc_b"
        );
        assert_eq!(
            error(&[]),
            "there is no background process `proc_x`: there is none so far"
        );
    }
}
