//! The folder with an agent's sessions, whatever these consist of: how what is in it is named, read, written and locked.

use std::borrow::Cow;
use std::fmt::Display;
use std::fs;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{SESSIONS, SessionError};
use crate::project::home::AgentHome;
use crate::secret::Redactor;
use crate::sys::atomic_file;
use crate::sys::file_lock::{FileLock, LockProblem};
use crate::sys::files::{self, IfThere as _, Links, MIB};
use crate::sys::positions::{self, Misplaced, Positions};

/// No larger file is read, in bytes: no session grows to that.
pub const LARGEST: u64 = 1024 * MIB;

/// The folder with the sessions of an agent's home.
#[derive(Debug)]
pub(crate) struct SessionFolder<'r> {
    /// Where it is.
    pub path: PathBuf,
    /// What it knows as keys is not written.
    pub redactor: &'r Redactor,
    home: &'static AgentHome,
}

impl<'r> SessionFolder<'r> {
    /// The one in the directory `home`; it is made where it is missing.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn at(
        profile: &'static AgentHome,
        home: &Path,
        redactor: &'r Redactor,
    ) -> Result<Self, SessionError> {
        let folder = Self {
            path: home.join(SESSIONS),
            redactor,
            home: profile,
        };
        let made = atomic_file::private_directory(&folder.path);
        made.map_err(folder.cannot_be("written", &folder.path))?;
        Ok(folder)
    }

    /// Takes a session for this process, by the lock file at `path`.
    ///
    /// # Errors
    /// When another process has it, or it cannot be locked.
    pub fn hold(&self, id: impl Display, path: &Path) -> Result<FileLock, SessionError> {
        FileLock::take(path).map_err(|problem| match problem {
            LockProblem::Held { process } => SessionError::InUse {
                id: id.to_string(),
                process,
            },
            LockProblem::Unlockable(source) => self.unlockable(path, source),
        })
    }

    /// A file's content; `None` where it is missing.
    ///
    /// # Errors
    /// When it is no file, is too large, or cannot be read.
    pub fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, SessionError> {
        files::read(path, Links::Refused, LARGEST)
            .if_there()
            .map_err(self.cannot_be("read", path))
    }

    /// Writes a file, as JSON.
    ///
    /// # Errors
    /// When it cannot be written; what was there is then still there.
    pub fn write(&self, path: &Path, content: &impl Serialize) -> Result<(), SessionError> {
        let written = atomic_file::replace_private(path, |file| {
            let mut out = BufWriter::new(file);
            serde_json::to_writer_pretty(&mut out, content)?;
            out.write_all(b"\n")?;
            out.flush()
        });
        written.map_err(self.cannot_be("written", path))
    }

    /// The names of what is in it, as far as they are UTF-8.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn names(&self) -> Result<Vec<String>, SessionError> {
        let read = || {
            let names = fs::read_dir(&self.path)?;
            let names = names.map(|entry| Ok(entry?.file_name().into_string().ok()));
            names
                .filter_map(io::Result::transpose)
                .collect::<io::Result<Vec<String>>>()
        };
        read().map_err(self.cannot_be("read", &self.path))
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

    /// Looks whether a session of `directory`, as it stands in a file, is one of the directory `here`.
    ///
    /// # Errors
    /// [`SessionError::Elsewhere`] where it is not.
    pub fn check_directory(
        &self,
        id: impl Display,
        directory: &str,
        here: &Path,
    ) -> Result<(), SessionError> {
        let here = self.written(here);
        if directory == here {
            return Ok(());
        }
        Err(SessionError::Elsewhere {
            id: id.to_string(),
            directory: directory.to_owned(),
            here,
        })
    }

    /// There is no such session.
    pub fn missing(&self, id: impl Display) -> SessionError {
        SessionError::Missing {
            id: id.to_string(),
            home: self.home,
        }
    }

    /// There is no session of this directory, as it stands in files.
    pub fn none_in(&self, directory: String) -> SessionError {
        SessionError::NoneIn {
            directory,
            home: self.home,
        }
    }

    /// A lock file cannot be locked.
    pub fn unlockable(&self, path: &Path, source: io::Error) -> SessionError {
        SessionError::Unlockable {
            path: path.to_owned(),
            home: self.home,
            source,
        }
    }

    /// Something cannot be `read` or `written`.
    pub fn cannot_be(
        &self,
        what: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> SessionError + use<> {
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
/// What is wrong in it, and where.
pub(crate) fn parse<'t, T: Deserialize<'t>>(content: &'t [u8]) -> Result<T, Misplaced> {
    let json = positions::text(content)?;
    Positions(json).object(json)
}

/// Whether nothing is there.
pub(crate) fn is_missing(path: &Path) -> bool {
    matches!(path.symlink_metadata().if_there(), Ok(None))
}

/// When what is at a path was changed.
pub(crate) fn modified_at(path: &Path) -> Option<DateTime<Utc>> {
    let modified = path.symlink_metadata().ok()?.modified().ok()?;
    Some(modified.into())
}
