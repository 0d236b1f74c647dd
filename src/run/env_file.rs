//! The user's `.env`: variables for commands that talk to servers of the user's.
//!
//! Reads that file, and what git says of it. Guarantees that the process's own environment comes first and is not
//! changed, and that nothing is told of the file but names, numbers of lines and the system's words.

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

/// The file's name.
const FILE: &str = ".env";

/// The content of the `.env` that a command reads.
#[derive(Debug, Default)]
pub struct EnvFile {
    /// The directory that it lies in; `None` where there is no file, or the command reads none.
    directory: Option<PathBuf>,
    variables: Environment,
    problems: Vec<EnvFileProblem>,
}

/// The `.env` cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum EnvFileProblem {
    /// It is there and cannot be read.
    #[error("cannot read `{}`: {cause}", .path.display())]
    #[diagnostic(help("make it a file of at most 1 MiB that you can read, or remove it"))]
    Unreadable { path: PathBuf, cause: String },
    /// It has come with the repository: whoever wrote it would choose where keys go.
    #[error("git tracks `.env`: others may have written it, and its keys are in the repository")]
    #[diagnostic(help("read it; if it is yours, `git rm --cached .env` and ignore it"))]
    Tracked,
    /// One of its lines cannot be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Line(#[from] DotenvProblem),
}

impl EnvFile {
    /// Finds that of the directory `here`, or else that of the project's root.
    pub fn find(here: &Path, root: &Path) -> Self {
        // A directory of that name is somebody's Python, and no `.env`.
        let has_one = |dir: &&Path| {
            let path = dir.join(FILE);
            path.symlink_metadata().is_ok() && !path.is_dir()
        };
        let found = [here, root].into_iter().find(has_one);
        found.map_or_else(Self::default, |directory| Self::read(here, directory))
    }

    fn read(here: &Path, directory: &Path) -> Self {
        // It is the user's own, and so is a link to it.
        let content = files::read(&directory.join(FILE), Links::Followed, MIB);
        let unreadable = |error: &io::Error| EnvFileProblem::Unreadable {
            path: place::relative(here, directory).join(FILE),
            cause: error.to_string(),
        };
        let (variables, problems) = match content {
            Ok(content) => {
                let (variables, problems) = dotenv::parse(&content);
                (variables, problems.into_iter().map(Into::into).collect())
            }
            // A link to nothing, or one that somebody has just removed.
            Err(error) if is_missing(&error) => Default::default(),
            Err(error) => (Vec::new(), vec![unreadable(&error)]),
        };
        let variables = variables.into_iter();
        Self {
            directory: Some(directory.to_path_buf()),
            variables: variables
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            problems,
        }
    }

    /// The environment with the file's variables, where it has none of the name.
    pub fn below<'e>(&self, environment: &'e Environment) -> Cow<'e, Environment> {
        match self.directory {
            Some(_) => Cow::Owned(environment.with_defaults(&self.variables)),
            None => Cow::Borrowed(environment),
        }
    }

    /// All that it sets, whether or not that counts: it may be secret.
    pub fn variables(&self) -> &Environment {
        &self.variables
    }

    /// Returns the reasons it cannot be used.
    pub fn problems(&self) -> Vec<EnvFileProblem> {
        let is_tracked = |directory: &Path| {
            let tracked = TrackedPaths::below(directory);
            tracked.is_ok_and(|tracked| tracked.find(FILE).is_some())
        };
        let is_tracked = self.directory.as_deref().is_some_and(is_tracked);
        let tracked = is_tracked.then_some(EnvFileProblem::Tracked);
        self.problems.iter().cloned().chain(tracked).collect()
    }

    /// Returns a warning if git would take the file.
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
