//! Puts verified edits on the disk, all or nothing.
//!
//! Writes below the root and nowhere else. Each file is first written beside its target, under a
//! name of its own, and renamed into place when all of them are written; so nobody ever sees half a
//! file, and a full disk is noticed before anything has changed. The file that it replaces takes its
//! name until the end. An error part-way puts everything back. All of it goes through directory
//! handles that cannot lead out of the root.

use std::fs::{File, Permissions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::thread;

use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, linkat, openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use super::beneath::Root;
use super::verify::Present;
use super::{Action, VerifiedEdit, VerifiedEdits};

/// Many files are written in this many threads, which on two cores halves the time.
const THREADS: usize = 2;
/// From this many files on.
const MANY_FILES: usize = 64;

/// Why nothing was applied.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} `{}`: {source}{}", .path.display(), describe(.left))]
pub struct ApplyError {
    /// What was being done.
    pub action: &'static str,
    /// To what.
    pub path: PathBuf,
    /// The system's word.
    pub source: io::Error,
    /// What could not be put back; empty where the tree is as it was.
    pub left: Vec<String>,
}

fn describe(left: &[String]) -> String {
    if left.is_empty() {
        String::new()
    } else {
        format!("; putting back failed: {}", left.join("; "))
    }
}

/// Applies `edits` to the tree below `root`.
///
/// # Errors
/// When anything fails; the tree is then as it was before, unless the error says otherwise.
pub fn apply(root: &Path, edits: &VerifiedEdits) -> Result<(), ApplyError> {
    let edits = edits.edits();
    if edits.is_empty() {
        return Ok(());
    }
    let root = Root::open(root).map_err(failed("open", root))?;
    let tag = RandomState::new().build_hasher().finish();
    let transaction = Transaction { root, tag, edits };
    let mut done = Done::default();
    let Err(error) = transaction.run(&mut done) else {
        transaction.remove_replaced();
        return Ok(());
    };
    let left = transaction.undo(&done);
    // What could not be put back may be in one of the staged files.
    if left.is_empty() {
        transaction.remove_traces(&done);
    }
    Err(ApplyError { left, ..error })
}

fn failed<E: Into<io::Error>>(
    action: &'static str,
    path: impl Into<PathBuf>,
) -> impl FnOnce(E) -> ApplyError {
    let path = path.into();
    move |error| ApplyError {
        action,
        path,
        source: error.into(),
        left: Vec::new(),
    }
}

/// The application of a reply's edits, which are sorted by path.
struct Transaction<'e> {
    root: Root,
    /// Makes the names of staged files unlike any other.
    tag: u64,
    edits: &'e [VerifiedEdit],
}

/// How far a transaction has come.
#[derive(Default)]
struct Done {
    /// Directories that were made, outer ones first.
    directories: Vec<String>,
    /// Edits that are in place, from the beginning of a share to how far it came.
    installed: Vec<Range<usize>>,
}

