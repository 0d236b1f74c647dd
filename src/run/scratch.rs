//! The scratch tree that a whole command works in, so that nothing failing stands in the project.
//!
//! Guarantees that the project
//! stays locked, and that of the directories made for the run, `agent-config` and `logs`, no empty one is left.

use std::path::PathBuf;
use std::{fs, io};

use crate::edit::Stamp;
use crate::exec::scratch::{Scratch, ScratchChange};
use crate::project::gitignore::IgnoreRules;
use crate::project::index::TrackedPaths;
use crate::project::{Project, ProjectLock};
use crate::record::result::ScratchRecord;
use crate::sys::files::PathError;

/// What becomes of the ignored files that builds have left in a scratch tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ScratchMode {
    /// Drop them
    Drop,
    /// Bring them over
    KeepIgnored,
}

/// The scratch tree of a command.
#[derive(Debug)]
pub struct ScratchRun {
    /// The tree.
    pub scratch: Scratch,
    /// Names of directories in the project that were made for the run.
    pub made: Vec<&'static str>,
    /// What becomes of ignored files.
    pub mode: ScratchMode,
    /// Time at which the tree began.
    pub began: Stamp,
    /// Directory for the journal of edits to the project itself.
    pub journal: PathBuf,
    /// The lock on the project.
    pub lock: ProjectLock,
}

impl ScratchRun {
    /// The entry for the run's record.
    pub fn record(&self) -> ScratchRecord {
        let how = self.scratch.kind();
        ScratchRecord { how }
    }

    /// Brings ignored files over to the project, with their times, if the user wants them.
    ///
    /// # Errors
    /// When the tree cannot be read, or a file not be written.
    pub fn bring_ignored(&self, project: &Project) -> Result<(), PathError> {
        if self.mode == ScratchMode::Drop {
            return Ok(());
        }
        self.changes(project, true)?.iter().try_for_each(|change| {
            let failed = PathError::of("write", &change.path);
            self.scratch.bring(change).map_err(failed)
        })
    }

    /// Returns what differs from the project: of what git ignores, or of the rest.
    ///
    /// # Errors
    /// When the tree cannot be read.
    pub fn changes(
        &self,
        project: &Project,
        are_ignored: bool,
    ) -> Result<Vec<ScratchChange>, PathError> {
        let rules = IgnoreRules::load(project.root())?;
        let tracked = TrackedPaths::below(project.root()).unwrap_or_default();
        let changes = self.scratch.changes();
        let mut found = Vec::new();
        for change in changes.map_err(PathError::of("read", project.root()))? {
            let path = change.path.to_string_lossy();
            let is_ignored = tracked.find(&path).is_none() && rules.is_ignored(&path, false)?;
            if is_ignored == are_ignored {
                found.push(change);
            }
        }
        Ok(found)
    }
}

impl Drop for ScratchRun {
    fn drop(&mut self) {
        for name in &self.made {
            // Fails unless it is empty, as intended.
            let _: io::Result<()> = fs::remove_dir(self.scratch.original().join(name));
        }
    }
}
