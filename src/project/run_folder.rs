//! The folder of a run: which one it is, whatever becomes of its path.
//!
//! Makes the folder and `logs`, and opens them. Guarantees that no link is followed on the way to a folder that it
//! opens, that this is the one that was made, and that nobody else may look into what was made here.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{CWD, Mode, mkdirat};
use rustix::io::Errno;

use crate::project::LOGS;
use crate::sys::files::open_directory_in;
use crate::sys::identity::identity;

/// The run's changes to the project's files.
pub const CHANGES: &str = "changes.json";

/// The folder with the files that the run has replaced or removed, as they were before.
pub const REPLACED: &str = "replaced";

/// Mode of directories with logs, which tell what was sent and built.
const PRIVATE: u32 = 0o700;

/// A run's folder. It is held open: no other one gets its number meanwhile.
#[derive(Debug)]
pub struct RunFolder {
    logs: PathBuf,
    name: String,
    held: Mutex<File>,
}

impl RunFolder {
    /// Makes one below `logs` in the root, by the first of these names that is free.
    ///
    /// # Errors
    /// When it cannot be made, or `logs` is no directory.
    pub fn make(root: &Path, names: impl Iterator<Item = String>) -> io::Result<Self> {
        let logs = root.join(LOGS);
        make_directory(&logs)?;
        let directory = open_directory_in(CWD, &logs)?;
        for name in names {
            match make_in(&directory, &name) {
                Err(Errno::EXIST) => {}
                made => {
                    made?;
                    return Self::of(logs, name);
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// The one that is there by this name.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub(crate) fn of(logs: PathBuf, name: String) -> io::Result<Self> {
        let held = Mutex::new(open(&logs, &name)?);
        Ok(Self { logs, name, held })
    }

    /// Its path, relative to the project's root.
    pub fn name(&self) -> String {
        format!("{LOGS}/{}", self.name)
    }

    /// Its path.
    pub fn path(&self) -> PathBuf {
        self.logs.join(&self.name)
    }

    /// The folder that was made, which is still in its place.
    ///
    /// # Errors
    /// When there is nothing or something else, or no handle is to be had.
    pub fn open(&self) -> io::Result<File> {
        let replaced =
            || io::Error::other("the run's folder was moved or replaced while the run went on");
        let held = self.held()?;
        let is_same = self.logs.symlink_metadata()?.is_dir()
            && identity(Ok(self.path().symlink_metadata()?)) == identity(held.metadata());
        is_same.then_some(held).ok_or_else(replaced)
    }

    /// The folder that was made, wherever it is now.
    ///
    /// # Errors
    /// When no handle is to be had.
    pub fn held(&self) -> io::Result<File> {
        self.held
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .try_clone()
    }

    /// Makes it again, where `logs` is.
    ///
    /// # Errors
    /// When it cannot be made.
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
    mkdirat(directory, name, Mode::from_raw_mode(PRIVATE))
}

/// Makes a directory that nobody but its owner may look into, unless it is there; whether it was made. A link to one is refused: what is logged stays in
/// the project.
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
