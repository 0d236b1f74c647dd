//! The identity of a file, independent of its path, and its state, without its content: used to detect that it was
//! moved, replaced or changed.
//!
//! Reads only the file's metadata.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::time::SystemTime;

use chrono::{DateTime, Utc};
use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

/// Device and inode of a file.
pub(crate) type FileId = (u64, u64);

/// Device, inode and creation time of a file. The time is included because inode numbers are reused. `None` if the
/// file does not exist.
pub(crate) type FileIdentity = Option<(FileId, Option<SystemTime>)>;

/// A point in time: seconds and nanoseconds since 1970.
pub(crate) type Stamp = (i64, i64);

/// The identity and state of a file, determined without reading it. The device is left out: its number may change from
/// boot to boot, and files are only compared within one directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The inode number.
    pub inode: u64,
    /// The size in bytes.
    pub size: u64,
    /// Time of the last modification: seconds and nanoseconds.
    pub modified: Stamp,
}

impl From<&Metadata> for Fingerprint {
    fn from(found: &Metadata) -> Self {
        Self {
            inode: found.ino(),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
        }
    }
}

impl From<&Stat> for Fingerprint {
    fn from(stat: &Stat) -> Self {
        Self {
            inode: number(stat.st_ino),
            size: number(stat.st_size),
            modified: (number(stat.st_mtime), number(stat.st_mtime_nsec)),
        }
    }
}

/// Returns device and inode of a file.
pub(crate) fn file_id(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

/// Returns the identity of a file; `None` if it does not exist. The creation time is left out for directories on file
/// systems without a device, such as overlays, which renew it at the first write into the directory.
pub(crate) fn identity(metadata: io::Result<Metadata>) -> FileIdentity {
    let metadata = metadata.ok()?;
    let created = metadata.created().ok();
    let may_be_renewed = metadata.is_dir() && is_without_device(&metadata);
    Some((file_id(&metadata), created.filter(|_| !may_be_renewed)))
}

#[cfg(target_os = "linux")]
fn is_without_device(metadata: &Metadata) -> bool {
    rustix::fs::major(metadata.dev()) == 0
}

#[cfg(not(target_os = "linux"))]
fn is_without_device(_metadata: &Metadata) -> bool {
    false
}

/// Returns the time of the last change to a file's content, name or metadata (ctime), which programs cannot set.
pub(crate) fn changed(stat: &Stat) -> Stamp {
    (number(stat.st_ctime), number(stat.st_ctime_nsec))
}

/// Converts a time to the format of file metadata.
pub(crate) fn stamp(time: impl Into<SystemTime>) -> Stamp {
    let time = DateTime::<Utc>::from(time.into());
    (time.timestamp(), i64::from(time.timestamp_subsec_nanos()))
}

/// Converts a field of `stat`, whose type depends on the platform.
fn number<T: TryInto<U>, U: Default>(value: T) -> U {
    value.try_into().unwrap_or_default()
}
