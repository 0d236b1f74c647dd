//! The identity of a file, independent of its path, used to detect that it was moved or replaced.
//!
//! Reads only the file's metadata.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::time::SystemTime;

/// Device, inode and creation time of a file. The time is included because inode numbers are reused. `None` if the
/// file does not exist.
pub(crate) type FileIdentity = Option<(u64, u64, Option<SystemTime>)>;

/// Returns the identity of a file; `None` if it does not exist.
pub(crate) fn identity(metadata: io::Result<Metadata>) -> FileIdentity {
    let metadata = metadata.ok()?;
    Some((metadata.dev(), metadata.ino(), metadata.created().ok()))
}
