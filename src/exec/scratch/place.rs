//! The directory that holds a tree's files.
//!
//! Guarantees that it is private to its user and is removed: on drop, or by the next program that makes one in the same
//! base after this one was killed.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, XattrFlags, getxattr, setxattr};

use super::mounting::uncover;
use crate::exec::descriptors::path_of;
use crate::sys::file_lock::lock;
use crate::sys::files::{is_same, open_directory_in};

/// Beginning of the names of places.
const PREFIX: &str = "code-commit-scratch.";

/// Name of the directory that receives an overlay's changes.
pub(super) const UPPER: &str = "upper";
/// Name of the root of a copy.
pub(super) const TREE: &str = "tree";
/// Beginning of the names of places that are kept.
const KEPT: &str = "code-commit-kept";

/// A locked directory. The lock lasts as long as its process.
#[derive(Debug)]
pub(super) struct Place {
    directory: File,
    path: PathBuf,
    tree: PathBuf,
}

impl Place {
    /// Creates a place in a base, and removes those that killed programs have left there.
    pub fn new(base: &Path) -> io::Result<Self> {
        sweep(base)?;
        loop {
            let path = tempfile::Builder::new()
                .prefix(PREFIX)
                .tempdir_in(base)?
                .keep();
            let directory = open_directory_in(CWD, &path)?;
            // Another program may take it for an abandoned one until it is locked.
            if lock(&directory).is_ok() && is_same(&path, &path_of(&directory)) {
                return Ok(Self {
                    directory,
                    tree: path.join(TREE),
                    path,
                });
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the directory that receives an overlay's changes, as a path through the descriptor, since a tree hides
    /// its place.
    pub fn upper(&self) -> PathBuf {
        self.private().join(UPPER)
    }

    /// Returns the path of the place itself, which works even if a tree hides it.
    pub fn private(&self) -> PathBuf {
        path_of(&self.directory)
    }

    /// Returns the root of a copy.
    pub fn tree(&self) -> &Path {
        &self.tree
    }

    /// Renames the place so that it is not removed. Returns its new path.
    pub fn keep(&self) -> io::Result<PathBuf> {
        uncover(&self.path);
        let end = self.path.extension().unwrap_or_default();
        let kept = self.path.with_file_name(KEPT).with_extension(end);
        fs::rename(&self.path, &kept)?;
        Ok(kept)
    }

    /// Creates the directories of an overlay.
    pub fn prepare_overlay(&self) -> io::Result<()> {
        let upper = self.path.join(UPPER);
        fs::create_dir(&upper)?;
        fs::create_dir(self.path.join("work"))?;
        // An overlay can be mounted without this, but its directories cannot be replaced then.
        let flags = XattrFlags::empty();
        Ok(setxattr(&upper, "user.code-commit", b"1", flags)?)
    }
}

/// Returns whether a directory in an upper layer hides those in the layers below.
pub(super) fn is_opaque(directory: &Path) -> bool {
    let mut value = [0];
    getxattr(directory, "user.overlay.opaque", &mut value).is_ok() && value == *b"y"
}

impl Drop for Place {
    fn drop(&mut self) {
        uncover(&self.path);
        // Anything that cannot be removed is left to the next program.
        let _ = remove(&self.path);
    }
}

/// Removes the places in a base that no program uses.
fn sweep(base: &Path) -> io::Result<()> {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(base)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        if name.starts_with(PREFIX.as_bytes())
            && let Ok(directory) = open_directory_in(CWD, &path)
            && directory.metadata()?.uid() == own
            && lock(&directory).is_ok()
        {
            let _ = remove(&path);
        }
    }
    Ok(())
}

/// Removes a directory, even if directories in it may not be read.
fn remove(path: &Path) -> io::Result<()> {
    fs::remove_dir_all(path).or_else(|_| {
        let _ = open_up(path);
        fs::remove_dir_all(path)
    })
}

fn open_up(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}
