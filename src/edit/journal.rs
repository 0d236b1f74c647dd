//! The journal of an application that is under way, and what it says.
//!
//! Writes its files in a directory that no reply may write to. Guarantees that the
//! journal is whole and in its place before anything else is changed, and that the moment when the new
//! tree counts is one rename.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::environment::Boot;

/// While this file is there, the tree is to be rolled back.
const ARMED: &str = ".code-commit-journal";
/// While this file is there, the tree is the new one, and something may be left to remove.
const COMMITTED: &str = ".code-commit-journal-done";
/// A journal that was still being written; it speaks of nothing that has happened.
const UNFINISHED: &str = ".code-commit-journal-new";
/// The version of the journal's form.
const VERSION: u32 = 1;

/// The journal could not be written, read or removed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} the journal `{}`: {source}", .path.display())]
pub struct JournalError {
    /// What was being done.
    pub action: &'static str,
    /// The file.
    pub path: PathBuf,
    /// The system's word.
    pub source: io::Error,
}

/// What a file's content comes down to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    size: u64,
    /// XXH3: it tells files apart, not adversaries.
    hash: u64,
}

impl Digest {
    /// The digest of these bytes.
    #[must_use]
    pub fn of(content: &[u8]) -> Self {
        Self {
            size: content.len() as u64,
            hash: xxh3_64(content),
        }
    }

    /// Whether the file has this content.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn is_of(self, mut file: File) -> io::Result<bool> {
        if file.metadata()?.len() != self.size {
            return Ok(false);
        }
        let mut hash = HashWriter(Xxh3::new());
        io::copy(&mut file, &mut hash)?;
        Ok(hash.0.digest() == self.hash)
    }
}

struct HashWriter(Xxh3);

impl io::Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What tells a file from another, and from itself after an edit, without reading it. The device is
/// left out: its number may change from boot to boot, and nothing here leaves its directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The inode.
    pub inode: u64,
    /// The size in bytes.
    pub size: u64,
    /// When it was last written to: seconds and nanoseconds.
    pub modified: (i64, i64),
}

impl Fingerprint {
    /// Whether this is the file.
    #[must_use]
    pub fn is_of(self, stat: &Stat) -> bool {
        self == Self {
            inode: number(stat.st_ino),
            size: number(stat.st_size),
            modified: (number(stat.st_mtime), number(stat.st_mtime_nsec)),
        }
    }
}

/// The fields of `stat` have other types on other systems.
fn number<T: TryInto<U>, U: Default>(value: T) -> U {
    value.try_into().unwrap_or_default()
}

/// One rename that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedUnit {
    /// Where it goes, relative to the root.
    pub target: String,
    /// Where it is made, in the same directory.
    pub staged: String,
    /// What happens there.
    pub change: Change,
}

/// What happens at a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// A file is made where none was.
    Create {
        /// Its content.
        new: Digest,
    },
    /// A directory is made where none was.
    CreateDirectory {
        /// Its files, relative to it, with their content.
        files: Vec<(String, Digest)>,
    },
    /// A file takes the place of another.
    Replace {
        /// The one that was there.
        old: Fingerprint,
        /// The new content.
        new: Digest,
    },
    /// A file is removed.
    Remove {
        /// The one that was there.
        old: Option<Fingerprint>,
    },
}

/// What the journal says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    version: u32,
    /// The boot that it was written in.
    pub boot: Option<String>,
    /// What is under way.
    pub units: Vec<RecordedUnit>,
}

impl Record {
    /// The record of these renames.
    #[must_use]
    pub fn new(boot: &Boot, units: Vec<RecordedUnit>) -> Self {
        Self {
            version: VERSION,
            boot: boot.id.clone(),
            units,
        }
    }
}

/// A journal on the disk.
#[derive(Debug)]
pub struct Journal<'d> {
    directory: &'d Path,
    name: &'static str,
}

/// A journal that was found.
pub enum Found<'d> {
    /// An application was under way: roll it back.
    Armed(Journal<'d>, Record),
    /// An application was done but for its leftovers.
    Committed(Journal<'d>, Record),
}

impl<'d> Journal<'d> {
    /// Writes the journal. From when this returns, whatever happens is undone unless
    /// [`commit`](Self::commit) has returned too.
    ///
    /// # Errors
    /// When it cannot be written; then it is not there.
    pub fn arm(directory: &'d Path, record: &Record) -> Result<Self, JournalError> {
        let journal = Self {
            directory,
            name: ARMED,
        };
        let path = journal.path();
        let written = write_new(&directory.join(UNFINISHED), record)
            .and_then(|()| fs::rename(directory.join(UNFINISHED), &path));
        match written {
            Ok(()) => Ok(journal),
            Err(source) => {
                // Should one be there all the same, it speaks of nothing that has happened.
                let _ = fs::remove_file(directory.join(UNFINISHED));
                let _ = fs::remove_file(&path);
                Err(JournalError {
                    action: "write",
                    path,
                    source,
                })
            }
        }
    }

    /// Looks for a journal that an earlier process has left behind.
    ///
    /// # Errors
    /// When there is one that cannot be read: then nothing is known about the tree.
    pub fn find(directory: &'d Path) -> Result<Option<Found<'d>>, JournalError> {
        let unfinished = directory.join(UNFINISHED);
        if let Err(source) = remove_if_there(&unfinished) {
            return Err(JournalError {
                action: "remove",
                path: unfinished,
                source,
            });
        }
        let read = |name| {
            let journal = Self { directory, name };
            let path = journal.path();
            let parsed = match fs::read(&path) {
                Ok(json) => serde_json::from_slice::<Record>(&json).map_err(io::Error::from),
                Err(error) if is_absent(&error) => return Ok(None),
                Err(error) => Err(error),
            };
            match parsed {
                Ok(record) if record.version == VERSION => Ok(Some((journal, record))),
                Ok(_) => Err(io::Error::other("it is of another version of this program")),
                Err(error) => Err(error),
            }
            .map_err(|source| JournalError {
                action: "read",
                path,
                source,
            })
        };
        if let Some((journal, record)) = read(ARMED)? {
            return Ok(Some(Found::Armed(journal, record)));
        }
        Ok(read(COMMITTED)?.map(|(journal, record)| Found::Committed(journal, record)))
    }

    /// Makes the new tree the one that counts.
    ///
    /// # Errors
    /// When the rename fails; the old tree then counts.
    pub fn commit(&self) -> Result<Journal<'d>, JournalError> {
        let committed = Self {
            directory: self.directory,
            name: COMMITTED,
        };
        let failed = |source| JournalError {
            action: "commit",
            path: self.path(),
            source,
        };
        fs::rename(self.path(), committed.path()).map_err(failed)?;
        Ok(committed)
    }

    /// Removes the journal, once there is nothing left to do.
    ///
    /// # Errors
    /// When it cannot be removed; the next run then looks at it once more.
    pub fn remove(&self) -> Result<(), JournalError> {
        fs::remove_file(self.path()).map_err(|source| JournalError {
            action: "remove",
            path: self.path(),
            source,
        })
    }

    fn path(&self) -> PathBuf {
        self.directory.join(self.name)
    }
}

/// Writes the record to a file that must not exist.
fn write_new(path: &Path, record: &Record) -> io::Result<()> {
    let mut out = io::BufWriter::new(File::create_new(path)?);
    serde_json::to_writer(&mut out, record)?;
    out.flush()
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
        Ok(_) => fs::remove_file(path),
        Err(error) if is_absent(&error) => Ok(()),
        Err(error) => Err(error),
    }
}
