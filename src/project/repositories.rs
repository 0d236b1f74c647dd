//! Finds the repositories in and around a project, from which git takes settings and programs.
//!
//! Lists directories, and reads ignore files, the index and the small files that make a directory a repository. Skips
//! directories that git ignores, unless they contain tracked files. Only the top of a directory behind a link is
//! examined.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::FileType;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::gitignore::{GITIGNORE, IgnoreRules};
use super::index::TrackedPaths;
use super::repository::{DOT_GIT, Repository, is_git_directory, is_top};
use crate::sys::files::{PathError, is_missing, listed};
use crate::sys::identity::{FileIdentity, identity};

/// A search of a project, with the ignore rules in force when it was created. Rules that are added later cannot hide
/// anything from it.
#[derive(Debug)]
pub struct ProjectSearch {
    root: PathBuf,
    rules: Option<IgnoreRules>,
    /// Directories with tracked files, which git enters even if it ignores them.
    tracked: BTreeSet<String>,
}

/// Findings of a search.
#[derive(Debug, Default)]
pub struct GitFiles {
    /// Every `.gitignore` that git reads, relative to the root, except in directories whose name is not UTF-8, which
    /// replies cannot name either.
    pub ignore_files: Vec<String>,
    /// Files and links that the caller asked for and git does not ignore, relative to the root.
    pub named: Vec<String>,
    /// Absolute paths of the repositories: everything named `.git`, and directories with the layout of a bare
    /// repository. Includes those around the root, as far up as git searches.
    pub repositories: Vec<PathBuf>,
    /// Absolute paths of directories that cannot be listed. In them, only git's own names are tried.
    pub unlisted: Vec<PathBuf>,
}

impl ProjectSearch {
    /// Prepares to search the project in `root`, an absolute directory.
    pub fn new(root: &Path) -> Self {
        let mut tracked = BTreeSet::new();
        for path in TrackedPaths::below(root).unwrap_or_default().files() {
            let slashes = path.match_indices('/');
            tracked.extend(slashes.map(|(slash, _)| path[..slash].to_owned()));
        }
        Self {
            root: root.to_path_buf(),
            rules: IgnoreRules::load(root).ok(),
            tracked,
        }
    }

    /// Searches the project in its current state, also for the files that `is_named` accepts by their paths.
    ///
    /// # Errors
    /// Fails if a directory cannot be read for a reason other than its permissions or the length of its path.
    pub fn run(&self, is_named: impl Fn(&str) -> bool) -> Result<GitFiles, PathError> {
        let mut found = GitFiles::default();
        let mut above = self.root.ancestors().skip(1);
        let mut was_top = is_top(&self.root);
        while !was_top && let Some(directory) = above.next() {
            if has(directory, DOT_GIT) {
                was_top = is_top(directory);
                found.repositories.push(directory.join(DOT_GIT));
            }
            if is_bare(|name| has(directory, name)) {
                found.repositories.push(directory.to_path_buf());
            }
        }
        let mut pending = vec![PathBuf::new()];
        while let Some(directory) = pending.pop() {
            self.look_into(&directory, &is_named, &mut found, &mut pending)?;
        }
        Ok(found)
    }

    /// Records the findings in one directory, and adds its subdirectories to `pending`.
    fn look_into(
        &self,
        directory: &Path,
        is_named: &impl Fn(&str) -> bool,
        found: &mut GitFiles,
        pending: &mut Vec<PathBuf>,
    ) -> Result<(), PathError> {
        let place = self.root.join(directory);
        let mut layout = Vec::new();
        for (name, kind) in names(&place, found)? {
            let path = directory.join(&name);
            let entry = place.join(&name);
            let is_directory = kind.is_some_and(|kind| kind.is_dir());
            let named = path.to_str().filter(|path| !is_directory && is_named(path));
            let named = named.filter(|_| !self.ignores(&path, false));
            found.named.extend(named.map(str::to_owned));
            if name == DOT_GIT {
                found.repositories.push(entry);
            } else if name == GITIGNORE {
                found.ignore_files.extend(path.to_str().map(str::to_owned));
            } else if is_directory && !self.ignores(&path, true) {
                pending.push(path);
            } else if kind.is_some_and(|kind| kind.is_symlink()) && !self.ignores(&path, true) {
                found.repositories.extend(self.linked(&entry));
            }
            if LAYOUT.iter().any(|part| name == *part) {
                layout.push(name);
            }
        }
        if is_bare(|part| layout.iter().any(|name| name == OsStr::new(part))) {
            // `join` would leave a trailing slash after the root.
            let bare = if directory == Path::new("") {
                &self.root
            } else {
                &place
            };
            found.repositories.push(bare.clone());
        }
        Ok(())
    }

