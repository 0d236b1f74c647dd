//! The only module that opens files, so that no path can make the program hang or run out of memory.
//!
//! Opens, reads and creates files, and nothing else. Guarantees that only regular files are opened, that opening never
//! blocks, that a link at the end of a path is followed only if the caller allows it, and that no more is read than the
//! caller allows. Lints prevent other code from opening files by other means.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileType};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FallocateFlags, Mode, OFlags, RawMode, fallocate};
#[cfg(target_os = "linux")]
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{Errno, retry_on_intr};

use super::identity::file_id;

/// Number of bytes in a mebibyte, the unit of most limits.
pub(crate) const MIB: u64 = 1 << 20;
/// Longest time that writing to a pipe or device may block.
const SLOWEST_STREAM: Duration = Duration::from_secs(10);

/// Allocates space for a file, without writing to it if the file system supports that.
///
/// # Errors
/// Fails if there is too little space.
pub fn allocate(file: &File, size: usize) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, size as u64) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => (&*file).write_all(&vec![0; size]),
        other => Ok(other?),
    }
}

/// Error from an operation on a file.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("cannot {action} `{}`: {source}", .path.display())]
#[diagnostic(help("{}", self.remedy()))]
pub struct PathError {
    /// Operation that failed, such as "write".
    pub action: &'static str,
    /// Path of the file or folder.
    pub path: PathBuf,
    /// Underlying I/O error.
    pub source: io::Error,
}

impl PathError {
    fn remedy(&self) -> &'static str {
        match self.source.kind() {
            io::ErrorKind::FileTooLarge => "make it smaller, or move it away",
            io::ErrorKind::StorageFull => "make room on the disk",
            io::ErrorKind::IsADirectory => "name a file, not a directory",
            _ if self.action == "read" => "make it readable",
            io::ErrorKind::NotFound => "name a place in a directory that is there",
            // An error that this program raised itself.
            io::ErrorKind::Other => "name another path, or move what is there out of the way",
            _ => "check that the disk has room and the directory is writable",
        }
    }

    /// Returns a function that converts an I/O error into a `PathError`.
    pub(crate) fn of<E: Into<io::Error>>(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(E) -> Self {
        let path = path.into();
        move |error| Self {
            action,
            path,
            source: error.into(),
        }
    }
}

/// Creates an unnamed file for a program's short output: in memory, if the system allows that.
pub(crate) fn nameless() -> io::Result<File> {
    #[cfg(target_os = "linux")]
    if let Ok(file) = memfd_create("output", MemfdFlags::CLOEXEC) {
        return Ok(file.into());
    }
    tempfile::tempfile()
}

/// Returns whether the path is a directory itself, not a link to one.
pub(crate) fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// Returns the names in a directory that are valid UTF-8, sorted.
pub(crate) fn names(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        names.extend(entry?.file_name().into_string());
    }
    names.sort_unstable();
    Ok(names)
}

/// Returns whether two paths currently lead to the same file or directory.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| path.metadata().map(|found| file_id(&found)).ok();
    identity(one).is_some_and(|found| Some(found) == identity(other))
}

/// Returns whether the error means that the path does not exist, possibly not even its directory.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Extension for results of accessing a file that may not exist.
pub(crate) trait IfThere<T> {
    /// Converts the error for a missing file into `None`.
    fn if_there(self) -> io::Result<Option<T>>;
}

impl<T> IfThere<T> for io::Result<T> {
    fn if_there(self) -> io::Result<Option<T>> {
        match self {
            Err(error) if is_missing(&error) => Ok(None),
            there => there.map(Some),
        }
    }
}

/// Lists the names in a directory with their file types, which may be unknown. If it cannot be listed, returns the
/// error and those names in `tried` that exist, since files in it may still be opened by name.
pub(crate) fn listed(
    directory: &Path,
    tried: &[&OsStr],
) -> (Vec<(OsString, Option<FileType>)>, Option<io::Error>) {
    match fs::read_dir(directory) {
        Ok(entries) => {
            let named = entries
                .flatten()
                .map(|entry| (entry.file_name(), entry.file_type().ok()));
            (named.collect(), None)
        }
        Err(error) => {
            let found = tried.iter().filter_map(|name| {
                let found = directory.join(name).symlink_metadata().ok()?;
                Some(((*name).to_owned(), Some(found.file_type())))
            });
            (found.collect(), Some(error))
        }
    }
}

