//! The sessions of an agent that works by a plan: a folder each, below `sessions` in the agent's home.
//!
//! Writes there and nowhere else. Guarantees that a session is used by one process at a time, that a reader sees its
//! files whole, whatever becomes of the process that writes them, that nobody but the user may read them, that no known
//! key is in `session.json`, and that a document that is there is never written over.

mod form;
mod list;

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use chrono::{DateTime, FixedOffset, SubsecRound as _};

use super::chat_log::CHAT_LOG;
use crate::agent::session::{SessionError, SessionFolder, is_missing, parse};
use crate::project::home;
use crate::secret::Redactor;
use crate::sys::atomic_file;
use crate::sys::file_lock::FileLock;

pub use self::form::{PlanSessionFile, PlanStage, PlanState, StepsEnd, WorkEnd};
pub use self::list::{text, to_json};

/// The file with what a session needs to be resumed.
const FILE: &str = "session.json";
/// The file that is locked while a session is used.
const LOCK: &str = "session.lock";
/// The document, unless it is in the project.
const DOCUMENT: &str = "plan_doc.md";

/// So many sessions may begin within a millisecond.
const MOST_AT_ONCE: u32 = 1000;

/// What a session begins with.
#[derive(Debug, Clone)]
pub struct NewPlanSession<'n> {
    /// The time, by the user's clock.
    pub now: DateTime<FixedOffset>,
    /// What the user's time zone is called then, where that is known.
    pub zone: Option<&'n str>,
    /// The project, an absolute path with links resolved.
    pub directory: &'n Path,
    /// The document in the project, relative to it; `None`: it is in the session's folder.
    pub plan_file: Option<String>,
    /// The model of the execution.
    pub model: &'n str,
    /// A document without a plan.
    pub empty_document: &'n str,
}

/// A session, held by this process for as long as this lives.
#[derive(Debug)]
pub struct PlanSession {
    /// What its file says.
    pub file: PlanSessionFile,
    folder: PathBuf,
    _lock: FileLock,
}

impl PlanSession {
    /// Its name among all sessions.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.file.id
    }

    /// The chat log's path.
    #[must_use]
    pub fn chat_log(&self) -> PathBuf {
        self.folder.join(CHAT_LOG)
    }

    /// The document's path, in the session's folder or in the project in `root`.
    #[must_use]
    pub fn document(&self, root: &Path) -> PathBuf {
        let plan_file = self.file.state.plan_file.as_deref();
        document(&self.folder, root, plan_file)
    }
}

/// All sessions of the agent's home.
#[derive(Debug)]
pub struct PlanSessionStore<'r> {
    folder: SessionFolder<'r>,
}

