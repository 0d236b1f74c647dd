//! Digests of files: a hash of the content.
//!
//! Reads only the given files. Guarantees that no file is held in memory as a whole.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::attributes::Rights;
use crate::sys::files::{MIB, check_size};
use crate::sys::identity::Fingerprint;

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
    /// Returns the digest of these bytes.
    pub fn of(content: &[u8]) -> Self {
        Self {
            size: content.len() as u64,
            hash: xxh3_64(content),
        }
    }

    /// Returns the digest of a file's content from the current position on.
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

/// The existing file that an edit replaces or removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Present {
    /// The identity and state of the file.
    pub fingerprint: Fingerprint,
    /// The permissions and owner.
    pub rights: Rights,
}

impl Present {
    /// Returns the identity, permissions and owner in this stat.
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            fingerprint: stat.into(),
            rights: Rights::of(stat),
        }
    }

    /// Returns an error unless the stat is that of the same file.
    pub(super) fn check(self, stat: &Stat) -> io::Result<()> {
        let is_same = self.fingerprint == stat.into();
        is_same.then_some(()).ok_or_else(changed_meanwhile)
    }
}

/// Returns the error for a file that was changed or replaced since it was verified.
pub fn changed_meanwhile() -> io::Error {
    io::Error::other("it was changed by somebody else in the meantime")
}