    /// Returns the repository at the top of the directory that a link leads to, with a path through the link; `None` if
    /// there is none, or the search finds it without the link.
    fn linked(&self, link: &Path) -> Option<PathBuf> {
        let target = link.canonicalize().ok().filter(|target| target.is_dir())?;
        let root = self.root.canonicalize().ok()?;
        let inner = target.strip_prefix(&root).ok();
        if root.starts_with(&target) || inner.is_some_and(|inner| !self.ignores(inner, true)) {
            return None;
        }
        if has(&target, DOT_GIT) {
            return Some(link.join(DOT_GIT));
        }
        is_bare(|name| has(&target, name)).then(|| link.to_path_buf())
    }

    fn ignores(&self, path: &Path, is_dir: bool) -> bool {
        let asked = self.rules.as_ref().zip(path.to_str());
        asked.is_some_and(|(rules, path)| {
            !self.tracked.contains(path) && rules.is_ignored(path, is_dir).unwrap_or_default()
        })
    }
}

/// Returns the names in a directory and their file types; only git's own if it cannot be listed but files in it can
/// still be opened by name.
fn names(
    place: &Path,
    found: &mut GitFiles,
) -> Result<Vec<(OsString, Option<FileType>)>, PathError> {
    let tried: Vec<_> = [DOT_GIT, GITIGNORE]
        .into_iter()
        .chain(LAYOUT)
        .map(OsStr::new)
        .collect();
    let (names, unlisted) = listed(place, &tried);
    if let Some(error) = unlisted.filter(|error| !is_missing(error)) {
        let harmless = [Errno::ACCESS, Errno::PERM, Errno::NAMETOOLONG];
        if !Errno::from_io_error(&error).is_some_and(|errno| harmless.contains(&errno)) {
            return Err(PathError::of("read", place)(error));
        }
        found.unlisted.push(place.to_path_buf());
    }
    Ok(names)
}

fn has(directory: &Path, name: &str) -> bool {
    directory.join(name).symlink_metadata().is_ok()
}

/// Names that make up a repository.
const LAYOUT: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