impl Transaction<'_> {
    fn run(&self, done: &mut Done) -> Result<(), ApplyError> {
        self.make_directories(&mut done.directories)?;
        for result in self.in_parallel(|share| self.each(share, |edit| edit.stage()).1) {
            result?;
        }
        let mut outcome = Ok(());
        for (installed, result) in self.in_parallel(|share| self.each(share, |edit| edit.install()))
        {
            done.installed.push(installed);
            outcome = outcome.and(result);
        }
        outcome
    }

    fn make_directories(&self, made: &mut Vec<String>) -> Result<(), ApplyError> {
        let mut last = None;
        let written = self
            .edits
            .iter()
            .filter(|edit| matches!(edit.action(), Action::Write(_)));
        for edit in written {
            let parent = split(edit.path()).0;
            if last != Some(parent) {
                self.root
                    .ensure_directory(parent, &mut |path| made.push(path.to_owned()))
                    .map_err(failed("make the directory of", edit.path()))?;
                last = Some(parent);
            }
        }
        Ok(())
    }

    /// The edits in one part, or in several that are worked on at once.
    fn shares(&self) -> Vec<Range<usize>> {
        let count = self.edits.len();
        let size = if count < MANY_FILES {
            count
        } else {
            count.div_ceil(THREADS)
        };
        (0..count)
            .step_by(size)
            .map(|start| start..count.min(start + size))
            .collect()
    }

    fn in_parallel<T: Send>(&self, work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
        let mut shares = self.shares();
        let own = shares.pop().unwrap_or_default();
        thread::scope(|scope| {
            let others: Vec<_> = shares
                .into_iter()
                .map(|share| scope.spawn(|| work(share)))
                .collect();
            let own = work(own);
            // A thread that panicked goes on panicking here; nothing in `work` does.
            let joined = others.into_iter().map(|other| {
                other
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            joined.chain([own]).collect()
        })
    }

    /// Does `work` on each edit of a share until one fails, and says how far it came. The edit that
    /// failed counts as done where it has changed anything.
    fn each(
        &self,
        share: Range<usize>,
        work: impl Fn(&Place<'_>) -> Result<(), Failed>,
    ) -> (Range<usize>, Result<(), ApplyError>) {
        let mut directory = Directory::default();
        for slot in share.clone() {
            let edit = &self.edits[slot];
            let (parent, name) = split(edit.path());
            let handle = match directory.at(&self.root, parent) {
                Ok(handle) => handle,
                Err(errno) => {
                    let error = failed("open the directory of", edit.path())(errno);
                    return (share.start..slot, Err(error));
                }
            };
            let staged = self.staged_name(slot);
            let place = Place {
                directory: handle,
                name,
                staged: &staged,
                edit,
            };
            if let Err(Failed {
                changed,
                action,
                source,
            }) = work(&place)
            {
                let end = if changed { slot + 1 } else { slot };
                return (share.start..end, Err(failed(action, edit.path())(source)));
            }
        }
        (share, Ok(()))
    }

    fn staged_name(&self, slot: usize) -> String {
        format!(".code-commit-{:016x}-{slot}", self.tag)
    }

    /// Undoes everything, the latest first, and says what could not be undone.
    fn undo(&self, done: &Done) -> Vec<String> {
        let mut left = Vec::new();
        let mut directory = Directory::default();
        for slot in done
            .installed
            .iter()
            .rev()
            .flat_map(|range| range.clone().rev())
        {
            let edit = &self.edits[slot];
            let (parent, name) = split(edit.path());
            let staged = self.staged_name(slot);
            let undone = directory.at(&self.root, parent).and_then(|directory| {
                Place {
                    directory,
                    name,
                    staged: &staged,
                    edit,
                }
                .put_back()
            });
            if let Err(errno) = undone {
                let error = io::Error::from(errno);
                left.push(match edit.present() {
                    Some(_) => format!(
                        "`{}` ({error}), which lies beside it as `{staged}`",
                        edit.path()
                    ),
                    None => format!("`{}` ({error}), which was not there before", edit.path()),
                });
            }
        }
        left
    }

    /// Removes the files that were replaced or removed, once everything is in place.
    fn remove_replaced(&self) {
        self.remove_staged(|edit| edit.present().is_some());
    }

    /// Removes whatever was made on the way to an edit that failed.
    fn remove_traces(&self, done: &Done) {
        self.remove_staged(|_| true);
        for path in done.directories.iter().rev() {
            let (parent, name) = split(path);
            if let Ok(parent) = self.root.directory(parent) {
                // Somebody else may have put something into it; then it is theirs.
                let _ = unlinkat(parent, name, AtFlags::REMOVEDIR);
            }
        }
    }

    fn remove_staged(&self, which: impl Fn(&VerifiedEdit) -> bool) {
        let mut directory = Directory::default();
        for (slot, edit) in self
            .edits
            .iter()
            .enumerate()
            .filter(|(_, edit)| which(edit))
        {
            if let Ok(directory) = directory.at(&self.root, split(edit.path()).0) {
                // Not there is as good as removed; and a file too many is no reason to fail.
                let _ = unlinkat(directory, self.staged_name(slot), AtFlags::empty());
            }
        }
    }
}

/// The directory that was opened last: the edits are sorted, so one handle serves all its files.
#[derive(Default)]
struct Directory {
    open: Option<(String, OwnedFd)>,
}

impl Directory {
    fn at(&mut self, root: &Root, path: &str) -> Result<BorrowedFd<'_>, Errno> {
        let is_open = self.open.as_ref().is_some_and(|(open, _)| open == path);
        if !is_open {
            self.open = Some((path.to_owned(), root.directory(path)?));
        }
        self.open
            .as_ref()
            .map(|(_, handle)| handle.as_fd())
            .ok_or(Errno::BADF)
    }
}

/// Why an edit could not be staged or installed.
struct Failed {
    /// Whether it has changed the tree all the same, so that it must be undone.
    changed: bool,
    action: &'static str,
    source: io::Error,
}

impl Failed {
    fn before<E: Into<io::Error>>(action: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self {
            changed: false,
            action,
            source: error.into(),
        }
    }
}

/// Where an edit goes.
struct Place<'p> {
    directory: BorrowedFd<'p>,
    name: &'p str,
    /// The name beside it that the new file has until it is in place, and the old one afterwards.
    staged: &'p str,
    edit: &'p VerifiedEdit,
}

