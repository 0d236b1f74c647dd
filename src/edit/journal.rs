//! The journal of a transaction: records the operations in progress.
//!
//! Writes its files in a directory that no reply may write to. Guarantees that the journal is complete and on disk
//! before any of the project's files is changed, that the new tree takes effect by a single rename, and that a journal
//! naming paths that no run may change is rejected.
//!
//! ```text
//! armed        new files are being written under staged names; the old tree is in effect and untouched
//!   │
//! installing ─ roll back ─ rolled back: the old tree is restored; staged files may remain
//!   │
//! installed    the new tree is in effect; replaced files may remain under staged names
//!   │
//! ended        as installed, and the caller knows
//! ```
//!
//! Each transition is one rename. The journal is removed once nothing is left to do.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::CWD;

use super::disk;
use super::record::Record;
use crate::sys::files::{IfThere as _, MIB, PathError};
use crate::sys::identity::{Stamp, changed};

/// Maximum size of a journal, in bytes.
const LARGEST: u64 = 64 * MIB;

/// A journal that is still being written: nothing that it records has happened yet.
const UNFINISHED: &str = ".code-commit-journal-new";

/// The progress of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalState {
    /// The new files are being staged; none is in place yet.
    Armed,
    /// All files are staged; some may be in place.
    Installing,
    /// The transaction is rolled back; staged files may remain to be removed.
    RolledBack,
    /// All files are in place.
    Installed,
    /// All files are in place, and the caller knows; only leftovers remain to be removed.
    Ended,
}

/// The names of the journal's file in each state; states in progress come before final ones.
const FILES: [(JournalState, &str); 5] = [
    (JournalState::Armed, ".code-commit-journal"),
    (JournalState::Installing, ".code-commit-journal-installing"),
    (JournalState::RolledBack, ".code-commit-journal-rolled-back"),
    (JournalState::Installed, ".code-commit-journal-installed"),
    (JournalState::Ended, ".code-commit-journal-ended"),
];

impl JournalState {
    fn file_name(self) -> &'static str {
        FILES[self as usize].1
    }
}

/// A journal on the disk.
#[derive(Debug)]
pub struct Journal {
    /// The directory; `None` for a journal that is not written and does not outlive the process.
    directory: Option<PathBuf>,
    state: JournalState,
}

impl Journal {
    /// Writes the journal and syncs it to disk. Once this returns, whatever happens is undone unless
    /// [`install`](Self::install) returns too.
    ///
    /// # Errors
    /// Fails if the journal cannot be written; no journal exists then.
    pub fn arm(directory: &Path, record: &Record) -> Result<Self, PathError> {
        let journal = Self {
            directory: Some(directory.to_path_buf()),
            state: JournalState::Armed,
        };
        let path = directory.join(JournalState::Armed.file_name());
        let unfinished = directory.join(UNFINISHED);
        let write = || {
            let mut file = disk::create_new_in(CWD, &unfinished, 0o666)?;
            disk::write_all(&mut file, &serde_json::to_vec(record)?)?;
            disk::sync(&file)?;
            disk::rename(&unfinished, &path)?;
            disk::sync(&disk::open(directory)?)
        };
        write().map(|()| journal).map_err(|error| {
            // If a journal remains nevertheless, it records nothing that has happened.
            let _ = disk::remove_file(&unfinished);
            let _ = disk::remove_file(&path);
            PathError::of("write the journal", path)(error)
        })
    }

    /// Creates a journal that is not written to disk.
    pub fn without_file() -> Self {
        Self {
            directory: None,
            state: JournalState::Armed,
        }
    }

    /// Finds a journal left by an earlier process or transaction; one for a transaction in progress comes first.
    ///
    /// # Errors
    /// Fails if a journal cannot be read: the state of the tree is then unknown.
    pub fn find(directory: &Path) -> Result<Option<(Self, Record)>, PathError> {
        let unfinished = directory.join(UNFINISHED);
        remove_if_there(&unfinished).map_err(PathError::of("remove the journal", unfinished))?;
        for (state, name) in FILES {
            let journal = Self {
                directory: Some(directory.to_path_buf()),
                state,
            };
            if let Some(record) = read(&directory.join(name))? {
                return Ok(Some((journal, record)));
            }
        }
        Ok(None)
    }

    /// Returns the progress of the transaction.
    pub fn state(&self) -> JournalState {
        self.state
    }

    /// Makes the new tree take effect. Returns the file system's time of that moment, to compare later changes with.
    ///
    /// # Errors
    /// Fails if the rename fails; the old tree then remains in effect.
    pub fn install(&mut self) -> Result<Stamp, PathError> {
        self.advance(JournalState::Installed)?;
        let stat = self.path().and_then(|path| disk::stat(&path).ok());
        // If the time is unknown, all later changes count as made by others, and are examined.
        Ok(stat.as_ref().map(changed).unwrap_or_default())
    }

    /// Records the progress of the transaction by one rename.
    ///
    /// # Errors
    /// Fails if the rename fails; the previous state then remains recorded.
    pub fn advance(&mut self, state: JournalState) -> Result<(), PathError> {
        if let (Some(path), Some(directory)) = (self.path(), &self.directory) {
            disk::rename(&path, &directory.join(state.file_name()))
                .map_err(PathError::of("update the journal", path))?;
        }
        self.state = state;
        Ok(())
    }

    /// Removes the journal, once there is nothing left to do.
    ///
    /// # Errors
    /// Fails if it cannot be removed; the next run then examines it again.
    pub fn remove(&self) -> Result<(), PathError> {
        let Some(path) = self.path() else {
            return Ok(());
        };
        disk::remove_file(&path).map_err(PathError::of("remove the journal", path))
    }

    fn path(&self) -> Option<PathBuf> {
        Some(self.directory.as_ref()?.join(self.state.file_name()))
    }
}

/// Reads a journal, if it exists.
fn read(path: &Path) -> Result<Option<Record>, PathError> {
    let json = disk::read(path, LARGEST).if_there();
    json.and_then(|json| json.map(|json| Record::parse(&json)).transpose())
        .map_err(PathError::of("read the journal", path.to_path_buf()))
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    // Removing a missing file would fail on a read-only file system, so check first.
    let there = path.symlink_metadata().if_there()?;
    there.map_or(Ok(()), |_| disk::remove_file(path))
}
