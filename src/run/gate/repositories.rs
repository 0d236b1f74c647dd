//! The repositories that git would use in the project and around it: no build may make one, or put another in the
//! place of one, since git runs what a repository's configuration and hooks name.
//!
//! Looks at the directories that git did not ignore before the run, and reads git's small files in there.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::files::shown;
use crate::project::repositories::{GitFiles, ProjectSearch, RepositoryState};
use crate::sys::files::PathError;
use crate::sys::text::escaped;

/// The repositories as they were before the run.
#[derive(Debug)]
pub struct Repositories {
    search: ProjectSearch,
    known: BTreeMap<PathBuf, RepositoryState>,
    unlisted: Vec<PathBuf>,
}

/// The kind of change to a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepositoryChange {
    /// There was none.
    Made,
    /// There is none any more, for git.
    Gone,
    /// It is another.
    Replaced,
    /// There may be one: the directory could be listed, or was not there.
    Unlisted,
}

impl RepositoryChange {
    /// Returns the words for it, to follow the path.
    pub fn words(self) -> &'static str {
        match self {
            Self::Made => "is a git repository now",
            Self::Gone => "is no git repository any more",
            Self::Replaced => "is another git repository now",
            Self::Unlisted => "cannot be listed, so that repositories in it are not known",
        }
    }
}

impl Repositories {
    /// Those that were `found`.
    pub fn new(search: ProjectSearch, found: GitFiles) -> Self {
        let state = |path: PathBuf| (RepositoryState::of(&path), path);
        let known = found.repositories.into_iter().map(state);
        Self {
            search,
            known: known.map(|(state, path)| (path, state)).collect(),
            unlisted: found.unlisted,
        }
    }

    /// Returns their paths.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.known.keys().map(PathBuf::as_path)
    }

    /// Returns the paths of those that git takes for repositories.
    pub fn used(&self) -> impl Iterator<Item = &Path> {
        let used = self.known.iter().filter(|(_, state)| state.is_repository);
        used.map(|(path, _)| path.as_path())
    }

    /// Returns the changes to them, by paths as a user is to see them.
    ///
    /// # Errors
    /// When a directory cannot be read.
    pub fn changes(&self, root: &Path) -> Result<Vec<(String, RepositoryChange)>, PathError> {
        let found = self.search.run()?;
        let unlisted = found.unlisted.into_iter();
        let unlisted = unlisted.filter(|path| !self.unlisted.contains(path));
        let unlisted = unlisted.map(|path| (path, RepositoryChange::Unlisted));
        let found = found.repositories.into_iter();
        let made = found.filter(|path| !self.known.contains_key(path));
        let made = made.map(|path| (path, RepositoryChange::Made));
        let known = self.known.iter().filter_map(|(path, before)| {
            let after = RepositoryState::of(path);
            let change = match (before.is_repository, after.is_repository) {
                _ if after == *before => return None,
                (false, false) => return None,
                (false, true) => RepositoryChange::Made,
                (true, false) => RepositoryChange::Gone,
                (true, true) => RepositoryChange::Replaced,
            };
            Some((path.clone(), change))
        });
        let all = known.chain(made).chain(unlisted);
        let shown = all.map(|(path, change)| (shown(root, &path), change));
        Ok(shown.collect())
    }
}

/// The changes in lines, for the log.
pub fn lines(changes: &[(String, RepositoryChange)]) -> String {
    let mut lines = String::new();
    for (path, change) in changes {
        // A text takes whatever is written to it.
        let _ = writeln!(lines, "`{}` {}", escaped(path), change.words());
    }
    lines
}
