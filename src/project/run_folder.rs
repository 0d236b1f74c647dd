//! The folder of a run, held open in case its path changes.
//!
//! Creates and opens the folder and `logs`. Guarantees that no link is followed on the way to an opened folder,
//! that it is the one that was created, and that only its owner may access new folders.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{CWD, Mode, mkdirat};
use rustix::io::Errno;

use crate::project::LOGS;
use crate::sys::file_lock;
use crate::sys::files::open_directory_in;
use crate::sys::identity::identity;

/// File with the run's changes to the project's files.
pub const CHANGES: &str = "changes.json";

/// Folder with the previous versions of files that the run replaced or removed.
pub const REPLACED: &str = "replaced";

/// Mode of log directories, which are private because logs show what was sent and built.
const PRIVATE: u32 = 0o700;

/// A run's folder. It is held open, so that its inode number is not reused.
#[derive(Debug)]
pub struct RunFolder {
    logs: PathBuf,
    name: String,
    held: Mutex<File>,
}

impl RunFolder {
    /// Creates a folder below `logs` in the root, with the first of these names that is free.
    ///
    /// # Errors
    /// Fails if the folder cannot be created, or `logs` is not a directory.
    pub fn make(root: &Path, names: impl Iterator<Item = String>) -> io::Result<Self> {
        let logs = root.join(LOGS);
        make_directory(&logs)?;
        let directory = open_directory_in(CWD, &logs)?;
        for name in names {
            match make_in(&directory, &name) {
                Err(Errno::EXIST) => {}
                made => {
                    made?;
                    let folder = Self::of(logs, name)?;
                    // The lock tells a running process from a killed one. Some file systems do not support locks.
                    let _ = file_lock::lock(&folder.held()?);
                    return Ok(folder);
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Opens the existing folder with this name.
    ///
    /// # Errors
    /// Fails if the folder cannot be opened.
    pub(crate) fn of(logs: PathBuf, name: String) -> io::Result<Self> {
        let held = Mutex::new(open(&logs, &name)?);
        Ok(Self { logs, name, held })
    }

    /// Returns the folder's path, relative to the project's root.
    pub fn name(&self) -> String {
        format!("{LOGS}/{}", self.name)
    }

    /// Returns the directory that holds `logs`.
    pub fn home(&self) -> &Path {
        self.logs.parent().unwrap_or(&self.logs)
    }

    /// Returns the folder's path.
    pub fn path(&self) -> PathBuf {
        self.logs.join(&self.name)
    }

    /// Returns the folder that was created, after checking that it is still in place.
    ///
    /// # Errors
    /// Fails if the folder was moved or replaced, or no handle is available.
    pub fn open(&self) -> io::Result<File> {
        let replaced =
            || io::Error::other("the run's folder was moved or replaced while the run went on");
        let held = self.held()?;
        let is_same = self.logs.symlink_metadata()?.is_dir()
            && identity(Ok(self.path().symlink_metadata()?)) == identity(held.metadata());
        is_same.then_some(held).ok_or_else(replaced)
    }

    /// Returns the folder that was created, even if it was moved.
    ///
    /// # Errors
    /// Fails if no handle is available.
    pub fn held(&self) -> io::Result<File> {
        let held = self.held.lock();
        held.unwrap_or_else(PoisonError::into_inner).try_clone()
    }

    /// Creates the folder again in `logs`.
    ///
    /// # Errors
    /// Fails if the folder cannot be created.
    pub fn restore(&self) -> io::Result<()> {
        make_in(open_directory_in(CWD, &self.logs)?, &self.name)?;
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = open(&self.logs, &self.name)?;
        Ok(())
    }
}

fn open(logs: &Path, name: &str) -> io::Result<File> {
    open_directory_in(open_directory_in(CWD, logs)?, Path::new(name))
}

fn make_in(directory: impl AsFd, name: &str) -> Result<(), Errno> {
    mkdirat(directory, name, Mode::RWXU)
}

/// Creates a directory that only its owner may access, and returns whether it did not exist before. A link in its place
/// is refused, so that logs stay in the project.
pub(crate) fn make_directory(path: &Path) -> io::Result<bool> {
    match DirBuilder::new().mode(PRIVATE).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let is_directory = path.symlink_metadata()?.is_dir();
            let refused = || io::ErrorKind::NotADirectory.into();
            is_directory.then_some(false).ok_or_else(refused)
        }
        made => made.map(|()| true),
    }
}
