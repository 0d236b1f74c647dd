//! The one place that opens files, so that what lies at a path can neither hang nor fill the program.
//!
//! Opens, reads and makes files, and nothing else. Guarantees that only regular files are opened, that opening never
//! waits, that a link at the path's end is followed only where the caller says so, and that nothing is read that is
//! larger than the caller allows. Lints keep everybody else from opening files by other means.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

/// A mebibyte, in which limits are told.
pub(crate) const MIB: u64 = 1 << 20;
/// The time a pipe or a device may take no bytes.
const SLOWEST_STREAM: Duration = Duration::from_secs(10);

/// Error from an action on a file.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("cannot {action} `{}`: {source}", .path.display())]
#[diagnostic(help("{}", self.way_out()))]
pub struct PathError {
    /// The action that failed, such as "write".
    pub action: &'static str,
    /// The file, or folder.
    pub path: PathBuf,
    /// The system's word.
    pub source: io::Error,
}

impl PathError {
    fn way_out(&self) -> &'static str {
        match self.source.kind() {
            io::ErrorKind::FileTooLarge => "make it smaller, or move it away",
            _ if self.action == "read" => "make it readable",
            // A refusal of this program's own.
            io::ErrorKind::Other => "name another path, or move what is there out of the way",
            _ => "see that the disk has room and the directory is writable",
        }
    }

    /// Makes one of the system's word.
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

/// Returns whether two names lead to the same file or directory now.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| path.metadata().map(|found| (found.dev(), found.ino())).ok();
    identity(one).is_some_and(|found| Some(found) == identity(other))
}

/// Returns whether the error means that nothing is there, perhaps not even the directory.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// The result of reading a file that may be missing.
pub(crate) trait IfThere<T> {
    /// The same, but `None` where it is missing.
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

/// The treatment of a symbolic link at a path's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// It counts as no file.
    Refused,
    /// It stands for the file that it leads to: the user's own, like one to a key.
    Followed,
}

/// Opens a file for reading, whatever its size. Never waits: a pipe that nobody writes to would take forever.
///
/// # Errors
/// When it is no file, or cannot be opened.
pub(crate) fn open(path: &Path, links: Links) -> io::Result<File> {
    open_by(CWD, path, links, OFlags::RDONLY, Mode::empty())
}

/// The same; `None` where it is no file.
///
/// # Errors
/// When nothing is there, or it cannot be opened.
pub(crate) fn open_regular(path: &Path, links: Links) -> io::Result<Option<File>> {
    match open(path, links) {
        Err(error) if is_no_file(&error) => Ok(None),
        opened => opened.map(Some),
    }
}

/// Opens a directory, links followed.
///
/// # Errors
/// When it is none, or cannot be opened.
pub(crate) fn open_directory(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = open_at_all(CWD, path, flags, Mode::empty());
    Ok(opened?.into())
}

/// Opens a directory in one that is open, or in the current one; no link at the path's end.
///
/// # Errors
/// When it is none, or cannot be opened.
pub(crate) fn open_directory_in(directory: impl AsFd, path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = open_at_all(directory, path, flags, Mode::empty());
    Ok(opened?.into())
}

/// The whole content of a file of no more than `max_bytes`.
///
/// # Errors
/// When it is no file, is larger, or cannot be read.
pub(crate) fn read(path: &Path, links: Links, max_bytes: u64) -> io::Result<Vec<u8>> {
    read_open(open(path, links)?, max_bytes)
}

/// The same of a file that is open.
///
/// # Errors
/// When it is larger, or cannot be read.
pub(crate) fn read_open(file: File, max_bytes: u64) -> io::Result<Vec<u8>> {
    let size = check_size(&file, max_bytes)?;
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    // It may be growing.
    file.take(max_bytes.saturating_add(1))
        .read_to_end(&mut content)?;
    if content.len() as u64 > max_bytes {
        return Err(too_large(max_bytes));
    }
    Ok(content)
}

