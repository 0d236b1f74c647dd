//! The folder of a run: every step's file, written when the step happens, and the record at the end.
//!
//! Writes below `logs/` and nowhere else. Guarantees that no key is in any of its files, that no run
//! writes into another's folder, and that no link that somebody planted is followed.

mod build_log;

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::thread::{self, Scope, ScopedJoinHandle};

use chrono::{DateTime, FixedOffset};
use serde::Serialize;

use crate::model::StepId;
use crate::project::{CONFIG, LOGS};
use crate::record::Step;
use crate::record::run_files::{self, Artifact, REPLACED, RESULT};
use crate::secret::Redactor;
use crate::secret::credentials::Censor;
use crate::sys::atomic_file;
use crate::sys::files::{IfThere as _, PathError, append, create_new, is_no_file};

pub use self::build_log::{BuildLog, BuildOutput};

/// A file of the run could not be written.
pub type LogError = PathError;

/// A run's folder.
#[derive(Debug)]
pub struct RunLog<'r> {
    folder: PathBuf,
    name: String,
    redactor: &'r Redactor,
    /// Whether the folder has an ignore file of its own.
    is_kept_from_git: bool,
}

impl<'r> RunLog<'r> {
    /// Makes the folder of a run of `workflow` that starts at `now`, and `logs` where it is missing.
    ///
    /// # Errors
    /// When it cannot be made, or `logs` is no directory.
    pub fn create(
        root: &Path,
        now: DateTime<FixedOffset>,
        workflow: &str,
        redactor: &'r Redactor,
    ) -> Result<Self, LogError> {
        let logs = root.join(LOGS);
        make_directory(&logs).map_err(failed(&logs))?;
        let stamp = now.format("%Y-%m-%d-%H-%M-%S");
        let mut name = format!("{stamp}-{workflow}");
        let mut nth = 1;
        loop {
            let folder = logs.join(&name);
            match fs::create_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    nth += 1;
                    name = format!("{stamp}-{workflow}-{nth}");
                }
                made => {
                    made.map_err(failed(&folder))?;
                    return Ok(Self {
                        folder,
                        name: format!("{LOGS}/{name}"),
                        redactor,
                        is_kept_from_git: false,
                    });
                }
            }
        }
    }

    /// The folder's path, relative to the project's root.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The path of a step's file, relative to the project's root.
    #[must_use]
    pub fn path_of(&self, step: &StepId, artifact: Artifact) -> String {
        format!("{}/{}", self.name, run_files::name(step, artifact))
    }

    /// Logs a query.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn query(&self, step: &StepId, prompt: &impl Display) -> Result<(), LogError> {
        self.write(step, Artifact::Query, |out| write!(out, "{prompt}"))
    }

    /// Logs the vendor's answer as it came.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn answer(&self, step: &StepId, json: &[u8]) -> Result<(), LogError> {
        self.write(step, Artifact::ResponseJson, |out| out.write_all(json))
    }

    /// Logs the reply's text.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn reply(&self, step: &StepId, text: &str) -> Result<(), LogError> {
        self.write(step, Artifact::ResponseText, |out| {
            out.write_all(text.as_bytes())
        })
    }

    /// Logs an error in the place of the reply.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn reply_error(
        &self,
        step: &StepId,
        error: &impl Display,
        hint: &str,
    ) -> Result<(), LogError> {
        let error_line = run_files::ERROR_LINE;
        self.write(step, Artifact::ResponseText, |out| {
            write!(out, "{error_line}{error}\nhint: {hint}\n")
        })
    }

    /// Logs something while something else is done.
    ///
    /// # Errors
    /// When no thread is to be had for it.
    pub fn in_background<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        log: impl FnOnce(&Self) -> Result<(), LogError> + Send + 's,
    ) -> Result<ScopedJoinHandle<'s, Result<(), LogError>>, LogError> {
        let started = thread::Builder::new().spawn_scoped(scope, move || log(self));
        started.map_err(failed(&self.folder))
    }

    /// Opens the log of a build.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn build(&self, step: &StepId) -> Result<BuildLog<'r>, LogError> {
        let path = self.folder.join(run_files::name(step, Artifact::Build));
        BuildLog::create(path, self.redactor)
    }

    /// Opens the log of a build that comes before a run, in `logs`. That of an earlier one goes.
    ///
    /// # Errors
    /// When the file cannot be written, or `logs` is no directory.
    pub fn baseline(root: &Path, redactor: &'r Redactor) -> Result<BuildLog<'r>, LogError> {
        let logs = root.join(LOGS);
        let path = logs.join(run_files::BASELINE);
        let clear = || {
            make_directory(&logs)?;
            fs::remove_file(&path).if_there().map(drop)
        };
        clear().map_err(failed(&path))?;
        BuildLog::create(path, redactor)
    }

    /// Logs a tool that an agent has used: what it was given, and what came of it. There may be several
    /// in a step.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn tool(
        &self,
        step: &StepId,
        name: &str,
        input: &str,
        result: &str,
    ) -> Result<(), LogError> {
        self.write_to(&run_files::name(step, Artifact::Build), append, |out| {
            write!(out, "[{name}]\n{input}\n[result]\n{result}\n")
        })
    }

    /// The file for the output of a command that an agent runs: the `nth` one of the step, from 1 on.
    #[must_use]
    pub fn command_output(&self, step: &StepId, nth: u32) -> PathBuf {
        let artifact = Artifact::Output(nth);
        self.folder.join(run_files::name(step, artifact))
    }

    /// Makes the folder again where it is gone; whether it was.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn restore(&self) -> Result<bool, LogError> {
        if self.folder.symlink_metadata().is_ok() {
            return Ok(false);
        }
        if let Some(logs) = self.folder.parent() {
            make_ignored_directory(logs)?;
        }
        fs::create_dir(&self.folder).map_err(failed(&self.folder))?;
        if self.is_kept_from_git {
            self.ignore()?;
        }
        Ok(true)
    }

    /// Notes a step as far as it has come: a later line about it takes the place of an earlier one.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn step(&self, step: &Step) -> Result<(), LogError> {
        // A build may have put something else there, which is not waited for, nor written through.
        let open = |path: &Path| match append(path) {
            Err(error) if is_no_file(&error) => {
                fs::remove_file(path)?;
                append(path)
            }
            opened => opened,
        };
        self.write_to(run_files::STEPS, open, |out| {
            serde_json::to_writer(&mut *out, step)?;
            out.write_all(b"\n")
        })
    }

    /// Writes `record` as the file `name`, whatever stands there.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn json(&self, name: &str, record: &impl Serialize) -> Result<(), LogError> {
        self.replace(name, |out| {
            serde_json::to_writer_pretty(&mut *out, record)?;
            out.write_all(b"\n")
        })
    }

    /// Writes `text`, less what looks like credentials, as the file `name`, whatever stands there.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn text(&self, name: &str, text: &str) -> Result<(), LogError> {
        self.replace(name, |out| {
            let mut out = Censor::new(out);
            out.write_all(text.as_bytes())?;
            out.finish().map(drop)
        })
    }

    fn replace(
        &self,
        name: &str,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), LogError> {
        let path = self.folder.join(name);
        // Renamed over whatever stands there: a build may have tried to be faster.
        let written = atomic_file::replace(&path, |file| self.redacted(file, content));
        written.map_err(failed(&path))
    }

    /// Has git pass the folder over, where it does not do so by itself.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn keep_from_git(&mut self) -> Result<(), LogError> {
        self.is_kept_from_git = true;
        self.ignore()
    }

    fn ignore(&self) -> Result<(), LogError> {
        let path = self.folder.join(".gitignore");
        ignore_all(&path).map_err(failed(&path))
    }

    fn write(
        &self,
        step: &StepId,
        artifact: Artifact,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), LogError> {
        self.write_to(&run_files::name(step, artifact), create, content)
    }

    fn write_to(
        &self,
        name: &str,
        open: fn(&Path) -> io::Result<File>,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), LogError> {
        let path = self.folder.join(name);
        let written = open(&path).and_then(|file| self.redacted(file, content));
        written.map_err(failed(&path))
    }

    fn redacted(
        &self,
        file: impl Write,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut out = self.redactor.writer(BufWriter::new(file));
        content(&mut out)?;
        out.finish().map(drop)
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> LogError {
    PathError::of("write", path)
}

/// Makes a directory that git ignores, by a `.gitignore` of its own, unless it is there.
///
/// # Errors
/// When it cannot be made.
pub fn make_ignored_directory(path: &Path) -> Result<(), LogError> {
    let make = || {
        if make_directory(path)? {
            ignore_all(&path.join(".gitignore"))?;
        }
        Ok(())
    };
    make().map_err(failed(path))
}

/// Makes a directory, unless it is there; whether it was made. A link to one is refused: what is logged stays in
/// the project.
fn make_directory(path: &Path) -> io::Result<bool> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let is_directory = path.symlink_metadata()?.is_dir();
            let refused = || io::ErrorKind::NotADirectory.into();
            is_directory.then_some(false).ok_or_else(refused)
        }
        made => made.map(|()| true),
    }
}

