//! Conversations that outlive the process: one JSON file each, below `sessions` in an agent's home.
//!
//! Writes there and nowhere else. Guarantees that a session is used by one process at a time, that a reader sees a file
//! whole, whatever becomes of the process that writes it, that nobody but the user may read it, and that no known key
//! is in it.

mod directory_map;
mod error;
mod folder;
mod form;
mod summary;

use std::fs;
use std::path::{Path, PathBuf};

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use self::error::SessionError;
pub use self::folder::LARGEST;
pub(crate) use self::folder::{SessionFolder, is_missing, modified_at, parse};
pub(crate) use self::form::Outlined;
pub use self::form::SessionFile;
pub(crate) use self::form::{first_line, redacted_conversation};
pub use self::summary::{Outline, SessionSummary, text, to_json};
pub(crate) use self::summary::{cells, table};
use super::conversation::Conversation;
use crate::project::home::AgentHome;
use crate::secret::Redactor;
use crate::sys::atomic_file;
use crate::sys::file_lock::{self, FileLock};

/// The folder with the sessions, in an agent's home.
pub const SESSIONS: &str = "sessions";

/// How far a session has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionState {
    /// It is under way; or its process was killed, where nobody holds it.
    #[default]
    Active,
    /// The work is done, and passed the audit.
    #[serde(alias = "completed")]
    Complete,
    /// It ended with an error.
    Failed,
    /// It was ended by a signal.
    Interrupted,
}

impl SessionState {
    /// Its name in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }

    /// The same for who only looks: what is active, though nobody holds it, was killed.
    #[must_use]
    pub fn seen(self, is_held: impl FnOnce() -> bool) -> Self {
        match self {
            Self::Active if !is_held() => Self::Interrupted,
            state => state,
        }
    }
}

/// A compression of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compression {
    /// When the history was compressed.
    pub timestamp: DateTime<Utc>,
    /// About how many tokens the history had.
    pub tokens_before: u64,
    /// About how many it has had since.
    pub tokens_after: u64,
}

/// A session, held by this process for as long as this lives.
#[derive(Debug)]
pub struct Session {
    /// What was said, and where the work stands.
    pub conversation: Conversation,
    /// What its file says besides.
    pub file: SessionFile,
    _hold: SessionLock,
    /// Whether the map has it as its directory's last.
    is_noted: bool,
}

/// A session's lock. The lock file goes with it where there is no session: it was never saved, or is removed.
#[derive(Debug)]
pub struct SessionLock {
    lock: Option<FileLock>,
    session: PathBuf,
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        if is_missing(&self.session)
            && let Some(lock) = self.lock.take()
        {
            // What is left behind all the same is removed by `clean`.
            let _ = lock.remove();
        }
    }
}

impl Session {
    /// Its name among all sessions.
    #[must_use]
    pub fn id(&self) -> Uuid {
        self.file.id
    }

    /// Keeps it from becoming the last one of its directory: a replay is nobody's to go on with.
    pub fn detach(&mut self) {
        self.is_noted = true;
    }

    /// Notes that its history was compressed.
    pub fn compressed(&mut self, compression: Compression) {
        self.file.compression_count = self.file.compression_count.saturating_add(1);
        self.file.compressions.push(compression);
    }
}

/// All sessions of an agent's home.
#[derive(Debug)]
pub struct SessionStore<'r> {
    folder: SessionFolder<'r>,
}

