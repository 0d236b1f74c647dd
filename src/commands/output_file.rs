//! A file that the user has named for the program to write: a summary, a page.
//!
//! Writes that file and nothing else. Guarantees that a file is replaced and never written through; that inside the
//! project no link is followed that was not there when the file was found; that no link leads from inside the project
//! to elsewhere; and that nothing that no reply may touch is written, also where it is mounted by another name: no
//! protected file, and nothing in `agent-config`, `logs` or git's own folder. What goes to its usual place is written
//! to `logs` all the same.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::agent::tools::place::resolved;
use crate::edit::Rule;
use crate::edit::beneath::{Root, split};
use crate::edit::spelling::{self, PathScope};
use crate::project::repository::DOT_GIT;
use crate::project::{LOGS, Project};
use crate::sys::files::is_same;
use crate::sys::{atomic_file, files};

/// A destination for output.
#[derive(Debug)]
pub struct OutputFile {
    /// Absolute, links resolved; that of a pipe or a device as it was named.
    path: PathBuf,
    kind: OutputKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputKind {
    /// A file in the project.
    Inside,
    /// A file elsewhere.
    Outside,
    /// A pipe or a device elsewhere, like `/dev/stdout`.
    Stream,
}

/// The rule that keeps the path that the user has named from being written to, whatever is there: it is a protected
/// one in the project. The build's own `target` is none here.
pub fn broken_rule(project: &Project, path: &Path) -> Option<Rule> {
    let named = path_clean::clean(project.root().join(path));
    let (directory, name) = (named.parent()?, named.file_name()?);
    protecting_rule(project, &own_name(project, resolved(directory).join(name)))
}

/// A path with links resolved, by its name in the project where it leads there by another: directories may be mounted
/// twice.
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

/// Like `broken_rule`, for a path with links resolved.
fn protecting_rule(project: &Project, path: &Path) -> Option<Rule> {
    let inside = path.strip_prefix(project.root()).ok()?;
    let rule = spelling::protected_rule(&inside.to_string_lossy(), PathScope::Reply);
    rule.filter(|_| !inside.starts_with("target"))
}

impl OutputFile {
    /// Resolves `path`, which the user has named, from the project's root as it is now.
    ///
    /// # Errors
    /// When nothing is to be written there.
    pub fn find(project: &Project, path: &Path) -> io::Result<Self> {
        let file = Self::usual(project, path)?;
        let rule = protecting_rule(project, &file.path);
        rule.map_or(Ok(file), |rule| Err(io::Error::other(rule.to_string())))
    }

    /// Like `find`, for a path that is not the user's choice and may be one in `logs`.
    ///
    /// # Errors
    /// When nothing is to be written there.
    pub fn usual(project: &Project, path: &Path) -> io::Result<Self> {
        let refused = |why| Err(io::Error::other(why));
        let root = project.root();
        let named = path_clean::clean(root.join(path));
        let is_named_inside = named.starts_with(root);
        let is_stream = named
            .metadata()
            .is_ok_and(|found| !found.is_file() && !found.is_dir());
        if is_stream && is_named_inside {
            return refused("it is not a file");
        }
        if is_stream {
            return Ok(Self {
                path: named,
                kind: OutputKind::Stream,
            });
        }
        // Memory that is a disk holds files, and perhaps the project.
        let is_system = ["/dev", "/proc"]
            .iter()
            .any(|system| named.starts_with(system));
        if is_system && !named.starts_with("/dev/shm") {
            // Were standard output's own file replaced, what is printed would go nowhere.
            return refused("it is no pipe or device now; name the file that it stands for");
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
            Ok(_) => OutputKind::Inside,
            Err(_) if is_named_inside => return refused("it leads out of the project"),
            Err(_) => OutputKind::Outside,
        };
        Ok(Self { path, kind })
    }

    /// Gives it this text.
    ///
    /// # Errors
    /// When it cannot be written; a file is then as it was.
    pub fn write(&self, project: &Project, text: &str) -> io::Result<()> {
        let there = self.path.symlink_metadata().ok();
        let there = there.filter(Metadata::is_file);
        let write = |file: &mut File| {
            if let Some(there) = there {
                // First: nobody is to read what they could not read before.
                let mode = there.permissions().mode() & 0o777;
                file.set_permissions(Permissions::from_mode(mode))?;
            }
            file.write_all(text.as_bytes())
        };
        match self.kind {
            OutputKind::Stream => files::write_stream(&self.path, text.as_bytes()),
            OutputKind::Outside => atomic_file::replace(&self.path, write),
            OutputKind::Inside => {
                let inside = self.path.strip_prefix(project.root()).ok();
                let inside = inside.and_then(Path::to_str);
                let inside = inside.ok_or_else(|| io::Error::other("its name is not UTF-8"))?;
                let (directory, name) = split(inside);
                let root = Root::open(project.root())?;
                let directory = root.directory_to_read(directory)?;
                // What a kill leaves in `logs`, the next command removes.
                let logs = root.directory_to_read(LOGS).ok();
                let logs = logs.filter(|_| access(project.logs(), Access::WRITE_OK).is_ok());
                let staging = logs.as_ref().unwrap_or(&directory);
                atomic_file::replace_in(staging, &directory, name, write)
            }
        }
    }
}
