//! The identity of a file, whatever its path, used to detect that one was moved or replaced.
//!
//! Looks at what the system says of a file, and at nothing else.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::time::SystemTime;

/// Which file something is: device, inode, and when it was made, since numbers of inodes are given out
/// again.
pub(crate) type FileIdentity = Option<(u64, u64, Option<SystemTime>)>;

/// Which file this is; `None` where there is none.
pub(crate) fn identity(metadata: io::Result<Metadata>) -> FileIdentity {
    let metadata = metadata.ok()?;
    Some((metadata.dev(), metadata.ino(), metadata.created().ok()))
}