/// Returns whether a directory that contains these names may be a bare repository.
fn is_bare(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

/// The repository at a path, identified for comparison.
#[derive(Debug, PartialEq, Eq)]
pub struct RepositoryState {
    /// Identity of the path itself.
    entry: FileIdentity,
    /// Identity of the repository's folder, to which the path may point.
    folder: FileIdentity,
    /// Path of that folder.
    own: PathBuf,
    /// True if git accepts the folder as a repository.
    pub is_repository: bool,
}

impl RepositoryState {
    /// Determines the state of `path`, a `.git` or the directory of a bare repository.
    pub fn of(path: &Path) -> Self {
        let top = path.parent().filter(|_| path.ends_with(DOT_GIT));
        let pointed = top.and_then(|top| Repository::at(top).ok());
        let own = pointed.map_or_else(|| path.to_path_buf(), |repository| repository.own);
        Self {
            entry: identity(path.symlink_metadata()),
            folder: identity(own.metadata()),
            is_repository: is_git_directory(&own),
            own,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn write(root: &Path, name: &str, content: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn make_repository(folder: &Path) {
        write(folder, "HEAD", "ref: refs/heads/main\n");
        fs::create_dir_all(folder.join("objects")).unwrap();
        fs::create_dir_all(folder.join("refs")).unwrap();
    }

    #[test]
    fn repositories_are_found_wherever_git_does_not_ignore_them() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("outer/project");
        make_repository(&dir.path().join("outer/.git"));
        write(&root, ".gitignore", "/target\n");
        for made in ["sub/.git", "deep/er/bare", "target/x/.git", "target/bare"] {
            make_repository(&root.join(made));
        }
        make_repository(&root);
        write(&root, "linked/.git", "gitdir: ../sub/.git\n");
        write(&root, "half/HEAD", "");
        write(&root, "other/HEAD", "");
        write(&root, "other/commondir", "..");
        let mut found = ProjectSearch::new(&root).run(|_| false).unwrap();
        found.repositories.sort();
        let below = |path: &PathBuf| path.strip_prefix(dir.path()).unwrap().display().to_string();
        let names: Vec<String> = found.repositories.iter().map(below).collect();
        assert_eq!(
            names,
            [
                "outer/.git",
                "outer/project",
                "outer/project/deep/er/bare",
                "outer/project/linked/.git",
                "outer/project/other",
                "outer/project/sub/.git",
            ]
        );
        assert_eq!(found.ignore_files, [".gitignore"]);
    }

    #[test]
    fn a_link_out_of_what_is_searched_shows_the_repository_that_it_leads_to() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("project");
        write(&root, ".gitignore", "/target\n");
        for made in ["target/r/.git", "target/bare", "seen/.git"] {
            make_repository(&root.join(made));
        }
        let links = [
            ("src", "target/r"),
            ("bare", "target/bare"),
            ("up", ".."),
            ("same", "seen"),
            ("odd", "nowhere"),
        ];
        for (link, target) in links {
            symlink(target, root.join(link)).unwrap();
        }
        let mut found = ProjectSearch::new(&root)
            .run(|_| false)
            .unwrap()
            .repositories;
        found.sort();
        let expected = ["bare", "seen/.git", "src/.git"].map(|name| root.join(name));
        assert_eq!(found, expected);
    }

    #[test]
    fn unlistable_directory_is_probed_for_git_names() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let blind = dir.path().join("blind");
        make_repository(&blind.join(".git"));
        let set_mode =
            |mode| fs::set_permissions(&blind, fs::Permissions::from_mode(mode)).unwrap();
        set_mode(0o311);
        let is_root = fs::read_dir(&blind).is_ok();
        let found = ProjectSearch::new(dir.path()).run(|_| false).unwrap();
        set_mode(0o700);
        assert_eq!(found.repositories, [blind.join(".git")]);
        assert_eq!(found.unlisted.is_empty(), is_root);
    }

    #[test]
    fn later_rules_hide_nothing_that_was_there() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        let search = ProjectSearch::new(dir.path());
        assert!(search.run(|_| false).unwrap().repositories.is_empty());
        write(dir.path(), ".gitignore", "*\n");
        write(dir.path(), "a/.gitignore", "*\n");
        make_repository(&dir.path().join("a/b/.git"));
        let found = search.run(|_| false).unwrap().repositories;
        assert_eq!(found, [dir.path().join("a/b/.git")]);
    }

    #[test]
    fn a_repository_is_known_again() {
        let dir = tempfile::tempdir().unwrap();
        let git = dir.path().join(".git");
        make_repository(&git);
        let state = || RepositoryState::of(&git);
        let before = state();
        assert!(before.is_repository);
        write(&git, "HEAD", "01234567".repeat(5).as_str());
        write(&git, "index", "");
        assert_eq!(state(), before);
        write(&git, "HEAD", "evil");
        assert!(!state().is_repository);
        fs::remove_file(git.join("HEAD")).unwrap();
        symlink("refs/heads/main", git.join("HEAD")).unwrap();
        assert_eq!(state(), before);
        fs::rename(&git, dir.path().join("store")).unwrap();
        assert_ne!(state(), before);
        write(dir.path(), ".git", "gitdir: store\n");
        let pointing = state();
        assert!(pointing.is_repository && pointing != before);
        make_repository(&dir.path().join("evil"));
        write(dir.path(), ".git", "gitdir: evil\n");
        assert!(state().is_repository && state() != pointing);
    }
}
