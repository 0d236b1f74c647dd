//! Copies a tree with its modes, links and times.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, FileTimes};
use std::io::{self, Read as _, Seek as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, SeekFrom, Timespec, Timestamps, seek, utimensat};
use rustix::io::Errno;

use crate::exec::descriptors::path_of;
use crate::sys::atomic_file::replace;
use crate::sys::files::{self, Links};
use crate::sys::interrupt::Interrupt;

/// Copies a directory to a new one; the directories `empty` in its root are created without contents. Pipes, sockets
/// and devices are left out. Returns whether the files share their blocks with the originals.
pub(super) fn copy_tree(
    from: &Path,
    to: &Path,
    empty: &[&str],
    interrupt: &Interrupt,
) -> io::Result<bool> {
    let mut copier = Copier {
        interrupt,
        is_shared: true,
    };
    copier.directory(from, to, empty)?;
    Ok(copier.is_shared)
}

/// Modes, sizes and times of files and links, by path.
pub(super) type FileStates = BTreeMap<PathBuf, (u32, u64, i64, i64)>;

/// Returns the states of all files and links in a tree, except in the directories `left_out` of its root.
pub(super) fn states(root: &Path, left_out: &[&str]) -> io::Result<FileStates> {
    let (mut found, mut left) = (FileStates::new(), vec![PathBuf::new()]);
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(root.join(&directory))? {
            let entry = entry?;
            let path = directory.join(entry.file_name());
            let metadata = entry.metadata()?;
            if !metadata.is_dir() {
                let time = (metadata.mtime(), metadata.mtime_nsec());
                found.insert(path, (metadata.mode(), metadata.len(), time.0, time.1));
            } else if !left_out.iter().any(|name| path == Path::new(name)) {
                left.push(path);
            }
        }
    }
    Ok(found)
}

/// Copies a file or link from one open directory to another, atomically replacing any existing one.
pub(super) fn bring_entry(from: &File, to: &File, name: &OsStr) -> io::Result<()> {
    let path = path_of(to).join(name);
    match files::open_in(from, name) {
        Ok(mut original) => replace(&path, |copy| {
            if share(copy, &original).is_err() {
                copy_data(&mut original, copy)?;
            }
            finish(&original, copy)
        }),
        Err(error) if files::is_no_file(&error) => {
            let original = path_of(from).join(name);
            if !original.is_symlink() {
                return Ok(());
            }
            let link = tempfile::Builder::new()
                .prefix(".staged-")
                .make_in(path_of(to), |staged| copy_link(&original, staged))?;
            Ok(link.persist(path).map(drop)?)
        }
        Err(error) => Err(error),
    }
}

struct Copier<'c> {
    interrupt: &'c Interrupt,
    /// True as long as the file system shares blocks.
    is_shared: bool,
}

impl Copier<'_> {
    fn directory(&mut self, from: &Path, to: &Path, empty: &[&str]) -> io::Result<()> {
        let interrupted = |_| io::ErrorKind::Interrupted;
        self.interrupt.check().map_err(interrupted)?;
        DirBuilder::new().mode(0o700).create(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            let (from, to) = (entry.path(), to.join(&name));
            if kind.is_symlink() {
                copy_link(&from, &to)?;
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
            copy_data(&mut original, &mut copy)?;
        }
        finish(&original, &copy)
    }
}

/// Copies the content of a file, whose holes remain holes.
fn copy_data(original: &mut File, copy: &mut File) -> io::Result<()> {
    let mut end = 0;
    // Only a hole is left where no more data is found.
    loop {
        let start = match seek(&*original, SeekFrom::Data(end)) {
            Ok(start) => start,
            Err(Errno::NXIO) => break,
            // Not every file system tells where holes are.
            Err(_) => return io::copy(original, copy).map(drop),
        };
        end = match seek(&*original, SeekFrom::Hole(start)) {
            // The file has just become shorter.
            Err(Errno::NXIO) => break,
            end => end?,
        };
        original.seek(io::SeekFrom::Start(start))?;
        copy.seek(io::SeekFrom::Start(start))?;
        io::copy(&mut original.take(end - start), copy)?;
    }
    copy.set_len(original.metadata()?.len())
}

/// Copies a link with its times.
fn copy_link(from: &Path, to: &Path) -> io::Result<()> {
    symlink(fs::read_link(from)?, to)?;
    let found = from.symlink_metadata()?;
    let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    let times = Timestamps {
        last_access: time(found.atime(), found.atime_nsec()),
        last_modification: time(found.mtime(), found.mtime_nsec()),
    };
    Ok(utimensat(CWD, to, &times, AtFlags::SYMLINK_NOFOLLOW)?)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_whose_file_system_does_not_tell_its_holes_is_copied() {
        let path = "/proc/version";
        let mut copy = tempfile::tempfile().unwrap();
        copy_data(&mut File::open(path).unwrap(), &mut copy).unwrap();
        let mut copied = Vec::new();
        copy.rewind().unwrap();
        copy.read_to_end(&mut copied).unwrap();
        assert_eq!(copied, fs::read(path).unwrap());
    }
}