/// Handling of a symbolic link at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// The link is not accepted as a file.
    Refused,
    /// The link is followed: it is the user's own, such as one to a key file.
    Followed,
}

/// Opens a file of any size for reading. Never blocks, not even on a pipe without a writer.
///
/// # Errors
/// Fails if the path is not a regular file or cannot be opened.
pub(crate) fn open(path: &Path, links: Links) -> io::Result<File> {
    Ok(open_sized(CWD, path, links, OFlags::RDONLY, 0)?.0)
}

/// Like [`open`], but in an open directory and without following a link.
///
/// # Errors
/// Same as [`open`].
pub(crate) fn open_in(directory: impl AsFd, name: impl AsRef<Path>) -> io::Result<File> {
    Ok(open_sized(directory, name.as_ref(), Links::Refused, OFlags::RDONLY, 0)?.0)
}

/// Like [`open`], but returns `None` if it is not a regular file.
///
/// # Errors
/// Fails if the path does not exist or cannot be opened.
pub(crate) fn open_regular(path: &Path, links: Links) -> io::Result<Option<File>> {
    match open(path, links) {
        Err(error) if is_no_file(&error) => Ok(None),
        opened => opened.map(Some),
    }
}

/// Opens a directory, following links.
///
/// # Errors
/// Fails if the path is not a directory or cannot be opened.
pub(crate) fn open_directory(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(open_at_all(CWD, path, flags, 0)?.into())
}

/// Opens a directory relative to an open one or to the current one, without following a link at the end of the path.
///
/// # Errors
/// Fails if the path is not a directory or cannot be opened.
pub(crate) fn open_directory_in(directory: impl AsFd, path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(open_at_all(directory, path, flags, 0)?.into())
}

/// Reads the whole content of a file of at most `max_bytes`.
///
/// # Errors
/// Fails if the path is not a regular file, or the file is larger or cannot be read.
pub(crate) fn read(path: &Path, links: Links, max_bytes: u64) -> io::Result<Vec<u8>> {
    let (file, size) = open_sized(CWD, path, links, OFlags::RDONLY, 0)?;
    read_sized(file, size, max_bytes)
}

/// Reads the whole content of an open file of at most `max_bytes`.
///
/// # Errors
/// Fails if the file is larger or cannot be read.
pub(crate) fn read_open(file: File, max_bytes: u64) -> io::Result<Vec<u8>> {
    let size = file.metadata()?.len();
    read_sized(file, size, max_bytes)
}

fn read_sized(file: File, size: u64, max_bytes: u64) -> io::Result<Vec<u8>> {
    if size > max_bytes {
        return Err(too_large(max_bytes));
    }
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    // The file may grow after the size check.
    file.take(max_bytes.saturating_add(1))
        .read_to_end(&mut content)?;
    if content.len() as u64 > max_bytes {
        return Err(too_large(max_bytes));
    }
    Ok(content)
}

/// Reads at most `max_bytes` from the beginning of a file of any size.
///
/// # Errors
/// Fails if the path is not a regular file or cannot be read.
pub(crate) fn beginning(path: &Path, links: Links, max_bytes: u64) -> io::Result<Vec<u8>> {
    let file = open(path, links)?;
    let mut content = Vec::new();
    file.take(max_bytes).read_to_end(&mut content)?;
    Ok(content)
}

/// Returns the size of an open file if it is at most `max_bytes`.
///
/// # Errors
/// Fails if the file is larger.
pub(crate) fn check_size(file: &File, max_bytes: u64) -> io::Result<u64> {
    let size = file.metadata()?.len();
    if size > max_bytes {
        return Err(too_large(max_bytes));
    }
    Ok(size)
}