/// Removes what killed runs have not moved into its place. For whoever holds the project; a run that has its record has
/// left nothing.
pub fn sweep(root: &Path) {
    let (logs, config) = (root.join(LOGS), root.join(CONFIG));
    let mut directories = vec![logs.clone(), config.clone()];
    for run in fs::read_dir(&logs).into_iter().flatten().flatten() {
        if run.path().join(RESULT).symlink_metadata().is_err() {
            directories.push(run.path());
            directories.push(config.join(REPLACED).join(run.file_name()));
        }
    }
    for directory in directories {
        // What stays is told by its name, and harms nobody.
        let _ = atomic_file::sweep(&directory, None);
    }
}

/// Makes a file that must not exist: neither a link nor another run's file is written to.
fn create(path: &Path) -> io::Result<File> {
    create_new(path, 0o666)
}

/// Writes an ignore file by which git passes everything over that lies beside it.
fn ignore_all(path: &Path) -> io::Result<()> {
    atomic_file::replace(path, |file| file.write_all(b"*\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeZone as _;

    fn now() -> DateTime<FixedOffset> {
        FixedOffset::east_opt(3600)
            .unwrap()
            .with_ymd_and_hms(2026, 1, 2, 3, 4, 5)
            .unwrap()
    }

    #[test]
    fn runs_of_the_same_second_get_folders_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let redactor = Redactor::default();
        let create = |workflow| {
            RunLog::create(dir.path(), now(), workflow, &redactor)
                .unwrap()
                .name()
                .to_owned()
        };
        assert_eq!(
            create("committing-code"),
            "logs/2026-01-02-03-04-05-committing-code"
        );
        assert_eq!(
            create("committing-code"),
            "logs/2026-01-02-03-04-05-committing-code-2"
        );
        assert_eq!(
            create("committing-code"),
            "logs/2026-01-02-03-04-05-committing-code-3"
        );
        assert_eq!(
            create("consistency-report"),
            "logs/2026-01-02-03-04-05-consistency-report"
        );
    }

    #[test]
    fn nothing_planted_is_written_through() {
        let dir = tempfile::tempdir().unwrap();
        let redactor = Redactor::default();
        let outside = dir.path().join("outside");
        fs::write(&outside, "mine").unwrap();
        let root = dir.path().join("root");
        fs::create_dir(&root).unwrap();
        let log = RunLog::create(&root, now(), "committing-code", &redactor).unwrap();
        let planted = root.join(log.name()).join("initial-query.txt");
        std::os::unix::fs::symlink(&outside, &planted).unwrap();
        assert!(log.query(&StepId::INITIAL, &"x").is_err());
        assert_eq!(fs::read_to_string(&outside).unwrap(), "mine");

        let linked = dir.path().join("linked");
        fs::create_dir(&linked).unwrap();
        std::os::unix::fs::symlink(&root, linked.join("logs")).unwrap();
        assert!(RunLog::create(&linked, now(), "committing-code", &redactor).is_err());
    }
}
