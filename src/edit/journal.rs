//! The journal of an application: what is under way, and what may not have reached the disk.
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
//! installed    the new tree counts, as far as it has reached the disk whole; else the old one
//!   │
//! ended        the same, and the run has come to its end
//! ```
//!
//! Each step is one rename. The journal is removed when the old tree is there again, or the new one on
//! the disk for good.

use std::io;
use std::path::{Path, PathBuf};

use super::digest::{FOR_EVER, Stamp, modified};
use super::disk;
use super::error::JournalError;
use super::record::Record;

/// A journal that was still being written; it speaks of nothing that has happened.
const UNFINISHED: &str = ".code-commit-journal-new";
/// Beside a journal whose new files a power cut has torn, from when that is known until they are gone.
const TORN: &str = ".code-commit-journal-torn";

/// How far an application has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Nothing is in its place yet.
    Armed,
    /// Everything is staged; some of it may be in its place.
    Installing,
    /// It is rolled back, and something staged may be left to remove.
    RolledBack,
    /// Everything is in its place.
    Installed,
    /// And the run that did it has ended.
    Ended,
}

impl State {
    const ALL: [Self; 5] = [
        Self::Armed,
        Self::Installing,
        Self::RolledBack,
        Self::Installed,
        Self::Ended,
    ];

    /// The name of the journal's file.
    fn file_name(self) -> &'static str {
        match self {
            Self::Armed => ".code-commit-journal",
            Self::Installing => ".code-commit-journal-installing",
            Self::RolledBack => ".code-commit-journal-rolled-back",
            Self::Installed => ".code-commit-journal-installed",
            Self::Ended => ".code-commit-journal-ended",
        }
    }
}

