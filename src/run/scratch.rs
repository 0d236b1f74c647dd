//! The scratch tree that a whole command works in, so that the project never contains failing changes.
//!
//! Guarantees that the project stays locked, and that the directories created for the run, `agent-config` and `logs`,
//! do not remain if empty.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::exec::scratch::{Scratch, ScratchChange};
use crate::project::gitignore::IgnoreRules;
use crate::project::index::TrackedPaths;
use crate::project::{Project, ProjectLock};
use crate::sys::files::PathError;
use crate::sys::identity::Stamp;

/// The handling of ignored files that builds have left in a scratch tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ScratchMode {
    /// Discard ignored files
    Drop,
    /// Copy ignored files to the project
    KeepIgnored,
}

/// The scratch tree of a command.
#[derive(Debug)]
pub struct ScratchRun {
    /// The tree.
    pub scratch: Scratch,
    /// Names of directories in the project that were made for the run.
    pub made: Vec<&'static str>,
    /// The handling of ignored files.
    pub mode: ScratchMode,
    /// Time before the tree was created.
    pub began: Stamp,
    /// Directory for the journal of edits to the project itself.
    pub journal: PathBuf,
    /// The lock on the project.
    pub lock: ProjectLock,
}

impl ScratchRun {
    /// Brings ignored files over to the project, with their times, if the user wants them. Returns the failures.
    pub fn bring_ignored(&self, project: &Project) -> Vec<PathError> {
        if self.mode == ScratchMode::Drop {
            return Vec::new();
        }
        let bring = |change: ScratchChange| {
            let failed = PathError::of("write", &change.path);
            self.scratch.bring(&change).map_err(failed).err()
        };
        match self.changes(project, true) {
            Err(error) => vec![error],
            Ok(changes) => {
                let own = changes
                    .into_iter()
                    .filter(|change| !self.is_touched(&change.path));
                own.filter_map(bring).collect()
            }
        }
    }

    /// Returns whether others have changed or created the project's file since the run began.
    pub fn is_touched(&self, path: &Path) -> bool {
        let found = self.scratch.original().join(path).symlink_metadata();
        found.is_ok_and(|found| (found.ctime(), found.ctime_nsec()) > self.began)
    }

    /// Returns the changes in the tree, either to files that git ignores or to all others.
    ///
    /// # Errors
    /// Fails if the tree cannot be read.
    pub fn changes(
        &self,
        project: &Project,
        are_ignored: bool,
    ) -> Result<Vec<ScratchChange>, PathError> {
        let rules = IgnoreRules::load(project.root())?;
        let index = TrackedPaths::below(project.root()).unwrap_or_default();
        let plain = |path: &str| path.to_ascii_lowercase();
        let tracked: BTreeSet<_> = index.files().map(|path| plain(&path)).collect();
        let changes = self.scratch.changes();
        let mut found = Vec::new();
        for change in changes.map_err(PathError::of("read", project.root()))? {
            let path = change.path.to_string_lossy();
            let plain = PathBuf::from(plain(&path));
            let mut parts = plain.ancestors().filter_map(Path::to_str);
            let is_tracked = parts.any(|part| tracked.contains(part));
            let is_ignored = !is_tracked && rules.is_ignored(&path, false)?;
            if is_ignored == are_ignored {
                found.push(change);
            }
        }
        Ok(found)
    }
}

impl Drop for ScratchRun {
    fn drop(&mut self) {
        remove_made(&self.scratch.original(), &self.made);
    }
}

/// Removes those directories in the project that are empty.
pub fn remove_made(project: &Path, made: &[&str]) {
    for name in made {
        // Fails unless it is empty, as intended.
        let _: io::Result<()> = fs::remove_dir(project.join(name));
    }
}
