//! The namespaces in which a tree is mounted at the project's path.
//!
//! Only a process with a single thread can make or enter a user namespace, so this program starts itself with an
//! internal command to do so. The process that makes namespaces hands their descriptors on and ends; the one that enters
//! them becomes the program to run.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::{FdFlags, fcntl_setfd};

use super::mounting::{self, Lent, NamespaceFiles};
use crate::exec::descriptors;
use crate::sys::files::{self, Links};

/// First argument of the process that makes namespaces.
const MAKE: &str = "make-scratch";
/// First argument of the process that enters them.
const ENTER: &str = "enter-scratch";
/// Argument that stands for a missing user namespace.
const NONE: &str = "-";

/// Lock on starting programs, so that none inherits a descriptor that is passed to another one.
static STARTING: Mutex<()> = Mutex::new(());

/// A mount namespace, and the user namespace that it belongs to if one was needed to make it.
#[derive(Debug)]
pub(super) struct Namespaces {
    mount: File,
    user: Option<File>,
}

impl Namespaces {
    /// Makes namespaces in which `layers`, the uppermost first, are mounted at the project's path as an overlay that is
    /// written to the place; without layers, the copy in the place. The directories `kept` stay the project's own.
    /// Returns the mounted root, too.
    pub fn make(
        program: &File,
        project: &Path,
        place: &Path,
        kept: &[&str],
        layers: &[PathBuf],
    ) -> io::Result<(Self, File)> {
        let (line, theirs) = UnixStream::pair()?;
        let lent = Lent::to_children()?;
        let starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut maker = Command::new(path_of(program))
            .arg0("code-commit")
            .arg(MAKE)
            .args([project, place])
            .arg(kept.join(","))
            .args(layers)
            .env_clear()
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        drop((lent, starting));
        let received = descriptors::receive(&line);
        maker.wait()?;
        let mut files = received?.into_iter().map(File::from);
        let refused = || io::Error::from(io::ErrorKind::Unsupported);
        let root = files.next().ok_or_else(refused)?;
        let mount = files.next().ok_or_else(refused)?;
        let user = files.next();
        Ok((Self { mount, user }, root))
    }

    /// Adds the arguments that make this program enter the namespaces and the project's directory, and then execute the
    /// program named by the next arguments. The returned guard must be held until it is started.
    pub fn pass(&self, command: &mut Command, project: &Path) -> io::Result<Passed> {
        let starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        command.arg(ENTER).arg(project);
        let mut inherited = Vec::new();
        for file in [self.user.as_ref(), Some(&self.mount)] {
            let Some(file) = file else {
                command.arg(NONE);
                continue;
            };
            let file = file.as_fd().try_clone_to_owned()?;
            fcntl_setfd(&file, FdFlags::empty())?;
            command.arg(file.as_raw_fd().to_string());
            inherited.push(file);
        }
        Ok(Passed {
            _starting: starting,
            _files: inherited,
            _lent: Lent::to_children()?,
        })
    }

    /// Moves this process, which must have no other thread, into the namespaces.
    pub fn enter(&self) -> io::Result<()> {
        mounting::join(self.user.as_ref(), &self.mount)
    }
}

/// The descriptors that a program inherits to enter namespaces.
#[derive(Debug)]
pub(in crate::exec) struct Passed {
    _files: Vec<OwnedFd>,
    _lent: Lent,
    // Dropped last.
    _starting: MutexGuard<'static, ()>,
}

/// The path that leads to an open file, for this process and for a program that it is about to become.
pub(super) fn path_of(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Runs the program as one of its internal commands, if these arguments name one. `main` checks this first. Prints
/// nothing; the caller notices a failure by the missing result.
pub fn run(arguments: &[OsString]) -> Option<io::Result<()>> {
    match arguments {
        [_, command, project, place, kept, layers @ ..] if command == MAKE => {
            Some(make(project.as_ref(), place.as_ref(), kept, layers))
        }
        [_, command, project, user, mount, program, rest @ ..] if command == ENTER => Some(
            enter(project.as_ref(), user, mount)
                .and_then(|()| Err(Command::new(program).args(rest).exec())),
        ),
        _ => None,
    }
}

fn make(project: &Path, place: &Path, kept: &OsStr, layers: &[OsString]) -> io::Result<()> {
    let kept = kept.to_string_lossy();
    let NamespaceFiles { root, mount, user } =
        mounting::mount_tree(project, place, kept.split(','), layers)?;
    let line = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let files = [Some(&root), Some(&mount), user.as_ref()];
    let fds: Vec<_> = files.into_iter().flatten().map(File::as_fd).collect();
    descriptors::send(&line, &fds)
}

fn enter(project: &Path, user: &OsStr, mount: &OsStr) -> io::Result<()> {
    let user = (user != NONE).then(|| take(user)).transpose()?;
    mounting::join(user.as_ref(), &take(mount)?)?;
    mounting::become_plain()?;
    Ok(rustix::process::chdir(project)?)
}

/// Takes over an inherited descriptor, so that the program that follows does not inherit it.
fn take(number: &OsStr) -> io::Result<File> {
    let parsed = number.to_str().and_then(|number| number.parse().ok());
    let number: i32 = parsed.ok_or(io::ErrorKind::InvalidInput)?;
    let path = format!("/proc/self/fd/{number}");
    let file = files::open(Path::new(&path), Links::Followed)?;
    nix::unistd::close(number)?;
    Ok(file)
}