impl<'r> PlanSessionStore<'r> {
    /// The sessions below `home`; the folder is made where it is missing. What is written passes through `redactor`.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn at(home: &Path, redactor: &'r Redactor) -> Result<Self, SessionError> {
        let folder = SessionFolder::at(&home::PLAN, home, redactor)?;
        Ok(Self { folder })
    }

    /// A new session, which is there for others from now on.
    ///
    /// # Errors
    /// When it cannot be written or locked. Nothing of it is left then.
    pub fn create(&self, new: &NewPlanSession<'_>) -> Result<PlanSession, SessionError> {
        let (id, folder) = self.make_folder(&name(new.now, new.zone))?;
        let begin = || {
            let session = PlanSession {
                file: PlanSessionFile {
                    id: id.clone(),
                    started_at: new.now.to_utc().trunc_subsecs(3),
                    model: new.model.to_owned(),
                    state: PlanState {
                        directory: self.folder.written(new.directory),
                        plan_file: new.plan_file.clone(),
                        ..PlanState::default()
                    },
                    ..PlanSessionFile::default()
                },
                _lock: self.folder.hold(&id, &folder.join(LOCK))?,
                folder: folder.clone(),
            };
            // First, so that a kill leaves a session that can be opened.
            self.save(&session)?;
            self.make_document(&session, new.empty_document)?;
            Ok(session)
        };
        let begun = begin();
        if begun.is_err() {
            let _ = fs::remove_dir_all(&folder);
        }
        begun
    }

    /// Opens a session. Where its document is to be in its folder and is not there, it is made anew.
    ///
    /// # Errors
    /// When there is none of exactly that name, when another process uses it, or when it is damaged.
    pub fn open(&self, id: &str, empty_document: &str) -> Result<PlanSession, SessionError> {
        let folder = self.folder_of(id)?;
        let lock = self.folder.hold(id, &folder.join(LOCK))?;
        // What a killed process left behind is in nobody's way.
        let _ = atomic_file::sweep(&folder, None);
        let session = PlanSession {
            file: self.load(id, &folder)?,
            folder,
            _lock: lock,
        };
        self.make_document(&session, empty_document)?;
        Ok(session)
    }

    /// The path of a session's document, for who only looks at it: also while another process uses the session.
    ///
    /// # Errors
    /// When there is no session of exactly that name, or it is damaged.
    pub fn document(&self, id: &str) -> Result<PathBuf, SessionError> {
        let folder = self.folder_of(id)?;
        let PlanState {
            directory,
            plan_file,
            ..
        } = self.load(id, &folder)?.state;
        Ok(document(
            &folder,
            Path::new(&directory),
            plan_file.as_deref(),
        ))
    }

    /// Writes what a session needs to be resumed.
    ///
    /// # Errors
    /// When it cannot be written. What was there is then still there.
    pub fn save(&self, session: &PlanSession) -> Result<(), SessionError> {
        let written = session.file.redacted(self.folder.redactor);
        self.folder.write(&session.folder.join(FILE), &written)
    }

    /// The session that began last in `directory`, an absolute path with links resolved; one in which nothing was asked
    /// for only where there is no other.
    ///
    /// # Errors
    /// `SessionError::NoneIn` where there is none.
    pub fn last_in(&self, directory: &Path) -> Result<String, SessionError> {
        let directory = self.folder.written(directory);
        let mut sessions = self.list()?;
        sessions.retain(|session| session.is_of(&directory));
        let last = sessions.iter().find(|session| session.is_begun());
        let last = last.or(sessions.first()).map(|last| last.id.clone());
        last.ok_or_else(|| self.folder.none_in(directory))
    }

    /// Looks whether a session is one of `directory`, which is as for [`last_in`](Self::last_in).
    ///
    /// # Errors
    /// `SessionError::Elsewhere` where it is not.
    pub fn check_directory(
        &self,
        session: &PlanSession,
        directory: &Path,
    ) -> Result<(), SessionError> {
        self.folder
            .check_directory(session.id(), &session.file.state.directory, directory)
    }

    /// The folder of the session of exactly this name: on some systems, others lead to it too.
    fn folder_of(&self, id: &str) -> Result<PathBuf, SessionError> {
        let folder = self.folder.path.join(id);
        let is_name = self.folder.names()?.iter().any(|name| name == id);
        if is_name && is_directory(&folder) {
            return Ok(folder);
        }
        Err(self.folder.missing(id))
    }

    fn load(&self, id: &str, folder: &Path) -> Result<PlanSessionFile, SessionError> {
        let path = folder.join(FILE);
        let damaged = |path: &Path, mistake: String| SessionError::Damaged {
            path: path.to_owned(),
            mistake,
        };
        let content = self.folder.read(&path)?;
        let content = content.ok_or_else(|| damaged(folder, no_file()))?;
        let file = parse(&content).map_err(|mistake| damaged(&path, mistake.to_string()))?;
        // The folder's name decides: a copy is a session of its own.
        let id = id.to_owned();
        Ok(PlanSessionFile { id, ..file })
    }

    /// Makes a folder of this name, or of the next that is free, and gives its name and path.
    fn make_folder(&self, name: &str) -> Result<(String, PathBuf), SessionError> {
        for nth in 1..=MOST_AT_ONCE {
            let id = match nth {
                1 => name.to_owned(),
                nth => format!("{name}-{nth}"),
            };
            let folder = self.folder.path.join(&id);
            match DirBuilder::new().mode(0o700).create(&folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    made.map_err(self.folder.cannot_be("written", &folder))?;
                    return Ok((id, folder));
                }
            }
        }
        let id = name.to_owned();
        Err(SessionError::Exists { id })
    }

    /// Makes the document of a session that has it in its folder, where it is not there.
    fn make_document(&self, session: &PlanSession, empty: &str) -> Result<(), SessionError> {
        let path = session.folder.join(DOCUMENT);
        if session.file.state.plan_file.is_some() || !is_missing(&path) {
            return Ok(());
        }
        let made = atomic_file::create_private(&path, |file| file.write_all(empty.as_bytes()));
        made.map_err(self.folder.cannot_be("written", &path))
    }
}

/// The name of a session that begins at this time, in the zone of this name: `2026-01-07T10:23:21.000MST`. A zone without
/// an abbreviation is told by its offset.
fn name(now: DateTime<FixedOffset>, zone: Option<&str>) -> String {
    let is_abbreviation = |zone: &&str| {
        let is_letter = |byte: u8| byte.is_ascii_alphabetic();
        (1..=9).contains(&zone.len()) && zone.bytes().all(is_letter)
    };
    let time = now.format("%Y-%m-%dT%H:%M:%S%.3f");
    let name = match zone.filter(is_abbreviation) {
        Some(zone) => format!("{time}{zone}"),
        None => format!("{time}{}", now.format("%z")),
    };
    if cfg!(windows) {
        name.replace(':', "-")
    } else {
        name
    }
}

/// Where a session's document is: in its folder, or in the project in `root`.
fn document(folder: &Path, root: &Path, plan_file: Option<&str>) -> PathBuf {
    match plan_file {
        Some(file) => root.join(file),
        None => folder.join(DOCUMENT),
    }
}

/// What is wrong with a folder that has no file.
fn no_file() -> String {
    format!("it has no `{FILE}`")
}

fn is_directory(path: &Path) -> bool {
    let found = path.symlink_metadata();
    found.is_ok_and(|found| found.is_dir())
}

#[cfg(test)]
mod tests;
