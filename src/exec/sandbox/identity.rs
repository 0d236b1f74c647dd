//! What a file is, whatever its path: how it is seen that something was moved or replaced.
//!
//! Reads what the system says of files, and no content.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Which file something is: device, inode, and when it was made, since numbers of inodes are given out
/// again.
pub(super) type FileIdentity = Option<(u64, u64, Option<SystemTime>)>;

/// Where a key file leads, and the directory there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeyTarget {
    target: PathBuf,
    directory: FileIdentity,
}

pub(super) fn identity(metadata: io::Result<Metadata>) -> FileIdentity {
    let metadata = metadata.ok()?;
    Some((metadata.dev(), metadata.ino(), metadata.created().ok()))
}

pub(super) fn key_target(key_file: impl AsRef<Path>) -> KeyTarget {
    let target = resolved(key_file.as_ref());
    let directory = target.parent().unwrap_or(&target);
    KeyTarget {
        directory: identity(directory.metadata()),
        target,
    }
}

pub(super) fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}
