//! The repositories in a project and around it: from where git, started there, takes settings and programs.
//!
//! Lists directories, and reads ignore files and the small files that make a directory a repository. Follows no link
//! to a directory, and looks into none that git ignores.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::gitignore::{GITIGNORE, IgnoreRules};
use super::repository::{DOT_GIT, Repository};
use crate::sys::files::{Links, beginning};
use crate::sys::identity::{FileIdentity, identity};

/// As much as git reads of a `HEAD`, in bytes.
const HEAD_SIZE: u64 = 256;

/// How a project is searched: by the ignore rules of the time when this was made, so that nothing that they do not
/// ignore is hidden later by others.
#[derive(Debug)]
pub struct ProjectSearch {
    root: PathBuf,
    rules: Option<IgnoreRules>,
}

/// What a search has found.
#[derive(Debug, Default)]
pub struct GitFiles {
    /// Every `.gitignore` that git reads, relative to the root. That of a directory whose name is not UTF-8 is left
    /// out, as it is for replies.
    pub ignore_files: Vec<String>,
    /// The repositories, by absolute paths: whatever is called `.git`, and each directory that is laid out as a bare
    /// one. Those around the root count as well, as far up as git looks.
    pub repositories: Vec<PathBuf>,
}

impl ProjectSearch {
    /// To search the project in `root`, an absolute directory.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
            rules: IgnoreRules::load(root).ok(),
        }
    }

    /// Searches it as it is now.
    #[must_use]
    pub fn run(&self) -> GitFiles {
        let mut found = GitFiles::default();
        let has_git = |directory: &Path| directory.join(DOT_GIT).symlink_metadata().is_ok();
        let mut above = self.root.ancestors().skip(1);
        let mut is_top = has_git(&self.root);
        while !is_top && let Some(directory) = above.next() {
            is_top = has_git(directory);
            if is_top {
                found.repositories.push(directory.join(DOT_GIT));
            }
            if is_bare(|name| directory.join(name).symlink_metadata().is_ok()) {
                found.repositories.push(directory.to_path_buf());
            }
        }
        let mut pending = vec![PathBuf::new()];
        while let Some(directory) = pending.pop() {
            self.look_into(&directory, &mut found, &mut pending);
        }
        found
    }

    /// Notes what is in one directory, and which others are.
    fn look_into(&self, directory: &Path, found: &mut GitFiles, pending: &mut Vec<PathBuf>) {
        let place = self.root.join(directory);
        let mut layout = Vec::new();
        for entry in fs::read_dir(&place).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let path = directory.join(&name);
            if name == DOT_GIT {
                found.repositories.push(entry.path());
            } else if name == GITIGNORE {
                found.ignore_files.extend(path.to_str().map(str::to_owned));
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) && !self.ignores(&path) {
                pending.push(path);
            }
            if LAYOUT.iter().any(|part| name == *part) {
                layout.push(name);
            }
        }
        if is_bare(|part| layout.iter().any(|name| name == OsStr::new(part))) {
            // Not `join`, which leaves a slash behind the root.
            let bare = if directory == Path::new("") {
                &self.root
            } else {
                &place
            };
            found.repositories.push(bare.clone());
        }
    }

    fn ignores(&self, directory: &Path) -> bool {
        let asked = self.rules.as_ref().zip(directory.to_str());
        asked.is_some_and(|(rules, path)| rules.is_directory_ignored(path).unwrap_or_default())
    }
}

/// What a repository consists of, for git.
const LAYOUT: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

/// Whether a directory that has such names in it may be a bare repository.
fn is_bare(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

/// Which repository is at a path.
#[derive(Debug, PartialEq, Eq)]
pub struct RepositoryState {
    /// What the path itself is,
    entry: FileIdentity,
    /// and the folder that it leads to,
    folder: FileIdentity,
    /// by this name.
    own: PathBuf,
    /// Whether git takes that folder for a repository.
    pub is_repository: bool,
}

impl RepositoryState {
    /// Looks at what is at `path`, a `.git` or the directory of a bare repository.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let pointed = path.parent().filter(|_| path.ends_with(DOT_GIT));
        let pointed = pointed.and_then(|top| Repository::at(top).ok());
        let own = pointed.map_or_else(|| path.to_path_buf(), |repository| repository.own);
        Self {
            entry: identity(path.symlink_metadata()),
            folder: identity(own.metadata()),
            is_repository: is_git_directory(&own),
            own,
        }
    }
}

/// Whether git would take a directory for a repository.
fn is_git_directory(folder: &Path) -> bool {
    let common = super::repository::common_folder(folder);
    let has = |part: &str| {
        common
            .as_ref()
            .is_ok_and(|common| common.join(part).exists())
    };
    has("objects") && has("refs") && is_head(&folder.join("HEAD"))
}

/// Whether this is what git takes for a `HEAD`: a link or the name of something in `refs`, or a hash.
fn is_head(head: &Path) -> bool {
    if let Ok(target) = head.read_link() {
        return target.starts_with("refs");
    }
    let content = beginning(head, Links::Refused, HEAD_SIZE).unwrap_or_default();
    match content.strip_prefix(b"ref:") {
        Some(name) => name.trim_ascii_start().starts_with(b"refs/"),
        None => content.len() >= 40 && content[..40].iter().all(u8::is_ascii_hexdigit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let mut found = ProjectSearch::new(&root).run();
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
    fn later_rules_hide_nothing_that_was_there() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        let search = ProjectSearch::new(dir.path());
        assert!(search.run().repositories.is_empty());
        write(dir.path(), ".gitignore", "*\n");
        write(dir.path(), "a/.gitignore", "*\n");
        make_repository(&dir.path().join("a/b/.git"));
        let found = search.run().repositories;
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
