//! Writes the program's own files atomically.
//!
//! Touches the file and its directory. Guarantees that a reader sees either the old content or the new one, complete,
//! that a link at the path is replaced rather than followed, and, where the file system supports unnamed files, that a
//! new file has no name before it is complete: a process that is killed while it writes leaves nothing behind.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawMode, linkat, openat, renameat, unlinkat};
use tempfile::NamedTempFile;
use uuid::Uuid;

/// Name prefix of files that are not yet in place. A process that is killed leaves them behind.
const STAGED: &str = ".staged-";

/// Creates or replaces the file at `path` with the content that `write` writes.
///
/// # Errors
/// Fails if the file cannot be written; the old content then remains.
pub fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    // The usual mode for new files, reduced by the user's umask.
    let mut staged = stage(path, 0o666)?;
    write(staged.as_file_mut())?;
    named(staged)?.persist(path)?;
    Ok(())
}

/// Like [`replace`], for the file `name` in an open directory, even if that directory has been moved. The content is
/// first written to `staging`, a directory on the same file system that is [swept](sweep).
///
/// # Errors
/// Fails if the file cannot be written; the old content then remains.
#[expect(
    clippy::disallowed_methods,
    reason = "a file that must not exist is no link and no pipe"
)]
pub fn replace_in(
    staging: impl AsFd,
    directory: impl AsFd,
    name: &str,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let staged = format!("{STAGED}{}", Uuid::new_v4().simple());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = openat(&staging, &staged, flags, Mode::from_raw_mode(0o666))?;
    let moved = write(&mut File::from(file))
        .and_then(|()| Ok(renameat(&staging, &staged, &directory, name)?));
    if moved.is_err() {
        let _ = unlinkat(&staging, &staged, AtFlags::empty());
    }
    moved
}

/// Like [`replace`], for a file that only its owner may read. The content is synced to disk before the file is put in
/// place, so that not even a power failure leaves it incomplete.
///
/// # Errors
/// Fails if the file cannot be written; the old content then remains.
pub fn replace_private(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    stage_private(path, write)?.persist(path)?;
    Ok(())
}

/// Like [`replace_private`], for a file that does not exist yet.
///
/// # Errors
/// Fails if the file cannot be written, with [`io::ErrorKind::AlreadyExists`] if it exists.
pub fn create_private(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    stage_private(path, write)?.persist_noclobber(path)?;
    Ok(())
}

/// Removes staged files that killed processes left in `directory`; with `oldest`, only those modified before that time.
///
/// # Errors
/// Fails if the directory cannot be read or a file cannot be removed. The remaining files are removed nevertheless.
pub fn sweep(directory: &Path, oldest: Option<SystemTime>) -> io::Result<()> {
    // The target of a link may belong to someone else.
    if !directory.symlink_metadata()?.is_dir() {
        return Ok(());
    }
    let mut swept = Ok(());
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_staged = name.as_encoded_bytes().starts_with(STAGED.as_bytes());
        let is_old = || {
            let modified = entry.metadata().and_then(|found| found.modified());
            oldest.is_none_or(|oldest| modified.is_ok_and(|modified| modified < oldest))
        };
        if is_staged && is_old() {
            swept = swept.and(fs::remove_file(entry.path()));
        }
    }
    swept
}

/// Creates a directory that only its owner may enter, and its parents. An existing directory is left unchanged.
///
/// # Errors
/// Fails if the directory cannot be created.
pub fn private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn stage_private(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<NamedTempFile> {
    let mut staged = stage(path, 0o600)?;
    write(staged.as_file_mut())?;
    staged.as_file().sync_all()?;
    named(staged)
}

/// The open files of this process, through which unnamed ones can be linked.
const OPEN_FILES: &str = "/proc/self/fd";

/// Opens a new file next to `path`: unnamed if that is possible, otherwise at its staged name.
#[expect(
    clippy::disallowed_methods,
    reason = "a file that must not exist is no link and no pipe"
)]
fn stage(path: &Path, mode: RawMode) -> io::Result<NamedTempFile> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let (flags, mode) = (OFlags::RDWR | OFlags::CLOEXEC, Mode::from_raw_mode(mode));
    let open = |path: &Path, kind| openat(CWD, path, flags | kind, mode);
    let can_be_linked = cfg!(target_os = "linux") && Path::new(OPEN_FILES).exists();
    let unnamed = || can_be_linked.then(|| open(directory, NAMELESS).ok());
    tempfile::Builder::new()
        .prefix(STAGED)
        .make_in(directory, |name| match unnamed().flatten() {
            Some(file) => Ok(file.into()),
            None => Ok(open(name, OFlags::CREATE | OFlags::EXCL)?.into()),
        })
}

/// The flag that opens an unnamed file in a directory.
#[cfg(target_os = "linux")]
const NAMELESS: OFlags = OFlags::TMPFILE;
#[cfg(not(target_os = "linux"))]
const NAMELESS: OFlags = OFlags::empty();

/// Gives a file that is complete its staged name, if it has none yet.
fn named(staged: NamedTempFile) -> io::Result<NamedTempFile> {
    if staged.as_file().metadata()?.nlink() == 0 {
        let open = format!("{OPEN_FILES}/{}", staged.as_file().as_raw_fd());
        linkat(CWD, open, CWD, staged.path(), AtFlags::SYMLINK_FOLLOW)?;
    }
    Ok(staged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn count(path: &Path) -> usize {
        fs::read_dir(path).unwrap().count()
    }

    #[test]
    fn a_file_has_no_name_before_it_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        fs::write(&old, "x").unwrap();
        for path in [&old, &new] {
            let before = count(dir.path());
            replace(path, |file| {
                assert_eq!(count(dir.path()), before);
                file.write_all(b"y")
            })
            .unwrap();
            assert_eq!(fs::read_to_string(path).unwrap(), "y");
        }
        assert_eq!(count(dir.path()), 2);
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_private_file_is_its_owners_and_takes_the_place_of_what_was_there() {
        let dir = tempfile::tempdir().unwrap();
        let directory = dir.path().join("a/b");
        private_directory(&directory).unwrap();
        assert_eq!(mode(&directory), 0o700);
        assert_eq!(mode(&dir.path().join("a")), 0o700);
        let (path, outside) = (directory.join("x"), dir.path().join("outside"));
        fs::write(&outside, "mine").unwrap();
        symlink(&outside, &path).unwrap();
        replace_private(&path, |file| file.write_all(b"new")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_to_string(&outside).unwrap(), "mine");
        assert_eq!(mode(&path), 0o600);
        let refused = create_private(&path, |file| file.write_all(b"other")).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn file_is_staged_in_the_staging_directory() {
        let dir = tempfile::tempdir().unwrap();
        let (staging, directory) = (dir.path().join("staging"), dir.path().join("directory"));
        for path in [&staging, &directory] {
            fs::create_dir(path).unwrap();
        }
        let open = |path: &Path| File::open(path).unwrap();
        replace_in(open(&staging), open(&directory), "x", |file| {
            assert_eq!((count(&staging), count(&directory)), (1, 0));
            file.write_all(b"new")
        })
        .unwrap();
        assert_eq!((count(&staging), count(&directory)), (0, 1));
        assert_eq!(fs::read_to_string(directory.join("x")).unwrap(), "new");
    }

    #[test]
    fn failed_write_keeps_the_old_content() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        fs::write(&path, "old").unwrap();
        let failed = replace_private(&path, |file| {
            file.write_all(b"half")?;
            Err(io::ErrorKind::Other.into())
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
