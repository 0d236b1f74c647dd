//! The store for the sessions in an agent's home.
//!
//! Writes only there. Guarantees that a session is used by one process at a time, that readers see complete files even
//! if the writing process is killed, that only the user may read them, and that they contain no known key.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt::Display;
use std::io::{self, BufWriter, Write as _};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::{Outline, SessionError, SessionForm, SessionSummary};
use crate::project::home::{AgentHome, SESSIONS};
use crate::secret::Redactor;
use crate::sys::atomic_file;
use crate::sys::file_lock::{self, FileLock, LockProblem};
use crate::sys::files::{self, IfThere as _, Links, MIB};
use crate::sys::home_file::parse_json;

/// Maximum size of a session file in bytes, which no session reaches.
pub const LARGEST: u64 = 1024 * MIB;

/// Size of the pieces in which a session file is written, in bytes.
const PIECE: usize = 256 << 10;

/// A session that this process holds until this value is dropped.
#[derive(Debug)]
pub struct Session<F> {
    /// The content of the session file.
    pub file: F,
    hold: SessionLock,
    /// `true` once the directory map lists the session as the last one of its directory.
    is_noted: bool,
}

impl<F> Deref for Session<F> {
    type Target = F;

    fn deref(&self) -> &F {
        &self.file
    }
}

impl<F> DerefMut for Session<F> {
    fn deref_mut(&mut self) -> &mut F {
        &mut self.file
    }
}

impl<F> Session<F> {
    /// Prevents the session from becoming the last one of its directory; a replay should not be resumed.
    pub fn detach(&mut self) {
        self.is_noted = true;
    }

    /// Returns the folder that contains the session file.
    pub fn folder(&self) -> &Path {
        self.hold.session.parent().unwrap_or(&self.hold.session)
    }
}

/// The lock on a session. Dropping it removes the lock file if no session exists, because it was never saved or was
/// removed.
#[derive(Debug)]
pub(super) struct SessionLock {
    lock: Option<FileLock>,
    session: PathBuf,
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        if is_missing(&self.session)
            && let Some(lock) = self.lock.take()
        {
            // If this fails, `clean` removes the file later.
            let _ = lock.remove();
        }
    }
}

/// All sessions of an agent's home whose files have the form `F`.
#[derive(Debug)]
pub struct SessionStore<'r, F> {
    /// The folder with the sessions.
    pub(super) path: PathBuf,
    /// Redacts keys in everything that is written.
    pub(super) redactor: &'r Redactor,
    home: &'static AgentHome,
    form: PhantomData<fn() -> F>,
}

impl<'r, F: SessionForm> SessionStore<'r, F> {
    /// Opens the store in `directory`, the home of `home`, without creating anything.
    pub fn at(home: &'static AgentHome, directory: &Path, redactor: &'r Redactor) -> Self {
        Self {
            path: directory.join(SESSIONS),
            redactor,
            home,
            form: PhantomData,
        }
    }

    /// Creates the sessions folder if it is missing.
    ///
    /// # Errors
    /// Fails if the folder cannot be created.
    pub fn make(&self) -> Result<(), SessionError> {
        atomic_file::private_directory(&self.path).map_err(self.cannot_be("written", &self.path))
    }

    /// Returns the path of the sessions folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a session with this content. Other processes see it once it is saved; a session that is never saved
    /// leaves nothing behind.
    ///
    /// # Errors
    /// Fails if a session with this id exists, or it cannot be locked.
    pub fn create(&self, file: F) -> Result<Session<F>, SessionError> {
        let id = file.id();
        self.make()?;
        let hold = self.hold(&id)?;
        if !is_missing(&hold.session) {
            return Err(SessionError::Exists(id));
        }
        Ok(Session {
            file,
            hold,
            is_noted: false,
        })
    }

    /// Returns whether a session with exactly this id exists; on some systems, a different name may lead to the same
    /// folder.
    pub fn has(&self, id: &str) -> bool {
        if !F::IS_FOLDER {
            return !is_missing(&self.file(id));
        }
        let names = self.names().unwrap_or_default();
        names.iter().any(|name| name == id) && files::is_directory(&self.path.join(id))
    }

    /// Opens a session.
    ///
    /// # Errors
    /// Fails if no session has this id, another process uses it, or its file is damaged.
    pub fn open(&self, id: &str) -> Result<Session<F>, SessionError> {
        // Does not create a lock file for a session that does not exist.
        if !self.has(id) {
            return Err(self.missing(id));
        }
        let hold = self.hold(id)?;
        if F::IS_FOLDER {
            // Files left behind by a killed process do no harm if they cannot be removed.
            let _ = atomic_file::sweep(&self.path.join(id), None);
        }
        Ok(Session {
            file: self.load(id)?,
            hold,
            is_noted: false,
        })
    }

