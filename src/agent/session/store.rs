//! The sessions below an agent's home.
//!
//! Writes there and nowhere else. Guarantees that a session is used by one process at a time, that a reader sees a file
//! whole, whatever becomes of the process that writes it, that nobody but the user may read it, and that no known key
//! is in it.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt::Display;
use std::fs;
use std::io::{self, BufWriter, Write as _};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::{Outline, SessionError, SessionForm, SessionSummary};
use crate::project::home::AgentHome;
use crate::secret::Redactor;
use crate::sys::atomic_file;
use crate::sys::file_lock::{self, FileLock, LockProblem};
use crate::sys::files::{self, IfThere as _, Links, MIB};
use crate::sys::positions::{self, Misplaced, Positions};

/// The folder with the sessions, in an agent's home.
pub const SESSIONS: &str = crate::project::home::SESSIONS;
/// Limit of a session's file, in bytes: no session grows to that.
pub const LARGEST: u64 = 1024 * MIB;
/// The file of a session that is a folder.
const FILE: &str = "session.json";
/// The file that is locked while such a session is used.
const LOCK: &str = "session.lock";

/// A session, held by this process for as long as this lives.
#[derive(Debug)]
pub struct Session<F> {
    /// The content of its file.
    pub file: F,
    hold: SessionLock,
    /// `true` once the map has it as its directory's last.
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
    /// Keeps it from becoming the last one of its directory: a replay is nobody's to go on with.
    pub fn detach(&mut self) {
        self.is_noted = true;
    }

    /// The folder that its file is in.
    pub fn folder(&self) -> &Path {
        self.hold.session.parent().unwrap_or(&self.hold.session)
    }
}

/// A session's lock. The lock file goes with it where there is no session: it was never saved, or is removed.
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
            // What is left behind all the same is removed by `clean`.
            let _ = lock.remove();
        }
    }
}

/// All sessions of an agent's home whose files have the form `F`.
#[derive(Debug)]
pub struct SessionStore<'r, F> {
    /// The folder with the sessions.
    pub(super) path: PathBuf,
    /// Removes the keys from what is written.
    pub(super) redactor: &'r Redactor,
    home: &'static AgentHome,
    form: PhantomData<fn() -> F>,
}

