//! Finds the project of a command: the current directory or one above it.
//!
//! Examines directories, but reads and changes no files. Guarantees that another user's directory is never
//! chosen as the project unless it is the current directory or the user names it.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::files::CONFIG;
use super::repository::{DOT_GIT, nearest_top};

/// The project found for a command in some directory.
#[derive(Debug, PartialEq, Eq)]
pub struct FoundRoot {
    /// Root of the project.
    pub root: PathBuf,
    /// Directory that would have been the root if it did not belong to another user.
    pub passed_over: Option<PathBuf>,
}

/// Finds the project of `here`, an absolute directory: the nearest directory with `agent-config`, at most up to the
/// top of the git repository; else that top; else `here` itself. Directories above `here` count only if they belong to
/// `user`; otherwise, another user could plant a directory with a build.sh for this user to run.
pub fn find(here: &Path, user: u32) -> FoundRoot {
    let top = nearest_top(here);
    let inside = |directory: &&Path| top.is_none_or(|top| directory.starts_with(top));
    let candidates = here
        .ancestors()
        .take_while(inside)
        .filter(|directory| directory.join(CONFIG).is_dir())
        .map(|directory| (directory, CONFIG))
        .chain(top.map(|top| (top, DOT_GIT)));
    let mut passed_over = None;
    for (directory, mark) in candidates {
        let is_users = |path: &Path| {
            let found = path.symlink_metadata();
            found.is_ok_and(|found| found.uid() == user)
        };
        if directory == here || is_users(directory) && is_users(&directory.join(mark)) {
            let root = directory.to_path_buf();
            return FoundRoot { root, passed_over };
        }
        passed_over.get_or_insert_with(|| directory.to_path_buf());
    }
    FoundRoot {
        root: here.to_path_buf(),
        passed_over,
    }
}

/// Returns the relative path from one absolute directory to another.
pub fn relative(from: &Path, to: &Path) -> PathBuf {
    let [from, to] = [from, to].map(|path| path.strip_prefix("/").unwrap_or(path));
    gix_path::relativize_with_prefix(to, from).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_project_is_the_nearest_directory_that_is_the_users() {
        for (marks, here, expected) in [
            (&[][..], "a/b", "a/b"),
            (&["agent-config"], "", ""),
            (&["agent-config"], "a/b", ""),
            (&["agent-config", "a/agent-config"], "a/b", "a"),
            (&["agent-config", "a/b/agent-config"], "a/b", "a/b"),
            (&[".git"], "a/b", ""),
            (&[".git", "a/agent-config"], "a/b", "a"),
            (&[".git", "agent-config"], "a/b", ""),
            // A directory above a repository belongs to another project.
            (&["agent-config", "a/.git"], "a/b", "a"),
            (&["agent-config", "a/b/.git"], "a/b", "a/b"),
            (&[".git", "a/.git"], "a/b", "a"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().canonicalize().unwrap();
            fs::create_dir_all(root.join("a/b")).unwrap();
            for mark in marks {
                fs::create_dir(root.join(mark)).unwrap();
            }
            let user = root.metadata().unwrap().uid();
            let here = path_clean::clean(root.join(here));
            let expected = path_clean::clean(root.join(expected));
            let found = find(&here, user);
            assert_eq!(found.root, expected, "{marks:?}");
            assert_eq!(found.passed_over, None, "{marks:?}");
            // For any other user, all directories belong to someone else.
            let others = find(&here, user + 1);
            assert_eq!(others.root, here, "{marks:?}");
            let passed_over = Some(expected).filter(|expected| *expected != here);
            assert_eq!(others.passed_over, passed_over, "{marks:?}");
        }
    }

    #[test]
    fn a_file_of_that_name_is_no_mark() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("a")).unwrap();
        fs::write(root.join("agent-config"), "").unwrap();
        let user = root.metadata().unwrap().uid();
        assert_eq!(find(&root.join("a"), user).root, root.join("a"));
    }

    #[test]
    fn the_way_to_a_directory_is_reported_as_one_would_type_it() {
        for (from, to, expected) in [
            ("/a", "/a", "."),
            ("/a/b/c", "/a", "../.."),
            ("/a", "/a/b", "b"),
            ("/a/b", "/c", "../../c"),
        ] {
            assert_eq!(relative(from.as_ref(), to.as_ref()), Path::new(expected));
        }
    }
}
