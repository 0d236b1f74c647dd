//! Finds paths in the work tree that a repository's configuration names: other settings files, and the hooks directory.
//!
//! Reads a limited number of configuration files of limited size. Follows every `includeIf`, whatever its condition,
//! because the condition may hold elsewhere.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::iter;
use std::path::{Path, PathBuf};

use bstr::{BStr, ByteSlice as _};
use gix_config::File as ConfigFile;
use gix_config::path::interpolate::Context;

use super::repository::{self, Repository};

/// Maximum number of configuration files to read.
const FILES: usize = 100;

/// Collects the paths that the configuration of these repositories names (each a `.git`, or the directory of a bare
/// one), existing or not, if they are in their work trees or in the project at `root`. `home` is the user's home
/// directory. Directories that contain the project are left out. Unreadable files are skipped: git cannot read them
/// either.
pub fn paths<'g>(
    root: &Path,
    repositories: impl Iterator<Item = &'g Path>,
    home: Option<&Path>,
) -> BTreeSet<PathBuf> {
    let root = located(root, root);
    let mut paths = BTreeSet::new();
    for repository in repositories.filter_map(|git| Repository::of_git(git).ok()) {
        let top = located(&repository.top, &repository.top);
        let is_within = |path: &PathBuf| path.starts_with(&top) || path.starts_with(&root);
        let mut pending = repository.config_files().to_vec();
        let mut read = BTreeSet::new();
        while let Some(file) = pending.pop() {
            if read.len() < FILES && read.insert(file.clone()) {
                let (included, hooks) = named_in(&file, &top, home);
                paths.extend(
                    included
                        .iter()
                        .chain(&hooks)
                        .filter(|path| is_within(path))
                        .cloned(),
                );
                pending.extend(included);
            }
        }
    }
    paths.retain(|path| !root.starts_with(path));
    paths
}

/// Collects the paths below `root` that the configuration of its repository names, relative to `root`, and their
/// targets if they are links.
pub fn paths_below(root: &Path, home: Option<&Path>) -> BTreeSet<PathBuf> {
    let git = repository::enclosing(root);
    let named = paths(root, iter::once(&*git), home);
    let root = located(root, root);
    let targets = named.iter().filter_map(|path| path.canonicalize().ok());
    let below = |path: PathBuf| Some(path.strip_prefix(&root).ok()?.to_path_buf());
    named
        .iter()
        .cloned()
        .chain(targets)
        .filter_map(below)
        .collect()
}

/// Returns the files that a configuration file includes, and the hooks directories that it names, in the work tree at
/// `top`.
fn named_in(file: &Path, top: &Path, home: Option<&Path>) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut included, mut hooks) = (Vec::new(), Vec::new());
    let config = repository::config(file).ok();
    for section in config.iter().flat_map(ConfigFile::sections) {
        let header = section.header().name();
        let is = |name: &str| header.eq_ignore_ascii_case(name.as_bytes());
        let (key, base, paths) = if is("include") || is("includeIf") {
            ("path", file.parent().unwrap_or(file), &mut included)
        } else if is("core") {
            ("hooksPath", top, &mut hooks)
        } else {
            continue;
        };
        let values = section.body().values(key).into_iter();
        paths.extend(values.filter_map(|value| path_of(value.as_bstr(), base, home)));
    }
    (included, hooks)
}

/// Resolves a path in a value relative to `base`, interpreting `~`, `~user` and `:(optional)` as git does.
fn path_of(value: &BStr, base: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let context = Context {
        home_dir: home,
        ..Context::default()
    };
    let path = gix_config::Path::from(value).interpolate(context).ok()?;
    Some(located(&base.join(path), base))
}

/// Resolves links and dots in a path, provided that its directory exists.
fn located(path: &Path, base: &Path) -> PathBuf {
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    match parent.zip(path.file_name()) {
        Some((parent, name)) => parent.join(name),
        None => gix_path::normalize(Cow::Borrowed(path), base)
            .map_or_else(|| path.to_path_buf(), Cow::into_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_home_directory_is_known_by_its_users_name() {
        let path =
            |value: &str| path_of(value.into(), Path::new("/base"), Some(Path::new("/home")));
        assert_eq!(
            path("~root/x"),
            path_of("x".into(), &path("~root").unwrap(), None)
        );
        assert_ne!(path("~root/x"), Some("/base/~root/x".into()));
        assert_eq!(path("~/x"), Some("/home/x".into()));
        assert_eq!(path(":(optional)x"), Some("/base/x".into()));
        assert_eq!(path("~no-such-user-here/x"), None);
    }

    #[test]
    fn included_files_and_hooks_are_named_under_any_condition() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let top = dir.join("top");
        let write = |name: &str, content: &str| {
            let path = dir.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        let named = |config: &str| {
            write("top/.git/config", config);
            let git = top.join(".git");
            let found = super::paths(&top.join("part"), [&*git].into_iter(), Some(&dir));
            let relative = found.iter().map(|path| path.strip_prefix(&top).unwrap());
            let paths: Vec<String> = relative.map(|path| path.display().to_string()).collect();
            paths.join(" ")
        };
        write("top/part/x", "");
        write("top/.gitconfig", "[Core]\n\thookspath = part/hooks\n");
        write("outside", "[include]\n\tpath = top/missing/from-outside\n");
        for (config, expected) in [
            ("", ""),
            ("[core]\n\thooksPath = .husky/_\n", ".husky/_"),
            ("[core]\n\thooksPath = ./a/../b\n", "b"),
            (
                "[core \"x\"]\n\thooksPath = a\n[CORE]\n\tHOOKSPATH=b\n",
                "a b",
            ),
            ("[core]\n\thooksPath = ../outside\n", ""),
            ("[core]\n\thooksPath = .\n", ""),
            ("[core]\n\thooksPath = ~/top/hooks\n", "hooks"),
            (
                "[include]\n\tpath = ../.gitconfig\n",
                ".gitconfig part/hooks",
            ),
            ("[includeIf \"onbranch:x\"]\n\tpath = ../part/y\n", "part/y"),
            (
                "[include]\n\tpath = ../../outside\n",
                "missing/from-outside",
            ),
            (
                "[include]\n\tpath = config\n\tpath = info/x\n",
                ".git/config .git/info/x",
            ),
            ("damaged", ""),
        ] {
            assert_eq!(named(config), expected, "{config}");
        }
        let quoted = format!("[core]\n\thooksPath = \"{}/a b\"\n", top.display());
        assert_eq!(named(&quoted), "a b");
    }
}