/// A journal on the disk.
#[derive(Debug)]
pub struct Journal {
    /// None: there is no file, and nothing outlives the process.
    directory: Option<PathBuf>,
    state: State,
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
            state: State::Armed,
        };
        let path = directory.join(State::Armed.file_name());
        let unfinished = directory.join(UNFINISHED);
        if !record.durable {
            // Of an application that is over; one that is being mended is still needed.
            let _ = disk::remove_file(&directory.join(TORN));
        }
        let written = write_new(&unfinished, record)
            .and_then(|()| disk::rename(&unfinished, &path))
            .and_then(|()| disk::sync(&disk::open(directory)?));
        match written {
            Ok(()) => Ok(journal),
            Err(source) => {
                // Should one be there all the same, it speaks of nothing that has happened.
                let _ = disk::remove_file(&unfinished);
                let _ = disk::remove_file(&path);
                Err(JournalError {
                    action: "write",
                    path,
                    source,
                })
            }
        }
    }

    /// A journal that is not written down.
    pub fn without_file() -> Self {
        Self {
            directory: None,
            state: State::Armed,
        }
    }

    /// Looks for a journal that an earlier process, or an earlier application, has left behind; the
    /// one that is under way first.
    ///
    /// # Errors
    /// When there is one that cannot be read: then nothing is known about the tree.
    pub fn find(directory: &Path) -> Result<Option<(Self, Record)>, JournalError> {
        let unfinished = directory.join(UNFINISHED);
        if let Err(source) = remove_if_there(&unfinished) {
            return Err(JournalError {
                action: "remove",
                path: unfinished,
                source,
            });
        }
        for state in State::ALL {
            let journal = Self {
                directory: Some(directory.to_path_buf()),
                state,
            };
            if let Some(record) = read(&directory.join(state.file_name()))? {
                return Ok(Some((journal, record)));
            }
        }
        Ok(None)
    }

    /// How far the application has come.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Notes that everything is staged.
    ///
    /// # Errors
    /// When the rename fails; nothing is in its place then.
    pub fn begin_installing(&mut self) -> Result<(), JournalError> {
        self.become_of(State::Installing, "write on")
    }

    /// Notes that a power cut has torn the new files. From then on that need not be found out again,
    /// which it could not: what is done about it leaves traces on them.
    ///
    /// # Errors
    /// When that cannot be noted.
    pub fn mark_torn(&mut self) -> Result<(), JournalError> {
        // The application that mends it takes this one's place in one rename.
        self.become_of(State::Installed, "write on")?;
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        let marker = directory.join(TORN);
        match disk::create_new(&marker) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(failed("write on", marker)(error)),
        }
    }

    /// Whether that was noted.
    fn is_marked_torn(&self) -> bool {
        let marker = self
            .directory
            .as_ref()
            .map(|directory| directory.join(TORN));
        marker.is_some_and(|marker| disk::stat(&marker).is_ok())
    }

    /// Makes the new tree the one that counts. The journal's file is from then on as old as the tree: what
    /// changes later, is younger.
    ///
    /// # Errors
    /// When the rename fails; the old tree then counts.
    pub fn install(&mut self) -> Result<(), JournalError> {
        if let Some(path) = self.path() {
            disk::touch(&path).map_err(failed("complete", path))?;
        }
        self.become_of(State::Installed, "complete")
    }

    /// Until when a change to a new file is this application's own: when the tree that counts was complete;
    /// or for ever, where it is known to be torn.
    ///
    /// # Errors
    /// When that cannot be told.
    pub fn own_until(&self) -> Result<Stamp, JournalError> {
        match self.path() {
            _ if self.is_marked_torn() => Ok(FOR_EVER),
            None => Ok(Stamp::default()),
            Some(path) => {
                let stat = disk::stat(&path).map_err(failed("read", path))?;
                Ok(modified(&stat))
            }
        }
    }

    /// Notes that the old tree is there again.
    ///
    /// # Errors
    /// When the rename fails; should the roll-back be cut short now, it is begun anew.
    pub fn mark_rolled_back(&mut self) -> Result<(), JournalError> {
        self.become_of(State::RolledBack, "end")
    }

    /// Notes that the run has come to its end.
    ///
    /// # Errors
    /// When the rename fails; the next run then takes this one for cut short.
    pub fn end(&mut self) -> Result<(), JournalError> {
        self.become_of(State::Ended, "end")
    }

    fn become_of(&mut self, state: State, action: &'static str) -> Result<(), JournalError> {
        if let (Some(path), Some(directory)) = (self.path(), &self.directory) {
            let new = directory.join(state.file_name());
            disk::rename(&path, &new).map_err(failed(action, path))?;
        }
        self.state = state;
        Ok(())
    }

    /// Removes the journal, once there is nothing left to do.
    ///
    /// # Errors
    /// When it cannot be removed; the next run then looks at it once more.
    pub fn remove(&self) -> Result<(), JournalError> {
        match self.path() {
            None => Ok(()),
            Some(path) => {
                // The mark is of what is installed, not of what is under way to mend it.
                let installed = matches!(self.state, State::Installed | State::Ended);
                if installed && self.is_marked_torn() {
                    let marker = path.with_file_name(TORN);
                    disk::remove_file(&marker).map_err(failed("remove", marker))?;
                }
                disk::remove_file(&path).map_err(failed("remove", path))
            }
        }
    }

    fn path(&self) -> Option<PathBuf> {
        let directory = self.directory.as_ref()?;
        Some(directory.join(self.state.file_name()))
    }
}

fn failed<E: Into<io::Error>>(
    action: &'static str,
    path: PathBuf,
) -> impl FnOnce(E) -> JournalError {
    move |error| JournalError {
        action,
        path,
        source: error.into(),
    }
}

/// Reads a journal, where there is one.
fn read(path: &Path) -> Result<Option<Record>, JournalError> {
    match disk::read(path) {
        Ok(json) => Record::parse(&json).map(Some),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
    .map_err(failed("read", path.to_path_buf()))
}

/// Writes the record to a file that must not exist, and to the disk.
fn write_new(path: &Path, record: &Record) -> io::Result<()> {
    let mut file = disk::create_new(path)?;
    disk::write_all(&mut file, &record.to_json()?)?;
    disk::sync(&file)
}

/// Nothing is there; perhaps not even the directory.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    // A look first: removing what is not there fails where nothing can be written.
    match path.symlink_metadata() {
        Ok(_) => disk::remove_file(path),
        Err(error) if is_absent(&error) => Ok(()),
        Err(error) => Err(error),
    }
}
