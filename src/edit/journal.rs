//! The journal of an application: what is under way.
//!
//! Writes its files in a directory that no reply may write to. Guarantees that the journal is whole
//! and on the disk before any of the project's files is changed, that the moment when the new tree
//! counts is one rename, and that a journal which names what no run may change is not obeyed.
//!
//! ```text
//! armed        new files are being written under staged names; the old tree counts, and is untouched
//!   │
//! installing ─ roll back ─ rolled back: the old tree is there, and something staged may be left
//!   │
//! installed    the new tree counts; what it replaces may still be there under staged names
//!   │
//! ended        the same, and whoever started it has been told
//! ```
//!
//! Each step is one rename. The journal is removed when nothing is left to do.

use std::io;
use std::path::{Path, PathBuf};

use super::digest::{Stamp, changed};
use super::disk;
use super::error::JournalError;
use super::record::Record;
use crate::sys::files::{IfThere as _, MIB, PathError};

/// No journal is larger, in bytes.
const LARGEST: u64 = 64 * MIB;

/// A journal that was still being written; it speaks of nothing that has happened.
const UNFINISHED: &str = ".code-commit-journal-new";

/// The progress of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalState {
    /// Nothing is in its place yet.
    Armed,
    /// Everything is staged; some of it may be in its place.
    Installing,
    /// It is rolled back, and something staged may be left to remove.
    RolledBack,
    /// Everything is in its place.
    Installed,
    /// And that is known: only leftovers remain to be removed.
    Ended,
}

/// The names of the journal's file; what is under way stands before what is done.
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
    /// None: there is no file, and nothing outlives the process.
    directory: Option<PathBuf>,
    state: JournalState,
}

impl Journal {
    /// Writes the journal, and sees that it is on the disk. From when this returns, whatever happens
    /// is undone unless [`install`](Self::install) has returned too.
    ///
    /// # Errors
    /// When it cannot be written; then it is not there.
    pub fn arm(directory: &Path, record: &Record) -> Result<Self, JournalError> {
        let journal = Self {
            directory: Some(directory.to_path_buf()),
            state: JournalState::Armed,
        };
        let path = directory.join(JournalState::Armed.file_name());
        let unfinished = directory.join(UNFINISHED);
        let write = || {
            let mut file = disk::create_new(&unfinished)?;
            disk::write_all(&mut file, &serde_json::to_vec(record)?)?;
            disk::sync(&file)?;
            disk::rename(&unfinished, &path)?;
            disk::sync(&disk::open(directory)?)
        };
        write().map(|()| journal).map_err(|error| {
            // Should one be there all the same, it speaks of nothing that has happened.
            let _ = disk::remove_file(&unfinished);
            let _ = disk::remove_file(&path);
            PathError::of("write the journal", path)(error)
        })
    }

    /// A journal that is not written down.
    pub fn without_file() -> Self {
        Self {
            directory: None,
            state: JournalState::Armed,
        }
    }

    /// Looks for a journal that an earlier process, or an earlier application, has left behind; the
    /// one that is under way first.
    ///
    /// # Errors
    /// When there is one that cannot be read: then nothing is known about the tree.
    pub fn find(directory: &Path) -> Result<Option<(Self, Record)>, JournalError> {
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

    /// The progress of the application.
    pub fn state(&self) -> JournalState {
        self.state
    }

    /// Makes the new tree the one that counts, and says when that was, by the clock that the file system itself
    /// goes by: what changes later, is younger.
    ///
    /// # Errors
    /// When the rename fails; the old tree then counts.
    pub fn install(&mut self) -> Result<Stamp, JournalError> {
        self.advance(JournalState::Installed)?;
        let stat = self.path().and_then(|path| disk::stat(&path).ok());
        // Where that cannot be told, everything later counts as somebody's change, and is looked at.
        Ok(stat.as_ref().map(changed).unwrap_or_default())
    }

    /// Notes how far the application has come, by one rename.
    ///
    /// # Errors
    /// When the rename fails; what was noted before then counts.
    pub fn advance(&mut self, state: JournalState) -> Result<(), JournalError> {
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
    /// When it cannot be removed; the next run then looks at it once more.
    pub fn remove(&self) -> Result<(), JournalError> {
        let Some(path) = self.path() else {
            return Ok(());
        };
        disk::remove_file(&path).map_err(PathError::of("remove the journal", path))
    }

    fn path(&self) -> Option<PathBuf> {
        let directory = self.directory.as_ref()?;
        Some(directory.join(self.state.file_name()))
    }
}

/// Reads a journal, where there is one.
fn read(path: &Path) -> Result<Option<Record>, JournalError> {
    let json = disk::read(path, LARGEST).if_there();
    json.and_then(|json| json.map(|json| Record::parse(&json)).transpose())
        .map_err(PathError::of("read the journal", path.to_path_buf()))
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    // A look first: removing what is not there fails where nothing can be written.
    let there = path.symlink_metadata().if_there()?;
    there.map_or(Ok(()), |_| disk::remove_file(path))
}
