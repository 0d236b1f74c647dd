//! The gate: the files that determine how a change is judged. No build may change what the next build is judged by, nor
//! create or replace a git repository.
//!
//! Reads these files, and lists the project's directories before the run and after each build.

mod files;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, FileType};
use std::path::{Path, PathBuf};

use self::files::{Change, GateFiles, GatePath, MADE, is_denied, shown};
use super::context::Context;
use crate::edit::PROTECTED_FILES;
use crate::edit::protection::{ProtectedValues, Protection};
use crate::exec::sandbox::settings;
use crate::project::index::TrackedPaths;
use crate::project::repositories::{GitFiles, ProjectSearch, RepositoryState};
use crate::project::repository::DOT_GIT;
use crate::project::{CONFIG, LOGS, ProjectProblem, configured};
use crate::record::run_files;
use crate::sys::files::PathError;
use crate::sys::text::{escaped, first_lines};

/// A protected file that builds write.
const CARGO_LOCK: &str = "Cargo.lock";
/// Maximum number of changed files named.
const NAMED: usize = 10;

/// The gate's files and the repositories as they were before the run.
#[derive(Debug)]
pub struct Gate {
    files: GateFiles,
    protection: Protection,
    /// The values that the project protects.
    values: ProtectedValues,
    /// The files that git's configuration names.
    configured: BTreeSet<PathBuf>,
    /// The states of these files, and of git's own settings and hooks, before the latest build; replies may change the
    /// former.
    named: GateFiles,
    search: ProjectSearch,
    /// The repositories in the project and around it, by their paths.
    repositories: BTreeMap<PathBuf, RepositoryState>,
    /// Directories that could not be listed.
    unlisted: Vec<PathBuf>,
}

impl Gate {
    /// Records the state of the files below the root: the protected ones, except `Cargo.lock`, which builds write,
    /// those that the project protects and git tracks, or that it protects by name, and every `.gitignore` that git
    /// reads; and of the repositories.
    ///
    /// # Errors
    /// Fails if a file cannot be examined.
    pub fn new(context: &Context<'_>) -> Result<Self, PathError> {
        let (root, home) = (context.project.root(), context.home());
        let protection = context.protection.clone();
        let tracked = if protection.covers_none() {
            TrackedPaths::default()
        } else {
            TrackedPaths::below(root).unwrap_or_default()
        };
        let named = tracked.files().filter(|path| protection.covers(path));
        let search = ProjectSearch::new(root);
        let found = found(&search, &protection)?;
        let repositories = found.repositories.iter().map(PathBuf::as_path);
        let configured = configured::paths(root, repositories, home);
        let at_root = PROTECTED_FILES.iter().map(|name| (*name).to_owned());
        let paths = at_root
            .chain(found.ignore_files.iter().cloned())
            .chain(found.named.iter().cloned())
            .chain(named)
            .filter(|path| path != CARGO_LOCK)
            .map(|path| GatePath::below(root, path));
        let files = GateFiles::new(paths.collect())?;
        Ok(Self {
            files,
            values: protection.values(root),
            protection,
            configured,
            named: GateFiles::default(),
            search,
            repositories: found
                .repositories
                .into_iter()
                .map(|path| (path.clone(), RepositoryState::of(&path)))
                .collect(),
            unlisted: found.unlisted,
        })
    }

    /// Returns the repositories in the project and around it, before the run.
    pub fn repositories(&self) -> impl Iterator<Item = &Path> {
        self.repositories.keys().map(PathBuf::as_path)
    }

    /// Records the state of the files that git's configuration names, just before a build.
    ///
    /// # Errors
    /// Fails if a file cannot be examined.
    pub fn before_build(&mut self) -> Result<(), PathError> {
        self.named = GateFiles::new(self.named_files())?;
        Ok(())
    }

