//! Resolves paths that may be links.
//!
//! Reads file metadata, but no contents.

use std::path::{Path, PathBuf};

use crate::sys::identity::{FileIdentity, identity};

/// Target of a key file, and the identity of its directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeyTarget {
    target: PathBuf,
    directory: FileIdentity,
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

/// Returns the paths that exist, with links resolved.
pub(super) fn present(paths: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    // For a missing path, one `lstat` is cheaper than resolving each directory above it.
    let there = paths.iter().filter(|path| path.symlink_metadata().is_ok());
    there.filter_map(|path| path.canonicalize().ok())
}
