//! A copy of the project's files from before several attempts at a change, so that changes made by others in the
//! meantime affect no build that counts.
//!
//! Copies the files that git does not ignore into one unnamed file, since creating a tree of copies takes longer than
//! many builds. If others change files during a build, it is repeated with the copies of those files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, RawMode, statat};
use tempfile::tempfile_in;

use super::builds;
use super::context::Context;
use super::passed_trees::files_of;
use crate::edit::beneath::{Beneath, PathEntry, Root};
use crate::exec::build_script::BUILD_SCRIPT;
use crate::exec::scratch::Scratch;
use crate::sys::error::Error;
use crate::sys::files::{self, PathError};
use crate::sys::identity::{Stamp, changed, stamp};

/// Number of bytes written at a time.
const BUFFER: usize = 1 << 20;

/// The files that attempts begin from.
#[derive(Debug)]
pub struct Pin {
    /// The project's files.
    files: FilesThen,
    /// The contents of the files, one after the other.
    content: File,
    copies: BTreeMap<String, FileCopy>,
    /// The copied files that others are known to have changed since they were copied.
    changed: Mutex<BTreeSet<String>>,
}

/// The location of a file's copy.
#[derive(Debug)]
struct FileCopy {
    offset: u64,
    length: u64,
    mode: RawMode,
}

/// A snapshot of the list of project files that git does not ignore.
#[derive(Debug)]
pub struct FilesThen {
    root: PathBuf,
    directory: File,
    /// The paths of the files, relative to the root.
    paths: BTreeSet<String>,
    /// Time before they were listed.
    began: Stamp,
}

impl FileCopy {
    /// Appends a file to the content; `None` if it is not readable, or not a regular file.
    fn new(
        entry: io::Result<PathEntry>,
        (content, offset): (&mut impl Write, u64),
    ) -> io::Result<Option<Self>> {
        let file = match entry {
            Ok(PathEntry::File(file)) => file,
            Err(error) if error.kind() != io::ErrorKind::PermissionDenied => return Err(error),
            _ => return Ok(None),
        };
        let found = file.metadata()?;
        // For small files, the kernel's own copy is slower.
        let plain: &mut dyn Read = &mut file.take(found.len());
        let length = io::copy(plain, content)?;
        Ok(Some(Self {
            offset,
            length,
            mode: found.mode() & 0o7777,
        }))
    }
}

impl Pin {
    /// Copies the files.
    ///
    /// # Errors
    /// Fails if there are too many files, one cannot be copied, or a signal arrives.
    pub fn new(context: &Context<'_>) -> Result<Self, Error> {
        let root = context.project.root();
        let files = FilesThen::now(context)
            .ok_or_else(|| io::Error::other("there are too many, or one is not readable"))
            .map_err(PathError::of("list the files of", root))?;
        let handle = Root::open(root).map_err(PathError::of("read", root))?;
        let none = Err(io::Error::other("there is no directory for copies"));
        let bases = builds::bases(context).into_iter();
        let file = bases.fold(none, |made, base| made.or_else(|_| tempfile_in(base)));
        let file = file.map_err(PathError::of("copy", root))?;
        let mut content = BufWriter::with_capacity(BUFFER, file);
        let mut beneath = Beneath::to_read(handle);
        let (mut copies, mut end) = (BTreeMap::new(), 0);
        let script = BUILD_SCRIPT.to_owned();
        for path in files.paths.iter().chain([&script]) {
            context.interrupt.check()?;
            let copy = FileCopy::new(beneath.entry(path), (&mut content, end));
            if let Some(copy) = copy.map_err(PathError::of("copy", path))? {
                end += copy.length;
                copies.insert(path.clone(), copy);
            }
        }
        let content = content.into_inner().map_err(io::IntoInnerError::into_error);
        Ok(Self {
            content: content.map_err(PathError::of("copy", root))?,
            copies,
            changed: Mutex::default(),
            files,
        })
    }

    /// Builds in a tree with the copied files, and again in a new one if others have changed files in the meantime.
    ///
    /// # Errors
    /// Fails if no tree can be made, or `build` fails.
    pub fn build<T>(
        &self,
        context: &Context<'_>,
        mut build: impl FnMut(&Scratch) -> Result<T, Error>,
    ) -> Result<T, Error> {
        loop {
            let tree = builds::fork(context)?;
            let laid = self.known().clone();
            for (path, copy) in self.copies.iter().filter(|(path, _)| laid.contains(*path)) {
                let laid = self.lay(&tree, path, copy);
                laid.map_err(PathError::of("write", path))?;
            }
            let built = build(&tree)?;
            let copied = self.copies.keys();
            let changed = copied.filter(|path| self.files.is_changed(path)).cloned();
            let mut known = self.known();
            *known = changed.collect();
            if *known == laid {
                return Ok(built);
            }
        }
    }

    /// Writes the copy of a file to a tree.
    fn lay(&self, tree: &Scratch, path: &str, copy: &FileCopy) -> io::Result<()> {
        let length = usize::try_from(copy.length).map_err(io::Error::other)?;
        let mut content = vec![0; length];
        self.content.read_exact_at(&mut content, copy.offset)?;
        tree.write(path, &content, Some(copy.mode))
    }

    /// Returns the files that others have changed or removed during the builds, and the new ones.
    pub fn changed(&self) -> (Vec<String>, Vec<String>) {
        (self.known().iter().cloned().collect(), self.files.made())
    }

    fn known(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FilesThen {
    /// Lists the files; `None` if there are too many, or one cannot be read.
    pub fn now(context: &Context<'_>) -> Option<Self> {
        let root = context.project.root().to_path_buf();
        let began = stamp(context.clock.now());
        let paths = files_of(&root)?;
        let directory = files::open_directory(&root).ok()?;
        Some(Self {
            root,
            directory,
            paths,
            began,
        })
    }

    /// Returns the project's files that others have changed or removed since the snapshot, and the new ones.
    pub fn changed(&self) -> (Vec<String>, Vec<String>) {
        let paths = self.paths.iter();
        let changed = paths.filter(|path| self.is_changed(path)).cloned();
        (changed.collect(), self.made())
    }

    /// Returns the project's files that were created since the snapshot.
    fn made(&self) -> Vec<String> {
        let now = files_of(&self.root).unwrap_or_default();
        let new = now.difference(&self.paths);
        new.filter(|path| self.is_changed(path)).cloned().collect()
    }

    /// Returns whether others have changed, created or removed a file since the snapshot.
    fn is_changed(&self, path: &str) -> bool {
        let found = statat(&self.directory, path, AtFlags::SYMLINK_NOFOLLOW);
        found.map_or(true, |found| changed(&found) > self.began)
    }
}
