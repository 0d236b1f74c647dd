//! Locks a project, so that only one run at a time uses it.
//!
//! Touches only the lock on the root directory, which leaves no file behind. Guarantees that checking whether a
//! project is locked does not get in the way of a run.

use std::fs::File;

use super::files::Project;
use super::problem::ProjectProblem;
use crate::sys::file_lock::{self, LockProblem};
use crate::sys::files;

/// A project locked for one run. Dropping this releases it.
#[derive(Debug)]
pub struct ProjectLock {
    _root: File,
}

impl Project {
    /// Locks the project for one run. The kernel releases the lock when the run's process ends, for whatever reason;
    /// no lock file can be left behind.
    ///
    /// # Errors
    /// Fails if another run holds the lock, or locking fails.
    pub fn lock(&self) -> Result<ProjectLock, ProjectProblem> {
        let root = files::open_directory(self.root()).map_err(ProjectProblem::Unlockable)?;
        match file_lock::lock(&root) {
            Ok(()) => Ok(ProjectLock { _root: root }),
            Err(LockProblem::Held { process }) => Err(ProjectProblem::Held { process }),
            Err(LockProblem::Unlockable(error)) => Err(ProjectProblem::Unlockable(error)),
        }
    }

    /// Returns whether a run holds the lock; `true` if that is unknown.
    pub fn is_held(&self) -> bool {
        let root = files::open_directory(self.root());
        root.map_or(true, |root| file_lock::is_locked(&root).unwrap_or(true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_held_by_one_run_at_a_time_and_free_when_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        let project = Project::new(dir.path(), dir.path());
        let lock = project.lock().unwrap();
        let Err(ProjectProblem::Held { process }) = project.lock() else {
            panic!("the project should be held");
        };
        if cfg!(target_os = "linux") {
            assert_eq!(process, Some(std::process::id()));
        }
        assert!(project.is_held());
        drop(lock);
        // A child that another test has just started holds a copy of the lock until its own `exec`.
        let free = (0..1_000_000).any(|_| {
            std::thread::yield_now();
            project.lock().is_ok()
        });
        assert!(free);
    }
}