impl<'r, F: SessionForm> SessionStore<'r, F> {
    /// The sessions below `directory`, which is the home of `home`; the folder is made where it is missing.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn at(
        home: &'static AgentHome,
        directory: &Path,
        redactor: &'r Redactor,
    ) -> Result<Self, SessionError> {
        let store = Self {
            path: directory.join(SESSIONS),
            redactor,
            home,
            form: PhantomData,
        };
        atomic_file::private_directory(&store.path)
            .map_err(store.cannot_be("written", &store.path))?;
        Ok(store)
    }

    /// Path of the folder with the sessions.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A new session with this content. It exists for others once it is saved; one that never is leaves nothing behind.
    ///
    /// # Errors
    /// When there is one of that id, or it cannot be locked.
    pub fn create(&self, file: F) -> Result<Session<F>, SessionError> {
        let id = file.id();
        let hold = self.hold(&id)?;
        if !is_missing(&hold.session) {
            return Err(SessionError::Exists { id });
        }
        Ok(Session {
            file,
            hold,
            is_noted: false,
        })
    }

    /// Tests for a session of exactly that id: on some systems, other names lead to a folder too.
    pub fn has(&self, id: &str) -> bool {
        if !F::IS_FOLDER {
            return !is_missing(&self.file(id));
        }
        let names = self.names().unwrap_or_default();
        names.iter().any(|name| name == id) && is_directory(&self.path.join(id))
    }

    /// Opens a session.
    ///
    /// # Errors
    /// When there is none of that id, when another process uses it, or when its file is damaged.
    pub fn open(&self, id: &str) -> Result<Session<F>, SessionError> {
        // No lock file is made for what is not there.
        if !self.has(id) {
            return Err(self.missing(id));
        }
        let hold = self.hold(id)?;
        if F::IS_FOLDER {
            // What a killed process left behind is in nobody's way.
            let _ = atomic_file::sweep(&self.path.join(id), None);
        }
        Ok(Session {
            file: self.load(id)?,
            hold,
            is_noted: false,
        })
    }

    /// Reads a session's file without holding the session, for onlookers.
    ///
    /// # Errors
    /// When there is none of that id, or when its file is damaged.
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
        parse::<F>(&content)
            .map(|file| file.opened(id))
            .map_err(|mistake| damaged(&path, mistake.to_string()))
    }

    /// The session that was used last in `directory`, an absolute path with links resolved; where the store has no map of
    /// that, the one that began last, and one in which nothing was asked for only where there is no other.
    ///
    /// # Errors
    /// [`SessionError::NoneIn`] where there is none.
    pub fn last_in(&self, directory: &Path) -> Result<String, SessionError> {
        let written = self.written(directory);
        if !F::IS_FOLDER
            && let Some(last) = self.directory_map()?.remove(&written)
            && self.has(&last)
        {
            return Ok(last);
        }
        // It may have been removed by hand, since it was damaged.
        let here = self.list_in(directory)?;
        here.iter()
            .find(|session| session.is_begun() || !F::IS_FOLDER)
            .or(here.first())
            .map(|last| last.id.clone())
            .ok_or(SessionError::NoneIn {
                directory: written,
                home: self.home,
            })
    }

    /// Checks that a session is one of `directory`, which is as for [`last_in`](Self::last_in).
    ///
    /// # Errors
    /// [`SessionError::Elsewhere`] where it is not.
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

    /// Writes a session; the first time, it becomes the last that was used in its directory.
    ///
    /// # Errors
    /// When something cannot be written. What was there of the session is then still there.
    pub fn save(&self, session: &mut Session<F>, now: DateTime<Utc>) -> Result<(), SessionError> {
        session.changed(now);
        self.write(&session.hold.session, &session.file.written(self.redactor))?;
        if !session.is_noted && !F::IS_FOLDER {
            self.note(session.directory(), &session.id())?;
        }
        session.is_noted = true;
        Ok(())
    }

    /// All sessions, the newest first, with the damaged ones among them. No more is looked at of a session's history than
    /// that it is JSON.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn list(&self) -> Result<Vec<SessionSummary>, SessionError> {
        let ids = if F::IS_FOLDER {
            self.names()?
        } else {
            self.named(".json")?
        };
        let mut found: Vec<_> = ids.into_iter().filter_map(|id| self.summary(id)).collect();
        // Of those of a millisecond, the last is the one with the largest number behind its name.
        found.sort_by_cached_key(|summary| {
            Reverse((summary.time, summary.id.len(), summary.id.clone()))
        });
        Ok(found)
    }

    /// Sessions of `directory`, which is as for [`last_in`](Self::last_in), without the damaged ones.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn list_in(&self, directory: &Path) -> Result<Vec<SessionSummary>, SessionError> {
        let directory = self.written(directory);
        let mut found = self.list()?;
        found.retain(|summary| summary.is_of(&directory));
        Ok(found)
    }

    /// The list for programs: `{"schema": 1, "sessions": […]}`.
    pub fn json(sessions: &[SessionSummary]) -> Value {
        let sessions: Vec<Value> = sessions.iter().map(F::json).collect();
        serde_json::json!({"schema": 1, "sessions": sessions})
    }

    fn summary(&self, id: String) -> Option<SessionSummary> {
        let path = self.file(&id);
        let shown = if F::IS_FOLDER {
            Some(self.path.join(&id)).filter(|folder| is_directory(folder))?
        } else {
            path.clone()
        };
        let is_held = || file_lock::is_held(&self.lock_file(&id));
        let outline = match self.read(&path) {
            // It was removed, or is being made, just now.
            Ok(None) if !F::IS_FOLDER || is_held() => return None,
            Ok(None) => Err(no_file()),
            Ok(Some(content)) => parse::<F::Outlined>(&content)
                .map(Into::into)
                .map_err(|mistake| mistake.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let outline = outline.map(|outline: Outline| Outline {
            state: outline.state.seen(is_held),
            ..outline
        });
        let time = match &outline {
            Ok(outline) => outline.time,
            Err(_) => modified_at(&shown)?,
        };
        Some(SessionSummary { id, time, outline })
    }

    /// Takes a session for this process.
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

    /// The path of a session's file.
    pub(super) fn file(&self, id: &str) -> PathBuf {
        if F::IS_FOLDER {
            self.path.join(id).join(FILE)
        } else {
            self.path.join(format!("{id}.json"))
        }
    }

    fn lock_file(&self, id: &str) -> PathBuf {
        if F::IS_FOLDER {
            self.path.join(id).join(LOCK)
        } else {
            self.path.join(format!("{id}.lock"))
        }
    }

    /// The UUIDs for which there is a file whose name ends so.
    pub(super) fn named(&self, end: &str) -> Result<Vec<String>, SessionError> {
        // A UUID can be written in several ways; our files' names are one of them.
        let is_id = |stem: &str| Uuid::try_parse(stem).is_ok_and(|id| id.to_string() == stem);
        let names = self.names()?;
        let stems = names.iter().filter_map(|name| name.strip_suffix(end));
        Ok(stems
            .filter(|stem| is_id(stem))
            .map(str::to_owned)
            .collect())
    }

    /// A file's content; `None` where it is missing.
    ///
    /// # Errors
    /// When it is no file, is too large, or cannot be read.
    pub(super) fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, SessionError> {
        files::read(path, Links::Refused, LARGEST)
            .if_there()
            .map_err(self.cannot_be("read", path))
    }

    /// Writes a file, as JSON.
    ///
    /// # Errors
    /// When it cannot be written; what was there is then still there.
    pub(super) fn write(&self, path: &Path, content: &impl Serialize) -> Result<(), SessionError> {
        atomic_file::replace_private(path, |file| {
            let mut out = BufWriter::new(file);
            serde_json::to_writer_pretty(&mut out, content)?;
            out.write_all(b"\n")?;
            out.flush()
        })
        .map_err(self.cannot_be("written", path))
    }

    /// The names in the folder, as far as they are UTF-8.
    fn names(&self) -> Result<Vec<String>, SessionError> {
        let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().into_string().ok());
        fs::read_dir(&self.path)
            .and_then(|entries| {
                entries
                    .map(name)
                    .filter_map(io::Result::transpose)
                    .collect()
            })
            .map_err(self.cannot_be("read", &self.path))
    }

    /// A directory as it stands in files. The bytes of one that is not UTF-8 are written out, so that another
    /// is not taken for it.
    pub fn written(&self, directory: &Path) -> String {
        let bytes = || directory.as_os_str().as_encoded_bytes().escape_ascii();
        // No path begins like this.
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

    /// The error of a lock file that cannot be locked.
    pub(super) fn unlockable(&self, path: &Path, source: io::Error) -> SessionError {
        SessionError::Unlockable {
            path: path.to_owned(),
            home: self.home,
            source,
        }
    }

    /// The error of something that cannot be `read` or `written`.
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

/// Reads a session's file, which is an object.
///
/// # Errors
/// The mistake, with its place.
pub(super) fn parse<'t, T: Deserialize<'t>>(content: &'t [u8]) -> Result<T, Misplaced> {
    let json = positions::text(content)?;
    Positions(json).object(json)
}

/// Tests that nothing is at a path.
pub(super) fn is_missing(path: &Path) -> bool {
    matches!(path.symlink_metadata().if_there(), Ok(None))
}

/// The time of the last change to what is at a path.
pub(super) fn modified_at(path: &Path) -> Option<DateTime<Utc>> {
    Some(path.symlink_metadata().ok()?.modified().ok()?.into())
}

fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// The problem of a folder without a file.
fn no_file() -> String {
    format!("it has no `{FILE}`")
}

#[cfg(test)]
mod tests;