impl Place<'_> {
    /// Writes the new content beside the target.
    fn stage(&self) -> Result<(), Failed> {
        let Action::Write(content) = self.edit.action() else {
            return Ok(());
        };
        self.write(content).map_err(Failed::before("write"))
    }

    fn write(&self, content: &str) -> io::Result<()> {
        let present = self.edit.present();
        // Private until it has its mode: the file that it replaces may be.
        let mode = if present.is_some() { 0o600 } else { 0o666 };
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(
            self.directory,
            self.staged,
            flags,
            Mode::from_raw_mode(mode),
        )?;
        let mut file = File::from(file);
        file.write_all(content.as_bytes())?;
        if let Some(present) = present {
            // Somebody else's file stays theirs where we may give files away; the owner first, as
            // a change of owner clears mode bits.
            let (user, group) = present.owner;
            let _ = fchown(&file, Some(user), Some(group));
            file.set_permissions(Permissions::from_mode(present.mode))?;
        }
        Ok(())
    }

    /// Puts the staged file into its place, or takes the removed one out.
    fn install(&self) -> Result<(), Failed> {
        let (action, present) = match (self.edit.action(), self.edit.present()) {
            (Action::Write(_), None) => {
                return self
                    .rename_new(self.staged, self.name)
                    .map_err(Failed::before("create"));
            }
            (Action::Write(_), Some(present)) => {
                self.exchange().map_err(Failed::before("replace"))?;
                ("replace", present)
            }
            (Action::Remove, Some(present)) => {
                self.rename_new(self.name, self.staged)
                    .map_err(Failed::before("remove"))?;
                ("remove", present)
            }
            // Verification drops these.
            (Action::Remove, None) => return Ok(()),
        };
        self.check_old(present).map_err(|source| Failed {
            changed: true,
            action,
            source,
        })
    }

    /// Undoes [`install`](Self::install).
    fn put_back(&self) -> Result<(), Errno> {
        match (self.edit.action(), self.edit.present()) {
            (Action::Write(_), None) => unlinkat(self.directory, self.name, AtFlags::empty()),
            (Action::Write(_), Some(_)) => {
                renameat(self.directory, self.staged, self.directory, self.name)
            }
            (Action::Remove, Some(_)) => self.rename_new(self.staged, self.name),
            (Action::Remove, None) => Ok(()),
        }
    }

    /// The staged file takes the name of the one that is there, and that one the staged name.
    fn exchange(&self) -> Result<(), Errno> {
        let (directory, name, staged) = (self.directory, self.name, self.staged);
        match renameat_with(directory, staged, directory, name, RenameFlags::EXCHANGE) {
            // A file system that cannot exchange: a third name keeps the old file.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                let kept = format!("{staged}-old");
                linkat(directory, name, directory, &kept, AtFlags::empty())?;
                renameat(directory, staged, directory, name)?;
                renameat(directory, &kept, directory, staged)
            }
            other => other,
        }
    }

    /// Renames to a name that must not exist.
    fn rename_new(&self, old: &str, new: &str) -> Result<(), Errno> {
        let directory = self.directory;
        match renameat_with(directory, old, directory, new, RenameFlags::NOREPLACE) {
            // A file system without that flag: a link fails where something exists.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                linkat(directory, old, directory, new, AtFlags::empty())?;
                unlinkat(directory, old, AtFlags::empty())
            }
            other => other,
        }
    }

    /// Whether what was taken out of the tree is the file that was verified.
    fn check_old(&self, present: Present) -> io::Result<()> {
        let stat = statat(self.directory, self.staged, AtFlags::SYMLINK_NOFOLLOW)?;
        if (u64_of(stat.st_dev), u64_of(stat.st_ino)) == present.identity {
            return Ok(());
        }
        Err(io::Error::other(
            "it was changed by somebody else in the meantime",
        ))
    }
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// `st_dev` and `st_ino` have other types on other systems.
fn u64_of<T: TryInto<u64>>(value: T) -> u64 {
    value.try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, symlink};
    use std::sync::Arc;

    use tempfile::TempDir;

    use super::*;
    use crate::edit::{PathPolicy, parse};

    struct Tree(TempDir);

    impl Tree {
        fn new(files: &[(&str, &str)]) -> Self {
            let tree = Self(tempfile::tempdir().unwrap());
            for (path, content) in files {
                let path = tree.0.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
            }
            tree
        }

        fn verified(&self, reply: &str) -> VerifiedEdits {
            let policy = PathPolicy::load(self.0.path(), None).unwrap();
            policy.verify(parse(&Arc::new(reply.to_owned()))).unwrap()
        }

        fn apply(&self, edits: &VerifiedEdits) -> Result<(), ApplyError> {
            apply(self.0.path(), edits)
        }

        /// Every file with mode and content, every directory with a slash.
        fn listing(&self) -> BTreeMap<String, String> {
            let mut listing = BTreeMap::new();
            let mut pending = vec![self.0.path().to_path_buf()];
            while let Some(dir) = pending.pop() {
                for entry in fs::read_dir(dir).unwrap() {
                    let path = entry.unwrap().path();
                    let name = path
                        .strip_prefix(self.0.path())
                        .unwrap()
                        .display()
                        .to_string();
                    let metadata = path.symlink_metadata().unwrap();
                    if metadata.is_dir() {
                        listing.insert(format!("{name}/"), String::new());
                        pending.push(path);
                    } else {
                        let content = fs::read_to_string(&path).unwrap_or_default();
                        listing.insert(name, format!("{:o} {content}", metadata.mode() & 0o7777));
                    }
                }
            }
            listing
        }
    }

    const REPLY: &str =
        "^^^a\nnew a\n^^^end\n^^^d/e/f\nnew f\n^^^end\n^^^gone\n^^^delete\n^^^z\nnew z\n^^^end\n";

    #[test]
    fn files_are_written_made_and_removed_and_modes_kept() {
        let tree = Tree::new(&[("a", "old a"), ("gone", "x"), ("other", "untouched")]);
        fs::set_permissions(tree.0.path().join("a"), Permissions::from_mode(0o4751)).unwrap();
        tree.apply(&tree.verified(REPLY)).unwrap();
        let listing = tree.listing();
        assert_eq!(listing["a"], "4751 new a\n");
        assert!(listing["d/e/f"].ends_with("new f\n"));
        assert!(!listing.contains_key("gone"));
        assert_eq!(listing.len(), 6, "nothing is left behind: {listing:?}");
    }

    #[test]
    fn another_name_of_the_file_keeps_its_bytes() {
        let tree = Tree::new(&[("a", "old a"), ("gone", "x")]);
        fs::hard_link(tree.0.path().join("a"), tree.0.path().join("other")).unwrap();
        tree.apply(&tree.verified(REPLY)).unwrap();
        assert!(tree.listing()["other"].ends_with("old a"));
    }

    #[test]
    fn whatever_fails_part_way_everything_is_put_back() {
        type Trouble = fn(&Path);
        let troubles: [(&str, Trouble); 5] = [
            ("a file appears", |root| {
                fs::write(root.join("z"), "somebody else's").unwrap();
            }),
            ("a directory appears", |root| {
                fs::create_dir(root.join("z")).unwrap();
            }),
            ("a link appears", |root| {
                symlink("/tmp", root.join("d")).unwrap();
            }),
            ("a file is replaced", |root| {
                fs::write(root.join("later"), "theirs").unwrap();
                fs::rename(root.join("later"), root.join("gone")).unwrap();
            }),
            ("a file disappears", |root| {
                fs::remove_file(root.join("gone")).unwrap();
            }),
        ];
        for (name, trouble) in troubles {
            let tree = Tree::new(&[("a", "old a"), ("gone", "x"), ("other", "untouched")]);
            let edits = tree.verified(REPLY);
            trouble(tree.0.path());
            let before = tree.listing();
            let error = tree.apply(&edits).expect_err(name);
            assert_eq!(error.left, [""; 0], "{name}");
            assert_eq!(tree.listing(), before, "{name}");
        }
    }

    #[test]
    fn many_files_are_staged_in_several_threads() {
        let tree = Tree::new(&[]);
        let reply: String = (0..500)
            .map(|n| format!("^^^d{}/f{n}\n{n}\n^^^end\n", n % 7))
            .collect();
        tree.apply(&tree.verified(&reply)).unwrap();
        let listing = tree.listing();
        assert_eq!(listing.len(), 507);
        for n in 0..500 {
            assert!(listing[&format!("d{}/f{n}", n % 7)].ends_with(&format!(" {n}\n")));
        }
    }
}
