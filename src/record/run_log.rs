//! The folder of a run: a file for each step, written as it happens, and the record at the end.
//!
//! Writes below `logs/` and nowhere else. Guarantees that no key is in any of its files, that no run writes into
//! another's folder, and that planted links are not followed.

mod build_log;

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, FixedOffset};
use rustix::fs::{AtFlags, CWD, unlinkat};
use serde::Serialize;

use crate::model::StepId;
use crate::project::gitignore::GITIGNORE;
use crate::project::run_folder::{REPLACED, RunFolder, make_directory};
use crate::project::{CONFIG, LOGS};
use crate::record::run_files::{self, Artifact, RESULT};
use crate::record::step::Step;
use crate::secret::Redactor;
use crate::secret::credentials::Censor;
use crate::sys::atomic_file::{self, replace_in};
use crate::sys::files::{
    IfThere as _, PathError, allocate, append_in, create_new_in, is_no_file, open_directory_in,
};

pub use self::build_log::{BuildLog, BuildOutput};

/// The content of an ignore file that makes git ignore everything next to it.
const IGNORE_ALL: &[u8] = b"*\n";

/// The size of the pieces in which a line of JSON is searched for keys, in bytes.
const LINE_PIECE: usize = 64 << 10;

/// The disk space that is reserved for the record of the run, in bytes.
const RECORD: usize = 64 << 10;

/// The error from writing a file of the run.
pub type LogError = PathError;

/// A writer of a run's folder.
#[derive(Debug, Clone)]
pub struct RunLog<'r> {
    folder: Arc<RunFolder>,
    name: String,
    redactor: &'r Redactor,
    /// True if the folder has its own ignore file.
    is_kept_from_git: bool,
}

impl<'r> RunLog<'r> {
    /// Creates the folder of a run of `workflow` that starts at `now`, and `logs` if it is missing.
    ///
    /// # Errors
    /// Fails if the folder cannot be created, or `logs` is not a directory.
    pub fn create(
        root: &Path,
        now: DateTime<FixedOffset>,
        workflow: &str,
        redactor: &'r Redactor,
    ) -> Result<Self, LogError> {
        let name = format!("{}-{workflow}", now.format("%Y-%m-%d-%H-%M-%S"));
        let others = (2..).map(|nth: u64| format!("{name}-{nth}"));
        let folder = RunFolder::make(root, iter::once(name.clone()).chain(others))
            .map_err(failed(&root.join(LOGS)))?;
        Ok(Self {
            name: folder.name(),
            folder: Arc::new(folder),
            redactor,
            is_kept_from_git: false,
        })
    }

    /// Returns the run's folder.
    pub fn folder(&self) -> Arc<RunFolder> {
        Arc::clone(&self.folder)
    }

    /// Returns the folder's path, relative to the project's root.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the path of a step's file, relative to the project's root.
    pub fn path_of(&self, step: &StepId, artifact: Artifact) -> String {
        format!("{}/{}", self.name, run_files::name(step, artifact))
    }

