//! The git repository that a project belongs to, and where git stores its data.
//!
//! Reads git's pointer files and configuration, if they are regular files of limited size. Starts no git, follows no
//! `include` in the configuration, and ignores environment variables: only the state on disk counts.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use gix_config::File as ConfigFile;
use gix_config::file::Metadata;
use gix_config::file::init::Options;
use regex::Regex;

use crate::sys::files::{self, IfThere as _, Links, MIB, PathError};
use crate::sys::text::regex;

/// Hint for a repository that cannot be read.
pub(crate) const MEND_REPOSITORY: &str = "fix the repository: `git status` must work in it; if git reports dubious \
    ownership, run `git config --global --add safe.directory DIR`";

/// Name of a repository's folder or file in its work tree.
pub const DOT_GIT: &str = ".git";
/// Maximum size of a configuration file in bytes.
const LARGEST_CONFIG: u64 = MIB;
/// Maximum size in bytes of a file that git reads by name.
const LARGEST_READ: u64 = 16 * MIB;
/// Maximum size in bytes of a file with a path to another place.
const LARGEST_POINTER: u64 = 8 << 10;

/// Number of bytes that git reads from `HEAD`.
const HEAD_SIZE: u64 = 256;
/// Number of references that git follows to a commit.
const MAX_REFERENCES: usize = 5;

/// Matches sections that configure filters, or include files that may do so. git allows no blank after the bracket.
static FILTERS: LazyLock<Regex> = LazyLock::new(|| regex(r"(?i)\[(?:filter|include)"));

/// A repository, described by its directories.
#[derive(Debug)]
pub struct Repository {
    /// Top of its work tree.
    pub top: PathBuf,
    /// Folder of this work tree, with its index.
    pub own: PathBuf,
    /// Folder shared by all work trees, with the configuration and ignore rules.
    pub common: PathBuf,
}

impl Repository {
    /// Finds the repository whose work tree contains `root`, an absolute directory. Searches upwards as git does,
    /// skipping directories named `.git` that are not repositories; such a directory is used only if nothing else is
    /// found.
    ///
    /// # Errors
    /// Fails if `.git` cannot be read or does not lead to a directory, so it is unknown what git ignores and tracks.
    pub fn of(root: &Path) -> Result<Option<Self>, PathError> {
        let has_git = |dir: &&Path| dir.join(DOT_GIT).symlink_metadata().is_ok();
        let mut found = root.ancestors().filter(has_git).peekable();
        let innermost = found.peek().copied();
        let top = found.find(|dir| is_top(dir)).or(innermost);
        top.map(Self::at).transpose()
    }

    /// Opens the repository at `git`, a `.git` or the directory of a bare one.
    ///
    /// # Errors
    /// Fails if it does not lead to a directory.
    pub fn of_git(git: &Path) -> Result<Self, PathError> {
        match git.parent().filter(|_| git.ends_with(DOT_GIT)) {
            Some(top) => Self::at(top),
            None => Ok(Self {
                top: git.to_path_buf(),
                own: git.to_path_buf(),
                common: common_folder(git)?,
            }),
        }
    }

    /// Finds the repository in a directory, which may be one without a work tree.
    ///
    /// # Errors
    /// Fails if the directory's pointer files cannot be read, or lead nowhere.
    pub fn within(directory: &Path) -> Result<Self, PathError> {
        let dot_git = directory.join(DOT_GIT);
        let is_bare = dot_git.symlink_metadata().is_err();
        Self::of_git(if is_bare { directory } else { &dot_git })
    }

    /// Opens the repository at `top`: `.git` itself, or the folder to which a work tree's or submodule's `.git` points.
    pub(super) fn at(top: &Path) -> Result<Self, PathError> {
        let dot_git = top.join(DOT_GIT);
        let own = if dot_git.is_dir() {
            dot_git
        } else {
            let target = read_pointer(&dot_git, "gitdir:")
                .and_then(|target| target.ok_or_else(|| invalid("it leads to no repository")));
            directory(top, target, &dot_git)?
        };
        let common = common_folder(&own)?;
        let top = top.to_path_buf();
        Ok(Self { top, own, common })
    }