    /// Returns the files from which git takes settings and programs: its own, those that its configuration names, and
    /// the entries of such directories; for links, their targets as well.
    fn named_files(&self) -> BTreeSet<GatePath> {
        let used = self
            .repositories
            .iter()
            .filter(|(_, state)| state.is_repository);
        let own = used.flat_map(|(path, _)| settings(path));
        let mut files = Vec::new();
        for path in self.configured.iter().cloned().chain(own) {
            let kind = path.symlink_metadata().map(|found| found.file_type()).ok();
            if kind.is_some_and(|kind| !kind.is_file()) {
                for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
                    add(entry.path(), entry.file_type().ok(), &mut files);
                }
            }
            add(path, kind, &mut files);
        }
        files.iter().filter_map(|path| GatePath::of(path)).collect()
    }

    /// Compares the files and repositories with their recorded state, and checks that git still ignores the key files.
    /// Returns the change, if any.
    ///
    /// # Errors
    /// Fails if a file or directory cannot be examined.
    pub fn change(&self, context: &Context<'_>) -> Result<Option<GateChanged>, PathError> {
        let (project, key_files) = (&context.project, context.key_files());
        let root = project.root();
        let mut diff = String::new();
        let found = found(&self.search, &self.protection)?;
        let named = found.named.iter();
        let named = named.map(|path| GatePath::below(root, path.clone()));
        let mut files = self.files.changes(root, &named.collect(), &mut diff)?;
        files.extend(self.named.changes(root, &self.named_files(), &mut diff)?);
        let found_values = self.protection.values(root);
        let values = found_values
            .iter()
            .filter(|(at, value)| self.values.get(at) != Some(value));
        for ((path, pointer), _) in values {
            diff.push_str(&format!("`{}` has another `{pointer}`\n", escaped(path)));
            files.push((path.clone(), "has other values that are protected"));
        }
        let exposes_keys = match project.check_keys_ignored(&key_files) {
            Ok(()) => false,
            Err(ProjectProblem::Unreadable { path, source }) if !is_denied(&source) => {
                return Err(PathError::of("read", path)(source));
            }
            Err(_) => true,
        };
        let repositories = self.repository_changes(root, found);
        for (path, words) in &repositories {
            diff.push_str(&format!("`{}` {words}\n", escaped(path)));
        }
        let has_changed = exposes_keys || !files.is_empty() || !repositories.is_empty();
        Ok(has_changed.then_some(GateChanged {
            files,
            repositories,
            exposes_keys,
            is_scratch: project.is_scratch(),
            diff,
        }))
    }

    /// Changes to repositories. Git runs what their configurations and hooks name, so no build may create a repository
    /// or replace one with another.
    fn repository_changes(&self, root: &Path, found: GitFiles) -> Vec<Change> {
        let unlisted = found
            .unlisted
            .into_iter()
            .filter(|path| !self.unlisted.contains(path))
            .map(|path| {
                let words = "cannot be listed, so repositories in it are not known";
                (path, words)
            });
        let found = found.repositories.into_iter();
        let made = found
            .filter(|path| !self.repositories.contains_key(path))
            .map(|path| (path, "is a git repository now"));
        let known = self.repositories.iter().filter_map(|(path, before)| {
            let after = RepositoryState::of(path);
            let words = match (before.is_repository, after.is_repository) {
                _ if after == *before => return None,
                (false, false) => return None,
                (false, true) => "is a git repository now",
                (true, false) => "is no git repository any more",
                (true, true) => "is another git repository now",
            };
            Some((path.clone(), words))
        });
        let all = known.chain(made).chain(unlisted);
        all.map(|(path, words)| (shown(root, &path), words))
            .collect()
    }
}

/// Finds the repositories, and the files that the project protects by their names, except those that runs and builds
/// write. What builds add to a protected directory, such as the snapshot of a new test, does not count.
fn found(search: &ProjectSearch, protection: &Protection) -> Result<GitFiles, PathError> {
    let written = [CONFIG, LOGS, CARGO_LOCK];
    let is_written = |path: &str| written.iter().any(|own| Path::new(path).starts_with(own));
    search.run(|path| protection.names(path) && !is_written(path))
}

/// Adds the path, unless it is a directory; for a link, its target as well.
fn add(path: PathBuf, kind: Option<FileType>, files: &mut Vec<PathBuf>) {
    if kind.is_some_and(|kind| kind.is_symlink()) {
        let target = path.canonicalize().ok();
        files.extend(target.filter(|target| !target.is_dir()));
    }
    if !kind.is_some_and(|kind| kind.is_dir()) {
        files.push(path);
    }
}

/// A build has changed the files or repositories that it is judged by.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[diagnostic(code("gate-changed"), help("{}", self.hint()))]
pub struct GateChanged {
    files: Vec<Change>,
    repositories: Vec<Change>,
    /// True if git no longer ignores the key files.
    exposes_keys: bool,
    /// True if the build ran in a scratch tree, from which none of these files reaches the project.
    is_scratch: bool,
    /// The changes as text, for the log.
    pub diff: String,
}

impl GateChanged {
    /// Returns a suggestion for the user.
    pub fn hint(&self) -> String {
        let diff = format!("see `{}` in the run's folder", run_files::GATE);
        let is_git = |path: &str| Path::new(path).iter().any(|name| name == DOT_GIT);
        let is_known = |(path, words): &&Change| *words != MADE && !is_git(path);
        let is_left = |(path, _): &&Change| !self.is_scratch || Path::new(path).is_absolute();
        let files: Vec<&Change> = self.files.iter().filter(is_left).collect();
        let has_repositories = self.repositories.iter().any(|change| is_left(&change));
        if self.is_scratch && files.is_empty() && !has_repositories {
            return diff;
        }
        let names: Vec<String> = files
            .iter()
            .copied()
            .filter(is_known)
            .map(|(path, _)| escaped(path))
            .take(NAMED)
            .collect();
        let mut hint = match names.join(" ") {
            none if none.is_empty() => format!("{diff}, and undo it by hand"),
            names => format!(
                "{diff}; these files stay as the build left them: `git checkout -- {names}` restores what git tracks"
            ),
        };
        if has_repositories || files.iter().any(|(path, _)| is_git(path)) {
            hint.push_str("; until then, git may run programs of the build's choice there, unless it was your own git");
        }
        hint
    }
}

impl fmt::Display for GateChanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self
            .files
            .iter()
            .chain(&self.repositories)
            .map(|(path, words)| format!("`{}` {words}", escaped(path)));
        let mut named = first_lines(all, NAMED);
        if self.exposes_keys {
            named.push("git no longer ignores the keys in `agent-config`".to_owned());
        }
        write!(
            f,
            "the build changed files that no build may change: {}",
            named.join(", ")
        )
    }
}
