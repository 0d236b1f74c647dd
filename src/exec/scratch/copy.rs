//! Copies a tree with its modes, links and times.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, FileTimes};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::Path;

use rustix::fs::{AtFlags, readlinkat, renameat, symlinkat, unlinkat};

use crate::sys::files::{self, Links};
use crate::sys::interrupt::Interrupt;

/// Copies a directory to a new one; of the directories `empty` in its root, only the names. Pipes, sockets and devices
/// are left out. Returns whether the files share their blocks with the original ones.
pub(super) fn copy_tree(
    from: &Path,
    to: &Path,
    empty: &[&str],
    interrupt: Option<&Interrupt>,
) -> io::Result<bool> {
    let mut copier = Copier {
        interrupt,
        is_shared: true,
    };
    copier.directory(from, to, empty)?;
    Ok(copier.is_shared)
}

/// Puts a copy of a file or link from one open directory into another, in one step, in place of what is there.
pub(super) fn bring_entry(from: &File, to: &File, name: &OsStr) -> io::Result<()> {
    let mut staged = OsString::from(".scratch.");
    staged.push(name);
    let _ = unlinkat(to, &staged, AtFlags::empty());
    match files::open_in(from, name) {
        Ok(mut original) => {
            let mut copy = files::create_new_in(to, &staged, 0o600)?;
            if share(&copy, &original).is_err() {
                io::copy(&mut original, &mut copy)?;
            }
            finish(&original, &copy)?;
        }
        Err(error) if files::is_no_file(&error) => {
            let Ok(target) = readlinkat(from, name, Vec::new()) else {
                return Ok(());
            };
            symlinkat(target, to, &staged)?;
        }
        Err(error) => return Err(error),
    }
    Ok(renameat(to, &staged, to, name)?)
}

struct Copier<'c> {
    interrupt: Option<&'c Interrupt>,
    /// True as long as the file system shares blocks.
    is_shared: bool,
}

impl Copier<'_> {
    fn directory(&mut self, from: &Path, to: &Path, empty: &[&str]) -> io::Result<()> {
        if self
            .interrupt
            .is_some_and(|interrupt| interrupt.check().is_err())
        {
            return Err(io::ErrorKind::Interrupted.into());
        }
        DirBuilder::new().mode(0o700).create(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            let (from, to) = (entry.path(), to.join(&name));
            if kind.is_symlink() {
                symlink(fs::read_link(from)?, to)?;
            } else if kind.is_dir() && empty.iter().any(|empty| name == *empty) {
                fs::create_dir(to)?;
            } else if kind.is_dir() {
                self.directory(&from, &to, &[])?;
            } else if kind.is_file() {
                self.file(&from, &to)?;
            }
        }
        finish(&files::open_directory(from)?, &files::open_directory(to)?)
    }

    fn file(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let mut original = files::open(from, Links::Refused)?;
        let mut copy = files::create_new(to, 0o600)?;
        self.is_shared = self.is_shared && share(&copy, &original).is_ok();
        if !self.is_shared {
            io::copy(&mut original, &mut copy)?;
        }
        finish(&original, &copy)
    }
}

/// Gives a copy the mode and the times of its original.
fn finish(original: &File, copy: &File) -> io::Result<()> {
    let metadata = original.metadata()?;
    copy.set_permissions(metadata.permissions())?;
    let times = FileTimes::new().set_modified(metadata.modified()?);
    copy.set_times(times.set_accessed(metadata.accessed()?))
}

#[cfg(target_os = "linux")]
fn share(copy: &File, original: &File) -> io::Result<()> {
    Ok(rustix::fs::ioctl_ficlone(copy, original)?)
}

#[cfg(not(target_os = "linux"))]
fn share(_copy: &File, _original: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