    /// Returns whether its configuration may define filters, which git runs to compare files: it has such a section, or
    /// includes other files. A match in a comment counts as well.
    ///
    /// # Errors
    /// Fails if the configuration cannot be read.
    pub fn may_filter(&self) -> io::Result<bool> {
        for file in self.config_files() {
            let content = read(&file, LARGEST_CONFIG)?.unwrap_or_default();
            if FILTERS.is_match(&String::from_utf8_lossy(&content)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Checks that the files that git reads by name are regular files of limited size, because git would hang on a pipe
    /// or an endless file.
    ///
    /// # Errors
    /// Fails if one of them is not, or cannot be read.
    pub fn check_readable(&self) -> Result<(), PathError> {
        let top = [".gitattributes", ".gitignore", ".gitmodules", ".mailmap"];
        let common = ["info/attributes", "info/exclude", "packed-refs", "shallow"];
        let files = top
            .map(|name| self.top.join(name))
            .into_iter()
            .chain(common.map(|name| self.common.join(name)))
            .chain([self.own.join("HEAD")]);
        for file in files {
            read(&file, LARGEST_READ).map_err(PathError::of("read", file))?;
        }
        Ok(())
    }

    /// Returns the commit that is checked out, in hexadecimal digits; `None` if there is none, or it cannot be read.
    pub(super) fn head(&self) -> Option<String> {
        let text = |file: PathBuf, limit| {
            let content = read(&file, limit).ok()??;
            Some(String::from_utf8_lossy(&content).trim().to_owned())
        };
        let mut name = "HEAD".to_owned();
        for _ in 0..MAX_REFERENCES {
            let loose = [&self.own, &self.common].map(|folder| folder.join(&name));
            let Some(found) = loose.into_iter().find_map(|file| text(file, HEAD_SIZE)) else {
                let packed = text(self.common.join("packed-refs"), LARGEST_READ)?;
                let mut refs = packed.lines().filter_map(|line| line.split_once(' '));
                return refs.find_map(|(id, packed)| (packed == name).then(|| id.to_owned()));
            };
            match found.strip_prefix("ref:") {
                Some(next) => next.trim().clone_into(&mut name),
                None => return Some(found),
            }
        }
        None
    }

    /// Returns the prefix that paths below `root`, which is in the work tree, have in the index and in ignore rules.
    pub(super) fn prefix(top: &Path, root: &Path) -> Vec<u8> {
        let inside = root.strip_prefix(top).unwrap_or(Path::new(""));
        let mut prefix = inside.as_os_str().as_encoded_bytes().to_vec();
        if !prefix.is_empty() {
            prefix.push(b'/');
        }
        prefix
    }

    /// Parses the repository's own configuration file, without included files.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is invalid.
    pub fn config(&self) -> io::Result<ConfigFile> {
        config(&self.common.join("config"))
    }

    /// Returns the files that configure it, without those that they include.
    pub(super) fn config_files(&self) -> [PathBuf; 3] {
        [
            self.common.join("config"),
            self.common.join("config.worktree"),
            self.own.join("config.worktree"),
        ]
    }
}

/// Returns the nearest directory, from `directory` upwards, that has a `.git`, whether or not that is a repository.
pub fn nearest_top(directory: &Path) -> Option<&Path> {
    let has_git = |above: &&Path| above.join(DOT_GIT).symlink_metadata().is_ok();
    directory.ancestors().find(has_git)
}

/// Returns the `.git` of the repository that contains the project at `root`, or the path where one would be.
pub fn enclosing(root: &Path) -> PathBuf {
    let is_there = |git: &PathBuf| git.symlink_metadata().is_ok();
    // A `.git` that cannot be read may still be a repository.
    let repository = Repository::of(root).ok().flatten();
    let top = repository.iter().map(|repository| repository.top.as_path());
    let directories = top.chain(root.ancestors());
    let found = directories
        .map(|directory| directory.join(DOT_GIT))
        .find(is_there);
    found.unwrap_or_else(|| root.join(DOT_GIT))
}

/// Returns whether git stops searching upwards here. A `.git` that is not a directory is a repository or an error.
pub(super) fn is_top(directory: &Path) -> bool {
    let dot_git = directory.join(DOT_GIT);
    match dot_git.symlink_metadata() {
        Ok(found) if found.is_dir() || dot_git.is_dir() => is_git_directory(&dot_git),
        found => found.is_ok(),
    }
}

/// Returns whether git would accept a directory as a repository.
pub(super) fn is_git_directory(folder: &Path) -> bool {
    let common = common_folder(folder);
    let has = |part: &str| matches!(&common, Ok(common) if common.join(part).exists());
    has("objects") && has("refs") && is_head(&folder.join("HEAD"))
}

/// Returns whether git accepts this as a `HEAD`: a link or reference into `refs`, or a hash.
fn is_head(head: &Path) -> bool {
    let Ok(content) = files::beginning(head, Links::Refused, HEAD_SIZE) else {
        let target = head.read_link();
        return target.is_ok_and(|target| target.starts_with("refs"));
    };
    match content.strip_prefix(b"ref:") {
        Some(name) => name.trim_ascii_start().starts_with(b"refs/"),
        None => content.len() >= 40 && content[..40].iter().all(u8::is_ascii_hexdigit),
    }
}

/// Reads one of git's files; `None` if it does not exist.
///
/// # Errors
/// Fails if the path is not a regular file, or the file is larger than `limit` bytes or cannot be read.
pub(super) fn read(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    files::read(path, Links::Followed, limit).if_there()
}

/// Parses a configuration file, without those that it includes; a missing one is empty.
///
/// # Errors
/// Fails if it cannot be read or parsed.
pub(super) fn config(file: &Path) -> io::Result<ConfigFile> {
    let content = read(file, LARGEST_CONFIG)?.unwrap_or_default();
    ConfigFile::from_bytes_no_includes(&content, Metadata::api(), Options::default())
        .map_err(|error| invalid(&format!("git's configuration is damaged: {error}")))
}

fn invalid(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

/// Returns the folder shared by all work trees of the repository that `own` belongs to.
///
/// # Errors
/// Fails if the pointer file cannot be read or does not lead to a directory.
pub(super) fn common_folder(own: &Path) -> Result<PathBuf, PathError> {
    let pointer = own.join("commondir");
    match read_pointer(&pointer, "").transpose() {
        Some(target) => directory(own, target, &pointer),
        None => Ok(own.to_path_buf()),
    }
}

/// Resolves a target read from the file `pointer`, relative to `base`, to an existing directory.
fn directory(
    base: &Path,
    target: io::Result<PathBuf>,
    pointer: &Path,
) -> Result<PathBuf, PathError> {
    let there = target.and_then(|target| {
        let there = base.join(target);
        let problem = format!("it leads to `{}`, which is no directory", there.display());
        (there.is_dir().then_some(there)).ok_or_else(|| invalid(&problem))
    });
    there.map_err(PathError::of("read", pointer))
}

fn read_pointer(file: &Path, label: &str) -> io::Result<Option<PathBuf>> {
    let content = read(file, LARGEST_POINTER)?.unwrap_or_default();
    let text = String::from_utf8_lossy(&content);
    let path = text.trim_end().strip_prefix(label).map(str::trim_start);
    Ok(path.filter(|path| !path.is_empty()).map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn repository(config: &str) -> (tempfile::TempDir, Repository) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(".git")).unwrap();
        fs::write(dir.path().join(".git/config"), config).unwrap();
        let repository = Repository::of(dir.path()).unwrap().unwrap();
        (dir, repository)
    }

    #[test]
    fn of_several_values_the_last_counts_and_nothing_is_included() {
        for (config, expected) in [
            ("", None),
            ("[core]\n\tignorecase = true\n", Some(true)),
            ("[core]\nignoreCase\n", Some(true)),
            ("[CORE] IgnoreCase = yes # so\n", Some(true)),
            (
                "[core]\nignorecase = true\n[core]\nignorecase = false\n",
                Some(false),
            ),
            ("[core \"x\"]\nignorecase = true\n", None),
            ("[include]\npath = other\n", None),
        ] {
            let (dir, repository) = repository(config);
            fs::write(dir.path().join(".git/other"), "[core]\nignorecase = true\n").unwrap();
            let config = repository.config().unwrap();
            assert_eq!(config.boolean("core.ignoreCase").unwrap(), expected);
        }
    }

    #[test]
    fn a_damaged_configuration_is_reported() {
        let (_dir, repository) = repository("[core\n");
        let error = repository.config().err().unwrap();
        assert!(error.to_string().contains("is damaged"), "{error}");
    }

    #[test]
    fn non_files_and_large_files_are_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        assert_eq!(read(&path, 3).unwrap(), None);
        fs::write(&path, "abc").unwrap();
        assert_eq!(read(&path, 3).unwrap().unwrap(), b"abc");
        assert!(read(&path, 2).is_err());
        assert!(read(dir.path(), 3).is_err());
        assert!(read(Path::new("/dev/zero"), 3).is_err());
    }

    #[test]
    fn a_link_that_leads_to_no_repository_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let dot_git = dir.path().join(".git");
        fs::create_dir(dir.path().join("own")).unwrap();
        fs::create_dir(dir.path().join("deep")).unwrap();
        let broken = || {
            let error = Repository::of(&dir.path().join("deep")).unwrap_err();
            error.to_string()
        };
        for (content, said) in [
            ("", "it leads to no repository"),
            ("gitdir:\n", "it leads to no repository"),
            ("nonsense", "it leads to no repository"),
            ("gitdir: ../nothing\n", "nothing`, which is no directory"),
            ("gitdir: .git\n", ".git`, which is no directory"),
        ] {
            fs::write(&dot_git, content).unwrap();
            let error = broken();
            assert!(error.contains(said), "{content}: {error}");
            assert!(
                error.contains(&format!("`{}`", dot_git.display())),
                "{error}"
            );
        }
        fs::write(&dot_git, "gitdir: own\n").unwrap();
        assert!(Repository::of(dir.path()).unwrap().is_some());
        fs::write(dir.path().join("own/commondir"), "../gone\n").unwrap();
        assert!(broken().contains("own/commondir`"), "{}", broken());
        fs::remove_file(&dot_git).unwrap();
        std::os::unix::fs::symlink("nowhere", &dot_git).unwrap();
        assert!(
            broken().contains("it leads to no repository"),
            "{}",
            broken()
        );
    }

    #[test]
    fn a_directory_that_is_not_a_repository_hides_none_above() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("inner");
        fs::create_dir_all(inner.join(".git")).unwrap();
        let top = || Repository::of(&inner).unwrap().unwrap().top;
        assert_eq!(top(), inner);
        for part in [".git/objects", ".git/refs"] {
            fs::create_dir_all(dir.path().join(part)).unwrap();
        }
        fs::write(dir.path().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        assert_eq!(top(), dir.path());
        fs::write(inner.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        assert_eq!(top(), dir.path());
        fs::create_dir(inner.join(".git/objects")).unwrap();
        fs::create_dir(inner.join(".git/refs")).unwrap();
        assert_eq!(top(), inner);
    }

    #[test]
    fn a_linked_work_tree_has_an_index_of_its_own_and_shares_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("main/.git/worktrees/w");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("commondir"), "../..\n").unwrap();
        let deep = dir.path().join("w/deep");
        fs::create_dir_all(&deep).unwrap();
        let pointer = format!("gitdir: {}\n", own.display());
        fs::write(dir.path().join("w/.git"), pointer).unwrap();
        let found = Repository::of(&deep).unwrap().unwrap();
        assert_eq!(found.top, dir.path().join("w"));
        assert_eq!(found.own, own);
        let shared = dir.path().join("main/.git");
        assert_eq!(
            found.common.canonicalize().unwrap(),
            shared.canonicalize().unwrap()
        );
    }
}