    /// Reads a session's file without holding the session, for observers.
    ///
    /// # Errors
    /// Fails if no session has this id, or its file is damaged.
    pub fn load(&self, id: &str) -> Result<F, SessionError> {
        if !self.has(id) {
            return Err(self.missing(id));
        }
        let path = self.file(id);
        let damaged = |path: &Path, mistake: String| SessionError::Damaged {
            path: path.to_owned(),
            mistake,
        };
        let content = self.read(&path)?.ok_or_else(|| {
            if F::IS_FOLDER {
                damaged(&self.path.join(id), no_file())
            } else {
                self.missing(id)
            }
        })?;
        parse_json::<F>(&content)
            .map(|file| file.opened(id))
            .map_err(|mistake| damaged(&path, mistake.to_string()))
    }

    /// Returns the session used last in `directory`, an absolute path with links resolved; if the store has no
    /// directory map, the one started last, with preference for sessions that have a request.
    ///
    /// # Errors
    /// [`SessionError::NoneIn`] if there is no session.
    pub fn last_in(&self, directory: &Path) -> Result<String, SessionError> {
        let written = self.written(directory);
        if !F::IS_FOLDER
            && let Some(last) = self.directory_map()?.remove(&written)
            && self.has(&last)
        {
            return Ok(last);
        }
        let all = self.list()?;
        let here = || all.iter().filter(|session| session.is_in(&written));
        let begun = here().find(|session| session.is_begun() || !F::IS_FOLDER);
        let last = begun.or(here().next());
        let is_damaged = |session: &&SessionSummary| {
            F::IS_FOLDER && session.outline.is_err() && !is_missing(&self.file(&session.id))
        };
        let mut newer = all
            .iter()
            .take_while(|session| last.is_some_and(|last| session.id != last.id));
        // Without a map, a damaged session of unknown directory may be the one that was used last.
        if let Some(damaged) = newer.find(is_damaged) {
            self.load(&damaged.id)?;
        }
        last.map(|last| last.id.clone())
            .ok_or(SessionError::NoneIn {
                directory: written,
                home: self.home,
            })
    }

    /// Checks that a session belongs to `directory`, given as for [`last_in`](Self::last_in).
    ///
    /// # Errors
    /// [`SessionError::Elsewhere`] if it does not.
    pub fn check_directory(
        &self,
        session: &Session<F>,
        directory: &Path,
    ) -> Result<(), SessionError> {
        let here = self.written(directory);
        if session.directory() == here {
            return Ok(());
        }
        Err(SessionError::Elsewhere {
            id: session.id(),
            directory: session.directory().to_owned(),
            here,
        })
    }

    /// Writes a session. The first time, it becomes the one used last in its directory.
    ///
    /// # Errors
    /// Fails if a file cannot be written. The previous content is then preserved.
    pub fn save(&self, session: &mut Session<F>, now: DateTime<Utc>) -> Result<(), SessionError> {
        session.changed(now);
        self.write(&session.hold.session, &session.file.written(self.redactor))?;
        if !session.is_noted && !F::IS_FOLDER {
            self.update(Some((session.directory().to_owned(), session.id())))?;
        }
        session.is_noted = true;
        Ok(())
    }

    /// Lists all sessions, newest first, damaged ones included. A session's history is only checked to be valid JSON.
    ///
    /// # Errors
    /// Fails if the folder cannot be read.
    pub fn list(&self) -> Result<Vec<SessionSummary>, SessionError> {
        let ids = if F::IS_FOLDER {
            self.names()?
        } else {
            self.named(".json")?
        };
        let mut found: Vec<_> = ids.into_iter().filter_map(|id| self.summary(id)).collect();
        // Among sessions of the same millisecond, the one with the largest numeric suffix is the latest.
        found.sort_by_cached_key(|summary| {
            Reverse((summary.time, summary.id.len(), summary.id.clone()))
        });
        Ok(found)
    }

    /// Lists the sessions of `directory`, given as for [`last_in`](Self::last_in), without damaged ones.
    ///
    /// # Errors
    /// Fails if the folder cannot be read.
    pub fn list_in(&self, directory: &Path) -> Result<Vec<SessionSummary>, SessionError> {
        let directory = self.written(directory);
        let mut found = self.list()?;
        found.retain(|summary| summary.is_in(&directory));
        Ok(found)
    }

    /// Renders the machine-readable list: `{"schema": 1, "sessions": […]}`.
    pub fn json(sessions: &[SessionSummary]) -> Value {
        let sessions: Vec<Value> = sessions.iter().map(F::json).collect();
        serde_json::json!({"schema": 1, "sessions": sessions})
    }

