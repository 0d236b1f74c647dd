//! The project's files as they are when several attempts at a change begin: what somebody does to them meanwhile reaches
//! none of the attempts.
//!
//! Copies the files that git does not ignore into a scratch tree, and lists them again at the end.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use super::builds;
use super::context::Context;
use super::passed_trees::files_of;
use crate::edit::{Stamp, stamp};
use crate::exec::build_script::BUILD_SCRIPT;
use crate::exec::scratch::{Scratch, ScratchError};
use crate::sys::error::Error;
use crate::sys::files::PathError;

/// A tree that attempts begin from.
#[derive(Debug)]
pub struct Pin {
    tree: Scratch,
    /// The files that it has.
    files: FilesThen,
}

/// The project's files that git does not ignore, at a time.
#[derive(Debug)]
pub struct FilesThen {
    root: PathBuf,
    /// Their paths, relative to the root.
    paths: BTreeSet<String>,
    /// Time before they were listed.
    began: Stamp,
}

impl Pin {
    /// Makes the tree.
    ///
    /// # Errors
    /// When there are too many files, one cannot be copied, or a signal arrives.
    pub fn new(context: &Context<'_>) -> Result<Self, Error> {
        let root = context.project.root().to_path_buf();
        let began = stamp(context.clock.now().into());
        let tree = builds::fork(context)?;
        let too_many = || io::Error::other("there are too many, or one is not readable");
        let listed = files_of(&root).ok_or_else(too_many);
        let listed = listed.map_err(PathError::of("list the files of", &root))?;
        let mut paths = BTreeSet::new();
        for path in listed.into_iter().chain([BUILD_SCRIPT.to_owned()]) {
            context.interrupt.check()?;
            if tree.own(&path).map_err(PathError::of("copy", &path))? {
                paths.insert(path);
            }
        }
        let files = FilesThen { root, paths, began };
        Ok(Self { tree, files })
    }

    /// Makes a tree that begins as this one is.
    ///
    /// # Errors
    /// When neither an overlay nor a copy can be made.
    pub fn fork(&self) -> Result<Scratch, ScratchError> {
        self.tree.fork()
    }

    /// Returns the files of the project that somebody has changed or removed since, and those that are new.
    pub fn changed(&self) -> (Vec<String>, Vec<String>) {
        self.files.changed()
    }
}

impl FilesThen {
    /// Lists them; `None` if there are too many, or one cannot be read.
    pub fn now(context: &Context<'_>) -> Option<Self> {
        let root = context.project.root().to_path_buf();
        let began = stamp(context.clock.now().into());
        let paths = files_of(&root)?;
        Some(Self { root, paths, began })
    }

    /// Returns the files of the project that somebody has changed or removed since, and those that are new.
    pub fn changed(&self) -> (Vec<String>, Vec<String>) {
        let now = files_of(&self.root).unwrap_or_default();
        let is_changed = |path: &&String| {
            let found = self.root.join(path).symlink_metadata();
            found.map_or(true, |found| {
                (found.ctime(), found.ctime_nsec()) > self.began
            })
        };
        let changed = now.union(&self.paths).filter(is_changed).cloned();
        changed.partition(|path| self.paths.contains(path))
    }
}