impl<'r> SessionStore<'r> {
    /// The sessions below `home`, which is that of `profile`; the folder is made where it is missing. What is written
    /// passes through `redactor`.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn at(
        profile: &'static AgentHome,
        home: &Path,
        redactor: &'r Redactor,
    ) -> Result<Self, SessionError> {
        let folder = SessionFolder::at(profile, home, redactor)?;
        Ok(Self { folder })
    }

    /// A new session in `directory`, an absolute path with links resolved. It is there for others when it is first
    /// saved; one that never is leaves nothing behind.
    ///
    /// # Errors
    /// When there is one of that id, or it cannot be locked.
    pub fn create(
        &self,
        id: Uuid,
        now: DateTime<Utc>,
        directory: &Path,
        model: &str,
    ) -> Result<Session, SessionError> {
        let hold = self.hold(id)?;
        if !is_missing(&self.file(id)) {
            return Err(SessionError::Exists { id: id.to_string() });
        }
        let now = now.trunc_subsecs(3);
        Ok(Session {
            conversation: Conversation::default(),
            file: SessionFile {
                id,
                created_at: now,
                updated_at: now,
                directory: self.folder.written(directory),
                model: model.to_owned(),
                ..SessionFile::default()
            },
            _hold: hold,
            is_noted: false,
        })
    }

    /// Whether there is a session of that id.
    #[must_use]
    pub fn has(&self, id: Uuid) -> bool {
        !is_missing(&self.file(id))
    }

    /// Opens a session.
    ///
    /// # Errors
    /// When there is none of that id, when another process uses it, or when its file is damaged.
    pub fn open(&self, id: Uuid) -> Result<Session, SessionError> {
        let path = self.file(id);
        let missing = || self.folder.missing(id);
        // No lock file is made for what is not there.
        if is_missing(&path) {
            return Err(missing());
        }
        let hold = self.hold(id)?;
        let content = self.folder.read(&path)?.ok_or_else(missing)?;
        match parse::<SessionFile>(&content) {
            Ok(form) => Ok(form.into_session(id, hold)),
            Err(mistake) => Err(SessionError::Damaged {
                path,
                mistake: mistake.to_string(),
            }),
        }
    }

    /// The session that was used last in `directory`, which is as for [`create`](Self::create).
    ///
    /// # Errors
    /// [`SessionError::NoneIn`] where there is none.
    pub fn last_in(&self, directory: &Path) -> Result<Uuid, SessionError> {
        let written = self.folder.written(directory);
        let last = self.directory_map()?.get(&written).copied();
        if let Some(last) = last.filter(|id| !is_missing(&self.file(*id))) {
            return Ok(last);
        }
        // It may have been removed by hand, since it was damaged.
        let newest = self.list_in(directory)?.first().map(|found| found.id);
        newest.ok_or_else(|| self.folder.none_in(written))
    }

    /// Looks whether a session is one of `directory`, which is as for [`create`](Self::create).
    ///
    /// # Errors
    /// [`SessionError::Elsewhere`] where it is not.
    pub fn check_directory(&self, session: &Session, directory: &Path) -> Result<(), SessionError> {
        self.folder
            .check_directory(session.id(), &session.file.directory, directory)
    }

    /// Writes a session; the first time, it becomes the last that was used in its directory.
    ///
    /// # Errors
    /// When something cannot be written. What was there of the session is then still there.
    pub fn save(&self, session: &mut Session, now: DateTime<Utc>) -> Result<(), SessionError> {
        session.file.updated_at = now.trunc_subsecs(3);
        self.folder.write(
            &self.file(session.id()),
            &SessionFile::of(session, self.folder.redactor),
        )?;
        if !session.is_noted {
            self.note(&session.file.directory, session.id())?;
            session.is_noted = true;
        }
        Ok(())
    }

    /// All sessions, the newest first. Damaged ones are among them. Of a session's history no more is looked at than
    /// that it is JSON.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn list(&self) -> Result<Vec<SessionSummary>, SessionError> {
        let ids = self.named(".json")?;
        let mut found: Vec<_> = ids.iter().filter_map(|id| self.summary(*id)).collect();
        found.sort_by_key(|summary| (std::cmp::Reverse(summary.updated_at), summary.id));
        Ok(found)
    }

    /// Those of `directory`, which is as for [`create`](Self::create); damaged ones tell of none.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn list_in(&self, directory: &Path) -> Result<Vec<SessionSummary>, SessionError> {
        let directory = self.folder.written(directory);
        let mut found = self.list()?;
        found.retain(|summary| {
            let outline = summary.outline.as_ref();
            outline.is_ok_and(|outline| outline.directory == directory)
        });
        Ok(found)
    }

    /// Removes the sessions that were not changed for more than `days` days, and gives their number; 0 days: none.
    /// A session that is in use stays. What killed processes left behind is removed, too, and nothing else is.
    ///
    /// # Errors
    /// The first that came up. What can be removed is removed all the same.
    pub fn clean(&self, now: DateTime<Utc>, days: u32) -> Result<usize, SessionError> {
        let mut problem = None;
        let oldest = now.checked_sub_signed(TimeDelta::days(days.into()));
        let mut removed = 0;
        if let Some(oldest) = oldest.filter(|_| days > 0) {
            for id in self.named(".json")? {
                match self.remove_older(id, oldest) {
                    Ok(is_removed) => removed += usize::from(is_removed),
                    Err(error) => problem = problem.or(Some(error)),
                }
            }
        }
        let swept = self.remove_staged(now);
        problem = problem.or(swept.err());
        for id in self.named(".lock")? {
            if is_missing(&self.file(id)) {
                // It goes with its hold, unless a session is just being made.
                let _ = self.hold(id);
            }
        }
        if removed > 0 {
            problem = problem.or(self.forget_removed().err());
        }
        problem.map_or(Ok(removed), Err)
    }

    /// Removes a session that was last changed before `oldest`, unless it is in use.
    fn remove_older(&self, id: Uuid, oldest: DateTime<Utc>) -> Result<bool, SessionError> {
        let path = self.file(id);
        let is_old = || self.updated_at(&path).is_some_and(|at| at < oldest);
        if !is_old() {
            return Ok(false);
        }
        let _hold = match self.hold(id) {
            Err(SessionError::InUse { .. }) => return Ok(false),
            held => held?,
        };
        // It may have been used until just now.
        if !is_old() {
            return Ok(false);
        }
        fs::remove_file(&path).map_err(self.folder.cannot_be("written", &path))?;
        Ok(true)
    }

    /// Removes the files that processes were killed over. One that is alive needs such a file for a moment.
    fn remove_staged(&self, now: DateTime<Utc>) -> Result<(), SessionError> {
        let oldest = now.checked_sub_signed(TimeDelta::hours(1));
        let folder = &self.folder.path;
        let swept = oldest.map(|oldest| atomic_file::sweep(folder, Some(oldest.into())));
        swept
            .unwrap_or(Ok(()))
            .map_err(self.folder.cannot_be("written", folder))
    }

    fn summary(&self, id: Uuid) -> Option<SessionSummary> {
        let path = self.file(id);
        let outlined = match self.folder.read(&path) {
            // It was removed just now.
            Ok(None) => return None,
            Ok(Some(content)) => parse::<Outlined>(&content).map_err(|mistake| mistake.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let (updated_at, outline) = match outlined {
            Ok(outlined) => {
                let is_held = || file_lock::is_held(&self.lock_file(id));
                (outlined.updated_at, Ok(outlined.into_outline(is_held)))
            }
            Err(problem) => (modified_at(&path)?, Err(problem)),
        };
        Some(SessionSummary {
            id,
            updated_at,
            outline,
        })
    }

    /// Takes a session for this process.
    fn hold(&self, id: Uuid) -> Result<SessionLock, SessionError> {
        let lock = self.folder.hold(id, &self.lock_file(id))?;
        Ok(SessionLock {
            lock: Some(lock),
            session: self.file(id),
        })
    }

    /// When a session was changed last, by its own word, or else by its file's.
    fn updated_at(&self, path: &Path) -> Option<DateTime<Utc>> {
        let content = self.folder.read(path).ok()??;
        let outlined = parse::<Outlined>(&content).ok();
        outlined.map_or_else(|| modified_at(path), |outlined| Some(outlined.updated_at))
    }

    fn file(&self, id: Uuid) -> PathBuf {
        self.folder.path.join(format!("{id}.json"))
    }

    fn lock_file(&self, id: Uuid) -> PathBuf {
        self.folder.path.join(format!("{id}.lock"))
    }

    /// The ids for which there is a file whose name ends so.
    fn named(&self, end: &str) -> Result<Vec<Uuid>, SessionError> {
        let names = self.folder.names()?;
        let stems = names.iter().filter_map(|name| name.strip_suffix(end));
        let ids = stems.filter_map(|stem| {
            let id = Uuid::try_parse(stem).ok()?;
            // An id can be written in several ways; our files' names are one of them.
            (id.to_string() == stem).then_some(id)
        });
        Ok(ids.collect())
    }
}

#[cfg(test)]
mod tests;