/// The first bytes of a file of any size.
///
/// # Errors
/// When it is no file, or cannot be read.
pub(crate) fn beginning(path: &Path, links: Links, max_bytes: u64) -> io::Result<Vec<u8>> {
    let file = open(path, links)?;
    let mut content = Vec::new();
    file.take(max_bytes).read_to_end(&mut content)?;
    Ok(content)
}

/// The size of a file that is open, where it is no more than `max_bytes`.
///
/// # Errors
/// When it is larger.
pub(crate) fn check_size(file: &File, max_bytes: u64) -> io::Result<u64> {
    let size = file.metadata()?.len();
    if size > max_bytes {
        return Err(too_large(max_bytes));
    }
    Ok(size)
}

/// Makes a file that must not exist, to be written and read; the user's umask takes from `mode`.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] where there is anything, a link included; or when it cannot be made.
pub(crate) fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    create_new_in(CWD, path, mode)
}

/// The same in a directory that is open, whatever has become of its path.
///
/// # Errors
/// As [`create_new`].
pub(crate) fn create_new_in(
    directory: impl AsFd,
    name: impl AsRef<Path>,
    mode: u32,
) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    let mode = Mode::from_raw_mode(mode);
    open_by(directory, name.as_ref(), Links::Refused, flags, mode)
}

/// Opens a file to write at its end, and makes it where it is missing. Never through a link.
///
/// # Errors
/// When there is something else, or it cannot be made.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    append_in(CWD, path)
}

/// The same in a directory that is open, whatever has become of its path.
///
/// # Errors
/// As [`append`].
pub(crate) fn append_in(directory: impl AsFd, name: impl AsRef<Path>) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
    let mode = Mode::from_raw_mode(0o666);
    open_by(directory, name.as_ref(), Links::Refused, flags, mode)
}

/// Opens a file of the program's own to read it and to write at its end, and makes it for its owner alone where it is
/// missing. Never through a link.
///
/// # Errors
/// When there is something else, or it cannot be made.
pub(crate) fn append_private(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE;
    let mode = Mode::from_raw_mode(0o600);
    open_by(CWD, path, Links::Refused, flags, mode)
}

/// Opens a file that is there to be locked, and makes it for its owner alone where it is missing.
///
/// # Errors
/// When there is something else, or it cannot be made.
pub(crate) fn open_to_lock(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE;
    let mode = Mode::from_raw_mode(0o600);
    open_by(CWD, path, Links::Refused, flags, mode)
}

/// Writes to the pipe or the device at `path`, which the user has named; links like `/dev/stdout` are followed. Gives
/// up where nobody reads.
///
/// # Errors
/// When it is a file, cannot be opened, or takes no bytes for ten seconds.
pub(crate) fn write_stream(path: &Path, content: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = open_at_all(CWD, path, flags, Mode::empty());
    let mut stream = File::from(opened?);
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
    match poll(&mut fds, Some(&longest)) {
        Ok(0) => Err(io::ErrorKind::TimedOut.into()),
        Ok(_) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Returns whether the error means that this is no regular file: a directory, a link, a pipe, a device or the like.
pub(crate) fn is_no_file(error: &io::Error) -> bool {
    let inner = error.get_ref();
    inner.is_some_and(<dyn std::error::Error + Send + Sync>::is::<NoFile>)
}

/// Something else lies where a file was expected.
#[derive(Debug, thiserror::Error)]
#[error("it is not a file")]
struct NoFile;

/// Returns whether the error means that the file has more bytes than were allowed.
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

fn open_by(
    directory: impl AsFd,
    path: &Path,
    links: Links,
    flags: OFlags,
    mode: Mode,
) -> io::Result<File> {
    // A terminal that is opened does not become the process's own, and a pipe is not waited for.
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
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other(NoFile))
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place")]
fn open_at_all(
    directory: impl AsFd,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    retry_on_intr(|| rustix::fs::openat(&directory, path, flags, mode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    /// A directory with everything that is no file.
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
        // A terabyte that takes no room on the disk, and none in memory.
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
    fn a_pipe_that_nobody_reads_is_not_written_to() {
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
