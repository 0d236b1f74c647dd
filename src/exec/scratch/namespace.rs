//! The namespaces in which a tree is mounted at the project's path.
//!
//! Only a process with a single thread can make or enter a user namespace, so this program starts itself with an
//! internal command to do so. The process that makes namespaces sends their descriptors and ends; the one that enters
//! them receives these on its standard input, and becomes the program to run.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::mounting::{self, Lent, NamespaceFiles};
use crate::exec::descriptors::{self, path_of, standard_input};

/// First argument of the process that makes namespaces.
const MAKE: &str = "make-scratch";
/// First argument of the process that enters them.
const ENTER: &str = "enter-scratch";

/// A mount namespace, and the user namespace that it belongs to if one was needed to make it.
#[derive(Debug)]
pub(super) struct Namespaces {
    mount: File,
    user: Option<File>,
}

impl Namespaces {
    /// Makes namespaces in which `layers`, the uppermost first, are mounted at the project's path as an overlay that is
    /// written to the place; without layers, the copy in the place. The directories `excluded` stay the project's own.
    /// Returns the mounted root, too.
    pub fn make(
        program: &File,
        project: &Path,
        place: &Path,
        excluded: &[&str],
        layers: &[PathBuf],
    ) -> io::Result<(Self, File)> {
        let (line, theirs) = UnixStream::pair()?;
        let lent = Lent::to_children()?;
        let mut maker = Command::new(path_of(program))
            .arg0("code-commit")
            .arg(MAKE)
            .args([project, place])
            .arg(excluded.join(","))
            .args(layers)
            .env_clear()
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        drop(lent);
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
    /// program named by the next arguments.
    pub fn pass(&self, command: &mut Command, project: &Path) -> io::Result<Passed<'_>> {
        command.arg(ENTER).arg(project);
        let files = [Some(&self.mount), self.user.as_ref()];
        Ok(Passed {
            descriptors: files.into_iter().flatten().map(File::as_fd).collect(),
            _lent: Lent::to_children()?,
        })
    }

    /// Moves this process, which must have no other thread, into the namespaces.
    pub fn enter(&self) -> io::Result<()> {
        mounting::join(self.user.as_ref(), &self.mount)
    }
}

/// The descriptors and capabilities that a command needs to enter namespaces.
#[derive(Debug)]
pub(in crate::exec) struct Passed<'n> {
    /// Descriptors to send to the command's standard input.
    pub descriptors: Vec<BorrowedFd<'n>>,
    /// Held until the command is started.
    _lent: Lent,
}

/// Runs the program as one of its internal commands, if these arguments name one. `main` checks this first. Prints
/// nothing; the caller notices a failure by the missing result.
pub fn run(arguments: &[OsString]) -> Option<io::Result<()>> {
    match arguments {
        [_, command, project, place, excluded, layers @ ..] if command == MAKE => {
            Some(make(project.as_ref(), place.as_ref(), excluded, layers))
        }
        [_, command, project, program, rest @ ..] if command == ENTER => Some(
            enter(project.as_ref()).and_then(|()| Err(Command::new(program).args(rest).exec())),
        ),
        _ => None,
    }
}

fn make(project: &Path, place: &Path, excluded: &OsStr, layers: &[OsString]) -> io::Result<()> {
    let excluded = excluded.to_string_lossy();
    let NamespaceFiles { root, mount, user } =
        mounting::mount_tree(project, place, excluded.split(','), layers)?;
    let files = [Some(&root), Some(&mount), user.as_ref()];
    let fds: Vec<_> = files.into_iter().flatten().map(File::as_fd).collect();
    descriptors::send(&standard_input()?, &fds)
}

fn enter(project: &Path) -> io::Result<()> {
    let received = descriptors::receive(&standard_input()?)?;
    let mut files = received.into_iter().map(File::from);
    let mount = files.next().ok_or(io::ErrorKind::InvalidInput)?;
    mounting::join(files.next().as_ref(), &mount)?;
    mounting::become_plain()?;
    Ok(rustix::process::chdir(project)?)
}
