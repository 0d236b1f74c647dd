//! Puts verified edits on the disk, all or nothing.
//!
//! Writes below the root and in a staging folder on the same file system, which it removes. Each
//! file is written there first and then renamed into place, so that nobody ever sees half a file; an
//! error part-way undoes what was done. All renames go through directory handles that cannot lead
//! out of the root.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::thread;

use rustix::fs::{AtFlags, RenameFlags, linkat, renameat, renameat_with, statat, unlinkat};
use rustix::io::Errno;
use tempfile::TempDir;

use super::beneath::Root;
use super::verify::Present;
use super::{Action, VerifiedEdit, VerifiedEdits};

/// Files are staged in this many threads; one is as good where there are few.
const STAGING_THREADS: usize = 2;
/// From this many files on.
const MANY_FILES: usize = 64;

/// Why nothing was applied.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} `{}`: {source}{}", .path.display(), describe(.rollback.as_ref()))]
pub struct ApplyError {
    /// What was being done.
    pub action: &'static str,
    /// To what.
    pub path: PathBuf,
    /// The system's word.
    pub source: io::Error,
    /// What could not be undone; `None` where the tree is as it was.
    pub rollback: Option<Rollback>,
}

/// A roll-back that did not succeed either.
#[derive(Debug, PartialEq, Eq)]
pub struct Rollback {
    /// What failed, by path.
    pub failures: Vec<String>,
    /// Where the files' earlier bytes lie.
    pub kept: PathBuf,
}

fn describe(rollback: Option<&Rollback>) -> String {
    let describe = |rollback: &Rollback| {
        let kept = rollback.kept.display();
        format!(
            "; putting back failed for {}; the earlier files lie in `{kept}`",
            rollback.failures.join(", ")
        )
    };
    rollback.map(describe).unwrap_or_default()
}

/// Applies `edits` to the tree below `root`. `staging` names directories to stage in; the first on
/// the root's file system is used.
///
/// # Errors
/// When anything fails; the tree is then as it was before, unless the error says otherwise.
pub fn apply(root: &Path, staging: &[&Path], edits: &VerifiedEdits) -> Result<(), ApplyError> {
    let edits = edits.edits();
    if edits.is_empty() {
        return Ok(());
    }
    let stage = Stage::open(root, staging)?;
    stage.write_all(edits)?;
    let mut install = Install {
        root: Root::open(root).map_err(failed("open", root))?,
        stage: &stage,
        done: Vec::new(),
    };
    match install.all(edits) {
        Ok(()) => Ok(()),
        Err(error) => {
            let failures = install.undo();
            drop(install);
            Err(if failures.is_empty() {
                error
            } else {
                stage.keep(error, failures)
            })
        }
    }
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
        rollback: None,
    }
}

/// The folder that files are written to before they are renamed into place, and that the files they
/// replace end up in.
struct Stage {
    folder: TempDir,
    handle: OwnedFd,
}

impl Stage {
    fn open(root: &Path, candidates: &[&Path]) -> Result<Self, ApplyError> {
        let device = root.metadata().map_err(failed("look at", root))?.dev();
        let same_device = |dir: &&&Path| {
            dir.symlink_metadata()
                .is_ok_and(|m| m.is_dir() && m.dev() == device)
        };
        let parent = candidates.iter().find(same_device).copied().unwrap_or(root);
        let folder = tempfile::Builder::new()
            .prefix(".staging-")
            .tempdir_in(parent)
            .map_err(failed("stage files in", parent))?;
        let handle = File::open(folder.path())
            .map_err(failed("open", folder.path()))?
            .into();
        Ok(Self { folder, handle })
    }

