//! The user's `.env`: variables for commands that talk to the user's servers.
//!
//! Reads that file, and git's index and ignore rules. Guarantees that the process's own environment takes precedence
//! and is not changed, and that messages show nothing of the file but names, line numbers and system errors.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use crate::project::gitignore::IgnoreRules;
use crate::project::index::TrackedPaths;
use crate::project::place;
use crate::project::repository::Repository;
use crate::sys::dotenv::{self, DotenvProblem};
use crate::sys::environment::Environment;
use crate::sys::files::{self, Links, MIB, is_missing};

/// Name of the file.
const FILE: &str = ".env";

/// The content of the `.env` that a command reads.
#[derive(Debug, Default)]
pub struct EnvFile {
    /// The directory that contains it; `None` if there is no file, or the command reads none.
    directory: Option<PathBuf>,
    variables: Environment,
    problems: Vec<DotenvProblem>,
}

impl EnvFile {
    /// Finds the `.env` in the directory `here`, or else in the project's root.
    pub fn find(here: &Path, root: &Path) -> Self {
        // A directory named `.env` is usually a Python virtual environment.
        let has_one = |dir: &&Path| {
            let path = dir.join(FILE);
            path.symlink_metadata().is_ok() && !path.is_dir()
        };
        let found = [here, root].into_iter().find(has_one);
        found.map_or_else(Self::default, |directory| Self::read(here, directory))
    }

    fn read(here: &Path, directory: &Path) -> Self {
        // The file belongs to the user, so a link to it is followed.
        let content = files::read(&directory.join(FILE), Links::Followed, MIB);
        let unreadable = |error: &io::Error| DotenvProblem::Unreadable {
            path: place::relative(here, directory).join(FILE),
            cause: error.to_string(),
        };
        let (variables, problems) = match content {
            Ok(content) => dotenv::parse(&content),
            // The link is dangling, or the file has just been removed.
            Err(error) if is_missing(&error) => Default::default(),
            Err(error) => (Vec::new(), vec![unreadable(&error)]),
        };
        Self {
            directory: Some(directory.to_path_buf()),
            variables: variables
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            problems,
        }
    }

    /// Returns the environment, with the file's variables as defaults.
    pub fn below<'e>(&self, environment: &'e Environment) -> Cow<'e, Environment> {
        match self.directory {
            Some(_) => Cow::Owned(environment.with_defaults(&self.variables)),
            None => Cow::Borrowed(environment),
        }
    }

    /// Returns all variables the file sets, whether or not they take effect: each may hold a secret.
    pub fn variables(&self) -> &Environment {
        &self.variables
    }

    /// Returns the reasons that the file cannot be used.
    pub fn problems(&self) -> Vec<DotenvProblem> {
        let tracks = |directory: &Path| {
            let tracked = TrackedPaths::below(directory);
            tracked.is_ok_and(|tracked| tracked.find(FILE).is_some())
        };
        let is_tracked = self.directory.as_deref().is_some_and(tracks);
        let tracked = is_tracked.then_some(DotenvProblem::Tracked);
        self.problems.iter().cloned().chain(tracked).collect()
    }

    /// Returns a warning if git does not ignore the file.
    pub fn exposure(&self) -> Option<&'static str> {
        let directory = self.directory.as_deref()?;
        Repository::of(directory).ok()??;
        let rules = IgnoreRules::load(directory);
        let is_ignored = rules.and_then(|rules| rules.is_ignored(FILE, false));
        (!is_ignored.is_ok_and(|ignored| ignored)).then_some(
            "git does not ignore `.env`, and could commit its keys: add a line `.env` to .gitignore",
        )
    }
}
