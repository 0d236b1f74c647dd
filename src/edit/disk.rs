//! The system calls with which this module's siblings open and change files, each a point where a test can simulate a
//! disk failure or a kill.
//!
//! Adds nothing to the calls. Reads from open files, and calls whose failure has no consequence, do not go through this
//! module.

use std::fs::{self, File, FileTimes};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

#[cfg(target_os = "linux")]
use rustix::fs::ResolveFlags;
use rustix::fs::{AtFlags, Mode, OFlags, RawMode, RenameFlags, Stat};
use rustix::io::Errno;

use crate::sys::files::{self, Links};

/// Does nothing; tests replace it to inject faults.
#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "in tests it fails")]
fn point() -> Result<(), Errno> {
    Ok(())
}

#[cfg(test)]
use tests::point;

#[expect(clippy::disallowed_methods, reason = "`beneath` says how to open")]
pub fn openat(dir: impl AsFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    point()?;
    rustix::fs::openat(dir, path, flags, Mode::empty())
}

#[cfg(target_os = "linux")]
pub fn openat2(
    dir: impl AsFd,
    path: &str,
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    point()?;
    rustix::fs::openat2(dir, path, flags, Mode::empty(), resolve)
}

/// Opens a regular file for reading.
pub fn open_in(dir: impl AsFd, name: &str) -> io::Result<File> {
    point()?;
    files::open_in(dir, name)
}

/// Creates a file that must not exist.
pub fn create_new_in(dir: impl AsFd, name: impl AsRef<Path>, mode: RawMode) -> io::Result<File> {
    point()?;
    files::create_new_in(dir, name, mode)
}

/// Opens a directory.
pub fn open(path: &Path) -> io::Result<File> {
    point()?;
    files::open_directory(path)
}

pub fn mkdirat(dir: impl AsFd, path: &str, mode: Mode) -> Result<(), Errno> {
    point()?;
    rustix::fs::mkdirat(dir, path, mode)
}

pub fn statat(dir: impl AsFd, path: &str) -> Result<Stat, Errno> {
    point()?;
    rustix::fs::statat(dir, path, AtFlags::SYMLINK_NOFOLLOW)
}

pub fn renameat(dir: impl AsFd, old: &str, new: &str) -> Result<(), Errno> {
    point()?;
    rustix::fs::renameat(&dir, old, &dir, new)
}

pub fn renameat_with(
    dir: impl AsFd,
    old: &str,
    new: &str,
    flags: RenameFlags,
) -> Result<(), Errno> {
    point()?;
    rustix::fs::renameat_with(&dir, old, &dir, new, flags)
}

pub fn linkat(from: impl AsFd, name: &str, to: impl AsFd, new: &str) -> Result<(), Errno> {
    point()?;
    rustix::fs::linkat(from, name, to, new, AtFlags::empty())
}

pub fn unlinkat(dir: impl AsFd, path: &str, flags: AtFlags) -> Result<(), Errno> {
    point()?;
    rustix::fs::unlinkat(dir, path, flags)
}

/// Writes all of the content. A fault injected here leaves half of it written.
pub fn write_all(file: &mut File, content: &[u8]) -> io::Result<()> {
    if let Err(errno) = point() {
        #[cfg(test)]
        file.write_all(&content[..content.len() / 2])?;
        return Err(errno.into());
    }
    file.write_all(content)
}

/// Allocates space for a file, without writing to it if the file system supports that.
pub fn allocate(file: &File, size: usize) -> io::Result<()> {
    point()?;
    files::allocate(file, size)
}

pub fn copy(from: &mut File, to: &mut File) -> io::Result<u64> {
    point()?;
    io::copy(from, to)
}

pub fn sync(file: &File) -> io::Result<()> {
    point()?;
    file.sync_all()
}

/// Syncs the whole file system of `file` to disk.
pub fn sync_file_system(file: impl AsFd) -> Result<(), Errno> {
    point()?;
    #[cfg(target_os = "linux")]
    return rustix::fs::syncfs(file);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
        rustix::fs::sync();
        Ok(())
    }
}

pub fn set_mode(file: &File, mode: RawMode) -> Result<(), Errno> {
    point()?;
    rustix::fs::fchmod(file, Mode::from_raw_mode(mode))
}

pub fn set_times(file: &File, times: FileTimes) -> io::Result<()> {
    point()?;
    file.set_times(times)
}

/// Reads one of the program's own files.
pub fn read(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    point()?;
    files::read(path, Links::Refused, max_bytes)
}

pub fn rename(old: &Path, new: &Path) -> io::Result<()> {
    point()?;
    fs::rename(old, new)
}

pub fn stat(path: &Path) -> Result<Stat, Errno> {
    point()?;
    rustix::fs::lstat(path)
}

pub fn remove_file(path: &Path) -> io::Result<()> {
    point()?;
    fs::remove_file(path)
}

/// Like [`crate::sys::atomic_file::replace_in`], with fault injection.
pub fn replace_in(
    directory: impl AsFd,
    name: &str,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    point()?;
    crate::sys::atomic_file::replace_in(&directory, &directory, name, |file| {
        write(file)?;
        point()?;
        Ok(())
    })
}

#[cfg(test)]
pub mod tests;
