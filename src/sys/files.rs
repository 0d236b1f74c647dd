//! What every room asks of files: whether one is missing, that it is one, and what could not be done to it.
//!
//! Reads only.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// What could not be done to a file.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} `{}`: {source}", .path.display())]
pub struct PathError {
    /// What was being done, as "write".
    pub action: &'static str,
    /// The file, or folder.
    pub path: PathBuf,
    /// The system's word.
    pub source: io::Error,
}

impl PathError {
    /// Makes one of the system's word.
    pub(crate) fn of<E: Into<io::Error>>(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(E) -> Self {
        let path = path.into();
        move |error| Self {
            action,
            path,
            source: error.into(),
        }
    }
}

/// Whether nothing is there; perhaps not even the directory.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// What came of looking at a file that need not be there.
pub(crate) trait IfThere<T> {
    /// The same, but `None` where it is missing.
    fn if_there(self) -> io::Result<Option<T>>;
}

impl<T> IfThere<T> for io::Result<T> {
    fn if_there(self) -> io::Result<Option<T>> {
        match self {
            Err(error) if is_missing(&error) => Ok(None),
            there => there.map(Some),
        }
    }
}

/// Opens a file for reading, links followed; `None` where it is anything else. Never waits: a pipe that nobody
/// writes to would take forever.
///
/// # Errors
/// When nothing is there, or it cannot be opened.
pub(crate) fn open_regular(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(opened) => File::from(opened),
        Err(Errno::NXIO) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    Ok(file.metadata()?.is_file().then_some(file))
}

/// The whole content of a file; `None` where it is anything else.
///
/// # Errors
/// When nothing is there, or it cannot be read.
pub(crate) fn read_if_regular(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let read = |mut file: File| {
        let mut content = Vec::new();
        file.read_to_end(&mut content).map(|_| content)
    };
    open_regular(path)?.map(read).transpose()
}

/// The same where anything else is an error.
///
/// # Errors
/// When it is no file, or cannot be read.
pub(crate) fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    read_if_regular(path)?.ok_or_else(|| io::Error::other("it is not a file"))
}