    /// Writes the new content of every file.
    fn write_all(&self, edits: &[VerifiedEdit]) -> Result<(), ApplyError> {
        let threads = if edits.len() < MANY_FILES {
            1
        } else {
            STAGING_THREADS
        };
        let share = edits.len().div_ceil(threads);
        let mut shares = edits.chunks(share).enumerate();
        let first = shares.next();
        thread::scope(|scope| {
            let others: Vec<_> = shares
                .map(|(nth, part)| scope.spawn(move || self.write_share(nth * share, part)))
                .collect();
            let mut result = first.map_or(Ok(()), |(_, part)| self.write_share(0, part));
            for other in others {
                let outcome = other.join().unwrap_or_else(|_| {
                    Err(failed("stage files in", self.folder.path())(
                        io::Error::other("a thread died"),
                    ))
                });
                result = result.and(outcome);
            }
            result
        })
    }

    fn write_share(&self, offset: usize, edits: &[VerifiedEdit]) -> Result<(), ApplyError> {
        for (nth, edit) in edits.iter().enumerate() {
            if let Action::Write(content) = edit.action() {
                self.write(offset + nth, content, edit.present())
                    .map_err(failed("write", edit.path()))?;
            }
        }
        Ok(())
    }

    fn write(&self, slot: usize, content: &str, present: Option<Present>) -> io::Result<()> {
        let path = self.folder.path().join(new_name(slot));
        // Private until it has its mode: the file it replaces may be.
        let mode = if present.is_some() { 0o600 } else { 0o666 };
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(path)?;
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

    /// Keeps the folder, since it has the only copy of something.
    fn keep(self, error: ApplyError, failures: Vec<String>) -> ApplyError {
        let kept = self.folder.keep();
        ApplyError {
            rollback: Some(Rollback { failures, kept }),
            ..error
        }
    }
}

fn new_name(slot: usize) -> String {
    format!("{slot}.new")
}

fn old_name(slot: usize) -> String {
    format!("{slot}.old")
}

/// A change of the tree, as it can be undone.
enum Done<'e> {
    MadeDirectory(String),
    Created { edit: &'e VerifiedEdit },
    Replaced { edit: &'e VerifiedEdit, slot: usize },
    Removed { edit: &'e VerifiedEdit, slot: usize },
}

/// Renames staged files into place, and back.
struct Install<'e> {
    root: Root,
    stage: &'e Stage,
    done: Vec<Done<'e>>,
}

impl<'e> Install<'e> {
    fn all(&mut self, edits: &'e [VerifiedEdit]) -> Result<(), ApplyError> {
        // The edits are sorted, so one handle serves all files of a directory.
        let mut current: Option<(&str, OwnedFd)> = None;
        for (slot, edit) in edits.iter().enumerate() {
            let (parent, name) = split(edit.path());
            let handle = match current.take() {
                Some((path, handle)) if path == parent => handle,
                _ => self
                    .open_parent(parent)
                    .map_err(failed("open the directory of", edit.path()))?,
            };
            self.one(slot, edit, handle.as_fd(), name)?;
            current = Some((parent, handle));
        }
        Ok(())
    }

    fn open_parent(&mut self, parent: &str) -> Result<OwnedFd, Errno> {
        let done = &mut self.done;
        self.root.ensure_directory(parent, &mut |made| {
            done.push(Done::MadeDirectory(made.to_owned()));
        })
    }

    fn one(
        &mut self,
        slot: usize,
        edit: &'e VerifiedEdit,
        dir: BorrowedFd<'_>,
        name: &str,
    ) -> Result<(), ApplyError> {
        match (edit.action(), edit.present()) {
            (Action::Write(_), None) => {
                self.move_in(slot, dir, name)
                    .map_err(failed("create", edit.path()))?;
                self.done.push(Done::Created { edit });
            }
            (Action::Write(_), Some(present)) => {
                self.swap_in(slot, dir, name)
                    .map_err(failed("replace", edit.path()))?;
                self.done.push(Done::Replaced { edit, slot });
                self.check_old(slot, present)
                    .map_err(failed("replace", edit.path()))?;
            }
            (Action::Remove, Some(present)) => {
                self.move_out(slot, dir, name)
                    .map_err(failed("remove", edit.path()))?;
                self.done.push(Done::Removed { edit, slot });
                self.check_old(slot, present)
                    .map_err(failed("remove", edit.path()))?;
            }
            // Verification drops these.
            (Action::Remove, None) => {}
        }
        Ok(())
    }

    /// The staged file to where nothing is.
    fn move_in(&self, slot: usize, dir: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
        rename_new(self.stage.handle.as_fd(), &new_name(slot), dir, name)
    }

    /// The file out of the tree, into the stage.
    fn move_out(&self, slot: usize, dir: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
        rename_new(dir, name, self.stage.handle.as_fd(), &old_name(slot))
    }

    /// The staged file into the place of the one that is there, which ends up in the stage.
    fn swap_in(&self, slot: usize, dir: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
        let stage = &self.stage.handle;
        let (new, old) = (new_name(slot), old_name(slot));
        match renameat_with(stage, &new, dir, name, RenameFlags::EXCHANGE) {
            Ok(()) => renameat(stage, &new, stage, &old),
            // A file system that cannot exchange: a second name keeps the old file.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                linkat(dir, name, stage, &old, AtFlags::empty())?;
                renameat(stage, &new, dir, name)
            }
            Err(errno) => Err(errno),
        }
    }

    /// Whether what was taken out of the tree is the file that was verified.
    fn check_old(&self, slot: usize, present: Present) -> io::Result<()> {
        let stat = statat(
            &self.stage.handle,
            old_name(slot),
            AtFlags::SYMLINK_NOFOLLOW,
        )?;
        if (u64_of(stat.st_dev), u64_of(stat.st_ino)) == present.identity {
            return Ok(());
        }
        Err(io::Error::other(
            "it was changed by somebody else in the meantime",
        ))
    }

    /// Undoes everything, the latest first, and says what could not be undone.
    fn undo(&mut self) -> Vec<String> {
        let mut failures = Vec::new();
        while let Some(done) = self.done.pop() {
            if let Err((path, errno)) = self.undo_one(&done) {
                failures.push(format!("`{path}` ({})", io::Error::from(errno)));
            }
        }
        failures
    }

    fn undo_one<'d>(&self, done: &'d Done<'_>) -> Result<(), (&'d str, Errno)> {
        let path = match done {
            Done::MadeDirectory(path) => path.as_str(),
            Done::Created { edit } | Done::Replaced { edit, .. } | Done::Removed { edit, .. } => {
                edit.path()
            }
        };
        let (parent, name) = split(path);
        let undo = || {
            let dir = self.root.directory(parent)?;
            match done {
                Done::MadeDirectory(_) => unlinkat(&dir, name, AtFlags::REMOVEDIR),
                Done::Created { .. } => unlinkat(&dir, name, AtFlags::empty()),
                Done::Replaced { slot, .. } => {
                    renameat(&self.stage.handle, old_name(*slot), &dir, name)
                }
                Done::Removed { slot, .. } => rename_new(
                    self.stage.handle.as_fd(),
                    &old_name(*slot),
                    dir.as_fd(),
                    name,
                ),
            }
        };
        undo().map_err(|errno| (path, errno))
    }
}

/// Renames to a name that must not exist.
fn rename_new(from: BorrowedFd<'_>, old: &str, to: BorrowedFd<'_>, new: &str) -> Result<(), Errno> {
    match renameat_with(from, old, to, new, RenameFlags::NOREPLACE) {
        // A file system without that flag: a link fails where something exists.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            linkat(from, old, to, new, AtFlags::empty())?;
            unlinkat(from, old, AtFlags::empty())
        }
        other => other,
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
    use std::os::unix::fs::symlink;
    use std::sync::Arc;

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
            apply(self.0.path(), &[], edits)
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
            assert_eq!(error.rollback, None, "{name}");
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
