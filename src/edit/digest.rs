//! Digests and fingerprints of files: a hash of the content, and the identity and times that the system reports.
//!
//! Reads only the given files. Guarantees that no file is held in memory as a whole.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::time::SystemTime;

use chrono::{DateTime, Utc};
use rustix::fs::Stat;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::attributes::Rights;
use crate::sys::files::{MIB, check_size};

/// A point in time: seconds and nanoseconds since 1970.
pub type Stamp = (i64, i64);
/// Maximum size of a file that is read, in bytes: a sparse file may appear to hold any amount.
const LARGEST: u64 = 1024 * MIB;

/// The size and hash of a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    size: u64,
    /// The XXH3 hash, which distinguishes files but does not resist attackers.
    hash: u64,
}

impl Digest {
    /// The digest of these bytes.
    pub fn of(content: &[u8]) -> Self {
        Self {
            size: content.len() as u64,
            hash: xxh3_64(content),
        }
    }

    /// The digest of a file's content from the current position on.
    ///
    /// # Errors
    /// Fails if the file exceeds the maximum size or cannot be read.
    pub fn of_file(file: File) -> io::Result<Self> {
        let mut hash = Xxh3::new();
        check_size(&file, LARGEST)?;
        let size = io::copy(&mut file.take(LARGEST), &mut hash)?;
        Ok(Self {
            size,
            hash: hash.digest(),
        })
    }

    /// Returns whether the file has this content.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    pub fn is_of(self, file: File) -> io::Result<bool> {
        Ok(file.metadata()?.len() == self.size && Self::of_file(file)? == self)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.hash)
    }
}

/// Identifies a file and its state without reading it. The device is left out: its number may change from boot to boot,
/// and files are only compared within one directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The inode number.
    pub inode: u64,
    /// The size in bytes.
    pub size: u64,
    /// Time of the last modification: seconds and nanoseconds.
    pub modified: Stamp,
}

impl Fingerprint {
    /// The fingerprint of the file with this stat.
    pub fn of(stat: &Stat) -> Self {
        Self {
            inode: number(stat.st_ino),
            size: number(stat.st_size),
            modified: modified(stat),
        }
    }

    /// Returns whether the stat is that of the same file in the same state.
    pub fn is_of(self, stat: &Stat) -> bool {
        self == Self::of(stat)
    }
}

/// The existing file that an edit replaces or removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Present {
    /// The identity and state of the file.
    pub fingerprint: Fingerprint,
    /// The permissions and owner.
    pub rights: Rights,
}

impl Present {
    /// The file with this stat.
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            fingerprint: Fingerprint::of(stat),
            rights: Rights::of(stat),
        }
    }

    /// Returns an error unless the stat is that of the same file.
    pub(super) fn check(self, stat: &Stat) -> io::Result<()> {
        let is_same = self.fingerprint.is_of(stat);
        is_same.then_some(()).ok_or_else(changed_meanwhile)
    }
}

/// The time of the last modification of a file's content.
pub fn modified(stat: &Stat) -> Stamp {
    (number(stat.st_mtime), number(stat.st_mtime_nsec))
}

/// The time of the last change of a file's content, name or metadata (ctime), which programs cannot set.
pub fn changed(stat: &Stat) -> Stamp {
    (number(stat.st_ctime), number(stat.st_ctime_nsec))
}

/// The error for a file that is no longer the verified one.
pub fn changed_meanwhile() -> io::Error {
    io::Error::other("it was changed by somebody else in the meantime")
}

/// Converts a time to the format of file metadata.
pub fn stamp(time: SystemTime) -> Stamp {
    let time = DateTime::<Utc>::from(time);
    (time.timestamp(), i64::from(time.timestamp_subsec_nanos()))
}

/// Converts a field of `stat`, whose type depends on the platform.
fn number<T: TryInto<U>, U: Default>(value: T) -> U {
    value.try_into().unwrap_or_default()
}
