//! Writes the program's own files atomically.
//!
//! Touches the file and its directory. Guarantees that a reader sees either the old content or the new one, complete,
//! and that a link at the path is replaced rather than followed.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};
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
    staged.persist(path)?;
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
    let written = write(&mut File::from(file));
    let moved = written.and_then(|()| Ok(renameat(&staging, &staged, &directory, name)?));
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
        let is_staged = entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(STAGED.as_bytes());
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
    Ok(staged)
}

fn stage(path: &Path, mode: u32) -> io::Result<NamedTempFile> {
    let directory = path.parent().unwrap_or(Path::new("."));
    tempfile::Builder::new()
        .prefix(STAGED)
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::fs::symlink;

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
    fn what_a_kill_would_leave_lies_where_it_is_looked_for() {
        let dir = tempfile::tempdir().unwrap();
        let (staging, directory) = (dir.path().join("staging"), dir.path().join("directory"));
        let count = |path: &Path| fs::read_dir(path).unwrap().count();
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
    fn what_cannot_be_written_leaves_what_was_there() {
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
