//! Directory handles that cannot lead out of the root, even while the tree is being changed.
//!
//! Opens and creates directories below a root and files in them, and nothing else. Guarantees that no symbolic link is
//! followed on the way to a handle, and, if the kernel has `openat2`, that no mount point is crossed either; without
//! it, each name is opened with `O_NOFOLLOW`. An operation through a handle stays in that directory, even if its path
//! has changed since.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, RawMode, open};
use rustix::io::Errno;

use super::disk::{mkdirat, open_in, openat, statat};
use crate::sys::files::{IfThere as _, is_no_file};

const DIRECTORY: OFlags = OFlags::DIRECTORY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::RDONLY);

/// Splits a path into its directory and name.
pub fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Returns the directories on the way to a path, outermost first; neither the root nor the path itself.
pub fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(slash, _)| &path[..slash])
}

/// The root directory, which no handle leads out of; a clone shares the handle.
#[derive(Debug, Clone)]
pub struct Root(Arc<OwnedFd>);

impl Root {
    /// Opens the root itself; its own path is trusted.
    #[expect(clippy::disallowed_methods, reason = "it opens a directory")]
    pub fn open(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
        Ok(open(path, flags, Mode::empty())?.into())
    }

    /// Opens the directory `path`, plain names joined by `/`; "" is the root.
    pub fn directory(&self, path: &str) -> Result<OwnedFd, Errno> {
        let path = if path.is_empty() { "." } else { path };
        match self.open_beneath(path) {
            // Seccomp filters of some container runtimes reject the unknown call with these errors.
            Err(Errno::NOSYS | Errno::PERM) => self.walk(path),
            other => other,
        }
    }

    /// Like [`directory`](Self::directory), but creates missing directories.
    pub fn ensure_directory(&self, path: &str) -> Result<OwnedFd, Errno> {
        self.ensure(path, Self::directory, 0o777)
    }

    /// Opens one of the program's own directories, such as a run's folder, or one that is only read: mount points on
    /// the way are allowed, links are not.
    pub fn directory_to_read(&self, path: &str) -> Result<OwnedFd, Errno> {
        self.walk(path)
    }

    /// Like [`directory_to_read`](Self::directory_to_read), but creates missing directories, private to this user.
    pub fn ensure_directory_of_ours(&self, path: &str) -> Result<OwnedFd, Errno> {
        self.ensure(path, Self::directory_to_read, 0o700)
    }

    /// Opens a directory by `open`, creating missing ones on the way with this mode.
    fn ensure(
        &self,
        path: &str,
        open: fn(&Self, &str) -> Result<OwnedFd, Errno>,
        mode: RawMode,
    ) -> Result<OwnedFd, Errno> {
        match open(self, path) {
            Err(Errno::NOENT) => {}
            other => return other,
        }
        let (above, name) = split(path);
        let parent = self.ensure(above, open, mode)?;
        match mkdirat(&parent, name, Mode::from_raw_mode(mode)) {
            // Another process may have created it first; all that matters is that it can be opened.
            Ok(()) | Err(Errno::EXIST) => open(self, path),
            Err(errno) => Err(errno),
        }
    }