    fn summary(&self, id: String) -> Option<SessionSummary> {
        let path = self.file(&id);
        let shown = if F::IS_FOLDER {
            Some(self.path.join(&id)).filter(|folder| files::is_directory(folder))?
        } else {
            path.clone()
        };
        let is_held = || file_lock::is_held(&self.lock_file(&id));
        let read = match self.read(&path) {
            // The session was removed, or is being created, at this moment.
            Ok(None) if !F::IS_FOLDER || is_held() => return None,
            Ok(None) => Err(no_file()),
            Ok(Some(content)) => parse_json::<F::Outlined>(&content)
                .map(Into::into)
                .map_err(|mistake| mistake.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let outline = read.map(|outline: Outline| Outline {
            state: outline.state.seen(is_held),
            ..outline
        });
        let time = match &outline {
            Ok(outline) => outline.time,
            Err(_) => modified_at(&shown)?,
        };
        Some(SessionSummary { id, time, outline })
    }

    /// Takes the lock on a session for this process.
    pub(super) fn hold(&self, id: &str) -> Result<SessionLock, SessionError> {
        let path = self.lock_file(id);
        let lock = FileLock::take(&path).map_err(|problem| match problem {
            LockProblem::Held { process } => SessionError::InUse {
                id: id.to_owned(),
                process,
            },
            LockProblem::Unlockable(source) => self.unlockable(&path, source),
        })?;
        Ok(SessionLock {
            lock: Some(lock),
            session: self.file(id),
        })
    }

    /// Returns the path of a session's file.
    pub(super) fn file(&self, id: &str) -> PathBuf {
        self.part(id, "json")
    }

    /// Returns the path of the file that is locked while a session is in use.
    fn lock_file(&self, id: &str) -> PathBuf {
        self.part(id, "lock")
    }

    fn part(&self, id: &str, ending: &str) -> PathBuf {
        if F::IS_FOLDER {
            self.path.join(id).join(format!("session.{ending}"))
        } else {
            self.path.join(format!("{id}.{ending}"))
        }
    }

    /// Returns the UUIDs of the files whose names consist of a UUID and `end`.
    pub(super) fn named(&self, end: &str) -> Result<Vec<String>, SessionError> {
        // A UUID can be spelled in several ways; file names use only one of them.
        let is_id = |stem: &str| Uuid::try_parse(stem).is_ok_and(|id| id.to_string() == stem);
        let names = self.names()?;
        let stems = names.iter().filter_map(|name| name.strip_suffix(end));
        let ids = stems.filter(|stem| is_id(stem));
        Ok(ids.map(str::to_owned).collect())
    }

    /// Reads the content of a file; `None` if it is missing.
    ///
    /// # Errors
    /// Fails if it is not a regular file, is too large, or cannot be read.
    pub(super) fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, SessionError> {
        files::read(path, Links::Refused, LARGEST)
            .if_there()
            .map_err(self.cannot_be("read", path))
    }

    /// Writes a file as JSON.
    ///
    /// # Errors
    /// Fails if the file cannot be written; its previous content is then preserved.
    pub(super) fn write(&self, path: &Path, content: &impl Serialize) -> Result<(), SessionError> {
        atomic_file::replace_private(path, |file| {
            let mut out = BufWriter::with_capacity(PIECE, file);
            serde_json::to_writer_pretty(&mut out, content)?;
            out.write_all(b"\n")?;
            out.flush()
        })
        .map_err(self.cannot_be("written", path))
    }

    /// Returns the names in the folder that are valid UTF-8; none if the folder does not exist.
    fn names(&self) -> Result<Vec<String>, SessionError> {
        files::names(&self.path)
            .if_there()
            .map(Option::unwrap_or_default)
            .map_err(self.cannot_be("read", &self.path))
    }

    /// Converts a directory to the form used in files. Bytes of a path that is not UTF-8 are escaped, so that it cannot
    /// be confused with another.
    pub fn written(&self, directory: &Path) -> String {
        let bytes = || directory.as_os_str().as_encoded_bytes().escape_ascii();
        // No absolute path begins like this.
        let directory: Cow<'_, str> = directory
            .to_str()
            .map_or_else(|| format!("b\"{}\"", bytes()).into(), Cow::Borrowed);
        self.redactor.piece(directory).into_owned()
    }

    fn missing(&self, id: impl Display) -> SessionError {
        SessionError::Missing {
            id: id.to_string(),
            home: self.home,
        }
    }

    /// Creates the error for a lock file that cannot be locked.
    pub(super) fn unlockable(&self, path: &Path, source: io::Error) -> SessionError {
        SessionError::Unlockable {
            path: path.to_owned(),
            home: self.home,
            source,
        }
    }

    /// Returns a function that creates the error for a file that cannot be `read` or `written`.
    pub fn cannot_be(
        &self,
        what: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> SessionError + use<F> {
        let (path, home) = (path.to_owned(), self.home);
        move |source| SessionError::Io {
            what,
            path,
            home,
            source,
        }
    }
}

/// Returns whether nothing exists at a path; `false` if that cannot be determined.
pub(super) fn is_missing(path: &Path) -> bool {
    matches!(path.symlink_metadata().if_there(), Ok(None))
}

/// Returns the modification time of a path.
pub(super) fn modified_at(path: &Path) -> Option<DateTime<Utc>> {
    Some(path.symlink_metadata().ok()?.modified().ok()?.into())
}

/// Describes a session folder without a session file.
fn no_file() -> String {
    "it has no `session.json`".to_owned()
}

#[cfg(test)]
mod tests;