/// Creates a new file for reading and writing; `mode` is reduced by the user's umask.
///
/// # Errors
/// Fails if the file cannot be created, with [`io::ErrorKind::AlreadyExists`] if the path exists, even as a link.
pub(crate) fn create_new(path: &Path, mode: RawMode) -> io::Result<File> {
    create_new_in(CWD, path, mode)
}

/// Like [`create_new`], but in an open directory, even if that directory has been moved.
///
/// # Errors
/// Same as [`create_new`].
pub(crate) fn create_new_in(
    directory: impl AsFd,
    name: impl AsRef<Path>,
    mode: RawMode,
) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    Ok(open_sized(directory, name.as_ref(), Links::Refused, flags, mode)?.0)
}

/// Opens a file for appending, and creates it if it is missing. Never follows a link.
///
/// # Errors
/// Fails if the path is not a regular file or cannot be created.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    append_in(CWD, path)
}

/// Like [`append`], but in an open directory, even if that directory has been moved.
///
/// # Errors
/// Same as [`append`].
pub(crate) fn append_in(directory: impl AsFd, name: impl AsRef<Path>) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
    Ok(open_sized(directory, name.as_ref(), Links::Refused, flags, 0o666)?.0)
}

/// Opens one of the program's own files for reading and appending. A missing file is created, accessible only to its
/// owner. Never follows a link.
///
/// # Errors
/// Fails if the path is not a regular file or cannot be created.
pub(crate) fn append_private(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE;
    Ok(open_sized(CWD, path, Links::Refused, flags, 0o600)?.0)
}

/// Opens a lock file. A missing file is created, accessible only to its owner.
///
/// # Errors
/// Fails if the path is not a regular file or cannot be created.
pub(crate) fn open_to_lock(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE;
    Ok(open_sized(CWD, path, Links::Refused, flags, 0o600)?.0)
}

