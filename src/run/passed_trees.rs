//! Trees that have passed their build, remembered by digest so that they are not built again.
//!
//! Reads the project's files, except those that git ignores and does not track, and keeps a list in `agent-config`,
//! which sandboxed builds can neither see nor write. The digest need not resist attackers: it only decides whether one
//! more build is run.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::edit::Digest;
use crate::edit::beneath::{Beneath, PathEntry, Root};
use crate::project::index::TrackedPaths;
use crate::project::repository::{DOT_GIT, Repository, nearest_top};
use crate::project::walk::EntryKind;
use crate::project::{CONFIG, LOGS, Project, walk};
use crate::sys::atomic_file;
use crate::sys::files::{self, Links, MIB, PathError};

/// The list in `agent-config`: one digest per line, the latest last.
const FILE: &str = "passed-trees.txt";
/// Maximum number of trees remembered.
const REMEMBERED: usize = 200;

/// The trees of a project that have passed a build of one kind.
pub struct PassedTrees<'p> {
    project: &'p Project,
    /// The kind of build: a tree that passes without a sandbox may not pass in one.
    how: String,
}

impl<'p> PassedTrees<'p> {
    /// Creates the list of the project's trees that have passed this kind of build.
    pub fn new(project: &'p Project, how: String) -> Self {
        Self { project, how }
    }

    /// Returns whether the list exists.
    pub fn are_kept(&self) -> bool {
        self.list().symlink_metadata().is_ok()
    }

    /// Returns whether the tree has passed.
    pub fn contains(&self, tree: Option<Digest>) -> bool {
        tree.is_some_and(|tree| self.known().contains(&tree.to_string()))
    }

    /// Adds a tree that has passed, if it is still the one from before the build: changes made in the meantime may not
    /// have been built.
    ///
    /// # Errors
    /// Fails if the list cannot be written.
    pub fn remember(&self, before: Option<Digest>) -> Result<(), PathError> {
        let Some(tree) = before.filter(|before| self.digest() == Some(*before)) else {
            return Ok(());
        };
        let path = self.list();
        let mut lines = self.known();
        let tree = tree.to_string();
        lines.retain(|line| *line != tree);
        lines.push(tree);
        lines.drain(..lines.len().saturating_sub(REMEMBERED));
        let write = || {
            atomic_file::private_directory(&self.project.config())?;
            atomic_file::replace(&path, |file| {
                lines.iter().try_for_each(|line| writeln!(file, "{line}"))
            })
        };
        write().map_err(PathError::of("write", &path))
    }

    /// Returns the current digest of the tree; `None` if it cannot be read, has too many files, or is part of a larger
    /// repository, where the build may depend on files beside it.
    pub fn digest(&self) -> Option<Digest> {
        let root = self.project.root();
        let is_below_another = || root.parent().and_then(nearest_top).is_some();
        let is_part = Repository::of(root).ok()?.is_some_and(|it| it.top != root);
        // A submodule's `.git` is a file.
        if is_part || root.join(DOT_GIT).is_file() && is_below_another() {
            return None;
        }
        let mut manifest = self.how.clone().into_bytes();
        let mut beneath = Beneath::to_read(Root::open(root).ok()?);
        for path in files_of(root)? {
            manifest.push(b'\n');
            manifest.extend_from_slice(path.as_bytes());
            manifest.push(0);
            let state = state(root, &mut beneath, &path).ok()?;
            manifest.extend_from_slice(&state);
        }
        Some(Digest::of(&manifest))
    }

    /// Returns the lines of the list.
    fn known(&self) -> Vec<String> {
        let read = files::read(&self.list(), Links::Refused, MIB).unwrap_or_default();
        let known = String::from_utf8_lossy(&read);
        known.lines().map(str::to_owned).collect()
    }

    fn list(&self) -> PathBuf {
        self.project.config().join(FILE)
    }
}

/// Returns the state of a path as bytes: a file's mode and digest, or a link's target.
fn state(root: &Path, beneath: &mut Beneath, path: &str) -> io::Result<Vec<u8>> {
    match beneath.entry(path)? {
        PathEntry::File(file) => {
            let mode = file.metadata()?.permissions().mode() & 0o777;
            Ok(format!("{mode:o} {:?}", Digest::of_file(file)?).into_bytes())
        }
        PathEntry::Nothing => Ok(b"gone".to_vec()),
        PathEntry::SomethingElse => {
            let target = fs::read_link(root.join(path)).unwrap_or_default();
            Ok([b"to ", target.as_os_str().as_bytes()].concat())
        }
    }
}

/// Returns the files that git tracks or would add: all but ignored untracked files and this program's own. `None` if
/// they cannot be determined, or there are too many.
pub(super) fn files_of(root: &Path) -> Option<BTreeSet<String>> {
    let tracked = TrackedPaths::below(root).unwrap_or_default();
    let mut found: BTreeSet<String> = tracked.files().collect();
    let is_whole = walk::each_in_project(root, |path, kind| {
        let is_ours = path == CONFIG || path == LOGS;
        if kind != EntryKind::Directory && !is_ours {
            found.insert(path);
        }
        !is_ours
    });
    is_whole.then_some(found)
}