    #[cfg(target_os = "linux")]
    fn open_beneath(&self, path: &str) -> Result<OwnedFd, Errno> {
        use super::disk::openat2;
        use rustix::fs::ResolveFlags;
        let resolve = ResolveFlags::BENEATH
            | ResolveFlags::NO_SYMLINKS
            | ResolveFlags::NO_MAGICLINKS
            | ResolveFlags::NO_XDEV;
        loop {
            match openat2(&self.0, path, DIRECTORY, resolve) {
                // A directory on the way is being renamed, so the kernel could not check the path.
                Err(Errno::AGAIN | Errno::INTR) => {}
                other => return other,
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn open_beneath(&self, _path: &str) -> Result<OwnedFd, Errno> {
        Err(Errno::NOSYS)
    }

    /// Opens one name at a time, following no link.
    fn walk(&self, path: &str) -> Result<OwnedFd, Errno> {
        let mut handle = self.0.try_clone().map_err(|_| Errno::MFILE)?;
        for name in path.split('/').filter(|name| !matches!(*name, "" | ".")) {
            handle = openat(&handle, name, DIRECTORY)?;
        }
        Ok(handle)
    }
}

impl<D: Into<OwnedFd>> From<D> for Root {
    /// Uses a directory that is already open as the root.
    fn from(directory: D) -> Self {
        Self(Arc::new(directory.into()))
    }
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The files below a root. The most recently opened directory stays open, as does the error from opening it: with
/// sorted paths, each is opened only once.
pub struct Beneath {
    root: Root,
    open: Option<(String, Result<OwnedFd, Errno>)>,
    by: fn(&Root, &str) -> Result<OwnedFd, Errno>,
}

impl Beneath {
    /// Opens a root, whose own path is trusted.
    pub fn open(root: &Path) -> io::Result<Self> {
        Ok(Self::of(Root::open(root)?))
    }

    /// Looks below this root.
    pub fn of(root: Root) -> Self {
        let (open, by) = (None, Root::directory);
        Self { root, open, by }
    }

    /// Looks below this root in directories that are only read: see [`Root::directory_to_read`].
    pub fn to_read(root: Root) -> Self {
        let (open, by) = (None, Root::directory_to_read);
        Self { root, open, by }
    }

    /// Opens the directory `path`, or returns the cached handle.
    pub fn at(&mut self, path: &str) -> Result<BorrowedFd<'_>, Errno> {
        let open = match self.open.take() {
            Some(open) if open.0 == path => self.open.insert(open),
            _ => {
                let opened = (self.by)(&self.root, path);
                self.open.insert((path.to_owned(), opened))
            }
        };
        open.1.as_ref().map(AsFd::as_fd).map_err(|errno| *errno)
    }

    /// Opens the regular file at `path` for reading; `None` if it is missing, with or without its directory, or something
    /// else.
    ///
    /// # Errors
    /// Fails if it cannot be opened, as through a link.
    pub fn file(&mut self, path: &str) -> io::Result<Option<File>> {
        let (parent, name) = split(path);
        match self.at(parent) {
            Err(Errno::NOENT) => Ok(None),
            directory => open_regular(directory?, name),
        }
    }

    /// Examines `path`; a file is opened for reading.
    pub fn entry(&mut self, path: &str) -> io::Result<PathEntry> {
        let (parent, name) = split(path);
        let directory = match self.at(parent) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => return Ok(PathEntry::Nothing),
            Err(Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => return Ok(PathEntry::SomethingElse),
            Err(errno) => return Err(errno.into()),
        };
        Ok(match open_regular(directory, name)? {
            Some(file) => PathEntry::File(file),
            None if if_there(statat(directory, name))?.is_none() => PathEntry::Nothing,
            None => PathEntry::SomethingElse,
        })
    }
}

/// The entry at a path.
pub enum PathEntry {
    Nothing,
    File(File),
    /// A directory, a link or the like; or nothing, because a parent is not a directory.
    SomethingElse,
}

/// Turns a missing entry into `None`.
pub fn if_there<T>(looked: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match looked {
        Err(Errno::NOENT) => Ok(None),
        there => there.map(Some),
    }
}

/// Opens a regular file for reading; `None` if it is missing or something else.
pub fn open_regular(directory: BorrowedFd<'_>, name: &str) -> io::Result<Option<File>> {
    match open_in(directory, name).if_there() {
        Err(error) if is_no_file(&error) => Ok(None),
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_way_leads_out_of_the_root_or_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir(dir.path().join("outside")).unwrap();
        symlink("../outside", root.join("out")).unwrap();
        symlink("a", root.join("in")).unwrap();
        fs::write(root.join("file"), "").unwrap();
        let handle = Root::open(&root).unwrap();
        for open in [Root::directory, Root::directory_to_read] {
            assert!(open(&handle, "a/b").is_ok());
            for barred in ["out", "out/x", "in/b", "file", "missing"] {
                assert!(open(&handle, barred).is_err(), "{barred}");
            }
        }
        assert!(handle.directory("..").is_err());
    }

    #[test]
    fn ancestors_are_the_directories_on_the_way() {
        for (path, expected) in [("", &[][..]), ("a", &[]), ("a/b/c", &["a", "a/b"])] {
            assert_eq!(ancestors(path).collect::<Vec<_>>(), expected, "{path}");
        }
    }

    #[test]
    fn missing_directories_are_made() {
        let dir = tempfile::tempdir().unwrap();
        let handle = Root::open(dir.path()).unwrap();
        handle.ensure_directory("a/b").unwrap();
        handle.ensure_directory("a/c").unwrap();
        assert!(dir.path().join("a/b").is_dir() && dir.path().join("a/c").is_dir());
    }
}
