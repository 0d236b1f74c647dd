//! An output file that the user has named, such as a summary or a report.
//!
//! Writes only that file. Guarantees that files are replaced, never written through a link; that no link inside the
//! project is followed unless it was there when the file was resolved; that no path inside the project leads out of it;
//! and that nothing protected from replies is written, even through another mount: no protected file, and nothing in
//! `agent-config`, `logs` or git's own folder. Only default output files may be in `logs`.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, FileType, Stat, access, accessat, statat};

use crate::agent::tools::resolved_path::resolved;
use crate::edit::Rule;
use crate::edit::beneath::{Root, split};
use crate::edit::spelling::{self, PathScope};
use crate::project::repository::DOT_GIT;
use crate::project::{LOGS, Project};
use crate::sys::files::{PathError, is_same};
use crate::sys::{atomic_file, files};

/// A destination for output.
#[derive(Debug)]
pub struct OutputFile {
    /// An absolute path with links resolved; for a pipe or a device, the path as given.
    path: PathBuf,
    kind: OutputKind,
}

#[derive(Debug)]
enum OutputKind {
    /// A file in the project, by its path below the root. The root is open, so that the file can be written even from
    /// inside a scratch tree.
    Inside(Root, String),
    /// A file elsewhere.
    Outside,
    /// A pipe or a device elsewhere, like `/dev/stdout`.
    Stream,
}

/// Returns the rule that protects the given path, whether or not the file exists. The `target` directory of builds is
/// not protected here.
pub fn broken_rule(project: &Project, path: &Path) -> Option<Rule> {
    let named = path_clean::clean(project.root().join(path));
    let (directory, name) = (named.parent()?, named.file_name()?);
    protecting_rule(project, &own_name(project, resolved(directory).join(name)))
}

/// Maps a path with links resolved to its name inside the project, in case the directory is mounted twice.
fn own_name(project: &Project, path: PathBuf) -> PathBuf {
    let root = project.root();
    let own = [
        root.to_path_buf(),
        project.config(),
        project.logs(),
        root.join(DOT_GIT),
    ];
    let renamed = path.ancestors().find_map(|above| {
        let is_own = |own: &&PathBuf| !own.is_symlink() && is_same(own, above);
        let below = path.strip_prefix(above).ok()?;
        Some(own.iter().find(is_own)?.join(below))
    });
    renamed.unwrap_or(path)
}

/// Same as [`broken_rule`], for a path whose links are already resolved.
fn protecting_rule(project: &Project, path: &Path) -> Option<Rule> {
    let inside = path.strip_prefix(project.root()).ok()?;
    let rule = spelling::protected_rule(&inside.to_string_lossy(), PathScope::Reply);
    rule.filter(|_| !inside.starts_with("target"))
}

/// Writes this text to a file that the user has named.
///
/// # Errors
/// Fails if the file must not or cannot be written; an existing file is then unchanged.
pub fn write(project: &Project, path: &Path, text: &str) -> Result<(), PathError> {
    let written = OutputFile::find(project, path).and_then(|file| file.write(text));
    written.map_err(PathError::of("write", path))
}

impl OutputFile {
    /// Resolves the user's `path`, which is relative to the root in use.
    ///
    /// # Errors
    /// Fails if the file must not be written.
    pub fn find(project: &Project, path: &Path) -> io::Result<Self> {
        let file = Self::usual(project, path)?;
        let rule = protecting_rule(project, &file.path);
        rule.map_or(Ok(file), |rule| Err(io::Error::other(rule.to_string())))
    }

    /// Same as [`find`](Self::find), for a default path, which may be in `logs`.
    ///
    /// # Errors
    /// Fails if the file must not be written.
    pub fn usual(project: &Project, path: &Path) -> io::Result<Self> {
        let refused = |why| Err(io::Error::other(why));
        let root = project.root();
        let named = path_clean::clean(root.join(path));
        let is_named_inside = named.starts_with(root);
        let found = named.metadata();
        let is_stream = found.is_ok_and(|found| !found.is_file() && !found.is_dir());
        if is_stream && is_named_inside {
            return refused("it is not a file");
        }
        if is_stream {
            return Ok(Self {
                path: named,
                kind: OutputKind::Stream,
            });
        }
        // `/dev/shm` holds ordinary files, and possibly the project.
        let is_system = named.starts_with("/dev") || named.starts_with("/proc");
        if is_system && !named.starts_with("/dev/shm") {
            // Replacing the file behind standard output would lose what is printed there.
            return refused("it is no longer a pipe or a device; name the file itself");
        }
        let path = own_name(project, resolved(&named));
        let closed = [project.config(), resolved(&project.config())];
        if closed.iter().any(|closed| path.starts_with(closed)) {
            return refused("that folder is for keys and inputs");
        }
        let kind = match path.strip_prefix(root) {
            Ok(inside) if inside.iter().any(|name| name == ".git") => {
                return refused("that folder is git's own");
            }
            Ok(inside) => match inside.to_str() {
                Some(inside) => OutputKind::Inside(Root::open(root)?, inside.to_owned()),
                None => return refused("its name is not UTF-8"),
            },
            Err(_) if is_named_inside => return refused("it leads out of the project"),
            Err(_) => OutputKind::Outside,
        };
        Ok(Self { path, kind })
    }

    /// Returns `true` if there is a directory at the file's path.
    pub fn is_directory(&self) -> bool {
        self.path.is_dir()
    }

    /// Checks, before the work is done, that the text can probably be written.
    ///
    /// # Errors
    /// Fails if the directory does not exist or is not writable.
    pub fn check(&self) -> io::Result<()> {
        if matches!(self.kind, OutputKind::Stream) {
            return Ok(());
        }
        if self.is_directory() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let directory = self.path.parent().unwrap_or(&self.path);
        Ok(access(directory, Access::WRITE_OK | Access::EXEC_OK)?)
    }

    /// Writes this text to the file.
    ///
    /// # Errors
    /// Fails if the file cannot be written; an existing file is then unchanged.
    pub fn write(&self, text: &str) -> io::Result<()> {
        let write = |there: Option<u32>| {
            move |file: &mut File| {
                if let Some(mode) = there {
                    // Set the mode before writing, so that the content is never readable by more users than before.
                    file.set_permissions(Permissions::from_mode(mode & 0o777))?;
                }
                file.write_all(text.as_bytes())
            }
        };
        match &self.kind {
            OutputKind::Stream => files::write_stream(&self.path, text.as_bytes()),
            OutputKind::Outside => {
                let there = self.path.symlink_metadata().ok().filter(Metadata::is_file);
                let mode = there.map(|there| there.permissions().mode());
                atomic_file::replace(&self.path, write(mode))
            }
            OutputKind::Inside(root, inside) => {
                let (directory, name) = split(inside);
                let directory = root.directory_to_read(directory)?;
                // A file that a killed process leaves in `logs` is removed by the next command.
                let is_writable = |logs: &OwnedFd| {
                    accessat(logs, ".", Access::WRITE_OK, AtFlags::empty()).is_ok()
                };
                let logs = root.directory_to_read(LOGS).ok().filter(is_writable);
                let staging = logs.as_ref().unwrap_or(&directory);
                let there = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW).ok();
                let is_file = |there: &Stat| FileType::from_raw_mode(there.st_mode).is_file();
                let mode = there.filter(is_file).map(|there| there.st_mode);
                atomic_file::replace_in(staging, &directory, name, write(mode))
            }
        }
    }
}
