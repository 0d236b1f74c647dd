//! Finds the files from which git takes settings and programs, which must be read-only in a sandbox.
//!
//! Reads only the project's directories and git's own small files.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::sys::files::{Links, beginning, listed};

/// Maximum length of a path in bytes.
const LONGEST: u64 = 8192;

/// Name of a repository's folder or file in its work tree.
const DOT_GIT: &str = ".git";

/// Directories in the project's root that are not searched.
const NOT_SEARCHED: [&str; 2] = ["target", "logs"];

/// Repositories and key folders below the project's root.
#[derive(Debug, Default)]
pub(super) struct Nested {
    /// git folders and links to them, sorted. Their hooks and settings are used just like the project's own.
    pub repositories: Vec<PathBuf>,
    /// Key folders of other projects, sorted.
    pub keys: Vec<PathBuf>,
}

impl Nested {
    /// Searches for repositories and for key folders named like `keys`. Skips `target`, which belongs to builds, and
    /// `logs`, which has a folder for every run.
    pub fn find(root: &Path, keys: &Path) -> Self {
        let mut found = Self::default();
        let mut pending = vec![root.to_path_buf()];
        let searched: Vec<_> = keys
            .file_name()
            .into_iter()
            .chain([OsStr::new(DOT_GIT)])
            .collect();
        while let Some(directory) = pending.pop() {
            let is_root = directory == root;
            for (name, kind) in listed(&directory, &searched).0 {
                let path = directory.join(&name);
                let is_directory = kind.is_some_and(|kind| kind.is_dir());
                if name == DOT_GIT {
                    if !is_root {
                        found.repositories.push(path);
                    }
                } else if is_directory && keys.file_name() == Some(&name) {
                    if !is_root {
                        found.keys.push(path);
                    }
                } else if is_directory
                    && !(is_root && NOT_SEARCHED.iter().any(|other| name == *other))
                {
                    pending.push(path);
                }
            }
        }
        found.repositories.sort();
        found.keys.sort();
        found
    }
}

/// Returns these repositories and the folders that belong to them elsewhere: those that `.git` files point to, and
/// those shared by several worktrees.
pub(super) fn with_linked<'g>(all_git: impl IntoIterator<Item = &'g PathBuf>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for git in all_git {
        let linked = linked_git(git);
        let common = common_folder(linked.as_ref().unwrap_or(git));
        found.extend([Some(git.clone()), linked, common].into_iter().flatten());
    }
    found
}

/// Returns the settings and hooks of a repository, existing or not; empty if there is no repository. Includes those of
/// its submodules and worktrees, and the state of an interrupted operation, since a rebase runs commands.
pub fn settings(git: &Path) -> Vec<PathBuf> {
    let mut found = Vec::from_iter(git.is_file().then(|| git.to_path_buf()));
    let mut pending = VecDeque::from(with_linked([&git.to_path_buf()]));
    pending.retain(|folder| folder.is_dir());
    while let Some(folder) = pending.pop_front() {
        found.extend(NAMES.split(' ').map(|name| folder.join(name)));
        for part in ["modules", "worktrees"] {
            pending.extend(inner_folders(&folder.join(part)));
        }
    }
    found
}

/// Names from which git takes settings and programs. `config.worktree` and `commondir` say where others are.
const NAMES: &str = "config hooks config.worktree commondir rebase-merge rebase-apply sequencer";

/// Returns the git folders of submodules or worktrees below `parent`. The name of a submodule may be a path.
fn inner_folders(parent: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![parent.to_path_buf()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let is_folder = ["HEAD", "config", "commondir"]
                .iter()
                .any(|name| entry.path().join(name).symlink_metadata().is_ok());
            if is_folder {
                found.push(entry.path());
            } else {
                pending.push(entry.path());
            }
        }
    }
    found
}

/// Returns the folder that a `.git` file points to, if it is such a file.
fn linked_git(git: &Path) -> Option<PathBuf> {
    let pointer = short_file(git)?;
    Some(git.parent()?.join(pointer.strip_prefix("gitdir:")?.trim()))
}

/// Returns the shared folder with settings and hooks that a worktree's own folder points to, if it is one.
fn common_folder(git: &Path) -> Option<PathBuf> {
    Some(git.join(short_file(&git.join("commondir"))?.trim()))
}

/// Reads the beginning of a file; git writes only short files here.
fn short_file(path: &Path) -> Option<String> {
    String::from_utf8(beginning(path, Links::Followed, LONGEST).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlistable_directory_is_probed_for_sensitive_names() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let blind = dir.path().join("blind");
        for name in [".git", "agent-config"] {
            fs::create_dir_all(blind.join(name)).unwrap();
        }
        let set_mode =
            |mode| fs::set_permissions(&blind, fs::Permissions::from_mode(mode)).unwrap();
        set_mode(0o311);
        let found = Nested::find(dir.path(), &dir.path().join("agent-config"));
        set_mode(0o700);
        assert_eq!(found.repositories, [blind.join(".git")]);
        assert_eq!(found.keys, [blind.join("agent-config")]);
    }

    #[test]
    fn settings_are_found_wherever_a_repository_has_them() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        let found = |git: &str| {
            let found = settings(&dir.path().join(git)).into_iter();
            let inner = |path: PathBuf| {
                let path = path.strip_prefix(dir.path()).unwrap().to_path_buf();
                path.display().to_string()
            };
            found.map(inner).collect::<Vec<_>>().join(" ")
        };
        let folder = |name: &str| {
            let parts = NAMES.split(' ').map(|part| format!("{name}/{part}"));
            parts.collect::<Vec<_>>().join(" ")
        };
        write("plain/HEAD", "");
        assert_eq!(found("plain"), folder("plain"));
        write("plain/worktrees/one/commondir", "../..\n");
        write("tree/.git", "gitdir: ../plain/worktrees/one\n");
        let own = folder("tree/../plain/worktrees/one");
        let common = folder("tree/../plain/worktrees/one/../..");
        let listed = folder("tree/../plain/worktrees/one/../../worktrees/one");
        let expected = format!("tree/.git {own} {common} {listed}");
        assert_eq!(found("tree/.git"), expected);
        write("plain/modules/a/b/HEAD", "");
        write("plain/modules/a/b/modules/c/config", "");
        let inner = [
            "plain",
            "plain/modules/a/b",
            "plain/worktrees/one",
            "plain/modules/a/b/modules/c",
        ];
        let mut all: Vec<String> = inner
            .map(folder)
            .join(" ")
            .split(' ')
            .map(String::from)
            .collect();
        let mut names: Vec<String> = found("plain").split(' ').map(String::from).collect();
        all.sort();
        names.sort();
        assert_eq!(names, all);
        write("odd/.git", "no link\n");
        assert_eq!(found("odd/.git"), "odd/.git");
        assert_eq!(found("missing"), "");
    }
}