/// Writes to a pipe or device that the user has named. Follows links such as `/dev/stdout`, and gives up if no process
/// reads the data.
///
/// # Errors
/// Fails if the path is a regular file, cannot be opened, or blocks for ten seconds.
pub(crate) fn write_stream(path: &Path, content: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mut stream = File::from(open_at_all(CWD, path, flags, 0)?);
    if stream.metadata()?.is_file() {
        return Err(io::Error::other("it has become a file"));
    }
    let mut left = content;
    while !left.is_empty() {
        match stream.write(left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => left = &left[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait_for_room(&stream)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn wait_for_room(stream: &File) -> io::Result<()> {
    let mut fds = [PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::OUT)];
    let longest = Timespec::try_from(SLOWEST_STREAM).map_err(|_| Errno::INVAL)?;
    match retry_on_intr(|| poll(&mut fds, Some(&longest)))? {
        0 => Err(io::ErrorKind::TimedOut.into()),
        _ => Ok(()),
    }
}

/// Returns whether the error means that this is not a regular file but a directory, link, pipe, device or the like.
pub(crate) fn is_no_file(error: &io::Error) -> bool {
    let inner = error.get_ref();
    inner.is_some_and(<dyn std::error::Error + Send + Sync>::is::<NoFile>)
}

/// Error for a path that is not a regular file.
#[derive(Debug, thiserror::Error)]
#[error("it is not a file")]
struct NoFile;

/// Returns whether the error means that the file exceeds the size limit.
pub(crate) fn is_too_large(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::FileTooLarge
}

fn too_large(max_bytes: u64) -> io::Error {
    let limit = match max_bytes {
        bytes if bytes % MIB == 0 => format!("{} MiB", bytes / MIB),
        bytes => format!("{bytes} bytes"),
    };
    io::Error::new(
        io::ErrorKind::FileTooLarge,
        format!("it is larger than {limit}"),
    )
}

/// Opens a regular file; returns its size, too.
fn open_sized(
    directory: impl AsFd,
    path: &Path,
    links: Links,
    flags: OFlags,
    mode: RawMode,
) -> io::Result<(File, u64)> {
    // A terminal must not become the controlling terminal, and opening a pipe must not block.
    let mut flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    if links == Links::Refused {
        flags |= OFlags::NOFOLLOW;
    }
    let file = match open_at_all(directory, path, flags, mode) {
        Ok(opened) => File::from(opened),
        Err(Errno::NXIO | Errno::ISDIR) => return Err(io::Error::other(NoFile)),
        Err(Errno::LOOP) if links == Links::Refused => return Err(io::Error::other(NoFile)),
        Err(errno) => return Err(errno.into()),
    };
    let found = file.metadata()?;
    let opened = found.is_file().then_some((file, found.len()));
    opened.ok_or_else(|| io::Error::other(NoFile))
}

#[expect(clippy::disallowed_methods, reason = "the one place")]
fn open_at_all(
    directory: impl AsFd,
    path: &Path,
    flags: OFlags,
    mode: RawMode,
) -> Result<OwnedFd, Errno> {
    retry_on_intr(|| rustix::fs::openat(&directory, path, flags, Mode::from_raw_mode(mode)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    /// Returns a directory with one entry of each kind that is not a regular file.
    fn odd_things() -> (tempfile::TempDir, Vec<PathBuf>) {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, path("pipe"), kind, 0o600.into(), 0).unwrap();
        drop(UnixListener::bind(path("socket")).unwrap());
        fs::create_dir(path("directory")).unwrap();
        symlink("/dev/zero", path("endless")).unwrap();
        symlink("pipe", path("link to a pipe")).unwrap();
        let names = ["pipe", "socket", "directory", "endless", "link to a pipe"];
        let paths = names.map(path).to_vec();
        (dir, paths)
    }

    #[test]
    fn nothing_but_a_file_is_opened_and_nothing_is_waited_for() {
        let (_dir, paths) = odd_things();
        for path in paths {
            for links in [Links::Refused, Links::Followed] {
                assert!(open_regular(&path, links).unwrap().is_none(), "{path:?}");
                assert!(is_no_file(&read(&path, links, MIB).unwrap_err()));
                assert!(is_no_file(&beginning(&path, links, 9).unwrap_err()));
            }
            for opened in [append(&path), append_private(&path), open_to_lock(&path)] {
                assert!(is_no_file(&opened.unwrap_err()), "{path:?}");
            }
            let made = create_new(&path, 0o600).unwrap_err();
            assert_eq!(made.kind(), io::ErrorKind::AlreadyExists);
        }
    }

    #[test]
    fn a_link_is_followed_only_where_the_caller_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("x"), dir.path().join("link"));
        fs::write(&path, "content").unwrap();
        symlink("x", &link).unwrap();
        assert_eq!(read(&link, Links::Followed, MIB).unwrap(), b"content");
        assert!(is_no_file(&read(&link, Links::Refused, MIB).unwrap_err()));
        assert!(is_no_file(&append(&link).unwrap_err()));
        assert!(is_no_file(&append_private(&link).unwrap_err()));
        assert_eq!(fs::read_to_string(&path).unwrap(), "content");
    }

    #[test]
    fn a_file_is_read_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, Links::Refused, 5).unwrap(), b"12345");
        assert_eq!(beginning(&path, Links::Refused, 2).unwrap(), b"12");
        let error = read(&path, Links::Refused, 4).unwrap_err();
        assert!(is_too_large(&error));
        assert_eq!(error.to_string(), "it is larger than 4 bytes");
        // A sparse terabyte, which takes no space on disk, and must not take any in memory.
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
        let error = read(&path, Links::Refused, 2 * MIB).unwrap_err();
        assert_eq!(error.to_string(), "it is larger than 2 MiB");
    }

    #[test]
    fn a_closed_pipe_is_not_written_to() {
        let (_dir, paths) = odd_things();
        assert!(write_stream(&paths[0], b"x").is_err());
        let (mut reader, writer) = io::pipe().unwrap();
        let mut text = [0; 2];
        let by_number = format!("/proc/self/fd/{}", writer.as_raw_fd());
        if cfg!(target_os = "linux") {
            write_stream(Path::new(&by_number), b"ab").unwrap();
            reader.read_exact(&mut text).unwrap();
            assert_eq!(&text, b"ab");
        }
    }
}