    /// Logs a query.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn query(&self, step: &StepId, prompt: &impl Display) -> Result<(), LogError> {
        self.write(step, Artifact::Query, |out| write!(out, "{prompt}"))
    }

    /// Logs the vendor's answer as it arrived.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn answer(&self, step: &StepId, json: &[u8]) -> Result<(), LogError> {
        self.write(step, Artifact::ResponseJson, |out| out.write_all(json))
    }

    /// Logs the reply's text. Returns whether a secret in it was redacted.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn reply(&self, step: &StepId, text: &str) -> Result<bool, LogError> {
        let name = run_files::name(step, Artifact::ResponseText);
        self.write_to(&name, create, |out| out.write_all(text.as_bytes()))
    }

    /// Logs an error in place of the reply.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
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

    /// Opens the log of a build.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn build(&self, step: &StepId) -> Result<BuildLog<'r>, LogError> {
        self.named_build(&run_files::name(step, Artifact::Build))
    }

    /// Opens the log of a build that belongs to no step, replacing any earlier one of this name.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn named_build(&self, name: &str) -> Result<BuildLog<'r>, LogError> {
        let path = self.folder.path().join(name);
        let file = self.folder.open().and_then(|folder| replace(&folder, name));
        BuildLog::new(file.map_err(failed(&path))?, path, self.redactor)
    }

    /// Opens the log of the build before a run, in `logs`. It replaces that of an earlier run.
    ///
    /// # Errors
    /// Fails if the file cannot be written, or `logs` is not a directory.
    pub fn baseline(root: &Path, redactor: &'r Redactor) -> Result<BuildLog<'r>, LogError> {
        let logs = root.join(LOGS);
        let path = logs.join(run_files::BASELINE);
        let open = || {
            make_directory(&logs)?;
            replace(&open_directory_in(CWD, &logs)?, run_files::BASELINE)
        };
        BuildLog::new(open().map_err(failed(&path))?, path, redactor)
    }

    /// Logs a tool that an agent used, with its input and result. A step may use several.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn tool(
        &self,
        step: &StepId,
        name: &str,
        input: &str,
        result: &str,
    ) -> Result<(), LogError> {
        self.write_to(
            &run_files::name(step, Artifact::Build),
            |folder, name| append_in(folder, name),
            |out| write!(out, "[{name}]\n{input}\n[result]\n{result}\n"),
        )
        .map(drop)
    }

    /// Returns the path for the output of the `nth` command that an agent runs in a step, counted from 1.
    pub fn command_output(&self, step: &StepId, nth: u32) -> PathBuf {
        let artifact = Artifact::Output(nth);
        self.folder.path().join(run_files::name(step, artifact))
    }

    /// Reserves disk space for the run's record, until the returned file, which has no name, is closed. If there is too
    /// little, the folder, which must be empty, is removed.
    ///
    /// # Errors
    /// Fails if there is too little space.
    pub fn reserve(&self) -> Result<File, LogError> {
        let path = self.folder.path();
        let reserve = || {
            let file = tempfile::tempfile_in(&path)?;
            allocate(&file, RECORD).map(|()| file)
        };
        reserve().map_err(|error| {
            let _ = fs::remove_dir(&path);
            failed(&path)(error)
        })
    }

    /// Creates the folder again if it is gone, and returns whether it was.
    ///
    /// # Errors
    /// Fails if it or its ignore file cannot be created.
    pub fn restore(&self) -> Result<bool, LogError> {
        let path = self.folder.path();
        if path.symlink_metadata().is_ok() {
            return Ok(false);
        }
        if let Some(logs) = path.parent() {
            make_ignored_directory(logs)?;
        }
        self.folder.restore().map_err(failed(&path))?;
        if self.is_kept_from_git {
            self.ignore()?;
        }
        Ok(true)
    }

    /// Logs the current state of a step; a later line about the step replaces an earlier one.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn step(&self, step: &Step) -> Result<(), LogError> {
        self.line(run_files::STEPS, step)
    }

    /// Appends `record`, as a line of JSON, to the file `name`.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn line(&self, name: &str, record: &impl Serialize) -> Result<(), LogError> {
        // A build may have put a link or a pipe there, for example, which must not be followed or waited for.
        let open = |folder: &File, name: &str| match append_in(folder, name) {
            Err(error) if is_no_file(&error) => {
                unlinkat(folder, name, AtFlags::empty())?;
                append_in(folder, name)
            }
            opened => opened,
        };
        self.write_to(name, open, |out| {
            // Each piece is searched for keys, so few are better; a single one would hold long answers in memory twice.
            let mut out = BufWriter::with_capacity(LINE_PIECE, out);
            serde_json::to_writer(&mut out, record)?;
            out.write_all(b"\n")?;
            // `flush` would write the line in two parts, since the end of it is still held back.
            out.into_inner()?;
            Ok(())
        })
        .map(drop)
    }

    /// Writes `record` as the file `name`, replacing anything there.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn json(&self, name: &str, record: &impl Serialize) -> Result<(), LogError> {
        self.replace(name, |out| {
            out.write_all(&serde_json::to_vec_pretty(record)?)?;
            out.write_all(b"\n")
        })
    }

    /// Writes `text`, without anything that looks like a credential, as the file `name`, replacing anything there.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn text(&self, name: &str, text: impl AsRef<[u8]>) -> Result<(), LogError> {
        self.replace(name, |out| {
            let mut out = Censor::new(out);
            out.write_all(text.as_ref())?;
            out.finish().map(drop)
        })
    }

    fn replace(
        &self,
        name: &str,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), LogError> {
        // The file is renamed into place, which replaces anything that a build may have put there.
        let written = self.folder.open().and_then(|folder| {
            replace_in(&folder, &folder, name, |file| {
                self.redacted(file, content).map(drop)
            })
        });
        written.map_err(failed(&self.folder.path().join(name)))
    }

    /// Makes git ignore the folder if it does not do so already.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn keep_from_git(&mut self) -> Result<(), LogError> {
        self.is_kept_from_git = true;
        self.ignore()
    }

    fn ignore(&self) -> Result<(), LogError> {
        self.replace(GITIGNORE, |out| out.write_all(IGNORE_ALL))
    }

    fn write(
        &self,
        step: &StepId,
        artifact: Artifact,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), LogError> {
        self.write_to(&run_files::name(step, artifact), create, content)
            .map(drop)
    }

    /// Writes a file. Returns whether a secret was redacted.
    fn write_to(
        &self,
        name: &str,
        open: fn(&File, &str) -> io::Result<File>,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<bool, LogError> {
        let opened = self.folder.open().and_then(|folder| open(&folder, name));
        let written = opened.and_then(|file| self.redacted(file, content));
        written.map_err(failed(&self.folder.path().join(name)))
    }

    fn redacted(
        &self,
        file: impl Write,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<bool> {
        let mut out = self.redactor.writer(BufWriter::new(file));
        content(&mut out)?;
        Ok(out.finish_found()?.1)
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> LogError {
    PathError::of("write", path)
}

/// Creates a directory with a `.gitignore` that makes git ignore it, unless the directory exists.
///
/// # Errors
/// Fails if it or its ignore file cannot be created.
pub fn make_ignored_directory(path: &Path) -> Result<(), LogError> {
    let make = || {
        if make_directory(path)? {
            atomic_file::replace(&path.join(GITIGNORE), |file| file.write_all(IGNORE_ALL))?;
        }
        Ok(())
    };
    make().map_err(failed(path))
}

/// Removes temporary files left by killed runs. The caller must hold the project. Runs that have a record are skipped,
/// since they left none, and so are runs that do not hold the project, since they may still be in progress.
pub fn sweep(root: &Path) {
    let (logs, config) = (root.join(LOGS), root.join(CONFIG));
    let mut directories = vec![logs.clone(), config.clone()];
    for run in fs::read_dir(&logs).into_iter().flatten().flatten() {
        let holds_project = run_files::holds_project(&run.file_name().to_string_lossy());
        if holds_project && run.path().join(RESULT).symlink_metadata().is_err() {
            directories.push(run.path());
            directories.push(config.join(REPLACED).join(run.file_name()));
        }
    }
    for directory in directories {
        // A file that stays is recognizable by its name, and does no harm.
        let _ = atomic_file::sweep(&directory, None);
    }
}

/// Creates a file that must not exist yet, so that neither a link nor another run's file is written to.
fn create(folder: &File, name: &str) -> io::Result<File> {
    create_new_in(folder, name, 0o666)
}

/// Creates a file, replacing any existing one.
fn replace(folder: &File, name: &str) -> io::Result<File> {
    let removed = unlinkat(folder, name, AtFlags::empty());
    removed.map_err(io::Error::from).if_there()?;
    create(folder, name)
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
